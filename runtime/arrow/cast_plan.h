/* SPDX-License-Identifier: Apache-2.0 */
/* How arrays of one schema are cast to another: a tree like the target schema,
 * made once for all arrays. Values are left to cast.h. */
#ifndef UVA_ARROW_CAST_PLAN_H
#define UVA_ARROW_CAST_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* The ways to cast an array. */
enum uva__cast_kind {
    UVA__CAST_EQUAL,      /* the types are: it is passed on */
    UVA__CAST_NULLS,      /* of nulls */
    UVA__CAST_NUMBER,     /* numbers, booleans, times */
    UVA__CAST_BYTES,      /* strings and binary data */
    UVA__CAST_LIST,       /* lists of any size, maps */
    UVA__CAST_FIXED_LIST, /* lists of one size */
    UVA__CAST_STRUCT,     /* rows of columns */
    UVA__CAST_SPARSE,     /* unions */
    UVA__CAST_DENSE,
    UVA__CAST_DECODE /* a dictionary or runs: the values are the one child */
};

/* The items of a number in memory, in the order of UVA__CAST_NUMBERS. */
enum uva__cast_number {
    UVA__CAST_INT8,
    UVA__CAST_INT16,
    UVA__CAST_INT32,
    UVA__CAST_INT64,
    UVA__CAST_UINT8,
    UVA__CAST_UINT16,
    UVA__CAST_UINT32,
    UVA__CAST_UINT64,
    UVA__CAST_FLOAT16,
    UVA__CAST_FLOAT32,
    UVA__CAST_FLOAT64,
    UVA__CAST_BOOL
};

/* The formats of these. */
#define UVA__CAST_NUMBERS "csilCSILefgb"

/* How bytes are found. */
enum uva__cast_bytes {
    UVA__CAST_OFFSETS32,
    UVA__CAST_OFFSETS64,
    UVA__CAST_VIEWS,
    UVA__CAST_FIXED
};

/* One node. Both schemas are borrowed. */
struct uva__cast_plan {
    const struct uva__cast_plan *up; /* NULL: the root */
    const struct ArrowSchema *from, *to;
    int64_t child;              /* number of this one among those of up->from */
    enum uva__cast_kind kind;   /* decides about the others */
    bool has_validity;          /* arrays of `from` have a bitmap, or NULL */
    bool strict;                /* there may be nulls, but not in the target */
    uint8_t from_item, to_item; /* enum uva__cast_number or _bytes */
    int32_t from_width, to_width;    /* of lists: bytes of an offset */
    int64_t multiply, divide;        /* of times; 0: not so */
    int64_t size;                    /* of each list, or bytes of each value:
                                        of a type of one size */
    int64_t n_children;              /* number of those */
    struct uva__cast_plan *children; /* owns: in the order of the target */
};

/* Fills in a plan for the arrays of `from`. Both schemas are sound, as copies
 * of uva__structs_copy_schema() are, and must stay valid. 0; EINVAL with the
 * column and the reason; ENOMEM. To be freed in either case. Thread: any. */
UVA_MUST_CHECK int uva__cast_plan_init(const struct uva_allocator *allocator,
                                       const struct ArrowSchema *from,
                                       const struct ArrowSchema *to,
                                       struct uva__cast_plan *plan,
                                       struct uva_error *error);

/* Frees the nodes below; does not read the schemas. Thread: any. */
void uva__cast_plan_fini(const struct uva_allocator *allocator,
                         struct uva__cast_plan *plan);

enum { UVA__CAST_PATH_SIZE = 200, UVA__CAST_NAME_SIZE = 64 };

/* Writes "column a.b" for a node; "" for the root. Thread: any. */
void uva__cast_plan_path(const struct uva__cast_plan *plan,
                         char path[UVA__CAST_PATH_SIZE]);

/* Writes the usual name of a type, such as int32. Thread: any. */
void uva__cast_plan_name(const struct ArrowSchema *schema,
                         char name[UVA__CAST_NAME_SIZE]);

#endif
