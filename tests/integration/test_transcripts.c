/* SPDX-License-Identifier: Apache-2.0 */
/* What a driven handler sees, as the literal text of who did what; each story
 * once on the loop thread and once on a worker. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake_source.h"
#include "support/loop_rig.h"
#include "support/printed_layout.h"
#include "support/recording_handler.h"
#include "uvarrow/uvarrow.h"

/* One stream on its way from a fake source to a recording handler. */
struct scene {
    struct loop_rig rig;
    struct fake_source fake;
    struct recording_handler handler;
    struct uva_stream *stream;
    struct uva_drive how;
    struct uva_outcome outcome;
    int done; /* times on_done was called */
};

static bool on_worker; /* set by each test case's loop index */

static void scene_done(void *ctx, const struct uva_outcome *outcome)
{
    struct scene *s = ctx;

    s->done++;
    s->outcome = *outcome;
    s->outcome.metadata = NULL; /* borrowed for the call */
}

static void scene_nudge(void *ctx)
{
    loop_rig_nudge(&((struct scene *)ctx)->rig);
}

static void scene_open(struct scene *s, int index, int64_t batches,
                       int64_t first, int64_t each)
{
    memset(s, 0, sizeof(*s));
    on_worker = index == 1;
    loop_rig_open(&s->rig);
    fake_source_init(&s->fake, batches);
    recording_handler_init(&s->handler, first, each);
    s->handler.nudge = scene_nudge;
    s->handler.nudge_ctx = s;
    s->how = (struct uva_drive){
        .on_done = scene_done, .ctx = s, .on_worker = on_worker};
}

static void scene_blocking(struct scene *s)
{
    struct uva_blocking_source how = fake_source_how(&s->fake);
    struct ArrowArrayStream plain;

    fake_source_plain(&s->fake, &plain);
    s->stream = uva_stream_from_blocking_cpu(s->rig.runtime, &plain, &how);
}

static void scene_tasks(struct scene *s)
{
    struct uva_task_source source = fake_source_tasks(&s->fake);

    s->stream = uva_stream_from_tasks(s->rig.runtime, &source);
}

static void scene_drive(struct scene *s)
{
    struct uva_error error = {0};

    ck_assert_msg(
        uva_stream_drive(s->stream, &s->handler.handler, &s->how, &error) == 0,
        "%s", error.message);
}

static bool is_done(void *ctx)
{
    return ((struct scene *)ctx)->done > 0;
}

static bool is_freed(void *ctx)
{
    struct scene *s = ctx;

    return atomic_load(&s->fake.freed) > 0 && atomic_load(&s->fake.live) == 0;
}

static void scene_play(struct scene *s)
{
    scene_drive(s);
    loop_rig_until(&s->rig, is_done, s);
}

/* The ledger: everything came back, once. */
static void scene_close(struct scene *s)
{
    uva_stream_release(s->stream);
    loop_rig_close_runtime(&s->rig, 0);
    while (!is_freed(s))
        sched_yield(); /* a worker may just be at it */
    ck_assert_int_eq(atomic_load(&s->fake.freed), 1);
    ck_assert_int_eq(s->done, 1);
    ck_assert(s->handler.released);
    while (faulty_allocator_live(&s->rig.memory) > 0)
        sched_yield();
    recording_handler_fini(&s->handler);
    loop_rig_close(&s->rig);
    fake_source_fini(&s->fake);
}

/* ---- the end ------------------------------------------------------------ */

START_TEST(AH11_a_whole_stream_ends_in_null_then_release)
{
    struct scene s;

    scene_open(&s, _i, 3, 1, 1);
    scene_blocking(&s);
    scene_play(&s);
    ck_assert_str_eq(s.handler.story, "schema task task task end release");
    ck_assert_int_eq(s.handler.rows, 9);
    ck_assert_int_eq(s.handler.sum, 0 + 10 + 20);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.outcome.error.code, 0);
    ck_assert_int_eq(s.outcome.batches, 3);
    scene_close(&s);
}
END_TEST

START_TEST(AH23_an_empty_stream_needs_no_request)
{
    struct scene s;

    scene_open(&s, _i, 0, 1, 0);
    scene_blocking(&s);
    scene_play(&s);
    ck_assert_str_eq(s.handler.story, "schema end release");
    scene_close(&s);
}
END_TEST

