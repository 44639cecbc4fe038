/* SPDX-License-Identifier: Apache-2.0 */
/* Closing a runtime from any place, at any time, with any object open; and
 * several runtimes on one loop, on the same workers, or on threads of the
 * program. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/fake_source.h"
#include "support/loop_fixture.h"
#include "support/recording_consumer.h"
#include "uvarrow/arrow.h"
#include "uvarrow/runtime.h"
#include "uvarrow/stages.h"

enum { STREAMS = 5 };

static struct loop_fixture loop;
static struct fake_source fakes[STREAMS];
static struct recording_consumer consumers[STREAMS];
static struct fake_source *const fake = &fakes[0];
static struct recording_consumer *const consumer = &consumers[0];
static int closings;

static void set_up(void)
{
    loop_open(&loop);
    for (int i = 0; i < STREAMS; i++) {
        fake_source_init(&fakes[i], 5);
        recording_init(&consumers[i]);
    }
    closings = 0;
}

static void tear_down(void)
{
    if (loop.runtime != NULL)
        loop_close_runtime(&loop, 0);
    while (faulty_allocator_live(&loop.memory) != 0) /* dead objects go last */
        (void)sched_yield();
    loop_close(&loop);
    for (int i = 0; i < STREAMS; i++) {
        ck_assert_int_eq(atomic_load(&fakes[i].released),
                         atomic_load(&fakes[i].freed));
        ck_assert_int_le(atomic_load(&fakes[i].freed), 1);
        fake_source_fini(&fakes[i]);
    }
}

static struct uva_stream *make_stream(int i)
{
    const struct uva_arrow_source options = fake_source_options(&fakes[i]);
    struct ArrowArrayStream source;

    fake_source_plain(&fakes[i], &source);
    return uva_stream_from_arrow_stream(loop.runtime, &source, &options);
}

static void start(int i)
{
    recording_consume(&consumers[i], make_stream(i));
}

static void ck_ended(int i, enum uva_end end)
{
    ck_assert_int_eq(atomic_load(&consumers[i].done), 1);
    ck_assert_int_eq(consumers[i].outcome.end, end);
    if (end == UVA_END_CANCELLED) {
        ck_assert_int_eq(consumers[i].outcome.error.code, ECANCELED);
        text_contains(consumers[i].outcome.error.message, "runtime");
    }
}

