/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of some bytes each, a parent before its children, and then its
 * dictionary; neighbours of one simple type are one node. Types that few tables
 * have (views, unions, runs) are one node with all below them, and are left to
 * layout.h and row_size.h, column by column.
 *
 * Lengths and sizes of columns are bounded, so that no product or sum can
 * overflow. */
#include "arrow/plan.h"

#include <stdlib.h>
#include <string.h>

#include "arrow/bits.h"
#include "arrow/buffer.h"
#include "arrow/format.h"
#include "arrow/layout.h"
#include "arrow/row_size.h"
#include "arrow/structs.h"
#include "base/memory.h"

/* The first byte of a node. After a simple type follow the number of columns
 * and, for numbers, the bytes of an item of each of them in sum: two bytes. */
enum plan_node {
    PLAN_FIXED,      /* some bytes an item */
    PLAN_BITS,       /* a bit an item */
    PLAN_TEXT,       /* offsets of four bytes, and data */
    PLAN_LARGE_TEXT, /* offsets of eight bytes */
    PLAN_SIMPLE_LAST = PLAN_LARGE_TEXT,
    PLAN_INDEX,       /* the next node is the integers, then the dictionary */
    PLAN_NOTHING,     /* no buffer */
    PLAN_ROW,         /* the children have the same items */
    PLAN_EQUAL_LISTS, /* the child has a number of items for each */
    PLAN_LIST,        /* the child's items by offsets of four bytes */
    PLAN_LARGE_LIST,  /* by offsets of eight bytes */
    PLAN_OTHER
};

enum {
    PLAN_WIDEST = 255,    /* bytes of an item of PLAN_FIXED */
    PLAN_COLUMNS = 255,   /* at most, of one node */
    PLAN_ITEMS_BITS = 32, /* no list of equal lists has more items */
    PLAN_SIZE_BITS = 40   /* no column may be larger than their range */
};

/* ---- making a plan ------------------------------------------------------ */

struct plan_draft {
    uint8_t *nodes; /* borrows */
    int32_t room;   /* for so many bytes */
    int32_t count;  /* so many there are, also beyond the room */
    int64_t walked; /* nodes of the schema so far */
    int32_t within; /* nodes of type PLAN_OTHER that the walk is below */
    bool reads;
    enum plan_node last; /* the node before; one that is not simple: the next
                            node is no neighbour of it */
    int32_t columns;     /* of that node */
    int32_t width;       /* of these columns in sum */
};

static void draft_put(struct plan_draft *draft, int32_t at, int byte)
{
    if (at < draft->room)
        draft->nodes[at] = (uint8_t)byte;
}

/* A column of a simple type joins the neighbour before it. */
static void draft_put_simple(struct plan_draft *draft, enum plan_node node,
                             int32_t width)
{
    const int32_t size = node == PLAN_FIXED ? 4 : 2;

    if (node != draft->last || draft->columns == PLAN_COLUMNS) {
        draft_put(draft, draft->count, node);
        draft->count += size;
        draft->columns = draft->width = 0;
    }
    draft->columns++;
    draft->width += width;
    draft_put(draft, draft->count - size + 1, draft->columns);
    if (node == PLAN_FIXED) {
        draft_put(draft, draft->count - 2, draft->width & 255);
        draft_put(draft, draft->count - 1, draft->width >> 8);
    }
}

static void draft_put_node(struct plan_draft *draft, enum plan_node node,
                           int32_t width)
{
    if (draft->within > 0)
        return;
    if (node <= PLAN_SIMPLE_LAST)
        draft_put_simple(draft, node, width);
    else
        draft_put(draft, draft->count++, node);
    draft->last = node;
}

static enum plan_node node_with_offsets(const struct uva__layout *layout)
{
    const bool is_large = layout->buffers[1].width == 8;

    if (layout->n_buffers == 3)
        return is_large ? PLAN_LARGE_TEXT : PLAN_TEXT;
    return is_large ? PLAN_LARGE_LIST : PLAN_LIST;
}

static enum plan_node node_of(const char *format,
                              const struct uva__layout *layout)
{
    const struct uva__layout_buffer *items = &layout->buffers[1];

    if (layout->n_buffers == 0 && layout->n_children == 0)
        return PLAN_NOTHING;
    if (layout->n_buffers == 0 || layout->variadic ||
        layout->buffers[0].kind != UVA__BUFFER_VALIDITY)
        return PLAN_OTHER;
    if (layout->n_buffers == 1)
        return format[1] == 's' ? PLAN_ROW : PLAN_EQUAL_LISTS;
    if (items->kind == UVA__BUFFER_BITS)
        return PLAN_BITS;
    if (items->kind == UVA__BUFFER_OFFSETS)
        return node_with_offsets(layout);
    return layout->n_buffers == 2 && items->width <= PLAN_WIDEST ? PLAN_FIXED
                                                                 : PLAN_OTHER;
}

