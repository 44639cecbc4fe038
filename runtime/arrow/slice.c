/* SPDX-License-Identifier: Apache-2.0 */
/* Slices: a shared array, of which each owner has its own structs, gets another
 * offset and length in these. */
#include "arrow/slice.h"

#include <assert.h>
#include <string.h>

#include "arrow/buffer.h"

/* How many of the remaining items are null: zero or all, as before, or a number
 * that only the validity bitmap knows. */
static int64_t slice_null_count(const struct ArrowArray *array, int64_t count)
{
    if (array->null_count == 0 || count == 0)
        return 0;
    return array->null_count == array->length ? count : -1;
}

/* An empty array begins at 0: Arrow C++ refuses empty views at a later place.
 */
static void slice_node(struct ArrowArray *array, int64_t from, int64_t count)
{
    assert(from >= 0 && count >= 0 && from <= array->length - count);
    array->null_count = slice_null_count(array, count);
    array->offset = count == 0 ? 0 : array->offset + from;
    array->length = count;
}

/* A record batch has no null rows, and its offset goes into its columns; a
 * bitmap is left out, as it begins elsewhere, and some consumers read it
 * although no row is null. Other rows keep theirs, as their bits have it; items
 * of their columns after the last row go, since some consumers give the whole
 * column. */
void uva__slice_reduce(const struct ArrowSchema *schema,
                       struct ArrowArray *array, int64_t from, int64_t count)
{
    const int64_t at = array->offset + from;
    const bool is_struct = strcmp(schema->format, "+s") == 0;
    const bool has_nulls = is_struct && uva__buffer_may_have_nulls(array);

    slice_node(array, from, count);
    for (int64_t i = 0; is_struct && i < array->n_children; i++)
        if (has_nulls)
            slice_node(array->children[i], 0, array->offset + count);
        else
            slice_node(array->children[i], at, count);
    if (!is_struct || has_nulls)
        return;
    if (at != 0 && array->n_buffers > 0 && array->buffers[0] != NULL)
        array->buffers = (const void **)uva__array_share_no_bitmap;
    array->offset = 0;
}

int uva__slice_array(const struct uva_allocator *allocator,
                     const struct ArrowSchema *schema,
                     struct ArrowDeviceArray *array, int64_t from,
                     int64_t count, struct ArrowDeviceArray *out)
{
    const int code = uva__array_share(allocator, array, out);

    if (code == 0)
        uva__slice_reduce(schema, &out->array, from, count);
    return code;
}

int uva__slice_off(const struct uva_allocator *allocator,
                   const struct ArrowSchema *schema,
                   struct uva__array_share_room *room,
                   struct ArrowDeviceArray *array, int64_t count, int64_t parts,
                   struct ArrowDeviceArray *out)
{
    const int code =
        uva__array_share_more(allocator, room, array, parts - 1, out);

    if (code != 0)
        return code;
    uva__slice_reduce(schema, &out->array, 0, count);
    uva__slice_reduce(schema, &array->array, count,
                      array->array.length - count);
    return 0;
}