static bool is_closed(void *ctx)
{
    (void)ctx;
    return closings > 0;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

static bool has_batches(void *ctx)
{
    return atomic_load(&((struct recording_consumer *)ctx)->batches) > 0;
}

/* Starts a stream with a source that waits at batch `k`, which is not the
 * first. */
static void start_and_wait_at(int64_t k)
{
    fake->gate_at = k;
    start(0);
    loop_until(&loop, has_batches, consumer);
    fake_source_await(fake);
}

static void count_closing(void *ctx)
{
    ck_assert_ptr_eq(ctx, &loop);
    closings++;
    loop.runtime = NULL;
}

static int close_it(int64_t grace_ms)
{
    return uva_runtime_close(loop.runtime, grace_ms, count_closing, &loop);
}

static void await_closed(void)
{
    loop_until(&loop, is_closed, NULL);
    ck_assert_int_eq(closings, 1);
}

/* Waits for the close, before which the first stream must have ended so. */
static void await_closed_and_ended(enum uva_end end)
{
    await_closed();
    ck_ended(0, end);
}

/* ---- the calling thread ------------------------------------------------- */

static void close_in_batch(struct recording_consumer *o,
                           struct uva_batch *batch)
{
    (void)batch;
    ck_assert_int_eq(close_it(0), atomic_load(&o->batches) == 1 ? 0 : EALREADY);
}

START_TEST(a_close_inside_on_batch_ends_its_stream)
{
    consumer->on_batch = close_in_batch;
    fake->gate_at = 2;
    start(0);
    await_closed_and_ended(UVA_END_CANCELLED);
    ck_assert_int_le(consumer->batches, 2);
    await_count(&fake->freed, 1);
}
END_TEST

static void close_in_done(struct recording_consumer *o,
                          const struct uva_outcome *end)
{
    (void)o;
    (void)end;
    ck_assert_int_eq(close_it(0), 0);
    ck_assert_int_eq(closings, 0);
}

START_TEST(a_close_inside_on_done_comes_after_it)
{
    consumer->on_done = close_in_done;
    start(0);
    await_closed_and_ended(UVA_END_COMPLETE);
    await_count(&fake->freed, 1);
}
END_TEST

static void close_now(void *ctx)
{
    ck_assert_int_eq(close_it(*(int64_t *)ctx), 0);
}

START_TEST(a_close_inside_a_post_comes_after_it)
{
    int64_t grace_ms = 0;

    ck_assert_int_eq(uva_runtime_post(loop.runtime, close_now, &grace_ms), 0);
    await_closed();
}
END_TEST

START_TEST(a_close_inside_a_handle_of_the_loop_is_fine)
{
    int64_t grace_ms = 0;

    loop_call(&loop, close_now, &grace_ms);
    await_closed();
}
END_TEST

START_TEST(a_close_before_the_first_turn_ends_what_was_started)
{
    start(0);
    ck_assert_int_eq(close_it(0), 0);
    await_closed_and_ended(UVA_END_CANCELLED);
    ck_assert_int_eq(consumer->batches, 0);
    await_count(&fake->freed, 1);
}
END_TEST

static void *close_elsewhere(void *ctx)
{
    close_now(ctx);
    return NULL;
}

START_TEST(a_close_on_another_thread_is_done_by_the_loop)
{
    int64_t grace_ms = 0;
    pthread_t thread;

    start_and_wait_at(1);
    ck_assert_int_eq(pthread_create(&thread, NULL, close_elsewhere, &grace_ms),
                     0);
    await_closed();
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_ended(0, UVA_END_CANCELLED);
    ck_assert(pthread_equal(consumer->thread, pthread_self()));
    await_count(&fake->freed, 1);
}
END_TEST

START_TEST(a_close_of_an_idle_guest_keeps_the_loop_alive_until_it_is_done)
{
    ck_assert_int_eq(close_it(0), 0);
    uv_unref((uv_handle_t *)&loop.keep);
    (void)uv_run(&loop.uv, UV_RUN_DEFAULT);
    uv_ref((uv_handle_t *)&loop.keep);
    ck_assert_int_eq(closings, 1);
}
END_TEST

START_TEST(a_close_without_a_callback_is_a_close)
{
    ck_assert_int_eq(uva_runtime_close(loop.runtime, 0, NULL, NULL), 0);
    uv_unref((uv_handle_t *)&loop.keep);
    (void)uv_run(&loop.uv, UV_RUN_DEFAULT);
    uv_ref((uv_handle_t *)&loop.keep);
    loop.runtime = NULL;
    ck_assert_int_eq(faulty_allocator_live(&loop.memory), 0);
}
END_TEST

/* ---- the duration of a close -------------------------------------------- */

START_TEST(a_close_ends_every_stream)
{
    for (int i = 0; i < STREAMS; i++) {
        fakes[i].gate_at = i;
        start(i);
    }
    loop_settle(&loop);
    ck_assert_int_eq(close_it(0), 0);
    await_closed();
    for (int i = 0; i < STREAMS; i++) {
        ck_ended(i, UVA_END_CANCELLED);
        await_count(&fakes[i].freed, 1);
        ck_assert_int_ge(atomic_load(&fakes[i].released), 1);
    }
}
END_TEST

START_TEST(after_the_close_began_nothing_starts)
{
    const struct uva_consumer table = recording_table(consumer);
    struct uva_stream *stream = make_stream(0);
    struct uva_error error = {0};

    fakes[1].gate_at = 0;
    start(1);
    ck_assert_int_eq(close_it(UVA_FOREVER), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &table, &error), ESHUTDOWN);
    text_contains(error.message, "runtime");
    uva_stream_release(stream);
    fake_source_open_gate(&fakes[1]);
    await_closed();
    ck_assert_int_eq(consumer->done, 0);
    ck_ended(1, UVA_END_COMPLETE);
    await_count(&fake->freed, 1);
    await_count(&fakes[1].freed, 1);
}
END_TEST

START_TEST(within_the_grace_a_stream_completes_and_the_close_waits_no_longer)
{
    start_and_wait_at(2);
    ck_assert_int_eq(close_it(INT64_C(1) << 40), 0);
    for (int i = 0; i < 10; i++)
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
    ck_assert_int_eq(closings, 0);
    fake_source_open_gate(fake);
    await_closed_and_ended(UVA_END_COMPLETE);
    ck_assert_int_eq(consumer->batches, 5);
    await_count(&fake->freed, 1);
}
END_TEST

