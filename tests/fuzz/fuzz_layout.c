/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas and arrays of any shape: measured, copied and shared.
 *
 * The bytes build a tree of schema and array together. Most of it is
 * consistent, but any field of any node may be wrong. Only the parts that a
 * foreign party must not get wrong are kept: pointers are NULL or valid (a
 * vector has at least its stated length, unless that length exceeds the limits
 * of all code; offsets exist for all stated items). Every struct, vector, text
 * and buffer is a separate block, so that a read beyond one is found. */
#include <errno.h>
#include <string.h>

#include "arrow/buffer.h"
#include "arrow/format.h"
#include "arrow/layout.h"
#include "arrow/plan.h"
#include "arrow/row_size.h"
#include "arrow/share.h"
#include "arrow/structs.h"
#include "fuzz/fuzz_input.h"
#include "support/faulty_allocator.h"
#include "uvarrow/arrow.h"

__extension__ typedef __int128 grove_wide; /* for sums beyond an int64_t */

enum { MOST_NODES = 200, MOST_BYTES = 4096, MOST_DEPTH = 80 };

/* A tree under construction. */
struct tree_builder {
    struct fuzz_input in;
    void *blocks[MOST_NODES * 16]; /* owns: all blocks */
    int block_count;
    int nodes;    /* nodes made so far */
    bool tied;    /* one node refers back to a parent */
    bool on_host; /* offsets will be read */
    const struct ArrowSchema *schemas[MOST_DEPTH + 1]; /* path from the root */
    const struct ArrowArray *arrays[MOST_DEPTH + 1];
};

static int grove_released; /* roots released, of both kinds */

static void *grove_new(struct tree_builder *g, size_t size)
{
    void *block = calloc(1, size + (size == 0));

    FUZZ_RULE(block != NULL);
    FUZZ_RULE(g->block_count < MOST_NODES * 16);
    g->blocks[g->block_count++] = block;
    return block;
}

static void grove_release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
    grove_released++;
}

static void grove_release_array(struct ArrowArray *array)
{
    array->release = NULL;
    grove_released++;
}

/* ---- texts -------------------------------------------------------------- */

static const char *const FORMATS[] = {
    "n",        "b",      "c",       "i",    "L",   "e",
    "g",        "u",      "Z",       "vu",   "vz",  "+s",
    "+l",       "+L",     "+m",      "+vl",  "+vL", "+r",
    "+us:0,1",  "+ud:5",  "+ud:",    "+w:3", "w:5", "w:0",
    "d:9,1,32", "d:5,-1", "tsu:UTC", "tdD",  "tin", "w:2147483647",
    "+s"};

/* Makes a text of the next bytes; the first of them gives its length. */
static const char *grove_text(struct tree_builder *g)
{
    const size_t size = (size_t)fuzz_below(&g->in, 24);
    char *text = grove_new(g, size + 1);

    for (size_t i = 0; i < size; i++)
        text[i] = (char)fuzz_byte(&g->in);
    return text;
}

static const char *grove_format(struct tree_builder *g)
{
    const int count = (int)(sizeof(FORMATS) / sizeof(FORMATS[0]));
    const int byte = fuzz_byte(&g->in);

    if (byte == 255)
        return NULL;
    if (byte >= 128)
        return grove_text(g);
    return strcpy(grove_new(g, strlen(FORMATS[byte % count]) + 1),
                  FORMATS[byte % count]);
}

/* ---- buffers ------------------------------------------------------------ */

/* Makes a buffer of `size` bytes, some of them from the input. */
static void *grove_bytes(struct tree_builder *g, size_t size)
{
    unsigned char *bytes = grove_new(g, size);

    for (size_t i = 0; i < size && g->in.size > 0 && i < 16; i++)
        bytes[i] = fuzz_byte(&g->in);
    return bytes;
}

/* Whether the items of all fixed buffers point to values: views, type ids and
 * offsets of unions, ends of runs. */
