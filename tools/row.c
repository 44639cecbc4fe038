/* SPDX-License-Identifier: Apache-2.0 */
/* The row is one block of memory, which each struct that is given away counts:
 * children may be moved out of their parent, and then live longer. */
#include "row.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "uvarrow/arrow.h"

/* The data of one column. */
struct cell {
    union {
        int64_t whole;
        double number;
        uint8_t bit;
        int32_t offsets[2];
    } as;
    char *text;             /* owns; may be NULL */
    char name[24];          /* of its column */
    const void *buffers[3]; /* as in struct ArrowArray */
};

struct row {
    atomic_int users;                  /* structs that are not released */
    bool was_read;                     /* get_next has given the batch */
    size_t count;                      /* number of values */
    struct ArrowSchema schema;         /* owns no other memory */
    struct ArrowSchema first_schema;   /* owns; for get_schema */
    struct ArrowSchema *fields;        /* owns, `count` */
    struct ArrowSchema **field_places; /* owns, `count` */
    struct ArrowArray *columns;        /* owns, `count` */
    struct ArrowArray **column_places; /* owns, `count` */
    const void *no_buffer;             /* of the batch: no bitmap */
    struct cell cells[];               /* in order */
};

static void row_drop(struct row *row)
{
    size_t i;

    if (atomic_fetch_sub_explicit(&row->users, 1, memory_order_acq_rel) != 1)
        return;
    uva_schema_release(&row->first_schema);
    for (i = 0; i < row->count; i++)
        free(row->cells[i].text);
    free(row->fields);
    free(row->field_places);
    free(row->columns);
    free(row->column_places);
    free(row);
}

/* The schemas stay in the row; copies are given away. */
static void on_schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void on_column_release(struct ArrowArray *array)
{
    struct row *row = array->private_data;

    array->release = NULL;
    row_drop(row);
}

static void on_batch_release(struct ArrowArray *array)
{
    int64_t i;

    for (i = 0; i < array->n_children; i++)
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
    on_column_release(array);
}

/* ---- the stream ---------------------------------------------------------- */

/* Drivers ask once, and call any failure a mistake in the query: so that one
 * must not fail. */
static int on_get_schema(struct ArrowArrayStream *stream,
                         struct ArrowSchema *out)
{
    struct row *row = stream->private_data;

    if (row->first_schema.release == NULL)
        return uva_schema_copy(&row->schema, out);
    uva_schema_move(&row->first_schema, out);
    return 0;
}

static int on_get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct row *row = stream->private_data;

    memset(out, 0, sizeof(*out));
    if (row->was_read)
        return 0;
    row->was_read = true;
    atomic_fetch_add_explicit(&row->users, (int)row->count + 1,
                              memory_order_relaxed);
    out->length = 1;
    out->n_buffers = 1;
    out->buffers = &row->no_buffer;
    out->n_children = (int64_t)row->count;
    out->children = row->column_places;
    out->release = on_batch_release;
    out->private_data = row;
    return 0;
}

static const char *on_get_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void on_release(struct ArrowArrayStream *stream)
{
    struct row *row = stream->private_data;

    stream->release = NULL;
    row_drop(row);
}

/* ---- the values ---------------------------------------------------------- */

/* Fills a cell; returns its format, or NULL without memory. */
static const char *cell_fill(struct cell *cell,
                             const struct uva__parameter *from)
{
    cell->buffers[1] = &cell->as;
    switch (from->kind) {
    case UVA__PARAMETER_INT:
        cell->as.whole = from->integer;
        return "l";
    case UVA__PARAMETER_FLOAT:
        cell->as.number = from->number;
        return "g";
    case UVA__PARAMETER_BOOL:
        cell->as.bit = from->boolean;
        return "b";
    case UVA__PARAMETER_TEXT:
        cell->as.offsets[1] = (int32_t)from->size;
        cell->text = malloc(from->size + 1);
        if (cell->text == NULL)
            return NULL;
        memcpy(cell->text, from->text, from->size);
        cell->buffers[2] = cell->text;
        return "u";
    default:
        assert(from->kind == UVA__PARAMETER_NULL);
        return "n";
    }
}

static int row_set(struct row *row, size_t i, const struct uva__parameter *from)
{
    const bool is_null = from->kind == UVA__PARAMETER_NULL;
    struct cell *cell = &row->cells[i];
    struct ArrowSchema *field = &row->fields[i];
    struct ArrowArray *column = &row->columns[i];

    field->format = cell_fill(cell, from);
    if (field->format == NULL)
        return ENOMEM;
    (void)snprintf(cell->name, sizeof(cell->name), "%zu", i + 1);
    field->name = cell->name;
    field->flags = ARROW_FLAG_NULLABLE;
    field->release = on_schema_release;
    row->field_places[i] = field;
    column->length = 1;
    column->null_count = is_null ? 1 : 0;
    column->n_buffers = is_null ? 0 : cell->text != NULL ? 3 : 2;
    column->buffers = cell->buffers;
    column->release = on_column_release;
    column->private_data = row;
    row->column_places[i] = column;
    return 0;
}

static struct row *row_new(size_t count)
{
    struct row *row = calloc(1, sizeof(*row) + count * sizeof(struct cell));

    if (row == NULL)
        return NULL;
    atomic_init(&row->users, 1);
    row->count = count;
    row->fields = calloc(count, sizeof(*row->fields));
    row->field_places = calloc(count, sizeof(struct ArrowSchema *));
    row->columns = calloc(count, sizeof(*row->columns));
    row->column_places = calloc(count, sizeof(struct ArrowArray *));
    if (row->fields == NULL || row->field_places == NULL ||
        row->columns == NULL || row->column_places == NULL) {
        row_drop(row);
        return NULL;
    }
    row->schema.format = "+s";
    row->schema.n_children = (int64_t)count;
    row->schema.children = row->field_places;
    row->schema.release = on_schema_release;
    return row;
}

int uva__row_new(const struct uva__parameter *values, size_t count,
                 struct ArrowArrayStream *out, struct uva_error *error)
{
    struct row *row = row_new(count);
    int code = row == NULL ? ENOMEM : 0;
    size_t i;

    assert(count > 0);
    for (i = 0; i < count && code == 0; i++)
        code = row_set(row, i, &values[i]);
    if (code == 0)
        code = uva_schema_copy(&row->schema, &row->first_schema);
    if (code != 0) {
        if (row != NULL)
            row_drop(row);
        return uva_error_set(error, code, "out of memory");
    }
    out->get_schema = on_get_schema;
    out->get_next = on_get_next;
    out->get_last_error = on_get_last_error;
    out->release = on_release;
    out->private_data = row;
    return 0;
}
