/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of streams: the reach of a cancel, which end counts as a failure, and
 * when on_done is called. Streams end when the test wants it, as pushers feed
 * them. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/forked_child.h"
#include "support/plain_tree.h"

enum { STREAMS = 3, ADDERS = 4, ADDED = 50 };

static struct loop_fixture loop;
static struct recording_consumer consumers[STREAMS];
static struct uva_stream *streams[STREAMS]; /* NULL once released */
static struct uva_pusher *pushers[STREAMS]; /* NULL once closed */
static struct uva_group *group;             /* NULL once released */
static atomic_int done;                     /* calls of on_done */

/* ---- the fixture -------------------------------------------------------- */

static void push_end(int i, int code, const char *text)
{
    struct uva_error error;

    if (pushers[i] != NULL)
        uva_pusher_close(
            pushers[i],
            uva_error_set(&error, code, "%s", text) != 0 ? &error : NULL, NULL);
    pushers[i] = NULL;
}

static void release(int i)
{
    uva_stream_release(streams[i]);
    streams[i] = NULL;
}

static void set_up(void)
{
    loop_open(&loop);
    atomic_store(&done, 0);
    ck_assert_int_eq(uva_group_new(loop.runtime, false, &group, NULL), 0);
    for (int i = 0; i < STREAMS; i++) {
        struct ArrowSchema schema;

        batch_schema(&schema);
        recording_init(&consumers[i]);
        streams[i] = uva_stream_from_pusher(loop.runtime, NULL, &pushers[i]);
        ck_assert_int_eq(uva_pusher_set_schema(pushers[i], &schema), 0);
    }
}

static void leave(void)
{
    uva_group_release(group);
    group = NULL;
}