static bool node_reads(enum plan_node node)
{
    return node == PLAN_OTHER || node == PLAN_TEXT || node == PLAN_LARGE_TEXT ||
           node == PLAN_LIST || node == PLAN_LARGE_LIST;
}

static bool draft_add(struct plan_draft *draft,
                      const struct ArrowSchema *schema, int depth);

static bool draft_add_below(struct plan_draft *draft,
                            const struct ArrowSchema *schema, int depth)
{
    bool is_valid = true;

    for (int64_t i = 0; i < schema->n_children && is_valid; i++)
        is_valid = draft_add(draft, schema->children[i], depth);
    return is_valid && (schema->dictionary == NULL ||
                        draft_add(draft, schema->dictionary, depth));
}

static bool draft_can_add(struct plan_draft *draft,
                          const struct ArrowSchema *schema, int depth,
                          struct uva__layout *layout)
{
    return schema != NULL && schema->release != NULL &&
           depth <= UVA__STRUCTS_MAX_DEPTH &&
           ++draft->walked <= UVA__STRUCTS_MAX_NODES &&
           uva__format_read(schema->format, layout) == 0 &&
           (layout->n_children < 0 ||
            schema->n_children == layout->n_children) &&
           uva__structs_children_are_sound(schema->n_children,
                                           schema->children) &&
           (schema->dictionary == NULL || layout->index);
}

/* False for a schema that no array fits, or with an unknown format. */
static bool draft_add(struct plan_draft *draft,
                      const struct ArrowSchema *schema, int depth)
{
    struct uva__layout layout;
    enum plan_node node;
    bool is_valid;

    if (!draft_can_add(draft, schema, depth, &layout))
        return false;
    node = node_of(schema->format, &layout);
    if (schema->dictionary != NULL)
        draft_put_node(draft, PLAN_INDEX, 0);
    draft_put_node(draft, node, layout.buffers[1].width);
    draft->reads |= node_reads(node);
    if (schema->dictionary == NULL && node <= PLAN_SIMPLE_LAST)
        return true;
    draft->within += node == PLAN_OTHER;
    draft->last = PLAN_OTHER;
    is_valid = draft_add_below(draft, schema, depth + 1);
    draft->within -= node == PLAN_OTHER;
    draft->last = PLAN_OTHER;
    return is_valid;
}

static bool draft_make(struct plan_draft *draft,
                       const struct ArrowSchema *schema, uint8_t *nodes,
                       int32_t room)
{
    *draft =
        (struct plan_draft){.nodes = nodes, .room = room, .last = PLAN_OTHER};
    return draft_add(draft, schema, 0) && nodes[0] == PLAN_ROW;
}

void uva__plan_init(struct uva__plan *plan,
                    const struct uva_allocator *allocator,
                    const struct ArrowSchema *schema)
{
    struct plan_draft draft;

    *plan = (struct uva__plan){.allocator = allocator};
    if (!draft_make(&draft, schema, plan->near, UVA__PLAN_NEAR))
        return;
    if (draft.count > UVA__PLAN_NEAR) {
        plan->far = uva__memory_new(allocator, (size_t)draft.count);
        if (plan->far == NULL)
            return;
        (void)draft_make(&draft, schema, plan->far, draft.count);
    }
    plan->size = draft.count;
    plan->reads = draft.reads;
}

void uva__plan_fini(struct uva__plan *plan)
{
    if (plan->far != NULL)
        uva__memory_free(plan->allocator, plan->far, (size_t)plan->size);
    *plan = (struct uva__plan){0};
}

/* ---- measuring a batch -------------------------------------------------- */

struct plan_walk {
    const uint8_t *at; /* borrows: the next node */
    int64_t size;      /* of the rows, so far */
    bool on_host;      /* offsets can be read */
};

/* Items `from` to `from` + `rows` of an array, which has at least `need`. */
struct plan_part {
    int64_t from, rows, need;
};

/* Some columns of one parent. */
struct plan_columns {
    struct ArrowSchema *const *schemas; /* borrows */
    struct ArrowArray *const *arrays;   /* borrows */
    int64_t count;
};

static bool plan_columns(struct plan_walk *walk,
                         const struct plan_columns *columns,
                         const struct plan_part *part);