START_TEST(after_the_grace_a_stream_is_cancelled)
{
    start_and_wait_at(2);
    ck_assert_int_eq(close_it(20), 0);
    await_closed_and_ended(UVA_END_CANCELLED);
    await_count(&fake->freed, 1);
}
END_TEST

START_TEST(grace_for_ever_waits_for_the_end)
{
    start_and_wait_at(2);
    ck_assert_int_eq(close_it(UVA_FOREVER), 0);
    for (int i = 0; i < 10; i++)
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
    ck_assert_int_eq(closings, 0);
    fake_source_open_gate(fake);
    await_closed_and_ended(UVA_END_COMPLETE);
    await_count(&fake->freed, 1);
}
END_TEST

static void never(void *ctx)
{
    (void)ctx;
    ck_abort_msg("a second close was called back");
}

START_TEST(a_second_close_may_shorten_the_grace)
{
    fake->gate_at = 0;
    fakes[1].gate_at = 0;
    start(0);
    start(1);
    ck_assert_int_eq(close_it(UVA_FOREVER), 0);
    fake_source_open_gate(fake);
    recording_await_done(consumer, &loop);
    ck_assert_int_eq(uva_runtime_close(loop.runtime, 1, never, NULL), EALREADY);
    await_closed_and_ended(UVA_END_COMPLETE);
    ck_ended(1, UVA_END_CANCELLED);
    await_count(&fake->freed, 1);
    await_count(&fakes[1].freed, 1);
}
END_TEST

START_TEST(a_second_close_cannot_lengthen_the_grace)
{
    fake->gate_at = 0;
    start(0);
    ck_assert_int_eq(close_it(20), 0);
    ck_assert_int_eq(uva_runtime_close(loop.runtime, UVA_FOREVER, never, NULL),
                     EALREADY);
    ck_assert_int_eq(
        uva_runtime_close(loop.runtime, INT64_C(1) << 40, never, NULL),
        EALREADY);
    await_closed_and_ended(UVA_END_CANCELLED);
    await_count(&fake->freed, 1);
}
END_TEST

static bool timer_closed;

static void note_timer_closed(uv_handle_t *timer)
{
    (void)timer;
    timer_closed = true;
}

/* Closes the runtime repeatedly, each time long before the grace period is
 * over. */
static void close_again(uv_timer_t *timer)
{
    int *times = timer->data;

    if (loop.runtime == NULL || ++*times > 40)
        uv_close((uv_handle_t *)timer, note_timer_closed);
    else
        ck_assert_int_eq(uva_runtime_close(loop.runtime, 200, never, NULL),
                         EALREADY);
}

START_TEST(a_second_close_does_not_begin_the_grace_anew)
{
    uv_timer_t timer;
    int times = 0;

    timer_closed = false;
    fake->gate_at = 0;
    start(0);
    ck_assert_int_eq(close_it(200), 0);
    ck_assert_int_eq(uv_timer_init(&loop.uv, &timer), 0);
    timer.data = &times;
    ck_assert_int_eq(uv_timer_start(&timer, close_again, 50, 50), 0);
    await_closed_and_ended(UVA_END_CANCELLED);
    ck_assert_int_le(times, 40);
    await_count(&fake->freed, 1);
    loop_until(&loop, is_set, &timer_closed);
}
END_TEST

START_TEST(a_negative_grace_is_refused)
{
    ck_assert_int_eq(close_it(-1), EINVAL);
    ck_assert_int_eq(uva_runtime_close(NULL, 0, NULL, NULL), EINVAL);
    ck_assert_int_eq(close_it(0), 0); /* it was still open */
    await_closed();
}
END_TEST

/* ---- stuck calls -------------------------------------------------------- */

static struct uva_runtime_stats last_stats;

static void read_stats(void *ctx)
{
    struct uva_runtime *runtime = loop.runtime;

    uva_runtime_get_stats(runtime, &last_stats);
    count_closing(ctx);
}

