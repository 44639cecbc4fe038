/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of the headers in passing: members that may be left out,
 * arguments that may be NULL, sources that give unusual batches, and how each
 * of these cases fails without memory. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "stage/limit.h"
#include "stream/stream_impl.h"
#include "stream/window.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/recording_handler.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

static struct fixture f;

static void set_up(void)
{
    fixture_open(&f, 4);
}

/* ---- windows ------------------------------------------------------------ */

static const struct {
    struct uva_window given;
    int64_t batches, refill; /* as completed with defaults; 0: refused */
} WINDOWS[] = {
    {{0}, 64, 32},
    {{.batches = 1}, 1, 0},
    {{.batches = 8}, 8, 4},
    {{.batches = 1 << 20, .bytes = 5}, 1 << 20, 1 << 19},
    {{.batches = -1}, 0, 0},
    {{.batches = (1 << 20) + 1}, 0, 0},
    {{.bytes = -1}, 0, 0},
    {{.reserved = {&f}}, 0, 0},
    {{.reserved = {NULL, &f}}, 0, 0},
};

START_TEST(a_window_is_completed_or_refused)
{
    struct uva__window out;
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
    struct uva_stream *stream = fixture_blocking(&f);

    ck_assert_int_eq(uva_stream_map(stream, _i == 0 ? NULL : &none), EINVAL);
    fixture_refused(&f, stream, EINVAL, "map");
    fixture_close_counted(&f, 1, 1);
}
END_TEST