/* Whether all but the buffers and the nulls is as it must be. */
static inline bool plan_is_sound(const struct ArrowArray *array, int buffers,
                                 int64_t children,
                                 const struct ArrowArray *dictionary,
                                 int64_t need)
{
    const uint64_t more = (uint64_t)array->length - (uint64_t)need;

    return array->release != NULL && array->buffers != NULL &&
           ((more | (uint64_t)array->offset) >> 31 |
            (uint64_t)(array->n_buffers ^ buffers) |
            (uint64_t)(array->n_children ^ children) |
            ((uintptr_t)array->dictionary ^ (uintptr_t)dictionary)) == 0;
}

/* The bytes of the bits of items; a byte counts for the first of its bits. */
static inline int64_t plan_bits_size(const struct ArrowArray *array,
                                     const struct plan_part *part)
{
    const uint64_t at = (uint64_t)array->offset + (uint64_t)part->from;

    return (int64_t)((at + (uint64_t)part->rows + 7) / 8 - (at + 7) / 8);
}

/* Whether there can be as many nulls; -1 is an unknown number. */
static inline bool plan_nulls_are(const struct ArrowArray *array, int64_t most)
{
    return (uint64_t)array->null_count + 1 <= (uint64_t)most + 1;
}

/* Adds the bitmap, which may be absent. False if there cannot be as many nulls.
 */
static inline bool plan_nulls(const struct ArrowArray *array,
                              const struct plan_part *part, int64_t *size)
{
    if (array->buffers[0] == NULL)
        return plan_nulls_are(array, 0);
    *size += plan_bits_size(array, part);
    return plan_nulls_are(array, array->length);
}

/* Adds the bitmap of a column of numbers; not the numbers, of which only the
 * width is known. */
static bool plan_fixed(const struct ArrowArray *column,
                       const struct ArrowArray *dictionary,
                       const struct plan_part *part, int64_t *size)
{
    if (column == NULL || !plan_is_sound(column, 2, 0, dictionary, part->need))
        return false;
    if (column->length == 0)
        return plan_nulls_are(column, 0);
    return column->buffers[1] != NULL && plan_nulls(column, part, size);
}

/* The same of columns as most are: with items, and without a number of nulls.
 * Returns how many are such ones, from the first on. Calls no function, so that
 * a column costs about 30 instructions. */
__attribute__((noinline)) static int
plan_fixed_plain(struct ArrowArray *const *columns, int count,
                 const struct plan_part *part, int64_t *size)
{
    const int64_t least = part->need > 0 ? part->need : 1;
    const int64_t bitmap = (part->rows + 7) / 8;
    int i;

    for (i = 0; i < count; i++) {
        const struct ArrowArray *column = columns[i];

        if (column == NULL || !plan_is_sound(column, 2, 0, NULL, least) ||
            column->buffers[1] == NULL || !plan_nulls_are(column, 0))
            break;
        if (column->buffers[0] != NULL)
            *size += (part->from | column->offset) == 0
                         ? bitmap
                         : plan_bits_size(column, part);
    }
    return i;
}

static bool plan_fixed_columns(struct ArrowArray *const *columns, int count,
                               const struct plan_part *part, int64_t *size)
{
    for (int i = 0; i < count; i++) {
        i += plan_fixed_plain(columns + i, count - i, part, size);
        if (i < count && !plan_fixed(columns[i], NULL, part, size))
            return false;
    }
    return true;
}

/* A column of bits has as many of them as a bitmap. */
static bool plan_bits(const struct ArrowArray *column,
                      const struct plan_part *part, int64_t *size)
{
    if (!plan_fixed(column, NULL, part, size))
        return false;
    *size += plan_bits_size(column, part);
    return true;
}

/* Where texts begin and end in the data. */
struct plan_data {
    int64_t from, to;
};

/* Of all texts of a column. False if these offsets are wrong; no other ones are
 * read. */
static inline bool plan_data_of_column(const struct ArrowArray *column,
                                       int width, struct plan_data *data)
{
    const void *const offsets = column->buffers[1];

    if (offsets == NULL)
        return false;
    data->from = uva__buffer_integer(offsets, width, column->offset);
    data->to =
        uva__buffer_integer(offsets, width, column->offset + column->length);
    return data->from >= 0 && data->to >= data->from &&
           data->to >> PLAN_SIZE_BITS == 0 &&
           (data->to == 0 || column->buffers[2] != NULL);
}

/* Of some of its texts, whose offsets may be wrong. False if they lie far
 * apart.
 */
static bool plan_data_of_part(const struct ArrowArray *column, int width,
                              const struct plan_part *part,
                              struct plan_data *data)
{
    const int64_t at = column->offset + part->from;

