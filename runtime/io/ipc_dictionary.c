/* SPDX-License-Identifier: Apache-2.0 */
/* Two bodies are compared as they would be sent, node by node: there offsets
 * begin at 0, without slices. The content of a node of `last` must be the
 * beginning of the node of `next`. */
#include "io/ipc_dictionary.h"

#include <stdlib.h>
#include <string.h>

/* The next node, buffer and number of data buffers of a body. */
struct values_at {
    const struct uva__ipc_body *body; /* borrows */
    size_t node;
    size_t buffer;
    size_t variadic;
};

/* ---- copies ------------------------------------------------------------- */

/* Every part of the block begins where 16 divides. */
static size_t values_part(size_t count, size_t size)
{
    return (count * size + 15) / 16 * 16;
}

/* Copies a vector to `*at` and advances. */
static void *values_move(char **at, const void *from, size_t count, size_t size)
{
    void *const to = *at;

    if (count > 0)
        memcpy(to, from, count * size);
    *at += values_part(count, size);
    return to;
}

struct uva__ipc_body *uva__ipc_dictionary_keep(const struct uva__ipc_body *body)
{
    size_t size = values_part(1, sizeof(*body)) +
                  values_part(body->n_nodes, sizeof(*body->nodes)) +
                  values_part(body->n_buffers, sizeof(*body->buffers)) +
                  values_part(body->n_variadic, sizeof(*body->variadic));
    struct uva__ipc_body *copy;
    char *at;

    for (size_t i = 0; i < body->n_buffers; i++)
        size += values_part((size_t)body->buffers[i].size, 1);
    at = malloc(size);
    if (at == NULL)
        return NULL;
    copy = values_move(&at, body, 1, sizeof(*body));
    copy->blocks = NULL;
    copy->nodes =
        values_move(&at, body->nodes, body->n_nodes, sizeof(*body->nodes));
    copy->buffers = values_move(&at, body->buffers, body->n_buffers,
                                sizeof(*body->buffers));
    copy->variadic = values_move(&at, body->variadic, body->n_variadic,
                                 sizeof(*body->variadic));
    for (size_t i = 0; i < body->n_buffers; i++)
        copy->buffers[i].data = values_move(&at, body->buffers[i].data,
                                            (size_t)body->buffers[i].size, 1);
    return copy;
}

/* ---- buffers ------------------------------------------------------------ */

static const struct uva__ipc_buffer *values_buffer(struct values_at *at)
{
    return &at->body->buffers[at->buffer++];
}

/* Whether `next` has the `size` bytes that `last` has. */
static bool values_same_bytes(struct values_at *last, struct values_at *next,
                              int64_t size)
{
    const struct uva__ipc_buffer *a = values_buffer(last);
    const struct uva__ipc_buffer *b = values_buffer(next);

    return size == 0 || (a->size >= size && b->size >= size &&
                         memcmp(a->data, b->data, (size_t)size) == 0);
}

/* Whether two bitmaps have the same first bits; an empty one has ones. */
static bool values_same_bits(struct values_at *last, struct values_at *next,
                             int64_t count)
{
    const struct uva__ipc_buffer *a = values_buffer(last);
    const struct uva__ipc_buffer *b = values_buffer(next);

    if (a->size == 0 && b->size == 0)
        return true;
    for (int64_t i = 0; i < count; i++)
        if ((a->size == 0 || uva__ipc_bit(a->data, i)) !=
            (b->size == 0 || uva__ipc_bit(b->data, i)))
            return false;
    return true;
}

/* Whether two vectors of offsets begin equally. Gives the last of `last`. */
static bool values_same_offsets(struct values_at *last, struct values_at *next,
                                int32_t width, int64_t count, int64_t *end)
{
    const struct uva__ipc_buffer *offsets = &last->body->buffers[last->buffer];

    *end = uva__ipc_integer(offsets->data, width, count);
    return values_same_bytes(last, next, (count + 1) * width);
}

/* ---- views -------------------------------------------------------------- */

enum { VIEW_SIZE = 16, VIEW_INLINE = 12 };

/* The bytes of a view of `size` bytes, which lie in a data buffer; `at` is
 * after the views. NULL if there is no such place. */
static const char *values_view(const struct values_at *at, const char *view,
                               int32_t size)
{
    const int64_t n = at->body->variadic[at->variadic];
    const struct uva__ipc_buffer *buffer;
    int32_t index, offset;

    memcpy(&index, view + 8, sizeof(index));
    memcpy(&offset, view + 12, sizeof(offset));
    if (index < 0 || index >= n || offset < 0)
        return NULL;
    buffer = &at->body->buffers[at->buffer + (size_t)index];
    if (offset > buffer->size - size)
        return NULL;
    return (const char *)buffer->data + offset;
}

static bool values_same_view(const struct values_at *last, const char *a,
                             const struct values_at *next, const char *b)
{
    int32_t size;

    if (memcmp(a, b, sizeof(size)) != 0)
        return false;
    memcpy(&size, a, sizeof(size));
    if (size < 0)
        return false;
    if (size <= VIEW_INLINE)
        return memcmp(a + 4, b + 4, (size_t)size) == 0;
    a = values_view(last, a, size);
    b = values_view(next, b, size);
    return a != NULL && b != NULL && memcmp(a, b, (size_t)size) == 0;
}

