/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of some bytes each, a parent before its children, and then its
 * dictionary; neighbours of simple types are one node. Types that few tables
 * have (views, unions, runs) are one node with all below them, and are left to
 * layout.h and row_size.h, column by column.
 *
 * Columns of simple types are as plain as can be in most batches, and cost
 * about 30 instructions each then: one loop reads every member once. If one is
 * not, they are looked at one by one.
 *
 * Lengths and sizes of columns are bounded, so that no product or sum can
 * overflow. */
#include "arrow/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/bits.h"
#include "arrow/buffer.h"
#include "arrow/format.h"
#include "arrow/layout.h"
#include "arrow/row_size.h"
#include "arrow/structs.h"
#include "base/memory.h"

/* The first byte of a node. */
enum plan_node {
    PLAN_SIMPLE,      /* columns: their number, the bytes of an item of each in
                         sum (two bytes), the number of runs of one type, and
                         the type and the number of columns of each run */
    PLAN_INDEX,       /* integers, of so many bytes; then the dictionary */
    PLAN_NOTHING,     /* no buffer */
    PLAN_ROW,         /* the children have the same items */
    PLAN_EQUAL_LISTS, /* the child has a number of items for each */
    PLAN_LIST,        /* the child's items by offsets of four bytes */
    PLAN_LARGE_LIST,  /* by offsets of eight bytes */
    PLAN_OTHER
};

enum plan_type {
    TYPE_FIXED,      /* some bytes an item */
    TYPE_BITS,       /* a bit an item */
    TYPE_TEXT,       /* offsets of four bytes, and data */
    TYPE_LARGE_TEXT, /* offsets of eight bytes */
    TYPE_NAME,       /* integers, with a dictionary of TYPE_TEXT */
    TYPE_NOT_SIMPLE
};

enum {
    PLAN_HEAD = 5,        /* bytes of PLAN_SIMPLE before the runs */
    PLAN_WIDEST = 255,    /* bytes of an item of TYPE_FIXED */
    PLAN_COLUMNS = 255,   /* at most, of one node */
    PLAN_ITEMS_BITS = 32, /* no list of equal lists has more items */
    PLAN_SIZE_BITS = 40   /* no column may be larger than their range */
};

/* ---- making a plan ------------------------------------------------------ */

struct plan_draft {
    uint8_t *nodes;  /* borrows */
    int32_t room;    /* for so many bytes */
    int32_t count;   /* so many there are, also beyond the room */
    int64_t walked;  /* nodes of the schema so far */
    int32_t within;  /* nodes of PLAN_OTHER that the walk is below */
    int32_t columns; /* of the last node, if it is PLAN_SIMPLE; otherwise 0 */
    int32_t head;    /* where this node begins */
    int32_t width;   /* of these columns in sum */
    enum plan_type type; /* of the last run */
    int32_t run;         /* columns of that run */
    bool reads;
};

static void draft_put(struct plan_draft *draft, int32_t at, int byte)
{
    if (at < draft->room)
        draft->nodes[at] = (uint8_t)byte;
}

/* A column of a simple type joins the neighbour before it: its run, if that is
 * of the same type, and its node, if that is of any simple type. */
static void draft_put_simple(struct plan_draft *draft, enum plan_type type,
                             int32_t width)
{
    if (draft->columns == 0 || draft->columns == PLAN_COLUMNS) {
        draft->head = draft->count;
        draft->count += PLAN_HEAD;
        draft_put(draft, draft->head, PLAN_SIMPLE);
        draft->columns = draft->width = draft->run = 0;
    }
    if (draft->run == 0 || draft->type != type) {
        draft_put(draft, draft->count, type);
        draft->count += 2;
        draft->type = type;
        draft->run = 0;
    }
    draft->columns++;
    draft->run++;
    draft->width += width;
    draft_put(draft, draft->count - 1, draft->run);
    draft_put(draft, draft->head + 1, draft->columns);
    draft_put(draft, draft->head + 2, draft->width & 255);
    draft_put(draft, draft->head + 3, draft->width >> 8);
    draft_put(draft, draft->head + 4,
              (draft->count - draft->head - PLAN_HEAD) / 2);
    draft->reads |= type >= TYPE_TEXT;
}

static void draft_put_node(struct plan_draft *draft, enum plan_node node)
{
    draft->columns = 0;
    draft->reads |= node >= PLAN_LIST;
    draft_put(draft, draft->count++, node);
}