static bool grove_points(const struct tree_builder *g, int depth)
{
    const char *format = g->schemas[depth]->format;
    const char *above = depth > 0 ? g->schemas[depth - 1]->format : NULL;

    return (format != NULL && (format[0] == 'v' || format[0] == '+')) ||
           (above != NULL && strcmp(above, "+r") == 0);
}

/* Returns how many bytes of `buffers[i]` may be read: 0 of most buffers, the
 * whole of offsets and view lengths, and of each that `points`. -1: more than
 * fits here, although not more than is possible. */
static int64_t grove_readable(const struct uva__layout *layout,
                              const struct ArrowArray *array, int64_t i,
                              bool points)
{
    const int64_t items =
        (int64_t)((uint64_t)array->offset + (uint64_t)array->length);
    grove_wide size = 0;

    if (array->length <= 0 || array->offset < 0 || items < 0)
        return 0;
    if (i < layout->n_buffers && layout->buffers[i].kind == UVA__BUFFER_OFFSETS)
        size = ((grove_wide)items + 1) * layout->buffers[i].width;
    if (points && i < layout->n_buffers)
        size = layout->buffers[i].width == 0
                   ? (grove_wide)items / 8 + 1
                   : ((grove_wide)items + 1) * layout->buffers[i].width;
    if (layout->variadic && array->n_buffers > 0 && i == array->n_buffers - 1)
        size = (grove_wide)(i - layout->n_buffers) * 8;
    if (size < 0 || size > PTRDIFF_MAX)
        return 0;
    return size > MOST_BYTES ? -1 : (int64_t)size;
}

/* Fills the buffers; in a host array, a buffer that would have to be too large
 * stays NULL. */
static void grove_fill(struct tree_builder *g, struct ArrowArray *array,
                       const struct uva__layout *layout, int64_t slots,
                       bool points)
{
    for (int64_t i = 0; i < slots; i++) {
        const int64_t size = grove_readable(layout, array, i, points);
        if (fuzz_byte(&g->in) >= 240 || (g->on_host && size < 0))
            array->buffers[i] = NULL;
        else
            array->buffers[i] = grove_bytes(g, g->on_host ? (size_t)size : 0);
    }
}

/* ---- nodes -------------------------------------------------------------- */

/* Returns the stated length of a vector of `n` members: the true one, a smaller
 * one, or a length that no code will follow. */
static int64_t grove_count(struct tree_builder *g, int64_t n)
{
    const int byte = fuzz_byte(&g->in);
    int64_t other;

    if (byte < 200)
        return n;
    if (byte < 225)
        return n > 0 ? n - 1 : n;
    other = fuzz_strange(&g->in);
    return other < 0 || other > UVA__STRUCTS_MAX_NODES ? other : n;
}

/* Sets lengths and counts, valid or strange. */
static void grove_numbers(struct tree_builder *g, struct ArrowArray *array)
{
    const int way = fuzz_byte(&g->in);

    array->length = way < 160 ? way % 10 : fuzz_strange(&g->in);
    array->offset = way < 192 ? way % 3 : fuzz_strange(&g->in);
    array->null_count = way < 224 ? way % 2 - 1 : fuzz_strange(&g->in);
}

static void grove_plant(struct tree_builder *g, struct ArrowSchema *schema,
                        struct ArrowArray *array, int depth);

/* Makes a child, or a reference back to a parent. The latter only once, because
 * walking a tree that shares branches takes very long, although not for ever.
 */
static void grove_child(struct tree_builder *g, struct ArrowSchema *schema,
                        struct ArrowArray *array, int i, int depth)
{
    const int way = fuzz_byte(&g->in);

    if (way >= 250 && !g->tied) {
        g->tied = true;
        schema->children[i] =
            (struct ArrowSchema *)(uintptr_t)g->schemas[way % (depth + 1)];
        array->children[i] =
            (struct ArrowArray *)(uintptr_t)g->arrays[way % (depth + 1)];
        return;
    }
    if (way < 240)
        schema->children[i] = grove_new(g, sizeof(struct ArrowSchema));
    if (way < 245)
        array->children[i] = grove_new(g, sizeof(struct ArrowArray));
    if (way < 240)
        grove_plant(g, schema->children[i], array->children[i], depth + 1);
}

