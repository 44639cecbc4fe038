/* SPDX-License-Identifier: Apache-2.0 */
/* Bitmaps that begin anywhere in a byte: counted, and moved to the beginning of
 * a byte. */
#ifndef UVA_IO_IPC_BITS_H
#define UVA_IO_IPC_BITS_H

#include <stdint.h>

/* Returns how many of `count` bits, from bit `at` on, are 0. Thread: any. */
int64_t uva__ipc_bits_zeroes(const uint8_t *bits, int64_t at, int64_t count);

/* Copies `count` bits, from bit `at` on, to the beginning of `to`; the rest of
 * its last byte is 0. Reads only the bytes that have some of the bits. Thread:
 * any. */
void uva__ipc_bits_copy(uint8_t *to, const uint8_t *bits, int64_t at,
                        int64_t count);

#endif
