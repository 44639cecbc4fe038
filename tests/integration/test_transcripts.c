/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks that a driven handler gets, as literal text. Each transcript is
 * tested once on the loop thread and once on a worker. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/printed_layout.h"
#include "support/recording_handler.h"

/* One stream from a fake source to a recording handler. */
static struct fixture f;
static struct recording_handler handler;
static struct uva_drive options;
static bool on_worker; /* set from the loop index of each test */

static void nudge(void *ctx)
{
    loop_nudge(ctx);
}

/* The handler requests `first` batches, and `each` with every task. */
static void set_up(int index, int64_t batches, int64_t first, int64_t each)
{
    on_worker = index == 1;
    fixture_open(&f, batches);
    recording_handler_init(&handler, first, each);
    handler.nudge = nudge;
    handler.nudge_ctx = &f.loop;
    options = (struct uva_drive){
        .on_done = recording_on_done, .ctx = &f.got, .on_worker = on_worker};
}

static void drive(struct uva_stream *stream)
{
    struct uva_error error = {0};

    f.stream = stream;
    ck_assert_msg(
        uva_stream_drive(stream, &handler.handler, &options, &error) == 0, "%s",
        error.message);
}

static void play(struct uva_stream *stream)
{
    drive(stream);
    fixture_await(&f);
}

/* Plays the stream, in which the handler must get these callbacks. */
static void expect(struct uva_stream *stream, const char *transcript)
{
    play(stream);
    ck_assert_str_eq(handler.transcript, transcript);
}

/* Checks that each object was released once. */
static void tear_down(void)
{
    fixture_close(&f);
    ck_assert_int_eq(f.got.done, 1);
    ck_assert(handler.released);
    recording_handler_fini(&handler);
}

/* ---- the end ------------------------------------------------------------ */

START_TEST(AH11_a_whole_stream_ends_in_null_then_release)
{
    set_up(_i, 3, 1, 1);
    expect(fixture_blocking(&f), "schema task task task end release");
    ck_assert_int_eq(handler.rows, 9);
    ck_assert_int_eq(handler.sum, 0 + 10 + 20);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(f.got.outcome.batches, 3);
}
END_TEST

START_TEST(AH23_an_empty_stream_needs_no_request)
{
    set_up(_i, 0, 1, 0);
    expect(fixture_blocking(&f), "schema end release");
}
END_TEST

START_TEST(AP02_requests_add_up_and_are_never_exceeded)
{
    set_up(_i, 100, 5, 0);
    drive(fixture_tasks(&f));
    while (recording_handler_tasks(&handler) < 5)
        loop_turn(&f.loop);
    loop_settle(&f.loop);
    ck_assert_int_eq(recording_handler_tasks(&handler), 5);
    uva_stream_cancel(f.stream, 0, "seen enough");
    fixture_await(&f);
    ck_assert_str_eq(handler.transcript,
                     "schema task task task task task error release");
}
END_TEST

START_TEST(G35_a_request_beyond_counting_is_unbounded)
{
    set_up(_i, 150, INT64_MAX, INT64_MAX);
    play(fixture_tasks(&f));
    ck_assert_int_eq(handler.tasks, 150);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
}
END_TEST

START_TEST(AP08_a_request_of_nothing_is_told_as_an_error)
{
    set_up(_i, 100, 1, 0);
    handler.request_each = -1;
    expect(fixture_blocking(&f), "schema task error release");
    ck_assert_int_eq(handler.error_code, EINVAL);
    text_contains(handler.message, "request");
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
}
END_TEST

/* ---- the consumer stops ------------------------------------------------- */

START_TEST(AP16_a_cancel_is_answered_by_release_alone)
{
    set_up(_i, 1000, 1, 1);
    handler.cancel_at = 2;
    expect(fixture_blocking(&f), "schema task task task release");
    recording_ended(&f.got, UVA_END_CANCELLED, ECANCELED, "");
}
END_TEST

