/* SPDX-License-Identifier: Apache-2.0 */
/* A schema or an array, seen as the same: something with a release, children
 * and a dictionary. */
#ifndef UVA_CHECK_ARROW_NODE_H
#define UVA_CHECK_ARROW_NODE_H

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
    /* the fields */
    struct uva__arrow_node_view (*look)(const void *node);
    /* a child; NULL if that is what stands there */
    void *(*child)(const void *node, int64_t i);
    /* puts something else into the two fields */
    void (*set)(void *node, uva__arrow_node_fn release, void *private_data);
    /* calls a release with it */
    void (*call)(void *node, uva__arrow_node_fn release);
    /* of what its receiver may not change: strings, buffers, pointers to the
     * children; not of the children themselves */
    uint64_t (*digest)(const void *node);
};

extern const struct uva__arrow_node_ops UVA__ARROW_NODE_ARRAY;
extern const struct uva__arrow_node_ops UVA__ARROW_NODE_SCHEMA;

#endif
