/* SPDX-License-Identifier: Apache-2.0 */
/* Formats the path only for a report. */
#include "check/tree_walk.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "arrow/structs.h"
#include "protocol/clauses.h"

enum { TREE_WALK_PATH = 256 };

void uva__tree_walk_init(struct uva__tree_walk *walk,
                         struct uva__reporter *reporter)
{
    walk->reporter = reporter;
    walk->error = NULL;
    uva__tree_walk_begin(walk);
}

void uva__tree_walk_begin(struct uva__tree_walk *walk)
{
    walk->nodes = 0;
    walk->depth = 0;
    walk->stopped = false;
}

bool uva__tree_walk_enter(struct uva__tree_walk *walk, int64_t index)
{
    if (walk->stopped)
        return false;
    if (walk->depth == UVA__STRUCTS_MAX_DEPTH ||
        walk->nodes == UVA__STRUCTS_MAX_NODES) {
        walk->stopped = true;
        uva__tree_walk_breach(walk, "DA-25", "too deep, or a circle");
        return false;
    }
    walk->path[walk->depth++] = index;
    walk->nodes++;
    return true;
}

void uva__tree_walk_leave(struct uva__tree_walk *walk)
{
    walk->depth--;
}

/* Writes the path as "children[2].dictionary"; cut at the end of a step. */
static void tree_walk_write(const struct uva__tree_walk *walk,
                            char text[TREE_WALK_PATH])
{
    size_t used = 0;
    int size;

    (void)snprintf(text, TREE_WALK_PATH, "the top");
    for (int i = 0; i < walk->depth; i++) {
        char *at = text + used;
        const size_t room = TREE_WALK_PATH - used;
        const char *dot = i == 0 ? "" : ".";

        if (walk->path[i] < 0)
            size = snprintf(at, room, "%sdictionary", dot);
        else
            size = snprintf(at, room, "%schildren[%" PRId64 "]", dot,
                            walk->path[i]);
        if ((size_t)size >= room) {
            *at = '\0';
            return;
        }
        used += (size_t)size;
    }
}

static void tree_walk_report(struct uva__tree_walk *walk, const char *clause,
                             enum uva_severity severity, const char *format,
                             va_list args)
{
    char path[TREE_WALK_PATH];
    char what[256];

    tree_walk_write(walk, path);
    (void)vsnprintf(what, sizeof(what), format, args);
    uva__reporter_breach_as(walk->reporter, clause, severity, "%s: %s", path,
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
    tree_walk_report(walk, clause, uva__clause_find(clause)->severity, format,
                     args);
    va_end(args);
}

void uva__tree_walk_remark(struct uva__tree_walk *walk, const char *clause,
                           enum uva_severity severity, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tree_walk_report(walk, clause, severity, format, args);
    va_end(args);
}
