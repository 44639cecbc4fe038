/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in the order of bytes of this platform, which metadata and buffers of
 * the C data interface have: in literals, and of a width that is given. */
#ifndef UVA_TESTS_SUPPORT_NATIVE_H
#define UVA_TESTS_SUPPORT_NATIVE_H

#include <stdint.h>
#include <string.h>

/* An int32 of four literals of one byte each, the lowest first. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define NATIVE_INT32(a, b, c, d) d c b a
#define NATIVE_IS_BIG            1
#else
#define NATIVE_INT32(a, b, c, d) a b c d
#define NATIVE_IS_BIG            0
#endif

/* A small one. */
#define NATIVE(byte) NATIVE_INT32(byte, "\0", "\0", "\0")

/* {"k": "v"} as metadata */
#define NATIVE_PAIR NATIVE("\1") NATIVE("\1") "k" NATIVE("\1") "v"

/* Stores the lowest `width` bytes of a number, 8 at most. */
static inline void native_store(void *to, int64_t value, size_t width)
{
    memcpy(to,
           (const char *)&value + (NATIVE_IS_BIG ? sizeof(value) - width : 0),
           width);
}

#endif
