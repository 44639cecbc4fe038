/* SPDX-License-Identifier: Apache-2.0 */
/* Everything but the struct is static and shared: a batch costs one struct. */
#include "batch.h"

#include "suite.h"

/* ---- arrays ------------------------------------------------------------- */

/* The memory is shared by all batches, so a release frees no memory. */
static void column_release(struct ArrowArray *array)
{
    (void)array;
}

static int64_t values[BATCH_ROWS + BATCH_COLUMNS];
static const void *column_buffers[2] = {NULL, values};
static const void *batch_buffers[1] = {NULL};

#define COLUMN(k)                                                              \
    {                                                                          \
        .length = BATCH_ROWS, .offset = (k), .n_buffers = 2,                   \
        .buffers = column_buffers, .release = column_release                   \
    }
#define COLUMNS(k) COLUMN(k), COLUMN((k) + 1), COLUMN((k) + 2), COLUMN((k) + 3)
static struct ArrowArray columns[BATCH_COLUMNS] = {COLUMNS(0), COLUMNS(4),
                                                   COLUMNS(8), COLUMNS(12)};

#define POINTERS(k)                                                            \
    &columns[(k)], &columns[(k) + 1], &columns[(k) + 2], &columns[(k) + 3]
static struct ArrowArray *children[BATCH_COLUMNS] = {POINTERS(0), POINTERS(4),
                                                     POINTERS(8), POINTERS(12)};

static void batch_release(struct ArrowArray *array)
{
    array->release = NULL;
}

void batch_fill(struct ArrowDeviceArray *out, int64_t i)
{
    memset(out, 0, sizeof(*out));
    out->array.length = BATCH_ROWS;
    out->array.n_buffers = 1;
    out->array.buffers = batch_buffers;
    out->array.n_children = 1;
    out->array.children = &children[i & (BATCH_COLUMNS - 1)];
    out->array.release = batch_release;
    out->device_id = -1;
    out->device_type = ARROW_DEVICE_CPU;
}

/* ---- schema ------------------------------------------------------------- */

static void field_release(struct ArrowSchema *schema)
{
    (void)schema;
}

static struct ArrowSchema field = {
    .format = "l", .name = "n", .release = field_release};
static struct ArrowSchema *fields[1] = {&field};

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

void batch_schema(struct ArrowSchema *out)
{
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = fields,
                                .release = schema_release};
}

/* ---- the stream --------------------------------------------------------- */

static int input_get_schema(struct ArrowDeviceArrayStream *self,
                            struct ArrowSchema *out)
{
    (void)self;
    batch_schema(out);
    return 0;
}

static int input_get_next(struct ArrowDeviceArrayStream *self,
                          struct ArrowDeviceArray *out)
{
    struct input *input = self->private_data;

    if (input->next == input->count)
        out->array.release = NULL;
    else
        batch_fill(out, input->next++);
    return 0;
}

static const char *input_get_last_error(struct ArrowDeviceArrayStream *self)
{
    (void)self;
    return NULL;
}

static void input_release(struct ArrowDeviceArrayStream *self)
{
    self->release = NULL;
}

void input_init(struct input *input, int64_t count)
{
    *input = (struct input){.abi = {.device_type = ARROW_DEVICE_CPU,
                                    .get_schema = input_get_schema,
                                    .get_next = input_get_next,
                                    .get_last_error = input_get_last_error,
                                    .release = input_release,
                                    .private_data = input},
                            .count = count};
}

/* ---- the consumer ------------------------------------------------------- */

void tally_check(const struct tally *tally, int64_t count)
{
    bench_check(tally->seen == count, "number of batches");
    bench_check(tally->wrong == 0, "a batch, or its place");
}
