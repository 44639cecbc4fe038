/* SPDX-License-Identifier: Apache-2.0 */
/* uva_runtime_drain(): no stream starts any more, running streams go on to
 * their end or to the deadline, and a callback reports that none is open. Then
 * the runtime is still there. test_closing.c tests the close. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/forked_child.h"
#include "support/hosting_fixture.h"

static struct hosting_fixture h;
static atomic_int drains;   /* calls of on_drained() */
static atomic_int done;     /* streams that were done at the last of them */
static atomic_int closings; /* closes that were over then */
static int posts;           /* calls of on_post() */

static void set_up(void)
{
    hosting_init(&h);
    atomic_store(&drains, 0);
    atomic_store(&done, -1);
    atomic_store(&closings, -1);
    posts = 0;
}

static void tear_down(void)
{
    hosting_fini(&h);
}

static void on_drained(void *ctx)
{
    struct uva_runtime_stats stats;

    ck_assert_ptr_eq(ctx, &h);
    ck_assert(uva_runtime_on_loop(h.rt));
    uva_runtime_get_stats(h.rt, &stats);
    ck_assert_int_eq(stats.streams_open, 0);
    atomic_store(&done, atomic_load(&h.consumer.done));
    atomic_store(&closings, atomic_load(&h.closings));
    atomic_fetch_add(&drains, 1);
}

static int drain(int64_t deadline_ms)
{
    return uva_runtime_drain(h.rt, deadline_ms, on_drained, &h);
}

static void on_post(void *ctx)
{
    (void)ctx;
    posts++;
}

/* Opens a runtime, and starts a stream that waits after its first batch. */
static void open_with_stream(void)
{
    h.fake.gate_at = 1;
    hosting_open_embedded(&h);
    hosting_start_stream(&h);
    while (atomic_load(&h.consumer.batches) < 1)
        (void)uv_run(&h.loop, UV_RUN_ONCE);
    fake_source_await(&h.fake);
}

static void ck_refused(struct uva_stream *stream)
{
    struct recording_consumer consumer;
    struct uva_consumer table;
    struct uva_error error;

    recording_init(&consumer);
    table = recording_table(&consumer);
    ck_assert_int_eq(uva_stream_for_each(stream, &table, &error), ESHUTDOWN);
    ck_assert_str_eq(error.message, "the runtime is draining");
    uva_stream_release(stream);
    ck_assert_int_eq(atomic_load(&consumer.done), 0);
}

static void ck_timed_out(void)
{
    ck_assert_int_eq(atomic_load(&drains), 1);
    ck_assert_int_eq(atomic_load(&done), 1);
    recording_ended(&h.consumer, UVA_END_CANCELLED, ETIMEDOUT, "deadline");
    await_count(&h.fake.freed, 1);
}

/* ---- to the end --------------------------------------------------------- */

START_TEST(an_idle_runtime_is_drained_at_once_but_later)
{
    hosting_open_embedded(&h);
    ck_assert_int_eq(drain(UVA_FOREVER), 0);
    ck_assert_int_eq(atomic_load(&drains), 0);
    ck_assert_int_ne(uv_loop_alive(&h.loop), 0);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(atomic_load(&drains), 1);
    hosting_close_embedded(&h);
    ck_assert_int_eq(atomic_load(&drains), 1);
}
END_TEST