START_TEST(AH08_a_refused_schema_is_followed_by_release_alone)
{
    set_up(_i, 3, 1, 1);
    handler.schema_code = EDOM;
    expect(fixture_blocking(&f), "schema release");
    recording_ended(&f.got, UVA_END_REJECTED, EDOM, "");
}
END_TEST

START_TEST(AH16_LC18_a_refused_task_is_reclaimed_and_nothing_follows)
{
    set_up(_i, 100, 1, 1);
    handler.task_code = ERANGE;
    handler.task_code_at = 1;
    expect(fixture_tasks(&f), "schema task task release");
    recording_ended(&f.got, UVA_END_REJECTED, ERANGE, "");
}
END_TEST

START_TEST(LC19_a_task_extracted_and_refused_is_freed_once)
{
    set_up(_i, 100, 1, 1);
    handler.extract_first = true;
    handler.task_code = ERANGE;
    handler.task_code_at = 2;
    expect(fixture_blocking(&f), "schema task task task release");
    ck_assert_int_eq(handler.rows, 9); /* also the rows of the refused task */
}
END_TEST

static void count_round(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
}

/* If the handler runs on another thread, waits until the loop has turned twice:
 * by then the producer has finished all its work. */
static void linger(struct recording_handler *h)
{
    atomic_int rounds;

    (void)h;
    atomic_init(&rounds, on_worker ? 0 : 2);
    while (atomic_load(&rounds) < 2) {
        const int before = atomic_load(&rounds);
        ck_assert_int_eq(uva_runtime_post(f.loop.runtime, count_round, &rounds),
                         0);
        while (atomic_load(&rounds) == before)
            sched_yield();
    }
}

/* A worker missed this in the past, because the producer had already ended. */
START_TEST(AH16_refusing_the_last_task_is_a_rejection)
{
    struct ArrowDeviceArray batch;

    set_up(_i, 1, 1, 1);
    handler.task_code = ERANGE;
    handler.on_task = linger;
    fake_source_batch(&f.fake, 0, &batch);
    expect(fixture_arrays(&f, &batch, 1), "schema task release");
    recording_ended(&f.got, UVA_END_REJECTED, ERANGE, "");
}
END_TEST

/* ---- the source fails --------------------------------------------------- */

START_TEST(ER03_G40_an_error_comes_behind_the_batches_before_it)
{
    set_up(_i, 10, 1, 1);
    f.fake.fail_at = 3;
    expect(fixture_blocking(&f), "schema task task task error release");
    ck_assert_int_eq(handler.error_code, EIO);
    ck_assert_str_eq(handler.message, "arrow_stream: the disk is on fire");
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    ck_assert_str_eq(f.got.outcome.error.message,
                     "arrow_stream: the disk is on fire");
}
END_TEST

START_TEST(AH18_an_error_may_come_before_the_schema)
{
    set_up(_i, 10, 1, 1);
    f.fake.schema_code = EACCES;
    expect(fixture_blocking(&f), "error release");
    ck_assert_int_eq(handler.error_code, EACCES);
}
END_TEST

START_TEST(ER05_AT08_a_failed_extraction_is_told_twice)
{
    set_up(_i, 10, 1, 1);
    f.fake.extract_at = 1;
    play(fixture_tasks(&f));
    ck_assert_int_eq(handler.extract_code, EIO);
    ck_assert_ptr_nonnull(strstr(handler.transcript, " error release"));
    ck_assert_ptr_null(strstr(handler.transcript, "end"));
    ck_assert_str_eq(handler.message, "tasks: the disk is on fire");
}
END_TEST

/* A worker delivered the tasks that were queued after the failure. */
START_TEST(AT08_no_queued_task_follows_a_failed_extraction)
{
    set_up(_i, 10, 10, 0);
    f.fake.extract_at = 0;
    handler.on_task = linger;
    expect(fixture_tasks(&f), "schema task error release");
    ck_assert_int_eq(handler.error_code, EIO);
    ck_assert_int_eq(f.got.outcome.batches, 1);
}
END_TEST

