/* SPDX-License-Identifier: Apache-2.0 */
/* One interface to schemas and arrays: a struct with a release, children and a
 * dictionary. */
#ifndef UVA_CHECK_ARROW_NODE_H
#define UVA_CHECK_ARROW_NODE_H

#include <string.h>

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* The release of either, to be cast back before the call. */
typedef void (*uva__arrow_node_fn)(void);

/* The fields that both have. */
struct uva__arrow_node_view {
    uva__arrow_node_fn release; /* or NULL */
    void *private_data;         /* borrows */
    int64_t n_children;         /* 0 if the field is impossible */
    void *dictionary;           /* borrows; or NULL */
};

/* The functions for one kind of struct. `node` is the struct, borrowed. They
 * check no more than the view does. Thread: any. */
struct uva__arrow_node_ops {
    size_t release_at, private_data_at; /* offsets of those fields */
    /* reads the fields */
    struct uva__arrow_node_view (*inspect)(const void *node);
    /* returns a child; NULL if the pointer to it is NULL */
    void *(*child)(const void *node, int64_t i);
    /* calls `release` with the struct */
    void (*call)(void *node, uva__arrow_node_fn release);
    /* a hash of the parts that its receiver may not change: strings, buffers,
     * pointers to the children; not of the children themselves */
    uint64_t (*digest)(const void *node);
};

extern const struct uva__arrow_node_ops UVA__ARROW_NODE_ARRAY;
extern const struct uva__arrow_node_ops UVA__ARROW_NODE_SCHEMA;

/* Read one field, and set both. */
static inline uva__arrow_node_fn
uva__arrow_node_release(const struct uva__arrow_node_ops *ops, const void *node)
{
    uva__arrow_node_fn release;

    memcpy(&release, (const char *)node + ops->release_at, sizeof(release));
    return release;
}

static inline void *
uva__arrow_node_private_data(const struct uva__arrow_node_ops *ops,
                             const void *node)
{
    void *data;

    memcpy(&data, (const char *)node + ops->private_data_at, sizeof(data));
    return data;
}

static inline void uva__arrow_node_set(const struct uva__arrow_node_ops *ops,
                                       void *node, uva__arrow_node_fn release,
                                       void *private_data)
{
    memcpy((char *)node + ops->release_at, &release, sizeof(release));
    memcpy((char *)node + ops->private_data_at, &private_data,
           sizeof(private_data));
}

#endif
