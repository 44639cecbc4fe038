/* SPDX-License-Identifier: Apache-2.0 */
/* One walk down the plan and an array together. Each field is a range of items
 * of its array; the walk first checks that the array has the buffers that the
 * field needs, then adds a node and the buffers, and passes ranges on to the
 * children. */
#include "io/ipc_write_body.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/ipc_bits.h"

/* Larger ones cannot be. */
enum { MOST_BUFFERS = 1 << 20 };
#define MOST_BYTES (INT64_MAX / 4)

/* One step of the walk; lies on the stack of its caller. */
struct body_at {
    const struct body_at *up;           /* borrows; NULL: the top */
    const struct uva__ipc_field *field; /* borrows */
    const struct ArrowArray *array;     /* borrows */
    int64_t from;                       /* first item, without the offset */
    int64_t count;                      /* number of items */
};

/* The walk. */
struct body_walk {
    struct uva__ipc_body *body;       /* borrows */
    const struct uva__ipc_plan *plan; /* borrows */
    struct uva_error *error;          /* borrows; may be NULL */
};

static const uint8_t zeroes[8];

/* ---- blocks and vectors ------------------------------------------------- */

enum { BLOCK_HEAD = 16 };
_Static_assert(sizeof(struct uva__ipc_block) <= BLOCK_HEAD, "the head fits");

void *uva__ipc_block_new(struct uva__ipc_block **list, size_t size)
{
    struct uva__ipc_block *block =
        size > SIZE_MAX / 2 ? NULL : malloc(BLOCK_HEAD + size);

    if (block == NULL)
        return NULL;
    *block = (struct uva__ipc_block){.next = *list, .size = size};
    *list = block;
    return (char *)block + BLOCK_HEAD;
}

void uva__ipc_blocks_free(struct uva__ipc_block *list)
{
    while (list != NULL) {
        struct uva__ipc_block *next = list->next;

        free(list);
        list = next;
    }
}

bool uva__ipc_grow(void **items, size_t count, size_t *most, size_t more,
                   size_t size)
{
    size_t room = *most < 16 ? 16 : *most * 2;
    void *larger;

    if (more <= *most - count)
        return true;
    if (room < count + more)
        room = count + more;
    larger = malloc(room * size);
    if (larger == NULL)
        return false;
    if (count > 0)
        memcpy(larger, *items, count * size);
    free(*items);
    *items = larger;
    *most = room;
    return true;
}

