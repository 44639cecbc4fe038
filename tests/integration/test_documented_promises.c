/* SPDX-License-Identifier: Apache-2.0 */
/* What the headers say in half a sentence: members that may be left out,
 * arguments that may be NULL, sources that say more than most, and what memory
 * does to each of them. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "stream/stream_impl.h"
#include "stream/window.h"
#include "support/recording_handler.h"
#include "support/source_scene.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

static struct source_scene scene;

static void set_up(void)
{
    source_scene_open(&scene, 4);
}

/* ---- windows ------------------------------------------------------------ */

static const struct {
    struct uva_window given;
    int64_t batches, refill; /* as completed; 0: refused */
} WINDOWS[] = {
    {{0}, 64, 32},
    {{.batches = 1}, 1, 0},
    {{.batches = 8}, 8, 4},
    {{.batches = 8, .refill = 2}, 8, 2},
    {{.batches = 8, .refill = 8}, 8, 4},
    {{.batches = 1 << 20, .bytes = 5}, 1 << 20, 1 << 19},
    {{.batches = -1}, 0, 0},
    {{.batches = (1 << 20) + 1}, 0, 0},
    {{.refill = -1}, 0, 0},
    {{.bytes = -1}, 0, 0},
};

START_TEST(a_window_is_completed_or_refused)
{
    struct uva_window out;
    const int64_t batches = WINDOWS[_i].batches;

    ck_assert_int_eq(uva__window_complete(&WINDOWS[_i].given, &out),
                     batches == 0 ? EINVAL : 0);
    if (batches == 0)
        return;
    ck_assert_int_eq(out.batches, batches);
    ck_assert_int_eq(out.refill, WINDOWS[_i].refill);
    ck_assert_int_gt(out.bytes, 0);
}
END_TEST

/* ---- stages ------------------------------------------------------------- */

START_TEST(a_map_without_a_function_fails_the_stream)
{
    const struct uva_map none = {.batch = NULL};
    struct uva_stream *stream = source_scene_stream(&scene);

    ck_assert_int_eq(uva_stream_map(stream, _i == 0 ? NULL : &none), EINVAL);
    source_scene_refused(&scene, stream, EINVAL, "map");
    source_scene_close(&scene, 1, 1);
}
END_TEST