START_TEST(AP02_requests_add_up_and_are_never_exceeded)
{
    struct scene s;

    scene_open(&s, _i, 100, 5, 0);
    scene_tasks(&s);
    scene_drive(&s);
    while (recording_handler_tasks(&s.handler) < 5)
        (void)uv_run(&s.rig.loop, UV_RUN_ONCE);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(recording_handler_tasks(&s.handler), 5);
    uva_stream_cancel(s.stream, 0, "seen enough");
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_str_eq(s.handler.story,
                     "schema task task task task task error release");
    scene_close(&s);
}
END_TEST

START_TEST(G35_a_request_beyond_counting_is_unbounded)
{
    struct scene s;

    scene_open(&s, _i, 150, INT64_MAX, INT64_MAX);
    scene_tasks(&s);
    scene_play(&s);
    ck_assert_int_eq(s.handler.tasks, 150);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    scene_close(&s);
}
END_TEST

START_TEST(AP08_a_request_of_nothing_is_told_as_an_error)
{
    struct scene s;

    scene_open(&s, _i, 100, 1, 0);
    s.handler.request_each = -1;
    scene_blocking(&s);
    scene_play(&s);
    ck_assert_str_eq(s.handler.story, "schema task error release");
    ck_assert_int_eq(s.handler.error_code, EINVAL);
    ck_assert_ptr_nonnull(strstr(s.handler.message, "request"));
    ck_assert_int_eq(s.outcome.end, UVA_END_FAILED);
    scene_close(&s);
}
END_TEST

/* ---- the consumer wants no more ----------------------------------------- */

