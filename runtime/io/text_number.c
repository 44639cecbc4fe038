/* SPDX-License-Identifier: Apache-2.0 */
/* Writes integers two digits at a time, and others as up to 20 digits, of which
 * whole blocks are moved at once: the longest text is much shorter than the
 * room that callers have. text_real.h finds the digits of floating point. */
#include "io/text_number.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "io/byte_order.h"
#include "io/text_digits.h"
#include "io/text_real.h"

#define DECIMAL_LIMBS  8  /* 32-bit limbs for 256 bits */
#define DECIMAL_DIGITS 81 /* nine times nine, enough for 256 bits */

const char uva__text_pairs[] =
    "00010203040506070809101112131415161718192021222324"
    "25262728293031323334353637383940414243444546474849"
    "50515253545556575859606162636465666768697071727374"
    "75767778798081828384858687888990919293949596979899";

/* ---- integers ----------------------------------------------------------- */

char *uva__text_number_put_uint(char *at, uint64_t value)
{
    if (value < 10000)
        return uva__text_put_small(at, (uint32_t)value);
    if (value < 100000000) {
        at = uva__text_put_small(at, (uint32_t)value / 10000);
        return uva__text_put_four(at, (uint32_t)value % 10000);
    }
    at = uva__text_number_put_uint(at, value / 100000000);
    return uva__text_put_eight(at, (uint32_t)(value % 100000000));
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
    int i = digits;

    assert(digits >= 0 && digits <= 20);
    for (; i >= 4; value /= 10000)
        (void)uva__text_put_four(at + (i -= 4), (uint32_t)(value % 10000));
    for (; i > 0; value /= 10)
        at[--i] = (char)('0' + value % 10);
    return at + digits;
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

/* ---- floating point ----------------------------------------------------- */

#define REAL_DIGITS 17 /* enough for every double */
#define REAL_BLOCK  24 /* bytes that are moved at once */

/* A positive number as digits and the position of its decimal point: 0.05 is
 * "5" and -1, 1.25 is "125" and 1. */
struct decimal {
    char digits[2 * REAL_BLOCK]; /* the first 17; then any bytes */
    int size;                    /* without trailing zeroes; at least 1 */
    int point;                   /* digits before the point; may be negative */
};

static const uint64_t TENS[] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
    1000000000000000000,
    10000000000000000000u,
};

/* Returns the number of digits, from the number of bits: 1233 / 4096 is
 * log10(2). */
static int count_digits(uint64_t value)
{
    const int guess = (64 - __builtin_clzll(value | 1)) * 1233 >> 12;

    return guess + (value >= TENS[guess]);
}

/* Digits that are zero are empty bytes at the end of a word. */
static void decimal_set(struct decimal *d, struct uva__text_real real)
{
    const int size = count_digits(real.digits);
    const uint64_t all = real.digits * TENS[REAL_DIGITS - size];
    const uint64_t rest = all % TENS[16];
    const uint64_t middle = uva__text_eight((uint32_t)(rest / TENS[8]));
    const uint64_t last = uva__text_eight((uint32_t)(rest % TENS[8]));

    assert(real.digits > 0 && size <= REAL_DIGITS);
    d->digits[0] = (char)('0' + all / TENS[16]);
    (void)uva__text_put_word(d->digits + 1, middle);
    (void)uva__text_put_word(d->digits + 9, last);
    memset(d->digits + REAL_DIGITS, '0', REAL_BLOCK);
    d->size = last != 0     ? 17 - __builtin_clzll(last) / 8
              : middle != 0 ? 9 - __builtin_clzll(middle) / 8
                            : 1;
    d->point = size + real.exponent;
}

static char *decimal_put_scientific(char *at, const struct decimal *d)
{
    const int exponent = d->point - 1;

    at[0] = d->digits[0];
    at[1] = '.';
    memcpy(at + 2, d->digits + 1, REAL_BLOCK);
    at += d->size > 1 ? d->size + 1 : 1;
    *at++ = 'e';
    *at++ = exponent < 0 ? '-' : '+';
    if (abs(exponent) < 10)
        *at++ = '0';
    return uva__text_put_small(at, (uint32_t)abs(exponent));
}

/* Writes a decimal, with an exponent if it has more than 16 digits. */
static char *decimal_put(char *at, const struct decimal *d)
{
    if (d->point <= -4 || d->point > 16)
        return decimal_put_scientific(at, d);
    if (d->point <= 0) {
        memcpy(at, "0.000", 5);
        at += 2 - d->point;
        memcpy(at, d->digits, REAL_BLOCK);
        return at + d->size;
    }
    memcpy(at, d->digits, REAL_BLOCK);
    at += d->point;
    if (d->point >= d->size)
        return put_bytes(at, ".0", 2);
    *at++ = '.';
    memcpy(at, d->digits + d->point, REAL_BLOCK);
    return at + d->size - d->point;
}

static char *real_put(char *at, struct uva__text_real real)
{
    struct decimal d;

    decimal_set(&d, real);
    return decimal_put(at, &d);
}

