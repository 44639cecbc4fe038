/* SPDX-License-Identifier: Apache-2.0 */
/* Embeds the runtime in a loop other than libuv's, by one file descriptor: a
 * plain epoll loop that also runs a timer of the program. For the runtime, the
 * loop only calls turn when the descriptor is readable; the runtime's timers
 * and threads make it readable.
 *
 *     $ cc host_epoll.c $(pkg-config --cflags --libs uvarrow)
 *     $ ./a.out
 *     100 batches, 100000 numbers, 4999950000 in all
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "uvarrow/uvarrow.h"

#define BATCHES    100
#define BATCH_ROWS 1000

/* ---- a source: numbers from 0, made on workers -------------------------- */

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

static int count_schema(void *ctx, struct ArrowSchema *out,
                        struct uva_error *error)
{
    (void)ctx;
    (void)error;
    *out = (struct ArrowSchema){
        .format = "l", /* int64 */ .name = "", .release = schema_release};
    return 0;
}

static int count_next(void *ctx, void **item, const char **metadata,
                      struct uva_error *error)
{
    int64_t *next = ctx;
    struct numbers *numbers;

    (void)metadata;
    if (*next == BATCHES * BATCH_ROWS)
        return 0; /* no item: the end */
    numbers = calloc(1, sizeof(*numbers));
    if (numbers == NULL)
        return uva_error_set(error, ENOMEM, "no memory for numbers");
    numbers->values[0] = *next;
    *next += BATCH_ROWS;
    *item = numbers;
    return 0;
}

static int count_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                         struct uva_error *error)
{
    struct numbers *numbers = item;
    struct ArrowArray array = {.length = BATCH_ROWS,
                               .n_buffers = 2,
                               .buffers = numbers->buffers,
                               .release = numbers_release,
                               .private_data = numbers};

    (void)ctx;
    (void)error;
    if (out == NULL) { /* the data is not wanted */
        free(numbers);
        return 0;
    }
    for (int64_t i = 1; i < BATCH_ROWS; i++)
        numbers->values[i] = numbers->values[0] + i;
    numbers->buffers[1] = numbers->values;
    uva_array_from_cpu(&array, out);
    return 0;
}

/* ---- the stream --------------------------------------------------------- */

struct app {
    struct uva_runtime *rt;
    int64_t rows, sum;
    int code; /* code of the outcome */
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *array = &batch->data.array;
    const int64_t *values = (const int64_t *)array->buffers[1] + array->offset;
    struct app *app = ctx;

    for (int64_t i = 0; i < array->length; i++)
        app->sum += values[i];
    app->rows += array->length;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct app *app = ctx;

    app->code = outcome->error.code;
    if (app->code != 0)
        fprintf(stderr, "%s\n", outcome->error.message);
    else
        printf("%" PRId64 " batches, %" PRId64 " numbers, %" PRId64 " in all\n",
               outcome->batches, app->rows, app->sum);
    uva_runtime_close(app->rt, 0, NULL, NULL);
}

/* ---- the loop ----------------------------------------------------------- */

/* Makes `epoll` report `fd` as `name`. */
static int watch(int epoll, int fd, int name)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = name};

    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* Runs until the runtime has closed, when turn returns false. */
static void run(int epoll, int timer, struct uva_runtime *rt)
{
    struct epoll_event event;
    uint64_t times;

    for (;;) {
        if (epoll_wait(epoll, &event, 1, -1) != 1)
            continue;
        if (event.data.fd == timer)
            (void)!read(timer, &times, sizeof(times)); /* our own work */
        else if (!uva_runtime_turn(rt))
            return;
    }
}

int main(void)
{
    const struct itimerspec every_ms = {{0, 1000000}, {0, 1000000}};
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct app app = {0};
    int64_t next = 0;
    struct uva_stream *s;

    if (uva_runtime_open_turned(NULL, NULL, NULL, &app.rt, NULL) != 0)
        return 1;
    s = uva_stream_from_tasks(
        app.rt, &(struct uva_task_source){.schema = count_schema,
                                          .next = count_next,
                                          .extract = count_extract,
                                          .ctx = &next});
    if (uva_stream_for_each(s,
                            &(struct uva_consumer){.on_batch = on_batch,
                                                   .on_done = on_done,
                                                   .ctx = &app},
                            NULL) != 0)
        return 1;
    uva_stream_release(s);

    if (timerfd_settime(timer, 0, &every_ms, NULL) != 0 ||
        watch(epoll, timer, timer) != 0 ||
        watch(epoll, uva_runtime_fd(app.rt), -1) != 0)
        return 1;
    run(epoll, timer, app.rt);
    (void)close(timer);
    (void)close(epoll);
    return app.code != 0;
}
