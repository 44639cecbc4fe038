/* SPDX-License-Identifier: Apache-2.0 */
/* One walk down the plan: each field takes the next node of the header, and the
 * next buffers. All structs and copied buffers lie in blocks of one owner,
 * which counts the arrays that are not released, since each child may be moved
 * out and outlive the rest. */
#include "io/ipc_read_body.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "io/ipc_bits.h"
#include "io/ipc_check.h"
#include "io/ipc_compress.h"
#include "io/ipc_turn.h"
#include "uvarrow/arrow.h"

enum { PREFIX = 8, ALIGN = 8, FIRST_BUFFERS = 3 };

/* More rows are refused: so no size in bits or bytes overflows. */
#define MOST_ROWS (INT64_C(1) << 48)

/* The owner of the memory of arrays, in front of room for their structs. */
struct array_owner {
    atomic_int_least64_t users;     /* arrays that are not released, and one */
    struct uva__shared_bytes *body; /* owns */
    struct uva__ipc_block *blocks;  /* owns: what has no place in the room */
    max_align_t room[];
};

/* The walk. */
struct array_walk {
    const struct uva__ipc_input *source; /* borrows */
    struct array_owner *owner;           /* borrows */
    char *room;                          /* borrows: the rest of its room */
    size_t room_left;                    /* bytes of that */
    size_t node, buffer, variadic;       /* the next ones */
    int64_t left;                        /* bytes to decompress to */
    const struct uva__ipc_field *field;  /* the one in work */
    struct uva_error *error;             /* borrows */
};

/* A buffer that was taken from the body. */
struct array_buffer {
    const void *data; /* borrows from the owner; not NULL */
    int64_t size;
};

/* For buffers without bytes; larger than any single item. */
static const uint64_t zeroes[8];

static int array_fail(const struct array_walk *w, int code, const char *what)
{
    const struct ArrowSchema *schema = w->field->schema;

    return uva_error_set(w->error, code, "field '%.64s' (%.64s): %s",
                         schema->name == NULL ? "" : schema->name,
                         schema->format, what);
}

/* ---- the owner ---------------------------------------------------------- */

static void array_owner_release(struct array_owner *owner)
{
    struct uva__ipc_block *blocks;

    if (atomic_fetch_sub_explicit(&owner->users, 1, memory_order_acq_rel) != 1)
        return;
    blocks = owner->blocks;
    uva__shared_bytes_release(owner->body);
    free(owner);
    uva__ipc_blocks_free(blocks);
}

/* Makes the owner, with room for the arrays of field `at`: each has its struct,
 * a few buffers, and a pointer at its parent. */
static int array_owner_new(struct array_walk *w, int32_t at)
{
    const struct uva__ipc_field *fields = w->source->plan->fields;
    const size_t each = sizeof(struct ArrowArray) +
                        (FIRST_BUFFERS + 1) * sizeof(void *) +
                        2 * sizeof(max_align_t);
    struct uva__shared_bytes *body = w->source->body;
    struct array_owner *owner;

    w->room_left = (size_t)(fields[at].next - at) * each;
    owner = malloc(sizeof(*owner) + w->room_left);
    if (owner == NULL)
        return uva_error_set(w->error, ENOMEM, "out of memory");
    atomic_init(&owner->users, 1);
    owner->body = body == NULL ? NULL : uva__shared_bytes_acquire(body);
    owner->blocks = NULL;
    w->room = (char *)owner->room;
    w->owner = owner;
    return 0;
}

static void array_release(struct ArrowArray *array)
{
    struct array_owner *owner = array->private_data;

    for (int64_t i = 0; i < array->n_children; i++) {
        struct ArrowArray *child = array->children[i];

        if (child != NULL && child->release != NULL)
            child->release(child);
    }
    if (array->dictionary != NULL && array->dictionary->release != NULL)
        array->dictionary->release(array->dictionary);
    array->release = NULL;
    array_owner_release(owner);
}

/* Gives memory of a block of its own, whose end a checker of memory knows. */
static void *array_block(struct array_walk *w, size_t size)
{
    void *block = uva__ipc_block_new(&w->owner->blocks, size);

    if (block == NULL)
        (void)uva_error_set(w->error, ENOMEM, "out of memory");
    return block;
}

