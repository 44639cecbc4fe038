/* SPDX-License-Identifier: Apache-2.0 */
/* tee: the batches of each branch, its fate when it is slow, is not started, or
 * ends, and the memory that its batches hold. A branch has its own consumer; a
 * pusher is the source where the test decides when batches come. Each batch has
 * its own length. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "stage/limit.h"
#include "stream/stream_impl.h"
#include "support/asking.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/metadata_source.h"
#include "support/plain_tree.h"

enum { BRANCHES = 3, POLICIES = UVA_SLOW_FAIL + 1 };

static struct loop_fixture loop;
static struct recording_consumer consumers[BRANCHES];
static struct uva_stream *streams[BRANCHES]; /* 0: the first branch */
static struct uva_tee options;
static struct uva_pusher *pusher; /* NULL once closed */
static bool gone;                 /* on_closed was called */

/* ---- the fixture -------------------------------------------------------- */

static void set_up_with(const struct uva_runtime_options *with)
{
    for (int i = 0; i < BRANCHES; i++) {
        recording_init(&consumers[i]);
        consumers[i].transcribes = true;
    }
    loop_open_with(&loop, with);
    options = (struct uva_tee){0};
    gone = false;
}

static void set_up(void)
{
    set_up_with(&(struct uva_runtime_options){0});
}

static void push_end(int code, const char *text, const char *metadata)
{
    struct uva_error error;

    if (pusher != NULL)
        uva_pusher_close(pusher,
                         uva_error_set(&error, code, "%s", text) != 0 ? &error
                                                                      : NULL,
                         metadata);
    pusher = NULL;
}