static void grove_children(struct tree_builder *g, struct ArrowSchema *schema,
                           struct ArrowArray *array, int count, int depth)
{
    if (count == 0 && fuzz_byte(&g->in) < 250)
        return;
    schema->children = grove_new(g, (size_t)count * sizeof(void *));
    array->children = grove_new(g, (size_t)count * sizeof(void *));
    for (int i = 0; i < count; i++)
        grove_child(g, schema, array, i, depth);
    schema->n_children = grove_count(g, count);
    array->n_children = grove_count(g, count);
    if (fuzz_byte(&g->in) >= 250)
        schema->children = NULL;
    if (fuzz_byte(&g->in) >= 250)
        array->children = NULL;
}

static void grove_dictionary(struct tree_builder *g, struct ArrowSchema *schema,
                             struct ArrowArray *array, int depth)
{
    const int way = fuzz_byte(&g->in);

    if (way < 200)
        return;
    if (way < 250)
        schema->dictionary = grove_new(g, sizeof(struct ArrowSchema));
    if (way < 245 || way >= 250)
        array->dictionary = grove_new(g, sizeof(struct ArrowArray));
    if (way < 245)
        grove_plant(g, schema->dictionary, array->dictionary, depth + 1);
}

static void grove_plant(struct tree_builder *g, struct ArrowSchema *schema,
                        struct ArrowArray *array, int depth)
{
    struct uva__layout layout = {.n_buffers = 2};
    int64_t slots;

    if (++g->nodes > MOST_NODES || depth > MOST_DEPTH)
        return;
    g->schemas[depth] = schema;
    g->arrays[depth] = array;
    schema->format = grove_format(g);
    if (uva__format_read(schema->format, &layout) != 0)
        layout = (struct uva__layout){.n_buffers = 2};
    schema->name = fuzz_byte(&g->in) < 64 ? grove_text(g) : NULL;
    schema->release = fuzz_byte(&g->in) < 252 ? grove_release_schema : NULL;
    array->release = fuzz_byte(&g->in) < 252 ? grove_release_array : NULL;
    grove_numbers(g, array);
    slots = layout.n_buffers + (layout.variadic ? fuzz_below(&g->in, 4) : 0);
    array->buffers = grove_new(g, (size_t)slots * sizeof(void *));
    array->n_buffers = grove_count(g, slots);
    grove_fill(g, array, &layout, slots, grove_points(g, depth));
    if (fuzz_byte(&g->in) >= 252)
        array->buffers = NULL;
    grove_children(g, schema, array,
                   layout.n_children < 0 || layout.n_children > 8
                       ? fuzz_below(&g->in, 4)
                       : layout.n_children,
                   depth);
    grove_dictionary(g, schema, array, depth);
}

/* ---- checks ------------------------------------------------------------- */

static int64_t plain_number(const void *buffer, int32_t width, int64_t i)
{
    int32_t narrow = 0;
    int64_t wide = 0;

    if (width == 8)
        memcpy(&wide, (const char *)buffer + 8 * i, 8);
    else
        memcpy(&narrow, (const char *)buffer + 4 * i, 4);
    return width == 8 ? wide : narrow;
}

/* Returns the size of the data that offsets refer to. */
static grove_wide plain_data(const struct ArrowArray *array,
                             const void *offsets, int32_t width)
{
    const int64_t first = plain_number(offsets, width, array->offset);
    const int64_t last =
        plain_number(offsets, width, array->offset + array->length);

    FUZZ_RULE(0 <= first && first <= last);
    return last;
}

/* Returns the size of one buffer in bytes, without overflow. */
static grove_wide plain_buffer(const struct uva__layout *layout,
                               const struct ArrowArray *array, int64_t i,
                               bool on_host)
{
    const grove_wide items = (grove_wide)array->offset + array->length;
    const int64_t last = array->n_buffers - 1;
    const struct uva__layout_buffer *buffer = &layout->buffers[i % 3];

    if (array->length == 0)
        return 0;
    if (i >= layout->n_buffers)
        return i == last  ? (grove_wide)(last - layout->n_buffers) * 8
               : !on_host ? 0
                          : plain_number(array->buffers[last], 8,
                                         i - layout->n_buffers);
    switch (buffer->kind) {
    case UVA__BUFFER_FIXED:
        return items * buffer->width;
    case UVA__BUFFER_OFFSETS:
        return (items + 1) * buffer->width;
    case UVA__BUFFER_DATA:
        return on_host
                   ? plain_data(array, array->buffers[i - 1], buffer[-1].width)
                   : 0;
    default:
        return (items + 7) / 8;
    }
}

