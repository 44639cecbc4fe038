/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of numbers that a peer may claim: of rows, bytes and requests. */
#ifndef UVA_BASE_SUM_H
#define UVA_BASE_SUM_H

#include <stdint.h>

/* Returns the sum of two numbers that are not negative; INT64_MAX if it is
 * larger. Thread: any. */
static inline int64_t uva__sum(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

#endif
