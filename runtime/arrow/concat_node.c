/* SPDX-License-Identifier: Apache-2.0 */
/* The differences between the types: two functions for each kind of layout,
 * measure and fill. They take a *run*, rows of one array that lie side by side,
 * and pass runs of its children on. Measuring reads offsets, views, type ids
 * and ends of runs, and refuses values out of range. */
#include "arrow/concat_node.h"

#include <stdlib.h>
#include <string.h>

#include "arrow/bits.h"
#include "arrow/buffer.h"

enum {
    VIEW_SIZE = 16,
    VIEW_INLINE = 12 /* longer values lie in a data buffer */
};

struct uva__concat_kind {
    int (*measure)(struct uva__concat_node *node,
                   const struct uva__concat_run *run);
    void (*fill)(struct uva__concat_node *node,
                 const struct uva__concat_run *run);
};

/* ---- reading ------------------------------------------------------------ */

static bool has_nulls(const struct uva__concat_node *node,
                      const struct ArrowArray *array)
{
    return node->layout.n_buffers > 0 &&
           node->layout.buffers[0].kind == UVA__BUFFER_VALIDITY &&
           uva__buffer_may_have_nulls(array);
}

static bool is_null(const struct uva__concat_node *node,
                    const struct ArrowArray *array, int64_t i)
{
    return has_nulls(node, array) && !uva__bits_get(array->buffers[0], i);
}

/* The items from `first` on of child `i`. */
static struct uva__concat_run run_below(const struct ArrowArray *array,
                                        int64_t i, int64_t first, int64_t count)
{
    const struct ArrowArray *const child = array->children[i];

    return (struct uva__concat_run){child, child->offset + first, count};
}

/* Where buffer `i` of the result continues; its items have `width` bytes. */
static char *target_at(const struct uva__concat_node *node, int64_t i,
                       int64_t width)
{
    char *const buffer = (char *)(uintptr_t)node->array->buffers[i];

    return buffer + node->filled * width;
}

static void move_narrow(char *to, const char *from, int32_t width,
                        int64_t count, uint32_t by)
{
    uint32_t four;
    uint16_t two;

    for (int64_t i = 0; i < count; i++)
        if (width == sizeof(four)) {
            memcpy(&four, from + i * width, sizeof(four));
            four += by;
            memcpy(to + i * width, &four, sizeof(four));
        } else if (width == sizeof(two)) {
            memcpy(&two, from + i * width, sizeof(two));
            two = (uint16_t)(two + by);
            memcpy(to + i * width, &two, sizeof(two));
        } else {
            to[i] = (char)((uint8_t)from[i] + (uint8_t)by);
        }
}

/* Copies `count` integers and adds `by` to each; a wrong integer stays wrong,
 * whether it is an offset or the index of an item that is null. */
static void move_integers(char *to, const void *from, int32_t width,
                          int64_t count, int64_t by)
{
    uint64_t wide;

    if (width != sizeof(wide)) {
        move_narrow(to, from, width, count, (uint32_t)by);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        memcpy(&wide, (const char *)from + i * width, sizeof(wide));
        wide += (uint64_t)by;
        memcpy(to + i * width, &wide, sizeof(wide));
    }
}

/* ---- null, bits, fixed width -------------------------------------------- */

static int measure_nothing(struct uva__concat_node *node,
                           const struct uva__concat_run *run)
{
    (void)node;
    (void)run;
    return 0;
}

static void fill_nothing(struct uva__concat_node *node,
                         const struct uva__concat_run *run)
{
    (void)node;
    (void)run;
}

static void fill_bits(struct uva__concat_node *node,
                      const struct uva__concat_run *run)
{
    uva__bits_copy((uint8_t *)target_at(node, 1, 0), node->filled,
                   run->array->buffers[1], run->at, run->count);
}

static void fill_fixed(struct uva__concat_node *node,
                       const struct uva__concat_run *run)
{
    const int64_t width = node->width;

    if (width > 0)
        memcpy(target_at(node, 1, width),
               (const char *)run->array->buffers[1] + run->at * width,
               (size_t)(run->count * width));
}

/* ---- dictionaries ------------------------------------------------------- */

/* Whether two arrays of one schema are shared or sliced from one, so that an
 * index means the same value in both. */
