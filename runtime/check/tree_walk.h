/* SPDX-License-Identifier: Apache-2.0 */
/* A walk down a tree of schemas or arrays: keeps the path, for reports, and
 * limits trees without an end. */
#ifndef UVA_CHECK_TREE_WALK_H
#define UVA_CHECK_TREE_WALK_H

#include "arrow/structs.h"
#include "check/reporter.h"

/* Set `reporter`, and `error` to get the first breach; the rest is 0. */
struct uva__tree_walk {
    struct uva__reporter *reporter; /* borrows */
    struct uva_error *error;        /* borrows; NULL once it is filled */
    int64_t nodes;                  /* nodes visited */
    int depth;                      /* depth of this node; the root's is 0 */
    bool stopped; /* a limit was reached, which is reported once */
    int64_t path[UVA__STRUCTS_MAX_DEPTH]; /* index of the child taken at each
                                             depth; -1: the dictionary */
};

/* Makes a walk that reports to `reporter`; its path is large, and not cleared.
 * Thread: any. */
void uva__tree_walk_init(struct uva__tree_walk *walk,
                         struct uva__reporter *reporter);

/* Begins at the root, of another tree perhaps. Thread: any. */
void uva__tree_walk_begin(struct uva__tree_walk *walk);

/* Steps down to a child, or with -1 to the dictionary. Returns false if the
 * walk must not go there; otherwise _leave steps up again. Thread: any. */
bool uva__tree_walk_enter(struct uva__tree_walk *walk, int64_t index);
void uva__tree_walk_leave(struct uva__tree_walk *walk);

/* Reports a breach at this node, with the clause's party and severity; _remark,
 * with the given severity. Thread: any. */
UVA_PRINTF(3, 4)
void uva__tree_walk_breach(struct uva__tree_walk *walk, const char *clause,
                           const char *format, ...);
UVA_PRINTF(4, 5)
void uva__tree_walk_remark(struct uva__tree_walk *walk, const char *clause,
                           enum uva_severity severity, const char *format, ...);

#endif
