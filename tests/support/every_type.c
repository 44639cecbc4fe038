/* SPDX-License-Identifier: Apache-2.0 */
/* Formats, each followed by the formats of its children. */
#include "support/every_type.h"

#include <stdlib.h>
#include <string.h>

#include "arrow/buffer.h"
#include "arrow/format.h"
#include "support/plain_tree.h"

struct type {
    const char *format;
    const char *children[2];
    const char *dictionary;
};

enum { CHILD_ROWS = 40 };

static const struct type types[EVERY_TYPES] = {
    {"n", {0}, NULL},
    {"b", {0}, NULL},
    {"c", {0}, NULL},
    {"C", {0}, NULL},
    {"s", {0}, NULL},
    {"i", {0}, NULL},
    {"l", {0}, NULL},
    {"e", {0}, NULL},
    {"f", {0}, NULL},
    {"g", {0}, NULL},
    {"w:3", {0}, NULL},
    {"d:19,10", {0}, NULL},
    {"d:40,10,256", {0}, NULL},
    {"z", {0}, NULL},
    {"Z", {0}, NULL},
    {"u", {0}, NULL},
    {"U", {0}, NULL},
    {"vz", {0}, NULL},
    {"vu", {0}, NULL},
    {"tdD", {0}, NULL},
    {"tsu:UTC", {0}, NULL},
    {"tin", {0}, NULL},
    {"+l", {"u"}, NULL},
    {"+L", {"i"}, NULL},
    {"+vl", {"u"}, NULL},
    {"+vL", {"l"}, NULL},
    {"+w:2", {"s"}, NULL},
    {"+s", {"u", "+l"}, NULL},
    {"+m", {"+s"}, NULL},
    {"+ud:0,1", {"i", "u"}, NULL},
    {"+us:0,1", {"l", "vu"}, NULL},
    {"+r", {"i", "u"}, NULL},
    {"c", {0}, "u"},
    {"i", {0}, "+s"},
    {"+l", {"+s"}, NULL},
    {"+s", {0}, NULL},
    {"+l", {"n"}, NULL},
    {"S", {0}, "vz"},
};

/* The child of a type that is itself a child. */
static const struct type *type_below(const char *format)
{
    static const struct type below[] = {
        {"+s", {"u", "i"}, NULL},
        {"+l", {"Z"}, NULL},
    };
    static struct type leaf;

    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
        if (strcmp(below[i].format, format) == 0)
            return &below[i];
    leaf = (struct type){format, {0}, NULL};
    return &leaf;
}

/* ---- buffers ------------------------------------------------------------ */

struct block {
    struct block *before;
    void *bytes;
};

static struct block *blocks;

static void *block_new(size_t size)
{
    struct block *block = malloc(sizeof(*block));
    unsigned char *bytes = malloc(size);

    if (block == NULL || bytes == NULL)
        abort();
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7 + size);
    *block = (struct block){blocks, bytes};
    blocks = block;
    return bytes;
}

void every_type_forget(void)
{
    struct block *before;

    for (; blocks != NULL; blocks = before) {
        before = blocks->before;
        free(blocks->bytes);
        free(blocks);
    }
}

static void offsets_fill(void *buffer, int32_t width, int64_t items)
{
    for (int64_t i = 0; i <= items; i++) {
        const int64_t wide = i * 3;
        const int32_t narrow = (int32_t)wide;
        memcpy((char *)buffer + i * width,
               width == 4 ? (const void *)&narrow : &wide, (size_t)width);
    }
}

static void buffer_fill(const struct uva__layout *layout,
                        const struct every_variant *variant,
                        struct ArrowArray *array, int i)
{
    const enum uva__buffer_kind kind = layout->buffers[i].kind;
    const int64_t items = array->length + array->offset;
    int64_t size;

    if (kind == UVA__BUFFER_VALIDITY && !variant->nulls)
        return;
    if (uva__buffer_needed(layout, array, i, true, &size) != 0)
        abort();
    if (size == 0)
        return;
    array->buffers[i] = block_new((size_t)size);
    if (kind == UVA__BUFFER_OFFSETS)
        offsets_fill((void *)(uintptr_t)array->buffers[i],
                     layout->buffers[i].width, items);
}