#define GROW(body, name, more)                                                 \
    uva__ipc_grow((void **)&(body)->name, (body)->n_##name,                    \
                  &(body)->most_##name, (more), sizeof(*(body)->name))

/* ---- errors ------------------------------------------------------------- */

/* Writes the names from the top to `at`, as far as they fit. */
static size_t body_write_path(const struct body_at *at, char *text, size_t room)
{
    const char *name = at->field->schema->name;
    size_t used = at->up == NULL ? 0 : body_write_path(at->up, text, room);
    int size;

    if (name == NULL || *name == '\0')
        return used;
    size = snprintf(text + used, room - used, "%s%.64s", used == 0 ? "" : ".",
                    name);
    if ((size_t)size < room - used)
        return used + (size_t)size;
    text[used] = '\0';
    return used;
}

static int body_fail(const struct body_walk *walk, const struct body_at *at,
                     int code, const char *format, ...) UVA_PRINTF(4, 5);

static int body_fail(const struct body_walk *walk, const struct body_at *at,
                     int code, const char *format, ...)
{
    char path[512] = "", what[160];
    va_list args;

    (void)body_write_path(at, path, sizeof(path));
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return uva_error_set(walk->error, code,
                         "Arrow IPC: column '%s' (format '%.64s'): %s", path,
                         at->field->schema->format, what);
}

static int body_no_memory(const struct body_walk *walk)
{
    return uva_error_set(walk->error, ENOMEM, "out of memory");
}

/* ---- requirements on an array ------------------------------------------- */

static int body_check_numbers(const struct body_walk *walk,
                              const struct body_at *at)
{
    const struct ArrowArray *array = at->array;

    if (array->length < 0 || array->offset < 0 ||
        array->offset > INT64_MAX / 2 || array->length > INT64_MAX / 2)
        return body_fail(walk, at, EINVAL,
                         "length %" PRId64 ", offset %" PRId64, array->length,
                         array->offset);
    if (array->null_count < -1 || array->null_count > array->length)
        return body_fail(walk, at, EINVAL,
                         "null_count %" PRId64 ", length %" PRId64,
                         array->null_count, array->length);
    if (at->from > array->length - at->count)
        return body_fail(walk, at, EINVAL,
                         "%" PRId64 " items, %" PRId64 " are needed",
                         array->length, at->from + at->count);
    return 0;
}

static int body_check_buffers(const struct body_walk *walk,
                              const struct body_at *at)
{
    const struct ArrowArray *array = at->array;
    const int32_t needed = uva__ipc_type_buffers(at->field->kind);
    const bool more = at->field->kind == UVA__IPC_VIEW;

    if (array->n_buffers < needed || array->n_buffers > MOST_BUFFERS ||
        (!more && array->n_buffers != needed))
        return body_fail(walk, at, EINVAL, "%" PRId64 " buffers, expected %d%s",
                         array->n_buffers, (int)needed, more ? " or more" : "");
    if (array->n_buffers > 0 && array->buffers == NULL)
        return body_fail(walk, at, EINVAL, "the vector of buffers is NULL");
    if (uva__ipc_has_validity(at->field->kind) && array->null_count > 0 &&
        array->buffers[0] == NULL)
        return body_fail(walk, at, EINVAL,
                         "null_count %" PRId64 " without a bitmap",
                         array->null_count);
    return 0;
}

static int body_check_children(const struct body_walk *walk,
                               const struct body_at *at)
{
    const struct ArrowArray *array = at->array;

    if (array->n_children != at->field->n_children)
        return body_fail(walk, at, EINVAL, "%" PRId64 " children, expected %d",
                         array->n_children, (int)at->field->n_children);
    if (array->n_children > 0 && array->children == NULL)
        return body_fail(walk, at, EINVAL, "the vector of children is NULL");
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i] == NULL)
            return body_fail(walk, at, EINVAL, "child %" PRId64 " is NULL", i);
    if ((array->dictionary != NULL) != (at->field->dictionary >= 0))
        return body_fail(walk, at, EINVAL, "%s dictionary",
                         array->dictionary == NULL ? "lacks its"
                                                   : "has an unexpected");
    return 0;
}

static int body_check(const struct body_walk *walk, const struct body_at *at)
{
    int code;

    if (at->array->release == NULL)
        return body_fail(walk, at, EINVAL, "the array is released");
    code = body_check_numbers(walk, at);
    if (code == 0)
        code = body_check_buffers(walk, at);
    return code == 0 ? body_check_children(walk, at) : code;
}

/* ---- buffers ------------------------------------------------------------ */

/* Adds a buffer, for which there is room. No buffer is larger than MOST_BYTES,
 * and the sum stays there once it is. */
static void body_push(struct body_walk *walk, const void *data, int64_t size)
{
    struct uva__ipc_body *body = walk->body;

    body->size += body->size > MOST_BYTES ? 0 : size;
    body->buffers[body->n_buffers++] =
        (struct uva__ipc_buffer){.data = data, .size = size};
}

static int body_null_buffer(const struct body_walk *walk,
                            const struct body_at *at, int i)
{
    return body_fail(walk, at, EINVAL, "buffer %d is NULL", i);
}

/* Adds `count` items of `width` bytes of buffer `i`, from item `first` on. */
static int body_push_items(struct body_walk *walk, const struct body_at *at,
                           int i, int64_t first, int64_t count, int32_t width)
{
    const char *data = at->array->buffers[i];

    if (count == 0 || width == 0) {
        body_push(walk, NULL, 0);
        return 0;
    }
    if (data == NULL)
        return body_null_buffer(walk, at, i);
    if (first + count > MOST_BYTES / width)
        return body_fail(walk, at, EINVAL, "%" PRId64 " items are too many",
                         first + count);
    body_push(walk, data + first * width, count * width);
    return 0;
}

