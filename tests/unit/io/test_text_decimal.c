/* SPDX-License-Identifier: Apache-2.0 */
/* Decimals as text: digits are made into a number of each width, by
 * multiplication, and are written again. */
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/text_number.h"
#include "support/check_suite.h"
#include "support/native.h"

enum { WORDS = 8, DIGITS_MAX = 76 };

/* A number of 256 bits, lowest word first. */
struct number {
    uint32_t words[WORDS];
};

static struct number number_of(const char *digits)
{
    struct number n = {{0}};

    for (; *digits != '\0'; digits++) {
        uint64_t carry = (uint64_t)(*digits - '0');

        for (int i = 0; i < WORDS; i++) {
            carry += (uint64_t)n.words[i] * 10;
            n.words[i] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    return n;
}

static struct number negated(struct number n)
{
    uint64_t carry = 1;

    for (int i = 0; i < WORDS; i++) {
        carry += (uint32_t)~n.words[i];
        n.words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return n;
}

/* Whether the highest bits are copies of the sign, so that `width` bytes are
 * enough. */
static bool fits(const struct number *n, size_t width)
{
    const size_t count = width / 4;
    const uint32_t sign = n->words[count - 1] >> 31 != 0 ? UINT32_MAX : 0;

    for (size_t i = count; i < WORDS; i++)
        if (n->words[i] != sign)
            return false;
    return n->words[WORDS - 1] >> 31 == sign >> 31;
}

/* The words as they lie in memory. */
static void number_store(const struct number *n, size_t width, char *out)
{
    const size_t count = width / 4;

    for (size_t i = 0; i < count; i++)
        memcpy(out + 4 * i, &n->words[NATIVE_IS_BIG ? count - 1 - i : i], 4);
}

/* Writes `digits`, which do not begin with a zero unless they are one, with a
 * point before the last `scale` ones. */
static void expected_write(char *at, const char *digits, int scale)
{
    const int size = (int)strlen(digits);

    if (scale <= 0) {
        at += strlen(strcpy(at, digits));
        for (; scale < 0 && digits[0] != '0'; scale++)
            *at++ = '0';
    } else if (scale < size) {
        memcpy(at, digits, (size_t)(size - scale));
        at += size - scale;
        *at++ = '.';
        at += strlen(strcpy(at, digits + size - scale));
    } else {
        at += strlen(strcpy(at, "0."));
        for (; scale > size; scale--)
            *at++ = '0';
        at += strlen(strcpy(at, digits));
    }
    *at = '\0';
}

static void expect_width(const struct number *n, size_t width, int scale,
                         const char *expected)
{
    char value[4 * WORDS], text[UVA__TEXT_NUMBER_ROOM + 1];
    char *end;

    if (!fits(n, width))
        return;
    number_store(n, width, value);
    end = uva__text_number_put_decimal(text, value, width, scale);
    ck_assert_int_le(end - text, UVA__TEXT_NUMBER_ROOM);
    *end = '\0';
    ck_assert_str_eq(text, expected);
}

static void expect_digits(const char *digits, int scale)
{
    const struct number n = number_of(digits), minus = negated(n);
    char expected[1 + UVA__TEXT_NUMBER_ROOM] = "-";

    expected_write(expected + 1, digits, scale);
    for (size_t width = 4; width <= 32; width *= 2) {
        expect_width(&n, width, scale, expected + 1);
        if (digits[0] != '0')
            expect_width(&minus, width, scale, expected);
    }
}

START_TEST(digits_of_any_number_are_written)
{
    char digits[DIGITS_MAX + 1] = "";

    srand(7);
    for (int size = 1; size <= DIGITS_MAX; size++)
        for (int i = 0; i < 300; i++) {
            for (int k = 0; k < size; k++)
                digits[k] = (char)('0' + rand() / 7 % 10);
            if (digits[0] == '0')
                digits[0] = '1';
            expect_digits(digits, i % 60 - 10);
        }
}
END_TEST

/* Words of digits, and words of the number, begin and end there. */
START_TEST(powers_of_ten_and_two_are_written)
{
    static const char *const powers_of_two[] = {
        "0",
        "2147483647",
        "2147483648",
        "4294967295",
        "4294967296",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "170141183460469231731687303715884105727",
        "170141183460469231731687303715884105728",
        "340282366920938463463374607431768211456",
    };
    char digits[DIGITS_MAX + 1] = "";

    for (int scale = -UVA__TEXT_NUMBER_SCALE_MAX;
         scale <= UVA__TEXT_NUMBER_SCALE_MAX; scale++) {
        for (size_t i = 0; i < sizeof(powers_of_two) / sizeof(char *); i++)
            expect_digits(powers_of_two[i], scale);
        for (int size = 1; size <= DIGITS_MAX; size++) {
            memset(digits, '0', (size_t)size);
            digits[0] = '1';
            expect_digits(digits, scale);
            memset(digits, '9', (size_t)size);
            expect_digits(digits, scale);
        }
        memset(digits, '\0', sizeof(digits));
    }
}
END_TEST

int main(void)
{
    return suite_main("text_decimal", NULL, NULL,
                      suite_tests("decimal", digits_of_any_number_are_written,
                                  powers_of_ten_and_two_are_written, NULL),
                      NULL);
}