/* Gives memory for structs. */
static void *array_room(struct array_walk *w, size_t size)
{
    const size_t unit = sizeof(max_align_t);
    const size_t whole = (size + unit - 1) / unit * unit;
    char *room = w->room;

    if (whole < size || whole > w->room_left)
        return array_block(w, size);
    w->room += whole;
    w->room_left -= whole;
    return room;
}

/* Makes an array that can be released from now on. */
static int array_begin(struct array_walk *w, int64_t n_buffers,
                       int64_t n_children, struct ArrowArray *array)
{
    const size_t size = (size_t)(n_buffers + n_children) * sizeof(void *);
    void **room = array_room(w, size);

    if (room == NULL)
        return ENOMEM;
    memset(room, 0, size);
    *array = (struct ArrowArray){.n_buffers = n_buffers,
                                 .n_children = n_children,
                                 .buffers = (const void **)room,
                                 .children =
                                     (struct ArrowArray **)(room + n_buffers),
                                 .release = array_release,
                                 .private_data = w->owner};
    (void)atomic_fetch_add_explicit(&w->owner->users, 1, memory_order_relaxed);
    return 0;
}

/* ---- the lists of the header -------------------------------------------- */

/* Takes the next node: the length and the number of nulls. */
static int array_take_node(struct array_walk *w, struct ArrowArray *array)
{
    const struct uva__ipc_parts *parts = w->source->parts;
    const uint8_t *item;

    if (parts == NULL)
        return 0;
    if (w->node >= parts->nodes.count)
        return array_fail(w, EPROTO, "the header lists too few nodes");
    item = parts->nodes.items + 16 * w->node++;
    array->length = (int64_t)uva__table_load(item, 8);
    array->null_count = (int64_t)uva__table_load(item + 8, 8);
    if (array->length < 0 || array->length > MOST_ROWS)
        return array_fail(w, EPROTO, "an impossible length");
    return 0;
}

/* Takes memory of the owner for a copy of `size` bytes, which hostile headers
 * may ask for more than once. */
static int array_copy_room(struct array_walk *w, int64_t size, void **out)
{
    *out = NULL;
    if (size > w->left)
        return array_fail(w, EMSGSIZE,
                          "too large when decompressed or copied (max_bytes)");
    w->left -= size;
    *out = array_block(w, (size_t)size);
    return *out != NULL ? 0 : ENOMEM;
}

/* Decompresses a buffer into memory of the owner. */
static int array_decompress(struct array_walk *w, struct array_buffer *buffer)
{
    const uint8_t *from = buffer->data;
    const int64_t size = buffer->size;
    int64_t room;
    void *to;
    int code;

    if (size < PREFIX)
        return array_fail(w, EPROTO, "a compressed buffer is too short");
    room = (int64_t)uva__table_load(from, 8);
    buffer->data = from + PREFIX;
    buffer->size = size - PREFIX;
    if (room == -1 || (room == 0 && buffer->size == 0)) /* as Java writes it */
        return 0;
    if (room < 0)
        return array_fail(w, EPROTO, "a compressed buffer of negative size");
    code = array_copy_room(w, room, &to);
    if (code != 0)
        return code;
    buffer->data = to;
    buffer->size = room;
    return uva__ipc_decompress(w->source->parts->codec, to, (size_t)room,
                               from + PREFIX, (size_t)(size - PREFIX),
                               w->error);
}

/* Copies a buffer that begins where 8 does not divide: its items could not be
 * read there. */
static int array_align(struct array_walk *w, struct array_buffer *buffer)
{
    void *to;
    int code;

    if ((uintptr_t)buffer->data % ALIGN == 0)
        return 0;
    code = array_copy_room(w, buffer->size, &to);
    if (code != 0)
        return code;
    buffer->data = memcpy(to, buffer->data, (size_t)buffer->size);
    return 0;
}

/* Finds the next buffer in the body. The place of an empty one is not looked
 * at: it is not read. */
