/* SPDX-License-Identifier: Apache-2.0 */
/* The size of rows: a walk down the array with the range of items that is
 * theirs. Positions are those in the buffers, so `offset` is part of them.
 *
 * Slices of one array add up to it, as every byte counts for one position.
 * Position 0 has the parts that belong to no range of items: the dictionary,
 * the first of the offsets, and whatever could not be read. A run counts where
 * it begins.
 *
 * Shapes were checked by layout.c, values were not: ranges are clipped to the
 * items that exist. Items that several rows refer to are visited for each of
 * them, so the work of one walk is bounded. The bound is no lower, as a batch
 * of a million rows may well have ten columns of views. */
#include "arrow/row_size.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/bits.h"
#include "arrow/buffer.h"
#include "arrow/format.h"
#include "base/sum.h"

enum {
    ROW_SIZE_WORK_MAX = 1 << 24, /* items and nodes that one walk looks at */
    ROW_SIZE_VIEW_INLINE = 12    /* bytes of the longest text within its view */
};

struct row_size_walk {
    bool on_host; /* offsets and the like can be read */
    int64_t left; /* items and nodes that it may look at */
};

/* Some items of an array. */
struct row_size_part {
    const struct ArrowSchema *schema; /* borrows */
    const struct ArrowArray *array;   /* borrows */
    int64_t at;                       /* position of the first */
    int64_t count;                    /* number of them */
};

static int64_t row_size_node(struct row_size_walk *walk,
                             const struct row_size_part *part);

/* Whether it may look at `count` items; then they are counted. */
static bool row_size_may_read(struct row_size_walk *walk, int64_t count)
{
    if (!walk->on_host || count > walk->left)
        return false;
    walk->left -= count;
    return true;
}

static bool row_size_is_null(const struct ArrowArray *array, int64_t at)
{
    return array->buffers[0] != NULL && !uva__bits_get(array->buffers[0], at);
}

/* ---- children ----------------------------------------------------------- */

/* The size of items `from` to `to` of a child, as far as it has them. */
static int64_t row_size_child(struct row_size_walk *walk,
                              const struct row_size_part *part, int64_t i,
                              int64_t from, int64_t to)
{
    const struct ArrowArray *child = part->array->children[i];

    if (from < 0)
        from = 0;
    if (to > child->length)
        to = child->length;
    return from >= to
               ? 0
               : row_size_node(walk, &(struct row_size_part){
                                         part->schema->children[i], child,
                                         child->offset + from, to - from});
}

/* The size of the same items of all children. */
static int64_t row_size_columns(struct row_size_walk *walk,
                                const struct row_size_part *part)
{
    int64_t sum = 0;

    for (int64_t i = 0; i < part->array->n_children; i++)
        sum = uva__sum(sum, row_size_child(walk, part, i, part->at,
                                           part->at + part->count));
    return sum;
}

/* Children of which it is not known which rows have which items. */
static int64_t row_size_unread(struct row_size_walk *walk,
                               const struct row_size_part *part)
{
    int64_t sum = 0;

    for (int64_t i = 0; i < part->array->n_children && part->at == 0; i++)
        sum = uva__sum(sum, row_size_child(walk, part, i, 0, INT64_MAX));
    return sum;
}

/* The size of a fixed-size list was checked with its format. The child may be
 * as long as an integer can be, and is not longer. */
static int64_t row_size_of_equal_lists(struct row_size_walk *walk,
                                       const struct row_size_part *part)
{
    const int64_t size = strtol(part->schema->format + 3, NULL, 10);
    const int64_t most = size > 0 ? INT64_MAX / size : INT64_MAX;
    const int64_t to = part->at + part->count;

    return part->at > most ? 0
                           : row_size_child(walk, part, 0, part->at * size,
                                            to > most ? INT64_MAX : to * size);
}

static int64_t row_size_of_lists(struct row_size_walk *walk,
                                 const struct row_size_part *part,
                                 int32_t width)
{
    const void *offsets = part->array->buffers[1];

    if (!walk->on_host)
        return row_size_unread(walk, part);
    return row_size_child(
        walk, part, 0, uva__buffer_integer(offsets, width, part->at),
        uva__buffer_integer(offsets, width, part->at + part->count));
}

/* Consecutive items of a child. */
struct row_size_run {
    int64_t from, to;
};

/* Adds items to a run, or counts the run and begins another one. */
static int64_t row_size_extend(struct row_size_walk *walk,
                               const struct row_size_part *part, int64_t child,
                               struct row_size_run *run,
                               struct row_size_run more)
{
    int64_t sum = 0;

