/* SPDX-License-Identifier: Apache-2.0 */
/* Taking batches without a callback for each, and collecting a whole stream:
 * the batches that wait, when the ready function is called, and how it ends. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"

static struct fixture f;

static struct {
    int ready;     /* calls of the ready function */
    int64_t taken; /* batches */
    bool releases; /* the ready function releases the stream */
    /* of uva_stream_collect() */
    int collected;
    size_t count;
    struct uva_outcome outcome;
    struct ArrowDeviceArray kept; /* the first of them, moved out */
} did;

static void set_up(void)
{
    memset(&did, 0, sizeof(did));
    fixture_open(&f, 10);
}

static void tear_down(void)
{
    if (uva_array_is_live(&did.kept))
        uva_array_release(&did.kept);
    fixture_close(&f);
}

static void on_ready(void *ctx)
{
    ck_assert_ptr_eq(ctx, &did);
    did.ready++;
    if (did.releases)
        fixture_release(&f);
}

static void start(const struct uva_window *window)
{
    struct uva_error error = {0};

    ck_assert_int_eq(
        uva_stream_start_take(f.stream, window, on_ready, &did, &error), 0);
}

/* Takes all batches that wait, and returns the code that ends them. */
static int take_all(struct uva_outcome *outcome)
{
    struct uva_batch batch;
    int code;

    while ((code = uva_stream_take(f.stream, &batch, outcome)) == 0) {
        ck_assert_int_eq(batch.ordinal, did.taken);
        ck_assert_ptr_eq(batch.stream, f.stream);
        ck_assert_int_eq(batch.schema->n_children, 1);
        ck_assert_int_eq(
            ((const int64_t *)batch.data.array.children[0]->buffers[1])[0],
            did.taken * 10);
        uva_array_release(&batch.data);
        did.taken++;
    }
    return code;
}

static bool is_ready(void *ctx)
{
    return did.ready > *(int *)ctx;
}

/* Takes everything, with a turn of the loop for each EAGAIN. */
static void take_to_the_end(struct uva_outcome *outcome)
{
    int code, seen;

    while ((code = take_all(outcome)) == EAGAIN) {
        seen = did.ready;
        loop_until(&f.loop, is_ready, &seen);
    }
    ck_assert_int_eq(code, ENOENT);
}

/* ---- taking ------------------------------------------------------------- */