static bool layout_has_bitmap(const struct uva__layout *layout)
{
    return layout->n_buffers > 0 && !layout->variadic &&
           layout->buffers[0].kind == UVA__BUFFER_VALIDITY;
}

static enum plan_type type_of(const struct uva__layout *layout)
{
    const struct uva__layout_buffer *items = &layout->buffers[1];

    if (!layout_has_bitmap(layout) || layout->n_children != 0)
        return TYPE_NOT_SIMPLE;
    if (items->kind == UVA__BUFFER_OFFSETS)
        return items->width == 8 ? TYPE_LARGE_TEXT : TYPE_TEXT;
    if (items->kind == UVA__BUFFER_BITS)
        return TYPE_BITS;
    assert(layout->n_buffers == 2);
    return items->width <= PLAN_WIDEST ? TYPE_FIXED : TYPE_NOT_SIMPLE;
}

/* The node of a type that is not simple. */
static enum plan_node node_of(const char *format,
                              const struct uva__layout *layout)
{
    if (layout->n_buffers == 0 && layout->n_children == 0)
        return PLAN_NOTHING;
    if (!layout_has_bitmap(layout) || layout->n_children == 0)
        return PLAN_OTHER;
    if (layout->n_buffers == 1)
        return format[1] == 's' ? PLAN_ROW : PLAN_EQUAL_LISTS;
    if (layout->n_buffers > 2)
        return PLAN_OTHER;
    return layout->buffers[1].width == 8 ? PLAN_LARGE_LIST : PLAN_LIST;
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

/* Whether a dictionary of such items is a part of its column. */
static bool draft_can_name(const struct ArrowSchema *dictionary)
{
    struct uva__layout layout;

    return dictionary->release != NULL && dictionary->dictionary == NULL &&
           uva__format_read(dictionary->format, &layout) == 0 &&
           type_of(&layout) == TYPE_TEXT;
}

/* Returns whether there are no nodes below that of `schema`. */
static bool draft_put_own(struct plan_draft *draft,
                          const struct ArrowSchema *schema,
                          const struct uva__layout *layout)
{
    const bool is_index = schema->dictionary != NULL;
    const bool is_name = is_index && draft_can_name(schema->dictionary);
    const enum plan_type type = is_name ? TYPE_NAME : type_of(layout);
    const int32_t width = layout->buffers[1].width;
    enum plan_node node = PLAN_INDEX;

    if (draft->within > 0)
        return true;
    if (type != TYPE_NOT_SIMPLE && is_index == is_name) {
        draft_put_simple(draft, type, width);
        return true;
    }
    if (!is_index)
        node = node_of(schema->format, layout);
    draft_put_node(draft, node);
    if (is_index)
        draft_put(draft, draft->count++, width);
    return node == PLAN_OTHER;
}

/* False for a schema that no array fits, or with an unknown format. */
static bool draft_add(struct plan_draft *draft,
                      const struct ArrowSchema *schema, int depth)
{
    struct uva__layout layout;
    bool is_last, is_valid;

    if (!draft_can_add(draft, schema, depth, &layout))
        return false;
    is_last = draft_put_own(draft, schema, &layout);
    draft->within += is_last;
    is_valid = draft_add_below(draft, schema, depth + 1);
    draft->within -= is_last;
    if (!is_last)
        draft->columns = 0;
    return is_valid;
}

static bool draft_make(struct plan_draft *draft,
                       const struct ArrowSchema *schema, uint8_t *nodes,
                       int32_t room)
{
    *draft = (struct plan_draft){.nodes = nodes, .room = room};
    return draft_add(draft, schema, 0) && nodes[0] == PLAN_ROW;
}

void uva__plan_init(struct uva__plan *plan,
                    const struct uva_allocator *allocator,
                    const struct ArrowSchema *schema)
{
    struct plan_draft draft;
    const uint8_t *nodes;

    *plan = (struct uva__plan){.allocator = allocator};
    if (!draft_make(&draft, schema, plan->near, UVA__PLAN_NEAR))
        return;
    if (draft.count > UVA__PLAN_NEAR) {
        plan->far = uva__memory_new(allocator, (size_t)draft.count);
        if (plan->far == NULL)
            return;
        (void)draft_make(&draft, schema, plan->far, draft.count);
    }
    nodes = plan->far == NULL ? plan->near : plan->far;
    plan->size = draft.count;
    plan->reads = draft.reads;
    plan->is_flat = draft.count > PLAN_HEAD && nodes[1] == PLAN_SIMPLE &&
                    nodes[2] == schema->n_children;
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
    if (!plan_is_sound(column, 2, 0, dictionary, part->need))
        return false;
    if (column->length == 0)
        return plan_nulls_are(column, 0);
    return column->buffers[1] != NULL && plan_nulls(column, part, size);
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

/* Adds bitmap and data of a column of texts, and the first offset; not the
 * other offsets. */
static bool plan_text(const struct ArrowArray *column, int width,
                      const struct plan_part *part, int64_t *size)
{
    struct plan_data data;

    if (!plan_is_sound(column, 3, 0, NULL, part->need))
        return false;
    if (column->length == 0)
        return plan_nulls_are(column, 0);
    if (!plan_data_of_column(column, width, &data) ||
        (part->rows != column->length &&
         !plan_data_of_part(column, width, part, &data)))
        return false;
    if (part->rows > 0)
        *size +=
            (column->offset + part->from == 0) * width + data.to - data.from;
    return plan_nulls(column, part, size);
}

/* All items of a dictionary count for the first item of the column. */
static struct plan_part plan_all_names(const struct ArrowArray *column,
                                       const struct plan_part *part)
{
    const bool is_first = part->rows > 0 && column->offset + part->from == 0;

    return (struct plan_part){.rows =
                                  is_first ? column->dictionary->length : 0};
}

static bool plan_names(const struct ArrowArray *column,
                       const struct plan_part *part, int64_t *size)
{
    const struct ArrowArray *const dictionary = column->dictionary;
    struct plan_part names;

    if (dictionary == NULL || !plan_fixed(column, dictionary, part, size))
        return false;
    names = plan_all_names(column, part);
    if (!plan_text(dictionary, sizeof(int32_t), &names, size))
        return false;
    *size += names.rows * (int64_t)sizeof(int32_t);
    return true;
}

static bool plan_column(const struct ArrowArray *column, enum plan_type type,
                        const struct plan_part *part, int64_t *size)
{
    if (column == NULL)
        return false;
    switch (type) {
    case TYPE_FIXED:
        return plan_fixed(column, NULL, part, size);
    case TYPE_BITS:
        return plan_bits(column, part, size);
    case TYPE_TEXT:
        return plan_text(column, sizeof(int32_t), part, size);
    case TYPE_LARGE_TEXT:
        return plan_text(column, sizeof(int64_t), part, size);
    default:
        return plan_names(column, part, size);
    }
}

/* ---- columns as most are ------------------------------------------------ */

/* What the columns so far are added up to. */
struct plan_plain {
    int64_t rows;    /* of each column: from 1 to 31 bits */
    int64_t bitmaps; /* with a bit for each row */
    int64_t texts;   /* bytes, and those of the first of all offsets */
    uint64_t none;   /* must be 0 in the end */
};

/* Whether a column is as most are, but for its items: its offset has at most 31
 * bits, and is at a whole byte of bits. */
static inline bool plain_is_sound(struct plan_plain *plain,
                                  const struct ArrowArray *column, int buffers)
{
    if (column == NULL || column->release == NULL ||
        column->length != plain->rows || column->n_buffers != buffers ||
        column->buffers == NULL || column->buffers[1] == NULL ||
        (column->offset & ~(int64_t)0x7ffffff8) != 0)
        return false;
    plain->none |= (uint64_t)column->n_children;
    plain->bitmaps += column->buffers[0] != NULL;
    return plan_nulls_are(column, 0) ||
           (column->buffers[0] != NULL && plan_nulls_are(column, plain->rows));
}

static inline bool plain_number(struct plan_plain *plain,
                                const struct ArrowArray *column)
{
    if (!plain_is_sound(plain, column, 2))
        return false;
    plain->none |= (uintptr_t)column->dictionary;
    return true;
}

/* Its offsets have `width` bytes. */
static inline bool plain_text(struct plan_plain *plain,
                              const struct ArrowArray *column, int width)
{
    int64_t from, to;

    if (!plain_is_sound(plain, column, 3))
        return false;
    from = uva__buffer_integer(column->buffers[1], width, column->offset);
    to = uva__buffer_integer(column->buffers[1], width,
                             column->offset + plain->rows);
    plain->none |= (uintptr_t)column->dictionary;
    if (from < 0 || to < from || to >> PLAN_SIZE_BITS != 0)
        return false;
    plain->texts += to - from + (column->offset == 0 ? width : 0);
    return column->buffers[2] != NULL || to == 0;
}

static inline int64_t plain_size(const struct plan_plain *plain)
{
    return plain->bitmaps * ((plain->rows + 7) / 8) + plain->texts;
}

/* Its names have offsets of four bytes, and count with the first item. */
static inline bool plain_name(struct plan_plain *plain,
                              const struct ArrowArray *column)
{
    struct plan_plain names = {0};

    if (!plain_is_sound(plain, column, 2) || column->dictionary == NULL)
        return false;
    names.rows = column->dictionary->length;
    if ((uint64_t)(names.rows - 1) >> 31 != 0 ||
        !plain_text(&names, column->dictionary, 4))
        return false;
    plain->none |= names.none;
    if (column->offset == 0)
        plain->texts += plain_size(&names) + names.rows * 4;
    return true;
}

/* Gives the size of a run of columns of names; -1: not all are plain. Not
 * inline, as the loop of its caller is slower with this in it. */
__attribute__((noinline)) static int64_t
plain_names(struct ArrowArray *const *column, struct ArrowArray *const *end,
            int64_t rows)
{
    struct plan_plain plain = {.rows = rows};

    for (; column < end; column++)
        if (!plain_name(&plain, *column))
            return -1;
    return plain.none == 0 ? plain_size(&plain) : -1;
}

/* Adds up runs of columns of `rows` items each, if all are plain; otherwise
 * false. A column of numbers costs about 30 instructions, of texts 45. */
__attribute__((noinline)) static bool
plain_runs(const uint8_t *run, const uint8_t *end,
           struct ArrowArray *const *column, int64_t rows, int64_t *size)
{
    struct plan_plain plain = {.rows = rows};
    int64_t names;

    for (; run < end; run += 2) {
        struct ArrowArray *const *const last = column + run[1];

        if (run[0] <= TYPE_BITS) {
            plain.bitmaps += run[0] == TYPE_BITS ? run[1] : 0;
            for (; column < last; column++)
                if (!plain_number(&plain, *column))
                    return false;
        } else if (run[0] == TYPE_TEXT) {
            for (; column < last; column++)
                if (!plain_text(&plain, *column, 4))
                    return false;
        } else if (run[0] == TYPE_LARGE_TEXT) {
            for (; column < last; column++)
                if (!plain_text(&plain, *column, 8))
                    return false;
        } else {
            names = plain_names(column, last, rows);
            if (names < 0)
                return false;
            plain.texts += names;
            column = last;
        }
    }
    *size = plain_size(&plain);
    return plain.none == 0;
}

/* Adds up runs of columns of any kind. */
static bool plan_runs(const uint8_t *run, const uint8_t *end,
                      struct ArrowArray *const *column,
                      const struct plan_part *part, int64_t *size)
{
    *size = 0;
    for (; run < end; run += 2)
        for (int i = 0; i < run[1]; i++)
            if (!plan_column(*column++, (enum plan_type)run[0], part, size))
                return false;
    return true;
}

/* Neighbours of simple types. */
static bool plan_simple(struct plan_walk *walk,
                        struct ArrowArray *const *columns,
                        const struct plan_part *part)
{
    const uint8_t *const run = walk->at + PLAN_HEAD, *const end =
                                                         run + 2 * walk->at[4];
    const int width = walk->at[2] | walk->at[3] << 8;
    int64_t size;

    walk->at = end;
    if (!(part->from == 0 && part->need == part->rows &&
          (uint64_t)(part->rows - 1) >> 31 == 0 &&
          plain_runs(run, end, columns, part->rows, &size)) &&
        !plan_runs(run, end, columns, part, &size))
        return false;
    walk->size += size + part->rows * width;
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

static bool plan_index(struct plan_walk *walk, const struct ArrowSchema *schema,
                       const struct ArrowArray *array,
                       const struct plan_part *part)
{
    const int width = *walk->at++;
    struct plan_part names;

    if (array->dictionary == NULL ||
        !plan_fixed(array, array->dictionary, part, &walk->size))
        return false;
    walk->size += part->rows * width;
    names = plan_all_names(array, part);
    return plan_columns(
        walk,
        &(struct plan_columns){&schema->dictionary, &array->dictionary, 1},
        &names);
}

static bool plan_other(struct plan_walk *walk, const struct ArrowSchema *schema,
                       const struct ArrowArray *array,
                       const struct plan_part *part)
{
    int64_t memory, size = 0;

    if (uva__layout_check_column(schema, array, part->need, walk->on_host,
                                 &memory) != 0 ||
        memory >> PLAN_SIZE_BITS != 0)
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
        n = *walk->at == PLAN_SIMPLE ? walk->at[1] : 1;
        if (*walk->at == PLAN_SIMPLE)
            is_valid = plan_simple(walk, columns->arrays + i, part);
        else
            is_valid =
                plan_one(walk, columns->schemas[i], columns->arrays[i], part);
        if (!is_valid)
            return false;
    }
    return true;
}

/* A batch of simple columns alone, if they are plain: the same as the walk, at
 * half the price for one column. */
static bool plain_batch(const uint8_t *node, const struct ArrowArray *array,
                        int64_t *size)
{
    const uint8_t *const run = node + PLAN_HEAD;
    int64_t sum;

    if (!plan_is_sound(array, 1, node[1], NULL, 1) || array->offset != 0 ||
        array->children == NULL || array->buffers[0] != NULL ||
        !plan_nulls_are(array, 0) ||
        !plain_runs(run, run + 2 * node[4], array->children, array->length,
                    &sum))
        return false;
    *size = sum + array->length * (node[2] | node[3] << 8);
    return true;
}

/* Not inline, for the sake of plain batches. */
__attribute__((noinline)) static bool
plan_walk(const uint8_t *node, const struct ArrowSchema *schema,
          const struct ArrowArray *array, bool on_host, int64_t *size)
{
    struct plan_walk walk = {.at = node, .on_host = on_host};

    if (!plan_row(&walk, schema, array,
                  &(struct plan_part){.rows = array->length}))
        return false;
    *size = walk.size;
    return true;
}

bool uva__plan_measure(const struct uva__plan *plan,
                       const struct ArrowSchema *schema,
                       const struct ArrowDeviceArray *batch, int64_t *size)
{
    const uint8_t *const nodes = plan->far == NULL ? plan->near : plan->far;
    bool on_host = false;

    if (plan->size == 0)
        return false;
    if (plan->reads) {
        on_host = uva__buffer_on_host(batch);
        if (!on_host)
            return false;
    }
    return (plan->is_flat && plain_batch(nodes + 1, &batch->array, size)) ||
           plan_walk(nodes + 1, schema, &batch->array, on_host, size);
}

/* ---- whole batches ------------------------------------------------------ */

/* Whether a column of texts begins with its first item and its data. */
static bool text_is_whole(const struct ArrowArray *column, int width)
{
    return column->offset == 0 &&
           (column->length == 0 ||
            uva__buffer_integer(column->buffers[1], width, 0) == 0);
}

static bool column_is_whole(const struct ArrowArray *column,
                            enum plan_type type, int64_t rows)
{
    if (column->length != rows || column->offset != 0)
        return false;
    switch (type) {
    case TYPE_TEXT:
        return text_is_whole(column, 4);
    case TYPE_LARGE_TEXT:
        return text_is_whole(column, 8);
    case TYPE_NAME:
        return rows > 0 && text_is_whole(column->dictionary, 4);
    default:
        return true;
    }
}

/* The batch fits, so that the host can read what the plan does. */
bool uva__plan_is_whole(const struct uva__plan *plan,
                        const struct ArrowDeviceArray *batch)
{
    const uint8_t *const nodes = plan->far == NULL ? plan->near : plan->far;
    const uint8_t *run = nodes + 1 + PLAN_HEAD;
    struct ArrowArray *const *column = batch->array.children;
    bool is_whole = plan->is_flat && batch->array.offset == 0 &&
                    (!plan->reads || uva__buffer_on_host(batch));

    for (const uint8_t *end = run + 2 * nodes[5]; is_whole && run < end;
         run += 2)
        for (int i = 0; i < run[1] && is_whole; i++)
            is_whole = column_is_whole(*column++, (enum plan_type)run[0],
                                       batch->array.length);
    return is_whole;
}
