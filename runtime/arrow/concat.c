/* SPDX-License-Identifier: Apache-2.0 */
/* Each node of the schema has a node here, which counts the measured items and
 * knows where the next rows go: arrow/concat_node.c.
 *
 * The result lies in one block: the structs, their pointer vectors, the
 * buffers. It counts the structs that are not released, since each child may be
 * moved out and outlive the rest. Clauses: LC-10. */
#include "arrow/concat.h"

#include <assert.h>
#include <string.h>

#include "arrow/bits.h"
#include "arrow/buffer.h"
#include "arrow/concat_mask.h"
#include "arrow/concat_node.h"
#include "arrow/structs.h"
#include "base/atomic.h"
#include "base/memory.h"

enum { BUFFER_ALIGN = 64 };

struct concat_block {
    struct uva_allocator allocator; /* gave this block */
    size_t size;                    /* of the block */
    struct uva__atomic64 nodes;     /* structs not released so far */
};

struct uva__concat {
    struct uva_allocator allocator;
    size_t size;                    /* of this block: the nodes follow */
    size_t nodes;                   /* structs of a result, with its root */
    size_t pointers;                /* in all the vectors of a result */
    size_t columns;                 /* of a batch that can be noted; or 0 */
    int64_t row_bytes;              /* of such a batch */
    struct concat_block *block;     /* owns: the result, from begin to finish */
    struct ArrowArray *next_array;  /* the next free struct of that */
    const void **next_pointer;      /* the next free pointer */
    char *next_buffer;              /* the next free buffer */
    struct ArrowArray root;         /* of the result */
    struct uva__concat_node node[]; /* the root, then its children */
};

int uva__concat_measure(struct uva__concat *concat,
                        const struct ArrowArray *array, int64_t from,
                        int64_t count)
{
    const struct uva__concat_run run = {array, array->offset + from, count};

    return uva__concat_node_measure(concat->node, &run);
}

int64_t uva__concat_passes(const struct uva__concat *concat)
{
    const struct uva__concat_node *const root = concat->node;

    return uva__concat_node_is_batch(root) ? root->n_children : 1;
}

void uva__concat_fill(struct uva__concat *concat, int64_t pass,
                      const struct ArrowArray *array, int64_t from,
                      int64_t count)
{
    const struct uva__concat_run run = {array, array->offset + from, count};

    if (uva__concat_node_is_batch(concat->node))
        uva__concat_node_fill_column(concat->node, &run, pass);
    else
        uva__concat_node_fill(concat->node, &run);
}

int uva__concat_measure_mask(struct uva__concat *concat,
                             const struct ArrowArray *array,
                             const struct uva__mask *mask)
{
    return uva__concat_mask_measure(concat->node, array, array->offset, mask);
}

void uva__concat_fill_mask(struct uva__concat *concat,
                           const struct ArrowArray *array,
                           const struct uva__mask *mask)
{
    uva__concat_mask_fill(concat->node, array, array->offset, mask);
}

/* ---- the result's memory ------------------------------------------------ */

/* The size of buffer `i` of a node; -1: the buffer is absent. */
static int64_t buffer_size(const struct uva__concat_node *node, int64_t i)
{
    const struct uva__layout_buffer *const buffer = &node->layout.buffers[i];

    if (i == node->layout.n_buffers) /* of views: the data, if there is any */
        return node->data;
    if (i > node->layout.n_buffers) /* and its size */
        return sizeof(int64_t);
    switch (buffer->kind) {
    case UVA__BUFFER_VALIDITY:
        return node->nullable ? (node->items + 7) / 8 : -1;
    case UVA__BUFFER_BITS:
        return (node->items + 7) / 8;
    case UVA__BUFFER_FIXED:
        return node->items * buffer->width;
    case UVA__BUFFER_OFFSETS:
        return (node->items + 1) * buffer->width;
    default:
        return node->data;
    }
}

static int64_t buffer_count(const struct uva__concat_node *node)
{
    return node->layout.n_buffers +
           (node->layout.variadic ? 1 + (node->data > 0) : 0);
}