/* Adds the bits of the items. They can be sent as they are if the first one
 * begins a byte. */
static int body_push_bits(struct body_walk *walk, const struct body_at *at,
                          int i)
{
    const int64_t first = at->array->offset + at->from;
    const int64_t size = at->count / 8 + (at->count % 8 != 0);
    const uint8_t *bits = at->array->buffers[i];
    uint8_t *copy;

    if (at->count == 0) {
        body_push(walk, NULL, 0);
        return 0;
    }
    if (bits == NULL)
        return body_null_buffer(walk, at, i);
    if (first % 8 == 0) {
        body_push(walk, bits + first / 8, size);
        return 0;
    }
    copy = uva__ipc_block_new(&walk->body->blocks, (size_t)size);
    if (copy == NULL)
        return body_no_memory(walk);
    uva__ipc_bits_copy(copy, bits, first, at->count);
    body_push(walk, copy, size);
    return 0;
}

/* How many of the items are null. */
static int64_t body_null_count(const struct body_at *at)
{
    const struct ArrowArray *array = at->array;

    if (at->field->kind == UVA__IPC_NULL)
        return at->count;
    if (!uva__ipc_has_validity(at->field->kind) || array->null_count == 0 ||
        array->buffers[0] == NULL)
        return 0;
    if (array->null_count > 0 && at->count == array->length)
        return array->null_count;
    return uva__ipc_bits_zeroes(array->buffers[0], array->offset + at->from,
                                at->count);
}

/* Most buffers of a field without data buffers of views, and of run ends, which
 * are added with their parent. */
enum { BUFFERS = 3 };

/* Adds the node, and the bitmap if the field can have one: without nulls it is
 * left out. */
static int body_push_node(struct body_walk *walk, const struct body_at *at)
{
    struct uva__ipc_body *body = walk->body;
    const int64_t nulls = body_null_count(at);

    if (!GROW(body, nodes, 2) ||
        !GROW(body, buffers, (size_t)at->array->n_buffers + BUFFERS))
        return body_no_memory(walk);
    body->nodes[body->n_nodes++] =
        (struct uva__ipc_node){.length = at->count, .null_count = nulls};
    if (!uva__ipc_has_validity(at->field->kind))
        return 0;
    if (nulls > 0)
        return body_push_bits(walk, at, 0);
    body_push(walk, NULL, 0);
    return 0;
}

/* ---- integers, and offsets that begin at 0 ------------------------------ */

int64_t uva__ipc_integer(const void *buffer, int32_t width, int64_t i)
{
    const char *const at = (const char *)buffer + i * width;
    int16_t two;
    int32_t four;
    int64_t eight;

    if (width == sizeof(two)) {
        memcpy(&two, at, sizeof(two));
        return two;
    }
    if (width == sizeof(four)) {
        memcpy(&four, at, sizeof(four));
        return four;
    }
    memcpy(&eight, at, sizeof(eight));
    return eight;
}

/* Copies `count` integers, each less `less`. */
static void body_subtract(void *to, const void *from, int32_t width,
                          int64_t count, int64_t less)
{
    if (width == 2) {
        for (int64_t i = 0; i < count; i++) {
            const int16_t x = (int16_t)(uva__ipc_integer(from, 2, i) - less);
            memcpy((char *)to + i * 2, &x, 2);
        }
    } else if (width == 4) {
        for (int64_t i = 0; i < count; i++) {
            const uint32_t x =
                (uint32_t)uva__ipc_integer(from, 4, i) - (uint32_t)less;
            memcpy((char *)to + i * 4, &x, 4);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            const uint64_t x =
                (uint64_t)uva__ipc_integer(from, 8, i) - (uint64_t)less;
            memcpy((char *)to + i * 8, &x, 8);
        }
    }
}