START_TEST(AP16_a_cancel_is_answered_by_release_alone)
{
    struct scene s;

    scene_open(&s, _i, 1000, 1, 1);
    s.handler.cancel_at = 2;
    scene_blocking(&s);
    scene_play(&s);
    ck_assert_str_eq(s.handler.story, "schema task task task release");
    ck_assert_int_eq(s.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(s.outcome.error.code, ECANCELED);
    scene_close(&s);
}
END_TEST

START_TEST(AH08_a_refused_schema_is_followed_by_release_alone)
{
    struct scene s;

    scene_open(&s, _i, 3, 1, 1);
    s.handler.schema_code = EDOM;
    scene_blocking(&s);
    scene_play(&s);
    ck_assert_str_eq(s.handler.story, "schema release");
    ck_assert_int_eq(s.outcome.end, UVA_END_REJECTED);
    ck_assert_int_eq(s.outcome.error.code, EDOM);
    scene_close(&s);
}
END_TEST

START_TEST(AH16_LC18_a_refused_task_is_reclaimed_and_nothing_follows)
{
    struct scene s;

    scene_open(&s, _i, 100, 1, 1);
    s.handler.task_code = ERANGE;
    s.handler.task_code_at = 1;
    scene_tasks(&s);
    scene_play(&s);
    ck_assert_str_eq(s.handler.story, "schema task task release");
    ck_assert_int_eq(s.outcome.end, UVA_END_REJECTED);
    ck_assert_int_eq(s.outcome.error.code, ERANGE);
    scene_close(&s);
}
END_TEST

START_TEST(LC19_a_task_extracted_and_refused_is_freed_once)
{
    struct scene s;

    scene_open(&s, _i, 100, 1, 1);
    s.handler.extract_first = true;
    s.handler.task_code = ERANGE;
    s.handler.task_code_at = 2;
    scene_blocking(&s);
    scene_play(&s);
    ck_assert_str_eq(s.handler.story, "schema task task task release");
    ck_assert_int_eq(s.handler.rows, 9); /* the refused one too */
    scene_close(&s);
}
END_TEST

static void count_round(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
}

/* Does not return before the loop has come round twice, if it is another
 * thread's: by then the producer is done with all that it has. */
static void linger(struct recording_handler *h)
{
    struct scene *s = h->ctx;
    atomic_int rounds;

    atomic_init(&rounds, on_worker ? 0 : 2);
    while (atomic_load(&rounds) < 2) {
        const int before = atomic_load(&rounds);
        ck_assert_int_eq(uva_runtime_post(s->rig.runtime, count_round, &rounds),
                         0);
        while (atomic_load(&rounds) == before)
            sched_yield();
    }
}

/* On a worker that was forgotten, as the producer had told the end by then. */
START_TEST(AH16_refusing_the_last_task_is_a_rejection)
{
    struct ArrowDeviceArray batch;
    struct ArrowSchema schema;
    struct scene s;

    scene_open(&s, _i, 1, 1, 1);
    s.handler.task_code = ERANGE;
    s.handler.on_task = linger;
    s.handler.ctx = &s;
    fake_source_schema(&s.fake, &schema);
    fake_source_batch(&s.fake, 0, &batch);
    s.stream = uva_stream_from_arrays(s.rig.runtime, &schema, &batch, 1);
    scene_play(&s);
    ck_assert_str_eq(s.handler.story, "schema task release");
    ck_assert_int_eq(s.outcome.end, UVA_END_REJECTED);
    ck_assert_int_eq(s.outcome.error.code, ERANGE);
    atomic_store(&s.fake.freed, 1); /* there was no such source */
    scene_close(&s);
}
END_TEST

/* ---- the source fails --------------------------------------------------- */

START_TEST(ER03_G40_an_error_comes_behind_the_batches_before_it)
{
    struct scene s;

    scene_open(&s, _i, 10, 1, 1);
    s.fake.fail_at = 3;
    scene_blocking(&s);
    scene_play(&s);
    ck_assert_str_eq(s.handler.story, "schema task task task error release");
    ck_assert_int_eq(s.handler.error_code, EIO);
    ck_assert_str_eq(s.handler.message, "the disk is on fire");
    ck_assert_int_eq(s.outcome.end, UVA_END_FAILED);
    ck_assert_str_eq(s.outcome.error.message, "the disk is on fire");
    scene_close(&s);
}
END_TEST

START_TEST(AH18_an_error_may_come_before_the_schema)
{
    struct scene s;

    scene_open(&s, _i, 10, 1, 1);
    s.fake.schema_code = EACCES;
    scene_blocking(&s);
    scene_play(&s);
    ck_assert_str_eq(s.handler.story, "error release");
    ck_assert_int_eq(s.handler.error_code, EACCES);
    scene_close(&s);
}
END_TEST

START_TEST(ER05_AT08_a_failed_extraction_is_told_twice)
{
    struct scene s;

    scene_open(&s, _i, 10, 1, 1);
    s.fake.extract_at = 1;
    scene_tasks(&s);
    scene_play(&s);
    ck_assert_int_eq(s.handler.extract_code, EIO);
    ck_assert_ptr_nonnull(strstr(s.handler.story, " error release"));
    ck_assert_ptr_null(strstr(s.handler.story, "end"));
    ck_assert_str_eq(s.handler.message, "the disk is on fire");
    scene_close(&s);
}
END_TEST

/* ---- tasks -------------------------------------------------------------- */

static void extract_held(struct scene *s)
{
    int64_t i;

    s->handler.hold = false;
    for (i = 0; i < s->handler.held_count; i++)
        ck_assert_int_eq(
            recording_handler_extract(&s->handler, &s->handler.held[i]), 0);
}

START_TEST(AH34_tasks_outlive_the_handler)
{
    struct scene s;

    scene_open(&s, _i, 4, 4, 0);
    s.handler.hold = true;
    scene_blocking(&s);
    scene_play(&s);
    ck_assert_str_eq(s.handler.story, "schema task task task task end release");
    extract_held(&s);
    ck_assert_int_eq(s.handler.rows, 12);
    scene_close(&s);
}
END_TEST

START_TEST(G16_tasks_held_past_the_close_are_taken_back)
{
    struct ArrowDeviceArray out;
    struct scene s;
    int i;

    scene_open(&s, _i, 4, 4, 0);
    s.handler.hold = true;
    scene_blocking(&s);
    scene_play(&s);
    uva_stream_release(s.stream);
    s.stream = NULL;
    ck_assert_int_eq(atomic_load(&s.fake.live), 4);
    loop_rig_close_runtime(&s.rig, 0);
    ck_assert_int_eq(atomic_load(&s.fake.live), 0);
    ck_assert_int_gt(faulty_allocator_live(&s.rig.memory), 0);
    for (i = 0; i < 4; i++) { /* the last of them frees the memory */
        memset(&out, 0xA5, sizeof(out));
        ck_assert_int_eq(
            s.handler.held[i].extract_data(&s.handler.held[i], &out),
            ECANCELED);
        ck_assert(out.array.release == NULL);
    }
    while (faulty_allocator_live(&s.rig.memory) > 0)
        sched_yield(); /* the guest may just be leaving */
    recording_handler_fini(&s.handler);
    loop_rig_close(&s.rig);
    fake_source_fini(&s.fake);
}
END_TEST

START_TEST(AT03_a_second_extraction_is_refused_and_leaves_out_alone)
{
    struct scene s;
    struct ArrowDeviceArray out, same;

    scene_open(&s, _i, 1, 1, 0);
    s.handler.hold = true;
    scene_blocking(&s);
    scene_play(&s);
    extract_held(&s);
    memset(&out, 0xA5, sizeof(out));
    memcpy(&same, &out, sizeof(out));
    ck_assert_int_eq(s.handler.held[0].extract_data(&s.handler.held[0], &out),
                     EINVAL);
    ck_assert_mem_eq(&out, &same, sizeof(out));
    ck_assert_int_eq(s.handler.held[0].extract_data(&s.handler.held[0], NULL),
                     EINVAL);
    scene_close(&s);
}
END_TEST

START_TEST(AT02_a_discarded_task_gives_nothing_and_frees_all)
{
    struct scene s;

    scene_open(&s, _i, 5, 1, 1);
    s.handler.discard = true;
    scene_tasks(&s);
    scene_play(&s);
    ck_assert_str_eq(s.handler.story,
                     "schema task task task task task end release");
    ck_assert_int_eq(s.handler.rows, 0);
    scene_close(&s);
}
END_TEST

START_TEST(G17_the_release_waits_for_tasks_that_may_fail)
{
    struct scene s;

    scene_open(&s, _i, 2, 2, 0);
    s.handler.hold = true;
    scene_tasks(&s);
    scene_drive(&s);
    while (!recording_handler_saw(&s.handler, "end"))
        (void)uv_run(&s.rig.loop, UV_RUN_ONCE);
    loop_rig_settle(&s.rig);
    ck_assert(!recording_handler_is_released(&s.handler));
    extract_held(&s);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_str_eq(s.handler.story, "schema task task end release");
    ck_assert_int_eq(s.handler.rows, 6);
    scene_close(&s);
}
END_TEST

START_TEST(G23_an_extraction_that_fails_after_the_end_is_told)
{
    struct scene s;

    scene_open(&s, _i, 2, 2, 0);
    s.handler.hold = true;
    s.fake.extract_at = 1;
    scene_tasks(&s);
    scene_drive(&s);
    while (!recording_handler_saw(&s.handler, "end"))
        (void)uv_run(&s.rig.loop, UV_RUN_ONCE);
    s.handler.hold = false;
    (void)recording_handler_extract(&s.handler, &s.handler.held[0]);
    ck_assert_int_eq(recording_handler_extract(&s.handler, &s.handler.held[1]),
                     EIO);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_str_eq(s.handler.story, "schema task task end error release");
    scene_close(&s);
}
END_TEST

/* ---- metadata ----------------------------------------------------------- */

START_TEST(MD03_metadata_arrives_with_producer_and_tasks)
{
    struct uva_pair pair = {uva_bytes_of("k"), {"v\0w", 3}};
    char block[32], about[32];
    size_t size = sizeof(block);
    struct scene s;

    ck_assert_int_eq(uva_metadata_encode(&pair, 1, block, &size), 0);
    pair.key = uva_bytes_of("who");
    pair.value = uva_bytes_of("me");
    size = sizeof(about);
    ck_assert_int_eq(uva_metadata_encode(&pair, 1, about, &size), 0);
    scene_open(&s, _i, 1, 1, 1);
    s.fake.metadata = block;
    s.how.metadata = about;
    scene_tasks(&s);
    scene_play(&s);
    ck_assert_str_eq(s.handler.about, "who=me");
    ck_assert_str_eq(s.handler.metadata, "k=v"); /* printed to its NUL */
    scene_close(&s);
}
END_TEST

static void read_both_layouts(struct recording_handler *h)
{
    const struct ArrowAsyncProducer *producer = h->handler.producer;

    ck_assert_ptr_nonnull(producer->additional_metadata);
    ck_assert_ptr_eq(printed_layout_metadata(producer),
                     producer->additional_metadata);
    h->ctx = h; /* seen */
}

START_TEST(AB09_G03_the_producer_reads_the_same_under_both_layouts)
{
    struct uva_pair pair = {uva_bytes_of("who"), uva_bytes_of("me")};
    char about[32];
    size_t size = sizeof(about);
    struct scene s;

    ck_assert_int_eq(uva_metadata_encode(&pair, 1, about, &size), 0);
    scene_open(&s, _i, 1, 1, 1);
    s.how.metadata = about;
    s.handler.on_task = read_both_layouts;
    scene_blocking(&s);
    scene_play(&s);
    ck_assert_ptr_eq(s.handler.ctx, &s.handler);
    scene_close(&s);
}
END_TEST

/* ---- the owner ---------------------------------------------------------- */

START_TEST(a_cancel_by_the_owner_is_told_with_code_and_reason)
{
    struct scene s;

    scene_open(&s, _i, 1000, 1, 0);
    scene_blocking(&s);
    scene_drive(&s);
    while (recording_handler_tasks(&s.handler) == 0)
        (void)uv_run(&s.rig.loop, UV_RUN_ONCE);
    uva_stream_cancel(s.stream, ETIMEDOUT, "the client gave up");
    uva_stream_cancel(s.stream, EIO, "too late");
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_str_eq(s.handler.story, "schema task error release");
    ck_assert_int_eq(s.handler.error_code, ETIMEDOUT);
    ck_assert_str_eq(s.handler.message, "the client gave up");
    ck_assert_int_eq(s.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(s.outcome.error.code, ETIMEDOUT);
    scene_close(&s);
}
END_TEST

START_TEST(G16_a_drop_takes_back_what_was_never_extracted)
{
    struct scene s;
    struct ArrowDeviceArray out;

    scene_open(&s, _i, 3, 2, 0);
    s.handler.hold = true;
    scene_blocking(&s);
    scene_drive(&s);
    while (recording_handler_tasks(&s.handler) < 2)
        (void)uv_run(&s.rig.loop, UV_RUN_ONCE);
    uva_stream_drop(s.stream);
    s.stream = NULL;
    while (!recording_handler_is_released(&s.handler))
        (void)uv_run(&s.rig.loop, UV_RUN_ONCE);
    ck_assert_int_eq(s.done, 0); /* silence */
    memset(&out, 0xA5, sizeof(out));
    ck_assert_int_eq(s.handler.held[0].extract_data(&s.handler.held[0], &out),
                     ECANCELED);
    ck_assert(out.array.release == NULL);
    s.done = 1;
    scene_close(&s);
}
END_TEST

START_TEST(a_handler_runs_where_it_was_asked_to)
{
    struct scene s;

    scene_open(&s, _i, 2, 1, 1);
    scene_blocking(&s);
    scene_play(&s);
    ck_assert_int_eq(pthread_equal(s.handler.thread, pthread_self()) == 0,
                     on_worker);
    scene_close(&s);
}
END_TEST

/* ---- stages ------------------------------------------------------------- */

START_TEST(a_limit_ends_the_stream_and_stops_the_source)
{
    struct scene s;

    scene_open(&s, _i, 1000000, 10, 1);
    scene_blocking(&s);
    ck_assert_int_eq(uva_stream_limit(s.stream, 3), 0);
    ck_assert_int_eq(uva_stream_limit(s.stream, 7), 0); /* the least counts */
    scene_play(&s);
    ck_assert_str_eq(s.handler.story, "schema task task task end release");
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_lt(atomic_load(&s.fake.given), 100);
    scene_close(&s);
}
END_TEST

START_TEST(a_limit_of_nothing_is_an_empty_stream)
{
    struct scene s;

    scene_open(&s, _i, 10, 1, 1);
    scene_tasks(&s);
    ck_assert_int_eq(uva_stream_limit(s.stream, 0), 0);
    scene_play(&s);
    ck_assert_str_eq(s.handler.story, "schema end release");
    scene_close(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transcripts");
    TCase *tc = tcase_create("both ways");
    SRunner *runner;
    int failed;

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
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