static void tear_down(void)
{
    push_end(0, "", NULL);
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

static void on_closed(void *ctx, struct uva_pusher *closed)
{
    (void)closed;
    *(bool *)ctx = true;
}

static void open_pusher(void)
{
    const struct uva_push_source source = {.on_closed = on_closed,
                                           .ctx = &gone};
    struct ArrowSchema schema;

    batch_schema(&schema);
    streams[0] = uva_stream_from_pusher(loop.runtime, &source, &pusher);
    ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
}

/* Pushes batches with the lengths from `first` to `last`. */
static void push(int64_t first, int64_t last)
{
    struct ArrowDeviceArray array;

    for (; first <= last; first++) {
        batch_make(&array, first);
        ck_assert_int_eq(uva_pusher_push(pusher, &array, NULL, 0), 0);
    }
    loop_settle(&loop);
}

static struct uva_stream *stream_of(int count)
{
    struct ArrowDeviceArray arrays[256];
    struct ArrowSchema schema;

    batch_schema(&schema);
    for (int i = 0; i < count; i++)
        batch_make(&arrays[i], i + 1);
    return uva_stream_from_arrays(loop.runtime, &schema, arrays, (size_t)count);
}

/* Sets the windows of all branches. */
static void set_windows(int32_t batches)
{
    options.first.batches = options.window.batches = batches;
}

/* Adds the branches up to `count`. */
static void branch(int count)
{
    for (int i = 1; i < count; i++) {
        streams[i] = uva_stream_tee(streams[0], &options);
        ck_assert_int_eq(uva_stream_status(streams[i], NULL), 0);
    }
}

static void start(int i)
{
    recording_consume(&consumers[i], streams[i]);
}

/* Starts branch `i`, which takes only `n` batches before it is fed. */
static void start_slow(int i, int64_t n)
{
    consumers[i].appetite = n;
    recording_start(&consumers[i], streams[i]);
}

static void shows(int i, const char *transcript)
{
    loop_settle(&loop);
    ck_assert_str_eq(consumers[i].transcript, transcript);
}

static void ends(int i, enum uva_end end, int code, const char *text,
                 const char *transcript)
{
    recording_await_done(&consumers[i], &loop);
    recording_ended(&consumers[i], end, code, text);
    ck_assert_str_eq(consumers[i].transcript, transcript);
}

static void completes(int i, const char *transcript)
{
    ends(i, UVA_END_COMPLETE, 0, NULL, transcript);
}

static int64_t dropped(int i)
{
    struct uva_stage_stats stages[4];
    size_t count = 4;

    ck_assert_int_eq(uva_stream_get_stats(streams[i], stages, &count), 0);
    ck_assert_uint_ge(count, 1);
    return stages[count - 1].dropped;
}

/* ---- the batches of each branch ----------------------------------------- */

START_TEST(every_branch_gets_all_batches)
{
    options.slow = (enum uva_slow)_i;
    streams[0] = stream_of(5);
    branch(BRANCHES);
    for (int i = BRANCHES - 1; i >= 0; i--)
        start(i);
    for (int i = 0; i < BRANCHES; i++) {
        completes(i, "schema 1 2 3 4 5 complete");
        ck_assert(consumers[i].in_order);
    }
}
END_TEST

START_TEST(an_empty_stream_ends_every_branch)
{
    streams[0] = stream_of(0);
    branch(2);
    start(0);
    start(1);
    completes(0, "schema complete");
    completes(1, "schema complete");
}
END_TEST

static int pass(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

/* A stage after the first tee: the second one is a separate tee. */
START_TEST(stages_belong_to_one_branch)
{
    const struct uva_map map = {.batch = pass, .on_loop = _i == 0};

    streams[0] = stream_of(5);
    streams[1] = uva_stream_tee(streams[0], NULL);
    if (_i == 2)
        (void)uva__stream_limit(streams[0], 2);
    else
        (void)uva_stream_map(streams[0], &map);
    streams[2] = uva_stream_tee(streams[0], NULL);
    (void)uva__stream_limit(streams[2], 1);
    for (int i = 0; i < BRANCHES; i++)
        start(i);
    completes(0, _i == 2 ? "schema 1 2 complete" : "schema 1 2 3 4 5 complete");
    completes(1, "schema 1 2 3 4 5 complete");
    completes(2, "schema 1 complete");
}
END_TEST

/* The new branch is a stream like any: a tee of it is another tee. */
START_TEST(a_branch_may_be_teed)
{
    streams[0] = stream_of(5);
    branch(2);
    streams[2] = uva_stream_tee(streams[1], NULL);
    for (int i = 0; i < BRANCHES; i++)
        start(i);
    for (int i = 0; i < BRANCHES; i++)
        completes(i, "schema 1 2 3 4 5 complete");
}
END_TEST

/* A branch is added when another one runs already: it begins where the first
 * branch is. */
START_TEST(a_branch_may_be_added_later)
{
    open_pusher();
    branch(2);
    start(1);
    push(1, 3);
    shows(1, "schema 1 2 3");
    streams[2] = uva_stream_tee(streams[0], &options);
    start(0);
    start(2);
    push(4, 4);
    push_end(0, "", NULL);
    for (int i = 0; i < BRANCHES; i++)
        completes(i, "schema 1 2 3 4 complete");
}
END_TEST

START_TEST(branches_may_be_merged_again)
{
    streams[0] = stream_of(5);
    branch(2);
    ck_assert_int_eq(uva_stream_merge(streams[0], &streams[1], 1, NULL), 0);
    start(0);
    recording_await_done(&consumers[0], &loop);
    recording_ended(&consumers[0], UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(consumers[0].taken, 10);
    ck_assert_int_eq(atomic_load(&consumers[0].rows), 30);
}
END_TEST

static const void *data[BRANCHES]; /* of the last batch of each branch */
static struct ArrowDeviceArray kept;

static void note_buffer(struct recording_consumer *c, struct uva_batch *batch)
{
    data[c - consumers] = batch->data.array.buffers[1];
    if (c == &consumers[0])
        uva_array_move(&batch->data, &kept);
}

START_TEST(data_is_shared_and_outlives_the_other_branches)
{
    int live;

    open_pusher();
    branch(BRANCHES);
    for (int i = 0; i < BRANCHES; i++) {
        consumers[i].on_batch = note_buffer;
        start(i);
    }
    loop_settle(&loop);
    live = plain_live(); /* of the schema */
    push(7, 7);
    ck_assert_ptr_nonnull(data[0]);
    ck_assert_ptr_eq(data[1], data[0]);
    ck_assert_ptr_eq(data[2], data[0]);
    ck_assert_int_eq(plain_live(), live + 1);
    push_end(0, "", NULL);
    for (int i = 0; i < BRANCHES; i++)
        completes(i, "schema 7 complete");
    ck_assert_int_eq(kept.array.length, 7);
    ck_assert_int_eq(plain_live(), 1);
    uva_array_release(&kept);
}
END_TEST

START_TEST(metadata_of_batches_is_kept)
{
    const struct uva_pair pair[] = {{.key = "k", .value = "v"}, {0}};
    struct ArrowDeviceArray array;
    char metadata[64];
    size_t size = sizeof(metadata);

    ck_assert_int_eq(uva_metadata_encode(pair, metadata, &size), 0);
    open_pusher();
    branch(2);
    start(0);
    start(1);
    batch_make(&array, 11);
    ck_assert_int_eq(uva_pusher_push(pusher, &array, metadata, 0), 0);
    push_end(0, "", NULL);
    for (int i = 0; i < 2; i++) {
        completes(i, "schema 11 complete");
        ck_assert_int_eq(consumers[i].metadata_size, size);
        ck_assert_mem_eq(consumers[i].metadata, metadata, size);
    }
}
END_TEST

START_TEST(expensive_batches_are_extracted_by_workers)
{
    streams[0] = stream_of(5);
    (void)uva_stream_map(streams[0], &(struct uva_map){.batch = pass});
    branch(2);
    start(0);
    start(1);
    completes(0, "schema 1 2 3 4 5 complete");
    completes(1, "schema 1 2 3 4 5 complete");
}
END_TEST

/* Data that the host cannot read, where the stream has been made ready. */
START_TEST(a_branch_accepts_device_data_as_its_stream_does)
{
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;

    batch_schema(&schema);
    batch_make(&array, 3);
    array.device_type = ARROW_DEVICE_CUDA;
    streams[0] = uva_stream_from_arrays(loop.runtime, &schema, &array, 1);
    if (_i == 1)
        ck_assert_int_eq(uva_stream_ready(streams[0], NULL), 0);
    branch(2);
    for (int i = 0; i < 2; i++) {
        start(i);
        recording_await_done(&consumers[i], &loop);
        ck_assert_int_eq(consumers[i].outcome.end,
                         _i == 1 ? UVA_END_COMPLETE : UVA_END_FAILED);
        if (_i == 0 && i == 0)
            ck_assert_int_eq(consumers[i].outcome.error.code, ENOTSUP);
    }
}
END_TEST

/* ---- slow branches ------------------------------------------------------ */

/* Of ten tees in a row with a window of one batch, each moves one batch for a
 * demand of one. */
static int64_t passed;

static int count_pass(void *ctx, struct uva_batch *in,
                      struct ArrowDeviceArray *out, struct uva_error *error)
{
    passed++;
    return pass(ctx, in, out, error);
}

static struct asking asking[11]; /* of ten branches and the first */

static void on_next(void *ctx, struct uva_batch *batch,
                    const struct uva_outcome *outcome)
{
    ck_assert_ptr_nonnull(batch);
    ck_assert_ptr_null(outcome);
    ++*(int *)ctx;
}

START_TEST(ten_tees_move_what_is_requested)
{
    struct uva_stream *others[10];
    int answers = 0;

    options.slow = _i == 1 ? UVA_SLOW_DROP_NEW : UVA_SLOW_WAIT;
    set_windows(1);
    streams[0] = stream_of(20);
    (void)uva_stream_map(
        streams[0], &(struct uva_map){.batch = count_pass, .on_loop = true});
    (void)uva_stream_parallel(streams[0],
                              &(struct uva_parallel){.window.batches = 1});
    passed = 0;
    for (int i = 0; i < 10; i++) {
        others[i] = uva_stream_tee(streams[0], &options);
        if (_i == 2) /* the next one is a separate tee */
            (void)uva__stream_limit(streams[0], 20);
    }
    for (int n = 1; n <= 3; n++) {
        ck_assert_int_eq(
            asking_next(&asking[10], streams[0], on_next, &answers), 0);
        for (int i = 0; i < 10 && _i != 1; i++) {
            loop_settle(&loop);
            ck_assert_int_eq(passed, n - 1);
            ck_assert_int_eq(
                asking_next(&asking[i], others[i], on_next, &answers), 0);
        }
        while (answers < (_i == 1 ? 1 : 11) * n)
            loop_settle(&loop);
        ck_assert_int_eq(passed, n);
    }
    for (int i = 0; i < 10; i++)
        uva_stream_drop(others[i]);
    uva_stream_drop(streams[0]);
}
END_TEST

/* Its window is of four batches, and more are requested when two are left. */
START_TEST(a_slow_branch_holds_up_the_others)
{
    const int slow = _i;

    (slow == 0 ? &options.first : &options.window)->batches = 4;
    open_pusher();
    branch(2);
    start_slow(slow, 1);
    start(1 - slow);
    push(1, 9);
    shows(slow, "schema 1");
    shows(1 - slow, "schema 1 2 3 4");
    recording_feed(&consumers[slow], 1);
    loop_settle(&loop);
    recording_feed(&consumers[slow], 20);
    push_end(0, "", NULL);
    completes(0, "schema 1 2 3 4 5 6 7 8 9 complete");
    completes(1, "schema 1 2 3 4 5 6 7 8 9 complete");
    uva_stream_release(streams[slow]);
}
END_TEST

/* The stream is a branch already, with a window of four batches. */
START_TEST(a_later_branch_leaves_the_window_of_the_first_one)
{
    options.first.batches = 4;
    open_pusher();
    branch(2);
    options.first.batches = 2;
    streams[2] = uva_stream_tee(streams[0], &options);
    start_slow(0, 1);
    start(1);
    start(2);
    push(1, 9);
    shows(1, "schema 1 2 3 4");
    recording_feed(&consumers[0], 20);
    push_end(0, "", NULL);
    for (int i = 0; i < BRANCHES; i++)
        completes(i, "schema 1 2 3 4 5 6 7 8 9 complete");
    uva_stream_release(streams[0]);
}
END_TEST

/* The extraction on a worker has the larger window, so that the branch which
 * loses batches does not slow down the other one. */
START_TEST(a_small_window_is_that_of_the_new_branch_alone)
{
    struct uva_stage_stats stages[4];
    size_t count = 4;

    options.slow = UVA_SLOW_DROP_OLD;
    options.window = (struct uva_window){.batches = 1, .bytes = 1};
    streams[0] = stream_of(100);
    (void)uva_stream_map(streams[0], &(struct uva_map){.batch = pass});
    branch(2);
    start_slow(0, 1);
    start_slow(1, 1);
    loop_settle(&loop);
    ck_assert_int_eq(uva_stream_get_stats(streams[0], stages, &count), 0);
    ck_assert_str_eq(stages[count - 1].name, "tee");
    while (stages[count - 1].queued < 60) {
        loop_settle(&loop);
        ck_assert_int_eq(uva_stream_get_stats(streams[0], stages, &count), 0);
    }
    recording_feed(&consumers[0], 100);
    recording_feed(&consumers[1], 100);
    for (int i = 0; i < 2; i++) {
        recording_await_done(&consumers[i], &loop);
        recording_ended(&consumers[i], UVA_END_COMPLETE, 0, NULL);
        uva_stream_release(streams[i]);
    }
    ck_assert_int_eq(consumers[0].taken, 100);
    ck_assert_int_lt(consumers[1].taken, 100);
}
END_TEST

START_TEST(a_branch_that_is_not_started_is_slow)
{
    const int late = _i;

    set_windows(4);
    open_pusher();
    branch(2);
    start(1 - late);
    push(1, 9);
    shows(1 - late, "schema 1 2 3");
    start(late);
    push_end(0, "", NULL);
    completes(0, "schema 1 2 3 4 5 6 7 8 9 complete");
    completes(1, "schema 1 2 3 4 5 6 7 8 9 complete");
}
END_TEST

START_TEST(a_branch_may_be_started_after_the_end)
{
    streams[0] = stream_of(3);
    branch(2);
    start(_i);
    completes(_i, "schema 1 2 3 complete");
    loop_settle(&loop);
    start(1 - _i);
    completes(1 - _i, "schema 1 2 3 complete");
}
END_TEST

/* Six batches come. Branch 1 takes one of them, if it is started before, and
 * its window holds two. */
static void fall_behind(enum uva_slow slow, bool started)
{
    options.slow = slow;
    set_windows(2);
    open_pusher();
    branch(2);
    start(0);
    if (started)
        start_slow(1, 1);
    push(1, 6);
    shows(0, "schema 1 2 3 4 5 6");
}

static void catch_up(bool started)
{
    if (!started)
        start_slow(1, 0);
    recording_feed(&consumers[1], 9);
}

/* One more batch comes. */
static void go_on_to_the_end(void)
{
    push(7, 7);
    push_end(0, "", NULL);
    completes(0, "schema 1 2 3 4 5 6 7 complete");
}

START_TEST(new_batches_are_dropped)
{
    fall_behind(UVA_SLOW_DROP_NEW, _i == 0);
    ck_assert_int_eq(dropped(1), _i == 0 ? 3 : 4);
    ck_assert_int_eq(dropped(0), 0);
    catch_up(_i == 0);
    loop_settle(&loop);
    go_on_to_the_end();
    completes(1, _i == 0 ? "schema 1 2 3 7 complete" : "schema 1 2 7 complete");
    ck_assert_int_eq(consumers[1].ordinal, 6);
    uva_stream_release(streams[1]);
}
END_TEST

START_TEST(old_batches_are_dropped)
{
    fall_behind(UVA_SLOW_DROP_OLD, _i == 0);
    ck_assert_int_eq(dropped(1), _i == 0 ? 3 : 4);
    catch_up(_i == 0);
    loop_settle(&loop);
    go_on_to_the_end();
    completes(1, _i == 0 ? "schema 1 5 6 7 complete" : "schema 5 6 7 complete");
    uva_stream_release(streams[1]);
}
END_TEST

START_TEST(a_branch_that_is_too_slow_fails)
{
    fall_behind(UVA_SLOW_FAIL, _i == 0);
    catch_up(_i == 0);
    ends(1, UVA_END_FAILED, EOVERFLOW, "too slow",
         _i == 0 ? "schema 1 2 3 failed" : "schema 1 2 failed");
    ck_assert_int_eq(dropped(0), 0);
    go_on_to_the_end();
    uva_stream_release(streams[1]);
}
END_TEST

/* The fastest of the branches that may lose batches decides. */
START_TEST(without_a_branch_that_waits_the_fastest_one_decides)
{
    options.slow = (enum uva_slow)_i;
    set_windows(2);
    open_pusher();
    branch(3);
    uva_stream_release(streams[0]);
    start_slow(1, 0);
    start_slow(2, 0);
    push(1, 4);
    ck_assert_int_eq(dropped(1), 0);
    recording_feed(&consumers[2], 9);
    push_end(0, "", NULL);
    completes(2, "schema 1 2 3 4 complete");
    recording_feed(&consumers[1], 9);
    recording_await_done(&consumers[1], &loop);
    ck_assert_int_lt(consumers[1].taken, 4);
    uva_stream_release(streams[1]);
    uva_stream_release(streams[2]);
}
END_TEST

/* They were requested for a branch that has ended before they come, and the
 * other branch is full. */
START_TEST(batches_that_no_branch_takes_are_dropped)
{
    options.slow = UVA_SLOW_DROP_NEW;
    set_windows(2);
    open_pusher();
    branch(3);
    uva_stream_release(streams[0]);
    start_slow(1, 1);
    start_slow(2, -1);
    push(1, 4);
    shows(2, "schema 1 2 3 4");
    uva_stream_cancel(streams[2], 0, "no more");
    ends(2, UVA_END_CANCELLED, ECANCELED, "no more",
         "schema 1 2 3 4 cancelled");
    ck_assert_int_eq(dropped(1), 1);
    push(5, 7);
    ck_assert_int_eq(dropped(1), 3);
    recording_feed(&consumers[1], 9);
    push(8, 8);
    push_end(0, "", NULL);
    recording_await_done(&consumers[1], &loop);
    ck_assert_int_eq(consumers[1].ordinal, 7);
    uva_stream_release(streams[1]);
    uva_stream_release(streams[2]);
}
END_TEST

/* Batches of up to 30 bytes and a window of 40: two of them fit. */
START_TEST(a_window_is_filled_by_bytes_too)
{
    options.slow = (enum uva_slow)_i;
    set_windows(100);
    options.first.bytes = options.window.bytes = 40;
    open_pusher();
    branch(2);
    start(0);
    push(27, 30);
    if (_i == UVA_SLOW_WAIT) {
        shows(0, "schema 27");
        ck_assert_int_eq(dropped(1), 0);
    } else {
        shows(0, "schema 27 28 29 30");
        ck_assert_int_eq(dropped(1), 2);
    }
    start(1);
    push_end(0, "", NULL);
    completes(0, "schema 27 28 29 30 complete");
    completes(1, _i == UVA_SLOW_WAIT       ? "schema 27 28 29 30 complete"
                 : _i == UVA_SLOW_DROP_NEW ? "schema 27 28 complete"
                                           : "schema 29 30 complete");
}
END_TEST

/* ---- branches that leave ------------------------------------------------ */

static void *release(void *stream)
{
    uva_stream_release(stream);
    return NULL;
}

/* Before the other branch starts, or while that waits; by this thread or by
 * another one. */
START_TEST(a_branch_that_is_released_unstarted_leaves)
{
    const int leaver = _i % 2;
    const bool late = _i / 2 % 2 == 1, elsewhere = _i / 4 == 1;
    pthread_t thread;

    set_windows(2);
    open_pusher();
    branch(2);
    if (late) {
        start(1 - leaver);
        push(1, 5);
        shows(1 - leaver, "schema 1");
    }
    if (elsewhere) {
        ck_assert_int_eq(
            pthread_create(&thread, NULL, release, streams[leaver]), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
    } else {
        uva_stream_release(streams[leaver]);
    }
    if (!late) {
        start(1 - leaver);
        push(1, 5);
    }
    shows(1 - leaver, "schema 1 2 3 4 5");
    push_end(0, "", NULL);
    completes(1 - leaver, "schema 1 2 3 4 5 complete");
}
END_TEST

START_TEST(a_tee_that_is_not_started_is_released)
{
    open_pusher();
    branch(BRANCHES);
    for (int i = 0; i < BRANCHES; i++)
        uva_stream_release(streams[(i + _i) % BRANCHES]);
    loop_settle(&loop);
    ck_assert(gone);
}
END_TEST

/* The last branch that is left is released before it starts. */
START_TEST(the_source_is_cancelled_when_the_last_branch_leaves)
{
    open_pusher();
    branch(2);
    start(_i);
    push(1, 1);
    uva_stream_cancel(consumers[_i].stream, 0, "no more");
    ends(_i, UVA_END_CANCELLED, ECANCELED, "no more", "schema 1 cancelled");
    loop_settle(&loop);
    ck_assert(!gone);
    uva_stream_release(streams[1 - _i]);
    loop_settle(&loop);
    ck_assert(gone);
}
END_TEST

static void end_branch(int way, int i)
{
    if (way == 0)
        uva_stream_cancel(streams[i], EPERM, "no more");
    if (way == 1) {
        consumers[i].silent = true;
        uva_stream_drop(uva_stream_acquire(streams[i]));
    }
}

/* One branch is cancelled, dropped, or rejected; then the other one. */
START_TEST(each_branch_ends_alone)
{
    static const char *const transcripts[] = {"schema 1 cancelled", "schema 1",
                                              "schema 1 2 rejected"};
    const int way = _i / 2, first = _i % 2;

    open_pusher();
    branch(2);
    for (int i = 0; i < 2; i++) {
        if (way == 2) {
            consumers[i].batch_code = EDOM;
            consumers[i].batch_from = i == first ? 1 : 2;
        }
        recording_start(&consumers[i], streams[i]);
    }
    push(1, 1);
    end_branch(way, first);
    push(2, 2);
    if (way == 2) /* the batch that it rejects is not taken */
        shows(first, "schema 1 rejected");
    else
        shows(first, transcripts[way]);
    shows(1 - first, "schema 1 2");
    ck_assert(!gone);
    end_branch(way, 1 - first);
    push(3, 3);
    loop_settle(&loop);
    ck_assert(gone);
    for (int i = 0; i < 2; i++)
        uva_stream_release(streams[i]);
}
END_TEST

START_TEST(a_branch_may_refuse_the_schema)
{
    consumers[_i].schema_code = EDOM;
    streams[0] = stream_of(3);
    branch(2);
    start(0);
    start(1);
    ends(_i, UVA_END_REJECTED, EDOM, "refused", "schema rejected");
    completes(1 - _i, "schema 1 2 3 complete");
}
END_TEST

START_TEST(a_cancel_may_come_before_any_schema)
{
    streams[0] = uva_stream_from_pusher(loop.runtime, NULL, &pusher);
    branch(2);
    for (int i = 0; i < 2; i++)
        start(i);
    loop_settle(&loop);
    for (int i = 0; i < 2; i++)
        uva_stream_cancel(consumers[i].stream, 0, "no more");
    for (int i = 0; i < 2; i++)
        ends(i, UVA_END_CANCELLED, ECANCELED, "no more", "cancelled");
}
END_TEST

/* Batches that wait are released. */
START_TEST(a_slow_branch_may_be_cancelled)
{
    open_pusher();
    branch(2);
    start_slow(1, 0);
    start(0);
    push(1, 5);
    ck_assert_int_eq(plain_live(), 1 + 5); /* the schema is one */
    uva_stream_cancel(streams[1], 0, "no more");
    ends(1, UVA_END_CANCELLED, ECANCELED, "no more", "schema cancelled");
    ck_assert_int_eq(plain_live(), 1);
    push(6, 6);
    push_end(0, "", NULL);
    completes(0, "schema 1 2 3 4 5 6 complete");
    uva_stream_release(streams[1]);
}
END_TEST

/* A branch that was cancelled before it started cannot be started. */
START_TEST(a_cancelled_branch_holds_up_others_until_it_is_released)
{
    struct uva_consumer table;

    set_windows(1);
    open_pusher();
    branch(2);
    uva_stream_cancel(streams[1], 0, "no more");
    table = recording_table(&consumers[1]);
    ck_assert_int_eq(uva_stream_for_each(streams[1], &table, NULL), ECANCELED);
    start(0);
    push(1, 2);
    shows(0, "schema");
    uva_stream_release(streams[1]);
    push_end(0, "", NULL);
    completes(0, "schema 1 2 complete");
}
END_TEST

/* ---- failures ----------------------------------------------------------- */

START_TEST(a_failure_ends_every_branch_behind_its_batches)
{
    const struct uva_pair pair[] = {{.key = "k", .value = "v"}, {0}};
    char metadata[64];
    size_t size = sizeof(metadata);

    ck_assert_int_eq(uva_metadata_encode(pair, metadata, &size), 0);
    open_pusher();
    branch(BRANCHES);
    start(0);
    start_slow(1, 1);
    push(1, 3);
    push_end(EDOM, "no good", metadata);
    ends(0, UVA_END_FAILED, EDOM, "no good", "schema 1 2 3 failed");
    start(2); /* late */
    recording_feed(&consumers[1], 9);
    for (int i = 1; i < BRANCHES; i++)
        ends(i, UVA_END_FAILED, EDOM, "no good", "schema 1 2 3 failed");
    for (int i = 0; i < BRANCHES; i++) {
        ck_assert_int_eq(consumers[i].metadata_size, size);
        ck_assert_mem_eq(consumers[i].metadata, metadata, size);
    }
    uva_stream_release(streams[1]);
}
END_TEST

START_TEST(a_failure_may_come_before_any_schema)
{
    streams[0] = uva_stream_from_pusher(loop.runtime, NULL, &pusher);
    branch(2);
    start(0);
    push_end(EDOM, "no schema", NULL);
    start(1);
    ends(0, UVA_END_FAILED, EDOM, "no schema", "failed");
    ends(1, UVA_END_FAILED, EDOM, "no schema", "failed");
}
END_TEST

static int fail_map(void *ctx, struct uva_batch *in,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    if (in->ordinal == 2) {
        (void)uva_error_set(error, ERANGE, "lost");
        error->vendor = "db";
        error->vendor_code = 7;
        return ERANGE;
    }
    return pass(ctx, in, out, error);
}

/* On the loop thread, and on a worker. */
START_TEST(an_extraction_may_fail)
{
    streams[0] = stream_of(5);
    (void)uva_stream_map(
        streams[0], &(struct uva_map){.batch = fail_map, .on_loop = _i == 0});
    branch(2);
    start(0);
    start(1);
    for (int i = 0; i < 2; i++) {
        ends(i, UVA_END_FAILED, ERANGE, "lost", "schema 1 2 failed");
        ck_assert_str_eq(consumers[i].outcome.error.vendor, "db");
        ck_assert_int_eq(consumers[i].outcome.error.vendor_code, 7);
    }
}
END_TEST

/* Starts both branches, as far as there is memory. */
static void start_what_can(void)
{
    for (int i = 0; i < 2; i++) {
        struct uva_consumer table = recording_table(&consumers[i]);

        consumers[i].transcribes = false;
        consumers[i].on_batch = metadata_source_seen;
        if (uva_stream_for_each(streams[i], &table, NULL) == 0)
            consumers[i].stream = streams[i];
        else
            uva_stream_release(streams[i]);
    }
    for (int i = 0; i < 2; i++)
        if (consumers[i].stream != NULL) {
            recording_await_done(&consumers[i], &loop);
            uva_stream_release(streams[i]);
        }
}

/* Each allocation may fail: the metadata of the first schema, a copy of the
 * schema, the part of a batch... A branch that does not fail gets all. */
START_TEST(without_memory_a_branch_fails_and_the_other_goes_on)
{
    int alone = 0;
    bool whole = false;

    for (long fail_at = 1; !whole; fail_at++) {
        struct uva_stream *three = stream_of(3);

        for (int i = 0; i < 2; i++)
            recording_init(&consumers[i]);
        loop_fail(&loop, fail_at);
        streams[0] = metadata_source(loop.runtime, three);
        streams[1] = uva_stream_tee(streams[0], NULL);
        start_what_can();
        for (int i = 0; i < 2; i++) {
            const struct recording_consumer *c = &consumers[i];

            if (atomic_load(&c->done) == 0)
                continue;
            if (c->outcome.end == UVA_END_COMPLETE)
                ck_assert_int_eq(c->taken, 3);
            else
                ck_assert_int_eq(c->outcome.error.code, ENOMEM);
        }
        alone += consumers[0].taken != consumers[1].taken;
        whole = !faulty_allocator_has_failed(&loop.memory);
        loop_fail(&loop, 0);
        loop_close(&loop); /* the next one asks for as many blocks again */
        loop_open(&loop);
    }
    for (int i = 0; i < 2; i++)
        recording_ended(&consumers[i], UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_gt(alone, 2);
}
END_TEST

/* A batch with an impossible tree of children goes to one branch alone. */
static void break_child(void *ctx, struct ArrowDeviceArray *array)
{
    (void)ctx;
    array->array.n_children = 1;
    array->array.children = NULL;
}

static int break_map(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)pass(ctx, in, out, error);
    break_child(ctx, out);
    return 0;
}

static void mend_child(struct recording_consumer *c, struct uva_batch *batch)
{
    (void)c;
    batch->data.array.n_children = 0;
}

START_TEST(a_batch_that_cannot_be_shared_ends_a_branch)
{
    streams[0] = stream_of(1);
    (void)uva_stream_map(
        streams[0], &(struct uva_map){.batch = break_map, .on_loop = true});
    branch(2);
    consumers[1].on_batch = mend_child;
    start(0);
    start(1);
    ends(0, UVA_END_FAILED, EINVAL, "cannot be shared", "schema failed");
    completes(1, "schema 1 complete");
}
END_TEST

/* ---- the end of the runtime --------------------------------------------- */

START_TEST(a_close_of_the_runtime_cancels)
{
    open_pusher();
    branch(2);
    for (int i = 0; i < 2; i++)
        recording_start(&consumers[i], streams[i]);
    push(1, 1);
    loop_close_runtime(&loop, 0);
    for (int i = 0; i < 2; i++) {
        recording_ended(&consumers[i], UVA_END_CANCELLED, ECANCELED, "closed");
        uva_stream_release(streams[i]);
    }
    ck_assert(gone);
}
END_TEST

/* A branch that is not started does not keep the runtime open, and cannot be
 * started after that. */
START_TEST(a_close_ends_branches_that_are_not_started)
{
    struct uva_consumer table;

    open_pusher();
    branch(2);
    recording_start(&consumers[_i], streams[_i]);
    push(1, 3);
    if (_i == 1) { /* before the close */
        uva_stream_cancel(streams[_i], 0, "no more");
        loop_settle(&loop);
    }
    loop_close_runtime(&loop, _i == 1 ? UVA_FOREVER : 0);
    ck_assert_int_eq(consumers[_i].outcome.end, UVA_END_CANCELLED);
    ck_assert(gone);
    table = recording_table(&consumers[1 - _i]);
    ck_assert_int_eq(uva_stream_for_each(streams[1 - _i], &table, NULL),
                     ESHUTDOWN);
    for (int i = 0; i < 2; i++)
        uva_stream_release(streams[i]);
}
END_TEST

/* The source has ended before. */
START_TEST(a_branch_with_batches_may_outlive_the_runtime)
{
    streams[0] = stream_of(3);
    branch(2);
    start(1);
    completes(1, "schema 1 2 3 complete");
    loop_close_runtime(&loop, UVA_FOREVER);
    ck_assert_int_gt(plain_live(), 2);
    uva_stream_release(streams[0]);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

static int64_t memory_held(void)
{
    struct uva_runtime_stats stats;

    uva_runtime_get_stats(loop.runtime, &stats);
    return stats.memory_held;
}

static void reopen(int64_t memory_bytes)
{
    loop_close(&loop);
    set_up_with(&(struct uva_runtime_options){.memory_bytes = memory_bytes});
}

START_TEST(batches_of_several_branches_count_once)
{
    reopen(1000000);
    set_windows(10);
    open_pusher();
    branch(BRANCHES);
    start_slow(0, 0);
    start_slow(1, 0);
    push(101, 104);
    ck_assert_int_eq(memory_held(), 101 + 102 + 103 + 104);
    recording_feed(&consumers[0], 9);
    loop_settle(&loop);
    ck_assert_int_eq(memory_held(), 101 + 102 + 103 + 104);
    recording_feed(&consumers[1], 1);
    loop_settle(&loop);
    ck_assert_int_eq(memory_held(), 101 + 102 + 103 + 104);
    uva_stream_release(streams[2]);
    loop_settle(&loop);
    ck_assert_int_eq(memory_held(), 102 + 103 + 104);
    recording_feed(&consumers[1], 9);
    loop_settle(&loop);
    ck_assert_int_eq(memory_held(), 0);
    push_end(0, "", NULL);
    completes(0, "schema 101 102 103 104 complete");
    completes(1, "schema 101 102 103 104 complete");
    uva_stream_release(streams[0]);
    uva_stream_release(streams[1]);
}
END_TEST

/* While the memory of the runtime is used up, a branch that drops does not hold
 * up a waiting one. */
START_TEST(a_full_budget_stops_no_branch)
{
    struct fixture f;

    fixture_open_with(&f, 50, &(struct uva_runtime_options){.memory_bytes = 1});
    f.fake.rows = 100;
    streams[0] = f.stream = fixture_blocking(&f);
    options.slow = (enum uva_slow)_i;
    streams[1] = uva_stream_tee(f.stream, &options);
    options.slow = UVA_SLOW_DROP_OLD;
    streams[2] = uva_stream_tee(f.stream, &options);
    for (int i = 0; i < 3; i++)
        consumers[i].transcribes = false;
    if (_i == UVA_SLOW_WAIT)
        recording_consume(&consumers[1], streams[1]);
    if (_i == UVA_SLOW_FAIL) { /* no branch waits */
        uva_stream_release(f.stream);
        recording_consume(&consumers[1], streams[1]);
    } else {
        recording_consume(&consumers[0], f.stream);
    }
    f.stream = NULL;
    recording_await_done(&consumers[_i == UVA_SLOW_FAIL], &f.loop);
    recording_ended(&consumers[_i == UVA_SLOW_FAIL], UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(consumers[_i == UVA_SLOW_FAIL].taken, 50);
    if (_i == UVA_SLOW_WAIT)
        recording_await_done(&consumers[1], &f.loop);
    else if (_i != UVA_SLOW_FAIL)
        uva_stream_release(streams[1]);
    uva_stream_release(streams[2]);
    loop_settle(&f.loop);
    fixture_close(&f);
}
END_TEST

/* ---- streams that may be teed ------------------------------------------- */

static void refuses(struct uva_stream *stream, int code, const char *text)
{
    struct uva_stream *made = uva_stream_tee(stream, &options);
    struct uva_error error = {0};

    ck_assert_ptr_nonnull(made);
    ck_assert_int_eq(uva_stream_status(made, &error), code);
    text_contains(error.message, text);
    uva_stream_release(made);
    options = (struct uva_tee){0};
}

static void refuses_options(const char *text)
{
    struct uva_error error = {0};

    streams[0] = stream_of(3);
    refuses(streams[0], EINVAL, text);
    ck_assert_int_eq(uva_stream_status(streams[0], &error), EINVAL);
    text_contains(error.message, text);
    uva_stream_release(streams[0]);
}

START_TEST(options_are_checked)
{
    options.slow = (enum uva_slow)(UVA_SLOW_FAIL + 1);
    refuses_options("slow");
    options.slow = (enum uva_slow) - 1;
    refuses_options("slow");
    options.window.batches = -1;
    refuses_options("window");
    options.window.reserved[1] = &options;
    refuses_options("window");
    options.first.bytes = -1;
    refuses_options("uva_tee.first: no negative window");
    options.first.reserved[0] = &options;
    refuses_options("uva_tee.first");
    options.reserved[3] = &options;
    refuses_options("reserved");
}
END_TEST

START_TEST(streams_are_checked)
{
    refuses(NULL, EINVAL, "without a runtime");
    streams[0] = uva_stream_from_arrays(NULL, NULL, NULL, 0);
    refuses(streams[0], EINVAL, "without a runtime");
    streams[0] = stream_of(3);
    (void)uva__stream_limit(streams[0], -1);
    refuses(streams[0], EINVAL, "limit");
    uva_stream_release(streams[0]);
    streams[0] = stream_of(3);
    recording_start(&consumers[0], streams[0]);
    refuses(streams[0], EBUSY, "started");
    completes(0, "schema 1 2 3 complete");
    uva_stream_release(streams[0]);
}
END_TEST

START_TEST(other_sources_drop_nothing)
{
    streams[0] = stream_of(3);
    ck_assert_int_eq(dropped(0), 0);
    uva_stream_release(streams[0]);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tees");

    suite_add_loops(tests, 0, POLICIES, every_branch_gets_all_batches, NULL);
    suite_add_loops(tests, UVA_SLOW_WAIT, UVA_SLOW_FAIL,
                    a_window_is_filled_by_bytes_too, NULL);
    suite_add_loops(tests, UVA_SLOW_DROP_NEW, UVA_SLOW_FAIL + 1,
                    without_a_branch_that_waits_the_fastest_one_decides, NULL);
    suite_add_loops(tests, 0, POLICIES, a_full_budget_stops_no_branch, NULL);
    suite_add_loops(tests, 0, 3, stages_belong_to_one_branch,
                    ten_tees_move_what_is_requested,
                    a_tee_that_is_not_started_is_released, NULL);
    suite_add_loops(tests, 0, 8, a_branch_that_is_released_unstarted_leaves,
                    NULL);
    suite_add_loops(tests, 0, 6, each_branch_ends_alone, NULL);
    suite_add_loops(
        tests, 0, 2, a_branch_accepts_device_data_as_its_stream_does,
        a_slow_branch_holds_up_the_others, a_branch_that_is_not_started_is_slow,
        a_branch_may_be_started_after_the_end, new_batches_are_dropped,
        old_batches_are_dropped, a_branch_that_is_too_slow_fails,
        the_source_is_cancelled_when_the_last_branch_leaves,
        a_branch_may_refuse_the_schema, an_extraction_may_fail,
        a_close_ends_branches_that_are_not_started, NULL);
    suite_add(
        tests, batches_that_no_branch_takes_are_dropped,
        an_empty_stream_ends_every_branch, a_branch_may_be_teed,
        a_branch_may_be_added_later, branches_may_be_merged_again,
        data_is_shared_and_outlives_the_other_branches,
        metadata_of_batches_is_kept, expensive_batches_are_extracted_by_workers,
        a_cancel_may_come_before_any_schema, a_slow_branch_may_be_cancelled,
        a_cancelled_branch_holds_up_others_until_it_is_released,
        a_failure_ends_every_branch_behind_its_batches,
        a_failure_may_come_before_any_schema,
        without_memory_a_branch_fails_and_the_other_goes_on,
        a_batch_that_cannot_be_shared_ends_a_branch,
        a_close_of_the_runtime_cancels,
        a_branch_with_batches_may_outlive_the_runtime,
        a_later_branch_leaves_the_window_of_the_first_one,
        a_small_window_is_that_of_the_new_branch_alone,
        batches_of_several_branches_count_once, options_are_checked,
        streams_are_checked, other_sources_drop_nothing, NULL);
    return suite_main("tee", set_up, tear_down, tests, NULL);
}