START_TEST(every_batch_is_taken_and_then_the_outcome)
{
    static const struct uva_window windows[] = {
        {.batches = 0}, {.batches = 1}, {.batches = 3}, {.bytes = 1}};
    struct uva_outcome outcome;

    f.stream = fixture_sources[_i % FIXTURE_SOURCES].make(&f);
    start(&windows[_i / FIXTURE_SOURCES]);
    take_to_the_end(&outcome);
    ck_assert_int_eq(outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(outcome.batches, 10);
    ck_assert_int_eq(did.taken, 10);
    ck_assert_int_eq(take_all(NULL), ENOENT); /* again */
}
END_TEST

static bool has_info(void *ctx)
{
    (void)ctx;
    return uva_stream_get_info(f.stream) != NULL;
}

START_TEST(the_ready_function_is_called_once_after_each_eagain)
{
    struct uva_batch batch;
    int code, seen = 0;

    f.stream = fixture_tasks(&f);
    start(NULL);
    loop_until(&f.loop, has_info, NULL);
    loop_settle(&f.loop);
    ck_assert_int_eq(did.ready, 0); /* no batch was asked for */
    ck_assert_int_eq(uva_stream_take(f.stream, NULL, NULL), 0);
    ck_assert_ptr_nonnull(uva_stream_get_info(f.stream));
    while ((code = uva_stream_take(f.stream, &batch, NULL)) == 0)
        uva_array_release(&batch.data);
    if (code == EAGAIN)
        loop_until(&f.loop, is_ready, &seen);
    loop_settle(&f.loop);
    ck_assert_int_eq(did.ready, code == EAGAIN);
}
END_TEST

/* With the gate closed, no batch follows the third one. */
START_TEST(eagain_means_that_the_function_will_be_called)
{
    int seen = 0;

    f.fake.gate_at = 3;
    f.stream = fixture_blocking(&f);
    start(&(struct uva_window){.batches = 2});
    ck_assert_int_eq(uva_stream_take(f.stream, NULL, NULL), EAGAIN);
    loop_until(&f.loop, is_ready, &seen); /* the schema */
    ck_assert_int_eq(uva_stream_take(f.stream, NULL, NULL), 0);
    while (did.taken < 3) {
        seen = did.ready;
        if (take_all(NULL) == EAGAIN && did.taken < 3)
            loop_until(&f.loop, is_ready, &seen);
    }
    fixture_await_gate(&f);
    seen = did.ready;
    ck_assert_int_eq(take_all(NULL), EAGAIN);
    loop_settle(&f.loop);
    ck_assert_int_eq(did.ready, seen);
    fake_source_open_gate(&f.fake);
    take_to_the_end(NULL);
    ck_assert_int_eq(did.taken, 10);
}
END_TEST

static void on_ready_take(void *ctx)
{
    (void)ctx;
    did.ready++;
    (void)take_all(NULL);
}

/* It is called for the schema, then after the batches that came together or
 * when half a window waits, and for the end. */
START_TEST(the_ready_function_finds_all_that_came_together)
{
    static const struct uva_window windows[] = {{.batches = 0}, {.batches = 6}};
    const struct uva_runtime_options patient = {.turn_us = 60000000};
    struct ArrowDeviceArray arrays[10];
    struct uva_error error = {0};

    fixture_close(&f);
    fixture_open_with(&f, 10, &patient); /* no turn is cut short */
    for (int i = 0; i < 10; i++)
        fake_source_batch(&f.fake, i, &arrays[i]);
    f.stream = fixture_arrays(&f, arrays, 10);
    ck_assert_int_eq(uva_stream_start_take(f.stream, &windows[_i],
                                           on_ready_take, &did, &error),
                     0);
    ck_assert_int_eq(take_all(NULL), EAGAIN);
    loop_settle(&f.loop);
    ck_assert_int_eq(did.taken, 10);
    ck_assert_int_le(did.ready, 4);
}
END_TEST

START_TEST(an_error_follows_the_batches_before_it)
{
    struct uva_outcome outcome;

    f.fake.fail_at = 4;
    f.fake.fail_code = EIO;
    f.fake.fail_text = "broken";
    f.stream = fixture_blocking(&f);
    start(NULL);
    take_to_the_end(&outcome);
    ck_assert_int_eq(outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(outcome.error.code, EIO);
    text_contains(outcome.error.message, "broken");
    ck_assert_int_eq(did.taken, 4);
}
END_TEST

START_TEST(a_cancel_discards_what_waits)
{
    struct uva_outcome outcome;

    f.fake.gate_at = 5;
    f.stream = fixture_blocking(&f);
    start(NULL);
    fixture_await_gate(&f);
    loop_settle(&f.loop);
    uva_stream_cancel(f.stream, ECANCELED, "enough");
    loop_settle(&f.loop);
    ck_assert_int_eq(take_all(&outcome), ENOENT);
    ck_assert_int_eq(did.taken, 0);
    ck_assert_int_eq(outcome.end, UVA_END_CANCELLED);
    text_contains(outcome.error.message, "enough");
}
END_TEST

/* The last reference is released by the function, by a drop, or while the
 * function is due, also after a cancel. */
START_TEST(the_last_release_cancels)
{
    int seen = 0;

    f.fake.gate_at = 0;
    f.stream = fixture_blocking(&f);
    did.releases = true;
    start(NULL);
    ck_assert_int_eq(take_all(NULL), EAGAIN);
    if (_i == 0)
        loop_until(&f.loop, is_ready, &seen); /* the schema has come */
    else if (_i == 1)
        fixture_drop(&f);
    if (_i == 3)
        uva_stream_cancel(f.stream, 0, NULL);
    if (_i > 1)
        fixture_release(&f);
    fake_source_open_gate(&f.fake);
    loop_settle(&f.loop);
    ck_assert_int_eq(did.ready, _i == 0); /* afterwards it is not called */
}
END_TEST

static void *take_elsewhere(void *arg)
{
    struct uva_batch batch;

    *(int *)arg = uva_stream_take(f.stream, &batch, NULL);
    return NULL;
}

START_TEST(only_the_loop_thread_takes)
{
    pthread_t thread;
    int code = 0;

    f.stream = fixture_tasks(&f);
    start(NULL);
    loop_settle(&f.loop);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_elsewhere, &code), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(code, EPERM);
}
END_TEST

/* Once the runtime is closed, any thread may read the outcome. */
START_TEST(after_the_close_any_thread_takes)
{
    pthread_t thread;
    int code = 0;

    f.stream = fixture_tasks(&f);
    start(NULL);
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_elsewhere, &code), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(code, ENOENT);
    ck_assert_int_eq(take_all(NULL), ENOENT);
}
END_TEST

