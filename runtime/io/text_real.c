/* SPDX-License-Identifier: Apache-2.0 */
/* Schubfach, by Raffaello Giulietti: "The Schubfach way to render doubles",
 * 2020. All numbers between the halfway points to its two neighbours are read
 * back as a value. Decimals that are multiples of a power of ten, the greatest
 * one that is smaller than the space between these points, have at most one
 * multiple of the next power there, and at least one of their own.
 *
 * The points are scaled by that power, times four, and cut off; a last bit that
 * is odd stands for a fraction, so that comparisons are exact. */
#include "io/text_real.h"

#include <assert.h>
#include <stdbool.h>

#include "io/text_powers.h"

/* A floating-point number: `fraction` times 2^`exponent`. */
struct binary {
    uint64_t fraction; /* at most 53 bits; not 0 */
    int exponent;      /* -1074 to 971 */
    bool is_lowest;    /* the number below it is nearer than the one above */
};

/* The layout of a type. */
struct layout {
    int bits; /* of the fraction, without the hidden one */
    int bias; /* what is subtracted from a stored exponent */
};

static const struct layout DOUBLE = {52, 1075};
static const struct layout FLOAT = {23, 150};
static const struct layout HALF = {10, 25};

/* Takes the bits of a number apart. Its sign is 0. */
static inline struct binary binary_of(uint64_t bits, struct layout layout)
{
    const uint64_t hidden = UINT64_C(1) << layout.bits;
    const uint64_t fraction = bits & (hidden - 1);
    const int exponent = (int)(bits >> layout.bits);

    if (exponent == 0) /* below the normal numbers */
        return (struct binary){fraction, 1 - layout.bias, false};
    return (struct binary){fraction | hidden, exponent - layout.bias,
                           fraction == 0 && exponent > 1};
}

/* ---- logarithms, rounded down ------------------------------------------- */

/* log10(2^exponent), or log10(3/4 of it): plus 512, so that it is positive. */
static inline int log10_of_power_of_two(int exponent, bool three_quarters)
{
    const int64_t scaled = (int64_t)exponent * 1262611 + ((int64_t)512 << 22);

    return (int)((scaled - (three_quarters ? 524031 : 0)) >> 22) - 512;
}

/* log2(10^exponent): plus 2048 */
static inline int log2_of_power_of_ten(int exponent)
{
    return (int)(((int64_t)exponent * 1741647 + ((int64_t)2048 << 19)) >> 19) -
           2048;
}

/* ---- the search --------------------------------------------------------- */

/* The product without its lowest 128 bits; a bit that is lost makes it odd. */
static inline uint64_t multiply_to_odd(struct uva__wide power, uint64_t value)
{
    const struct uva__wide low = uva__wide_multiply(power.low, value);
    const struct uva__wide high = uva__wide_multiply(power.high, value);
    const uint64_t middle = high.low + low.high;

    return (high.high + (middle < low.high)) | (middle > 1);
}

/* The multiple of 10 next to `whole`, 4 * `whole` being a scaled number, that
 * is between the points; 0 if there is none, or if it had as many digits. */
static inline uint64_t round_to_ten(uint64_t whole, uint64_t lower,
                                    uint64_t upper)
{
    const uint64_t tens = whole / 10;
    const bool below = lower <= 40 * tens;
    const bool above = 40 * tens + 40 <= upper;

    return whole >= 10 && below != above ? 10 * (tens + above) : 0;
}

/* `value` and the points are scaled by 4. */
static inline uint64_t round_to_one(uint64_t value, uint64_t lower,
                                    uint64_t upper)
{
    const uint64_t whole = value / 4, middle = 4 * whole + 2;
    const bool below = lower <= 4 * whole;
    const bool above = 4 * whole + 4 <= upper;

    if (below != above)
        return whole + above;
    return whole + (value > middle || (value == middle && (whole & 1) != 0));
}

/* A number whose fraction is odd is not read from a point itself. */
static inline struct uva__text_real shortest(struct binary b)
{
    const int ten = log10_of_power_of_two(b.exponent, b.is_lowest);
    const int shift = b.exponent + log2_of_power_of_ten(-ten) + 1;
    const struct uva__wide power =
        uva__text_powers[-ten - UVA__TEXT_POWERS_LEAST];
    const uint64_t odd = b.fraction & 1;
    const uint64_t value = multiply_to_odd(power, 4 * b.fraction << shift);
    const uint64_t lower =
        multiply_to_odd(power, (4 * b.fraction - 2 + b.is_lowest) << shift) +
        odd;
    const uint64_t upper =
        multiply_to_odd(power, (4 * b.fraction + 2) << shift) - odd;
    const uint64_t tens = round_to_ten(value / 4, lower, upper);

    assert(shift >= 1 && shift <= 4);
    return (struct uva__text_real){
        tens != 0 ? tens : round_to_one(value, lower, upper), ten};
}

/* ---- types -------------------------------------------------------------- */

/* Whether `value`, of so many bits, is a whole number: then these digits are
 * the shortest, as no number that is not whole is nearer. */
static inline bool binary_is_whole(struct binary b)
{
    return b.exponent <= 0 && b.exponent >= -52 &&
           b.fraction << (64 + b.exponent - 1) << 1 == 0;
}

static inline struct uva__text_real real_of(uint64_t bits, struct layout layout)
{
    const struct binary b = binary_of(bits, layout);

    assert(b.fraction != 0);
    if (binary_is_whole(b))
        return (struct uva__text_real){b.fraction >> -b.exponent, 0};
    return shortest(b);
}

struct uva__text_real uva__text_real_of_double(uint64_t bits)
{
    return real_of(bits, DOUBLE);
}

struct uva__text_real uva__text_real_of_float(uint32_t bits)
{
    return real_of(bits, FLOAT);
}

struct uva__text_real uva__text_real_of_half(uint16_t bits)
{
    return real_of(bits, HALF);
}
