/* SPDX-License-Identifier: Apache-2.0 */
/* Copying bits: one at a time up to the next whole byte of the target, then
 * byte by byte, then the rest. */
#include "arrow/bits.h"

#include <string.h>

static void bits_put(uint8_t *to, int64_t at, bool bit)
{
    const uint8_t mask = (uint8_t)(1U << (at % 8));

    to[at / 8] = (uint8_t)(bit ? to[at / 8] | mask : to[at / 8] & ~mask);
}

/* Copies whole bytes, which begin at bit `at` of `from`. */
static void bits_copy_bytes(uint8_t *to, const uint8_t *from, int64_t at,
                            int64_t bytes)
{
    const int shift = (int)(at % 8);

    from += at / 8;
    if (shift == 0) {
        memcpy(to, from, (size_t)bytes);
        return;
    }
    for (int64_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)((from[i] >> shift) | (from[i + 1] << (8 - shift)));
}

void uva__bits_copy(uint8_t *to, int64_t to_at, const uint8_t *from, int64_t at,
                    int64_t count)
{
    int64_t bytes;

    for (; count > 0 && to_at % 8 != 0; count--)
        bits_put(to, to_at++, uva__bits_get(from, at++));
    bytes = count / 8;
    if (bytes > 0)
        bits_copy_bytes(to + to_at / 8, from, at, bytes);
    for (int64_t i = bytes * 8; i < count; i++)
        bits_put(to, to_at + i, uva__bits_get(from, at + i));
}

void uva__bits_fill(uint8_t *to, int64_t at, int64_t count)
{
    int64_t bytes;

    for (; count > 0 && at % 8 != 0; count--)
        bits_put(to, at++, true);
    bytes = count / 8;
    if (bytes > 0)
        memset(to + at / 8, 0xff, (size_t)bytes);
    for (int64_t i = bytes * 8; i < count; i++)
        bits_put(to, at + i, true);
}

int64_t uva__bits_count_zeros(const uint8_t *bits, int64_t count)
{
    int64_t ones = 0, i = 0;
    uint64_t word;

    for (; i + 64 <= count; i += 64) {
        memcpy(&word, bits + i / 8, sizeof(word));
        ones += __builtin_popcountll(word);
    }
    for (; i < count; i++)
        ones += uva__bits_get(bits, i);
    return count - ones;
}