static int64_t batches_at_hand(void)
{
    struct uva_stage_stats stats[2];
    size_t count = 2;

    ck_assert_int_eq(uva_stream_get_stats(f.stream, stats, &count), 0);
    return stats[count - 1].batches - did.taken;
}

/* Without a function the host takes after each turn; it is called by none. */
START_TEST(without_a_function_the_host_takes)
{
    const struct uva_window window = {.batches = 4};
    struct uva_outcome outcome;
    int code;

    f.stream = fixture_sources[_i].make(&f);
    ck_assert_int_eq(uva_stream_start_take(f.stream, &window, NULL, NULL, NULL),
                     0);
    while ((code = take_all(&outcome)) == EAGAIN) {
        loop_turn(&f.loop);
        ck_assert_int_le(batches_at_hand(), 4);
    }
    ck_assert_int_eq(code, ENOENT);
    ck_assert_int_eq(did.taken, 10);
    ck_assert_int_eq(outcome.end, UVA_END_COMPLETE);
}
END_TEST

START_TEST(bad_calls_of_take_are_refused)
{
    struct uva_window window = {.batches = -1};
    struct uva_error error = {0};
    struct uva_batch batch;

    ck_assert_int_eq(uva_stream_take(NULL, &batch, NULL), EINVAL);
    f.stream = uva_stream_from_device_stream(NULL, NULL, NULL);
    ck_assert_int_eq(uva_stream_take(f.stream, &batch, NULL), EINVAL);
    fixture_release(&f);
    f.stream = fixture_tasks(&f);
    fixture_start(&f);
    ck_assert_int_eq(uva_stream_take(f.stream, &batch, NULL), EINVAL);
    ck_assert_int_eq(fixture_await(&f), 0);
    fixture_release(&f);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_take(f.stream, &batch, NULL), EINVAL);
    ck_assert_int_eq(
        uva_stream_start_take(f.stream, &window, on_ready, &did, &error),
        EINVAL);
    text_contains(error.message, "window");
    start(NULL);
    ck_assert_int_eq(
        uva_stream_start_take(f.stream, NULL, on_ready, &did, &error), EBUSY);
    take_to_the_end(NULL);
}
END_TEST

START_TEST(a_stream_may_be_dropped_with_a_batch_in_hand)
{
    struct uva_batch batch;

    f.stream = fixture_tasks(&f);
    start(NULL);
    while (uva_stream_take(f.stream, &batch, NULL) == EAGAIN)
        loop_settle(&f.loop);
    if (_i == 0)
        fixture_drop(&f);
    uva_array_release(&batch.data);
}
END_TEST

