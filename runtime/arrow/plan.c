/* SPDX-License-Identifier: Apache-2.0 */
/* A plan is compiled once (arrow/plan_compile.c), and measures many batches:
 * columns of simple types are as plain as can be in most of them, and cost
 * about 30 instructions each then (arrow/plan_plain.c); other batches are
 * walked array by array (arrow/plan_walk.c). */
#include "arrow/plan.h"

#include "arrow/buffer.h"
#include "arrow/plan_compile.h"
#include "arrow/plan_node.h"
#include "arrow/plan_plain.h"
#include "arrow/plan_walk.h"
#include "base/memory.h"

void uva__plan_init(struct uva__plan *plan,
                    const struct uva_allocator *allocator,
                    const struct ArrowSchema *schema)
{
    struct uva__plan_compiled compiled;
    const uint8_t *nodes;

    *plan = (struct uva__plan){.allocator = allocator};
    if (!uva__plan_compile(schema, plan->near, UVA__PLAN_NEAR, &compiled))
        return;
    if (compiled.size > UVA__PLAN_NEAR) {
        plan->far = uva__memory_new(allocator, (size_t)compiled.size);
        if (plan->far == NULL)
            return;
        (void)uva__plan_compile(schema, plan->far, compiled.size, &compiled);
    }
    nodes = plan->far == NULL ? plan->near : plan->far;
    plan->size = compiled.size;
    plan->reads = compiled.reads;
    plan->is_flat = compiled.size > UVA__PLAN_HEAD &&
                    nodes[1] == UVA__PLAN_SIMPLE &&
                    nodes[2] == schema->n_children;
}

void uva__plan_fini(struct uva__plan *plan)
{
    if (plan->far != NULL)
        uva__memory_free(plan->allocator, plan->far, (size_t)plan->size);
    *plan = (struct uva__plan){0};
}

/* ---- measuring a batch -------------------------------------------------- */

/* A batch of simple columns alone, if they are plain: the same as the walk, at
 * half the price for one column. */
static bool plain_batch(const uint8_t *node, const struct ArrowArray *array,
                        int64_t *size)
{
    const uint8_t *const run = node + UVA__PLAN_HEAD;
    int64_t sum;

    if (!uva__plan_is_sound(array, 1, node[1], NULL, 1) || array->offset != 0 ||
        array->children == NULL || array->buffers[0] != NULL ||
        !uva__plan_nulls_are(array, 0) ||
        !uva__plan_plain_runs(run, run + 2 * node[4], array->children,
                              array->length, &sum))
        return false;
    *size = sum + array->length * (node[2] | node[3] << 8);
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
           uva__plan_walk(nodes + 1, schema, &batch->array, on_host, size);
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
                            enum uva__plan_type type, int64_t rows)
{
    if (column->length != rows || column->offset != 0)
        return false;
    switch (type) {
    case UVA__PLAN_TEXT:
        return text_is_whole(column, 4);
    case UVA__PLAN_LARGE_TEXT:
        return text_is_whole(column, 8);
    case UVA__PLAN_NAME:
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
    const uint8_t *run = nodes + 1 + UVA__PLAN_HEAD;
    struct ArrowArray *const *column = batch->array.children;
    bool is_whole = plan->is_flat && batch->array.offset == 0 &&
                    (!plan->reads || uva__buffer_on_host(batch));

    for (const uint8_t *end = run + 2 * nodes[5]; is_whole && run < end;
         run += 2)
        for (int i = 0; i < run[1] && is_whole; i++)
            is_whole = column_is_whole(*column++, (enum uva__plan_type)run[0],
                                       batch->array.length);
    return is_whole;
}