/* Two data buffers, one of them empty, and their lengths. */
static void variadic_fill(const struct uva__layout *layout,
                          struct ArrowArray *array)
{
    const int first = layout->n_buffers;
    int64_t *lengths = block_new(3 * sizeof(*lengths));

    lengths[0] = 33;
    lengths[1] = 0;
    lengths[2] = 5;
    array->buffers[first] = block_new(33);
    array->buffers[first + 2] = block_new(5);
    array->buffers[first + 3] = lengths;
}

/* ---- nodes -------------------------------------------------------------- */

/* The rows of the children: enough for a struct and for lists of two. */
static int64_t rows_below(const struct ArrowArray *array)
{
    const int64_t rows = 2 * (array->offset + array->length);

    return rows > CHILD_ROWS ? rows : CHILD_ROWS;
}

static void node_make(const struct type *given,
                      const struct every_variant *variant, int64_t length,
                      struct ArrowSchema *schema, struct ArrowArray *array)
{
    const struct type type = *given;
    const int count = (type.children[0] != NULL) + (type.children[1] != NULL);
    struct uva__layout layout;

    if (uva__format_read(type.format, &layout) != 0)
        abort();
    plain_schema(schema, type.format, "x", count);
    plain_array(array, length, layout.n_buffers + (layout.variadic ? 4 : 0),
                count);
    array->offset = variant->offset;
    array->null_count = variant->nulls ? -1 : 0;
    for (int i = 0; i < layout.n_buffers; i++)
        buffer_fill(&layout, variant, array, i);
    if (layout.variadic)
        variadic_fill(&layout, array);
    for (int i = 0; i < count; i++)
        node_make(type_below(type.children[i]), variant, rows_below(array),
                  schema->children[i], array->children[i]);
    if (type.dictionary != NULL)
        node_make(type_below(type.dictionary), variant, CHILD_ROWS,
                  plain_schema_dictionary(schema),
                  plain_array_dictionary(array));
}

void every_type(int k, const struct every_variant *variant,
                struct ArrowSchema *schema, struct ArrowDeviceArray *array)
{
    memset(array, 0, sizeof(*array));
    array->device_type = ARROW_DEVICE_CPU;
    array->device_id = -1;
    node_make(&types[k], variant, variant->length, schema, &array->array);
}

/* ---- results ------------------------------------------------------------ */

static bool node_equal(const struct ArrowSchema *schema,
                       const struct ArrowArray *a, const struct ArrowArray *b)
{
    struct uva__layout layout;
    int64_t size;

    if (a->length != b->length || a->offset != b->offset ||
        a->null_count != b->null_count || a->n_buffers != b->n_buffers ||
        a->n_children != b->n_children ||
        uva__format_read(schema->format, &layout) != 0)
        return false;
    for (int64_t i = 0; i < a->n_buffers; i++) {
        if (uva__buffer_size(&layout, a, i, true, &size) != 0)
            return false;
        if (size > 0 && (b->buffers[i] == NULL ||
                         memcmp(a->buffers[i], b->buffers[i], (size_t)size)))
            return false;
        if (a->buffers[i] == NULL && b->buffers[i] != NULL)
            return false;
    }
    return true;
}

bool every_type_equal(const struct ArrowSchema *schema,
                      const struct ArrowArray *a, const struct ArrowArray *b)
{
    if (!node_equal(schema, a, b) ||
        (a->dictionary == NULL) != (b->dictionary == NULL))
        return false;
    for (int64_t i = 0; i < a->n_children; i++)
        if (!every_type_equal(schema->children[i], a->children[i],
                              b->children[i]))
            return false;
    return a->dictionary == NULL ||
           every_type_equal(schema->dictionary, a->dictionary, b->dictionary);
}

int every_type_buffers(const struct ArrowSchema *schema,
                       const struct ArrowArray *array)
{
    struct uva__layout layout;
    int64_t size;
    int count = 0;

    if (uva__format_read(schema->format, &layout) != 0)
        abort();
    for (int64_t i = 0; i < array->n_buffers; i++)
        count +=
            uva__buffer_size(&layout, array, i, true, &size) == 0 && size > 0;
    for (int64_t i = 0; i < array->n_children; i++)
        count += every_type_buffers(schema->children[i], array->children[i]);
    if (array->dictionary != NULL)
        count += every_type_buffers(schema->dictionary, array->dictionary);
    return count;
}