/* Whether a number, without its sign, is zero, infinity or none. */
static inline bool is_odd(uint64_t bits, uint64_t infinity)
{
    return bits - 1 >= infinity - 1;
}

static char *put_odd(char *at, bool negative, uint64_t bits, uint64_t infinity)
{
    if (bits > infinity)
        return put_bytes(at, "nan", 3);
    if (negative)
        *at++ = '-';
    return put_bytes(at, bits == 0 ? "0.0" : "inf", 3);
}

/* Appends a sign, which the next byte overwrites without. */
static inline char *put_sign(char *at, bool negative)
{
    *at = '-';
    return at + negative;
}

char *uva__text_number_put_double(char *at, double value)
{
    const uint64_t infinity = UINT64_C(2047) << 52;
    uint64_t bits, rest;

    memcpy(&bits, &value, sizeof(bits));
    rest = bits << 1 >> 1;
    if (is_odd(rest, infinity))
        return put_odd(at, rest != bits, rest, infinity);
    return real_put(put_sign(at, rest != bits), uva__text_real_of_double(rest));
}

char *uva__text_number_put_float(char *at, float value)
{
    const uint32_t infinity = 255u << 23;
    uint32_t bits, rest;

    memcpy(&bits, &value, sizeof(bits));
    rest = bits << 1 >> 1;
    if (is_odd(rest, infinity))
        return put_odd(at, rest != bits, rest, infinity);
    return real_put(put_sign(at, rest != bits), uva__text_real_of_float(rest));
}

char *uva__text_number_put_half(char *at, uint16_t bits)
{
    const uint16_t infinity = 31 << 10;
    const uint16_t rest = bits & 0x7fff;

    if (is_odd(rest, infinity))
        return put_odd(at, rest != bits, rest, infinity);
    return real_put(put_sign(at, rest != bits), uva__text_real_of_half(rest));
}

/* ---- decimals ----------------------------------------------------------- */

#define SMALL_DIGITS 24 /* three words; a number of 64 bits has 20 */

/* Loads a value that fits into 64 bits. Returns false if it does not. The value
 * as a whole has the order of bytes of this machine. */
static bool small_load(int64_t *out, const void *value, size_t width)
{
    const size_t count = width / sizeof(*out);
    const size_t first = uva__is_big_endian() ? count - 1 : 0;
    int64_t word;

    if (width == sizeof(int32_t)) {
        int32_t half;

        memcpy(&half, value, sizeof(half));
        *out = half;
        return true;
    }
    memcpy(out, (const char *)value + first * sizeof(word), sizeof(word));
    for (size_t i = 1; i < count; i++) {
        const size_t place = first == 0 ? i : first - i;

        memcpy(&word, (const char *)value + place * sizeof(word), sizeof(word));
        if (word != (*out < 0 ? -1 : 0))
            return false;
    }
    return true;
}

/* Writes all digits, with zeroes before them, then moves those in use. */
static char *small_put(char *at, int64_t value, int scale)
{
    const uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    const int digits = count_digits(rest);
    const int size = digits > scale ? digits : scale + 1;
    char all[2 * SMALL_DIGITS];
    char *last = all;

    assert(scale >= 0 && scale < SMALL_DIGITS);
    last = uva__text_put_eight(last, (uint32_t)(rest / TENS[16]));
    last = uva__text_put_eight(last, (uint32_t)(rest / TENS[8] % TENS[8]));
    last = uva__text_put_eight(last, (uint32_t)(rest % TENS[8]));
    memset(last, '0', SMALL_DIGITS);
    if (value < 0)
        *at++ = '-';
    memcpy(at, last - size, SMALL_DIGITS);
    if (scale == 0)
        return at + size;
    at += size - scale;
    *at++ = '.';
    memcpy(at, last - scale, SMALL_DIGITS);
    return at + scale;
}

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
    int first = DECIMAL_DIGITS;

    for (;; first -= 9) {
        while (count > 0 && limbs[count - 1] == 0)
            count--;
        if (count == 0)
            break;
        (void)uva__text_number_put_digits(digits + first - 9,
                                          limbs_divide(limbs, count), 9);
    }
    while (first < DECIMAL_DIGITS && digits[first] == '0')
        first++;
    return DECIMAL_DIGITS - first;
}

static char *limbs_put(char *at, const void *value, size_t width, int scale)
{
    uint32_t limbs[DECIMAL_LIMBS];
    char digits[DECIMAL_DIGITS];
    const char *first;
    int size;

    assert(width <= sizeof(limbs));
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

char *uva__text_number_put_decimal(char *at, const void *value, size_t width,
                                   int scale)
{
    int64_t small;

    assert(abs(scale) <= UVA__TEXT_NUMBER_SCALE_MAX);
    if (scale >= 0 && scale < SMALL_DIGITS && small_load(&small, value, width))
        return small_put(at, small, scale);
    return limbs_put(at, value, width, scale);
}
