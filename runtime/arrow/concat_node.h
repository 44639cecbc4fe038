/* SPDX-License-Identifier: Apache-2.0 */
/* One node of a concatenation (arrow/concat.c): counts the items of the joined
 * arrays, and knows where the next rows go, as the kind of layout decides. */
#ifndef UVA_ARROW_CONCAT_NODE_H
#define UVA_ARROW_CONCAT_NODE_H

#include "arrow/format.h"
#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* Rows of one array, at the positions that its buffers have. */
struct uva__concat_run {
    const struct ArrowArray *array; /* borrows */
    int64_t at;                     /* first row, with the array's offset */
    int64_t count;
};

struct uva__concat_kind; /* measure and fill, for one kind of layout */

struct uva__concat_node {
    const struct uva__concat_kind *kind; /* static */
    const char *format;                  /* borrows: the schema's */
    struct uva__layout layout;           /* of that */
    int32_t width;                       /* bytes of an item or an offset */
    int64_t list_size;                   /* items of a fixed-size list */
    int64_t index_max;                   /* largest index of a dictionary */
    int8_t members[UVA__UNION_IDS];      /* the child of each type id; or -1 */
    struct uva__concat_node *children;   /* borrows: in the same block */
    int64_t n_children;                  /* number of those */
    struct uva__concat_node
        *dictionary; /* borrows: in the same block; or NULL */
    /* the measured items */
    int64_t items;
    int64_t data;  /* bytes of strings */
    bool nullable; /* it needs a validity bitmap */
    /* of the last run that was measured or filled */
    const struct ArrowArray *values; /* borrows: its dictionary */
    int64_t values_at; /* where that begins in the joined dictionary */
    /* the filled items */
    struct ArrowArray *array; /* borrows: in the result */
    int64_t filled;           /* items */
    int64_t filled_data;      /* bytes */
};

/* Fills in a node for arrays of `schema`; its children and dictionary follow.
 * 0; ENOTSUP for an unknown format, EINVAL for a malformed format, or for a
 * wrong number of children. */
UVA_MUST_CHECK int uva__concat_node_init(struct uva__concat_node *node,
                                         const struct ArrowSchema *schema);

/* Completes it when its children are filled in. 0; EINVAL if these are of the
 * wrong kind. */
UVA_MUST_CHECK int uva__concat_node_complete(struct uva__concat_node *node);

/* Counts a run. 0; EOVERFLOW; EINVAL, as uva__concat_measure(). */
UVA_MUST_CHECK int uva__concat_node_measure(struct uva__concat_node *node,
                                            const struct uva__concat_run *run);

/* Copies a run that was measured. */
void uva__concat_node_fill(struct uva__concat_node *node,
                           const struct uva__concat_run *run);

/* Whether it only consists of columns: a record batch. The measured items may
 * change that. */
bool uva__concat_node_is_batch(const struct uva__concat_node *node);

/* Whether its arrays have only a validity bitmap and items of `width` bytes:
 * without nulls they are joined by copies alone. */
bool uva__concat_node_is_plain(const struct uva__concat_node *node);

/* Copies column `i` of such a run. The run is filled with its last column. */
void uva__concat_node_fill_column(struct uva__concat_node *node,
                                  const struct uva__concat_run *run, int64_t i);

#endif
