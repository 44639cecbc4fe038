/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and adds up the arrays of a batch, one by one in the order of the
 * nodes of the plan. */
#include "arrow/plan_walk.h"

#include <stdlib.h>

#include "arrow/buffer.h"
#include "arrow/layout.h"
#include "arrow/plan_node.h"
#include "arrow/plan_plain.h"
#include "arrow/row_size.h"

struct plan_walk {
    const uint8_t *at; /* borrows: the next node */
    int64_t size;      /* of the rows, so far */
    bool on_host;      /* offsets can be read */
};

/* Items `from` to `from` + `rows` of an array, which has at least `need`. */
struct plan_part {
    int64_t from, rows, need;
};

/* Some columns of one parent. */
struct plan_columns {
    struct ArrowSchema *const *schemas; /* borrows */
    struct ArrowArray *const *arrays;   /* borrows */
    int64_t count;
};

static bool plan_columns(struct plan_walk *walk,
                         const struct plan_columns *columns,
                         const struct plan_part *part);

/* The bytes of the bits of items; a byte counts for the first of its bits. */
static inline int64_t plan_bits_size(const struct ArrowArray *array,
                                     const struct plan_part *part)
{
    const uint64_t at = (uint64_t)array->offset + (uint64_t)part->from;

    return (int64_t)((at + (uint64_t)part->rows + 7) / 8 - (at + 7) / 8);
}

/* Adds the bitmap, which may be absent. False if there cannot be as many nulls.
 */
static inline bool plan_nulls(const struct ArrowArray *array,
                              const struct plan_part *part, int64_t *size)
{
    if (array->buffers[0] == NULL)
        return uva__plan_nulls_are(array, 0);
    *size += plan_bits_size(array, part);
    return uva__plan_nulls_are(array, array->length);
}

/* Adds the bitmap of a column of numbers; not the numbers, of which only the
 * width is known. */
static bool plan_fixed(const struct ArrowArray *column,
                       const struct ArrowArray *dictionary,
                       const struct plan_part *part, int64_t *size)
{
    if (!uva__plan_is_sound(column, 2, 0, dictionary, part->need))
        return false;
    if (column->length == 0)
        return uva__plan_nulls_are(column, 0);
    return column->buffers[1] != NULL && plan_nulls(column, part, size);
}

/* A column of bits has as many of them as a bitmap. */
static bool plan_bits(const struct ArrowArray *column,
                      const struct plan_part *part, int64_t *size)
{
    if (!plan_fixed(column, NULL, part, size))
        return false;
    *size += plan_bits_size(column, part);
    return true;
}

/* Where texts begin and end in the data. */
struct plan_data {
    int64_t from, to;
};

/* Of all texts of a column. False if these offsets are wrong; no other ones are
 * read. */
static inline bool plan_data_of_column(const struct ArrowArray *column,
                                       int width, struct plan_data *data)
{
    const void *const offsets = column->buffers[1];

    if (offsets == NULL)
        return false;
    data->from = uva__buffer_integer(offsets, width, column->offset);
    data->to =
        uva__buffer_integer(offsets, width, column->offset + column->length);
    return data->from >= 0 && data->to >= data->from &&
           data->to >> UVA__PLAN_SIZE_BITS == 0 &&
           (data->to == 0 || column->buffers[2] != NULL);
}

/* Of some of its texts, whose offsets may be wrong. False if they lie far
 * apart.
 */
static bool plan_data_of_part(const struct ArrowArray *column, int width,
                              const struct plan_part *part,
                              struct plan_data *data)
{
    const int64_t at = column->offset + part->from;

    data->from = uva__buffer_integer(column->buffers[1], width, at);
    data->to = uva__buffer_integer(column->buffers[1], width, at + part->rows);
    if (data->from < 0 || data->to < data->from || column->buffers[2] == NULL)
        data->from = data->to = 0;
    return (data->to - data->from) >> UVA__PLAN_SIZE_BITS == 0;
}

/* Adds bitmap and data of a column of texts, and the first offset; not the
 * other offsets. */
static bool plan_text(const struct ArrowArray *column, int width,
                      const struct plan_part *part, int64_t *size)
{
    struct plan_data data;

    if (!uva__plan_is_sound(column, 3, 0, NULL, part->need))
        return false;
    if (column->length == 0)
        return uva__plan_nulls_are(column, 0);
    if (!plan_data_of_column(column, width, &data) ||
        (part->rows != column->length &&
         !plan_data_of_part(column, width, part, &data)))
        return false;
    if (part->rows > 0)
        *size +=
            (column->offset + part->from == 0) * width + data.to - data.from;
    return plan_nulls(column, part, size);
}