START_TEST(what_runs_goes_on_to_its_end)
{
    open_with_stream();
    ck_assert_int_eq(drain(_i == 0 ? UVA_FOREVER : INT64_MAX), 0);
    (void)uv_run(&h.loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(atomic_load(&h.consumer.done), 0);
    fake_source_open_gate(&h.fake);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(atomic_load(&drains), 1);
    ck_assert_int_eq(atomic_load(&done), 1);
    recording_ended(&h.consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(atomic_load(&h.consumer.batches), HOSTING_BATCHES);
    await_count(&h.fake.freed, 1);
    hosting_close_embedded(&h);
}
END_TEST

START_TEST(no_stream_starts_any_more)
{
    struct uva_stream *built;

    hosting_open_embedded(&h);
    built = hosting_stream(&h, false);
    ck_assert_int_eq(drain(UVA_FOREVER), 0);
    ck_refused(built);
    await_count(&h.fake.freed, 1);
    ck_refused(hosting_stream(&h, false));
    await_count(&h.fake.freed, 2);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_refused(hosting_stream(&h, false));
    await_count(&h.fake.freed, 3);
    hosting_close_embedded(&h);
}
END_TEST

START_TEST(the_runtime_stays_open)
{
    hosting_open_embedded(&h);
    ck_assert_int_eq(drain(0), 0);
    ck_assert_int_eq(uva_runtime_post(h.rt, on_post, NULL), 0);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(atomic_load(&drains), 1);
    ck_assert_int_eq(posts, 1);
    ck_assert_int_eq(uva_runtime_post(h.rt, on_post, NULL), 0);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(posts, 2);
    ck_assert_int_eq(uv_loop_alive(&h.loop), 0);
    hosting_close_embedded(&h);
}
END_TEST

START_TEST(a_runtime_with_a_thread_is_drained_by_another)
{
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &h.rt, NULL), 0);
    hosting_start_stream(&h);
    ck_assert_int_eq(drain(UVA_FOREVER), 0);
    ck_assert_int_eq(uva_runtime_join(h.rt, UVA_FOREVER), 0);
    ck_assert_int_eq(atomic_load(&drains), 1);
    recording_ended(&h.consumer, UVA_END_COMPLETE, 0, NULL);
    await_count(&h.fake.freed, 1);
}
END_TEST

/* ---- the deadline ------------------------------------------------------- */

START_TEST(after_the_deadline_the_rest_is_cancelled)
{
    open_with_stream();
    ck_assert_int_eq(drain(_i), 0);
    ck_assert_int_eq(atomic_load(&h.consumer.done), 0);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_timed_out();
    hosting_close_embedded(&h);
}
END_TEST