static int fail_to_map(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)in;
    (void)out;
    return uva_error_set(error, EIO, "the disk is on fire");
}

static void *extract_first(void *ctx)
{
    struct ArrowDeviceArray out;

    ck_assert_int_eq(uva_task_extract(ctx, &out), EIO);
    uva__consumer_state_note_settled(&handler.rules, EIO);
    return NULL;
}

/* In the second task another thread extracts the first one, before the callback
 * returns. */
static void extract_on_another_thread(struct recording_handler *h)
{
    pthread_t other;

    if (h->tasks != 2)
        return;
    ck_assert_int_eq(pthread_create(&other, NULL, extract_first, &h->held[0]),
                     0);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
}

/* The loop thread delivered as many as it had decided to deliver at once. */
START_TEST(AT08_no_task_follows_an_extraction_that_failed_elsewhere)
{
    const struct uva_map map = {.batch = fail_to_map};
    struct ArrowDeviceArray batches[5];

    set_up(_i, 0, 5, 0);
    for (int i = 0; i < 5; i++)
        fake_source_batch(&f.fake, i, &batches[i]);
    for (int i = 0; i < 10; i++)
        loop_settle(&f.loop); /* idle turns: from now on several at once */
    handler.hold = true;
    handler.on_task = extract_on_another_thread;
    f.stream = fixture_arrays(&f, batches, 5);
    ck_assert_int_eq(uva_stream_map(f.stream, &map), 0);
    expect(f.stream, "schema task task error release");
    uva_task_discard(&handler.held[1]);
}
END_TEST

/* ---- tasks -------------------------------------------------------------- */

static void extract_held(void)
{
    int64_t i;

    handler.hold = false;
    for (i = 0; i < handler.held_count; i++)
        ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[i]),
                         0);
}

START_TEST(AH34_tasks_outlive_the_handler)
{
    set_up(_i, 4, 4, 0);
    handler.hold = true;
    expect(fixture_blocking(&f), "schema task task task task end release");
    extract_held();
    ck_assert_int_eq(handler.rows, 12);
}
END_TEST

START_TEST(G16_tasks_held_past_the_close_are_taken_back)
{
    struct ArrowDeviceArray out;
    int i;

    set_up(_i, 4, 4, 0);
    handler.hold = true;
    play(fixture_blocking(&f));
    fixture_release(&f);
    ck_assert_int_eq(atomic_load(&f.fake.live), 4);
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(atomic_load(&f.fake.live), 0);
    ck_assert_int_gt(faulty_allocator_live(&f.loop.memory), 0);
    for (i = 0; i < 4; i++) { /* the last extraction frees the memory */
        memset(&out, 0xA5, sizeof(out));
        ck_assert_int_eq(handler.held[i].extract_data(&handler.held[i], &out),
                         ECANCELED);
        ck_assert(out.array.release == NULL);
    }
}
END_TEST

START_TEST(AT03_a_second_extraction_is_refused_and_leaves_out_alone)
{
    struct ArrowDeviceArray out, same;

    set_up(_i, 1, 1, 0);
    handler.hold = true;
    play(fixture_blocking(&f));
    extract_held();
    memset(&out, 0xA5, sizeof(out));
    memcpy(&same, &out, sizeof(out));
    ck_assert_int_eq(handler.held[0].extract_data(&handler.held[0], &out),
                     EINVAL);
    ck_assert_mem_eq(&out, &same, sizeof(out));
    ck_assert_int_eq(handler.held[0].extract_data(&handler.held[0], NULL),
                     EINVAL);
}
END_TEST

START_TEST(AT02_a_discarded_task_gives_nothing_and_frees_all)
{
    set_up(_i, 5, 1, 1);
    handler.discard = true;
    expect(fixture_tasks(&f), "schema task task task task task end release");
    ck_assert_int_eq(handler.rows, 0);
}
END_TEST

