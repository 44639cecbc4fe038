/* SPDX-License-Identifier: Apache-2.0 */
/* Products of 128 bits. */
#ifndef UVA_IO_WIDE_H
#define UVA_IO_WIDE_H

#include <stdint.h>

/* A number of 128 bits. */
struct uva__wide {
    uint64_t high, low;
};

/* Multiplies as one does by hand, with digits of 32 bits. Thread: any. */
static inline struct uva__wide uva__wide_multiply_by_hand(uint64_t a,
                                                          uint64_t b)
{
    const uint64_t low = (a & 0xffffffff) * (b & 0xffffffff);
    const uint64_t one = (a >> 32) * (b & 0xffffffff) + (low >> 32);
    const uint64_t other = (a & 0xffffffff) * (b >> 32) + (one & 0xffffffff);

    return (struct uva__wide){
        .high = (a >> 32) * (b >> 32) + (one >> 32) + (other >> 32),
        .low = other << 32 | (low & 0xffffffff),
    };
}

#ifdef __SIZEOF_INT128__ /* gcc and clang, for 64 bits */
__extension__ typedef unsigned __int128 uva__wide_word;
#endif

/* Multiplies. Thread: any. */
static inline struct uva__wide uva__wide_multiply(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    const uva__wide_word product = (uva__wide_word)a * b;

    return (struct uva__wide){(uint64_t)(product >> 64), (uint64_t)product};
#else
    return uva__wide_multiply_by_hand(a, b);
#endif
}

#endif
