/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and binary data: offsets of 32 and 64 bits, views, values of one
 * size. Where the values lie one after the other, they stay where they are, and
 * the result keeps the array that has them. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "arrow/buffer.h"
#include "arrow/cast_kinds.h"

enum {
    VIEW_SIZE = 16,
    VIEW_INLINE = 12, /* longer values lie in a data buffer */
    WINDOWS_MAX = 256 /* data buffers of 2 GiB each */
};

/* A view: the value itself, or where it lies. */
struct view {
    int32_t size;
    char prefix[4];
    int32_t buffer; /* number of the data buffer */
    int32_t offset; /* in that */
};

/* A value: NULL and 0 of a null. */
struct bytes {
    const char *at; /* borrows */
    int64_t size;
};

static int32_t offset_width(int item)
{
    return item == UVA__CAST_OFFSETS64 ? 8 : 4;
}

/* Whether the offsets go up, so that all values are between the first and the
 * last, which were checked. */
static bool offsets_are_sound(const struct uva__cast_at *at)
{
    const int32_t width = offset_width(at->plan->from_item);
    const void *const offsets = at->array->buffers[1];
    int64_t before = 0, next;

    if (at->count == 0)
        return true;
    for (int64_t i = 0; i <= at->count; i++, before = next) {
        next = uva__buffer_integer(offsets, width, at->from + i);
        if (next < before)
            return false;
    }
    return before <= uva__buffer_integer(offsets, width,
                                         at->array->offset + at->array->length);
}

static bool view_is_sound(const struct ArrowArray *array, struct view view)
{
    const int64_t buffers = array->n_buffers - 3;
    const void *const sizes = array->buffers[array->n_buffers - 1];

    if (view.size <= VIEW_INLINE)
        return view.size >= 0;
    return view.buffer >= 0 && view.buffer < buffers && view.offset >= 0 &&
           (int64_t)view.offset + view.size <=
               uva__buffer_integer(sizes, sizeof(int64_t), view.buffer);
}

static struct view view_at(const struct uva__cast_at *at, int64_t i)
{
    struct view view;

    memcpy(&view,
           (const char *)at->array->buffers[1] + (at->from + i) * VIEW_SIZE,
           sizeof(view));
    return view;
}

static bool views_are_sound(const struct uva__cast_at *at)
{
    for (int64_t i = 0; i < at->count; i++)
        if (!uva__cast_at_is_null(at, i) &&
            !view_is_sound(at->array, view_at(at, i)))
            return false;
    return true;
}

static bool is_sound(const struct uva__cast_at *at)
{
    switch (at->plan->from_item) {
    case UVA__CAST_VIEWS:
        return views_are_sound(at);
    case UVA__CAST_FIXED:
        return true;
    default:
        return offsets_are_sound(at);
    }
}

static struct bytes value_of_view(const struct uva__cast_at *at, int64_t i)
{
    const struct view view = view_at(at, i);
    const void *const *const buffers = at->array->buffers;

    return (struct bytes){
        view.size > VIEW_INLINE
            ? (const char *)buffers[2 + view.buffer] + view.offset
            : (const char *)buffers[1] + (at->from + i) * VIEW_SIZE + 4,
        view.size};
}

/* Value `i` of sound arrays. */
static struct bytes value_at(const struct uva__cast_at *at, int64_t i)
{
    const void *const *const buffers = at->array->buffers;
    const int item = at->plan->from_item;
    const int64_t row = at->from + i;
    int64_t first;

    if (uva__cast_at_is_null(at, i))
        return (struct bytes){NULL, 0};
    if (item == UVA__CAST_VIEWS)
        return value_of_view(at, i);
    if (item == UVA__CAST_FIXED)
        return (struct bytes){(const char *)buffers[1] + row * at->plan->size,
                              at->plan->size};
    first = uva__buffer_integer(buffers[1], offset_width(item), row);
    return (struct bytes){
        (const char *)buffers[2] + first,
        uva__buffer_integer(buffers[1], offset_width(item), row + 1) - first};
}

static int fail_too_long(const struct uva__cast_at *at, int64_t i)
{
    char name[UVA__CAST_NAME_SIZE];

    uva__cast_plan_name(at->plan->to, name);
    return uva__cast_at_fail(at, uva__cast_at_row(at, i), EOVERFLOW,
                             "the values are too long for %s", name);
}

