/* SPDX-License-Identifier: Apache-2.0 */
/* Handles one batch at a time, so that its parts can be static. */
#include "hop.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 1024 };

static int64_t values[ROWS];

/* ---- the batch ---------------------------------------------------------- */

static void column_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void batch_release(struct ArrowArray *array)
{
    array->children[0]->release(array->children[0]);
    array->release = NULL;
}

static const void *column_buffers[2] = {NULL, values};
static const void *batch_buffers[1] = {NULL};
static struct ArrowArray column;
static struct ArrowArray *columns[1] = {&column};

/* Only one batch exists at a time, so its parts can be static. */
static int batch_extract(struct ArrowAsyncTask *task,
                         struct ArrowDeviceArray *out)
{
    (void)task;
    if (out == NULL)
        return 0;
    column = (struct ArrowArray){.length = ROWS,
                                 .n_buffers = 2,
                                 .buffers = column_buffers,
                                 .release = column_release};
    memset(out, 0, sizeof(*out));
    out->array = (struct ArrowArray){.length = ROWS,
                                     .n_buffers = 1,
                                     .buffers = batch_buffers,
                                     .n_children = 1,
                                     .children = columns,
                                     .release = batch_release};
    out->device_id = -1;
    out->device_type = ARROW_DEVICE_CPU;
    return 0;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void batch_schema_release(struct ArrowSchema *schema)
{
    schema->children[0]->release(schema->children[0]);
    schema->release = NULL;
}

static struct ArrowSchema field;
static struct ArrowSchema *fields[1] = {&field};

static void batch_schema(struct ArrowSchema *out)
{
    field = (struct ArrowSchema){
        .format = "l", .name = "n", .release = schema_release};
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = fields,
                                .release = batch_schema_release};
}

/* ---- the producer ------------------------------------------------------- */

struct source {
    struct ArrowAsyncProducer abi; /* first */
    int64_t demand;
};

static void source_request(struct ArrowAsyncProducer *self, int64_t n)
{
    ((struct source *)self)->demand += n;
}

static void source_cancel(struct ArrowAsyncProducer *self)
{
    ((struct source *)self)->demand = 0;
}

void hop_run(struct ArrowAsyncDeviceStreamHandler *handler, int64_t n)
{
    struct source source = {.abi = {.device_type = ARROW_DEVICE_CPU,
                                    .request = source_request,
                                    .cancel = source_cancel}};
    struct ArrowSchema schema;
    struct ArrowAsyncTask task;

    batch_schema(&schema);
    handler->producer = &source.abi;
    if (handler->on_schema(handler, &schema) != 0)
        abort();
    for (int64_t i = 0; i < n; i++) {
        if (source.demand-- <= 0)
            abort();
        task = (struct ArrowAsyncTask){.extract_data = batch_extract};
        if (handler->on_next_task(handler, &task, NULL) != 0)
            abort();
    }
    if (handler->on_next_task(handler, NULL, NULL) != 0)
        abort();
    handler->release(handler);
}

/* ---- the handler -------------------------------------------------------- */

static int hop_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                         struct ArrowSchema *schema)
{
    schema->release(schema);
    self->producer->request(self->producer,
                            ((struct hop *)self->private_data)->first);
    return 0;
}

static int hop_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                            struct ArrowAsyncTask *task, const char *metadata)
{
    struct hop *hop = self->private_data;
    struct ArrowDeviceArray array;

    (void)metadata;
    if (task == NULL)
        return 0;
    if (task->extract_data(task, &array) != 0)
        abort();
    array.array.release(&array.array);
    hop->taken++;
    self->producer->request(self->producer, hop->each);
    return 0;
}

static void hop_on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                         const char *message, const char *metadata)
{
    (void)self;
    (void)code;
    (void)message;
    (void)metadata;
    abort();
}

static void hop_on_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    self->release = NULL;
}

void hop_init(struct hop *hop, int64_t first, int64_t each)
{
    *hop = (struct hop){.first = first, .each = each};
    hop->handler.on_schema = hop_on_schema;
    hop->handler.on_next_task = hop_on_next_task;
    hop->handler.on_error = hop_on_error;
    hop->handler.release = hop_on_release;
    hop->handler.private_data = hop;
}