START_TEST(a_source_that_is_stuck_for_ever_does_not_hold_up_the_close)
{
    struct uva_arrow_source options = fake_source_options(fake);
    struct ArrowArrayStream source;

    fake->gate_at = 1;
    options.interrupt = NULL;
    fake_source_plain(fake, &source);
    recording_consume(consumer, uva_stream_from_arrow_stream(
                                    loop.runtime, &source, &options));
    loop_until(&loop, has_batches, consumer);
    fake_source_await(fake);
    ck_assert_int_eq(uva_runtime_close(loop.runtime, 0, read_stats, &loop), 0);
    await_closed_and_ended(UVA_END_CANCELLED);
    ck_assert_int_eq(last_stats.calls_stuck, 1);
    ck_assert_int_eq(last_stats.streams_open, 0);
    ck_assert_int_eq(atomic_load(&fake->released), 0);
    ck_assert_int_eq(atomic_load(&fake->freed), 0);
    fake_source_open_gate(fake);
    await_count(&fake->freed, 1);
    ck_assert_int_eq(atomic_load(&fake->released), 1);
}
END_TEST

START_TEST(a_source_stuck_in_its_tasks_does_not_hold_up_the_close)
{
    struct uva_task_source source = fake_source_tasks(fake);

    fake->gate_at = 1;
    source.interrupt = NULL;
    recording_consume(consumer, uva_stream_from_tasks(loop.runtime, &source));
    loop_until(&loop, has_batches, consumer);
    fake_source_await(fake);
    ck_assert_int_eq(uva_runtime_close(loop.runtime, 0, read_stats, &loop), 0);
    await_closed_and_ended(UVA_END_CANCELLED);
    ck_assert_int_eq(last_stats.calls_stuck, 1);
    ck_assert_int_eq(atomic_load(&fake->freed), 0);
    fake_source_open_gate(fake);
    await_count(&fake->freed, 1);
    atomic_store(&fake->released, 1); /* there is no stream to release */
}
END_TEST

static sem_t entered, may_return;

static int wait_in_map(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    (void)sem_post(&entered);
    while (sem_wait(&may_return) != 0)
        ;
    uva_array_move(&in->data, out);
    return 0;
}

START_TEST(a_close_waits_for_an_extraction_that_comes_to_its_end)
{
    const struct uva_map map = {.batch = wait_in_map};
    struct uva_stream *stream = make_stream(0);

    ck_assert_int_eq(sem_init(&entered, 0, 0), 0);
    ck_assert_int_eq(sem_init(&may_return, 0, 0), 0);
    ck_assert_int_eq(uva_stream_map(stream, &map), 0);
    recording_consume(consumer, stream);
    while (sem_trywait(&entered) != 0)
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
    ck_assert_int_eq(close_it(0), 0);
    recording_await_done(consumer, &loop);
    for (int turn = 0; turn < 3; turn++)
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
    ck_assert_int_eq(closings, 0);
    ck_assert_int_eq(sem_post(&may_return), 0);
    await_closed();
    ck_assert_int_eq(faulty_allocator_live(&loop.memory), 0);
}
END_TEST

START_TEST(streams_still_held_outlive_the_runtime)
{
    struct uva_stream *started = make_stream(0), *built = make_stream(1);
    const struct uva_consumer table = recording_table(consumer);
    struct uva_error error = {0};

    ck_assert_int_eq(uva_stream_for_each(started, &table, NULL), 0);
    ck_assert_int_eq(close_it(0), 0);
    await_closed_and_ended(UVA_END_CANCELLED);
    ck_assert_int_eq(uva_stream_status(started, &error), ECANCELED);
    uva_stream_cancel(started, EIO, "too late");
    ck_assert_int_eq(uva_stream_for_each(built, &table, NULL), ESHUTDOWN);
    ck_assert_int_eq(uva_stream_start_take(built, NULL, NULL, NULL, NULL),
                     ESHUTDOWN);
    uva_stream_resume(built);
    uva_stream_cancel(built, 0, NULL);
    uva_stream_release(started);
    uva_stream_drop(built);
    await_count(&fake->freed, 1);
    await_count(&fakes[1].freed, 1);
}
END_TEST

/* ---- several runtimes --------------------------------------------------- */

static void set(void *ctx)
{
    *(bool *)ctx = true;
}

static void open_second(const struct uva_runtime_options *options,
                        struct uva_runtime **second)
{
    ck_assert_int_eq(uva_runtime_open(&loop.uv, options, second, NULL), 0);
}