static bool is_same_data(const struct ArrowArray *a, const struct ArrowArray *b)
{
    if (a->length != b->length || a->offset != b->offset ||
        a->n_buffers != b->n_buffers)
        return false;
    for (int64_t i = 0; i < a->n_buffers; i++)
        if (a->buffers[i] != b->buffers[i])
            return false;
    for (int64_t i = 0; i < a->n_children; i++)
        if (!is_same_data(a->children[i], b->children[i]))
            return false;
    return a->dictionary == NULL || is_same_data(a->dictionary, b->dictionary);
}

/* Whether the values of this run follow the values of the run before, and begin
 * where `values_at` then is; `end` is where the joined dictionary ends. */
static bool begins_new_values(struct uva__concat_node *node,
                              const struct uva__concat_run *run, int64_t end)
{
    const struct ArrowArray *const values = run->array->dictionary;

    if (node->values != NULL && is_same_data(node->values, values))
        return false;
    node->values = values;
    node->values_at = end;
    return true;
}

static int measure_index(struct uva__concat_node *node,
                         const struct uva__concat_run *run)
{
    const struct ArrowArray *const values = run->array->dictionary;
    const struct uva__concat_run all = {values, values->offset, values->length};
    int code;

    if (!begins_new_values(node, run, node->dictionary->items))
        return 0;
    code = uva__concat_node_measure(node->dictionary, &all);
    if (code == 0 && node->values_at > 0 &&
        node->dictionary->items - 1 > node->index_max)
        code = EOVERFLOW;
    return code;
}

static void fill_index(struct uva__concat_node *node,
                       const struct uva__concat_run *run)
{
    const struct ArrowArray *const values = run->array->dictionary;
    const struct uva__concat_run all = {values, values->offset, values->length};
    const int32_t width = node->width;
    const char *const from =
        (const char *)run->array->buffers[1] + run->at * width;

    if (begins_new_values(node, run, node->dictionary->filled))
        uva__concat_node_fill(node->dictionary, &all);
    move_integers(target_at(node, 1, width), from, width, run->count,
                  node->values_at);
}

/* ---- strings ------------------------------------------------------------ */

/* The range that the offsets of a run span. It is inside the array's, which was
 * checked. */
static int offsets_span(const struct uva__concat_node *node,
                        const struct uva__concat_run *run, int64_t *first,
                        int64_t *size)
{
    const void *const offsets = run->array->buffers[1];
    const int64_t behind = run->array->offset + run->array->length;
    int64_t last;

    *size = 0; /* also of offsets that are wrong only the second time */
    *first = uva__buffer_integer(offsets, node->width, run->at);
    last = uva__buffer_integer(offsets, node->width, run->at + run->count);
    if (*first < 0 || last < *first ||
        last > uva__buffer_integer(offsets, node->width, behind))
        return EINVAL;
    *size = last - *first;
    return 0;
}

/* Copies the offsets of a run, and the end of its last item, for items that
 * begin at `base`. */
static void fill_offsets(struct uva__concat_node *node,
                         const struct uva__concat_run *run, int64_t first,
                         int64_t base)
{
    const int32_t width = node->width;

    move_integers(target_at(node, 1, width),
                  (const char *)run->array->buffers[1] + run->at * width, width,
                  run->count + 1, base - first);
}

static int measure_binary(struct uva__concat_node *node,
                          const struct uva__concat_run *run)
{
    int64_t first, size;
    const int code = offsets_span(node, run, &first, &size);

    if (code != 0)
        return code;
    if (size > 0 && run->array->buffers[2] == NULL)
        return EINVAL;
    if (size > PTRDIFF_MAX / 4 - node->data)
        return EOVERFLOW;
    node->data += size;
    return node->width == 4 && node->data > INT32_MAX ? EOVERFLOW : 0;
}

static void fill_binary(struct uva__concat_node *node,
                        const struct uva__concat_run *run)
{
    int64_t first, size;

    (void)offsets_span(node, run, &first, &size);
    fill_offsets(node, run, first, node->filled_data);
    if (size > 0)
        memcpy((char *)(uintptr_t)node->array->buffers[2] + node->filled_data,
               (const char *)run->array->buffers[2] + first, (size_t)size);
    node->filled_data += size;
}

/* ---- views -------------------------------------------------------------- */

/* A view: the value itself, or where it lies. */
struct view {
    int32_t length;
    char prefix[4];
    int32_t buffer; /* number of the data buffer */
    int32_t offset; /* in that */
};

static struct view view_at(const struct uva__concat_node *node,
                           const struct uva__concat_run *run, int64_t i)
{
    struct view view = {0};

    if (!is_null(node, run->array, run->at + i))
        memcpy(&view,
               (const char *)run->array->buffers[1] + (run->at + i) * VIEW_SIZE,
               sizeof(view));
    return view;
}

