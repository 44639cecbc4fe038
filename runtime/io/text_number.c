/* SPDX-License-Identifier: Apache-2.0 */
/* Writes integers two digits at a time. For floating point it first tries a
 * decimal with few digits, which costs one division, and otherwise uses printf.
 */
#include "io/text_number.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/byte_order.h"

#define REAL_ROOM      48 /* room for a number written by printf */
#define DECIMAL_LIMBS  8  /* 32-bit limbs for 256 bits */
#define DECIMAL_DIGITS 81 /* nine times nine, enough for 256 bits */

/* ---- integers ----------------------------------------------------------- */

static const char PAIRS[] =
    "00010203040506070809101112131415161718192021222324"
    "25262728293031323334353637383940414243444546474849"
    "50515253545556575859606162636465666768697071727374"
    "75767778798081828384858687888990919293949596979899";

/* Appends two digits. */
static char *put_pair(char *at, uint32_t value)
{
    assert(value < 100);
    memcpy(at, PAIRS + 2 * value, 2);
    return at + 2;
}

/* Appends the one to four digits of a number below 10,000. */
static char *put_small(char *at, uint32_t value)
{
    if (value >= 1000) {
        at = put_pair(at, value / 100);
        value %= 100;
    } else if (value >= 100) {
        *at++ = (char)('0' + value / 100);
        value %= 100;
    } else if (value < 10) {
        *at = (char)('0' + value);
        return at + 1;
    }
    return put_pair(at, value);
}

char *uva__text_number_put_uint(char *at, uint64_t value)
{
    uint32_t last;

    if (value < 10000)
        return put_small(at, (uint32_t)value);
    last = (uint32_t)(value % 10000);
    at = uva__text_number_put_uint(at, value / 10000);
    return put_pair(put_pair(at, last / 100), last % 100);
}

char *uva__text_number_put_int(char *at, int64_t value)
{
    if (value >= 0)
        return uva__text_number_put_uint(at, (uint64_t)value);
    *at++ = '-';
    return uva__text_number_put_uint(at, 0 - (uint64_t)value);
}