/* Adds up the buffers of one node. */
static grove_wide sum_node(const struct ArrowSchema *schema,
                           const struct ArrowArray *array, bool on_host)
{
    struct uva__layout layout;
    grove_wide sum = 0;
    int64_t size;

    FUZZ_RULE(uva__format_read(schema->format, &layout) == 0);
    FUZZ_RULE(array->length >= 0 && array->offset >= 0);
    for (int64_t i = 0; i < array->n_buffers; i++) {
        const grove_wide plain = plain_buffer(&layout, array, i, on_host);
        const bool there = array->buffers[i] != NULL;
        FUZZ_RULE(uva__buffer_size(&layout, array, i, on_host, &size) == 0);
        FUZZ_RULE(size == (there ? plain : 0));
        FUZZ_RULE(there || plain == 0 || (i == 0 && array->null_count <= 0));
        sum += size;
    }
    return sum;
}

/* Computes the size of a valid tree independently. */
static grove_wide sum_tree(const struct ArrowSchema *schema,
                           const struct ArrowArray *array, bool on_host)
{
    grove_wide sum = sum_node(schema, array, on_host);

    FUZZ_RULE(array->release != NULL);
    FUZZ_RULE(schema->n_children == array->n_children);
    for (int64_t i = 0; i < array->n_children; i++)
        sum += sum_tree(schema->children[i], array->children[i], on_host);
    FUZZ_RULE((schema->dictionary == NULL) == (array->dictionary == NULL));
    if (array->dictionary != NULL)
        sum += sum_tree(schema->dictionary, array->dictionary, on_host);
    return sum;
}

/* The plan of the schema accepts no other arrays, and measures the same; a
 * whole one has no more memory. */
static void check_plan(const struct ArrowSchema *schema,
                       const struct ArrowDeviceArray *array, int code,
                       int64_t size, int64_t held)
{
    struct faulty_allocator faulty;
    struct uva_allocator memory;
    struct uva__plan plan;
    int64_t other = size;

    faulty_allocator_init(&faulty, 0);
    memory = faulty_allocator_table(&faulty);
    uva__plan_init(&plan, &memory, schema);
    FUZZ_RULE(!uva__plan_measure(&plan, schema, array, &other) || code == 0);
    FUZZ_RULE(other == size);
    FUZZ_RULE(code != 0 || !uva__plan_is_whole(&plan, array) || held <= size);
    uva__plan_fini(&plan);
    FUZZ_RULE(faulty_allocator_live(&faulty) == 0);
}

static int check_measure(const struct ArrowSchema *schema,
                         const struct ArrowDeviceArray *array)
{
    struct uva_error error = {0};
    int64_t size = -1, other = -1, memory = -1;
    const int code = uva__layout_measure(schema, array, &size, &error);

    FUZZ_RULE(code == 0 || code == EINVAL || code == ENOTSUP);
    FUZZ_RULE(code == error.code);
    FUZZ_RULE((code == 0) == (error.message[0] == '\0'));
    FUZZ_RULE(strlen(error.message) < sizeof(error.message));
    FUZZ_RULE(uva_array_size(schema, array, &other) == code);
    FUZZ_RULE(size == other && (size >= 0) == (code == 0));
    FUZZ_RULE(uva_array_memory(schema, array, &memory) == code);
    FUZZ_RULE(code != 0 || uva__row_size_measure(
                               schema, &array->array, 0, array->array.length,
                               uva__buffer_on_host(array)) == size);
    if (code == 0)
        FUZZ_RULE(sum_tree(schema, &array->array, uva__buffer_on_host(array)) ==
                  memory);
    check_plan(schema, array, code, size, memory);
    return code;
}