/* Whether a value that is not in the view itself lies in a buffer. */
static bool view_is_sound(const struct ArrowArray *array,
                          const struct view *view)
{
    const int64_t buffers = array->n_buffers - 3;
    const void *const sizes = array->buffers[array->n_buffers - 1];

    return view->buffer >= 0 && view->buffer < buffers && view->offset >= 0 &&
           sizes != NULL && array->buffers[2 + view->buffer] != NULL &&
           (int64_t)view->offset + view->length <=
               uva__buffer_integer(sizes, sizeof(int64_t), view->buffer);
}

static int measure_view(struct uva__concat_node *node,
                        const struct uva__concat_run *run)
{
    for (int64_t i = 0; i < run->count; i++) {
        const struct view view = view_at(node, run, i);

        if (view.length < 0)
            return EINVAL;
        if (view.length <= VIEW_INLINE)
            continue;
        if (!view_is_sound(run->array, &view))
            return EINVAL;
        node->data += view.length;
        if (node->data > INT32_MAX)
            return EOVERFLOW;
    }
    return 0;
}

static void fill_view(struct uva__concat_node *node,
                      const struct uva__concat_run *run)
{
    char *const to = target_at(node, 1, VIEW_SIZE);

    for (int64_t i = 0; i < run->count; i++) {
        struct view view = view_at(node, run, i);

        if (view.length > VIEW_INLINE) {
            memcpy((char *)(uintptr_t)node->array->buffers[2] +
                       node->filled_data,
                   (const char *)run->array->buffers[2 + view.buffer] +
                       view.offset,
                   (size_t)view.length);
            view.buffer = 0;
            view.offset = (int32_t)node->filled_data;
            node->filled_data += view.length;
        }
        memcpy(to + i * VIEW_SIZE, &view, sizeof(view));
    }
}

/* ---- lists -------------------------------------------------------------- */

static int measure_items(struct uva__concat_node *node,
                         const struct uva__concat_run *items)
{
    struct uva__concat_node *const child = &node->children[0];
    const int code = uva__concat_node_measure(child, items);

    if (code != 0)
        return code;
    return node->width == 4 && child->items > INT32_MAX ? EOVERFLOW : 0;
}

static int measure_list(struct uva__concat_node *node,
                        const struct uva__concat_run *run)
{
    int64_t first, size;
    struct uva__concat_run items;
    const int code = offsets_span(node, run, &first, &size);

    if (code != 0)
        return code;
    items = run_below(run->array, 0, first, size);
    return measure_items(node, &items);
}

static void fill_list(struct uva__concat_node *node,
                      const struct uva__concat_run *run)
{
    int64_t first, size;
    struct uva__concat_run items;

    (void)offsets_span(node, run, &first, &size);
    fill_offsets(node, run, first, node->children[0].filled);
    items = run_below(run->array, 0, first, size);
    uva__concat_node_fill(&node->children[0], &items);
}

static int measure_fixed_list(struct uva__concat_node *node,
                              const struct uva__concat_run *run)
{
    const int64_t size = node->list_size;
    struct uva__concat_run items;

    if (size > 0 && run->at + run->count > INT64_MAX / size)
        return EINVAL;
    items = run_below(run->array, 0, run->at * size, run->count * size);
    return uva__concat_node_measure(&node->children[0], &items);
}

static void fill_fixed_list(struct uva__concat_node *node,
                            const struct uva__concat_run *run)
{
    const int64_t size = node->list_size;
    const struct uva__concat_run items =
        run_below(run->array, 0, run->at * size, run->count * size);

    uva__concat_node_fill(&node->children[0], &items);
}

/* The size of list `i` of the run; 0 for a null list. */
static int64_t view_size_at(const struct uva__concat_node *node,
                            const struct uva__concat_run *run, int64_t i)
{
    if (is_null(node, run->array, run->at + i))
        return 0;
    return uva__buffer_integer(run->array->buffers[2], node->width,
                               run->at + i);
}

/* The items that the lists of a run refer to, in any order. */
static int list_view_span(const struct uva__concat_node *node,
                          const struct uva__concat_run *run,
                          struct uva__concat_run *items)
{
    int64_t first = INT64_MAX, end = 0;