/* Rounds a size up to a multiple of `align`; an absent buffer has size 0. */
static int64_t padded(int64_t size, int64_t align)
{
    return size < 0 ? 0 : (size + align - 1) / align * align;
}

/* The size of all buffers of a node and those below it, each rounded up. */
static int64_t buffers_size(const struct uva__concat_node *node, int64_t align)
{
    int64_t sum = 0;

    for (int64_t i = 0; i < buffer_count(node); i++)
        sum += padded(buffer_size(node, i), align);
    for (int64_t i = 0; i < node->n_children; i++)
        sum += buffers_size(&node->children[i], align);
    if (node->dictionary != NULL)
        sum += buffers_size(node->dictionary, align);
    return sum;
}

/* An empty array needs no buffers, though it gets the first of its offsets. */
int64_t uva__concat_bytes(const struct uva__concat *concat)
{
    int64_t sum = 0;

    for (size_t n = 0; n < concat->nodes; n++) {
        const struct uva__concat_node *const node = &concat->node[n];

        for (int64_t i = 0; node->items > 0 && i < buffer_count(node); i++)
            sum += padded(buffer_size(node, i), 1);
    }
    return sum;
}

static void block_drop(struct concat_block *block)
{
    const struct uva_allocator allocator = block->allocator;

    if (uva__atomic64_sub(&block->nodes, 1) == 1)
        uva__memory_free(&allocator, block, block->size);
}

static void block_release_node(struct ArrowArray *array)
{
    struct ArrowArray *const dictionary = array->dictionary;

    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
    if (dictionary != NULL && dictionary->release != NULL)
        dictionary->release(dictionary);
    array->release = NULL;
    block_drop(array->private_data);
}

/* Clears the bytes that are not filled in: the first offset of an empty array,
 * the bits after the last one, the padding. */
static const void *place_buffer(struct uva__concat *concat,
                                const struct uva__concat_node *node, int64_t i)
{
    const int64_t size = buffer_size(node, i),
                  room = padded(size, BUFFER_ALIGN);
    char *const buffer = concat->next_buffer;

    if (size < 0)
        return NULL;
    concat->next_buffer += room;
    if (room > 0)
        memset(buffer + room - BUFFER_ALIGN, 0, BUFFER_ALIGN);
    if (i == 1 && node->layout.buffers[1].kind == UVA__BUFFER_OFFSETS)
        memset(buffer, 0, (size_t)node->width);
    return buffer;
}

static void place_buffers(struct uva__concat *concat,
                          struct uva__concat_node *node)
{
    struct ArrowArray *const array = node->array;
    array->n_buffers = buffer_count(node);
    array->buffers = concat->next_pointer;
    concat->next_pointer += array->n_buffers;
    for (int64_t i = 0; i < array->n_buffers; i++)
        array->buffers[i] = place_buffer(concat, node, i);
}

/* Gives a node its struct and its buffers, and begins to fill it. */
static void place(struct uva__concat *concat, struct uva__concat_node *node,
                  struct ArrowArray *array)
{
    *array = (struct ArrowArray){.n_children = node->n_children,
                                 .release = block_release_node,
                                 .private_data = concat->block};
    node->array = array;
    node->filled = node->filled_data = 0;
    node->values = NULL;
    place_buffers(concat, node);
    if (node->n_children > 0)
        array->children = (struct ArrowArray **)(void *)concat->next_pointer;
    concat->next_pointer += node->n_children;
    for (int64_t i = 0; i < node->n_children; i++) {
        array->children[i] = concat->next_array++;
        place(concat, &node->children[i], array->children[i]);
    }
    if (node->dictionary == NULL)
        return;
    array->dictionary = concat->next_array++;
    place(concat, node->dictionary, array->dictionary);
}