/* Makes a stream of two batches of an unknown format. */
static struct uva_stream *strange_stream(void)
{
    struct ArrowDeviceArray batches[2];
    struct ArrowSchema schema;

    fake_source_schema(&f.fake, &schema);
    schema.children[0]->format = "?";
    for (int i = 0; i < 2; i++)
        fake_source_batch(&f.fake, i, &batches[i]);
    return uva_stream_from_arrays(f.loop.runtime, &schema, batches, 2);
}

/* They fit into a window of one byte. */
START_TEST(batches_of_an_unknown_size_count_nothing)
{
    struct uva_outcome outcome;

    f.stream = strange_stream();
    start(&(struct uva_window){.bytes = 1});
    take_to_the_end(&outcome);
    ck_assert_int_eq(outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(did.taken, 2);
}
END_TEST

/* The source has eight batches ready, and the window eight places. The first
 * batch shows how many fit by their size. */
START_TEST(a_window_of_bytes_counts_what_it_has_requested)
{
    struct uva_outcome outcome;

    f.fake.gate_at = 8;
    f.stream = fixture_blocking(&f);
    start(&(struct uva_window){.batches = 8, .bytes = _i * f.fake.rows * 8});
    fixture_await_gate(&f);
    loop_settle(&f.loop);
    ck_assert_int_eq(take_all(NULL), EAGAIN);
    ck_assert_int_eq(did.taken, _i);
    fake_source_open_gate(&f.fake);
    take_to_the_end(&outcome);
    ck_assert_int_eq(outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(did.taken, 10);
}
END_TEST

/* ---- collecting --------------------------------------------------------- */

static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t count,
                         const struct uva_outcome *outcome)
{
    ck_assert_ptr_eq(ctx, &did);
    ck_assert_int_eq(did.collected++, 0);
    did.count = count;
    did.outcome = *outcome;
    if (count == 0)
        return;
    ck_assert_ptr_nonnull(info->schema);
    uva_array_move(&batches[0], &did.kept);
    for (size_t i = 1; i < count; i++)
        ck_assert_int_eq(
            ((const int64_t *)batches[i].array.children[0]->buffers[1])[0],
            (int64_t)i * 10);
}

static bool is_collected(void *ctx)
{
    (void)ctx;
    return did.collected > 0;
}

static void collect(int64_t max_bytes)
{
    struct uva_error error = {0};

    ck_assert_int_eq(
        uva_stream_collect(f.stream, max_bytes, on_collected, &did, &error), 0);
    loop_until(&f.loop, is_collected, NULL);
}

START_TEST(what_waits_at_a_close_can_still_be_taken)
{
    struct uva_outcome outcome;

    f.stream = fixture_sources[_i].make(&f);
    start(NULL);
    loop_settle(&f.loop);
    ck_assert_int_eq(uva_stream_status(f.stream, NULL), 0);
    loop_close_runtime(&f.loop, UVA_FOREVER);
    ck_assert_int_eq(take_all(&outcome), ENOENT);
    ck_assert_int_eq(did.taken, 10);
    ck_assert_int_eq(outcome.end, UVA_END_COMPLETE);
}
END_TEST

START_TEST(all_batches_are_collected)
{
    fixture_close(&f);
    fixture_open(&f, 40); /* more than there is room for at first */
    f.stream = fixture_sources[_i].make(&f);
    collect(_i % 2 == 0 ? 0 : INT64_MAX);
    ck_assert_uint_eq(did.count, 40);
    ck_assert_int_eq(did.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(did.outcome.batches, 40);
}
END_TEST

START_TEST(what_is_too_large_is_rejected)
{
    f.stream = fixture_tasks(&f);
    collect(f.fake.rows * 8 * 3);
    ck_assert_uint_eq(did.count, 0);
    ck_assert_int_eq(did.outcome.end, UVA_END_REJECTED);
    ck_assert_int_eq(did.outcome.error.code, EMSGSIZE);
    text_contains(did.outcome.error.message, "max_bytes");
}
END_TEST

START_TEST(what_has_an_unknown_size_is_collected)
{
    f.stream = strange_stream();
    collect(1);
    ck_assert_uint_eq(did.count, 2);
    ck_assert_int_eq(did.outcome.end, UVA_END_COMPLETE);
}
END_TEST

START_TEST(a_runtime_that_drains_starts_neither)
{
    struct uva_error error = {0};
    int code;

    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_runtime_drain(f.loop.runtime, UVA_FOREVER, NULL, NULL),
                     0);
    code = _i == 0
               ? uva_stream_start_take(f.stream, NULL, on_ready, &did, &error)
               : uva_stream_collect(f.stream, 0, on_collected, &did, &error);
    ck_assert_int_eq(code, ESHUTDOWN);
    ck_assert_str_eq(error.message, "the runtime is draining");
}
END_TEST

START_TEST(a_stream_that_fails_gives_no_batch)
{
    f.fake.fail_at = 4;
    f.fake.fail_code = EIO;
    f.stream = fixture_blocking(&f);
    collect(0);
    ck_assert_uint_eq(did.count, 0);
    ck_assert_int_eq(did.outcome.error.code, EIO);
}
END_TEST

START_TEST(a_collected_stream_may_be_cancelled_or_dropped)
{
    struct uva_error error = {0};

    f.fake.gate_at = 2;
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(
        uva_stream_collect(f.stream, 0, on_collected, &did, &error), 0);
    fixture_await_gate(&f);
    if (_i == 0) {
        uva_stream_cancel(f.stream, ETIMEDOUT, "late");
        loop_until(&f.loop, is_collected, NULL);
        ck_assert_int_eq(did.outcome.error.code, ETIMEDOUT);
    } else {
        fixture_drop(&f);
    }
    fake_source_open_gate(&f.fake);
    loop_settle(&f.loop);
    ck_assert_int_eq(did.collected, 1 - _i);
}
END_TEST

START_TEST(bad_calls_of_collect_are_refused)
{
    struct uva_error error = {0};

    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_collect(f.stream, 0, NULL, NULL, &error),
                     EINVAL);
    ck_assert_int_eq(
        uva_stream_collect(f.stream, -1, on_collected, &did, &error), EINVAL);
    text_contains(error.message, "max_bytes");
    ck_assert_int_eq(uva_stream_collect(NULL, 0, on_collected, &did, &error),
                     EINVAL);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("take");

    suite_add_loops(tests, 0, 4 * FIXTURE_SOURCES,
                    every_batch_is_taken_and_then_the_outcome, NULL);
    suite_add_loops(tests, 0, FIXTURE_SOURCES, all_batches_are_collected,
                    what_waits_at_a_close_can_still_be_taken,
                    without_a_function_the_host_takes, NULL);
    suite_add_loops(tests, 1, 5, a_window_of_bytes_counts_what_it_has_requested,
                    NULL);
    suite_add_loops(tests, 0, 4, the_last_release_cancels, NULL);
    suite_add_loops(tests, 0, 2,
                    the_ready_function_finds_all_that_came_together,
                    a_stream_may_be_dropped_with_a_batch_in_hand,
                    a_runtime_that_drains_starts_neither,
                    a_collected_stream_may_be_cancelled_or_dropped, NULL);
    suite_add(tests, the_ready_function_is_called_once_after_each_eagain,
              eagain_means_that_the_function_will_be_called,
              an_error_follows_the_batches_before_it,
              a_cancel_discards_what_waits, only_the_loop_thread_takes,
              after_the_close_any_thread_takes, bad_calls_of_take_are_refused,
              what_is_too_large_is_rejected, a_stream_that_fails_gives_no_batch,
              bad_calls_of_collect_are_refused,
              batches_of_an_unknown_size_count_nothing,
              what_has_an_unknown_size_is_collected, NULL);
    return suite_main("take", set_up, tear_down, tests, NULL);
}
