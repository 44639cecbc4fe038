/* SPDX-License-Identifier: Apache-2.0 */
/* A batch and its column share one block, so that a use after free is found
 * wherever it touches them. */
#include "sim/batches.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sim/arena.h"
#include "sim/engine.h"
#include "uvarrow/arrow.h"

#define BATCH_MARK INT64_C(0x6372617465)

/* ---- schemas ------------------------------------------------------------ */

struct label {
    struct ArrowSchema child;
    struct ArrowSchema *children[1];
};

static void label_release_child(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void label_release(struct ArrowSchema *schema)
{
    struct label *label = schema->private_data;

    if (label->child.release != NULL)
        label->child.release(&label->child);
    schema->release = NULL;
    arena_free(label);
}

void batches_schema(struct ArrowSchema *out)
{
    struct label *label = arena_new(sizeof(*label), "a schema");

    label->children[0] = &label->child;
    label->child = (struct ArrowSchema){
        .format = "l", .name = "n", .release = label_release_child};
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = label->children,
                                .release = label_release,
                                .private_data = label};
}

void batches_check_schema(const struct ArrowSchema *schema)
{
    if (schema == NULL || schema->release == NULL ||
        strcmp(schema->format, "+s") != 0 || schema->n_children != 1 ||
        strcmp(schema->children[0]->format, "l") != 0)
        sim_fail("a schema is not what it was");
}

/* ---- batches ------------------------------------------------------------ */

struct batch_block {
    struct ArrowArray child; /* first */
    struct ArrowArray *children[1];
    const void *struct_buffers[1];
    const void *child_buffers[2];
    int64_t values[3]; /* ordinal, maps passed, mark */
    void (*release_event)(void *event);
    void *event; /* owns: its event; or NULL */
};

static void batches_release_child(struct ArrowArray *array)
{
    array->release = NULL;
}

static void batches_release(struct ArrowArray *array)
{
    struct batch_block *batch_block = array->private_data;

    if (batch_block->child.release != NULL)
        batch_block->child.release(&batch_block->child);
    array->release = NULL;
    if (batch_block->release_event != NULL)
        batch_block->release_event(batch_block->event);
    arena_free(batch_block);
}

void batches_batch(int64_t ordinal, int64_t hops, struct ArrowArray *out)
{
    struct batch_block *batch_block =
        arena_new(sizeof(*batch_block), "a batch");

    batch_block->values[0] = ordinal;
    batch_block->values[1] = hops;
    batch_block->values[2] = BATCH_MARK;
    batch_block->children[0] = &batch_block->child;
    batch_block->child_buffers[1] = batch_block->values;
    batch_block->child =
        (struct ArrowArray){.length = 3,
                            .n_buffers = 2,
                            .buffers = batch_block->child_buffers,
                            .release = batches_release_child};
    *out = (struct ArrowArray){.length = 3,
                               .n_buffers = 1,
                               .n_children = 1,
                               .buffers = batch_block->struct_buffers,
                               .children = batch_block->children,
                               .release = batches_release,
                               .private_data = batch_block};
}

void batches_device_batch(int64_t ordinal, int64_t hops,
                          struct ArrowDeviceArray *out)
{
    struct ArrowArray plain;

    batches_batch(ordinal, hops, &plain);
    uva_array_from_cpu(&plain, out);
}

/* Finds the batch by its column, because its private_data may be replaced by
 * now, and its structs be those of a shared array. */
static struct batch_block *batches_of(const struct ArrowArray *batch)
{
    const uintptr_t values = (uintptr_t)batch->children[0]->buffers[1];

    return (struct batch_block *)(values -
                                  offsetof(struct batch_block, values));
}

void batches_keep(struct ArrowDeviceArray *batch, void *event,
                  void (*release_event)(void *event))
{
    struct batch_block *batch_block = batches_of(&batch->array);

    batch_block->event = event;
    batch_block->release_event = release_event;
    batch->device_type = ARROW_DEVICE_EXT_DEV;
    batch->device_id = 0;
    batch->sync_event = event;
}

void *batches_event(const struct ArrowArray *batch)
{
    return batches_of(batch)->event;
}

static const int64_t *batches_values(const struct ArrowArray *batch)
{
    const int64_t *values;

    if (batch->release == NULL || batch->n_children != 1)
        sim_fail("a batch is not live");
    values = batch->children[0]->buffers[1];
    if (values[2] != BATCH_MARK)
        sim_fail("a batch is not what it was");
    return values;
}

int64_t batches_ordinal(const struct ArrowArray *batch)
{
    return batches_values(batch)[0];
}

int64_t batches_hops(const struct ArrowArray *batch)
{
    return batches_values(batch)[1];
}

/* Finds the values by the buffers, because the private_data may be replaced by
 * now. */
void batches_add_hop(struct ArrowArray *batch)
{
    ((int64_t *)(uintptr_t)batches_values(batch))[1]++;
}
