/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_from_async() with a foreign producer that calls the handler on the
 * loop thread: no task is extracted or waited for there, unless the extraction
 * may run on the loop. The test is the producer. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/recording_handler.h"

enum { TASKS = 4 };

static struct fixture f;
static struct recording_handler handler; /* of the consumer: holds its tasks */

/* The producer. */
static struct {
    struct ArrowAsyncProducer abi;
    _Atomic(struct ArrowAsyncDeviceStreamHandler *) handler;
    atomic_long freed;   /* calls of free_ctx */
    atomic_long spent;   /* tasks extracted */
    atomic_long in_turn; /* of these, on the loop thread */
    int64_t gated;       /* extraction waits for `leave`, for so many tasks */
    bool ends;           /* extraction reports the end of the stream */
    sem_t entered, leave;
    pthread_t loop; /* the loop thread */
} peer;

/* ---- the producer -------------------------------------------------------- */

static int peer_start(void *ctx, struct ArrowAsyncDeviceStreamHandler *to,
                      struct uva_error *error)
{
    (void)ctx;
    (void)error;
    atomic_store(&peer.handler, to);
    return 0;
}

static void peer_free(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&peer.freed, 1);
    loop_nudge(&f.loop);
}

static void peer_request(struct ArrowAsyncProducer *self, int64_t n)
{
    (void)self;
    (void)n;
}

static void peer_cancel(struct ArrowAsyncProducer *self)
{
    (void)self;
}

static int peer_extract(struct ArrowAsyncTask *task,
                        struct ArrowDeviceArray *out)
{
    const int64_t ordinal = (int64_t)(intptr_t)task->private_data;

    if (pthread_equal(peer.loop, pthread_self()))
        atomic_fetch_add(&peer.in_turn, 1);
    if (peer.ends)
        ck_assert_int_eq(peer.handler->on_next_task(peer.handler, NULL, NULL),
                         0);
    if (ordinal < peer.gated) {
        ck_assert_int_eq(sem_post(&peer.entered), 0);
        while (sem_wait(&peer.leave) != 0)
            ;
    }
    ck_assert_ptr_nonnull(out); /* some producers crash on that */
    fake_source_batch(&f.fake, ordinal, out);
    ck_assert_int_eq(atomic_load(&peer.freed), 0);
    atomic_fetch_add(&peer.spent, 1);
    return 0;
}

static void peer_schema(void)
{
    struct ArrowSchema schema;

    fake_source_schema(&f.fake, &schema);
    peer.handler->producer = &peer.abi;
    ck_assert_int_eq(peer.handler->on_schema(peer.handler, &schema), 0);
}

static void peer_task(int64_t ordinal)
{
    struct ArrowAsyncTask task = {
        .extract_data = peer_extract,
        .private_data = (void *)(intptr_t)ordinal,
    };

    ck_assert_int_eq(peer.handler->on_next_task(peer.handler, &task, NULL), 0);
}

static void peer_tasks(int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        peer_task(i);
}

static void peer_end(void)
{
    ck_assert_int_eq(peer.handler->on_next_task(peer.handler, NULL, NULL), 0);
}

static void peer_release(void)
{
    peer.handler->release(peer.handler);
}

/* ---- the test ------------------------------------------------------------ */

static bool is_started(void *ctx)
{
    (void)ctx;
    return atomic_load(&peer.handler) != NULL;
}

static bool is_freed(void *ctx)
{
    (void)ctx;
    return atomic_load(&peer.freed) > 0;
}

static bool has_tasks(void *ctx)
{
    return recording_handler_tasks(&handler) >= *(int64_t *)ctx;
}

static void await_tasks(int64_t n)
{
    loop_until(&f.loop, has_tasks, &n);
}

static void await_start(void)
{
    loop_nudge(&f.loop);
    while (!is_started(NULL)) {
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
        (void)sched_yield();
    }
}