    data->from = uva__buffer_integer(column->buffers[1], width, at);
    data->to = uva__buffer_integer(column->buffers[1], width, at + part->rows);
    if (data->from < 0 || data->to < data->from || column->buffers[2] == NULL)
        data->from = data->to = 0;
    return (data->to - data->from) >> PLAN_SIZE_BITS == 0;
}

static inline bool plan_text(const struct ArrowArray *column, int width,
                             const struct plan_part *part, int64_t *size)
{
    struct plan_data data;

    if (column == NULL || !plan_is_sound(column, 3, 0, NULL, part->need))
        return false;
    if (column->length == 0)
        return plan_nulls_are(column, 0);
    if (!plan_data_of_column(column, width, &data) ||
        (part->rows != column->length &&
         !plan_data_of_part(column, width, part, &data)))
        return false;
    if (part->rows > 0)
        *size += (part->rows + (column->offset + part->from == 0)) * width +
                 (data.to - data.from);
    return plan_nulls(column, part, size);
}

/* Not inline, as the loop is slower among other ones. */
__attribute__((noinline)) static bool
plan_text_columns(struct ArrowArray *const *columns, int count, int width,
                  const struct plan_part *part, int64_t *size)
{
    bool is_valid = true;

    for (int i = 0; i < count && is_valid; i++)
        is_valid = plan_text(columns[i], width, part, size);
    return is_valid;
}

static bool plan_bits_columns(struct ArrowArray *const *columns, int count,
                              const struct plan_part *part, int64_t *size)
{
    bool is_valid = true;

    for (int i = 0; i < count && is_valid; i++)
        is_valid = plan_bits(columns[i], part, size);
    return is_valid;
}

/* Neighbours of one simple type. */
static bool plan_simple(struct plan_walk *walk,
                        struct ArrowArray *const *columns,
                        const struct plan_part *part)
{
    const uint8_t *const node = walk->at;

    walk->at += node[0] == PLAN_FIXED ? 4 : 2;
    if (node[0] == PLAN_BITS)
        return plan_bits_columns(columns, node[1], part, &walk->size);
    if (node[0] != PLAN_FIXED)
        return plan_text_columns(columns, node[1], node[0] == PLAN_TEXT ? 4 : 8,
                                 part, &walk->size);
    if (!plan_fixed_columns(columns, node[1], part, &walk->size))
        return false;
    walk->size += part->rows * (node[2] | node[3] << 8);
    return true;
}

static bool plan_nothing(const struct ArrowArray *array, int64_t need)
{
    return array->release != NULL && array->dictionary == NULL &&
           (array->n_buffers | array->n_children) == 0 &&
           (uint64_t)(array->length | array->offset) >> 31 == 0 &&
           array->length >= need && plan_nulls_are(array, array->length);
}

/* ---- nested ------------------------------------------------------------- */

static bool plan_row(struct plan_walk *walk, const struct ArrowSchema *schema,
                     const struct ArrowArray *array,
                     const struct plan_part *part)
{
    const int64_t n = schema->n_children;
    struct plan_part below = {0, part->rows, 0};

    if (!plan_is_sound(array, 1, n, NULL, part->need) ||
        (n > 0 && array->children == NULL) ||
        !plan_nulls(array, part, &walk->size))
        return false;
    if (array->length > 0)
        below.need = array->offset + array->length;
    if (part->rows > 0)
        below.from = array->offset + part->from;
    return plan_columns(
        walk, &(struct plan_columns){schema->children, array->children, n},
        &below);
}

/* Items `from` to `to` of a child, as far as it has them. */
static bool plan_child(struct plan_walk *walk, const struct ArrowSchema *schema,
                       const struct ArrowArray *array, int64_t from, int64_t to,
                       int64_t need)
{
    struct plan_part part = {0, 0, need};
    int64_t most;

    if (array->children == NULL || array->children[0] == NULL)
        return false;
    most = array->children[0]->length;
    if (from < 0)
        from = 0;
    if (to > most)
        to = most;
    if (from < to) {
        part.from = from;
        part.rows = to - from;
    }
    return plan_columns(
        walk, &(struct plan_columns){schema->children, array->children, 1},
        &part);
}

static bool plan_equal_lists(struct plan_walk *walk,
                             const struct ArrowSchema *schema,
                             const struct ArrowArray *array,
                             const struct plan_part *part)
{
    const int64_t items = strtol(schema->format + 3, NULL, 10); /* "+w:3" */
    int64_t at, need;

    if (!plan_is_sound(array, 1, 1, NULL, part->need) ||
        !plan_nulls(array, part, &walk->size))
        return false;
    at = array->offset + part->from;
    need = array->length == 0 ? 0 : array->offset + array->length;
    if (need >> 31 != 0 || (need *= items) >> PLAN_ITEMS_BITS != 0)
        return false;
    return plan_child(walk, schema, array, at * items,
                      (at + part->rows) * items, need);
}

