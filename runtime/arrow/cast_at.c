/* SPDX-License-Identifier: Apache-2.0 */
/* The way up from an item to its row, the texts of errors, and new arrays. */
#include "arrow/cast_at.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/buffer.h"

/* The list that item `i` of the child is in: the last one that begins there or
 * before. The offsets are those of the result, which begin at 0. */
static int64_t list_of(const struct uva__cast_at *at, int64_t i)
{
    const void *const offsets = at->out->buffers[1];
    int64_t low = 0, high = at->count;

    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;

        if (uva__buffer_integer(offsets, at->plan->to_width, middle) <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The type id of child `i` of a union, "+us:3,5". */
static int id_of_member(const char *format, int64_t i)
{
    const char *at = strchr(format, ':') + 1;

    for (; i > 0; i--)
        at = strchr(at, ',') + 1;
    return (int)strtol(at, NULL, 10);
}

static bool is_member(const struct uva__cast_at *at, int64_t row, int id)
{
    return ((const int8_t *)at->array->buffers[0])[at->from + row] == id;
}

/* The row of a dense union that has item `i` of child `child` and is not
 * hidden. */
static int64_t dense_row(const struct uva__cast_at *at, int64_t child,
                         int64_t i)
{
    const int id = id_of_member(at->plan->from->format, child);

    for (int64_t row = 0; row < at->count; row++)
        if (is_member(at, row, id) &&
            uva__buffer_integer(at->out->buffers[1], 4, row) == i) {
            const int64_t found = uva__cast_at_row(at, row);

            if (found >= 0)
                return found;
        }
    return -1;
}

int64_t uva__cast_at_row_of_null(const struct uva__cast_at *at, int64_t i)
{
    const struct uva__cast_at *const up = at->up;

    if (up == NULL)
        return i;
    switch (up->plan->kind) {
    case UVA__CAST_LIST:
        return uva__cast_at_row(up, list_of(up, i));
    case UVA__CAST_FIXED_LIST:
        return uva__cast_at_row(up, i / up->plan->size);
    case UVA__CAST_SPARSE:
        return is_member(up, i,
                         id_of_member(up->plan->from->format, at->plan->child))
                   ? uva__cast_at_row(up, i)
                   : -1;
    case UVA__CAST_DENSE:
        return dense_row(up, at->plan->child, i);
    case UVA__CAST_DECODE: /* nulls were decoded, too */
        return uva__cast_at_row_of_null(up, i);
    default:
        return uva__cast_at_row(up, i);
    }
}

int64_t uva__cast_at_row(const struct uva__cast_at *at, int64_t i)
{
    return uva__cast_at_is_null(at, i) ? -1 : uva__cast_at_row_of_null(at, i);
}

int uva__cast_at_fail(const struct uva__cast_at *at, int64_t row, int code,
                      const char *format, ...)
{
    char path[UVA__CAST_PATH_SIZE], where[32] = "", what[256];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    uva__cast_plan_path(at->plan, path);
    if (row >= 0)
        (void)snprintf(where, sizeof(where), "%srow %lld",
                       path[0] != '\0' ? ", " : "", (long long)row);
    return uva_error_set(at->error, code, "%s%s%s%s", path, where,
                         path[0] != '\0' || row >= 0 ? ": " : "", what);
}

/* ---- new arrays --------------------------------------------------------- */

int64_t uva__cast_at_validity_size(const struct uva__cast_at *at)
{
    return uva__cast_at_has_nulls(at) ? uva__bits_bytes(at->count) : -1;
}

int uva__cast_at_new(const struct uva__cast_at *at, const int64_t *sizes,
                     int64_t n_buffers, int64_t n_children,
                     struct ArrowArray *out)
{
    const struct uva__new_array shape = {.length = at->count,
                                         .n_buffers = n_buffers,
                                         .sizes = sizes,
                                         .n_children = n_children};
    const int code = uva__new_array(at->allocator, &shape, out);

    return code == 0 ? 0 : uva__cast_at_fail(at, -1, code, "no memory");
}

void uva__cast_at_validity(const struct uva__cast_at *at,
                           struct ArrowArray *out)
{
    uint8_t *const bits = uva__new_array_buffer(out, 0);

    if (!uva__cast_at_has_nulls(at))
        return;
    uva__bits_copy(bits, 0, at->array->buffers[0], at->from, at->count);
    out->null_count = uva__bits_count_zeros(bits, at->count);
}
