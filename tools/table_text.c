/* SPDX-License-Identifier: Apache-2.0 */
/*   carrier │      n │ … │ delay      the names
 *   text    │  int64 │ … │ float64    the types
 *  ─────────┼────────┼───┼─────────
 *   UA      │ 58,665 │ … │    3.50
 *   ⋮       │      ⋮ │ ⋮ │       ⋮    rows that are not shown
 *   OO      │     32 │ … │   12.11
 *
 * A table that is too wide has its widest columns cut, down to COLUMN_LEAST,
 * and then loses columns from its middle. */
#define _GNU_SOURCE
#include "table_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "glyph.h"
#include "report.h"
#include "type_name.h"

enum { COLUMN_LEAST = 8, BETWEEN = 3 };

#define BOLD  "\033[1m"
#define DIM   "\033[2m"
#define PLAIN "\033[0m"

/* A column. */
struct column {
    const char *name; /* borrows */
    char type[64];
    int width; /* without a limit */
    bool is_number;
};

/* The signs that are drawn. */
struct signs {
    const char *bar, *line, *cross, *cut, *more;
};

static const struct signs UNICODE = {"│", "─", "┼", "…", "⋮"},
                          ASCII = {"|", "-", "+", "~", ":"};

/* A table. */
struct layout {
    struct column *columns; /* owns */
    int count;              /* of columns */
    int hidden_from;        /* the first column that is not shown */
    int hidden_to;          /* and the one after the last such */
    int cap;                /* the widest column */
    const struct uva__table_style *style;
    const struct signs *signs;
    FILE *out;
};

/* ---- widths -------------------------------------------------------------- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

static bool column_is_hidden(const struct layout *l, int i)
{
    return i >= l->hidden_from && i < l->hidden_to;
}

/* The columns of the terminal that the table takes. */
static int layout_width(const struct layout *l)
{
    int width = -1;

    for (int i = 0; i < l->count; i++)
        if (!column_is_hidden(l, i))
            width += least(l->columns[i].width, l->cap) + BETWEEN;
    return width + (l->hidden_from < l->hidden_to ? 1 + BETWEEN : 0);
}

/* Makes the cap as large as fits, and at least `floor`. */
static bool layout_cap(struct layout *l, int floor)
{
    const int room = l->style->columns;

    for (l->cap = most(room, floor); l->cap > floor; l->cap--)
        if (layout_width(l) <= room)
            return true;
    return layout_width(l) <= room;
}

static void layout_fit(struct layout *l)
{
    l->cap = 1 << 30;
    if (l->style->columns == 0 || layout_width(l) <= l->style->columns ||
        layout_cap(l, COLUMN_LEAST))
        return;
    for (int shown = l->count - 1; shown > 0; shown--) {
        l->hidden_from = (shown + 1) / 2;
        l->hidden_to = l->count - shown / 2;
        l->cap = COLUMN_LEAST;
        if (layout_width(l) <= l->style->columns)
            break;
    }
    if (!layout_cap(l, COLUMN_LEAST))
        (void)layout_cap(l, 1);
}

static int layout_measure(struct layout *l, const struct ArrowSchema *schema,
                          const struct uva__cells *cells)
{
    l->count = (int)schema->n_children;
    l->columns = calloc((size_t)l->count, sizeof(*l->columns));
    if (l->columns == NULL)
        return ENOMEM;
    for (int i = 0; i < l->count; i++) {
        struct column *column = &l->columns[i];
        const char *name = schema->children[i]->name;

        column->name = name != NULL ? name : "";
        uva__type_name(schema->children[i], column->type, sizeof(column->type));
        column->is_number = uva__type_is_number(schema->children[i]);
        column->width = most(1, most(uva__glyph_columns(column->name),
                                     uva__glyph_columns(column->type)));
    }
    for (size_t i = 0; i < cells->count; i++) {
        struct column *column = &l->columns[i % (size_t)l->count];
        const char *text = cells->texts[i];

        column->width =
            most(column->width, text != NULL ? uva__glyph_columns(text) : 4);
    }
    return 0;
}

/* ---- lines --------------------------------------------------------------- */

static void put_color(const struct layout *l, const char *color)
{
    if (l->style->has_colors && color != NULL)
        (void)fputs(color, l->out);
}

static void put_blanks(const struct layout *l, int count)
{
    (void)fprintf(l->out, "%*s", most(count, 0), "");
}

/* Writes a text, which is cut if it is wider than `width`. */
static void put_cut(const struct layout *l, const char *text, int width)
{
    const bool is_cut = uva__glyph_columns(text) > width;
    const int room = is_cut ? width - 1 : width;
    struct uva__glyph glyph;
    int used = 0;
    size_t size;

    for (; (size = uva__glyph_next(text, &glyph)) > 0; text += size) {
        if (used + glyph.columns > room)
            break;
        used += glyph.columns;
        (void)fputs(glyph.text, l->out);
    }
    if (is_cut) {
        (void)fputs(l->signs->cut, l->out);
        put_blanks(l, room - used);
    }
}