    for (int64_t i = 0; i < run->count; i++) {
        const int64_t size = view_size_at(node, run, i);
        const int64_t offset = uva__buffer_integer(run->array->buffers[1],
                                                   node->width, run->at + i);

        if (size == 0)
            continue;
        if (size < 0 || offset < 0 || offset > INT64_MAX - size)
            return EINVAL;
        first = offset < first ? offset : first;
        end = offset + size > end ? offset + size : end;
    }
    *items = end == 0 ? run_below(run->array, 0, 0, 0)
                      : run_below(run->array, 0, first, end - first);
    return 0;
}

static int measure_list_view(struct uva__concat_node *node,
                             const struct uva__concat_run *run)
{
    struct uva__concat_run items;
    const int code = list_view_span(node, run, &items);

    return code != 0 ? code : measure_items(node, &items);
}

static void fill_list_view(struct uva__concat_node *node,
                           const struct uva__concat_run *run)
{
    struct uva__concat_node *const child = &node->children[0];
    const int32_t width = node->width;
    char *const offsets = target_at(node, 1, width);
    char *const sizes = target_at(node, 2, width);
    struct uva__concat_run items;
    int64_t by;

    (void)list_view_span(node, run, &items);
    by = child->filled - (items.at - items.array->offset);
    for (int64_t i = 0; i < run->count; i++) {
        const int64_t size = view_size_at(node, run, i);
        const int64_t offset =
            uva__buffer_integer(run->array->buffers[1], width, run->at + i);

        uva__buffer_put_integer(offsets, width, i, size == 0 ? 0 : offset + by);
        uva__buffer_put_integer(sizes, width, i, size);
    }
    uva__concat_node_fill(child, &items);
}

/* ---- structs and unions ------------------------------------------------- */

static int measure_row(struct uva__concat_node *node,
                       const struct uva__concat_run *run)
{
    int code = 0;

    for (int64_t i = 0; i < node->n_children && code == 0; i++) {
        const struct uva__concat_run column =
            run_below(run->array, i, run->at, run->count);

        code = uva__concat_node_measure(&node->children[i], &column);
    }
    return code;
}

static void fill_row(struct uva__concat_node *node,
                     const struct uva__concat_run *run)
{
    for (int64_t i = 0; i < node->n_children; i++) {
        const struct uva__concat_run column =
            run_below(run->array, i, run->at, run->count);

        uva__concat_node_fill(&node->children[i], &column);
    }
}

static void fill_ids(struct uva__concat_node *node,
                     const struct uva__concat_run *run)
{
    memcpy(target_at(node, 0, 1),
           (const char *)run->array->buffers[0] + run->at, (size_t)run->count);
}

static void fill_sparse(struct uva__concat_node *node,
                        const struct uva__concat_run *run)
{
    fill_ids(node, run);
    fill_row(node, run);
}

/* The items of each child that a run of a dense union refers to. */
struct dense_spans {
    int32_t first[UVA__UNION_IDS],
        end[UVA__UNION_IDS]; /* by child; equal: none */
};

static int dense_member(const struct uva__concat_node *node,
                        const struct uva__concat_run *run, int64_t i)
{
    const int id = ((const int8_t *)run->array->buffers[0])[run->at + i];

    return id < 0 ? -1 : node->members[id];
}

static int64_t dense_offset(const struct uva__concat_run *run, int64_t i)
{
    return uva__buffer_integer(run->array->buffers[1], sizeof(int32_t),
                               run->at + i);
}

static int dense_span(const struct uva__concat_node *node,
                      const struct uva__concat_run *run,
                      struct dense_spans *spans)
{
    memset(spans, 0, sizeof(*spans));
    for (int64_t i = 0; i < run->count; i++) {
        const int member = dense_member(node, run, i);
        const int32_t offset = (int32_t)dense_offset(run, i);

        if (member < 0 || offset < 0 || offset == INT32_MAX)
            return EINVAL;
        if (spans->end[member] == 0 || offset < spans->first[member])
            spans->first[member] = offset;
        if (offset >= spans->end[member])
            spans->end[member] = offset + 1;
    }
    return 0;
}

static int measure_dense(struct uva__concat_node *node,
                         const struct uva__concat_run *run)
{
    struct dense_spans spans;
    int code = dense_span(node, run, &spans);

    for (int64_t i = 0; i < node->n_children && code == 0; i++) {
        const struct uva__concat_run items = run_below(
            run->array, i, spans.first[i], spans.end[i] - spans.first[i]);

        code = uva__concat_node_measure(&node->children[i], &items);
        if (code == 0 && node->children[i].items > INT32_MAX)
            code = EOVERFLOW;
    }
    return code;
}

