/* SPDX-License-Identifier: Apache-2.0 */
/* Going down a tree of schemas or arrays: where one is, for reports, and a
 * bound for trees that have none. */
#ifndef UVA_CHECK_TREE_WALK_H
#define UVA_CHECK_TREE_WALK_H

#include "check/witness.h"
#include "core/structs.h"

/* Set `witness`, and `error` if the first breach is wanted; the rest is 0. */
struct uva__tree_walk {
    struct uva__witness *witness; /* borrows */
    struct uva_error *error;      /* borrows; NULL once it is filled */
    int64_t nodes;                /* visited */
    int depth;                    /* of this node; the root's is 0 */
    bool stopped;                 /* there were too many, which is told once */
    int64_t path[UVA__STRUCTS_MAX_DEPTH]; /* which child was taken at each
                                             depth; -1: the dictionary */
};

/* One that tells `witness`; its path is large, and not cleared. Thread: any. */
void uva__tree_walk_init(struct uva__tree_walk *walk,
                         struct uva__witness *witness);

/* Begins at the root, of another tree perhaps. Thread: any. */
void uva__tree_walk_begin(struct uva__tree_walk *walk);

/* Steps down to a child, -1: the dictionary. False if the walk must not go
 * there; otherwise _leave steps up again. Thread: any. */
bool uva__tree_walk_enter(struct uva__tree_walk *walk, int64_t index);
void uva__tree_walk_leave(struct uva__tree_walk *walk);

/* Reports a breach at this node, by the catalogue's party and severity; or, as
 * _remark, with a severity of its own. Thread: any. */
UVA_PRINTF(3, 4)
void uva__tree_walk_breach(struct uva__tree_walk *walk, const char *clause,
                           const char *format, ...);
UVA_PRINTF(4, 5)
void uva__tree_walk_remark(struct uva__tree_walk *walk, const char *clause,
                           enum uva_severity severity, const char *format, ...);

#endif