START_TEST(G17_the_release_waits_for_tasks_that_may_fail)
{
    set_up(_i, 2, 2, 0);
    handler.hold = true;
    drive(fixture_tasks(&f));
    while (!recording_handler_saw(&handler, "end"))
        loop_turn(&f.loop);
    loop_settle(&f.loop);
    ck_assert(!recording_handler_is_released(&handler));
    extract_held();
    fixture_await(&f);
    ck_assert_str_eq(handler.transcript, "schema task task end release");
    ck_assert_int_eq(handler.rows, 6);
}
END_TEST

START_TEST(G23_an_extraction_that_fails_after_the_end_is_told)
{
    set_up(_i, 2, 2, 0);
    handler.hold = true;
    f.fake.extract_at = 1;
    drive(fixture_tasks(&f));
    while (!recording_handler_saw(&handler, "end"))
        loop_turn(&f.loop);
    handler.hold = false;
    (void)recording_handler_extract(&handler, &handler.held[0]);
    ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[1]),
                     EIO);
    fixture_await(&f);
    ck_assert_str_eq(handler.transcript, "schema task task end error release");
}
END_TEST

/* ---- metadata ----------------------------------------------------------- */

START_TEST(MD03_metadata_arrives_with_producer_and_tasks)
{
    struct uva_pair pair[] = {{.key = "k", .value = "v\0w", .value_size = 3},
                              {0}};
    char block[32], about[32];
    size_t size = sizeof(block);

    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    pair[0] = (struct uva_pair){.key = "who", .value = "me"};
    size = sizeof(about);
    ck_assert_int_eq(uva_metadata_encode(pair, about, &size), 0);
    set_up(_i, 1, 1, 1);
    f.fake.metadata = block;
    options.metadata = about;
    play(fixture_tasks(&f));
    ck_assert_str_eq(handler.about, "who=me");
    ck_assert_str_eq(handler.metadata, "k=v"); /* printed up to the NUL */
}
END_TEST

static void read_both_layouts(struct recording_handler *h)
{
    const struct ArrowAsyncProducer *producer = h->handler.producer;

    ck_assert_ptr_nonnull(producer->additional_metadata);
    ck_assert_ptr_eq(printed_layout_metadata(producer),
                     producer->additional_metadata);
    h->ctx = h; /* on_task was called */
}

START_TEST(AB09_G03_the_producer_reads_the_same_under_both_layouts)
{
    struct uva_pair pair[] = {{.key = "who", .value = "me"}, {0}};
    char about[32];
    size_t size = sizeof(about);

    ck_assert_int_eq(uva_metadata_encode(pair, about, &size), 0);
    set_up(_i, 1, 1, 1);
    options.metadata = about;
    handler.on_task = read_both_layouts;
    play(fixture_blocking(&f));
    ck_assert_ptr_eq(handler.ctx, &handler);
}
END_TEST

/* ---- the owner ---------------------------------------------------------- */

START_TEST(a_cancel_by_the_owner_is_told_with_code_and_reason)
{
    set_up(_i, 1000, 1, 0);
    drive(fixture_blocking(&f));
    while (recording_handler_tasks(&handler) == 0)
        loop_turn(&f.loop);
    uva_stream_cancel(f.stream, ETIMEDOUT, "the client gave up");
    uva_stream_cancel(f.stream, EIO, "too late");
    fixture_await(&f);
    ck_assert_str_eq(handler.transcript, "schema task error release");
    ck_assert_int_eq(handler.error_code, ETIMEDOUT);
    ck_assert_str_eq(handler.message, "the client gave up");
    recording_ended(&f.got, UVA_END_CANCELLED, ETIMEDOUT, "");
}
END_TEST