static int array_find_buffer(struct array_walk *w, struct array_buffer *out)
{
    const struct uva__ipc_parts *parts = w->source->parts;
    const struct uva__shared_bytes *body = w->source->body;
    const int64_t room = body == NULL ? 0 : (int64_t)body->size;
    const uint8_t *item;
    int64_t offset;

    if (w->buffer >= parts->buffers.count)
        return array_fail(w, EPROTO, "the header lists too few buffers");
    item = parts->buffers.items + 16 * w->buffer++;
    offset = (int64_t)uva__table_load(item, 8);
    out->size = (int64_t)uva__table_load(item + 8, 8);
    if (out->size == 0)
        return 0;
    if (out->size < 0 || offset < 0 || offset > room ||
        out->size > room - offset)
        return array_fail(w, EPROTO, "a buffer lies outside of the body");
    out->data = body->bytes + offset;
    return 0;
}

/* Takes the next buffer, of at least `least` bytes. */
static int array_take_buffer(struct array_walk *w, int64_t least,
                             struct array_buffer *out)
{
    const struct uva__ipc_parts *parts = w->source->parts;
    int code;

    *out = (struct array_buffer){.data = zeroes};
    if (parts == NULL)
        return 0;
    code = array_find_buffer(w, out);
    if (code == 0 && out->size > 0 && parts->codec != UVA__IPC_PLAIN)
        code = array_decompress(w, out);
    if (code == 0 && out->size > 0)
        code = array_align(w, out);
    if (code != 0)
        return code;
    if (out->size < least)
        return array_fail(w, EPROTO, "a buffer is too short");
    if (out->size == 0)
        out->data = zeroes;
    return 0;
}

/* Copies a buffer of the other byte order. `unit`: see ipc_turn.h. */
static int array_turn(struct array_walk *w, struct array_buffer *buffer,
                      int32_t unit)
{
    void *to;
    int code;

    if (!w->source->is_turned || unit == 1 || buffer->size == 0)
        return 0;
    code = array_copy_room(w, buffer->size, &to);
    if (code != 0)
        return code;
    uva__ipc_turn(to, buffer->data, buffer->size, unit);
    buffer->data = to;
    return 0;
}

/* Takes the buffer `i` of an array, which holds such units. */
static int array_take(struct array_walk *w, struct ArrowArray *array, int i,
                      int64_t least, int32_t unit)
{
    struct array_buffer buffer;
    int code = array_take_buffer(w, least, &buffer);

    if (code == 0)
        code = array_turn(w, &buffer, unit);
    array->buffers[i] = buffer.data;
    return code;
}

/* Takes the bitmap, and counts the nulls. Without nulls it may be of any size.
 */
static int array_take_validity(struct array_walk *w, struct ArrowArray *array)
{
    struct array_buffer buffer;
    const int code = array_take_buffer(w, 0, &buffer);
    const int64_t size = (array->length + 7) / 8;
    int64_t zero_bits;

    if (code != 0)
        return code;
    if (array->null_count < -1 || array->null_count > array->length)
        return array_fail(w, EPROTO, "an impossible number of nulls");
    if (buffer.size == 0 && array->null_count > 0)
        return array_fail(w, EPROTO, "nulls without a bitmap");
    if (buffer.size == 0 || (buffer.size < size && array->null_count == 0)) {
        array->null_count = 0;
        return 0;
    }
    if (buffer.size < size)
        return array_fail(w, EPROTO, "the bitmap is too short");
    zero_bits = uva__ipc_bits_zeroes(buffer.data, 0, array->length);
    if (array->null_count >= 0 && array->null_count != zero_bits)
        return array_fail(w, EPROTO, "the bitmap has another number of nulls");
    array->null_count = zero_bits;
    array->buffers[0] = zero_bits == 0 ? NULL : buffer.data;
    return 0;
}

/* Skips the bitmap that unions and run ends have until metadata V4. A bitmap
 * with nulls cannot be passed on: there is no place for it, and dense unions
 * leave out nulls. */
static int array_skip_validity(struct array_walk *w, struct ArrowArray *array)
{
    struct array_buffer buffer;
    const int64_t null_count = array->null_count;
    const int code = array_take_buffer(w, 0, &buffer);

    array->null_count = 0;
    if (code != 0 || null_count == 0 || (buffer.size == 0 && null_count < 0))
        return code;
    if (buffer.size < (array->length + 7) / 8)
        return array_fail(w, EPROTO, "the bitmap is too short");
    if (uva__ipc_bits_zeroes(buffer.data, 0, array->length) == 0)
        return 0;
    return array_fail(w, ENOTSUP, "nulls of its own, as until metadata V4");
}