/* ---- to offsets --------------------------------------------------------- */

static void put_offset(const struct uva__cast_at *at, struct ArrowArray *out,
                       int64_t i, int64_t offset)
{
    uva__buffer_put_integer(uva__new_array_buffer(out, 1),
                            offset_width(at->plan->to_item), i, offset);
}

/* An array with room for offsets, and so many bytes of data; -1: no room. */
static int new_with_offsets(const struct uva__cast_at *at, int64_t data,
                            struct ArrowArray *out)
{
    const int64_t sizes[] = {uva__cast_at_validity_size(at),
                             (at->count + 1) * offset_width(at->plan->to_item),
                             data};

    return uva__cast_at_new(at, sizes, 3, 0, out);
}

static int64_t most_bytes(const struct uva__cast_at *at)
{
    return at->plan->to_item == UVA__CAST_OFFSETS64 ? PTRDIFF_MAX / 8
                                                    : INT32_MAX;
}

/* Copies the values. */
static int views_to_offsets(const struct uva__cast_at *at,
                            struct ArrowArray *out)
{
    int64_t bytes = 0;
    char *data;
    int code;

    for (int64_t i = 0; i < at->count; i++) {
        bytes += value_at(at, i).size;
        if (bytes > most_bytes(at))
            return fail_too_long(at, i);
    }
    code = new_with_offsets(at, bytes, out);
    if (code != 0)
        return code;
    data = uva__new_array_buffer(out, 2);
    bytes = 0;
    put_offset(at, out, 0, 0);
    for (int64_t i = 0; i < at->count; i++) {
        const struct bytes value = value_at(at, i);

        if (value.size > 0)
            memcpy(data + bytes, value.at, (size_t)value.size);
        bytes += value.size;
        put_offset(at, out, i + 1, bytes);
    }
    return 0;
}

/* The offset of value `i` from the first byte of the data. */
static int64_t offset_of(const struct uva__cast_at *at, int64_t i)
{
    const int item = at->plan->from_item;

    return item == UVA__CAST_FIXED
               ? (at->from + i) * at->plan->size
               : uva__buffer_integer(at->array->buffers[1], offset_width(item),
                                     at->from + i);
}

static const char *data_of(const struct uva__cast_at *at)
{
    return at->array->buffers[at->plan->from_item == UVA__CAST_FIXED ? 1 : 2];
}

/* Keeps the values where they are. Offsets that would be too large begin at
 * 0. */
static int data_to_offsets(const struct uva__cast_at *at,
                           struct ArrowArray *out)
{
    const int64_t first = at->count > 0 ? offset_of(at, 0) : 0,
                  last = at->count > 0 ? offset_of(at, at->count) : 0;
    const int64_t base = last > most_bytes(at) ? first : 0;
    int code = new_with_offsets(at, -1, out);

    if (code != 0)
        return code;
    put_offset(at, out, 0, first - base);
    for (int64_t i = 0; i < at->count; i++) {
        const int64_t end = offset_of(at, i + 1) - base;

        if (end > most_bytes(at))
            return fail_too_long(at, i);
        put_offset(at, out, i + 1, end);
    }
    if (data_of(at) != NULL)
        out->buffers[2] = data_of(at) + base;
    return 0;
}

/* ---- to views ----------------------------------------------------------- */

/* Parts of the data that 32 bits count: the data buffers of views. */
struct windows {
    int64_t count;
    int64_t begin[WINDOWS_MAX], end[WINDOWS_MAX]; /* in the data */
};

/* Makes room for a long value. Values of one array go up. */
static bool windows_add(struct windows *w, int64_t offset, int64_t size)
{
    if (size > INT32_MAX)
        return false;
    if (w->count == 0 || offset + size - w->begin[w->count - 1] > INT32_MAX) {
        if (w->count == WINDOWS_MAX)
            return false;
        w->begin[w->count++] = offset;
    }
    w->end[w->count - 1] = offset + size;
    return true;
}