    if (more.from == run->to) {
        run->to = more.to;
        return 0;
    }
    sum = row_size_child(walk, part, child, run->from, run->to);
    *run = more;
    return sum;
}

static int64_t row_size_of_list_views(struct row_size_walk *walk,
                                      const struct row_size_part *part,
                                      int32_t width)
{
    const int64_t most = part->array->children[0]->length;
    struct row_size_run run = {0, 0};
    int64_t sum = 0, from, size;

    if (!row_size_may_read(walk, part->count))
        return row_size_unread(walk, part);
    for (int64_t at = part->at; at < part->at + part->count; at++) {
        from = uva__buffer_integer(part->array->buffers[1], width, at);
        size = uva__buffer_integer(part->array->buffers[2], width, at);
        if (from < 0 || from > most || size <= 0 || size > most - from ||
            row_size_is_null(part->array, at))
            continue;
        sum = uva__sum(
            sum, row_size_extend(walk, part, 0, &run,
                                 (struct row_size_run){from, from + size}));
    }
    return uva__sum(sum, row_size_child(walk, part, 0, run.from, run.to));
}

/* The size of the rows with type id `id` in child `i` of a dense union. */
static int64_t row_size_of_member(struct row_size_walk *walk,
                                  const struct row_size_part *part, int64_t i,
                                  long id)
{
    const int64_t most = part->array->children[i]->length;
    const int8_t *ids = part->array->buffers[0];
    struct row_size_run run = {0, 0};
    int64_t sum = 0, from;

    for (int64_t at = part->at; at < part->at + part->count; at++) {
        if (ids[at] != id)
            continue;
        from =
            uva__buffer_integer(part->array->buffers[1], sizeof(int32_t), at);
        if (from >= 0 && from < most)
            sum = uva__sum(
                sum, row_size_extend(walk, part, i, &run,
                                     (struct row_size_run){from, from + 1}));
    }
    return uva__sum(sum, row_size_child(walk, part, i, run.from, run.to));
}

static int64_t row_size_of_dense_union(struct row_size_walk *walk,
                                       const struct row_size_part *part)
{
    const int64_t n = part->array->n_children;
    const char *ids = part->schema->format + 3; /* of "+ud:1,2" */
    char *behind;
    int64_t sum = 0;

    if (part->count > INT64_MAX / 128 ||
        !row_size_may_read(walk, part->count * n)) /* 128 members at most */
        return row_size_unread(walk, part);
    for (int64_t i = 0; i < n; i++, ids = behind) {
        const long id = strtol(ids + 1, &behind, 10);

        sum = uva__sum(sum, row_size_of_member(walk, part, i, id));
    }
    return sum;
}

/* How many runs begin before `at`: the first at 0, each other one at the end of
 * the one before it. Ends in disorder give some number. */
