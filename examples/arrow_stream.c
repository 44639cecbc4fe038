/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps a blocking stream: the batches of an ArrowArrayStream, of a driver or a
 * reader, are delivered on the loop one at a time, and the loop never waits for
 * them. This one reads numbers from a file or a pipe, which may be slow.
 *
 *     $ cc arrow_stream.c $(pkg-config --cflags --libs uvarrow libuv)
 *     $ seq 3000 | ./a.out /dev/stdin
 *     3 batches, 3000 numbers, 4501500 in all
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "uvarrow/uvarrow.h"

#define BATCH_ROWS 1024

/* ---- the blocking stream: a reader of numbers --------------------------- */

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

static int reader_get_schema(struct ArrowArrayStream *self,
                             struct ArrowSchema *out)
{
    (void)self;
    *out = (struct ArrowSchema){
        .format = "l", /* int64 */ .name = "", .release = schema_release};
    return 0;
}

/* Waits until a batch is full or the input ends: fgets() blocks. */
static int reader_get_next(struct ArrowArrayStream *self,
                           struct ArrowArray *out)
{
    struct numbers *numbers = calloc(1, sizeof(*numbers));
    FILE *input = self->private_data;
    int64_t rows = 0;
    char line[64];

    if (numbers == NULL)
        return ENOMEM;
    while (rows < BATCH_ROWS && fgets(line, sizeof(line), input) != NULL)
        numbers->values[rows++] = strtoll(line, NULL, 10);
    if (rows == 0) {
        free(numbers);
        *out = (struct ArrowArray){0}; /* the end */
        return 0;
    }
    numbers->buffers[1] = numbers->values;
    *out = (struct ArrowArray){.length = rows,
                               .n_buffers = 2,
                               .buffers = numbers->buffers,
                               .release = numbers_release,
                               .private_data = numbers};
    return 0;
}

static const char *reader_get_last_error(struct ArrowArrayStream *self)
{
    (void)self;
    return NULL;
}

static void reader_release(struct ArrowArrayStream *self)
{
    (void)fclose(self->private_data);
    self->release = NULL;
}

/* ---- the program -------------------------------------------------------- */

struct total {
    int64_t rows, sum;
    int code; /* code of the outcome */
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *array = &batch->data.array;
    const int64_t *values = (const int64_t *)array->buffers[1] + array->offset;
    struct total *total = ctx;

    for (int64_t i = 0; i < array->length; i++)
        total->sum += values[i];
    total->rows += array->length;
    return 0; /* the batch is released for us */
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct total *total = ctx;

    total->code = outcome->error.code;
    if (total->code != 0)
        fprintf(stderr, "%s\n", outcome->error.message);
    else
        printf("%" PRId64 " batches, %" PRId64 " numbers, %" PRId64 " in all\n",
               outcome->batches, total->rows, total->sum);
}

/* Takes `input`. */
static int start(struct uva_runtime *rt, FILE *input, struct total *total)
{
    struct ArrowArrayStream reader = {.get_schema = reader_get_schema,
                                      .get_next = reader_get_next,
                                      .get_last_error = reader_get_last_error,
                                      .release = reader_release,
                                      .private_data = input};
    struct uva_stream *s = uva_stream_from_arrow_stream(rt, &reader, NULL);
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = total};
    struct uva_error error;
    const int code = uva_stream_for_each(s, &consumer, &error);

    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(s); /* it runs to its end */
    return code;
}

int main(int argc, char **argv)
{
    FILE *input = argc == 2 ? fopen(argv[1], "r") : NULL;
    uv_loop_t *loop = uv_default_loop();
    struct total total = {0};
    struct uva_runtime *rt;

    if (input == NULL) {
        fprintf(stderr, "usage: %s FILE, of numbers\n", argv[0]);
        return 2;
    }
    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0 ||
        start(rt, input, &total) != 0)
        return 1;
    uv_run(loop, UV_RUN_DEFAULT); /* until the stream has ended */

    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    return uv_loop_close(loop) != 0 || total.code != 0;
}
