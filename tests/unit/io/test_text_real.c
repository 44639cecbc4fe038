/* SPDX-License-Identifier: Apache-2.0 */
/* Floating point as text: each text reads back, no shorter one does, and none
 * of as many digits is nearer. UVA_FLOATS_STEP=1 tries all floats, UVA_DOUBLES
 * is the number of random doubles: see .ci/nightly. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/text_number.h"
#include "io/text_real.h"
#include "io/wide.h"
#include "support/check_suite.h"

/* ---- what a text is read as --------------------------------------------- */

enum type { HALF, FLOAT, DOUBLE };

/* Rounds a positive number, at most 100,000, to a number with 11 bits, or fewer
 * below the normal ones: to the nearer one, or to the even of two. */
static double to_half(double value)
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

static bool text_is(const char *text, double value, enum type type)
{
    if (type == DOUBLE)
        return strtod(text, NULL) == value;
    return type == FLOAT ? strtof(text, NULL) == (float)value
                         : to_half(strtod(text, NULL)) == value;
}

/* Whether `digits` times 10^`exponent` is read as `value`. */
static bool digits_are(uint64_t digits, int exponent, double value,
                       enum type type)
{
    char text[2 * UVA__TEXT_NUMBER_ROOM];
    char *at = uva__text_number_put_uint(text, digits);

    *at++ = 'e';
    *uva__text_number_put_int(at, exponent) = '\0';
    return text_is(text, value, type);
}

/* ---- the expectations --------------------------------------------------- */

/* A decimal with a digit less is not between the decimals that enclose this
 * one. */
static void expect_shortest(struct uva__text_real real, const char *text,
                            double value, enum type type)
{
    while (real.digits % 10 == 0) {
        real.digits /= 10;
        real.exponent++;
    }
    ck_assert_msg(text_is(text, value, type), "%s is not %a", text, value);
    ck_assert_msg(digits_are(real.digits, real.exponent, value, type),
                  "%s: %a has other digits", text, value);
    if (real.digits < 10)
        return;
    real.digits /= 10;
    real.exponent++;
    ck_assert_msg(!digits_are(real.digits, real.exponent, value, type) &&
                      !digits_are(real.digits + 1, real.exponent, value, type),
                  "%s: %a has a shorter text", text, value);
}

/* printf gives the nearest decimal of as many digits. That of a power of two
 * may be below all numbers that are read as this power. */
static void expect_nearest(struct uva__text_real real, double value)
{
    char text[64], all[64];
    int size = (int)(uva__text_number_put_uint(all, real.digits) - all);
    int exponent;

    if (frexp(value, &exponent) == 0.5)
        return;
    while (size > 1 && all[size - 1] == '0')
        size--;
    (void)snprintf(text, sizeof(text), "%.*e", size - 1, value);
    ck_assert_msg(
        text[0] == all[0] &&
            (size == 1 || memcmp(text + 2, all + 1, (size_t)size - 1) == 0),
        "%s: %s is nearer to %a", all, text, value);
}

static void expect_float(uint32_t bits)
{
    char text[UVA__TEXT_NUMBER_ROOM];
    float value;

    memcpy(&value, &bits, sizeof(value));
    if (value > 0 && value <= FLT_MAX) {
        *uva__text_number_put_float(text, value) = '\0';
        expect_shortest(uva__text_real_of_float(bits), text, (double)value,
                        FLOAT);
    }
}

static void expect_double(uint64_t bits)
{
    char text[UVA__TEXT_NUMBER_ROOM];
    double value;

    memcpy(&value, &bits, sizeof(value));
    if (value > 0 && value <= DBL_MAX) {
        *uva__text_number_put_double(text, value) = '\0';
        expect_shortest(uva__text_real_of_double(bits), text, value, DOUBLE);
    }
}

/* ---- cases -------------------------------------------------------------- */

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

START_TEST(floats_have_the_shortest_text)
{
    const uint64_t step = number_of("UVA_FLOATS_STEP", 30011);

    for (uint64_t bits = 1; bits < 0x7f800000; bits += step)
        expect_float((uint32_t)bits);
}
END_TEST

START_TEST(doubles_have_the_shortest_text)
{
    const uint64_t count = number_of("UVA_DOUBLES", 50000);
    uint64_t state = 88172645463325252;

    for (uint64_t i = 0; i < count; i++)
        expect_double(random_next(&state) >> 1);
}
END_TEST

START_TEST(halves_have_the_shortest_text)
{
    char text[UVA__TEXT_NUMBER_ROOM];

    for (uint16_t bits = 1; bits < 31 << 10; bits++) {
        const int exponent = bits >> 10, fraction = bits & 1023;
        const double value = exponent == 0
                                 ? ldexp(fraction, -24)
                                 : ldexp(fraction + 1024, exponent - 25);

        *uva__text_number_put_half(text, bits) = '\0';
        expect_shortest(uva__text_real_of_half(bits), text, value, HALF);
        expect_nearest(uva__text_real_of_half(bits), value);
    }
}
END_TEST

