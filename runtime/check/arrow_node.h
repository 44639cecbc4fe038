/* SPDX-License-Identifier: Apache-2.0 */
/* A schema or an array, seen as the same: something with a release, children
 * and a dictionary. */
#ifndef UVA_CHECK_ARROW_NODE_H
#define UVA_CHECK_ARROW_NODE_H

#include <string.h>

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* The release of either, to be cast back. */
typedef void (*uva__arrow_node_fn)(void);

/* What a struct says of itself. */
struct uva__arrow_node_view {
    uva__arrow_node_fn release; /* or NULL */
    void *private_data;         /* borrows */
    int64_t n_children;         /* 0 if they are impossible */
    void *dictionary;           /* borrows; or NULL */
};

/* A kind of struct. `node` is the struct, borrowed. Nothing is checked but what
 * the view says. Thread: any, for all of them. */
struct uva__arrow_node_ops {
    size_t release_at, private_data_at; /* where those fields lie */
    /* the fields */
    struct uva__arrow_node_view (*look)(const void *node);
    /* a child; NULL if that is what stands there */
    void *(*child)(const void *node, int64_t i);
    /* calls a release with it */
    void (*call)(void *node, uva__arrow_node_fn release);
    /* of what its receiver may not change: strings, buffers, pointers to the
     * children; not of the children themselves */
    uint64_t (*digest)(const void *node);
};

extern const struct uva__arrow_node_ops UVA__ARROW_NODE_ARRAY;
extern const struct uva__arrow_node_ops UVA__ARROW_NODE_SCHEMA;

/* One of the two fields, and both anew. */
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