static void run_two(struct uva_runtime *second)
{
    struct uva_runtime *first = loop.runtime;
    bool second_closed = false;

    start(0);
    loop.runtime = second;
    start(1);
    recording_await_done(&consumers[0], &loop);
    recording_await_done(&consumers[1], &loop);
    loop.runtime = first;
    ck_assert_int_eq(uva_runtime_close(second, 0, set, &second_closed), 0);
    loop_until(&loop, is_set, &second_closed);
    start(2); /* the first runtime goes on without the second */
    recording_await_done(&consumers[2], &loop);
    for (int i = 0; i < 3; i++) {
        ck_ended(i, UVA_END_COMPLETE);
        ck_assert_int_eq(consumers[i].batches, 5);
        await_count(&fakes[i].freed, 1);
    }
    ck_assert_int_eq(close_it(0), 0);
    await_closed();
}

START_TEST(two_runtimes_live_on_one_loop)
{
    struct uva_runtime *second;

    open_second(NULL, &second);
    run_two(second);
}
END_TEST

/* Reopens the loop's runtime on worker threads of the test. */
static void reopen_on(struct uva_workers *workers)
{
    struct uva_runtime_options options = {.workers = workers};

    loop_close_runtime(&loop, 0);
    options.allocator = faulty_allocator_table(&loop.memory);
    open_second(&options, &loop.runtime);
}

START_TEST(two_runtimes_share_workers_that_are_freed_before_them)
{
    struct uva_runtime_options options = {0};
    struct uva_runtime *second;

    ck_assert_int_eq(uva_workers_new(NULL, &options.workers, NULL), 0);
    reopen_on(options.workers);
    open_second(&options, &second);
    uva_workers_release(options.workers);
    run_two(second);
}
END_TEST

/* ---- sources that were never started ------------------------------------ */

static pthread_t closed_by;
static int closed;

static int never_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    (void)self;
    (void)out;
    ck_abort_msg("it was not started");
}

static int never_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    (void)self;
    (void)out;
    ck_abort_msg("it was not started");
}

static const char *no_text(struct ArrowArrayStream *self)
{
    (void)self;
    return NULL;
}

static void note_close(struct ArrowArrayStream *self)
{
    closed_by = pthread_self();
    closed++;
    self->release = NULL;
}

/* A worker is used only for a source that may block. */
START_TEST(a_source_that_may_run_on_the_loop_thread_is_closed_there)
{
    const struct uva_arrow_source options = {.on_loop = true};
    struct ArrowArrayStream source = {.get_schema = never_schema,
                                      .get_next = never_next,
                                      .get_last_error = no_text,
                                      .release = note_close};
    struct uva_stream *stream;

    closed = 0;
    stream = uva_stream_from_arrow_stream(loop.runtime, &source, &options);
    ck_assert_ptr_nonnull(stream);
    uva_stream_release(stream);
    ck_assert_int_eq(closed, 1);
    ck_assert(pthread_equal(closed_by, pthread_self()));
}
END_TEST

static TCase *from_where(void)
{
    return suite_tests(
        "from_where", a_close_inside_on_batch_ends_its_stream,
        a_close_inside_on_done_comes_after_it,
        a_close_inside_a_post_comes_after_it,
        a_close_inside_a_handle_of_the_loop_is_fine,
        a_close_before_the_first_turn_ends_what_was_started,
        a_close_on_another_thread_is_done_by_the_loop,
        a_close_of_an_idle_guest_keeps_the_loop_alive_until_it_is_done,
        a_close_without_a_callback_is_a_close,
        a_source_that_may_run_on_the_loop_thread_is_closed_there, NULL);
}

static TCase *how_long(void)
{
    return suite_tests(
        "how_long", a_close_ends_every_stream,
        after_the_close_began_nothing_starts,
        within_the_grace_a_stream_completes_and_the_close_waits_no_longer,
        after_the_grace_a_stream_is_cancelled, grace_for_ever_waits_for_the_end,
        a_second_close_may_shorten_the_grace,
        a_second_close_cannot_lengthen_the_grace,
        a_second_close_does_not_begin_the_grace_anew,
        a_negative_grace_is_refused, NULL);
}

static TCase *with_what(void)
{
    return suite_tests(
        "with_what", a_source_that_is_stuck_for_ever_does_not_hold_up_the_close,
        a_source_stuck_in_its_tasks_does_not_hold_up_the_close,
        a_close_waits_for_an_extraction_that_comes_to_its_end,
        streams_still_held_outlive_the_runtime, two_runtimes_live_on_one_loop,
        two_runtimes_share_workers_that_are_freed_before_them, NULL);
}

int main(void)
{
    return suite_main("closing", set_up, tear_down, from_where(), how_long(),
                      with_what(), NULL);
}