/* Opens a stream of the producer, up to its schema. */
static void open_peer(bool on_loop)
{
    const struct uva_async_source source = {.start = peer_start,
                                            .free_ctx = peer_free,
                                            .window = {.batches = TASKS},
                                            .on_loop = on_loop};
    const struct uva_drive options = {.on_done = recording_on_done,
                                      .ctx = &f.got};

    fixture_open(&f, 0);
    memset(&peer, 0, sizeof(peer));
    peer.abi.device_type = ARROW_DEVICE_CPU;
    peer.abi.request = peer_request;
    peer.abi.cancel = peer_cancel;
    peer.loop = pthread_self();
    ck_assert_int_eq(sem_init(&peer.entered, 0, 0), 0);
    ck_assert_int_eq(sem_init(&peer.leave, 0, 0), 0);
    recording_handler_init(&handler, TASKS, 0);
    handler.hold = true;
    f.stream = uva_stream_from_async(f.loop.runtime, &source);
    ck_assert_int_eq(
        uva_stream_drive(f.stream, &handler.handler, &options, NULL), 0);
    await_start();
    peer_schema();
}

static void await_entered(void)
{
    while (sem_wait(&peer.entered) != 0)
        ;
}

static void leave(int n)
{
    while (n-- > 0)
        ck_assert_int_eq(sem_post(&peer.leave), 0);
}

static void *extract_first(void *ctx)
{
    (void)ctx;
    ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[0]), 0);
    return NULL;
}

static void extract_from(int64_t first)
{
    for (int64_t i = first; i < handler.held_count; i++)
        ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[i]),
                         0);
}

static void tear_down(void)
{
    if (!f.open)
        return;
    loop_until(&f.loop, is_freed, NULL);
    fixture_close(&f);
    recording_handler_fini(&handler);
}

/* ---- release ------------------------------------------------------------- */

START_TEST(release_extracts_on_another_thread_and_waits_for_nothing)
{
    open_peer(false);
    peer_tasks(TASKS);
    await_tasks(_i); /* tasks after these are still queued */
    peer.gated = TASKS;
    peer_end();
    peer_release();
    await_entered(); /* an extra thread is extracting */
    loop_settle(&f.loop);
    ck_assert_int_eq(atomic_load(&peer.freed), 0);
    leave(TASKS);
    loop_until(&f.loop, is_freed, NULL);
    ck_assert_int_eq(atomic_load(&peer.spent), TASKS);
    await_tasks(TASKS);
    extract_from(0);
    fixture_await(&f);
    ck_assert_int_eq(handler.sum, 0 + 10 + 20 + 30);
    ck_assert_int_eq(atomic_load(&peer.in_turn), 0);
}
END_TEST

START_TEST(release_waits_for_no_thread_that_extracts)
{
    pthread_t other;

    open_peer(_i == 1);
    peer_tasks(2);
    await_tasks(2);
    peer.gated = 1;
    ck_assert_int_eq(pthread_create(&other, NULL, extract_first, NULL), 0);
    await_entered();
    peer_end();
    peer_release();
    ck_assert_int_eq(atomic_load(&peer.freed), 0);
    leave(1);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
    loop_until(&f.loop, is_freed, NULL);
    extract_from(1);
    fixture_await(&f);
    ck_assert_int_eq(handler.sum, 10);
}
END_TEST

START_TEST(what_may_run_on_the_loop_is_extracted_inside_release)
{
    open_peer(true);
    peer_tasks(2);
    peer_end();
    peer_release();
    ck_assert_int_eq(atomic_load(&peer.spent), 2);
    ck_assert_int_eq(atomic_load(&peer.in_turn), 2);
    await_tasks(2);
    extract_from(0);
    fixture_await(&f);
}
END_TEST

/* ---- discards ------------------------------------------------------------ */

START_TEST(tasks_that_come_after_a_cancel_are_discarded_on_another_thread)
{
    open_peer(_i == 1);
    uva_stream_cancel(f.stream, 0, "seen enough");
    fixture_await(&f);
    peer.gated = _i == 1 ? 0 : 3;
    peer_tasks(3);
    if (_i == 0)
        await_entered();
    ck_assert_int_eq(atomic_load(&peer.in_turn), _i == 1 ? 3 : 0);
    leave(3);
    peer_release();
    loop_until(&f.loop, is_freed, NULL);
    ck_assert_int_eq(atomic_load(&peer.spent), 3);
    ck_assert_int_eq(atomic_load(&peer.in_turn), _i == 1 ? 3 : 0);
}
END_TEST

