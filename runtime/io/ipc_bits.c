/* SPDX-License-Identifier: Apache-2.0 */
/* Bitmaps, eight bytes at a time where there are as many. */
#include "io/ipc_bits.h"

#include <string.h>

static int64_t ipc_bits_ones(uint64_t word)
{
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) +
           (word >> 2 & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (int64_t)(word * UINT64_C(0x0101010101010101) >> 56);
}

/* The ones among `count` bits, from bit `at` on, of a single byte. */
static int64_t ipc_bits_in_byte(uint8_t byte, int64_t at, int64_t count)
{
    return ipc_bits_ones(byte >> at & ((1u << count) - 1));
}

int64_t uva__ipc_bits_zeroes(const uint8_t *bits, int64_t at, int64_t count)
{
    const int64_t all = count;
    int64_t ones = 0;
    uint64_t word;

    if (at % 8 != 0 && count > 0) {
        const int64_t rest = 8 - at % 8;
        const int64_t here = count < rest ? count : rest;

        ones += ipc_bits_in_byte(bits[at / 8], at % 8, here);
        at += here;
        count -= here;
    }
    bits += at / 8;
    for (; count >= 64; count -= 64, bits += sizeof(word)) {
        memcpy(&word, bits, sizeof(word));
        ones += ipc_bits_ones(word);
    }
    for (; count >= 8; count -= 8, bits++)
        ones += ipc_bits_ones(*bits);
    if (count > 0)
        ones += ipc_bits_in_byte(*bits, 0, count);
    return all - ones;
}

void uva__ipc_bits_copy(uint8_t *to, const uint8_t *bits, int64_t at,
                        int64_t count)
{
    const int shift = (int)(at % 8);
    const int64_t size = (count + 7) / 8;
    const int64_t last = (at % 8 + count - 1) / 8; /* byte of the last bit */

    bits += at / 8;
    for (int64_t i = 0; i < size - 1; i++)
        to[i] = (uint8_t)(bits[i] >> shift | bits[i + 1] << (8 - shift));
    to[size - 1] = (uint8_t)(bits[size - 1] >> shift);
    if (last == size)
        to[size - 1] |= (uint8_t)(bits[size] << (8 - shift));
    if (count % 8 != 0)
        to[size - 1] &= (uint8_t)((1u << count % 8) - 1);
}