/* Adds a copy of `count` integers, each less `less`. NULL without memory. */
static void *body_push_less(struct body_walk *walk, const void *from,
                            int32_t width, int64_t count, int64_t less)
{
    void *copy =
        uva__ipc_block_new(&walk->body->blocks, (size_t)(count * width));

    if (copy == NULL)
        return NULL;
    body_subtract(copy, from, width, count, less);
    body_push(walk, copy, count * width);
    return copy;
}

/* Adds the offsets of the items, which are in buffer 1, counted from the first
 * item: the range `*first` to `*last` of their targets is sent. */
static int body_push_offsets(struct body_walk *walk, const struct body_at *at,
                             int64_t *first, int64_t *last)
{
    const int32_t width = at->field->width;
    const int64_t begin = at->array->offset + at->from;
    const char *offsets = at->array->buffers[1];

    *first = *last = 0;
    if (at->count == 0) {
        body_push(walk, zeroes, width);
        return 0;
    }
    if (offsets == NULL)
        return body_null_buffer(walk, at, 1);
    if (begin + at->count >= MOST_BYTES / width)
        return body_fail(walk, at, EINVAL, "%" PRId64 " items are too many",
                         begin + at->count);
    offsets += begin * width;
    *first = uva__ipc_integer(offsets, width, 0);
    *last = uva__ipc_integer(offsets, width, at->count);
    if (*first < 0 || *last < *first)
        return body_fail(walk, at, EINVAL,
                         "offsets from %" PRId64 " to %" PRId64, *first, *last);
    if (*first == 0)
        body_push(walk, offsets, (at->count + 1) * width);
    else if (body_push_less(walk, offsets, width, at->count + 1, *first) ==
             NULL)
        return body_no_memory(walk);
    return 0;
}

/* ---- kinds of fields ---------------------------------------------------- */

static int body_add(struct body_walk *walk, const struct body_at *at);

/* Adds `count` items of child `i`, which has the field `*field`, from item
 * `from` on. Advances `*field` to the next child's. */
static int body_add_child(struct body_walk *walk, const struct body_at *up,
                          int64_t i, const struct uva__ipc_field **field,
                          int64_t from, int64_t count)
{
    const struct body_at at = {.up = up,
                               .field = *field,
                               .array = up->array->children[i],
                               .from = from,
                               .count = count};

    *field = &walk->plan->fields[at.field->next];
    return body_add(walk, &at);
}

/* Adds the items from `from` on of each child; `whole`: all items of each. */
static int body_add_children(struct body_walk *walk, const struct body_at *at,
                             int64_t from, int64_t count, bool whole)
{
    const struct uva__ipc_field *field = at->field + 1;
    int code = 0;

    for (int64_t i = 0; i < at->array->n_children && code == 0; i++) {
        if (whole) {
            from = 0;
            count = at->count == 0 || at->array->children[i]->length < 0
                        ? 0
                        : at->array->children[i]->length;
        }
        code = body_add_child(walk, at, i, &field, from, count);
    }
    return code;
}

static int body_add_binary(struct body_walk *walk, const struct body_at *at)
{
    int64_t first, last;
    int code = body_push_offsets(walk, at, &first, &last);

    if (code != 0)
        return code;
    return body_push_items(walk, at, 2, first, last - first, 1);
}

static int body_add_list(struct body_walk *walk, const struct body_at *at)
{
    int64_t first, last;
    int code = body_push_offsets(walk, at, &first, &last);

    if (code != 0)
        return code;
    return body_add_children(walk, at, first, last - first, false);
}

/* All data buffers are sent, as the views may refer to each of them. */
static int body_add_views(struct body_walk *walk, const struct body_at *at)
{
    struct uva__ipc_body *body = walk->body;
    const struct ArrowArray *array = at->array;
    const int64_t n = at->count == 0 ? 0 : array->n_buffers - 3;
    const int64_t *sizes = array->buffers[array->n_buffers - 1];
    int code = body_push_items(walk, at, 1, array->offset + at->from, at->count,
                               at->field->width);

    if (code != 0)
        return code;
    if (!GROW(body, variadic, 1))
        return body_no_memory(walk);
    body->variadic[body->n_variadic++] = n;
    if (n > 0 && sizes == NULL)
        return body_null_buffer(walk, at, (int)array->n_buffers - 1);
    for (int64_t i = 0; i < n && code == 0; i++) {
        const int64_t size = uva__ipc_integer(sizes, 8, i);

        if (size < 0)
            code = body_fail(walk, at, EINVAL,
                             "data buffer %" PRId64 " has %" PRId64 " bytes", i,
                             size);
        else
            code = body_push_items(walk, at, (int)i + 2, 0, size, 1);
    }
    return code;
}