/* The buffers that are listed add up to the sum of the tree. */
static void check_buffers(const struct ArrowSchema *schema,
                          const struct ArrowDeviceArray *array, int code)
{
    static struct uva_buffer buffers[MOST_NODES * 16];
    size_t count = MOST_NODES * 16;
    grove_wide sum = 0;

    FUZZ_RULE(uva_array_buffers(schema, array, buffers, &count) == code);
    FUZZ_RULE(count <= MOST_NODES * 16);
    if (code != 0)
        return;
    for (size_t i = 0; i < count; i++) {
        FUZZ_RULE(buffers[i].size_bytes >= 0 || !uva__buffer_on_host(array));
        if (buffers[i].size_bytes > 0)
            sum += buffers[i].size_bytes;
    }
    FUZZ_RULE(sum ==
              sum_tree(schema, &array->array, uva__buffer_on_host(array)));
}

/* A copy of a schema must be complete or absent, also if memory fails. */
static void check_copy(const struct ArrowSchema *schema, bool sound, long fail)
{
    struct faulty_allocator faulty;
    struct uva_allocator memory;
    struct ArrowSchema copy;
    int code;

    faulty_allocator_init(&faulty, fail);
    memory = faulty_allocator_table(&faulty);
    code = uva__structs_copy_schema(&memory, schema, &copy);
    FUZZ_RULE((code == 0) == (copy.release != NULL));
    FUZZ_RULE((code == ENOMEM) == faulty_allocator_has_failed(&faulty));
    if (code == 0) {
        FUZZ_RULE(strcmp(copy.format, schema->format) == 0);
        FUZZ_RULE(copy.n_children == schema->n_children);
        FUZZ_RULE((copy.dictionary != NULL) == (schema->dictionary != NULL));
        copy.release(&copy);
    }
    FUZZ_RULE(!sound || code == 0 || code == ENOMEM);
    FUZZ_RULE(faulty_allocator_live(&faulty) == 0);
}

/* Shares the array, releases the halves in either order; the array must be
 * released once. */
static void check_share(struct ArrowDeviceArray *array, int way, long fail)
{
    struct faulty_allocator faulty;
    struct uva_allocator memory;
    struct ArrowDeviceArray other;
    const bool live = uva_array_is_live(array);
    int code;

    faulty_allocator_init(&faulty, fail);
    memory = faulty_allocator_table(&faulty);
    grove_released = 0;
    code = uva__array_share(&memory, array, &other);
    FUZZ_RULE((code == 0) == (other.array.release != NULL));
    FUZZ_RULE(grove_released == 0);
    if (way % 2 == 0)
        uva_array_release(&other);
    uva_array_release(array);
    FUZZ_RULE(way % 2 == 0 || code != 0 || grove_released == 0);
    if (way % 2 != 0)
        uva_array_release(&other);
    FUZZ_RULE(grove_released == live);
    FUZZ_RULE(faulty_allocator_live(&faulty) == 0);
}

/* ---- one input ---------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tree_builder tree_builder;
    struct ArrowDeviceArray array = {.device_id = -1};
    struct ArrowSchema *schema;
    int way, code;

    memset(&tree_builder, 0, sizeof(tree_builder));
    tree_builder.in = (struct fuzz_input){data, size};
    way = fuzz_byte(&tree_builder.in);
    array.device_type = way < 200 ? ARROW_DEVICE_CPU : way % 16;
    array.sync_event = way % 2 == 0 ? NULL : &tree_builder;
    tree_builder.on_host = uva__buffer_on_host(&array);
    schema = grove_new(&tree_builder, sizeof(*schema));
    grove_plant(&tree_builder, schema, &array.array, 0);
    code = check_measure(schema, &array);
    check_buffers(schema, &array, code);
    check_copy(schema, code == 0, way % 7);
    check_share(&array, way, way % 5);
    for (int i = 0; i < tree_builder.block_count; i++)
        free(tree_builder.blocks[i]);
    return 0;
}
