/* SPDX-License-Identifier: Apache-2.0 */
/* The path is kept as text, longer by a step for each node below. */
#include "check/tree_walk.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "check/clauses.h"
#include "core/structs.h"

void uva__tree_walk_begin(struct uva__tree_walk *walk)
{
    walk->nodes = 0;
    walk->depth = 0;
    walk->stopped = false;
    walk->used = 0;
    walk->path[0] = '\0';
}

static void tree_walk_add(struct uva__tree_walk *walk, int64_t index)
{
    char *at = walk->path + walk->used;
    const size_t room = sizeof(walk->path) - walk->used;
    const char *dot = walk->used == 0 ? "" : ".";
    int size;

    if (index < 0)
        size = snprintf(at, room, "%sdictionary", dot);
    else
        size = snprintf(at, room, "%schildren[%" PRId64 "]", dot, index);
    if ((size_t)size < room)
        walk->used += (size_t)size;
    else
        *at = '\0';
}

int uva__tree_walk_enter(struct uva__tree_walk *walk, int64_t index)
{
    const int mark = (int)walk->used;

    if (walk->stopped)
        return -1;
    if (walk->depth == UVA__STRUCTS_MAX_DEPTH ||
        walk->nodes == UVA__STRUCTS_MAX_NODES) {
        walk->stopped = true;
        uva__tree_walk_breach(walk, "DA-25", "too deep, or a circle");
        return -1;
    }
    walk->depth++;
    walk->nodes++;
    tree_walk_add(walk, index);
    return mark;
}

void uva__tree_walk_leave(struct uva__tree_walk *walk, int mark)
{
    walk->depth--;
    walk->used = (size_t)mark;
    walk->path[mark] = '\0';
}

static void tree_walk_tell(struct uva__tree_walk *walk, const char *clause,
                           enum uva_severity severity, const char *format,
                           va_list args)
{
    const char *path = walk->used == 0 ? "the top" : walk->path;
    const char *meant = clause;
    char what[256];

    if (walk->admit != NULL)
        clause = walk->admit(walk->ctx, meant);
    if (clause == NULL)
        return;
    if (clause != meant)
        severity = uva__clause_find(clause)->severity;
    (void)vsnprintf(what, sizeof(what), format, args);
    uva__witness_breach_as(walk->witness, clause, severity, "%s: %s", path,
                           what);
    if (severity < UVA_SEVERITY_ERROR || walk->error == NULL)
        return;
    (void)uva_error_set(walk->error, EPROTO, "%s: %s: %s", clause, path, what);
    walk->error = NULL;
}

void uva__tree_walk_breach(struct uva__tree_walk *walk, const char *clause,
                           const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tree_walk_tell(walk, clause, uva__clause_find(clause)->severity, format,
                   args);
    va_end(args);
}

void uva__tree_walk_remark(struct uva__tree_walk *walk, const char *clause,
                           enum uva_severity severity, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tree_walk_tell(walk, clause, severity, format, args);
    va_end(args);
}