static int64_t row_size_runs_before(const struct ArrowArray *ends,
                                    int32_t width, int64_t at)
{
    int64_t low = 0, high = ends->length;

    if (at == 0)
        return 0;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (uva__buffer_integer(ends->buffers[1], width,
                                ends->offset + middle) < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ends->length ? low + 1 : low;
}

static int64_t row_size_of_runs(struct row_size_walk *walk,
                                const struct row_size_part *part)
{
    const struct ArrowArray *ends = part->array->children[0];
    const char *format = part->schema->children[0]->format;
    const int32_t width = uva__format_width(format);
    int64_t from, to;

    if (!walk->on_host || width < 2 || strchr("sil", format[0]) == NULL)
        return row_size_unread(walk, part);
    from = row_size_runs_before(ends, width, part->at);
    to = row_size_runs_before(ends, width, part->at + part->count);
    return uva__sum(row_size_child(walk, part, 0, from, to),
                    row_size_child(walk, part, 1, from, to));
}

static int64_t row_size_below(struct row_size_walk *walk,
                              const struct row_size_part *part,
                              const struct uva__layout *layout)
{
    const char *kind = part->schema->format + 1; /* after the '+' */

    if (kind[0] == 's' || strncmp(kind, "us:", 3) == 0)
        return row_size_columns(walk, part);
    if (kind[0] == 'w')
        return row_size_of_equal_lists(walk, part);
    if (kind[0] == 'v')
        return row_size_of_list_views(walk, part, layout->buffers[1].width);
    if (kind[0] == 'u')
        return row_size_of_dense_union(walk, part);
    if (kind[0] == 'r')
        return row_size_of_runs(walk, part);
    return row_size_of_lists(walk, part, layout->buffers[1].width);
}

/* ---- buffers ------------------------------------------------------------ */

/* Texts that do not lie within their views. No size is larger than all data. */
static int64_t row_size_of_views(struct row_size_walk *walk,
                                 const struct row_size_part *part,
                                 const struct uva__layout *layout)
{
    const struct ArrowArray *array = part->array;
    const int64_t last = array->n_buffers - 1, n = last - layout->n_buffers;
    int64_t sum = part->at == 0 ? n * 8 : 0, most = 0;

    if (n == 0 || !walk->on_host)
        return sum;
    for (int64_t i = 0; i < n; i++)
        most += uva__buffer_integer(array->buffers[last], sizeof(int64_t), i);
    if (!row_size_may_read(walk, part->count))
        return part->at == 0 ? sum + most : sum;
    for (int64_t at = part->at; at < part->at + part->count; at++) {
        const int64_t size =
            uva__buffer_integer(array->buffers[1], sizeof(int32_t), at * 4);

        if (size > ROW_SIZE_VIEW_INLINE && !row_size_is_null(array, at))
            sum = uva__sum(sum, size < most ? size : most);
    }
    return sum;
}

/* Offsets of the items within a list were not checked. */
static int64_t row_size_of_data(const struct row_size_walk *walk,
                                const struct row_size_part *part,
                                const void *offsets, int32_t width)
{
    int64_t from, to;

    if (!walk->on_host)
        return 0;
    from = uva__buffer_integer(offsets, width, part->at);
    to = uva__buffer_integer(offsets, width, part->at + part->count);
    return from >= 0 && to > from ? to - from : 0;
}

static int64_t row_size_buffer(const struct row_size_walk *walk,
                               const struct row_size_part *part,
                               const struct uva__layout *layout, int64_t i)
{
    const struct uva__layout_buffer *const buffer = &layout->buffers[i];

    if (part->array->buffers[i] == NULL) /* no nulls, or no data */
        return 0;
    switch (buffer->kind) {
    case UVA__BUFFER_FIXED:
        return part->count * buffer->width;
    case UVA__BUFFER_OFFSETS:
        return (part->count + (part->at == 0)) * buffer->width;
    case UVA__BUFFER_DATA:
        return row_size_of_data(walk, part, part->array->buffers[i - 1],
                                buffer[-1].width);
    default: /* bits */
        return uva__bits_bytes(part->at + part->count) -
               uva__bits_bytes(part->at);
    }
}

/* Most columns. */
static int64_t row_size_of_numbers(const struct row_size_part *part,
                                   int32_t width)
{
    return part->count * width +
           (part->array->buffers[0] == NULL
                ? 0
                : uva__bits_bytes(part->at + part->count) -
                      uva__bits_bytes(part->at));
}

/* ---- the walk ----------------------------------------------------------- */

static int64_t row_size_node(struct row_size_walk *walk,
                             const struct row_size_part *part)
{
    const struct ArrowArray *array = part->array;
    const int32_t width = uva__format_width(part->schema->format);
    struct uva__layout layout;
    int64_t sum = 0;
    int code;

    if (walk->left-- <= 0)
        return 0;
    if (width > 0 && array->dictionary == NULL)
        return row_size_of_numbers(part, width);
    code = uva__format_read(part->schema->format, &layout);
    assert(code == 0);
    (void)code;
    for (int32_t i = 0; i < layout.n_buffers; i++)
        sum = uva__sum(sum, row_size_buffer(walk, part, &layout, i));
    if (layout.variadic)
        sum = uva__sum(sum, row_size_of_views(walk, part, &layout));
    if (array->n_children > 0)
        sum = uva__sum(sum, row_size_below(walk, part, &layout));
    if (array->dictionary != NULL && array->dictionary->length > 0 &&
        part->at == 0) {
        const struct row_size_part values = {
            part->schema->dictionary, array->dictionary,
            array->dictionary->offset, array->dictionary->length};

        sum = uva__sum(sum, row_size_node(walk, &values));
    }
    return sum;
}

int64_t uva__row_size_measure(const struct ArrowSchema *schema,
                              const struct ArrowArray *array, int64_t from,
                              int64_t count, bool on_host)
{
    struct row_size_walk walk = {.on_host = on_host, .left = ROW_SIZE_WORK_MAX};

    assert(from >= 0 && count >= 0 && count <= array->length - from);
    return count == 0 ? 0
                      : row_size_node(&walk, &(struct row_size_part){
                                                 schema, array,
                                                 array->offset + from, count});
}
