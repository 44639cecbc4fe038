/* SPDX-License-Identifier: Apache-2.0 */
/*   SQLite       id, parent, notused, detail
 *   PostgreSQL   one column, indented already
 *   DuckDB       explain_key, explain_value: a drawing of many lines */
#define _GNU_SOURCE
#include "plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cells.h"
#include "glyph.h"

/* A column need not have a name. */
static bool is_named(const struct ArrowSchema *column, const char *name)
{
    return column->name != NULL && strcmp(column->name, name) == 0;
}

static bool has_numbers(const struct ArrowSchema *schema)
{
    return schema->n_children == 4 && is_named(schema->children[0], "id") &&
           is_named(schema->children[1], "parent");
}

/* Adds a node; returns its depth, below its parent. */
static int plan_add(struct uva__plan *plan, const char *id, const char *parent)
{
    int depth = 0;

    for (int i = 0; i < plan->count && parent != NULL; i++)
        if (plan->nodes[i].id == strtol(parent, NULL, 10))
            depth = plan->nodes[i].depth + 1;
    if (plan->count < UVA__PLAN_NODES && id != NULL) {
        plan->nodes[plan->count].id = strtol(id, NULL, 10);
        plan->nodes[plan->count++].depth = depth;
    }
    return depth;
}

/* Drops line breaks at the end, which each row gets. Names are in a plan, so
 * characters that would move the cursor are shown as those of a table. */
static void put_row(FILE *out, int depth, const char *text)
{
    const char *at = text != NULL ? text : "", *end = at + strlen(at);
    struct uva__glyph glyph;

    while (end > at && end[-1] == '\n')
        end--;
    (void)fprintf(out, "%*s", 2 * depth, "");
    while (at < end) {
        const bool is_break = *at == '\n';

        at += uva__glyph_next(at, &glyph);
        (void)fputs(is_break ? "\n" : glyph.text, out);
    }
    (void)fputc('\n', out);
}

static void put_rows(FILE *out, struct uva__plan *plan,
                     const struct ArrowSchema *schema,
                     const struct uva__cells *cells)
{
    const size_t columns = (size_t)schema->n_children;

    uva__glyph_begin();
    for (size_t at = 0; at < cells->count; at += columns) {
        char **row = cells->texts + at;
        const int depth =
            has_numbers(schema) ? plan_add(plan, row[0], row[1]) : 0;

        put_row(out, depth, row[columns - 1]);
    }
    uva__glyph_end();
}

int uva__plan_text(struct uva__plan *plan, const struct ArrowSchema *schema,
                   struct ArrowDeviceArray *rows, char **text, size_t *size,
                   struct uva_error *error)
{
    struct uva__cells cells;
    FILE *out;
    int code;

    *text = NULL;
    *size = 0;
    if (schema->n_children == 0)
        return 0;
    code = uva__cells_init(&cells, schema, rows, 1, false, error);
    if (code != 0)
        return code;
    out = open_memstream(text, size);
    if (out != NULL)
        put_rows(out, plan, schema, &cells);
    uva__cells_fini(&cells);
    if (out != NULL && fclose(out) == 0)
        return 0;
    free(*text);
    *text = NULL;
    return uva_error_set(error, ENOMEM, "out of memory");
}
