/* SPDX-License-Identifier: Apache-2.0 */
/* Digits by twos, fours and eights, with leading zeroes, for text_number.c and
 * text_time.c. */
#ifndef UVA_IO_TEXT_DIGITS_H
#define UVA_IO_TEXT_DIGITS_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "io/byte_order.h"

/* "000102...99" */
extern const char uva__text_pairs[201];

/* Appends two digits. Thread: any. */
static inline char *uva__text_put_two(char *at, uint32_t value)
{
    assert(value < 100);
    memcpy(at, uva__text_pairs + (size_t)2 * value, 2);
    return at + 2;
}

/* Appends four digits. Thread: any. */
static inline char *uva__text_put_four(char *at, uint32_t value)
{
    assert(value < 10000);
    return uva__text_put_two(uva__text_put_two(at, value / 100), value % 100);
}

/* Appends the one to four digits of a number below 10,000. Thread:
 * any. */
static inline char *uva__text_put_small(char *at, uint32_t value)
{
    if (value >= 1000)
        return uva__text_put_four(at, value);
    if (value >= 100) {
        *at++ = (char)('0' + value / 100);
        return uva__text_put_two(at, value % 100);
    }
    if (value >= 10)
        return uva__text_put_two(at, value);
    *at = (char)('0' + value);
    return at + 1;
}

/* Returns the eight digits of a number, one a byte, the first one lowest. It
 * halves each part of the word at once: into fours, twos and ones. By Paul
 * Khuong, "How to print integers really fast", 2017. Thread: any. */
static inline uint64_t uva__text_eight(uint32_t value)
{
    const uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    const uint64_t hundreds = (fours * 10486 >> 20) & 0x0000007f0000007f;
    const uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
    const uint64_t tens = (twos * 103 >> 10) & 0x000f000f000f000f;

    assert(value < 100000000);
    return tens | (twos - 10 * tens) << 8;
}

/* Appends digits that uva__text_eight() returned. Thread: any. */
static inline char *uva__text_put_word(char *at, uint64_t digits)
{
    const uint64_t text = digits | 0x3030303030303030;
    const uint64_t word = uva__is_big_endian() ? __builtin_bswap64(text) : text;

    memcpy(at, &word, sizeof(word));
    return at + 8;
}

/* Appends eight digits. Thread: any. */
static inline char *uva__text_put_eight(char *at, uint32_t value)
{
    return uva__text_put_word(at, uva__text_eight(value));
}

#endif