/* All items of a dictionary count for the first item of the column. */
static struct plan_part plan_all_names(const struct ArrowArray *column,
                                       const struct plan_part *part)
{
    const bool is_first = part->rows > 0 && column->offset + part->from == 0;

    return (struct plan_part){.rows =
                                  is_first ? column->dictionary->length : 0};
}

static bool plan_names(const struct ArrowArray *column,
                       const struct plan_part *part, int64_t *size)
{
    const struct ArrowArray *const dictionary = column->dictionary;
    struct plan_part names;

    if (dictionary == NULL || !plan_fixed(column, dictionary, part, size))
        return false;
    names = plan_all_names(column, part);
    if (!plan_text(dictionary, sizeof(int32_t), &names, size))
        return false;
    *size += names.rows * (int64_t)sizeof(int32_t);
    return true;
}

static bool plan_column(const struct ArrowArray *column,
                        enum uva__plan_type type, const struct plan_part *part,
                        int64_t *size)
{
    if (column == NULL)
        return false;
    switch (type) {
    case UVA__PLAN_FIXED:
        return plan_fixed(column, NULL, part, size);
    case UVA__PLAN_BITS:
        return plan_bits(column, part, size);
    case UVA__PLAN_TEXT:
        return plan_text(column, sizeof(int32_t), part, size);
    case UVA__PLAN_LARGE_TEXT:
        return plan_text(column, sizeof(int64_t), part, size);
    default:
        return plan_names(column, part, size);
    }
}

/* Adds up runs of columns of any kind. */
static bool plan_runs(const uint8_t *run, const uint8_t *end,
                      struct ArrowArray *const *column,
                      const struct plan_part *part, int64_t *size)
{
    *size = 0;
    for (; run < end; run += 2)
        for (int i = 0; i < run[1]; i++)
            if (!plan_column(*column++, (enum uva__plan_type)run[0], part,
                             size))
                return false;
    return true;
}

/* Neighbours of simple types. */
static bool plan_simple(struct plan_walk *walk,
                        struct ArrowArray *const *columns,
                        const struct plan_part *part)
{
    const uint8_t *const run = walk->at + UVA__PLAN_HEAD, *const end =
                                                              run +
                                                              2 * walk->at[4];
    const int width = walk->at[2] | walk->at[3] << 8;
    int64_t size;

    walk->at = end;
    if (!(part->from == 0 && part->need == part->rows &&
          (uint64_t)(part->rows - 1) >> 31 == 0 &&
          uva__plan_plain_runs(run, end, columns, part->rows, &size)) &&
        !plan_runs(run, end, columns, part, &size))
        return false;
    walk->size += size + part->rows * width;
    return true;
}

static bool plan_nothing(const struct ArrowArray *array, int64_t need)
{
    return array->release != NULL && array->dictionary == NULL &&
           (array->n_buffers | array->n_children) == 0 &&
           (uint64_t)(array->length | array->offset) >> 31 == 0 &&
           array->length >= need && uva__plan_nulls_are(array, array->length);
}

/* ---- nested ------------------------------------------------------------- */

static bool plan_row(struct plan_walk *walk, const struct ArrowSchema *schema,
                     const struct ArrowArray *array,
                     const struct plan_part *part)
{
    const int64_t n = schema->n_children;
    struct plan_part below = {0, part->rows, 0};

    if (!uva__plan_is_sound(array, 1, n, NULL, part->need) ||
        (n > 0 && array->children == NULL) ||
        !plan_nulls(array, part, &walk->size))
        return false;
    if (array->length > 0)
        below.need = array->offset + array->length;
    if (part->rows > 0)
        below.from = array->offset + part->from;
    return plan_columns(
        walk, &(struct plan_columns){schema->children, array->children, n},
        &below);
}

/* Items `from` to `to` of a child, as far as it has them. */
static bool plan_child(struct plan_walk *walk, const struct ArrowSchema *schema,
                       const struct ArrowArray *array, int64_t from, int64_t to,
                       int64_t need)
{
    struct plan_part part = {0, 0, need};
    int64_t most;

    if (array->children == NULL || array->children[0] == NULL)
        return false;
    most = array->children[0]->length;
    if (from < 0)
        from = 0;
    if (to > most)
        to = most;
    if (from < to) {
        part.from = from;
        part.rows = to - from;
    }
    return plan_columns(
        walk, &(struct plan_columns){schema->children, array->children, 1},
        &part);
}