char *uva__text_number_put_digits(char *at, uint64_t value, int digits)
{
    int i;

    assert(digits >= 0 && digits <= 20);
    for (i = digits; i > 0; i--) {
        at[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return at + digits;
}

/* ---- floating point ----------------------------------------------------- */

/* The type of the value before it became a double, and when it is read back. */
enum real { REAL_HALF, REAL_FLOAT, REAL_DOUBLE };

static const struct {
    double normal;  /* the least one with its full precision */
    double most;    /* has one digit more than `digits` */
    int digits;     /* each decimal of so many, or fewer, is another value */
    int all_digits; /* are enough for every value */
} reals[] = {
    [REAL_HALF] = {1.0 / 16384, 1e3, 3, 5},
    [REAL_FLOAT] = {FLT_MIN, 1e6, FLT_DIG, 9},
    [REAL_DOUBLE] = {DBL_MIN, 1e15, DBL_DIG, 17},
};

/* Rounds a positive number, at most 100,000, to a number with 11 bits, or fewer
 * below the normal ones: to the nearer one, or to the even of two. */
static double real_to_half(double value)
{
    double scaled, rest;
    uint64_t whole;
    int exponent;

    (void)frexp(value, &exponent);
    exponent = exponent < -13 ? -24 : exponent - 11;
    scaled = ldexp(value, -exponent);
    whole = (uint64_t)scaled;
    rest = scaled - (double)whole;
    if (rest > 0.5 || (rest == 0.5 && whole % 2 != 0))
        whole++;
    value = ldexp((double)whole, exponent);
    return value < 65536 ? value : (double)INFINITY;
}

/* Whether a decimal, read as a double, is `value`. */
static bool real_is(enum real real, double decimal, double value)
{
    if (real == REAL_DOUBLE)
        return decimal == value;
    return real == REAL_FLOAT ? (float)decimal == (float)value
                              : real_to_half(decimal) == value;
}

/* A positive number as digits and the position of its decimal point: 0.05 is
 * "5" and -1, 1.25 is "125" and 1. */
struct decimal {
    char digits[24]; /* no trailing zeroes */
    int size;        /* number of digits; at least 1 */
    int point;       /* digits before the point; may be negative */
};

static void decimal_trim(struct decimal *d)
{
    while (d->size > 1 && d->digits[d->size - 1] == '0')
        d->size--;
}

/* Looks for a decimal with so few digits that no other decimal of as many reads
 * back as `value`. Such a decimal is the shortest, and the quotient of two
 * exact doubles is rounded exactly as reading its text would be. */
static bool decimal_guess(struct decimal *d, double value, enum real real)
{
    static const double POWERS[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    const double most = reals[real].most;
    int i;

    for (i = 0; i < (int)(sizeof(POWERS) / sizeof(*POWERS)); i++) {
        const double scaled = value * POWERS[i] + 0.5;
        uint64_t whole;
        double back;

        if (!(scaled < most))
            return false;
        whole = (uint64_t)scaled;
        back = (double)whole / POWERS[i];
        if (!real_is(real, back, value))
            continue;
        d->size =
            (int)(uva__text_number_put_uint(d->digits, whole) - d->digits);
        d->point = d->size - i;
        decimal_trim(d);
        return true;
    }
    return false;
}

/* Gets `digits` digits from printf: "1.23e+05". In place of the point, it
 * writes the locale's, which may be several bytes. */
static void decimal_print(struct decimal *d, int digits, double value)
{
    char text[REAL_ROOM];
    const char *at = text;
    int size;

    (void)snprintf(text, sizeof(text), "%.*e", digits - 1, value);
    for (size = 0; *at != 'e'; at++)
        if ((unsigned)(*at - '0') < 10)
            d->digits[size++] = *at;
    assert(size == digits);
    d->size = size;
    d->point = atoi(at + 1) + 1;
}

/* Returns whether it reads back as `value`; a float is read as a float. It is
 * read as "123e3", without a point, which would depend on the locale. */
static bool decimal_reads_back(const struct decimal *d, double value,
                               enum real real)
{
    char text[REAL_ROOM];
    char *at = text + d->size;

    memcpy(text, d->digits, (size_t)d->size);
    *at++ = 'e';
    *uva__text_number_put_int(at, d->point - d->size) = '\0';
    return real == REAL_FLOAT ? strtof(text, NULL) == (float)value
                              : real_is(real, strtod(text, NULL), value);
}

/* Adds one to the last digit. Returns false if all digits are nines. */
static bool decimal_step_up(struct decimal *d)
{
    int at = d->size - 1;

    for (; at > 0 && d->digits[at] == '9'; at--)
        d->digits[at] = '0';
    if (d->digits[at] == '9')
        return false;
    d->digits[at]++;
    return true;
}

/* Shortens `full` to fewer digits. Returns false if rounding is undecidable,
 * because the digits cut off may themselves come from rounding to a half. */
static bool decimal_round(struct decimal *d, const struct decimal *full,
                          int digits)
{
    const char *cut = full->digits + digits;
    const char *end = full->digits + full->size;

    memcpy(d->digits, full->digits, (size_t)digits);
    d->size = digits;
    d->point = full->point;
    if (cut >= end || *cut < '5')
        return true;
    if (*cut++ == '5') {
        while (cut < end && *cut == '0')
            cut++;
        if (cut == end)
            return false;
    }
    return decimal_step_up(d);
}

/* Makes `value` of `digits` digits; returns whether it reads back. A power of
 * two has a nearer neighbour below than above, so the next higher decimal may
 * read back where the nearest does not. */
static bool decimal_try(struct decimal *d, const struct decimal *full,
                        int digits, double value, enum real real)
{
    int exponent;

    if (!decimal_round(d, full, digits))
        decimal_print(d, digits, value);
    if (decimal_reads_back(d, value, real))
        return true;
    if (frexp(value, &exponent) != 0.5)
        return false;
    (void)decimal_step_up(d); /* of nines alone, it does not read back */
    return decimal_reads_back(d, value, real);
}

/* Gets all digits from printf, and keeps the fewest that read back. */
static void decimal_search(struct decimal *d, double value, enum real real)
{
    int digits = value < reals[real].normal ? 1 : reals[real].digits;
    struct decimal full;

    decimal_print(&full, reals[real].all_digits, value);
    while (!decimal_try(d, &full, digits, value, real))
        digits++;
    assert(digits <= full.size); /* that many digits always suffice */
    decimal_trim(d);
}

static char *put_bytes(char *at, const char *bytes, int size)
{
    memcpy(at, bytes, (size_t)size);
    return at + size;
}

static char *put_zeroes(char *at, int count)
{
    memset(at, '0', (size_t)count);
    return at + count;
}

static char *decimal_put_scientific(char *at, const struct decimal *d)
{
    const int exponent = d->point - 1;

    *at++ = d->digits[0];
    if (d->size > 1) {
        *at++ = '.';
        at = put_bytes(at, d->digits + 1, d->size - 1);
    }
    *at++ = 'e';
    *at++ = exponent < 0 ? '-' : '+';
    if (abs(exponent) < 10)
        *at++ = '0';
    return uva__text_number_put_uint(at, (uint64_t)abs(exponent));
}

/* Writes a decimal, with an exponent if it has more than 16 digits. */
static char *decimal_put(char *at, const struct decimal *d)
{
    if (d->point <= -4 || d->point > 16)
        return decimal_put_scientific(at, d);
    if (d->point <= 0) {
        at = put_bytes(at, "0.", 2);
        at = put_zeroes(at, -d->point);
        return put_bytes(at, d->digits, d->size);
    }
    if (d->point >= d->size) {
        at = put_bytes(at, d->digits, d->size);
        at = put_zeroes(at, d->point - d->size);
        return put_bytes(at, ".0", 2);
    }
    at = put_bytes(at, d->digits, d->point);
    *at++ = '.';
    return put_bytes(at, d->digits + d->point, d->size - d->point);
}

static char *number_put_real(char *at, double value, enum real real)
{
    struct decimal d;

    if (isnan(value))
        return put_bytes(at, "nan", 3);
    if (signbit(value)) {
        *at++ = '-';
        value = -value;
    }
    if (isinf(value))
        return put_bytes(at, "inf", 3);
    if (!decimal_guess(&d, value, real))
        decimal_search(&d, value, real);
    return decimal_put(at, &d);
}

char *uva__text_number_put_double(char *at, double value)
{
    return number_put_real(at, value, REAL_DOUBLE);
}

char *uva__text_number_put_float(char *at, float value)
{
    return number_put_real(at, (double)value, REAL_FLOAT);
}

char *uva__text_number_put_half(char *at, uint16_t bits)
{
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    double value;

    if (exponent == 31)
        value = fraction == 0 ? (double)INFINITY : (double)NAN;
    else if (exponent == 0)
        value = ldexp(fraction, -24);
    else
        value = ldexp(fraction + 1024, exponent - 25);
    return number_put_real(at, bits >> 15 ? -value : value, REAL_HALF);
}

/* ---- decimals ----------------------------------------------------------- */

/* Loads the magnitude, lowest limb first; returns whether it was negative. The
 * value as a whole has the order of bytes of this machine. */
static bool limbs_load(uint32_t *limbs, const void *value, size_t width)
{
    const size_t count = width / sizeof(*limbs);
    uint64_t carry = 1;
    bool negative;
    size_t i;

    assert(count > 0 && width % sizeof(*limbs) == 0);
    for (i = 0; i < count; i++)
        memcpy(&limbs[uva__is_big_endian() ? count - 1 - i : i],
               (const char *)value + i * sizeof(*limbs), sizeof(*limbs));
    negative = limbs[count - 1] >> 31 != 0;
    for (i = 0; negative && i < count; i++) {
        carry += (uint32_t)~limbs[i];
        limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return negative;
}

/* Divides by 10^9 in place; returns the remainder. */
static uint32_t limbs_divide(uint32_t *limbs, size_t count)
{
    uint64_t rest = 0;
    size_t i;

    for (i = count; i > 0; i--) {
        rest = rest << 32 | limbs[i - 1];
        limbs[i - 1] = (uint32_t)(rest / 1000000000);
        rest %= 1000000000;
    }
    return (uint32_t)rest;
}

/* Writes all digits into `digits`, right-aligned; returns how many are
 * significant. */
static int limbs_put_digits(uint32_t *limbs, size_t count, char *digits)
{
    int first = 0;
    int end;

    for (end = DECIMAL_DIGITS; end > 0; end -= 9)
        (void)uva__text_number_put_digits(digits + end - 9,
                                          limbs_divide(limbs, count), 9);
    while (first < DECIMAL_DIGITS && digits[first] == '0')
        first++;
    return DECIMAL_DIGITS - first;
}

char *uva__text_number_put_decimal(char *at, const void *value, size_t width,
                                   int scale)
{
    uint32_t limbs[DECIMAL_LIMBS];
    char digits[DECIMAL_DIGITS];
    const char *first;
    int size;

    assert(width <= sizeof(limbs) && abs(scale) <= UVA__TEXT_NUMBER_SCALE_MAX);
    if (limbs_load(limbs, value, width))
        *at++ = '-';
    size = limbs_put_digits(limbs, width / sizeof(*limbs), digits);
    first = digits + DECIMAL_DIGITS - size;
    if (size > 0 && size > scale)
        at = put_bytes(at, first, size - (scale > 0 ? scale : 0));
    else
        *at++ = '0';
    if (scale <= 0)
        return size == 0 ? at : put_zeroes(at, -scale);
    *at++ = '.';
    if (scale > size)
        return put_bytes(put_zeroes(at, scale - size), first, size);
    return put_bytes(at, first + size - scale, scale);
}
