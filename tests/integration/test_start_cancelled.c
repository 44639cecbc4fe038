/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that ends, and is released by its last holder, while the call that
 * starts it is still in progress on another thread. The test replaces
 * uva__rt_wake() at link time, as it is the last that such a call does: there
 * the thread waits until the stream is over. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "loop/rt.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/recording_handler.h"

static struct fixture f;
static _Thread_local bool starts; /* this thread starts the stream */
static sem_t reached;             /* the start has reached its last step ... */
static sem_t let_on;              /* ... and may make it */
static int done;                  /* calls of on_done */

bool __real_uva__rt_wake(struct uva__rt *rt, struct uva__wakeup *wakeup);
bool __wrap_uva__rt_wake(struct uva__rt *rt, struct uva__wakeup *wakeup);
bool __wrap_uva__rt_wake(struct uva__rt *rt, struct uva__wakeup *wakeup)
{
    if (starts) {
        starts = false;
        (void)sem_post(&reached);
        while (sem_wait(&let_on) != 0)
            continue;
    }
    return __real_uva__rt_wake(rt, wakeup);
}

/* ---- ways to start ------------------------------------------------------ */

/* The last holder releases the stream in its last callback. */
static void end(void)
{
    done++;
    uva_stream_release(f.stream);
    f.stream = NULL;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    ck_abort_msg("a batch of a stream that was cancelled before it began");
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    ck_assert_int_eq(outcome->end, UVA_END_CANCELLED);
    end();
}

static int start_for_each(void)
{
    const struct uva_consumer table = {.on_batch = on_batch,
                                       .on_done = on_done};

    return uva_stream_for_each(f.stream, &table, NULL);
}

/* A stream that is taken from has no last callback. */
static bool is_taken(void)
{
    struct uva_outcome outcome;
    struct uva_batch batch;

    return uva_stream_take(f.stream, &batch, &outcome) != EAGAIN;
}

static int start_take(void)
{
    return uva_stream_start_take(f.stream, NULL, NULL, NULL, NULL);
}

static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t count,
                         const struct uva_outcome *outcome)
{
    (void)info;
    (void)batches;
    ck_assert_uint_eq(count, 0);
    on_done(ctx, outcome);
}

static int start_collect(void)
{
    return uva_stream_collect(f.stream, 0, on_collected, NULL, NULL);
}

static struct recording_handler handler;

static int start_drive(void)
{
    return uva_stream_drive(f.stream, &handler.handler,
                            &(struct uva_drive){.on_done = on_done}, NULL);
}

static int start_drive_on_worker(void)
{
    return uva_stream_drive(
        f.stream, &handler.handler,
        &(struct uva_drive){.on_done = on_done, .on_worker = true}, NULL);
}

static int (*const ways[])(void) = {
    start_for_each,        start_take, start_collect, start_drive,
    start_drive_on_worker,
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* ---- the test ----------------------------------------------------------- */

static int (*way)(void);

static void *starter(void *ctx)
{
    (void)ctx;
    starts = true;
    ck_assert_int_eq(way(), 0);
    return NULL;
}

static int64_t streams_held(void)
{
    struct uva_runtime_stats stats;

    uva_runtime_get_stats(f.loop.runtime, &stats);
    return stats.streams_held;
}

static bool is_done(void *ctx)
{
    (void)ctx;
    if (done == 0 && way == start_take && is_taken())
        end();
    return done > 0;
}

/* Has another thread make the call, and cancels the stream before it is over.
 */
static void cancel_within(int (*call)(void))
{
    pthread_t thread;

    way = call;
    (void)sem_init(&reached, 0, 0);
    (void)sem_init(&let_on, 0, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, starter, NULL), 0);
    while (sem_wait(&reached) != 0)
        continue;
    uva_stream_cancel(f.stream, 0, NULL);
    loop_until(&f.loop, is_done, NULL);
    loop_settle(&f.loop);
    ck_assert_int_eq(streams_held(), 1);
    (void)sem_post(&let_on);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    while (streams_held() != 0) /* a worker may hold it last, which wakes no
                                   loop */
        loop_settle(&f.loop);
    ck_assert_int_eq(done, 1);
}

static void set_up(void)
{
    done = 0;
    recording_handler_init(&handler, 1, 1);
    fixture_open(&f, 3);
    f.stream = fixture_blocking(&f);
}

static void tear_down(void)
{
    fixture_close(&f);
    recording_handler_fini(&handler);
}

START_TEST(a_stream_outlives_the_call_that_starts_it)
{
    cancel_within(ways[_i]);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("start");

    suite_add_loops(tc, 0, WAYS, a_stream_outlives_the_call_that_starts_it,
                    NULL);
    return suite_main("start_cancelled", set_up, tear_down, tc, NULL);
}