START_TEST(G16_a_drop_takes_back_what_was_never_extracted)
{
    struct ArrowDeviceArray out;

    set_up(_i, 3, 2, 0);
    handler.hold = true;
    drive(fixture_blocking(&f));
    while (recording_handler_tasks(&handler) < 2)
        loop_turn(&f.loop);
    uva_stream_drop(f.stream);
    f.stream = NULL;
    while (!recording_handler_is_released(&handler))
        loop_turn(&f.loop);
    ck_assert_int_eq(f.got.done, 0); /* no callback was made */
    memset(&out, 0xA5, sizeof(out));
    ck_assert_int_eq(handler.held[0].extract_data(&handler.held[0], &out),
                     ECANCELED);
    ck_assert(out.array.release == NULL);
    f.got.done = 1;
}
END_TEST

START_TEST(a_handler_runs_where_it_was_asked_to)
{
    set_up(_i, 2, 1, 1);
    play(fixture_blocking(&f));
    ck_assert_int_eq(pthread_equal(handler.thread, pthread_self()) == 0,
                     on_worker);
}
END_TEST

/* ---- stages ------------------------------------------------------------- */

START_TEST(a_limit_ends_the_stream_and_stops_the_source)
{
    set_up(_i, 1000000, 10, 1);
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(uva__stream_limit(f.stream, 3), 0);
    ck_assert_int_eq(uva__stream_limit(f.stream, 7), 0); /* the smallest */
    expect(f.stream, "schema task task task end release");
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_lt(atomic_load(&f.fake.given), 100);
}
END_TEST

START_TEST(a_limit_of_nothing_is_an_empty_stream)
{
    set_up(_i, 10, 1, 1);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva__stream_limit(f.stream, 0), 0);
    expect(f.stream, "schema end release");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("both ways");

    tcase_set_timeout(tc, 60);
#define TELL(name) tcase_add_loop_test(tc, name, 0, 2)
    TELL(AH11_a_whole_stream_ends_in_null_then_release);
    TELL(AH23_an_empty_stream_needs_no_request);
    TELL(AP02_requests_add_up_and_are_never_exceeded);
    TELL(G35_a_request_beyond_counting_is_unbounded);
    TELL(AP08_a_request_of_nothing_is_told_as_an_error);
    TELL(AP16_a_cancel_is_answered_by_release_alone);
    TELL(AH08_a_refused_schema_is_followed_by_release_alone);
    TELL(AH16_LC18_a_refused_task_is_reclaimed_and_nothing_follows);
    TELL(AH16_refusing_the_last_task_is_a_rejection);
    TELL(LC19_a_task_extracted_and_refused_is_freed_once);
    TELL(ER03_G40_an_error_comes_behind_the_batches_before_it);
    TELL(AH18_an_error_may_come_before_the_schema);
    TELL(ER05_AT08_a_failed_extraction_is_told_twice);
    TELL(AT08_no_queued_task_follows_a_failed_extraction);
    TELL(AT08_no_task_follows_an_extraction_that_failed_elsewhere);
    TELL(AH34_tasks_outlive_the_handler);
    TELL(G16_tasks_held_past_the_close_are_taken_back);
    TELL(AT03_a_second_extraction_is_refused_and_leaves_out_alone);
    TELL(AT02_a_discarded_task_gives_nothing_and_frees_all);
    TELL(G17_the_release_waits_for_tasks_that_may_fail);
    TELL(G23_an_extraction_that_fails_after_the_end_is_told);
    TELL(MD03_metadata_arrives_with_producer_and_tasks);
    TELL(AB09_G03_the_producer_reads_the_same_under_both_layouts);
    TELL(a_cancel_by_the_owner_is_told_with_code_and_reason);
    TELL(G16_a_drop_takes_back_what_was_never_extracted);
    TELL(a_handler_runs_where_it_was_asked_to);
    TELL(a_limit_ends_the_stream_and_stops_the_source);
    TELL(a_limit_of_nothing_is_an_empty_stream);
    return suite_main("transcripts", NULL, tear_down, tc, NULL);
}
