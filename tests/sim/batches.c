/* SPDX-License-Identifier: Apache-2.0 */
/* A batch and its column share one block, so that a use after free is found
 * wherever it touches them. */
#include "sim/batches.h"

#include <string.h>

#include "sim/arena.h"
#include "sim/engine.h"
#include "uvarrow/arrow.h"

#define CRATE_MARK INT64_C(0x6372617465)

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

struct crate {
    struct ArrowArray child; /* first */
    struct ArrowArray *children[1];
    const void *struct_buffers[1];
    const void *child_buffers[2];
    int64_t values[3]; /* ordinal, maps passed, mark */
    void (*let_go)(void *event);
    void *event; /* owns: its event; or NULL */
};

static void batches_release_child(struct ArrowArray *array)
{
    array->release = NULL;
}

static void batches_release(struct ArrowArray *array)
{
    struct crate *crate = array->private_data;

    if (crate->child.release != NULL)
        crate->child.release(&crate->child);
    array->release = NULL;
    if (crate->let_go != NULL)
        crate->let_go(crate->event);
    arena_free(crate);
}

void batches_batch(int64_t ordinal, int64_t hops, struct ArrowArray *out)
{
    struct crate *crate = arena_new(sizeof(*crate), "a batch");

    crate->values[0] = ordinal;
    crate->values[1] = hops;
    crate->values[2] = CRATE_MARK;
    crate->children[0] = &crate->child;
    crate->child_buffers[1] = crate->values;
    crate->child = (struct ArrowArray){.length = 3,
                                       .n_buffers = 2,
                                       .buffers = crate->child_buffers,
                                       .release = batches_release_child};
    *out = (struct ArrowArray){.length = 3,
                               .n_buffers = 1,
                               .n_children = 1,
                               .buffers = crate->struct_buffers,
                               .children = crate->children,
                               .release = batches_release,
                               .private_data = crate};
}

void batches_device_batch(int64_t ordinal, int64_t hops,
                          struct ArrowDeviceArray *out)
{
    struct ArrowArray plain;

    batches_batch(ordinal, hops, &plain);
    uva_array_from_cpu(&plain, out);
}

/* Finds the batch by its child, because its private_data may be replaced by
 * now. */
static struct crate *batches_of(const struct ArrowArray *batch)
{
    return (struct crate *)(void *)batch->children[0];
}

void batches_keep(struct ArrowDeviceArray *batch, void *event,
                  void (*let_go)(void *event))
{
    struct crate *crate = batches_of(&batch->array);

    crate->event = event;
    crate->let_go = let_go;
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
    if (values[2] != CRATE_MARK)
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
