/* SPDX-License-Identifier: Apache-2.0 */
/* The row is one block of memory, which each struct that is given away counts:
 * children may be moved out of their parent, and then live longer. */
#include "parameters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "uvarrow/arrow.h"

/* One value. */
struct value {
    union {
        int64_t whole;
        double number;
        uint8_t bit;
        int32_t offsets[2];
    } as;
    char *text;             /* owns; of a string */
    char name[12];          /* of its column */
    const void *buffers[3]; /* as in struct ArrowArray */
};

struct row {
    atomic_int users;                  /* structs that are not released */
    bool was_read;                     /* get_next has given the batch */
    size_t count;                      /* number of values */
    struct ArrowSchema schema;         /* owns nothing but what is here */
    struct ArrowSchema first_schema;   /* owns; for get_schema */
    struct ArrowSchema *fields;        /* owns, `count` */
    struct ArrowSchema **field_places; /* owns, `count` */
    struct ArrowArray *columns;        /* owns, `count` */
    struct ArrowArray **column_places; /* owns, `count` */
    const void *no_buffer;             /* of the batch: no bitmap */
    struct value values[];             /* in order */
};

static void row_drop(struct row *row)
{
    size_t i;

    if (atomic_fetch_sub_explicit(&row->users, 1, memory_order_acq_rel) != 1)
        return;
    uva_schema_release(&row->first_schema);
    for (i = 0; i < row->count; i++)
        free(row->values[i].text);
    free(row->fields);
    free(row->field_places);
    free(row->columns);
    free(row->column_places);
    free(row);
}

/* The schemas stay in the row; what is given away are copies. */
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

/* Fills a value; returns its format, or NULL if it cannot be a parameter, or
 * if there is no memory for it. */
static const char *value_read(struct value *value, const json_t *from)
{
    value->buffers[1] = &value->as;
    switch (json_typeof(from)) {
    case JSON_INTEGER:
        value->as.whole = json_integer_value(from);
        return "l";
    case JSON_REAL:
        value->as.number = json_real_value(from);
        return "g";
    case JSON_TRUE:
    case JSON_FALSE:
        value->as.bit = json_is_true(from);
        return "b";
    case JSON_NULL:
        return "n";
    case JSON_STRING:
        value->as.offsets[1] = (int32_t)json_string_length(from);
        value->text = strdup(json_string_value(from));
        value->buffers[2] = value->text;
        return value->text != NULL ? "u" : NULL;
    default:
        return NULL;
    }
}

static int row_set(struct row *row, size_t i, const json_t *from)
{
    struct value *value = &row->values[i];
    struct ArrowSchema *field = &row->fields[i];
    struct ArrowArray *column = &row->columns[i];

    field->format = value_read(value, from);
    if (field->format == NULL)
        return json_is_string(from) ? ENOMEM : EINVAL;
    (void)snprintf(value->name, sizeof(value->name), "%zu", i + 1);
    field->name = value->name;
    field->flags = ARROW_FLAG_NULLABLE;
    field->release = on_schema_release;
    row->field_places[i] = field;
    column->length = 1;
    column->null_count = json_is_null(from) ? 1 : 0;
    column->n_buffers = json_is_null(from) ? 0 : json_is_string(from) ? 3 : 2;
    column->buffers = value->buffers;
    column->release = on_column_release;
    column->private_data = row;
    row->column_places[i] = column;
    return 0;
}

static struct row *row_new(size_t count)
{
    struct row *row = calloc(1, sizeof(*row) + count * sizeof(struct value));

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

int uva__parameters_new(const json_t *values, struct ArrowArrayStream *out,
                        struct uva_error *error)
{
    const size_t count = json_array_size(values);
    struct row *row;
    size_t i;
    int code = 0;

    if (!json_is_array(values) || count == 0 || count > UVA__PARAMETERS_MOST)
        return uva_error_set(error, EINVAL,
                             "parameters are an array of 1 to %d values",
                             UVA__PARAMETERS_MOST);
    row = row_new(count);
    if (row == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    for (i = 0; i < count && code == 0; i++)
        code = row_set(row, i, json_array_get(values, i));
    if (code == 0)
        code = uva_schema_copy(&row->schema, &row->first_schema);
    if (code != 0) {
        row_drop(row);
        return uva_error_set(error, code,
                             code == EINVAL
                                 ? "a parameter is a number, a text, true, "
                                   "false or null"
                                 : "out of memory");
    }
    out->get_schema = on_get_schema;
    out->get_next = on_get_next;
    out->get_last_error = on_get_last_error;
    out->release = on_release;
    out->private_data = row;
    return 0;
}