int uva__concat_begin(struct uva__concat *concat)
{
    const size_t below = concat->nodes - 1; /* the root lies with its owner */
    const size_t head = sizeof(struct concat_block) +
                        below * sizeof(struct ArrowArray) +
                        concat->pointers * sizeof(void *);
    const size_t start = (size_t)padded((int64_t)head, BUFFER_ALIGN);
    const size_t size =
        start + (size_t)buffers_size(concat->node, BUFFER_ALIGN);
    struct concat_block *const block =
        concat->allocator.alloc(concat->allocator.ctx, size, BUFFER_ALIGN);

    assert(concat->block == NULL);
    if (block == NULL)
        return ENOMEM;
    block->allocator = concat->allocator;
    block->size = size;
    uva__atomic64_store(&block->nodes, (uint64_t)concat->nodes);
    concat->block = block;
    concat->next_array = (struct ArrowArray *)(void *)(block + 1);
    concat->next_pointer = (const void **)(void *)(concat->next_array + below);
    concat->next_buffer = (char *)block + start;
    place(concat, concat->node, &concat->root);
    return 0;
}

/* ---- the result --------------------------------------------------------- */

static int64_t null_count_of(const struct uva__concat_node *node)
{
    if (strcmp(node->format, "n") == 0)
        return node->items;
    return node->nullable
               ? uva__bits_count_zeros(node->array->buffers[0], node->items)
               : 0;
}

static void finish(const struct uva__concat_node *node)
{
    struct ArrowArray *const array = node->array;

    assert(node->filled == node->items && node->filled_data == node->data);
    array->length = node->items;
    array->null_count = null_count_of(node);
    if (node->layout.variadic && node->data > 0)
        memcpy((char *)(uintptr_t)array->buffers[array->n_buffers - 1],
               &node->data, sizeof(node->data));
    for (int64_t i = 0; i < node->n_children; i++)
        finish(&node->children[i]);
    if (node->dictionary != NULL)
        finish(node->dictionary);
}

void uva__concat_finish(struct uva__concat *concat, struct ArrowArray *out)
{
    finish(concat->node);
    *out = concat->root;
    concat->block = NULL;
}

/* ---- batches that were noted -------------------------------------------- */

size_t uva__concat_columns(const struct uva__concat *concat)
{
    return concat->columns;
}

bool uva__concat_note(const struct uva__concat *concat,
                      const struct ArrowArray *batch,
                      struct uva__concat_part *part)
{
    const struct uva__concat_node *node = concat->node[0].children;
    struct ArrowArray *const *const children = batch->children;
    const char **const values = part->values;
    const int64_t at = batch->offset, rows = batch->length;

    if (concat->columns == 0 || uva__buffer_may_have_nulls(batch) ||
        rows > INT32_MAX)
        return false;
    for (size_t i = 0; i < concat->columns; i++, node++) {
        const struct ArrowArray *const column = children[i];

        if (uva__buffer_may_have_nulls(column) || column->length - at < rows)
            return false;
        values[i] = (const char *)column->buffers[1] +
                    (column->offset + at) * node->width;
    }
    part->from = 0;
    part->rows = rows;
    return true;
}

bool uva__concat_holds(const struct uva__concat *concat, int64_t rows,
                       int64_t max_bytes)
{
    const int64_t most = PTRDIFF_MAX / 64 / concat->row_bytes;

    return rows <= most &&
           (max_bytes == 0 || rows * concat->row_bytes <= max_bytes);
}

int64_t uva__concat_rows(const struct uva__concat *concat, int64_t max_bytes)
{
    return max_bytes / concat->row_bytes;
}

/* Copies column `i` of the first rows of the parts. */
static void join_column(const struct uva__concat *concat, size_t i,
                        const struct uva__list *parts, int64_t rows)
{
    const int64_t width = concat->node[i + 1].width;
    char *to = (char *)(uintptr_t)concat->node[i + 1].array->buffers[1];
    struct uva__link *link;

    for (link = parts->head; rows > 0; link = link->next) {
        const struct uva__concat_part *const part =
            uva__container_of(link, struct uva__concat_part, link);
        const int64_t count = part->rows < rows ? part->rows : rows;
        const char *const from = part->values[i] + part->from * width;

        rows -= count;
        memcpy(to, from, (size_t)(count * width));
        to += count * width;
    }
}