static void put_view(const struct uva__cast_at *at, struct ArrowArray *out,
                     int64_t i, const struct windows *w, int64_t *window)
{
    const struct bytes value = value_at(at, i);
    char *const to = (char *)uva__new_array_buffer(out, 1) + i * VIEW_SIZE;
    struct view view = {.size = (int32_t)value.size};

    memset(to, 0, VIEW_SIZE);
    if (value.size <= VIEW_INLINE) {
        memcpy(to, &view.size, sizeof(view.size));
        if (value.size > 0)
            memcpy(to + 4, value.at, (size_t)value.size);
        return;
    }
    while (offset_of(at, i) + value.size > w->end[*window])
        ++*window;
    memcpy(view.prefix, value.at, sizeof(view.prefix));
    view.buffer = (int32_t)*window;
    view.offset = (int32_t)(offset_of(at, i) - w->begin[*window]);
    memcpy(to, &view, sizeof(view));
}

static int new_with_views(const struct uva__cast_at *at,
                          const struct windows *w, struct ArrowArray *out)
{
    int64_t sizes[WINDOWS_MAX + 3] = {uva__cast_at_validity_size(at),
                                      at->count * VIEW_SIZE};
    int64_t *lengths;
    int code;

    for (int64_t i = 0; i < w->count; i++)
        sizes[2 + i] = -1;
    sizes[2 + w->count] = w->count * (int64_t)sizeof(int64_t);
    code = uva__cast_at_new(at, sizes, 3 + w->count, 0, out);
    if (code != 0)
        return code;
    lengths = uva__new_array_buffer(out, 2 + w->count);
    for (int64_t i = 0; i < w->count; i++) {
        out->buffers[2 + i] = data_of(at) + w->begin[i];
        lengths[i] = w->end[i] - w->begin[i];
    }
    return 0;
}

static int data_to_views(const struct uva__cast_at *at, struct ArrowArray *out,
                         bool *shares)
{
    struct windows w;
    int64_t window = 0;
    int code;

    w.count = 0;
    for (int64_t i = 0; i < at->count; i++) {
        const int64_t size = value_at(at, i).size;

        if (size > VIEW_INLINE && !windows_add(&w, offset_of(at, i), size))
            return fail_too_long(at, i);
    }
    code = new_with_views(at, &w, out);
    for (int64_t i = 0; i < at->count && code == 0; i++)
        put_view(at, out, i, &w, &window);
    *shares = w.count > 0;
    return code;
}

/* ---- to values of one size ---------------------------------------------- */

static int fail_size(const struct uva__cast_at *at, int64_t row, int64_t size)
{
    char name[UVA__CAST_NAME_SIZE];

    uva__cast_plan_name(at->plan->to, name);
    return uva__cast_at_fail(at, row, EOVERFLOW,
                             "a value of %" PRId64 " bytes is no %s", size,
                             name);
}

/* Copies the values, and zeroes in place of those that do not matter. */
static int to_fixed(const struct uva__cast_at *at, struct ArrowArray *out)
{
    const int64_t size = at->plan->size;
    const int64_t sizes[] = {uva__cast_at_validity_size(at),
                             uva__new_array_size(at->count, size)};
    int code = uva__cast_at_new(at, sizes, 2, 0, out);

    for (int64_t i = 0; i < at->count && code == 0; i++) {
        const struct bytes value = value_at(at, i);
        char *const to = (char *)uva__new_array_buffer(out, 1) + i * size;
        const int64_t row =
            value.size != size ? uva__cast_at_row(at, i) : INT64_C(-1);

        if (row >= 0)
            return fail_size(at, row, value.size);
        if (size > 0 && value.size == size)
            memcpy(to, value.at, (size_t)size);
        else if (size > 0)
            memset(to, 0, (size_t)size);
    }
    return code;
}

int uva__cast_bytes(const struct uva__cast_at *at, struct ArrowArray *out)
{
    const struct uva__cast_plan *const plan = at->plan;
    const bool moves = plan->from_item == UVA__CAST_VIEWS;
    bool shares = !moves && plan->to_item != UVA__CAST_FIXED;
    int code;

    if (!is_sound(at))
        return uva__cast_at_fail(at, -1, EINVAL,
                                 "its offsets or views are wrong");
    if (plan->to_item == UVA__CAST_FIXED)
        code = to_fixed(at, out);
    else if (plan->to_item == UVA__CAST_VIEWS)
        code = data_to_views(at, out, &shares);
    else
        code = moves ? views_to_offsets(at, out) : data_to_offsets(at, out);
    if (code != 0)
        return code;
    uva__cast_at_validity(at, out);
    if (shares)
        uva__new_array_keep(out, at->array);
    return 0;
}