/* The offsets are not checked. */
static bool plan_list(struct plan_walk *walk, const struct ArrowSchema *schema,
                      const struct ArrowArray *array, int width,
                      const struct plan_part *part)
{
    int64_t at, from = 0, to = 0;

    if (!plan_is_sound(array, 2, 1, NULL, part->need))
        return false;
    if (array->length == 0)
        return plan_nulls_are(array, 0) &&
               plan_child(walk, schema, array, 0, 0, 0);
    if (array->buffers[1] == NULL || !plan_nulls(array, part, &walk->size))
        return false;
    if (part->rows > 0) {
        at = array->offset + part->from;
        from = uva__buffer_integer(array->buffers[1], width, at);
        to = uva__buffer_integer(array->buffers[1], width, at + part->rows);
        walk->size += (part->rows + (at == 0)) * width;
    }
    return plan_child(walk, schema, array, from, to, 0);
}

/* All items of the dictionary count for the first item of the column. */
static bool plan_index(struct plan_walk *walk, const struct ArrowSchema *schema,
                       const struct ArrowArray *array,
                       const struct plan_part *part)
{
    struct ArrowArray *const dictionary = array->dictionary;
    const int width = walk->at[2];
    int64_t rows = 0;

    walk->at += 4;
    if (dictionary == NULL || !plan_fixed(array, dictionary, part, &walk->size))
        return false;
    walk->size += part->rows * width;
    if (part->rows > 0 && array->offset + part->from == 0)
        rows = dictionary->length;
    return plan_columns(
        walk, &(struct plan_columns){&schema->dictionary, &dictionary, 1},
        &(struct plan_part){.rows = rows});
}

static bool plan_other(struct plan_walk *walk, const struct ArrowSchema *schema,
                       const struct ArrowArray *array,
                       const struct plan_part *part)
{
    int64_t size = 0;

    if (uva__layout_check_column(schema, array, part->need, walk->on_host) != 0)
        return false;
    if (part->rows > 0)
        size = uva__row_size_measure(schema, array, part->from, part->rows,
                                     walk->on_host);
    if (size >> PLAN_SIZE_BITS != 0)
        return false;
    walk->size += size;
    return true;
}

static bool plan_one(struct plan_walk *walk, const struct ArrowSchema *schema,
                     const struct ArrowArray *array,
                     const struct plan_part *part)
{
    if (array == NULL)
        return false;
    switch ((enum plan_node) * walk->at++) {
    case PLAN_INDEX:
        return plan_index(walk, schema, array, part);
    case PLAN_NOTHING:
        return plan_nothing(array, part->need);
    case PLAN_ROW:
        return plan_row(walk, schema, array, part);
    case PLAN_EQUAL_LISTS:
        return plan_equal_lists(walk, schema, array, part);
    case PLAN_LIST:
        return plan_list(walk, schema, array, sizeof(int32_t), part);
    case PLAN_LARGE_LIST:
        return plan_list(walk, schema, array, sizeof(int64_t), part);
    default:
        return plan_other(walk, schema, array, part);
    }
}

static bool plan_columns(struct plan_walk *walk,
                         const struct plan_columns *columns,
                         const struct plan_part *part)
{
    int64_t n, i = 0;

    for (bool is_valid = true; i < columns->count; i += n) {
        n = *walk->at <= PLAN_SIMPLE_LAST ? walk->at[1] : 1;
        if (*walk->at <= PLAN_SIMPLE_LAST)
            is_valid = plan_simple(walk, columns->arrays + i, part);
        else
            is_valid =
                plan_one(walk, columns->schemas[i], columns->arrays[i], part);
        if (!is_valid)
            return false;
    }
    return true;
}

bool uva__plan_measure(const struct uva__plan *plan,
                       const struct ArrowSchema *schema,
                       const struct ArrowDeviceArray *batch, int64_t *size)
{
    struct plan_walk walk = {
        .at = (plan->far == NULL ? plan->near : plan->far) + 1};

    if (plan->size == 0)
        return false;
    if (plan->reads) {
        walk.on_host = uva__buffer_on_host(batch);
        if (!walk.on_host)
            return false;
    }
    if (!plan_row(&walk, schema, &batch->array,
                  &(struct plan_part){.rows = batch->array.length}))
        return false;
    *size = walk.size;
    return true;
}
