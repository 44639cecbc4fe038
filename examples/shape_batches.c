/* SPDX-License-Identifier: Apache-2.0 */
/* Four stages that change the number of batches. The source has 100 batches of
 * 1,000 numbers. A filter drops every other batch; a transform makes one number
 * of each, the running total; rebatch puts ten of these into a batch; and a
 * limit ends the stream after 25 of them, which stops the source.
 *
 *     $ cc shape_batches.c $(pkg-config --cflags --libs uvarrow libuv)
 *     $ ./a.out
 *     10 totals, the last is 94995000
 *     10 totals, the last is 389990000
 *     5 totals, the last is 612487500
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "uvarrow/uvarrow.h"

enum { BATCHES = 100, ROWS = 1000 };

/* ---- batches of numbers ------------------------------------------------- */

struct numbers {
    const void *buffers[2]; /* no nulls; `values` */
    int64_t values[];
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

/* Gives a batch, and its values to be filled in; NULL without memory. */
static int64_t *numbers_new(int64_t length, struct ArrowDeviceArray *out)
{
    struct numbers *numbers =
        malloc(sizeof(*numbers) + sizeof(int64_t) * (size_t)length);
    struct ArrowArray array = {
        .length = length, .n_buffers = 2, .release = numbers_release};

    if (numbers == NULL)
        return NULL;
    numbers->buffers[0] = NULL;
    numbers->buffers[1] = numbers->values;
    array.buffers = numbers->buffers;
    array.private_data = numbers;
    uva_array_from_cpu(&array, out);
    return numbers->values;
}

static const int64_t *numbers_of(const struct ArrowDeviceArray *batch)
{
    return (const int64_t *)batch->array.buffers[1] + batch->array.offset;
}

/* ---- the stages --------------------------------------------------------- */

static int keep_even(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                     struct uva_error *error)
{
    (void)ctx;
    (void)error;
    if (batch->ordinal % 2 == 0) /* all its rows */
        memset(bits, 0xff, (size_t)(batch->data.array.length + 7) / 8);
    return 0;
}

/* One number out for each batch in; `ctx` is the total so far. A function that
 * emits more than once returns EINPROGRESS when emit returns EAGAIN, and is
 * called again with the batch. */
static int add_up(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                  void *emitter, struct uva_error *error)
{
    const int64_t *values = numbers_of(&in->data);
    struct uva_batch out = {.metadata = NULL};
    int64_t *total = ctx, *value = numbers_new(1, &out.data);
    int code;

    if (value == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a total");
    for (int64_t i = 0; i < in->data.array.length; i++)
        *total += values[i];
    *value = *total;
    code = emit(emitter, &out);
    return code == EAGAIN ? 0 : code; /* the batch is empty */
}

/* ---- the program -------------------------------------------------------- */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const int64_t length = batch->data.array.length;

    (void)ctx;
    printf("%" PRId64 " totals, the last is %" PRId64 "\n", length,
           numbers_of(&batch->data)[length - 1]);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    *(int *)ctx = outcome->error.code;
    if (outcome->error.code != 0)
        fprintf(stderr, "%s\n", outcome->error.message);
}

/* Returns a stream of the numbers from 0 on. */
static struct uva_stream *numbers_stream(struct uva_runtime *rt)
{
    struct ArrowDeviceArray batches[BATCHES];
    struct ArrowSchema schema = {
        .format = "l", /* int64 */ .name = "n", .release = schema_release};
    size_t count = 0;
    int64_t *values;

    while (count < BATCHES &&
           (values = numbers_new(ROWS, &batches[count])) != NULL) {
        for (int64_t i = 0; i < ROWS; i++)
            values[i] = (int64_t)count * ROWS + i;
        count++;
    }
    return uva_stream_from_arrays(rt, &schema, batches, count);
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    int64_t total = 0;
    int outcome = 0, code;
    struct uva_runtime *rt;
    struct uva_stream *s;

    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return 1;
    s = numbers_stream(rt);
    uva_stream_filter(s, &(struct uva_filter){.keep = keep_even});
    uva_stream_transform(
        s, &(struct uva_transform){.batch = add_up, .ctx = &total});
    uva_stream_rebatch(s, &(struct uva_rebatch){.rows = 10});
    uva_stream_limit_rows(s, 25);
    code = uva_stream_for_each(s,
                               &(struct uva_consumer){.on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = &outcome},
                               NULL);
    uva_stream_release(s);
    uv_run(loop, UV_RUN_DEFAULT);

    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    return uv_loop_close(loop) != 0 || code != 0 || outcome != 0;
}