/* The space between numbers changes there. */
START_TEST(neighbours_of_powers_of_two_have_the_shortest_text)
{
    for (uint64_t exponent = 0; exponent < 2047; exponent++)
        for (uint64_t i = 0; i < 7; i++)
            expect_double((exponent << 52) + i - 3);
    for (uint32_t exponent = 0; exponent < 255; exponent++)
        for (uint32_t i = 0; i < 31; i++)
            expect_float((exponent << 23) + i - 15);
}
END_TEST

/* Prices, and whole numbers. */
START_TEST(short_decimals_have_the_shortest_text)
{
    uint64_t state = 1;

    for (int i = 0; i < 20000; i++) {
        const uint64_t digits = random_next(&state) >> (i % 60 + 4);
        const double value =
            (double)digits / pow(10, (double)(random_next(&state) % 9));
        const float narrow = (float)(digits % 1000000) / 100;
        uint64_t bits;
        uint32_t narrow_bits;

        memcpy(&bits, &value, sizeof(bits));
        memcpy(&narrow_bits, &narrow, sizeof(narrow_bits));
        expect_double(bits);
        expect_float(narrow_bits);
    }
}
END_TEST

START_TEST(the_nearest_of_the_shortest_is_taken)
{
    uint64_t state = 3;

    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = random_next(&state) >> 1;
        const uint32_t narrow = (uint32_t)(bits >> 32);
        double value;
        float small;

        memcpy(&value, &bits, sizeof(value));
        memcpy(&small, &narrow, sizeof(small));
        if (value > 0 && value <= DBL_MAX)
            expect_nearest(uva__text_real_of_double(bits), value);
        if (small > 0 && small <= FLT_MAX)
            expect_nearest(uva__text_real_of_float(narrow), (double)small);
    }
}
END_TEST

START_TEST(a_product_by_hand_is_that_of_the_machine)
{
    uint64_t state = 5;

    for (int i = 0; i < 10000; i++) {
        const uint64_t a = random_next(&state) >> i % 64;
        const uint64_t b = i % 3 == 0 ? UINT64_MAX : random_next(&state);
        const struct uva__wide product = uva__wide_multiply(a, b);
        const struct uva__wide by_hand = uva__wide_multiply_by_hand(a, b);

        ck_assert_uint_eq(product.high, by_hand.high);
        ck_assert_uint_eq(product.low, by_hand.low);
        ck_assert_uint_eq(product.low, a * b);
    }
}
END_TEST

/* Each form, and the numbers next to where the form changes. */
START_TEST(forms_depend_on_the_exponent)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.0001, "0.0001"},
        {0.00012345, "0.00012345"},
        {0.000099, "9.9e-05"},
        {0.05, "0.05"},
        {0.1, "0.1"},
        {1, "1.0"},
        {1.5, "1.5"},
        {10, "10.0"},
        {100.25, "100.25"},
        {1234567890123456, "1234567890123456.0"},
        {9007199254740992, "9007199254740992.0"},
        {9999999999999998, "9999999999999998.0"},
        {10000000000000000, "1e+16"},
        {12345678901234568, "1.2345678901234568e+16"},
        {1e22, "1e+22"},
        {1e23, "1e+23"},
        {1e100, "1e+100"},
        {1.5e-100, "1.5e-100"},
        {9.5367431640625e-07, "9.5367431640625e-07"},
        {1e-323, "1e-323"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {DBL_MAX, "1.7976931348623157e+308"},
    };
    char text[UVA__TEXT_NUMBER_ROOM];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        *uva__text_number_put_double(text, cases[i].value) = '\0';
        ck_assert_str_eq(text, cases[i].text);
        *uva__text_number_put_double(text, -cases[i].value) = '\0';
        ck_assert_int_eq(text[0], '-');
        ck_assert_str_eq(text + 1, cases[i].text);
    }
}
END_TEST

START_TEST(numbers_without_digits_have_names)
{
    const uint16_t halves[] = {0x0000, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0xfe00};
    const char *const texts[] = {"0.0", "-0.0", "inf", "-inf", "nan", "nan"};
    const double values[] = {
        0,           -0.0,        (double)INFINITY, -(double)INFINITY,
        (double)NAN, -(double)NAN};
    char text[UVA__TEXT_NUMBER_ROOM];

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        *uva__text_number_put_half(text, halves[i]) = '\0';
        ck_assert_str_eq(text, texts[i]);
        *uva__text_number_put_float(text, (float)values[i]) = '\0';
        ck_assert_str_eq(text, texts[i]);
        *uva__text_number_put_double(text, values[i]) = '\0';
        ck_assert_str_eq(text, texts[i]);
    }
}
END_TEST

int main(void)
{
    return suite_main(
        "text_real", NULL, NULL,
        suite_tests("shortest", floats_have_the_shortest_text,
                    doubles_have_the_shortest_text,
                    halves_have_the_shortest_text,
                    neighbours_of_powers_of_two_have_the_shortest_text,
                    short_decimals_have_the_shortest_text,
                    the_nearest_of_the_shortest_is_taken,
                    a_product_by_hand_is_that_of_the_machine, NULL),
        suite_tests("text", forms_depend_on_the_exponent,
                    numbers_without_digits_have_names, NULL),
        NULL);
}