/* ---- buffers by kind ---------------------------------------------------- */

/* The size of `count` items, or INT64_MAX: more than any buffer has. */
static int64_t array_bytes(int64_t count, int64_t width)
{
    return width > 0 && count > INT64_MAX / width ? INT64_MAX : count * width;
}

/* Takes offsets. Without items they may be missing, and Arrow C++ writes any
 * first one then: they are left out. */
static int array_take_offsets(struct array_walk *w, struct ArrowArray *array)
{
    const int64_t count = array->length == 0 ? 0 : array->length + 1;
    const int32_t width = w->field->width;
    const int code = array_take(w, array, 1, array_bytes(count, width), width);

    if (array->length == 0)
        array->buffers[1] = zeroes;
    return code;
}

static int array_take_binary(struct array_walk *w, struct ArrowArray *array,
                             int64_t *data_size)
{
    struct array_buffer data;
    int code = array_take_offsets(w, array);

    if (code == 0)
        code = array_take_buffer(w, 0, &data);
    if (code != 0)
        return code;
    array->buffers[2] = data.data;
    *data_size = data.size;
    return 0;
}

/* Takes the views, and the data that they refer to, of which the sizes follow
 * in a buffer of the C data interface. */
static int array_take_views(struct array_walk *w, struct ArrowArray *array)
{
    const int64_t n_data = array->n_buffers - FIRST_BUFFERS;
    int64_t *sizes = array_room(w, (size_t)(n_data + 1) * sizeof(*sizes));
    int code = sizes == NULL
                   ? ENOMEM
                   : array_take(w, array, 1, array_bytes(array->length, 16),
                                UVA__IPC_TURN_VIEWS);

    for (int64_t i = 0; i < n_data && code == 0; i++) {
        struct array_buffer data;

        code = array_take_buffer(w, 0, &data);
        array->buffers[2 + i] = data.data;
        sizes[i] = data.size;
    }
    if (code == 0)
        array->buffers[array->n_buffers - 1] = sizes;
    return code;
}

/* Takes the buffers after the bitmap. */
static int array_take_rest(struct array_walk *w, struct ArrowArray *array,
                           int64_t *data_size)
{
    const int32_t width = w->field->width;
    const int64_t length = array->length;
    int code;

    switch (w->field->kind) {
    case UVA__IPC_BITS:
        return array_take(w, array, 1, (length + 7) / 8, 1);
    case UVA__IPC_FIXED:
        return array_take(w, array, 1, array_bytes(length, width),
                          uva__ipc_turn_unit(w->field));
    case UVA__IPC_BINARY:
        return array_take_binary(w, array, data_size);
    case UVA__IPC_VIEW:
        return array_take_views(w, array);
    case UVA__IPC_LIST:
        return array_take_offsets(w, array);
    case UVA__IPC_LIST_VIEW:
        code = array_take(w, array, 1, array_bytes(length, width), width);
        return code != 0
                   ? code
                   : array_take(w, array, 2, array_bytes(length, width), width);
    case UVA__IPC_SPARSE_UNION:
        return array_take(w, array, 0, length, 1);
    case UVA__IPC_DENSE_UNION:
        code = array_take(w, array, 0, length, 1);
        return code != 0 ? code
                         : array_take(w, array, 1, array_bytes(length, 4), 4);
    case UVA__IPC_NULL:
    case UVA__IPC_FIXED_LIST:
    case UVA__IPC_STRUCT:
    case UVA__IPC_RUN_END:
        break;
    }
    return 0;
}

/* How many buffers an array of the field has; -1: an impossible number. */
static int64_t array_count_buffers(struct array_walk *w)
{
    const struct uva__ipc_parts *parts = w->source->parts;
    uint64_t n_data = 0;

    if (w->field->kind != UVA__IPC_VIEW)
        return uva__ipc_type_buffers(w->field->kind);
    if (parts != NULL) {
        if (w->variadic >= parts->variadic.count)
            return -1;
        n_data = uva__table_load(parts->variadic.items + 8 * w->variadic++, 8);
        if (n_data > parts->buffers.count - w->buffer)
            return -1;
    }
    return FIRST_BUFFERS + (int64_t)n_data;
}

/* ---- the walk ----------------------------------------------------------- */

static int array_fill(struct array_walk *w, int32_t at,
                      struct ArrowArray *array);

