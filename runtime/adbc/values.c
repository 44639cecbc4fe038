/* SPDX-License-Identifier: Apache-2.0 */
/* The row is one block of memory, with the texts at its end. The stream and
 * each array that is given away count it: children may be moved out of their
 * parent, and then live longer. */
#include "adbc/values.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "uvarrow/arrow.h"

size_t uva__values_count(const struct uva_value *values)
{
    size_t count = 0;

    while (values != NULL && values[count].type != UVA_VALUE_END)
        count++;
    return count;
}

/* ---- the check ---------------------------------------------------------- */

/* The bytes that may follow a lead byte of UTF-8. */
struct lead {
    uint8_t from, to;  /* the lead bytes */
    uint8_t size;      /* of the character */
    uint8_t low, high; /* of its second byte; further bytes are 80 to BF */
};

static const struct lead leads[] = {
    {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F},
    {0xEE, 0xEF, 3, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x90, 0xBF},
    {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

static bool lead_fits(const struct lead *lead, const uint8_t *at, size_t left)
{
    if (left < lead->size || at[1] < lead->low || at[1] > lead->high)
        return false;
    for (size_t i = 2; i < lead->size; i++)
        if ((at[i] & 0xC0) != 0x80)
            return false;
    return true;
}

/* The size of a character; 0: these bytes are none. */
static size_t character_size(const uint8_t *at, size_t left)
{
    if (at[0] < 0x80)
        return 1;
    for (size_t i = 0; i < sizeof(leads) / sizeof(*leads); i++)
        if (at[0] >= leads[i].from && at[0] <= leads[i].to)
            return lead_fits(&leads[i], at, left) ? leads[i].size : 0;
    return 0;
}

static bool text_is_utf8(const void *text, size_t size)
{
    const uint8_t *at = text;
    size_t step;

    for (; size > 0; at += step, size -= step) {
        step = character_size(at, size);
        if (step == 0)
            return false;
    }
    return true;
}

/* The bytes of a text, or of bytes. */
static size_t value_size(const struct uva_value *value)
{
    if (value->type == UVA_VALUE_TEXT && value->size == 0)
        return strlen(value->data);
    return value->type >= UVA_VALUE_TEXT ? value->size : 0;
}

/* `left` bytes have room. */
static const char *data_fault(const struct uva_value *value, size_t left)
{
    const bool is_text = value->type == UVA_VALUE_TEXT;

    if (value->data == NULL && (is_text || value->size > 0))
        return "data is NULL";
    if (value_size(value) > left)
        return "2 GiB of texts and bytes, or more";
    return is_text && !text_is_utf8(value->data, value_size(value))
               ? "the text is not UTF-8"
               : NULL;
}

static const char *name_fault(const char *name, bool is_wanted)
{
    if ((name != NULL) != is_wanted)
        return "either all values have names, or none has";
    if (name == NULL)
        return NULL;
    if (name[0] == '\0')
        return "the name is empty";
    return text_is_utf8(name, strlen(name)) ? NULL : "the name is not UTF-8";
}

static const char *value_fault(const struct uva_value *value, bool is_named,
                               size_t left)
{
    const char *fault;

    switch (value->type) {
    case UVA_VALUE_NULL:
    case UVA_VALUE_INT:
    case UVA_VALUE_DOUBLE:
        fault = NULL;
        break;
    case UVA_VALUE_BOOL:
        fault = value->integer == 0 || value->integer == 1
                    ? NULL
                    : "a truth value is 0 or 1";
        break;
    case UVA_VALUE_TEXT:
    case UVA_VALUE_BYTES:
        fault = data_fault(value, left);
        break;
    default:
        fault = "the type is none of enum uva_value_type";
    }
    return fault != NULL ? fault : name_fault(value->name, is_named);
}

/* Members without a type: it was forgotten. */
static bool end_is_clear(const struct uva_value *end)
{
    return end->name == NULL && end->integer == 0 && end->number == 0 &&
           end->data == NULL && end->size == 0;
}

int uva__values_check(const struct uva_value *values, struct uva_error *error)
{
    const size_t count = uva__values_count(values);
    size_t left = INT32_MAX;

    for (size_t i = 0; i < count; i++) {
        const char *fault =
            value_fault(&values[i], values[0].name != NULL, left);

        if (fault != NULL)
            return uva_error_set(error, EINVAL, "values[%zu]: %s", i, fault);
        left -= value_size(&values[i]);
    }
    return values == NULL || end_is_clear(&values[count])
               ? 0
               : uva_error_set(error, EINVAL, "values[%zu]: it has no type",
                               count);
}

/* ---- the row ------------------------------------------------------------ */

/* One column. */
struct cell {
    union {
        int64_t whole;
        double number;
        uint8_t bit;
        int32_t offsets[2];
    } as;
    char number[24];        /* its name, if it has no other */
    const void *buffers[3]; /* as in struct ArrowArray */
    struct ArrowSchema field;
    struct ArrowArray column;
};

struct row {
    atomic_long refs;            /* the stream, and arrays */
    bool was_read;               /* the batch was given */
    size_t count;                /* of cells */
    struct ArrowSchema schema;   /* owns no other memory */
    struct ArrowSchema **fields; /* in this block, as all here */
    struct ArrowArray **columns;
    const void *no_bitmap[1]; /* buffers of the batch */
    struct cell cells[];
};

static void row_drop(struct row *row)
{
    if (atomic_fetch_sub(&row->refs, 1) == 1)
        free(row);
}

/* The schema stays in the row; copies are given away. */
static void on_schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void on_column_release(struct ArrowArray *array)
{
    array->release = NULL;
    row_drop(array->private_data);
}

static void on_batch_release(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
    on_column_release(array);
}

static int on_get_schema(struct ArrowArrayStream *stream,
                         struct ArrowSchema *out)
{
    const struct row *row = stream->private_data;

    return uva_schema_copy(&row->schema, out);
}

static int on_get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct row *row = stream->private_data;

    *out = (struct ArrowArray){0};
    if (row->was_read)
        return 0;
    row->was_read = true;
    (void)atomic_fetch_add(&row->refs, (long)row->count + 1);
    *out = (struct ArrowArray){.length = 1,
                               .n_buffers = 1,
                               .buffers = row->no_bitmap,
                               .n_children = (int64_t)row->count,
                               .children = row->columns,
                               .release = on_batch_release,
                               .private_data = row};
    return 0;
}

static const char *on_get_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void on_release(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
    row_drop(stream->private_data);
}

/* ---- filling it in ------------------------------------------------------ */

static const struct {
    const char *format;
    int64_t n_buffers;
} types[] = {
    [UVA_VALUE_NULL] = {"n", 0}, [UVA_VALUE_BOOL] = {"b", 2},
    [UVA_VALUE_INT] = {"l", 2},  [UVA_VALUE_DOUBLE] = {"g", 2},
    [UVA_VALUE_TEXT] = {"u", 3}, [UVA_VALUE_BYTES] = {"z", 3},
};

/* Copies bytes to `*end`, the end of the block so far. */
static char *bytes_add(char **end, const void *from, size_t size)
{
    char *to = *end;

    if (size > 0)
        memcpy(to, from, size);
    *end += size;
    return to;
}

static void cell_set(struct cell *cell, const struct uva_value *from,
                     char **end)
{
    cell->buffers[1] = &cell->as;
    if (from->type == UVA_VALUE_BOOL) {
        cell->as.bit = (uint8_t)from->integer;
    } else if (from->type == UVA_VALUE_DOUBLE) {
        cell->as.number = from->number;
    } else if (from->type == UVA_VALUE_INT) {
        cell->as.whole = from->integer;
    } else {
        cell->as.offsets[1] = (int32_t)value_size(from);
        cell->buffers[2] = bytes_add(end, from->data, value_size(from));
    }
}

static void column_set(struct row *row, size_t i, const struct uva_value *from,
                       char **end)
{
    struct cell *cell = &row->cells[i];

    cell_set(cell, from, end);
    (void)snprintf(cell->number, sizeof(cell->number), "%zu", i + 1);
    cell->field = (struct ArrowSchema){
        .format = types[from->type].format,
        .name = from->name != NULL
                    ? bytes_add(end, from->name, strlen(from->name) + 1)
                    : cell->number,
        .flags = ARROW_FLAG_NULLABLE,
        .release = on_schema_release};
    cell->column =
        (struct ArrowArray){.length = 1,
                            .null_count = from->type == UVA_VALUE_NULL ? 1 : 0,
                            .n_buffers = types[from->type].n_buffers,
                            .buffers = cell->buffers,
                            .release = on_column_release,
                            .private_data = row};
    row->fields[i] = &cell->field;
    row->columns[i] = &cell->column;
}

/* NULL without memory. Gives the place of the texts. */
static struct row *row_new(const struct uva_value *values, size_t count,
                           char **texts)
{
    size_t bytes = 0;
    struct row *row;

    for (size_t i = 0; i < count; i++)
        bytes += value_size(&values[i]) +
                 (values[i].name != NULL ? strlen(values[i].name) + 1 : 0);
    row = calloc(1, sizeof(*row) +
                        count * (sizeof(struct cell) + 2 * sizeof(void *)) +
                        bytes + 1);
    if (row == NULL)
        return NULL;
    row->count = count;
    row->fields = (struct ArrowSchema **)&row->cells[count];
    row->columns = (struct ArrowArray **)&row->fields[count];
    *texts = (char *)&row->columns[count];
    return row;
}

int uva__values_new(const struct uva_value *values,
                    struct ArrowArrayStream *out)
{
    const size_t count = uva__values_count(values);
    char *end;
    struct row *row = row_new(values, count, &end);

    if (row == NULL)
        return ENOMEM;
    atomic_init(&row->refs, 1);
    row->schema = (struct ArrowSchema){.format = "+s",
                                       .name = "",
                                       .n_children = (int64_t)count,
                                       .children = row->fields,
                                       .release = on_schema_release};
    for (size_t i = 0; i < count; i++)
        column_set(row, i, &values[i], &end);
    *out = (struct ArrowArrayStream){.get_schema = on_get_schema,
                                     .get_next = on_get_next,
                                     .get_last_error = on_get_last_error,
                                     .release = on_release,
                                     .private_data = row};
    return 0;
}