static int body_add_list_views(struct body_walk *walk, const struct body_at *at)
{
    const int64_t first = at->array->offset + at->from;
    const int32_t width = at->field->width;
    int code = body_push_items(walk, at, 1, first, at->count, width);

    if (code == 0)
        code = body_push_items(walk, at, 2, first, at->count, width);
    return code == 0 ? body_add_children(walk, at, 0, 0, true) : code;
}

static int body_add_fixed_list(struct body_walk *walk, const struct body_at *at)
{
    const int64_t first = at->array->offset + at->from;
    const int32_t width = at->field->width;

    if (width > 0 && first + at->count > MOST_BYTES / width)
        return body_fail(walk, at, EINVAL, "%" PRId64 " items are too many",
                         first + at->count);
    return body_add_children(walk, at, first * width, at->count * width, false);
}

static int body_add_union(struct body_walk *walk, const struct body_at *at)
{
    const int64_t first = at->array->offset + at->from;
    const bool dense = at->field->kind == UVA__IPC_DENSE_UNION;
    int code = body_push_items(walk, at, 0, first, at->count, 1);

    if (code == 0 && dense)
        code = body_push_items(walk, at, 1, first, at->count, 4);
    if (code == 0)
        code = body_add_children(walk, at, first, at->count, dense);
    return code;
}

/* ---- run ends ----------------------------------------------------------- */

