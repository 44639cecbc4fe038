/* SPDX-License-Identifier: Apache-2.0 */
/* Walks a schema once, and appends a node for each of its types, or lets it
 * join the node before. A draft counts the bytes beyond its room, too, so that
 * its maker knows how much room it needs. */
#include "arrow/plan_compile.h"

#include <assert.h>

#include "arrow/format.h"
#include "arrow/plan_node.h"
#include "arrow/structs.h"

struct plan_draft {
    uint8_t *nodes;           /* borrows */
    int32_t room;             /* for so many bytes */
    int32_t count;            /* so many there are, also beyond the room */
    int64_t walked;           /* nodes of the schema so far */
    int32_t within;           /* nodes of UVA__PLAN_OTHER above this one */
    int32_t columns;          /* of the last node, if that is UVA__PLAN_SIMPLE;
                                 otherwise 0 */
    int32_t head;             /* where this node begins */
    int32_t width;            /* of these columns in sum */
    enum uva__plan_type type; /* of the last run */
    int32_t run;              /* columns of that run */
    bool reads;
};

static void draft_put(struct plan_draft *draft, int32_t at, int byte)
{
    if (at < draft->room)
        draft->nodes[at] = (uint8_t)byte;
}

/* A column of a simple type joins the neighbour before it: its run, if that is
 * of the same type, and its node, if that is of any simple type. */
static void draft_put_simple(struct plan_draft *draft, enum uva__plan_type type,
                             int32_t width)
{
    if (draft->columns == 0 || draft->columns == UVA__PLAN_COLUMNS) {
        draft->head = draft->count;
        draft->count += UVA__PLAN_HEAD;
        draft_put(draft, draft->head, UVA__PLAN_SIMPLE);
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
              (draft->count - draft->head - UVA__PLAN_HEAD) / 2);
    draft->reads |= type >= UVA__PLAN_TEXT;
}

static void draft_put_node(struct plan_draft *draft, enum uva__plan_node node)
{
    draft->columns = 0;
    draft->reads |= node >= UVA__PLAN_LIST;
    draft_put(draft, draft->count++, node);
}

static bool layout_has_bitmap(const struct uva__layout *layout)
{
    return layout->n_buffers > 0 && !layout->variadic &&
           layout->buffers[0].kind == UVA__BUFFER_VALIDITY;
}

static enum uva__plan_type type_of(const struct uva__layout *layout)
{
    const struct uva__layout_buffer *items = &layout->buffers[1];

    if (!layout_has_bitmap(layout) || layout->n_children != 0)
        return UVA__PLAN_NOT_SIMPLE;
    if (items->kind == UVA__BUFFER_OFFSETS)
        return items->width == 8 ? UVA__PLAN_LARGE_TEXT : UVA__PLAN_TEXT;
    if (items->kind == UVA__BUFFER_BITS)
        return UVA__PLAN_BITS;
    assert(layout->n_buffers == 2);
    return items->width <= UVA__PLAN_WIDEST ? UVA__PLAN_FIXED
                                            : UVA__PLAN_NOT_SIMPLE;
}

/* The node of a type that is not simple. */
static enum uva__plan_node node_of(const char *format,
                                   const struct uva__layout *layout)
{
    if (layout->n_buffers == 0 && layout->n_children == 0)
        return UVA__PLAN_NOTHING;
    if (!layout_has_bitmap(layout) || layout->n_children == 0)
        return UVA__PLAN_OTHER;
    if (layout->n_buffers == 1)
        return format[1] == 's' ? UVA__PLAN_ROW : UVA__PLAN_EQUAL_LISTS;
    if (layout->n_buffers > 2)
        return UVA__PLAN_OTHER;
    return layout->buffers[1].width == 8 ? UVA__PLAN_LARGE_LIST
                                         : UVA__PLAN_LIST;
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
           type_of(&layout) == UVA__PLAN_TEXT;
}

/* Returns whether there are no nodes below that of `schema`. */
static bool draft_put_own(struct plan_draft *draft,
                          const struct ArrowSchema *schema,
                          const struct uva__layout *layout)
{
    const bool is_index = schema->dictionary != NULL;
    const bool is_name = is_index && draft_can_name(schema->dictionary);
    const enum uva__plan_type type = is_name ? UVA__PLAN_NAME : type_of(layout);
    const int32_t width = layout->buffers[1].width;
    enum uva__plan_node node = UVA__PLAN_INDEX;

    if (draft->within > 0)
        return true;
    if (type != UVA__PLAN_NOT_SIMPLE && is_index == is_name) {
        draft_put_simple(draft, type, width);
        return true;
    }
    if (!is_index)
        node = node_of(schema->format, layout);
    draft_put_node(draft, node);
    if (is_index)
        draft_put(draft, draft->count++, width);
    return node == UVA__PLAN_OTHER;
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

bool uva__plan_compile(const struct ArrowSchema *schema, uint8_t *nodes,
                       int32_t room, struct uva__plan_compiled *out)
{
    struct plan_draft draft = {.nodes = nodes, .room = room};

    if (!draft_add(&draft, schema, 0) || nodes[0] != UVA__PLAN_ROW)
        return false;
    *out = (struct uva__plan_compiled){draft.count, draft.reads};
    return true;
}
