/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: schema, request, each task extracted at once, the end.
 * Failures: any failure aborts. */
#include "taker.h"

#include "uvarrow/arrow.h"

static int taker_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                           struct ArrowSchema *schema)
{
    schema->release(schema);
    self->producer->request(self->producer, ((struct taker *)self)->window);
    return 0;
}

static int taker_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                              struct ArrowAsyncTask *task, const char *metadata)
{
    struct taker *taker = (struct taker *)self;
    struct ArrowDeviceArray array;

    (void)metadata;
    if (task == NULL)
        return 0;
    bench_check(uva_task_extract(task, &array) == 0, "extract");
    tally_take(&taker->tally, &array.array);
    array.array.release(&array.array);
    if (++taker->taken * 2 >= taker->window) {
        self->producer->request(self->producer, taker->taken);
        taker->taken = 0;
    }
    return 0;
}

static void taker_on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                           const char *message, const char *metadata)
{
    (void)self;
    (void)code;
    (void)metadata;
    bench_check(false, message);
}

static void taker_on_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    self->release = NULL;
}

void taker_init(struct taker *taker, int64_t window)
{
    *taker = (struct taker){.abi = {.on_schema = taker_on_schema,
                                    .on_next_task = taker_on_next_task,
                                    .on_error = taker_on_error,
                                    .release = taker_on_release},
                            .window = window};
}

/* Takes the stream; returns when it was done. */
static double taker_run_once(struct taker *taker, struct host *host,
                             struct uva_stream *stream, int64_t window)
{
    const struct uva_drive drive = {.on_done = host_on_done, .ctx = host};
    double ended;

    taker_init(taker, window);
    host->open = 1;
    bench_check(uva_stream_drive(stream, &taker->abi, &drive, NULL) == 0,
                "drive");
    ended = host_run(host);
    uva_stream_release(stream);
    return ended;
}

/* Takes `batches` of them in streams that follow each other. The clock is read
 * before and after each stream; if the making counts, once before the first and
 * once after the last. */
static double taker_run_all(const struct bench_case *self,
                            const struct bench_how *how, taker_make_fn *make,
                            bool made)
{
    struct taker taker;
    struct host host;
    double took = 0, first, begun, ended = 0;

    host_open(&host, how, 0);
    first = bench_now_ns(how);
    for (int64_t left = how->batches; left > 0; left -= TAKER_AT_ONCE) {
        const int64_t count = left < TAKER_AT_ONCE ? left : TAKER_AT_ONCE;
        struct uva_stream *stream = make(&host, self, count);

        begun = made ? 0 : bench_now_ns(how);
        ended = taker_run_once(&taker, &host, stream, self->window);
        took += ended - begun;
        tally_check(&taker.tally, count);
    }
    host_close(&host);
    return made ? ended - first : took;
}

double taker_run(const struct bench_case *self, const struct bench_how *how,
                 taker_make_fn *make)
{
    return taker_run_all(self, how, make, false);
}

double taker_run_made(const struct bench_case *self,
                      const struct bench_how *how, taker_make_fn *make)
{
    return taker_run_all(self, how, make, true);
}