static bool plan_equal_lists(struct plan_walk *walk,
                             const struct ArrowSchema *schema,
                             const struct ArrowArray *array,
                             const struct plan_part *part)
{
    const int64_t items = strtol(schema->format + 3, NULL, 10); /* "+w:3" */
    int64_t at, need;

    if (!uva__plan_is_sound(array, 1, 1, NULL, part->need) ||
        !plan_nulls(array, part, &walk->size))
        return false;
    at = array->offset + part->from;
    need = array->length == 0 ? 0 : array->offset + array->length;
    if (need >> 31 != 0 || (need *= items) >> UVA__PLAN_ITEMS_BITS != 0)
        return false;
    return plan_child(walk, schema, array, at * items,
                      (at + part->rows) * items, need);
}

/* The offsets are not checked. */
static bool plan_list(struct plan_walk *walk, const struct ArrowSchema *schema,
                      const struct ArrowArray *array, int width,
                      const struct plan_part *part)
{
    int64_t at, from = 0, to = 0;

    if (!uva__plan_is_sound(array, 2, 1, NULL, part->need))
        return false;
    if (array->length == 0)
        return uva__plan_nulls_are(array, 0) &&
               plan_child(walk, schema, array, 0, 0, 0);
    if (array->buffers[1] == NULL || !plan_nulls(array, part, &walk->size))
        return false;
    if (part->rows > 0) {
        at = array->offset + part->from;
        from = uva__buffer_integer(array->buffers[1], width, at);
        to = uva__buffer_integer(array->buffers[1], width, at + part->rows);
        walk->size += (part->rows + (at == 0)) * width;
    }
    return plan_child(walk, schema, array, from, to, 0);
}

static bool plan_index(struct plan_walk *walk, const struct ArrowSchema *schema,
                       const struct ArrowArray *array,
                       const struct plan_part *part)
{
    const int width = *walk->at++;
    struct plan_part names;

    if (array->dictionary == NULL ||
        !plan_fixed(array, array->dictionary, part, &walk->size))
        return false;
    walk->size += part->rows * width;
    names = plan_all_names(array, part);
    return plan_columns(
        walk,
        &(struct plan_columns){&schema->dictionary, &array->dictionary, 1},
        &names);
}

static bool plan_other(struct plan_walk *walk, const struct ArrowSchema *schema,
                       const struct ArrowArray *array,
                       const struct plan_part *part)
{
    int64_t memory, size = 0;

    if (uva__layout_check_column(schema, array, part->need, walk->on_host,
                                 &memory) != 0 ||
        memory >> UVA__PLAN_SIZE_BITS != 0)
        return false;
    if (part->rows > 0)
        size = uva__row_size_measure(schema, array, part->from, part->rows,
                                     walk->on_host);
    if (size >> UVA__PLAN_SIZE_BITS != 0)
        return false;
    walk->size += size;
    return true;
}

static bool plan_one(struct plan_walk *walk, const struct ArrowSchema *schema,
                     const struct ArrowArray *array,
                     const struct plan_part *part)
{
    if (array == NULL)
        return false;
    switch ((enum uva__plan_node) * walk->at++) {
    case UVA__PLAN_INDEX:
        return plan_index(walk, schema, array, part);
    case UVA__PLAN_NOTHING:
        return plan_nothing(array, part->need);
    case UVA__PLAN_ROW:
        return plan_row(walk, schema, array, part);
    case UVA__PLAN_EQUAL_LISTS:
        return plan_equal_lists(walk, schema, array, part);
    case UVA__PLAN_LIST:
        return plan_list(walk, schema, array, sizeof(int32_t), part);
    case UVA__PLAN_LARGE_LIST:
        return plan_list(walk, schema, array, sizeof(int64_t), part);
    default:
        return plan_other(walk, schema, array, part);
    }
}

static bool plan_columns(struct plan_walk *walk,
                         const struct plan_columns *columns,
                         const struct plan_part *part)
{
    int64_t n, i = 0;

    for (bool is_valid = true; i < columns->count; i += n) {
        n = *walk->at == UVA__PLAN_SIMPLE ? walk->at[1] : 1;
        if (*walk->at == UVA__PLAN_SIMPLE)
            is_valid = plan_simple(walk, columns->arrays + i, part);
        else
            is_valid =
                plan_one(walk, columns->schemas[i], columns->arrays[i], part);
        if (!is_valid)
            return false;
    }
    return true;
}

/* Not inline, for the sake of plain batches. */
__attribute__((noinline)) bool uva__plan_walk(const uint8_t *node,
                                              const struct ArrowSchema *schema,
                                              const struct ArrowArray *array,
                                              bool on_host, int64_t *size)
{
    struct plan_walk walk = {.at = node, .on_host = on_host};

    if (!plan_row(&walk, schema, array,
                  &(struct plan_part){.rows = array->length}))
        return false;
    *size = walk.size;
    return true;
}
