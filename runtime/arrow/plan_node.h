/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a plan: bytes, a parent before its children, and then its
 * dictionary; neighbours of simple types are one node. Types that few tables
 * have (views, unions, runs) are one node with all below them, and are left to
 * layout.h and row_size.h, column by column.
 *
 * And what every array has to have, whatever its node. Lengths and sizes of
 * columns are bounded, so that no product or sum can overflow. */
#ifndef UVA_ARROW_PLAN_NODE_H
#define UVA_ARROW_PLAN_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "uvarrow/arrow_abi.h"

/* The first byte of a node. */
enum uva__plan_node {
    UVA__PLAN_SIMPLE,  /* columns: their number, the bytes of an item of each
                          in sum (two bytes), the number of runs of one type,
                          and type and number of columns of each run */
    UVA__PLAN_INDEX,   /* integers, of so many bytes; then the dictionary */
    UVA__PLAN_NOTHING, /* no buffer */
    UVA__PLAN_ROW,     /* the children have the same items */
    UVA__PLAN_EQUAL_LISTS, /* the child has a number of items for each */
    UVA__PLAN_LIST,        /* the child's items by offsets of four bytes */
    UVA__PLAN_LARGE_LIST,  /* by offsets of eight bytes */
    UVA__PLAN_OTHER
};

enum uva__plan_type {
    UVA__PLAN_FIXED,      /* some bytes an item */
    UVA__PLAN_BITS,       /* a bit an item */
    UVA__PLAN_TEXT,       /* offsets of four bytes, and data */
    UVA__PLAN_LARGE_TEXT, /* offsets of eight bytes */
    UVA__PLAN_NAME,       /* integers, with a dictionary of UVA__PLAN_TEXT */
    UVA__PLAN_NOT_SIMPLE
};

enum {
    UVA__PLAN_HEAD = 5,        /* bytes of UVA__PLAN_SIMPLE before the runs */
    UVA__PLAN_WIDEST = 255,    /* bytes of an item of UVA__PLAN_FIXED */
    UVA__PLAN_COLUMNS = 255,   /* at most, of one node */
    UVA__PLAN_ITEMS_BITS = 32, /* no list of equal lists has more items */
    UVA__PLAN_SIZE_BITS = 40   /* no column may be larger than their range */
};

/* Whether all but the buffers and the nulls is as it must be. */
static inline bool uva__plan_is_sound(const struct ArrowArray *array,
                                      int buffers, int64_t children,
                                      const struct ArrowArray *dictionary,
                                      int64_t need)
{
    const uint64_t more = (uint64_t)array->length - (uint64_t)need;

    return array->release != NULL && array->buffers != NULL &&
           ((more | (uint64_t)array->offset) >> 31 |
            (uint64_t)(array->n_buffers ^ buffers) |
            (uint64_t)(array->n_children ^ children) |
            ((uintptr_t)array->dictionary ^ (uintptr_t)dictionary)) == 0;
}

/* Whether there can be as many nulls; -1 is an unknown number. */
static inline bool uva__plan_nulls_are(const struct ArrowArray *array,
                                       int64_t most)
{
    return (uint64_t)array->null_count + 1 <= (uint64_t)most + 1;
}

#endif
