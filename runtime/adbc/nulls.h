/* SPDX-License-Identifier: Apache-2.0 */
/* Which items of an array are null. */
#ifndef UVA_ADBC_NULLS_H
#define UVA_ADBC_NULLS_H

#include <stdint.h>

#include "uvarrow/arrow_abi.h"

/* Finds the first of `count` items from `from` on in the buffers that is null,
 * of an array that fits its schema and has a bitmap if any. Returns its index
 * here; -1: another. Thread: any. */
static inline int64_t uva__null_find(const struct ArrowArray *array,
                                     int64_t from, int64_t count)
{
    const uint8_t *bits = array->null_count != 0 ? array->buffers[0] : NULL;

    for (int64_t i = 0; bits != NULL && i < count; i++)
        if ((bits[(from + i) / 8] >> (from + i) % 8 & 1) == 0)
            return i;
    return -1;
}

#endif