static void fill_dense(struct uva__concat_node *node,
                       const struct uva__concat_run *run)
{
    char *const offsets = target_at(node, 1, sizeof(int32_t));
    struct dense_spans spans;

    (void)dense_span(node, run, &spans);
    fill_ids(node, run);
    for (int64_t i = 0; i < run->count; i++) {
        const int member = dense_member(node, run, i);
        const int64_t by = node->children[member].filled - spans.first[member];

        uva__buffer_put_integer(offsets, sizeof(int32_t), i,
                                dense_offset(run, i) + by);
    }
    for (int64_t i = 0; i < node->n_children; i++) {
        const struct uva__concat_run items = run_below(
            run->array, i, spans.first[i], spans.end[i] - spans.first[i]);

        uva__concat_node_fill(&node->children[i], &items);
    }
}

/* ---- run ends ----------------------------------------------------------- */

/* The first run end after row `at`; their number if there is no such end. Even
 * if the ends are in disorder, it finds no end before an earlier row's. */
static int64_t ends_find(const struct ArrowArray *ends, int32_t width,
                         int64_t at)
{
    int64_t low = 0, high = ends->length;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (uva__buffer_integer(ends->buffers[1], width,
                                ends->offset + middle) > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The runs that the rows of `run` are in. */
static int ends_span(const struct uva__concat_node *node,
                     const struct uva__concat_run *run, int64_t *first,
                     int64_t *count)
{
    const struct ArrowArray *const ends = run->array->children[0];
    int64_t last;

    *first = ends_find(ends, node->width, run->at);
    last = ends_find(ends, node->width, run->at + run->count - 1);
    *count = last - *first + 1;
    return last >= ends->length ? EINVAL : 0;
}

static int measure_runs(struct uva__concat_node *node,
                        const struct uva__concat_run *run)
{
    int64_t first, count;
    struct uva__concat_run values;
    const int code = ends_span(node, run, &first, &count);

    if (code != 0)
        return code;
    if (node->items > node->index_max)
        return EOVERFLOW;
    node->children[0].items += count;
    values = run_below(run->array, 1, first, count);
    return uva__concat_node_measure(&node->children[1], &values);
}

static void fill_runs(struct uva__concat_node *node,
                      const struct uva__concat_run *run)
{
    const struct ArrowArray *const ends = run->array->children[0];
    struct uva__concat_node *const child = &node->children[0];
    int64_t first, count, end;
    struct uva__concat_run values;

    (void)ends_span(node, run, &first, &count);
    for (int64_t i = 0; i < count; i++) {
        end = uva__buffer_integer(ends->buffers[1], node->width,
                                  ends->offset + first + i) -
              run->at;
        end = end < run->count ? end : run->count;
        uva__buffer_put_integer(target_at(child, 1, node->width), node->width,
                                0, node->filled + end);
        child->filled++;
    }
    values = run_below(run->array, 1, first, count);
    uva__concat_node_fill(&node->children[1], &values);
}

/* ---- one node ----------------------------------------------------------- */

static const struct uva__concat_kind KIND_NOTHING = {measure_nothing,
                                                     fill_nothing};
static const struct uva__concat_kind KIND_BITS = {measure_nothing, fill_bits};
static const struct uva__concat_kind KIND_FIXED = {measure_nothing, fill_fixed};
static const struct uva__concat_kind KIND_INDEX = {measure_index, fill_index};
static const struct uva__concat_kind KIND_BINARY = {measure_binary,
                                                    fill_binary};
static const struct uva__concat_kind KIND_VIEW = {measure_view, fill_view};
static const struct uva__concat_kind KIND_LIST = {measure_list, fill_list};
static const struct uva__concat_kind KIND_FIXED_LIST = {measure_fixed_list,
                                                        fill_fixed_list};
static const struct uva__concat_kind KIND_LIST_VIEW = {measure_list_view,
                                                       fill_list_view};
static const struct uva__concat_kind KIND_ROW = {measure_row, fill_row};
static const struct uva__concat_kind KIND_SPARSE = {measure_row, fill_sparse};
static const struct uva__concat_kind KIND_DENSE = {measure_dense, fill_dense};
static const struct uva__concat_kind KIND_RUNS = {measure_runs, fill_runs};

int uva__concat_node_measure(struct uva__concat_node *node,
                             const struct uva__concat_run *run)
{
    const struct ArrowArray *const array = run->array;

    if (run->count == 0)
        return 0;
    if (run->at > array->offset + array->length - run->count)
        return EINVAL;
    if (run->count > PTRDIFF_MAX / 64 - node->items)
        return EOVERFLOW;
    node->items += run->count;
    node->nullable = node->nullable || has_nulls(node, array);
    return node->kind->measure(node, run);
}

static void fill_validity(struct uva__concat_node *node,
                          const struct uva__concat_run *run)
{
    uint8_t *const bits = (uint8_t *)(uintptr_t)node->array->buffers[0];

    if (has_nulls(node, run->array))
        uva__bits_copy(bits, node->filled, run->array->buffers[0], run->at,
                       run->count);
    else
        uva__bits_fill(bits, node->filled, run->count);
}

void uva__concat_node_fill(struct uva__concat_node *node,
                           const struct uva__concat_run *run)
{
    if (run->count == 0)
        return;
    if (node->nullable)
        fill_validity(node, run);
    node->kind->fill(node, run);
    node->filled += run->count;
}

bool uva__concat_node_is_batch(const struct uva__concat_node *node)
{
    return node->kind == &KIND_ROW && !node->nullable && node->n_children > 0;
}

bool uva__concat_node_is_plain(const struct uva__concat_node *node)
{
    return node->kind == &KIND_FIXED && node->width > 0;
}

void uva__concat_node_fill_column(struct uva__concat_node *node,
                                  const struct uva__concat_run *run, int64_t i)
{
    const struct uva__concat_run column =
        run_below(run->array, i, run->at, run->count);

    uva__concat_node_fill(&node->children[i], &column);
    if (i == node->n_children - 1)
        node->filled += run->count;
}

/* ---- making one --------------------------------------------------------- */

static const struct uva__concat_kind *kind_of_nested(const char *format)
{
    switch (format[1]) {
    case 's':
        return &KIND_ROW;
    case 'w':
        return &KIND_FIXED_LIST;
    case 'v':
        return &KIND_LIST_VIEW;
    case 'r':
        return &KIND_RUNS;
    case 'u':
        return format[2] == 's' ? &KIND_SPARSE : &KIND_DENSE;
    default:
        return &KIND_LIST;
    }
}

static const struct uva__concat_kind *kind_of(const struct ArrowSchema *schema)
{
    if (schema->dictionary != NULL)
        return &KIND_INDEX;
    switch (schema->format[0]) {
    case 'n':
        return &KIND_NOTHING;
    case 'b':
        return &KIND_BITS;
    case 'v':
        return &KIND_VIEW;
    case 'z':
    case 'Z':
    case 'u':
    case 'U':
        return &KIND_BINARY;
    case '+':
        return kind_of_nested(schema->format);
    default:
        return &KIND_FIXED;
    }
}

/* The largest number that an integer format holds. */
static int64_t integer_max(const char *format)
{
    switch (format[0]) {
    case 'c':
        return INT8_MAX;
    case 'C':
        return UINT8_MAX;
    case 's':
        return INT16_MAX;
    case 'S':
        return UINT16_MAX;
    case 'i':
        return INT32_MAX;
    case 'I':
        return UINT32_MAX;
    default:
        return INT64_MAX;
    }
}

int uva__concat_node_init(struct uva__concat_node *node,
                          const struct ArrowSchema *schema)
{
    const int code = uva__format_read(schema->format, &node->layout);

    if (code != 0)
        return code;
    if ((schema->dictionary != NULL && !node->layout.index) ||
        (node->layout.n_children >= 0 &&
         node->layout.n_children != schema->n_children))
        return EINVAL;
    node->format = schema->format;
    node->kind = kind_of(schema);
    node->width = node->layout.buffers[1].width;
    node->index_max = integer_max(schema->format);
    node->n_children = schema->n_children;
    if (node->kind == &KIND_FIXED_LIST)
        node->list_size = strtol(schema->format + 3, NULL, 10);
    if (node->kind == &KIND_SPARSE || node->kind == &KIND_DENSE)
        uva__format_members(schema->format, node->members);
    return 0;
}

/* The ends of runs are plain integers of 2, 4 or 8 bytes. */
int uva__concat_node_complete(struct uva__concat_node *node)
{
    const char *ends;

    if (node->kind != &KIND_RUNS)
        return 0;
    ends = node->children[0].format;
    if (ends[1] != '\0' || strchr("sil", ends[0]) == NULL)
        return EINVAL;
    node->width = node->children[0].width;
    node->index_max = integer_max(ends);
    return 0;
}