START_TEST(the_least_of_several_limits_counts)
{
    struct uva_stream *stream = fixture_blocking(&f);

    ck_assert_int_eq(uva__stream_limit(stream, 3), 0);
    ck_assert_int_eq(uva__stream_limit(stream, 2), 0);
    ck_assert_int_eq(uva__stream_limit(stream, 4), 0);
    fixture_consume(&f, stream);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(f.got.outcome.batches, 2);
    fixture_close_counted(&f, 1, 1);
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

static struct recording_handler *driven;
static struct ArrowAsyncProducer *driver; /* its producer */

/* Is called by the handler's release, among others. */
static void call_once_released(void *ctx)
{
    (void)ctx;
    if (driven->released)
        call_late(driver);
}

START_TEST(late_calls_of_a_release_are_counted)
{
    struct uva_stream *stream = fixture_blocking(&f);
    struct recording_handler handler;
    struct uva_runtime_stats stats;

    recording_handler_init(&handler, 8, 0);
    handler.nudge = call_once_released;
    driven = &handler;
    driver = &stream->tail->abi;
    ck_assert_int_eq(uva_stream_drive(stream, &handler.handler, NULL, NULL), 0);
    uva_stream_release(stream);
    while (!recording_handler_is_released(&handler))
        loop_turn(&f.loop);
    ck_assert_int_eq(handler.tasks, 4);
    uva_runtime_get_stats(f.loop.runtime, &stats);
    ck_assert_int_eq(stats.late_calls, 3);
    recording_handler_fini(&handler);
    fixture_close_counted(&f, 1, 1);
}
END_TEST

/* Late calls arrive from a peer that kept a pointer to a producer, when that
 * memory already belongs to the producer of this stream. */
START_TEST(late_calls_are_nothing_to_a_stream_that_has_not_begun)
{
    struct uva_stream *stream = fixture_blocking(&f);
    struct ArrowAsyncProducer *producer = &stream->tail->abi;

    if (_i == 0)
        call_late(producer);
    else
        ck_assert_int_eq(uva_runtime_post(f.loop.runtime, call_late, producer),
                         0);
    loop_settle(&f.loop);
    fixture_consume(&f, stream);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(f.got.outcome.batches, 4);
    fixture_close_counted(&f, 1, 1);
}
END_TEST

/* ---- sources ------------------------------------------------------------ */

START_TEST(a_source_of_tasks_that_waits_is_interrupted)
{
    struct uva_stream *stream = fixture_tasks(&f);

    f.fake.gate_at = 1;
    recording_consume(&f.got, uva_stream_acquire(stream));
    while (!fake_source_is_waiting(&f.fake))
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    uva_stream_cancel(stream, 0, NULL);
    uva_stream_release(stream);
    fixture_await(&f);
    recording_ended(&f.got, UVA_END_CANCELLED, ECANCELED, "");
    fixture_close_counted(&f, 0, 1);
    ck_assert_int_gt(atomic_load(&f.fake.interrupts), 0);
}
END_TEST

static int keep_kind(void *ctx, const struct uva_stream_info *info)
{
    *(ArrowDeviceType *)ctx = info->device_type;
    return EDOM;
}

START_TEST(a_source_of_tasks_may_say_its_device_and_keep_its_ctx)
{
    struct uva_task_source source = fake_source_tasks(&f.fake);
    ArrowDeviceType kind = 0;
    const struct uva_consumer consumer = {.on_schema = keep_kind,
                                          .on_batch =
                                              recording_table(&f.got).on_batch,
                                          .ctx = &kind};
    struct uva_stream *stream;

    source.free_ctx = NULL;
    source.device_type = ARROW_DEVICE_CUDA_HOST;
    stream = uva_stream_from_tasks(f.loop.runtime, &source);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    while (kind == 0)
        loop_turn(&f.loop);
    ck_assert_int_eq(kind, ARROW_DEVICE_CUDA_HOST);
    uva_stream_release(stream);
    fixture_close_counted(&f, 0, 0);
}
END_TEST

static struct ArrowDeviceArrayStream
    honest; /* before the test changes its batches */

static int next_elsewhere(struct ArrowDeviceArrayStream *stream,
                          struct ArrowDeviceArray *out)
{
    const int code = honest.get_next(stream, out);

    out->device_type = ARROW_DEVICE_CUDA_HOST;
    return code;
}

START_TEST(ds03_a_batch_of_another_device_is_counted_once)
{
    const struct uva_arrow_source options = fake_source_options(&f.fake);
    struct ArrowDeviceArrayStream source;
    struct uva_runtime_stats stats;

    fake_source_device(&f.fake, ARROW_DEVICE_CPU, &source);
    honest = source;
    source.get_next = next_elsewhere;
    fixture_consume(
        &f, uva_stream_from_device_stream(f.loop.runtime, &source, &options));
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    uva_runtime_get_stats(f.loop.runtime, &stats);
    ck_assert_int_eq(stats.peer_breaches, 1);
    fixture_close_counted(&f, 1, 1);
}
END_TEST

START_TEST(a_device_source_says_why_it_failed)
{
    const struct uva_arrow_source options = fake_source_options(&f.fake);
    struct ArrowDeviceArrayStream source;

    f.fake.fail_at = 2;
    f.fake.fail_code = EIO;
    f.fake.fail_text = "the card is on fire";
    fake_source_device(&f.fake, ARROW_DEVICE_CPU, &source);
    fixture_consume(
        &f, uva_stream_from_device_stream(f.loop.runtime, &source, &options));
    recording_ended(&f.got, UVA_END_FAILED, EIO, "on fire");
    fixture_close_counted(&f, 1, 1);
}
END_TEST

START_TEST(a_source_needs_no_options)
{
    struct ArrowDeviceArrayStream source;

    fake_source_device(&f.fake, ARROW_DEVICE_CPU, &source);
    fixture_consume(
        &f, uva_stream_from_device_stream(f.loop.runtime, &source, NULL));
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    fixture_close_counted(&f, 1, 0);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

/* Returns a block of one pair, too large for a slot. */
static const char *large_metadata(void)
{
    static char block[112];
    char value[96];
    const struct uva_pair pair[] = {
        {.key = "key", .value = value, .value_size = sizeof(value)}, {0}};
    size_t size = sizeof(block);

    memset(value, 'x', sizeof(value));
    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    return block;
}

static bool play_tagged(long fail_at)
{
    struct uva_stream *stream;
    const struct uva_consumer table = recording_table(&f.got);
    bool failed;

    set_up();
    f.fake.metadata = large_metadata();
    loop_fail(&f.loop, fail_at);
    stream = fixture_tasks(&f);
    if (uva_stream_for_each(stream, &table, NULL) == 0)
        fixture_await(&f);
    failed = faulty_allocator_has_failed(&f.loop.memory);
    loop_fail(&f.loop, 0);
    if (!failed) {
        recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
        ck_assert_int_eq(atomic_load(&f.got.tagged), 4);
    }
    uva_stream_release(stream);
    fixture_close_counted(&f, 0, 1);
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
    loop_fail(&f.loop, 1);
    ck_assert_int_eq(uva_runtime_post(f.loop.runtime, never, NULL), ENOMEM);
    fixture_close_counted(&f, 0, 0);
}
END_TEST

START_TEST(a_stage_without_memory_fails_the_stream)
{
    const struct uva_parallel options = {.workers = 1};

    for (long n = 1; n < 5; n++) {
        struct uva_stream *stream = fixture_blocking(&f);
        int code;
        loop_fail(&f.loop, n);
        code = uva_stream_parallel(stream, &options);
        ck_assert_int_eq(
            code, faulty_allocator_has_failed(&f.loop.memory) ? ENOMEM : 0);
        loop_fail(&f.loop, 0);
        ck_assert_int_eq(uva_stream_status(stream, NULL), code);
        uva_stream_release(stream);
    }
    fixture_close_counted(&f, 4, 4);
}
END_TEST

START_TEST(a_stream_that_fails_without_memory_says_so)
{
    struct uva_error error = {0};
    struct uva_stream *stream;

    loop_fail(&f.loop, 1);
    stream = uva_stream_from_tasks(f.loop.runtime, NULL);
    loop_fail(&f.loop, 0);
    ck_assert_int_eq(uva_stream_status(stream, &error), ENOMEM);
    uva_stream_release(stream);
    stream = fixture_blocking(&f);
    loop_fail(&f.loop, 1);
    ck_assert_int_eq(uva_stream_set_name(stream, "flights"), ENOMEM);
    loop_fail(&f.loop, 0);
    uva_stream_release(stream);
    fixture_close_counted(&f, 1, 1);
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
    fixture_close_counted(&f, 0, 0);
}
END_TEST

/* ---- batches ------------------------------------------------------------ */

/* Formats that are unknown, or that need more bytes than any array has. A
 * parallel stage estimates the size of such batches, and passes them on. */
static const char *const STRANGE[] = {"?", "w:2147483647"};

START_TEST(batches_of_an_unheard_of_size_are_passed_on)
{
    const struct uva_parallel options = {.workers = 1};
    struct ArrowDeviceArray batches[2];
    struct ArrowSchema schema;
    struct uva_stream *stream;

    fake_source_schema(&f.fake, &schema);
    schema.children[0]->format = STRANGE[_i];
    for (int i = 0; i < 2; i++) {
        fake_source_batch(&f.fake, i, &batches[i]);
        batches[i].array.length = INT32_MAX;
        batches[i].array.children[0]->length = INT32_MAX;
    }
    stream = uva_stream_from_arrays(f.loop.runtime, &schema, batches, 2);
    ck_assert_int_eq(uva_stream_parallel(stream, &options), 0);
    fixture_consume(&f, stream);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    fixture_close_counted(&f, 0, 0);
    ck_assert_int_eq(atomic_load(&f.fake.live), 0);
}
END_TEST

/* ---- tasks -------------------------------------------------------------- */

START_TEST(at03_what_is_no_task_is_not_extracted)
{
    struct recording_handler handler;
    struct ArrowAsyncTask none = {0}, task;
    struct uva_stream *stream = fixture_blocking(&f);
    struct ArrowDeviceArray out;

    recording_handler_init(&handler, 1, 0);
    handler.hold = true;
    f.fake.batches = 1;
    ck_assert_int_eq(uva_stream_drive(stream, &handler.handler, NULL, NULL), 0);
    uva_stream_release(stream);
    while (!recording_handler_is_released(&handler))
        loop_turn(&f.loop);
    task = handler.held[0];
    ck_assert_int_eq(task.extract_data(NULL, &out), EINVAL);
    ck_assert_int_eq(task.extract_data(&none, &out), EINVAL);
    ck_assert_int_eq(recording_handler_extract(&handler, &task), 0);
    recording_handler_fini(&handler);
    fixture_close_counted(&f, 1, 1);
}
END_TEST

/* Keeps two tasks of a stream that is then dropped. */
static void keep_and_drop(struct recording_handler *handler)
{
    recording_handler_init(handler, 2, 0);
    handler->hold = true;
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_drive(f.stream, &handler->handler, NULL, NULL),
                     0);
    while (recording_handler_tasks(handler) < 2)
        loop_turn(&f.loop);
    fixture_drop(&f);
    while (!recording_handler_is_released(handler))
        loop_turn(&f.loop);
    loop_settle(&f.loop);
}

/* Gives `out` a pattern first, and returns whether it is released or as it was.
 */
static bool extract_is_released(struct ArrowAsyncTask *task, int code)
{
    struct ArrowDeviceArray out, before;

    memset(&out, 0xA5, sizeof(out));
    before = out;
    ck_assert_int_eq(task->extract_data(task, &out), code);
    if (out.array.release == NULL)
        return true;
    ck_assert_mem_eq(&out, &before, sizeof(out));
    return false;
}

START_TEST(g16_a_task_kept_past_a_drop_fails_with_one_of_two_codes)
{
    struct recording_handler handler, later;
    struct ArrowDeviceArray out;
    struct fixture other;

    keep_and_drop(&handler);
    ck_assert(extract_is_released(&handler.held[0], ECANCELED));
    fixture_open_beside(&other, 1000, &f);
    recording_handler_init(&later, 1, 1);
    other.stream = fixture_blocking(&other);
    ck_assert_int_eq(uva_stream_drive(other.stream, &later.handler, NULL, NULL),
                     0);
    while (!recording_handler_is_released(&later))
        loop_turn(&f.loop);
    recording_handler_fini(&later);
    fixture_release(&other);
    fixture_close(&other);
    ck_assert(!extract_is_released(&handler.held[1], EINVAL));
    ck_assert_int_eq(handler.held[1].extract_data(&handler.held[1], NULL), 0);
    ck_assert_int_eq(uva_task_extract(&handler.held[1], &out), EINVAL);
    ck_assert(!uva_array_is_live(&out));
    recording_handler_fini(&handler);
    fixture_close_counted(&f, 1, 1);
}
END_TEST

static TCase *streams(void)
{
    TCase *tcase = tcase_create("streams");

    tcase_add_checked_fixture(tcase, set_up, NULL);
    suite_add(tcase, the_least_of_several_limits_counts,
              a_source_of_tasks_that_waits_is_interrupted,
              a_source_of_tasks_may_say_its_device_and_keep_its_ctx,
              ds03_a_batch_of_another_device_is_counted_once,
              a_device_source_says_why_it_failed, a_source_needs_no_options,
              a_call_without_memory_is_not_posted,
              a_stage_without_memory_fails_the_stream,
              a_stream_that_fails_without_memory_says_so,
              a_runtime_refuses_what_makes_no_sense,
              late_calls_of_a_release_are_counted,
              at03_what_is_no_task_is_not_extracted,
              g16_a_task_kept_past_a_drop_fails_with_one_of_two_codes, NULL);
    suite_add_loops(tcase, 0, 2, a_map_without_a_function_fails_the_stream,
                    late_calls_are_nothing_to_a_stream_that_has_not_begun,
                    batches_of_an_unheard_of_size_are_passed_on, NULL);
    return tcase;
}

static TCase *others(void)
{
    TCase *tcase = tcase_create("others");

    tcase_add_test(tcase, large_metadata_arrives_or_memory_is_told_to_lack);
    tcase_add_loop_test(tcase, a_window_is_completed_or_refused, 0,
                        sizeof(WINDOWS) / sizeof(WINDOWS[0]));
    return tcase;
}

int main(void)
{
    return suite_main("small_print", NULL, NULL, streams(), others(), NULL);
}
