/* SPDX-License-Identifier: Apache-2.0 */
/* Bitmaps as Arrow lays them out: bit `i` is in byte `i / 8`, the lowest bits
 * first. */
#ifndef UVA_ARROW_BITS_H
#define UVA_ARROW_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether bit `i` is set. Thread: any. */
static inline bool uva__bits_get(const uint8_t *bits, int64_t i)
{
    return (bits[i / 8] >> (i % 8)) & 1;
}

/* How many bytes `bits` take that begin with a whole one. Thread: any. */
static inline int64_t uva__bits_bytes(int64_t bits)
{
    return bits / 8 + (bits % 8 != 0);
}

/* Copies `count` bits of `from`, from bit `at` on, to bit `to_at` of `to`.
 * Reads and writes only the bytes that have some of these bits. Thread: any one
 * at a time. */
void uva__bits_copy(uint8_t *to, int64_t to_at, const uint8_t *from, int64_t at,
                    int64_t count);

/* Sets `count` bits, from bit `at` on. Thread: any one at a time. */
void uva__bits_fill(uint8_t *to, int64_t at, int64_t count);

/* Returns how many of the first `count` bits are 0. Thread: any. */
int64_t uva__bits_count_zeros(const uint8_t *bits, int64_t count);

#endif