/* The workers are gone: only this thread is left. */
START_TEST(tasks_that_come_after_the_close_are_discarded_here)
{
    open_peer(false);
    loop_close_runtime(&f.loop, 0);
    peer_task(0);
    ck_assert_int_eq(atomic_load(&peer.spent), 1);
    peer_release();
    ck_assert_int_eq(atomic_load(&peer.freed), 1);
}
END_TEST

static atomic_bool releasing;

static void *let_it_go(void *ctx)
{
    while (!atomic_load(&releasing))
        (void)sched_yield();
    leave(1);
    return ctx;
}

START_TEST(release_after_the_close_waits_for_a_thread_that_extracts)
{
    pthread_t other, third;

    open_peer(false);
    peer_task(0);
    await_tasks(1);
    peer.gated = 1;
    atomic_store(&releasing, false);
    ck_assert_int_eq(pthread_create(&other, NULL, extract_first, NULL), 0);
    await_entered();
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(pthread_create(&third, NULL, let_it_go, NULL), 0);
    atomic_store(&releasing, true);
    peer_release();
    ck_assert_int_eq(atomic_load(&peer.freed), 1);
    ck_assert_int_eq(atomic_load(&peer.spent), 1);
    ck_assert_int_eq(pthread_join(third, NULL), 0);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
}
END_TEST

/* ---- no memory ----------------------------------------------------------- */

static void *send_one(void *ctx)
{
    peer_task(0);
    return ctx;
}

/* The failure is noted before the task is discarded, so that an end which the
 * producer reports from inside the extraction does not hide it. The producer is
 * on another thread, and the loop turns before that extraction returns. */
START_TEST(a_task_that_cannot_be_kept_is_a_failure_though_the_end_comes_inside)
{
    pthread_t other;

    open_peer(false);
    peer.ends = true;
    peer.gated = 1;
    loop_fail(&f.loop, 1);
    ck_assert_int_eq(pthread_create(&other, NULL, send_one, NULL), 0);
    await_entered(); /* the end was reported */
    loop_fail(&f.loop, 0);
    fixture_await(&f);
    leave(1);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
    ck_assert_int_eq(atomic_load(&peer.spent), 1);
    peer_release();
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(f.got.outcome.error.code, ENOMEM);
    ck_assert_str_eq(handler.transcript, "schema error release");
}
END_TEST

/* There is no memory to hand it over to another thread. */
START_TEST(an_unwanted_task_that_cannot_be_kept_is_discarded_here)
{
    open_peer(false);
    uva_stream_cancel(f.stream, 0, "seen enough");
    fixture_await(&f);
    loop_fail(&f.loop, 1);
    peer_task(0);
    loop_fail(&f.loop, 0);
    ck_assert_int_eq(atomic_load(&peer.in_turn), 1);
    peer_release();
}
END_TEST

int main(void)
{
    TCase *release = tcase_create("release"),
          *unwanted = tcase_create("unwanted");

    suite_add_loops(release, 0, TASKS + 1,
                    release_extracts_on_another_thread_and_waits_for_nothing,
                    NULL);
    suite_add_loops(release, 0, 2, release_waits_for_no_thread_that_extracts,
                    NULL);
    suite_add(release, what_may_run_on_the_loop_is_extracted_inside_release,
              NULL);
    suite_add_loops(
        unwanted, 0, 2,
        tasks_that_come_after_a_cancel_are_discarded_on_another_thread, NULL);
    suite_add(
        unwanted,
        a_task_that_cannot_be_kept_is_a_failure_though_the_end_comes_inside,
        an_unwanted_task_that_cannot_be_kept_is_discarded_here,
        tasks_that_come_after_the_close_are_discarded_here,
        release_after_the_close_waits_for_a_thread_that_extracts, NULL);
    return suite_main("from_async_on_loop", NULL, tear_down, release, unwanted,
                      NULL);
}