static bool values_same_views(struct values_at *last, struct values_at *next,
                              int64_t count)
{
    const struct uva__ipc_buffer *valid =
        &last->body->buffers[last->buffer - 1]; /* equal in both */
    const char *a = values_buffer(last)->data;
    const char *b = values_buffer(next)->data;

    for (int64_t i = 0; i < count; i++)
        if ((valid->size == 0 || uva__ipc_bit(valid->data, i)) &&
            !values_same_view(last, a + i * VIEW_SIZE, next, b + i * VIEW_SIZE))
            return false;
    last->buffer += (size_t)last->body->variadic[last->variadic++];
    next->buffer += (size_t)next->body->variadic[next->variadic++];
    return true;
}

/* ---- fields ------------------------------------------------------------- */

static bool values_same(const struct uva__ipc_plan *plan, int32_t at,
                        struct values_at *last, struct values_at *next);

static bool values_same_children(const struct uva__ipc_plan *plan, int32_t at,
                                 struct values_at *last, struct values_at *next)
{
    int32_t child = at + 1;

    for (int32_t i = 0; i < plan->fields[at].n_children; i++) {
        if (!values_same(plan, child, last, next))
            return false;
        child = plan->fields[child].next;
    }
    return true;
}

/* The last run of `last` may go on in `next`. */
static bool values_same_runs(const struct uva__ipc_plan *plan, int32_t at,
                             struct values_at *last, struct values_at *next)
{
    const int32_t width = plan->fields[at + 1].width;
    const int64_t runs = last->body->nodes[last->node++].length;
    const struct uva__ipc_buffer *a, *b;

    if (next->body->nodes[next->node++].length < runs)
        return false;
    last->buffer++; /* run ends are never null */
    next->buffer++;
    a = values_buffer(last);
    b = values_buffer(next);
    for (int64_t i = 0; i < runs; i++) {
        const int64_t a_end = uva__ipc_integer(a->data, width, i);
        const int64_t b_end = uva__ipc_integer(b->data, width, i);

        if (i < runs - 1 ? a_end != b_end : a_end > b_end)
            return false;
    }
    return values_same(plan, plan->fields[at + 1].next, last, next);
}

/* Fields with children, and with up to two buffers of an item each. */
static bool values_same_parents(const struct uva__ipc_plan *plan, int32_t at,
                                struct values_at *last, struct values_at *next,
                                int64_t count)
{
    const struct uva__ipc_field *field = &plan->fields[at];
    const bool views = field->kind == UVA__IPC_LIST_VIEW;
    const bool dense = field->kind == UVA__IPC_DENSE_UNION;
    const bool has_types = dense || field->kind == UVA__IPC_SPARSE_UNION;

    if (views && (!values_same_bytes(last, next, count * field->width) ||
                  !values_same_bytes(last, next, count * field->width)))
        return false;
    if (has_types && !values_same_bytes(last, next, count))
        return false;
    if (dense && !values_same_bytes(last, next, count * 4))
        return false;
    return values_same_children(plan, at, last, next);
}

static bool values_same_kind(const struct uva__ipc_plan *plan, int32_t at,
                             struct values_at *last, struct values_at *next,
                             int64_t count)
{
    const struct uva__ipc_field *field = &plan->fields[at];
    int64_t end;

    switch (field->kind) {
    case UVA__IPC_NULL:
        return true;
    case UVA__IPC_BITS:
        return values_same_bits(last, next, count);
    case UVA__IPC_FIXED:
        return values_same_bytes(last, next, count * field->width);
    case UVA__IPC_BINARY:
        return values_same_offsets(last, next, field->width, count, &end) &&
               values_same_bytes(last, next, end);
    case UVA__IPC_VIEW:
        return values_same_views(last, next, count);
    case UVA__IPC_LIST:
        return values_same_offsets(last, next, field->width, count, &end) &&
               values_same_children(plan, at, last, next);
    case UVA__IPC_RUN_END:
        return values_same_runs(plan, at, last, next);
    case UVA__IPC_LIST_VIEW:
    case UVA__IPC_FIXED_LIST:
    case UVA__IPC_STRUCT:
    case UVA__IPC_SPARSE_UNION:
    case UVA__IPC_DENSE_UNION:
        break;
    }
    return values_same_parents(plan, at, last, next, count);
}

static bool values_same(const struct uva__ipc_plan *plan, int32_t at,
                        struct values_at *last, struct values_at *next)
{
    const enum uva__ipc_kind kind = plan->fields[at].kind;
    const int64_t count = last->body->nodes[last->node++].length;

    if (next->body->nodes[next->node++].length < count)
        return false;
    if (uva__ipc_has_validity(kind) && !values_same_bits(last, next, count))
        return false;
    return values_same_kind(plan, at, last, next, count);
}

bool uva__ipc_dictionary_begins(const struct uva__ipc_plan *plan, int32_t at,
                                const struct uva__ipc_body *last,
                                const struct uva__ipc_body *next)
{
    struct values_at a = {.body = last}, b = {.body = next};

    return values_same(plan, at, &a, &b);
}