int uva__concat_join(struct uva__concat *concat, const struct uva__list *parts,
                     int64_t rows, struct ArrowArray *out)
{
    int code;

    uva__concat_reset(concat);
    for (size_t i = 0; i < concat->nodes; i++)
        concat->node[i].items = rows;
    code = uva__concat_begin(concat);
    if (code == 0) {
        for (size_t i = 0; i < concat->columns; i++)
            join_column(concat, i, parts, rows);
        for (size_t i = 0; i < concat->nodes; i++)
            concat->node[i].filled = rows;
        uva__concat_finish(concat, out);
    }
    uva__concat_reset(concat);
    return code;
}

/* ---- making one --------------------------------------------------------- */

/* Counts the nodes of a schema. */
static int schema_count(const struct ArrowSchema *schema, int depth,
                        size_t *nodes)
{
    int code = 0;

    if (schema == NULL || schema->release == NULL ||
        depth > UVA__STRUCTS_MAX_DEPTH || ++*nodes > UVA__STRUCTS_MAX_NODES ||
        !uva__structs_children_are_sound(schema->n_children, schema->children))
        return EINVAL;
    for (int64_t i = 0; i < schema->n_children && code == 0; i++)
        code = schema_count(schema->children[i], depth + 1, nodes);
    if (code == 0 && schema->dictionary != NULL)
        code = schema_count(schema->dictionary, depth + 1, nodes);
    return code;
}

/* Fills in a node and all below it, for which `*next` has room. */
static int tree_init(struct uva__concat *concat, struct uva__concat_node *node,
                     const struct ArrowSchema *schema,
                     struct uva__concat_node **next)
{
    int code = uva__concat_node_init(node, schema);

    if (code != 0)
        return code;
    concat->pointers += (size_t)(node->layout.n_buffers + node->n_children +
                                 2 * node->layout.variadic);
    node->children = *next;
    *next += node->n_children;
    for (int64_t i = 0; i < node->n_children && code == 0; i++)
        code = tree_init(concat, &node->children[i], schema->children[i], next);
    if (code == 0 && schema->dictionary != NULL) {
        node->dictionary = (*next)++;
        code = tree_init(concat, node->dictionary, schema->dictionary, next);
    }
    return code == 0 ? uva__concat_node_complete(node) : code;
}

/* Notes the common facts of batches whose columns are all plain. */
static void read_columns(struct uva__concat *concat)
{
    const struct uva__concat_node *const root = concat->node;
    int64_t sum = 0;

    if (!uva__concat_node_is_batch(root) ||
        concat->nodes != (size_t)root->n_children + 1)
        return;
    for (int64_t i = 0; i < root->n_children; i++) {
        if (!uva__concat_node_is_plain(&root->children[i]))
            return;
        sum += root->children[i].width;
    }
    concat->columns = (size_t)root->n_children;
    concat->row_bytes = sum;
}

int uva__concat_new(const struct uva_allocator *allocator,
                    const struct ArrowSchema *schema, struct uva__concat **out)
{
    struct uva__concat *concat;
    struct uva__concat_node *next;
    size_t nodes = 0, size;
    int code = schema_count(schema, 0, &nodes);

    if (code != 0)
        return code;
    size = sizeof(*concat) + nodes * sizeof(concat->node[0]);
    concat = uva__memory_new(allocator, size);
    if (concat == NULL)
        return ENOMEM;
    concat->allocator = *allocator;
    concat->size = size;
    concat->nodes = nodes;
    next = concat->node + 1;
    code = tree_init(concat, concat->node, schema, &next);
    if (code == 0) {
        read_columns(concat);
        *out = concat;
    } else {
        uva__concat_free(concat);
    }
    return code;
}

void uva__concat_free(struct uva__concat *concat)
{
    struct uva_allocator allocator;

    if (concat == NULL)
        return;
    assert(concat->block == NULL);
    allocator = concat->allocator;
    uva__memory_free(&allocator, concat, concat->size);
}

void uva__concat_reset(struct uva__concat *concat)
{
    for (size_t i = 0; i < concat->nodes; i++) {
        struct uva__concat_node *const node = &concat->node[i];

        node->items = node->data = 0;
        node->nullable = false;
        node->values = NULL;
    }
}
