/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in literals, in the order of bytes of this platform: metadata of the
 * C data interface has that order. */
#ifndef UVA_TESTS_SUPPORT_NATIVE_H
#define UVA_TESTS_SUPPORT_NATIVE_H

/* An int32 of four literals of one byte each, the lowest first. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define NATIVE_INT32(a, b, c, d) d c b a
#else
#define NATIVE_INT32(a, b, c, d) a b c d
#endif

/* A small one. */
#define NATIVE(byte) NATIVE_INT32(byte, "\0", "\0", "\0")

/* {"k": "v"} as metadata */
#define NATIVE_PAIR NATIVE("\1") NATIVE("\1") "k" NATIVE("\1") "v"

#endif
