/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of several kinds, with the creation of the first thread failing, then
 * of the second, and so on: each time a start reports ENOMEM, or the streams
 * complete. Then with the system creating no thread for a while. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "support/check_suite.h"
#include "support/fake_source.h"
#include "support/faulty_allocator.h"
#include "uvarrow/uvarrow.h"

enum { BATCHES = 20, FAILURES_MAX = 100, STREAMS = 4 };

/* ---- the system --------------------------------------------------------- */

static atomic_int fail_from, fail_count; /* creations that fail */
static atomic_int created, failed;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *ctx);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *ctx);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *ctx)
{
    const int n = atomic_fetch_add(&created, 1) - atomic_load(&fail_from);

    if (n < 0 || n >= atomic_load(&fail_count))
        return __real_pthread_create(thread, how, run, ctx);
    failed++;
    return EAGAIN;
}

/* ---- streams ------------------------------------------------------------ */

struct query {
    sem_t done;
    bool started;
    enum uva_end end;
    int64_t batches;
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)batch;
    ((struct query *)ctx)->batches++;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct query *query = ctx;

    query->end = outcome->end;
    sem_post(&query->done);
}

/* Takes the stream. */
static void start(struct query *query, struct uva_stream *stream)
{
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = query};
    struct uva_error error = {0};
    const int code = uva_stream_for_each(stream, &consumer, &error);

    query->started = code == 0;
    ck_assert_msg(code == 0 || code == ENOMEM, "%s", error.message);
    uva_stream_release(stream);
}

static void await(struct query *query)
{
    if (!query->started)
        return;
    while (sem_wait(&query->done) != 0)
        ;
    ck_assert_int_eq(query->end, UVA_END_COMPLETE);
    ck_assert_int_eq(query->batches, BATCHES);
}

static struct uva_stream *plain(struct uva_runtime *runtime,
                                struct fake_source *fake)
{
    struct uva_arrow_source options = fake_source_options(fake);
    struct ArrowArrayStream source;

    options.window.batches = 1;
    fake_source_plain(fake, &source);
    return uva_stream_from_arrow_stream(runtime, &source, &options);
}

/* A stream that is read through another stream of the same runtime. */
static struct uva_stream *nested(struct uva_runtime *runtime,
                                 struct fake_source *fake)
{
    const struct uva_window one = {.batches = 1};
    struct uva_stream *inner = plain(runtime, fake);
    struct ArrowArrayStream source = {0};
    const int code = uva_stream_to_arrow_stream(inner, &one, &source, NULL);

    ck_assert(code == 0 || code == ENOMEM);
    if (code != 0)
        return inner; /* which reports the failure */
    uva_stream_release(inner);
    return uva_stream_from_arrow_stream(
        runtime, &source, &(struct uva_arrow_source){.window = one});
}

static int pass(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static struct uva_stream *mapped(struct uva_runtime *runtime,
                                 struct fake_source *fake)
{
    struct uva_stream *stream = plain(runtime, fake);

    (void)uva_stream_map(stream, &(struct uva_map){.batch = pass});
    return stream;
}

static struct uva_stream *tasks(struct uva_runtime *runtime,
                                struct fake_source *fake)
{
    const struct uva_task_source source = fake_source_tasks(fake);

    return uva_stream_from_tasks(runtime, &source);
}

static struct uva_stream *(*const kinds[STREAMS])(struct uva_runtime *,
                                                  struct fake_source *) = {
    plain, nested, mapped, tasks};

static void run_all(const struct uva_runtime_options *options)
{
    struct fake_source fakes[STREAMS];
    struct query queries[STREAMS] = {0};
    struct uva_runtime *runtime;
    const int code = uva_runtime_open(NULL, options, &runtime, NULL);

    ck_assert(code == 0 || code == ENOMEM);
    for (int i = 0; i < STREAMS && code == 0; i++) {
        fake_source_init(&fakes[i], BATCHES);
        sem_init(&queries[i].done, 0, 0);
        start(&queries[i], kinds[i](runtime, &fakes[i]));
    }
    for (int i = 0; i < STREAMS && code == 0; i++)
        await(&queries[i]);
    if (code == 0)
        ck_assert_int_eq(uva_runtime_join(runtime, UVA_FOREVER), 0);
    for (int i = 0; i < STREAMS && code == 0; i++) {
        while (atomic_load(&fakes[i].freed) == 0)
            sched_yield();
        fake_source_fini(&fakes[i]);
    }
}

/* ---- the tests ---------------------------------------------------------- */

static void sweep(int count)
{
    struct faulty_allocator memory;
    struct uva_runtime_options options = {0};
    int n = 0;

    do {
        faulty_allocator_init(&memory, 0);
        options.allocator = faulty_allocator_table(&memory);
        created = failed = 0;
        fail_from = n;
        fail_count = count;
        run_all(&options);
        while (faulty_allocator_live(&memory) > 0)
            sched_yield();
        ck_assert_int_lt(++n, FAILURES_MAX);
    } while (failed > 0);
    ck_assert_int_gt(n, 3);
}

START_TEST(every_creation_of_a_thread_may_fail)
{
    sweep(1);
}
END_TEST

START_TEST(several_creations_in_a_row_may_fail)
{
    sweep(5);
}
END_TEST

int main(void)
{
    return suite_main("thread_sweep", NULL, NULL,
                      suite_tests("threads",
                                  every_creation_of_a_thread_may_fail,
                                  several_creations_in_a_row_may_fail, NULL),
                      NULL);
}
