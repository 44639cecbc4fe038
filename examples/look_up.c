/* SPDX-License-Identifier: Apache-2.0 */
/* A look-up for each batch: keys come in, and prices go on. A look-up takes a
 * while, so begin() only queues it on libuv's pool of threads; three are under
 * way at once, and a thread of the pool gives each result. The results are
 * passed on in order, whichever comes first.
 *
 *     $ cc look_up.c $(pkg-config --cflags --libs uvarrow libuv)
 *     $ ./a.out
 *     the prices of 4 keys from 0 on: 0 1 4 9
 *     the prices of 4 keys from 4 on: 16 25 36 49
 *     the prices of 4 keys from 8 on: 64 81 100 121
 *     the prices of 4 keys from 12 on: 144 169 196 225
 *     the prices of 4 keys from 16 on: 256 289 324 361
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "uvarrow/uvarrow.h"

enum { BATCHES = 5, ROWS = 4 };

/* ---- batches of numbers ------------------------------------------------- */

struct numbers {
    const void *buffers[2]; /* no nulls; `values` */
    int64_t values[ROWS];
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
static int64_t *numbers_new(struct ArrowDeviceArray *out)
{
    struct numbers *numbers = calloc(1, sizeof(*numbers));
    struct ArrowArray array = {
        .length = ROWS, .n_buffers = 2, .release = numbers_release};

    if (numbers == NULL)
        return NULL;
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

/* ---- the stage ---------------------------------------------------------- */

struct look_up {
    uv_work_t work;
    struct uva_reply *reply;
    struct ArrowDeviceArray keys;
};

/* On a thread of the pool: asks the service, and gives the prices. Later keys
 * have faster answers. */
static void look_up_run(uv_work_t *work)
{
    struct look_up *look_up = work->data;
    const int64_t *keys = numbers_of(&look_up->keys);
    struct ArrowDeviceArray out;
    int64_t *prices = numbers_new(&out);
    struct uva_error error;

    if (prices == NULL) {
        (void)uva_error_set(&error, ENOMEM, "no memory for prices");
        uva_reply_give(look_up->reply, NULL, &error);
        return;
    }
    (void)usleep((useconds_t)(BATCHES * ROWS - keys[0]) * 1000);
    for (int i = 0; i < ROWS; i++)
        prices[i] = keys[i] * keys[i];
    uva_reply_give(look_up->reply, &out, NULL);
}

static void look_up_free(uv_work_t *work, int status)
{
    struct look_up *look_up = work->data;

    (void)status; /* it is never cancelled */
    uva_array_release(&look_up->keys);
    free(look_up);
}

/* On the loop thread. To keep the batch, it is moved. */
static int begin(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    struct look_up *look_up = malloc(sizeof(*look_up));

    if (look_up == NULL)
        return ENOMEM;
    look_up->work.data = look_up;
    look_up->reply = reply;
    uva_array_move(&in->data, &look_up->keys);
    return uv_queue_work(ctx, &look_up->work, look_up_run, look_up_free);
}

/* ---- the program -------------------------------------------------------- */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const int64_t *prices = numbers_of(&batch->data);

    (void)ctx;
    printf("the prices of %d keys from %" PRId64 " on:", ROWS,
           batch->ordinal * ROWS);
    for (int i = 0; i < ROWS; i++)
        printf(" %" PRId64, prices[i]);
    printf("\n");
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    *(int *)ctx = outcome->error.code;
    if (outcome->error.code != 0)
        fprintf(stderr, "%s\n", outcome->error.message);
}

/* Returns a stream of the numbers from 0 on. */
static struct uva_stream *keys_stream(struct uva_runtime *rt)
{
    struct ArrowDeviceArray batches[BATCHES];
    struct ArrowSchema schema = {
        .format = "l", /* int64 */ .name = "n", .release = schema_release};
    size_t count = 0;
    int64_t *keys;

    while (count < BATCHES && (keys = numbers_new(&batches[count])) != NULL) {
        for (int i = 0; i < ROWS; i++)
            keys[i] = (int64_t)count * ROWS + i;
        count++;
    }
    return uva_stream_from_arrays(rt, &schema, batches, count);
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    int outcome = 0, code;
    struct uva_runtime *rt;
    struct uva_stream *s;

    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return 1;
    s = keys_stream(rt);
    uva_stream_map_async(
        s, &(struct uva_async_map){.begin = begin, .ctx = loop, .at_once = 3});
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