static void tear_down(void)
{
    leave();
    for (int i = 0; i < STREAMS; i++) {
        release(i);
        push_end(i, 0, "");
    }
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

/* The group of the fixture cancels the rest when one stream fails. */
static void fail_together(void)
{
    leave();
    ck_assert_int_eq(uva_group_new(loop.runtime, true, &group, NULL), 0);
}

static void add(int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(uva_group_add(group, streams[i]), 0);
}

static void start(int count)
{
    for (int i = 0; i < count; i++)
        recording_start(&consumers[i], streams[i]);
    loop_settle(&loop);
}

static void on_done(void *ctx)
{
    ck_assert_ptr_eq(ctx, &done);
    ck_assert(uva_runtime_on_loop(loop.runtime));
    atomic_fetch_add(&done, 1);
}

/* It is not called inside the call. */
static void ask(void)
{
    const int before = atomic_load(&done);

    ck_assert_int_eq(uva_group_on_done(group, on_done, &done), 0);
    ck_assert_int_eq(atomic_load(&done), before);
}

static void is_done(int times)
{
    loop_settle(&loop);
    ck_assert_int_eq(atomic_load(&done), times);
}

static void ended(int i, enum uva_end end, int code, const char *text)
{
    recording_await_done(&consumers[i], &loop);
    recording_ended(&consumers[i], end, code, text);
}

static void runs(int i)
{
    loop_settle(&loop);
    ck_assert_int_eq(atomic_load(&consumers[i].done), 0);
}

static int start_code(int i, struct uva_error *error)
{
    struct uva_consumer table = recording_table(&consumers[i]);

    return uva_stream_for_each(streams[i], &table, error);
}

/* ---- cancels ------------------------------------------------------------ */

START_TEST(a_cancel_reaches_every_stream)
{
    struct uva_error error = {0};

    add(3);
    start(2);
    uva_group_cancel(group, EPERM, "no more");
    uva_group_cancel(group, EDOM, "too late");
    ended(0, UVA_END_CANCELLED, EPERM, "no more");
    ended(1, UVA_END_CANCELLED, EPERM, "no more");
    ck_assert_int_eq(start_code(2, &error), EPERM);
    text_contains(error.message, "no more");
}
END_TEST

/* Streams that have ended keep their outcome; a stream that is added later gets
 * the first cancel. */
START_TEST(a_group_that_was_cancelled_may_be_cancelled_again)
{
    add(1);
    ask();
    start(1);
    uva_group_cancel(group, EPERM, "no more");
    ended(0, UVA_END_CANCELLED, EPERM, "no more");
    is_done(1);
    uva_group_cancel(group, EDOM, "too late");
    ck_assert_int_eq(uva_stream_status(streams[0], NULL), EPERM);
    ck_assert_int_eq(uva_group_add(group, streams[1]), 0);
    ck_assert_int_eq(start_code(1, NULL), EPERM);
    uva_group_cancel(group, EDOM, "too late");
    is_done(1);
}
END_TEST

START_TEST(a_cancel_needs_no_reason)
{
    add(1);
    start(1);
    uva_group_cancel(group, 0, NULL);
    ended(0, UVA_END_CANCELLED, ECANCELED, "cancelled");
}
END_TEST

START_TEST(a_stream_added_to_a_cancelled_group_is_cancelled)
{
    start(1);
    uva_group_cancel(group, EPERM, "no more");
    runs(0);
    add(2);
    ended(0, UVA_END_CANCELLED, EPERM, "no more");
    ck_assert_int_eq(start_code(1, NULL), EPERM);
}
END_TEST

/* A stream of another group, and one without a group, go on. */
START_TEST(other_streams_are_not_cancelled)
{
    struct uva_group *other;

    ck_assert_int_eq(uva_group_new(loop.runtime, true, &other, NULL), 0);
    add(1);
    ck_assert_int_eq(uva_group_add(other, streams[1]), 0);
    start(3);
    uva_group_cancel(group, 0, NULL);
    ended(0, UVA_END_CANCELLED, ECANCELED, "cancelled");
    runs(1);
    runs(2);
    uva_group_release(other);
}
END_TEST

START_TEST(a_stream_may_be_in_two_groups)
{
    struct uva_group *other;

    ck_assert_int_eq(uva_group_new(loop.runtime, false, &other, NULL), 0);
    add(2);
    ck_assert_int_eq(uva_group_add(other, streams[0]), 0);
    ask();
    start(2);
    uva_group_cancel(other, 0, NULL);
    ended(0, UVA_END_CANCELLED, ECANCELED, "cancelled");
    is_done(0);
    push_end(1, 0, "");
    is_done(1);
    uva_group_release(other);
}
END_TEST

START_TEST(a_release_cancels_nothing)
{
    fail_together();
    add(2);
    ask();
    start(2);
    leave();
    runs(0);
    push_end(0, 0, "");
    ended(0, UVA_END_COMPLETE, 0, NULL);
    is_done(0);
    push_end(1, EDOM, "no good"); /* it would still have an effect */
    ended(1, UVA_END_FAILED, EDOM, "no good");
    is_done(1);
}
END_TEST

/* ---- failures ----------------------------------------------------------- */

START_TEST(the_first_failure_cancels_the_others)
{
    if (_i == 1)
        fail_together();
    add(2);
    start(2);
    push_end(0, EDOM, "no good");
    ended(0, UVA_END_FAILED, EDOM, "no good");
    if (_i == 0)
        runs(1);
    else
        ended(1, UVA_END_CANCELLED, EDOM, "no good");
}
END_TEST

START_TEST(a_rejection_is_a_failure)
{
    struct ArrowDeviceArray array;

    fail_together();
    add(2);
    consumers[0].batch_code = ERANGE;
    start(2);
    batch_make(&array, 3);
    ck_assert_int_eq(uva_pusher_push(pushers[0], &array, NULL, 0), 0);
    ended(0, UVA_END_REJECTED, ERANGE, "");
    ended(1, UVA_END_CANCELLED, ERANGE, "");
}
END_TEST

/* A consumer that wants no more; a cancel, whatever its code; a good end; a
 * stream that is released unstarted. */
START_TEST(other_ends_are_no_failure)
{
    struct ArrowDeviceArray array;

    fail_together();
    add(2);
    consumers[0].batch_code = ECANCELED;
    recording_start(&consumers[1], streams[1]);
    if (_i < 3)
        recording_start(&consumers[0], streams[0]);
    loop_settle(&loop);
    batch_make(&array, 3);
    if (_i == 0)
        ck_assert_int_eq(uva_pusher_push(pushers[0], &array, NULL, 0), 0);
    else
        uva_array_release(&array);
    if (_i == 1)
        uva_stream_cancel(streams[0], EDOM, "this one");
    if (_i == 2)
        push_end(0, 0, "");
    if (_i == 3)
        release(0);
    runs(1);
    ck_assert_int_eq(atomic_load(&consumers[0].done), _i < 3);
}
END_TEST

START_TEST(a_stream_that_has_ended_may_be_added)
{
    fail_together();
    ck_assert_int_eq(uva_group_add(group, streams[1]), 0);
    start(2);
    push_end(0, _i == 0 ? 0 : EDOM, "no good");
    loop_settle(&loop);
    add(1);
    if (_i == 0)
        runs(1);
    else
        ended(1, UVA_END_CANCELLED, EDOM, "no good");
    if (_i == 0)
        push_end(1, 0, "");
    ask(); /* the group is empty again */
    is_done(1);
}
END_TEST

/* ---- on_done ------------------------------------------------------------ */

START_TEST(an_empty_group_is_done)
{
    ask();
    is_done(1);
    ck_assert_int_eq(uva_group_on_done(group, on_done, &done), EBUSY);
    add(1);
    start(1);
    push_end(0, 0, "");
    is_done(1);
}
END_TEST

START_TEST(a_group_is_done_when_every_stream_has_ended)
{
    if (_i == 0)
        ask();
    else
        ck_assert_int_eq(uva_group_on_done(group, NULL, NULL), EINVAL);
    add(3);
    if (_i == 0)
        ck_assert_int_eq(uva_group_on_done(group, on_done, &done), EBUSY);
    start(2);
    push_end(0, EDOM, "no good");
    is_done(0);
    push_end(1, 0, "");
    is_done(0);
    release(2); /* it was not started */
    if (_i == 1) {
        is_done(0);
        ask();
    }
    is_done(1);
}
END_TEST

START_TEST(a_merged_stream_counts_until_its_end)
{
    struct uva_stream *own = uva_stream_acquire(streams[1]);

    ck_assert_int_eq(uva_group_add(group, own), 0);
    ask();
    ck_assert_int_eq(uva_stream_merge(streams[0], &streams[1], 1, NULL), 0);
    streams[1] = NULL;
    start(1);
    push_end(0, 0, "");
    is_done(0);
    push_end(1, 0, "");
    is_done(1);
    uva_stream_release(own);
}
END_TEST

static void start_and_release(void *ctx)
{
    (void)ctx;
    leave();
    atomic_fetch_add(&done, 1);
}

START_TEST(the_group_may_be_released_when_it_is_done)
{
    add(1);
    ck_assert_int_eq(uva_group_on_done(group, start_and_release, NULL), 0);
    start(1);
    push_end(0, 0, "");
    is_done(1);
}
END_TEST

/* Without any other reason, uv_run() does not return before the callback. */
START_TEST(on_done_keeps_the_loop_alive)
{
    struct uva_runtime *runtime;
    struct uva_group *own;
    uv_loop_t uv;

    ck_assert_int_eq(uv_loop_init(&uv), 0);
    ck_assert_int_eq(uva_runtime_open(&uv, NULL, &runtime, NULL), 0);
    ck_assert_int_eq(uva_group_new(runtime, false, &own, NULL), 0);
    ck_assert_int_eq(uva_group_on_done(own, start_and_release, NULL), 0);
    uva_group_release(own);
    ck_assert_int_eq(uv_run(&uv, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(atomic_load(&done), 1);
    ck_assert_int_eq(uva_runtime_close(runtime, 0, NULL, NULL), 0);
    ck_assert_int_eq(uv_run(&uv, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(&uv), 0);
}
END_TEST

static void *ask_elsewhere(void *ctx)
{
    (void)ctx;
    ck_assert_int_eq(uva_group_on_done(group, on_done, &done), 0);
    return NULL;
}

START_TEST(another_thread_may_ask)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, ask_elsewhere, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    is_done(1);
}
END_TEST

/* ---- the end of the runtime --------------------------------------------- */

/* A stream that was not started is still in the group. */
START_TEST(a_close_reports_the_end)
{
    add(2);
    start(1);
    ask();
    if (_i == 1)
        push_end(0, 0, "");
    loop_close_runtime(&loop, _i == 1 ? UVA_FOREVER : 0);
    ck_assert_int_eq(atomic_load(&done), 1);
    ck_assert_int_eq(atomic_load(&consumers[0].done), 1);
    ck_assert_int_eq(uva_group_on_done(group, on_done, &done), ESHUTDOWN);
    uva_group_cancel(group, 0, NULL);
    add(3);
}
END_TEST

/* ---- adding streams ----------------------------------------------------- */

START_TEST(arguments_are_checked)
{
    struct uva_runtime *other;
    struct uva_error error = {0};
    struct uva_stream *stream;
    struct uva_pusher *pusher;
    struct uva_group *made;

    ck_assert_int_eq(uva_group_new(NULL, false, &made, &error), EINVAL);
    text_contains(error.message, "runtime");
    ck_assert_int_eq(uva_group_new(loop.runtime, false, NULL, &error), EINVAL);
    text_contains(error.message, "result");
    ck_assert_int_eq(uva_group_add(NULL, streams[0]), EINVAL);
    ck_assert_int_eq(uva_group_add(group, NULL), EINVAL);
    ck_assert_int_eq(uva_group_on_done(NULL, on_done, NULL), EINVAL);
    uva_group_cancel(NULL, 0, NULL);
    uva_group_release(NULL);
    stream = uva_stream_from_arrays(NULL, NULL, NULL, 0);
    ck_assert_int_eq(uva_group_add(group, stream), EINVAL);
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &other, NULL), 0);
    stream = uva_stream_from_pusher(other, NULL, &pusher);
    ck_assert_int_eq(uva_group_add(group, stream), EINVAL);
    uva_stream_release(stream);
    uva_pusher_close(pusher, NULL, NULL);
    ck_assert_int_eq(uva_runtime_join(other, UVA_FOREVER), 0);
    ask();
    is_done(1);
}
END_TEST

/* A stream that could not be built is open until it is released. */
START_TEST(a_stream_that_failed_to_build_may_be_added)
{
    (void)uva__stream_limit(streams[0], -1);
    add(1);
    ask();
    is_done(0);
    release(0);
    is_done(1);
}
END_TEST

START_TEST(without_memory_the_group_is_as_before)
{
    struct uva_group *made;
    struct uva_error error = {0};

    loop_fail(&loop, 1);
    ck_assert_int_eq(uva_group_new(loop.runtime, false, &made, &error), ENOMEM);
    text_contains(error.message, "memory");
    loop_fail(&loop, 1);
    ck_assert_int_eq(uva_group_add(group, streams[0]), ENOMEM);
    loop_fail(&loop, 0);
    ask();
    is_done(1);
    add(1);
    start(1);
    loop_fail(&loop, 1);
    uva_group_cancel(group, EPERM, "no more");
    ended(0, UVA_END_CANCELLED, EPERM, "");
}
END_TEST

static int use_group(void *ctx)
{
    struct uva_group *made;

    (void)ctx;
    uva_group_cancel(group, 0, NULL);
    uva_group_release(group);
    return uva_group_new(loop.runtime, false, &made, NULL) != EPERM ||
           uva_group_add(group, streams[0]) != EPERM ||
           uva_group_on_done(group, on_done, &done) != EPERM;
}

START_TEST(a_forked_child_cannot_use_groups)
{
    add(1);
    start(1);
    forked_child_run(use_group, NULL);
    runs(0);
}
END_TEST

/* ---- several threads ---------------------------------------------------- */

/* Adds streams that are never started; each is released at once or by the next
 * round, while other streams are added and cancelled. */
static void *add_many(void *ctx)
{
    struct uva_stream *before = NULL, *stream;
    struct ArrowSchema schema;

    (void)ctx;
    for (int i = 0; i < ADDED; i++) {
        batch_schema(&schema);
        stream = uva_stream_from_arrays(loop.runtime, &schema, NULL, 0);
        ck_assert_int_eq(uva_group_add(group, stream), 0);
        uva_stream_release(before);
        before = stream;
        if (i == ADDED / 2)
            uva_group_cancel(group, EPERM, "no more");
    }
    uva_stream_release(before);
    return NULL;
}

START_TEST(threads_may_add_cancel_and_release)
{
    pthread_t threads[ADDERS];

    add(2);
    start(2);
    ask();
    for (int i = 0; i < ADDERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, add_many, NULL), 0);
    ended(0, UVA_END_CANCELLED, EPERM, "no more");
    ended(1, UVA_END_CANCELLED, EPERM, "no more");
    for (int i = 0; i < ADDERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    is_done(1);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("groups");

    suite_add_loops(tests, 0, 2, the_first_failure_cancels_the_others,
                    a_stream_that_has_ended_may_be_added,
                    a_group_is_done_when_every_stream_has_ended,
                    a_close_reports_the_end, NULL);
    suite_add_loops(tests, 0, 4, other_ends_are_no_failure, NULL);
    suite_add(tests, a_cancel_reaches_every_stream,
              a_group_that_was_cancelled_may_be_cancelled_again,
              a_cancel_needs_no_reason,
              a_stream_added_to_a_cancelled_group_is_cancelled,
              other_streams_are_not_cancelled, a_stream_may_be_in_two_groups,
              a_release_cancels_nothing, a_rejection_is_a_failure,
              an_empty_group_is_done, a_merged_stream_counts_until_its_end,
              the_group_may_be_released_when_it_is_done,
              on_done_keeps_the_loop_alive, another_thread_may_ask,
              arguments_are_checked, a_stream_that_failed_to_build_may_be_added,
              without_memory_the_group_is_as_before,
              a_forked_child_cannot_use_groups,
              threads_may_add_cancel_and_release, NULL);
    return suite_main("group", set_up, tear_down, tests, NULL);
}