static int array_fill_children(struct array_walk *w, int32_t at,
                               struct ArrowArray *array)
{
    const struct uva__ipc_field *fields = w->source->plan->fields;
    int32_t child = at + 1;
    int code = 0;

    for (int64_t i = 0; i < array->n_children && code == 0; i++) {
        struct ArrowArray *made = array_room(w, sizeof(*made));

        if (made == NULL)
            return ENOMEM;
        made->release = NULL;
        array->children[i] = made;
        code = array_fill(w, child, made);
        child = fields[child].next;
    }
    w->field = &fields[at];
    return code;
}

/* Moves the values of the field's dictionary into the array. */
static int array_fill_dictionary(struct array_walk *w, struct ArrowArray *array)
{
    const int32_t dictionary = w->field->dictionary;
    struct ArrowArray *made;

    if (dictionary < 0)
        return 0;
    made = array_room(w, sizeof(*made));
    if (made == NULL)
        return ENOMEM;
    made->release = NULL;
    array->dictionary = made;
    if (w->source->values != NULL)
        return uva_array_to_cpu(&w->source->values[dictionary], made);
    return array_fill(w, w->source->plan->dictionaries[dictionary].field, made);
}

static int array_fill(struct array_walk *w, int32_t at,
                      struct ArrowArray *array)
{
    const struct uva__ipc_field *field = &w->source->plan->fields[at];
    int64_t n_buffers, data_size = 0;
    const char *wrong;
    int code;

    w->field = field;
    n_buffers = array_count_buffers(w);
    if (n_buffers < 0)
        return array_fail(w, EPROTO, "impossible numbers of data buffers");
    code = array_begin(w, n_buffers, field->n_children, array);
    if (code == 0)
        code = array_take_node(w, array);
    if (code == 0 && uva__ipc_has_validity(field->kind))
        code = array_take_validity(w, array);
    else if (field->kind == UVA__IPC_NULL)
        array->null_count = array->length;
    else if (code == 0 && w->source->is_old)
        code = array_skip_validity(w, array);
    else
        array->null_count = 0;
    if (code == 0)
        code = array_take_rest(w, array, &data_size);
    if (code == 0)
        code = array_fill_children(w, at, array);
    if (code == 0)
        code = array_fill_dictionary(w, array);
    w->field = field;
    if (code != 0)
        return code;
    wrong = uva__ipc_check(field, array, data_size);
    return wrong == NULL ? 0 : array_fail(w, EPROTO, wrong);
}

/* The batch itself has no node and no bitmap in the format. */
static int array_fill_batch(struct array_walk *w, struct ArrowArray *array)
{
    const struct uva__ipc_field *field = w->source->plan->fields;
    const struct uva__ipc_parts *parts = w->source->parts;
    int code;

    w->field = field;
    code = array_begin(w, 1, field->n_children, array);
    if (code == 0)
        code = array_fill_children(w, 0, array);
    array->length = parts->length;
    if (code == 0 && array->length > MOST_ROWS)
        return array_fail(w, EPROTO, "an impossible number of rows");
    for (int64_t i = 0; i < array->n_children && code == 0; i++)
        if (array->children[i]->length != array->length)
            code = array_fail(w, EPROTO, "columns of different lengths");
    return code;
}

/* Whether the whole header was used. */
static int array_check_end(struct array_walk *w)
{
    const struct uva__ipc_parts *parts = w->source->parts;

    if (parts == NULL)
        return 0;
    if (w->node != parts->nodes.count || w->buffer != parts->buffers.count ||
        w->variadic != parts->variadic.count)
        return array_fail(w, EPROTO,
                          "the header lists more than the schema has");
    return 0;
}

int uva__ipc_array_read(const struct uva__ipc_input *source, int32_t at,
                        struct ArrowArray *out, struct uva_error *error)
{
    struct array_walk w = {
        .source = source, .left = source->most, .error = error};
    int code = array_owner_new(&w, at);

    out->release = NULL;
    if (code != 0)
        return code;
    code = at == 0 ? array_fill_batch(&w, out) : array_fill(&w, at, out);
    if (code == 0)
        code = array_check_end(&w);
    if (code != 0 && out->release != NULL)
        out->release(out);
    array_owner_release(w.owner);
    return code;
}