START_TEST(the_least_of_several_limits_counts)
{
    struct uva_stream *stream = source_scene_stream(&scene);

    ck_assert_int_eq(uva_stream_limit(stream, 3), 0);
    ck_assert_int_eq(uva_stream_limit(stream, 2), 0);
    ck_assert_int_eq(uva_stream_limit(stream, 4), 0);
    source_scene_run(&scene, stream);
    source_scene_ended(&scene, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(scene.outcome.delivered, 2);
    source_scene_close(&scene, 1, 1);
}
END_TEST

/* ---- calls of producers ------------------------------------------------- */

static void call_late(void *ctx)
{
    struct ArrowAsyncProducer *producer = ctx;

    producer->request(producer, 1);
    producer->request(producer, 0);
    producer->cancel(producer);
}

/* As they come from who has kept a producer in whose place this one is now. */
START_TEST(late_calls_are_nothing_to_a_stream_that_has_not_begun)
{
    struct uva_stream *stream = source_scene_stream(&scene);
    struct ArrowAsyncProducer *producer = &stream->tail->abi;

    if (_i == 0)
        call_late(producer);
    else
        ck_assert_int_eq(
            uva_runtime_post(scene.rig.runtime, call_late, producer), 0);
    loop_rig_settle(&scene.rig);
    source_scene_run(&scene, stream);
    source_scene_ended(&scene, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(scene.outcome.delivered, 4);
    source_scene_close(&scene, 1, 1);
}
END_TEST

/* ---- sources ------------------------------------------------------------ */

START_TEST(a_source_of_tasks_that_waits_is_interrupted)
{
    struct uva_stream *stream = source_scene_tasks(&scene);

    scene.fake.gate_at = 1;
    recording_outcome_start(&scene.outcome, uva_stream_acquire(stream));
    while (!fake_source_is_waiting(&scene.fake))
        (void)uv_run(&scene.rig.loop, UV_RUN_NOWAIT);
    uva_stream_cancel(stream, 0, NULL);
    uva_stream_release(stream);
    source_scene_finish(&scene);
    source_scene_ended(&scene, UVA_END_CANCELLED, ECANCELED, "");
    source_scene_close(&scene, 0, 1);
    ck_assert_int_gt(atomic_load(&scene.fake.interrupts), 0);
}
END_TEST

static int keep_kind(void *ctx, const struct uva_stream_info *info)
{
    *(ArrowDeviceType *)ctx = info->device_type;
    return EDOM;
}

START_TEST(a_source_of_tasks_may_say_its_device_and_keep_its_ctx)
{
    struct uva_task_source source = fake_source_tasks(&scene.fake);
    ArrowDeviceType kind = 0;
    const struct uva_consumer consumer = {
        .on_schema = keep_kind,
        .on_batch = recording_outcome_table(&scene.outcome).on_batch,
        .ctx = &kind};
    struct uva_stream *stream;

    source.free_ctx = NULL;
    source.device_type = ARROW_DEVICE_CUDA_HOST;
    stream = uva_stream_from_tasks(scene.rig.runtime, &source);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    while (kind == 0)
        (void)uv_run(&scene.rig.loop, UV_RUN_ONCE);
    ck_assert_int_eq(kind, ARROW_DEVICE_CUDA_HOST);
    uva_stream_release(stream);
    source_scene_close(&scene, 0, 0);
}
END_TEST

static struct ArrowDeviceArrayStream
    honest; /* before its batches are changed */

static int next_elsewhere(struct ArrowDeviceArrayStream *stream,
                          struct ArrowDeviceArray *out)
{
    const int code = honest.get_next(stream, out);

    out->device_type = ARROW_DEVICE_CUDA_HOST;
    return code;
}

START_TEST(ds03_a_batch_of_another_device_is_counted_once)
{
    const struct uva_blocking_source how = fake_source_how(&scene.fake);
    struct ArrowDeviceArrayStream source;
    struct uva_runtime_stats stats;

    fake_source_device(&scene.fake, ARROW_DEVICE_CPU, &source);
    honest = source;
    source.get_next = next_elsewhere;
    source_scene_run(
        &scene, uva_stream_from_blocking(scene.rig.runtime, &source, &how));
    source_scene_ended(&scene, UVA_END_COMPLETE, 0, "");
    uva_runtime_get_stats(scene.rig.runtime, &stats);
    ck_assert_int_eq(stats.peer_breaches, 1);
    source_scene_close(&scene, 1, 1);
}
END_TEST

START_TEST(a_device_source_says_why_it_failed)
{
    const struct uva_blocking_source how = fake_source_how(&scene.fake);
    struct ArrowDeviceArrayStream source;

    scene.fake.fail_at = 2;
    scene.fake.fail_code = EIO;
    scene.fake.fail_text = "the card is on fire";
    fake_source_device(&scene.fake, ARROW_DEVICE_CPU, &source);
    source_scene_run(
        &scene, uva_stream_from_blocking(scene.rig.runtime, &source, &how));
    source_scene_ended(&scene, UVA_END_FAILED, EIO, "on fire");
    source_scene_close(&scene, 1, 1);
}
END_TEST

START_TEST(a_source_needs_no_options)
{
    struct ArrowDeviceArrayStream source;

    fake_source_device(&scene.fake, ARROW_DEVICE_CPU, &source);
    source_scene_run(
        &scene, uva_stream_from_blocking(scene.rig.runtime, &source, NULL));
    source_scene_ended(&scene, UVA_END_COMPLETE, 0, "");
    source_scene_close(&scene, 1, 0);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

/* A block of one pair, too large to lie in a slot. */
static const char *large_metadata(void)
{
    static char block[112];
    char value[96];
    const struct uva_pair pair = {{"key", 3}, {value, sizeof(value)}};
    size_t size = sizeof(block);

    memset(value, 'x', sizeof(value));
    ck_assert_int_eq(uva_metadata_encode(&pair, 1, block, &size), 0);
    return block;
}

static bool play_tagged(long fail_at)
{
    struct uva_stream *stream;
    const struct uva_consumer table = recording_outcome_table(&scene.outcome);
    bool failed;

    set_up();
    scene.fake.metadata = large_metadata();
    loop_rig_fail(&scene.rig, fail_at);
    stream = source_scene_tasks(&scene);
    if (uva_stream_for_each(stream, &table, NULL) == 0)
        source_scene_finish(&scene);
    failed = faulty_allocator_has_failed(&scene.rig.memory);
    loop_rig_fail(&scene.rig, 0);
    if (!failed) {
        source_scene_ended(&scene, UVA_END_COMPLETE, 0, "");
        ck_assert_int_eq(atomic_load(&scene.outcome.tagged), 4);
    }
    uva_stream_release(stream);
    source_scene_close(&scene, 0, 1);
    return failed;
}

START_TEST(large_metadata_arrives_or_memory_is_told_to_lack)
{
    long n = 1;

    while (play_tagged(n))
        n++;
    ck_assert_int_gt(n, 5);
}
END_TEST

static void never(void *ctx)
{
    (void)ctx;
    ck_abort_msg("a call that was not taken");
}

START_TEST(a_call_without_memory_is_not_posted)
{
    loop_rig_fail(&scene.rig, 1);
    ck_assert_int_eq(uva_runtime_post(scene.rig.runtime, never, NULL), ENOMEM);
    source_scene_close(&scene, 0, 0);
}
END_TEST

START_TEST(a_stage_without_memory_fails_the_stream)
{
    const struct uva_parallel how = {.workers = 1};

    for (long n = 1; n < 5; n++) {
        struct uva_stream *stream = source_scene_stream(&scene);
        int code;
        loop_rig_fail(&scene.rig, n);
        code = uva_stream_parallel(stream, &how);
        ck_assert_int_eq(
            code, faulty_allocator_has_failed(&scene.rig.memory) ? ENOMEM : 0);
        loop_rig_fail(&scene.rig, 0);
        ck_assert_int_eq(uva_stream_status(stream, NULL), code);
        uva_stream_release(stream);
    }
    source_scene_close(&scene, 4, 4);
}
END_TEST

START_TEST(a_stream_that_fails_without_memory_says_so)
{
    struct uva_error error = {0};
    struct uva_stream *stream;

    loop_rig_fail(&scene.rig, 1);
    stream = uva_stream_from_tasks(scene.rig.runtime, NULL);
    loop_rig_fail(&scene.rig, 0);
    ck_assert_int_eq(uva_stream_status(stream, &error), ENOMEM);
    uva_stream_release(stream);
    stream = source_scene_stream(&scene);
    loop_rig_fail(&scene.rig, 1);
    ck_assert_int_eq(uva_stream_set_name(stream, "flights"), ENOMEM);
    loop_rig_fail(&scene.rig, 0);
    uva_stream_release(stream);
    source_scene_close(&scene, 1, 1);
}
END_TEST

static void *half_an_allocator(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    ck_abort_msg("memory that nobody could take back");
}

START_TEST(a_runtime_refuses_what_makes_no_sense)
{
    struct uva_runtime_options wrong[3] = {
        {.allocator = {.alloc = half_an_allocator}}};
    struct uva_runtime *runtime;

    wrong[1].reserved[0] = wrong[2].reserved[1] = wrong;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(uva_runtime_open(NULL, &wrong[i], &runtime, NULL),
                         EINVAL);
    source_scene_close(&scene, 0, 0);
}
END_TEST

/* ---- batches ------------------------------------------------------------ */

/* Of a format that nobody here knows, or with more bytes than there can be: a
 * parallel stage reckons with their size, and passes them on. */
static const char *const STRANGE[] = {"?", "w:2147483647"};

START_TEST(batches_of_an_unheard_of_size_are_passed_on)
{
    const struct uva_parallel how = {.workers = 1};
    struct ArrowDeviceArray batches[2];
    struct ArrowSchema schema;
    struct uva_stream *stream;

    fake_source_schema(&scene.fake, &schema);
    schema.children[0]->format = STRANGE[_i];
    for (int i = 0; i < 2; i++) {
        fake_source_batch(&scene.fake, i, &batches[i]);
        batches[i].array.length = INT32_MAX;
        batches[i].array.children[0]->length = INT32_MAX;
    }
    stream = uva_stream_from_arrays(scene.rig.runtime, &schema, batches, 2);
    ck_assert_int_eq(uva_stream_parallel(stream, &how), 0);
    source_scene_run(&scene, stream);
    source_scene_ended(&scene, UVA_END_COMPLETE, 0, "");
    source_scene_close(&scene, 0, 0);
    ck_assert_int_eq(atomic_load(&scene.fake.live), 0);
}
END_TEST

/* ---- tasks -------------------------------------------------------------- */

START_TEST(at03_what_is_no_task_is_not_extracted)
{
    struct recording_handler handler;
    struct ArrowAsyncTask none = {0}, task;
    struct uva_stream *stream = source_scene_stream(&scene);
    struct ArrowDeviceArray out;

    recording_handler_init(&handler, 1, 0);
    handler.hold = true;
    scene.fake.batches = 1;
    ck_assert_int_eq(uva_stream_drive(stream, &handler.handler, NULL, NULL), 0);
    uva_stream_release(stream);
    while (!recording_handler_is_released(&handler))
        (void)uv_run(&scene.rig.loop, UV_RUN_ONCE);
    task = handler.held[0];
    ck_assert_int_eq(task.extract_data(NULL, &out), EINVAL);
    ck_assert_int_eq(task.extract_data(&none, &out), EINVAL);
    ck_assert_int_eq(recording_handler_extract(&handler, &task), 0);
    recording_handler_fini(&handler);
    source_scene_close(&scene, 1, 1);
}
END_TEST

static TCase *streams(void)
{
    TCase *tcase = tcase_create("streams");

    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_loop_test(tcase, a_map_without_a_function_fails_the_stream, 0, 2);
    tcase_add_test(tcase, the_least_of_several_limits_counts);
    tcase_add_loop_test(
        tcase, late_calls_are_nothing_to_a_stream_that_has_not_begun, 0, 2);
    tcase_add_test(tcase, a_source_of_tasks_that_waits_is_interrupted);
    tcase_add_test(tcase,
                   a_source_of_tasks_may_say_its_device_and_keep_its_ctx);
    tcase_add_test(tcase, ds03_a_batch_of_another_device_is_counted_once);
    tcase_add_test(tcase, a_device_source_says_why_it_failed);
    tcase_add_test(tcase, a_source_needs_no_options);
    tcase_add_test(tcase, a_call_without_memory_is_not_posted);
    tcase_add_test(tcase, a_stage_without_memory_fails_the_stream);
    tcase_add_test(tcase, a_stream_that_fails_without_memory_says_so);
    tcase_add_test(tcase, a_runtime_refuses_what_makes_no_sense);
    tcase_add_loop_test(tcase, batches_of_an_unheard_of_size_are_passed_on, 0,
                        2);
    tcase_add_test(tcase, at03_what_is_no_task_is_not_extracted);
    return tcase;
}

static TCase *others(void)
{
    TCase *tcase = tcase_create("others");

    tcase_add_loop_test(tcase, a_window_is_completed_or_refused, 0,
                        sizeof(WINDOWS) / sizeof(WINDOWS[0]));
    tcase_add_test(tcase, large_metadata_arrives_or_memory_is_told_to_lack);
    return tcase;
}

int main(void)
{
    Suite *suite = suite_create("small_print");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, streams());
    suite_add_tcase(suite, others());
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
