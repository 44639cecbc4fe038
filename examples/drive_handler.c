/* SPDX-License-Identifier: Apache-2.0 */
/* Drives a foreign handler: any ArrowAsyncDeviceStreamHandler, of any library
 * in any language. The handler below is written by hand and does not use
 * uvarrow. It keeps three requests open, and extracts every task.
 *
 *     $ cc drive_handler.c $(pkg-config --cflags --libs uvarrow libuv)
 *     $ ./a.out
 *     their handler: schema of format l
 *     their handler: 10 batches, 10000 numbers, 49995000 in all
 *     our stream: complete, 10 batches
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "uvarrow/uvarrow.h"

#define BATCHES    10
#define BATCH_ROWS 1000

/* ---- theirs: a handler -------------------------------------------------- */

struct theirs {
    struct ArrowAsyncDeviceStreamHandler handler;
    int64_t batches, rows, sum;
};

static int their_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                           struct ArrowSchema *schema)
{
    printf("their handler: schema of format %s\n", schema->format);
    schema->release(schema); /* the callee owns the schema */
    self->producer->request(self->producer, 3);
    return 0;
}

static int their_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                              struct ArrowAsyncTask *task, const char *metadata)
{
    struct theirs *theirs = self->private_data;
    struct ArrowDeviceArray batch = {0};
    const int64_t *values;
    int code;

    (void)metadata;
    if (task == NULL) { /* the end */
        printf("their handler: %" PRId64 " batches, %" PRId64
               " numbers, %" PRId64 " in all\n",
               theirs->batches, theirs->rows, theirs->sum);
        return 0;
    }
    code = task->extract_data(task, &batch);
    if (code != 0)
        return code;
    values = (const int64_t *)batch.array.buffers[1] + batch.array.offset;
    for (int64_t i = 0; i < batch.array.length; i++)
        theirs->sum += values[i];
    theirs->rows += batch.array.length;
    theirs->batches++;
    batch.array.release(&batch.array);
    self->producer->request(self->producer, 1); /* one more batch after this */
    return 0;
}

static void their_on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                           const char *message, const char *metadata)
{
    (void)self;
    (void)metadata;
    fprintf(stderr, "their handler: error %d, %s\n", code,
            message != NULL ? message : "no reason");
}

static void their_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    self->release = NULL; /* the last call; a handler on the heap is freed */
}

/* ---- ours: the data, and the stream ------------------------------------- */

struct numbers {
    const void *buffers[2]; /* no nulls; `values` */
    int64_t values[BATCH_ROWS];
};

static void numbers_release(struct ArrowArray *array)
{
    free(array->private_data);
    array->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL; /* no memory to free */
}

static int numbers_make(int64_t first, struct ArrowDeviceArray *out)
{
    struct numbers *numbers = calloc(1, sizeof(*numbers));
    struct ArrowArray array = {.length = BATCH_ROWS,
                               .n_buffers = 2,
                               .release = numbers_release,
                               .private_data = numbers};

    if (numbers == NULL)
        return ENOMEM;
    for (int64_t i = 0; i < BATCH_ROWS; i++)
        numbers->values[i] = first + i;
    numbers->buffers[1] = numbers->values;
    array.buffers = numbers->buffers;
    uva_array_from_cpu(&array, out);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    *(int *)ctx = outcome->error.code;
    printf("our stream: %s, %" PRId64 " batches\n",
           outcome->error.code != 0 ? outcome->error.message : "complete",
           outcome->batches);
}

/* The asynchronous call of a driver: it receives a handler. */
static int answer(struct uva_runtime *rt,
                  struct ArrowAsyncDeviceStreamHandler *handler, int *ended)
{
    struct ArrowSchema schema = {
        .format = "l", /* int64 */ .name = "", .release = schema_release};
    struct ArrowDeviceArray batches[BATCHES] = {0};
    struct uva_stream *s;
    int code;

    for (int64_t i = 0; i < BATCHES; i++) {
        if (numbers_make(i * BATCH_ROWS, &batches[i]) != 0)
            abort();
    }
    s = uva_stream_from_arrays(rt, &schema, batches, BATCHES);
    code = uva_stream_drive(
        s, handler, &(struct uva_drive){.on_done = on_done, .ctx = ended},
        NULL);
    uva_stream_release(s);
    return code;
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    struct theirs theirs = {.handler = {.on_schema = their_on_schema,
                                        .on_next_task = their_on_next_task,
                                        .on_error = their_on_error,
                                        .release = their_release,
                                        .private_data = &theirs}};
    struct uva_runtime *rt;
    int code = 0;

    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0 ||
        answer(rt, &theirs.handler, &code) != 0)
        return 1;
    uv_run(loop, UV_RUN_DEFAULT);

    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    return uv_loop_close(loop) != 0 || code != 0 ||
           theirs.handler.release != NULL;
}
