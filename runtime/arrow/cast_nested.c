/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers of arrays with children: offsets that begin at 0, as the children
 * of the result have the items of these rows alone. */
#include <errno.h>
#include <string.h>

#include "arrow/buffer.h"
#include "arrow/cast_kinds.h"

static int fail_offsets(const struct uva__cast_at *at)
{
    return uva__cast_at_fail(at, -1, EINVAL, "its offsets are wrong");
}

/* ---- lists -------------------------------------------------------------- */

static bool is_views(const struct ArrowSchema *schema)
{
    return schema->format[1] == 'v';
}

static int64_t source_integer(const struct uva__cast_at *at, int64_t buffer,
                              int64_t i)
{
    return uva__buffer_integer(at->array->buffers[buffer], at->plan->from_width,
                               at->from + i);
}

/* Of wrong offsets it may be anything. */
static int64_t difference(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* The size of list `i`: 0 of a null one among views. */
static int64_t list_size(const struct uva__cast_at *at, int64_t i)
{
    if (!is_views(at->plan->from))
        return difference(source_integer(at, 1, i + 1),
                          source_integer(at, 1, i));
    return uva__cast_at_is_null(at, i) ? 0 : source_integer(at, 2, i);
}

bool uva__cast_nested_is_ordered(const struct uva__cast_at *at,
                                 struct uva__cast_span *span)
{
    *span = (struct uva__cast_span){0, 0};
    for (int64_t i = 0; i < at->count; i++) {
        const int64_t size = list_size(at, i);

        if (size <= 0)
            continue;
        if (span->count == 0)
            span->first = source_integer(at, 1, i);
        else if (difference(source_integer(at, 1, i), span->first) !=
                 span->count)
            return false;
        span->count += size;
    }
    return true;
}

static void put_integer(struct ArrowArray *out, int64_t buffer, int32_t width,
                        int64_t i, int64_t value)
{
    uva__buffer_put_integer(uva__new_array_buffer(out, buffer), width, i,
                            value);
}

/* Puts the lists one after the other. */
static int lists_fill(const struct uva__cast_at *at, struct ArrowArray *out)
{
    const int32_t width = at->plan->to_width;
    const int64_t most = width == 4 ? INT32_MAX : PTRDIFF_MAX / 64;
    const bool views = is_views(at->plan->to);
    int64_t end = 0;

    if (!views)
        put_integer(out, 1, width, 0, 0);
    for (int64_t i = 0; i < at->count; i++) {
        const int64_t size = list_size(at, i);

        if (size < 0)
            return fail_offsets(at);
        if (size > most - end)
            return uva__cast_at_fail(at, uva__cast_at_row(at, i), EOVERFLOW,
                                     "the lists have too many items");
        if (views) {
            put_integer(out, 1, width, i, end);
            put_integer(out, 2, width, i, size);
        }
        end += size;
        if (!views)
            put_integer(out, 1, width, i + 1, end);
    }
    return 0;
}

static int lists_new(const struct uva__cast_at *at, struct ArrowArray *out)
{
    const int64_t width = at->plan->to_width;
    const bool views = is_views(at->plan->to);
    const int64_t sizes[] = {uva__cast_at_validity_size(at),
                             (at->count + !views) * width, at->count * width};
    const int code = uva__cast_at_new(at, sizes, 2 + views, 1, out);

    return code == 0 ? lists_fill(at, out) : code;
}

/* ---- unions ------------------------------------------------------------- */

/* The items of a dense union that each member has. */
struct members {
    int8_t of_id[UVA__UNION_IDS]; /* the number of the child; -1: none */
    int64_t first[UVA__UNION_IDS],
        end[UVA__UNION_IDS]; /* by child; equal: none */
};

/* The member of row `i`; -1: the id is wrong. */
static int member_of(const struct uva__cast_at *at, const struct members *m,
                     int64_t i)
{
    const int id = ((const int8_t *)at->array->buffers[0])[at->from + i];

    return id < 0 ? -1 : m->of_id[id];
}

static int64_t dense_offset(const struct uva__cast_at *at, int64_t i)
{
    return uva__buffer_integer(at->array->buffers[1], 4, at->from + i);
}

static bool members_read(struct members *m, const struct uva__cast_at *at)
{
    memset(m, 0, sizeof(*m));
    uva__format_members(at->plan->from->format, m->of_id);
    for (int64_t i = 0; i < at->count; i++) {
        const int member = member_of(at, m, i);
        const int64_t offset = dense_offset(at, i);

        if (member < 0 || offset < 0)
            return false;
        if (m->end[member] == 0 || offset < m->first[member])
            m->first[member] = offset;
        if (offset >= m->end[member])
            m->end[member] = offset + 1;
    }
    return true;
}

static void copy_ids(const struct uva__cast_at *at, struct ArrowArray *out)
{
    if (at->count > 0)
        memcpy(uva__new_array_buffer(out, 0),
               (const char *)at->array->buffers[0] + at->from,
               (size_t)at->count);
}

static int dense_new(const struct uva__cast_at *at, struct ArrowArray *out)
{
    const int64_t sizes[] = {at->count, at->count * 4};
    struct members m;
    int code = uva__cast_at_new(at, sizes, 2, at->plan->n_children, out);

    if (code != 0)
        return code;
    if (!members_read(&m, at))
        return fail_offsets(at);
    copy_ids(at, out);
    for (int64_t i = 0; i < at->count; i++)
        put_integer(out, 1, 4, i,
                    dense_offset(at, i) - m.first[member_of(at, &m, i)]);
    return 0;
}

static int sparse_new(const struct uva__cast_at *at, struct ArrowArray *out)
{
    const int code =
        uva__cast_at_new(at, &at->count, 1, at->plan->n_children, out);

    if (code == 0)
        copy_ids(at, out);
    return code;
}

/* ---- all ---------------------------------------------------------------- */

static int rows_new(const struct uva__cast_at *at, struct ArrowArray *out)
{
    const int64_t validity = uva__cast_at_validity_size(at);

    return uva__cast_at_new(at, &validity, 1, at->plan->n_children, out);
}

int uva__cast_nested(const struct uva__cast_at *at, struct ArrowArray *out)
{
    int code;

    switch (at->plan->kind) {
    case UVA__CAST_SPARSE:
        return sparse_new(at, out);
    case UVA__CAST_DENSE:
        return dense_new(at, out);
    case UVA__CAST_LIST:
        code = lists_new(at, out);
        break;
    default:
        code = rows_new(at, out);
    }
    if (code == 0)
        uva__cast_at_validity(at, out);
    return code;
}

void uva__cast_nested_span(const struct uva__cast_at *at, int64_t i,
                           struct uva__cast_span *span)
{
    struct members m;

    switch (at->plan->kind) {
    case UVA__CAST_LIST:
        (void)uva__cast_nested_is_ordered(at, span);
        break;
    case UVA__CAST_FIXED_LIST:
        *span = (struct uva__cast_span){
            at->count > 0 ? at->from * at->plan->size : 0,
            at->count * at->plan->size};
        break;
    case UVA__CAST_DENSE:
        (void)members_read(&m, at);
        *span = (struct uva__cast_span){m.first[i], m.end[i] - m.first[i]};
        break;
    default:
        *span = (struct uva__cast_span){at->from, at->count};
    }
}