START_TEST(a_second_drain_only_shortens_the_deadline)
{
    open_with_stream();
    ck_assert_int_eq(drain(_i == 0 ? UVA_FOREVER : INT64_MAX / 2), 0);
    ck_assert_int_eq(drain(UVA_FOREVER), EALREADY);
    ck_assert_int_eq(drain(INT64_MAX), EALREADY);
    (void)uv_run(&h.loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(atomic_load(&h.consumer.done), 0);
    ck_assert_int_eq(drain(0), EALREADY);
    ck_assert_int_eq(drain(1), EALREADY);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_timed_out();
    ck_assert_int_eq(drain(0), EALREADY);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(atomic_load(&drains), 1);
    hosting_close_embedded(&h);
}
END_TEST

/* ---- beside a close ----------------------------------------------------- */

START_TEST(a_close_takes_over)
{
    const bool patient = _i == 1;

    open_with_stream();
    ck_assert_int_eq(drain(UVA_FOREVER), 0);
    ck_assert_int_eq(uva_runtime_close(h.rt, patient ? UVA_FOREVER : 0,
                                       hosting_on_closed, &h),
                     0);
    ck_assert_int_eq(drain(0), ESHUTDOWN);
    if (patient)
        fake_source_open_gate(&h.fake);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(atomic_load(&h.closings), 1);
    ck_assert_int_eq(atomic_load(&drains), 1);
    ck_assert_int_eq(atomic_load(&done), 1);
    ck_assert_int_eq(atomic_load(&closings), 0);
    recording_ended(&h.consumer, patient ? UVA_END_COMPLETE : UVA_END_CANCELLED,
                    patient ? 0 : ECANCELED, "closed");
    await_count(&h.fake.freed, 1);
}
END_TEST

static void close_when_drained(void *ctx)
{
    on_drained(ctx);
    ck_assert_int_eq(uva_runtime_close(h.rt, 0, hosting_on_closed, &h), 0);
}

START_TEST(the_callback_may_close_the_runtime)
{
    open_with_stream();
    ck_assert_int_eq(uva_runtime_drain(h.rt, 0, close_when_drained, &h), 0);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_timed_out();
    ck_assert_int_eq(atomic_load(&h.closings), 1);
}
END_TEST

/* ---- many at once ------------------------------------------------------- */

enum { ROUNDS = 100, DRAINERS = 3 };

static atomic_int first; /* drains that returned 0 */

static void *drain_it(void *ctx)
{
    int code = drain(*(int64_t *)ctx);

    if (code == 0)
        atomic_fetch_add(&first, 1);
    else
        ck_assert(code == EALREADY || code == ESHUTDOWN);
    return NULL;
}

/* Streams start, threads drain, and the main thread closes, in any order. */
START_TEST(any_thread_may_drain_at_any_time)
{
    int64_t deadlines[DRAINERS] = {UVA_FOREVER, 1, 0};
    pthread_t threads[DRAINERS];
    struct uva_consumer table;
    struct uva_stream *stream;
    int code;

    for (int round = 0; round < ROUNDS; round++) {
        recording_init(&h.consumer);
        atomic_store(&h.fake.given, 0);
        atomic_store(&drains, 0);
        atomic_store(&first, 0);
        ck_assert_int_eq(uva_runtime_open(NULL, NULL, &h.rt, NULL), 0);
        for (int i = 0; i < DRAINERS; i++)
            threads[i] = hosting_thread(drain_it, &deadlines[i]);
        stream = hosting_stream(&h, false);
        table = recording_table(&h.consumer);
        code = uva_stream_for_each(stream, &table, NULL);
        uva_stream_release(stream);
        for (int i = 0; i < DRAINERS; i++)
            ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_int_eq(uva_runtime_join(h.rt, UVA_FOREVER), 0);
        ck_assert_int_eq(atomic_load(&h.consumer.done), code == 0);
        ck_assert(code == 0 || code == ESHUTDOWN);
        ck_assert_int_eq(atomic_load(&first), 1);
        ck_assert_int_eq(atomic_load(&drains), 1);
        await_count(&h.fake.freed, round + 1);
    }
}
END_TEST

/* ---- bad calls ---------------------------------------------------------- */

static int child_main(void *ctx)
{
    (void)ctx;
    return drain(0) != EPERM;
}

START_TEST(bad_calls_are_refused)
{
    hosting_open_embedded(&h);
    ck_assert_int_eq(uva_runtime_drain(NULL, 0, on_drained, &h), EINVAL);
    ck_assert_int_eq(drain(-2), EINVAL);
    ck_assert_int_eq(drain(INT64_MIN), EINVAL);
    forked_child_run(child_main, NULL);
    ck_assert_int_eq(uva_runtime_drain(h.rt, 0, NULL, NULL), 0);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(atomic_load(&drains), 0);
    hosting_close_embedded(&h);
}
END_TEST

int main(void)
{
    TCase *end = tcase_create("end"), *limit = tcase_create("deadline");
    TCase *beside = tcase_create("beside");

    tcase_set_timeout(beside, 60);
    suite_add(end, an_idle_runtime_is_drained_at_once_but_later,
              no_stream_starts_any_more, the_runtime_stays_open,
              a_runtime_with_a_thread_is_drained_by_another, NULL);
    suite_add_loops(end, 0, 2, what_runs_goes_on_to_its_end, NULL);
    suite_add_loops(limit, 0, 2, after_the_deadline_the_rest_is_cancelled,
                    a_second_drain_only_shortens_the_deadline, NULL);
    suite_add_loops(beside, 0, 2, a_close_takes_over, NULL);
    suite_add(beside, the_callback_may_close_the_runtime,
              any_thread_may_drain_at_any_time, bad_calls_are_refused, NULL);
    return suite_main("drain", set_up, tear_down, end, limit, beside, NULL);
}