/* Writes one cell, between blanks. */
static void put_cell(const struct layout *l, int i, const char *text,
                     const char *color)
{
    const struct column *column = &l->columns[i];
    const int width = least(column->width, l->cap),
              rest = width - uva__glyph_columns(text);

    (void)fputc(' ', l->out);
    if (column->is_number)
        put_blanks(l, rest);
    put_color(l, color);
    put_cut(l, text, width);
    put_color(l, color != NULL ? PLAIN : NULL);
    if (!column->is_number && i + 1 < l->count)
        put_blanks(l, rest);
    if (i + 1 < l->count)
        (void)fputc(' ', l->out);
}

static void put_bar(const struct layout *l)
{
    put_color(l, DIM);
    (void)fputs(l->signs->bar, l->out);
    put_color(l, PLAIN);
}

/* What a line shows. */
struct line {
    char **texts;                               /* cells; or NULL: */
    const char *(*text)(const struct column *); /* of the column; or NULL: */
    const char *same;                           /* this one */
    const char *color;                          /* may be NULL */
};

static const char *column_name(const struct column *column)
{
    return column->name;
}

static const char *column_type(const struct column *column)
{
    return column->type;
}

static void put_line(const struct layout *l, const struct line *line)
{
    for (int i = 0; i < l->count; i++) {
        const char *text = line->texts != NULL  ? line->texts[i]
                           : line->text != NULL ? line->text(&l->columns[i])
                                                : line->same;

        if (i > 0 && !column_is_hidden(l, i))
            put_bar(l);
        if (i == l->hidden_from && i < l->hidden_to) {
            put_bar(l);
            (void)fprintf(l->out, " %s ", l->signs->cut);
        }
        if (!column_is_hidden(l, i))
            put_cell(l, i, text != NULL ? text : "NULL",
                     text != NULL ? line->color : DIM);
    }
    (void)fputc('\n', l->out);
}

/* The line below the types. */
static void put_rule(const struct layout *l)
{
    put_color(l, DIM);
    for (int i = 0; i < l->count; i++) {
        const bool is_gap = i == l->hidden_from && i < l->hidden_to;
        const int width = is_gap ? 1 : least(l->columns[i].width, l->cap);

        if (column_is_hidden(l, i) && !is_gap)
            continue;
        if (i > 0)
            (void)fputs(l->signs->cross, l->out);
        for (int k = 0; k < width + 2; k++)
            (void)fputs(l->signs->line, l->out);
    }
    put_color(l, PLAIN);
    (void)fputc('\n', l->out);
}

/* Says what is not shown, if there is such. */
static void put_rest(const struct layout *l, int64_t rows, int64_t rows_shown)
{
    const int hidden = l->hidden_to - l->hidden_from;

    if (rows == rows_shown && hidden == 0)
        return;
    put_color(l, DIM);
    (void)fprintf(l->out, " %s rows", uva__report_figure(rows).text);
    if (rows > rows_shown)
        (void)fprintf(l->out, ", %s shown",
                      uva__report_figure(rows_shown).text);
    (void)fprintf(l->out, "; %d columns", l->count);
    if (hidden > 0)
        (void)fprintf(l->out, ", %d shown", l->count - hidden);
    put_color(l, PLAIN);
    (void)fputc('\n', l->out);
}

static void layout_print(const struct layout *l, const struct uva__cells *cells,
                         int64_t rows)
{
    const int64_t shown = (int64_t)cells->count / l->count;

    put_line(l, &(struct line){.text = column_name, .color = BOLD});
    put_line(l, &(struct line){.text = column_type, .color = DIM});
    put_rule(l);
    for (int64_t row = 0; row < shown; row++) {
        if (row == UVA__TABLE_ROWS && shown < rows)
            put_line(l, &(struct line){.same = l->signs->more, .color = DIM});
        put_line(l, &(struct line){.texts = cells->texts + row * l->count});
    }
    put_rest(l, rows, shown);
}

int uva__table_text(const struct ArrowSchema *schema,
                    const struct uva__cells *cells, int64_t rows,
                    const struct uva__table_style *style, char **text,
                    size_t *size)
{
    struct layout l = {.style = style,
                       .signs = style->is_ascii ? &ASCII : &UNICODE,
                       .out = open_memstream(text, size)};
    int code = l.out == NULL ? ENOMEM : 0;

    uva__glyph_begin();
    if (code == 0)
        code = layout_measure(&l, schema, cells);
    if (code == 0) {
        layout_fit(&l);
        layout_print(&l, cells, rows);
    }
    uva__glyph_end();
    free(l.columns);
    if (l.out != NULL && fclose(l.out) != 0)
        code = ENOMEM;
    if (code != 0 && l.out != NULL) {
        free(*text);
        *text = NULL;
    }
    return code;
}