/* The first run that ends after item `item`; `n` if there is none. */
static int64_t body_find_run(const char *ends, int32_t width, int64_t n,
                             int64_t item)
{
    int64_t low = 0;

    while (low < n) {
        const int64_t middle = low + (n - low) / 2;

        if (uva__ipc_integer(ends, width, middle) > item)
            n = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Adds run ends less the number of items before the first, the last one
 * shortened to the number of items. */
static int body_push_runs(struct body_walk *walk, const struct body_at *at,
                          const char *ends, int64_t runs, int64_t first)
{
    struct uva__ipc_body *body = walk->body;
    const int32_t width = at->field[1].width;
    char *copy;

    body->nodes[body->n_nodes++] = (struct uva__ipc_node){.length = runs};
    body_push(walk, NULL, 0);
    if (first == 0 && uva__ipc_integer(ends, width, runs - 1) == at->count) {
        body_push(walk, ends, runs * width);
        return 0;
    }
    copy = body_push_less(walk, ends, width, runs, first);
    if (copy == NULL)
        return body_no_memory(walk);
    body_subtract(copy + (runs - 1) * width, ends + (runs - 1) * width, width,
                  1, uva__ipc_integer(ends, width, runs - 1) - at->count);
    return 0;
}

static int body_add_runs(struct body_walk *walk, const struct body_at *at)
{
    const struct ArrowArray *array = at->array->children[0];
    const struct body_at ends_at = {
        .up = at, .field = at->field + 1, .array = array};
    const struct uva__ipc_field *field = &walk->plan->fields[at->field[1].next];
    const int64_t first = at->array->offset + at->from;
    const int32_t width = at->field[1].width;
    const char *ends;
    int64_t begin, end;
    int code = body_check(walk, &ends_at);

    if (code != 0)
        return code;
    if (at->count == 0)
        return body_add_children(walk, at, 0, 0, false);
    ends = array->buffers[1];
    if (ends == NULL)
        return body_null_buffer(walk, &ends_at, 1);
    ends += array->offset * width;
    begin = body_find_run(ends, width, array->length, first);
    end = body_find_run(ends, width, array->length, first + at->count - 1) + 1;
    if (begin >= end || end > array->length)
        return body_fail(walk, at, EINVAL,
                         "no run reaches item %" PRId64 ", or they do not grow",
                         first + at->count - 1);
    code = body_push_runs(walk, at, ends + begin * width, end - begin, first);
    if (code == 0)
        code = body_add_child(walk, at, 1, &field, begin, end - begin);
    return code;
}

/* ---- the walk ----------------------------------------------------------- */

/* Adds the buffers after the node and the bitmap. */
static int body_add_kind(struct body_walk *walk, const struct body_at *at)
{
    const int64_t first = at->array->offset + at->from;

    switch (at->field->kind) {
    case UVA__IPC_NULL:
        return 0;
    case UVA__IPC_BITS:
        return body_push_bits(walk, at, 1);
    case UVA__IPC_FIXED:
        return body_push_items(walk, at, 1, first, at->count, at->field->width);
    case UVA__IPC_BINARY:
        return body_add_binary(walk, at);
    case UVA__IPC_VIEW:
        return body_add_views(walk, at);
    case UVA__IPC_LIST:
        return body_add_list(walk, at);
    case UVA__IPC_LIST_VIEW:
        return body_add_list_views(walk, at);
    case UVA__IPC_FIXED_LIST:
        return body_add_fixed_list(walk, at);
    case UVA__IPC_STRUCT:
        return body_add_children(walk, at, first, at->count, false);
    case UVA__IPC_SPARSE_UNION:
    case UVA__IPC_DENSE_UNION:
        return body_add_union(walk, at);
    case UVA__IPC_RUN_END:
        break;
    }
    return body_add_runs(walk, at);
}

/* Notes that the field's dictionary has to be sent before this body. */
static int body_add_use(struct body_walk *walk, const struct body_at *at)
{
    struct uva__ipc_body *body = walk->body;

    if (at->field->dictionary < 0)
        return 0;
    if (!GROW(body, uses, 1))
        return body_no_memory(walk);
    body->uses[body->n_uses++] = (struct uva__ipc_use){
        .dictionary = at->field->dictionary, .values = at->array->dictionary};
    return 0;
}

static int body_add(struct body_walk *walk, const struct body_at *at)
{
    int code = body_check(walk, at);

    if (code == 0)
        code = body_push_node(walk, at);
    if (code == 0)
        code = body_add_kind(walk, at);
    return code == 0 ? body_add_use(walk, at) : code;
}

/* The root has no node: only its columns are sent. */
static int body_add_root(struct body_walk *walk, const struct body_at *at)
{
    int code = body_check(walk, at);

    if (code != 0)
        return code;
    if (body_null_count(at) > 0)
        return body_fail(walk, at, ENOTSUP,
                         "rows that are null cannot be expressed");
    return body_add_children(walk, at, at->array->offset + at->from, at->count,
                             false);
}

int uva__ipc_body_fill(struct uva__ipc_body *body,
                       const struct uva__ipc_plan *plan, int32_t at,
                       const struct ArrowArray *array, int64_t from,
                       int64_t count, struct uva_error *error)
{
    struct body_walk walk = {.body = body, .plan = plan, .error = error};
    const struct body_at top = {.field = &plan->fields[at],
                                .array = array,
                                .from = from,
                                .count = count};
    int code;

    uva__ipc_body_clear(body);
    body->length = count;
    code = at == 0 ? body_add_root(&walk, &top) : body_add(&walk, &top);
    if (code == 0 && body->size > MOST_BYTES)
        code = body_fail(&walk, &top, EINVAL, "the buffers are too large");
    return code;
}

void uva__ipc_body_clear(struct uva__ipc_body *body)
{
    uva__ipc_blocks_free(body->blocks);
    body->blocks = NULL;
    body->n_nodes = body->n_buffers = body->n_variadic = body->n_uses = 0;
    body->size = 0;
}

void uva__ipc_body_fini(struct uva__ipc_body *body)
{
    uva__ipc_body_clear(body);
    free(body->nodes);
    free(body->buffers);
    free(body->variadic);
    free(body->uses);
    *body = (struct uva__ipc_body){0};
}
