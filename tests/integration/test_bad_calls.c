/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes of a caller: structs that are half filled in, given away before, or
 * never cleared; calls in the wrong order, with NULL, or with invalid numbers.
 * Each call is refused with a code and a text that names the mistake, and
 * everything that was put in is released exactly once. */
#include <check.h>
#include <string.h>

#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/recording_handler.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

enum { BATCHES = 3 };

static struct fixture f;
static struct fake_source *const fake = &f.fake;
static struct recording_consumer *const got = &f.got;
static long releases, frees; /* calls that are expected at the end */
static struct uva_error error;

static void set_up(void)
{
    fixture_open(&f, BATCHES);
    releases = frees = 1;
    memset(&error, 0, sizeof(error));
}

static void tear_down(void)
{
    fixture_close_counted(&f, releases, frees);
}

static struct uva_runtime *runtime(void)
{
    return f.loop.runtime;
}

static void refused(struct uva_stream *stream, int code, const char *text)
{
    fixture_refused(&f, stream, code, text);
}

static void expect_text(const char *text)
{
    text_contains(error.message, text);
}

/* ---- blocking sources --------------------------------------------------- */

static const char *const source_slots[] = {"get_schema", "get_next",
                                           "get_last_error", "released"};

START_TEST(a_source_with_an_empty_slot_is_refused)
{
    const struct uva_arrow_source options = fake_source_options(fake);
    struct ArrowArrayStream source;

    fake_source_plain(fake, &source);
    if (_i == 0)
        source.get_schema = NULL;
    else if (_i == 1)
        source.get_next = NULL;
    else if (_i == 2)
        source.get_last_error = NULL;
    else
        source.release = NULL;
    releases = _i < 3;
    refused(uva_stream_from_arrow_stream(runtime(), &source, &options), EINVAL,
            source_slots[_i]);
    ck_assert(source.release == NULL);
}
END_TEST

START_TEST(a_device_source_with_an_empty_slot_is_refused)
{
    const struct uva_arrow_source options = fake_source_options(fake);
    struct ArrowDeviceArrayStream source;

    fake_source_device(fake, ARROW_DEVICE_CPU, &source);
    if (_i == 0)
        source.get_schema = NULL;
    else if (_i == 1)
        source.get_next = NULL;
    else if (_i == 2)
        source.get_last_error = NULL;
    else
        source.release = NULL;
    releases = _i < 3;
    refused(uva_stream_from_device_stream(runtime(), &source, &options), EINVAL,
            source_slots[_i]);
    ck_assert(source.release == NULL);
}
END_TEST

START_TEST(a_source_given_away_twice_is_refused)
{
    struct ArrowArrayStream source;
    struct uva_stream *first;

    frees = 0;
    fake_source_plain(fake, &source);
    first = uva_stream_from_arrow_stream(runtime(), &source, NULL);
    refused(uva_stream_from_arrow_stream(runtime(), &source, NULL), EINVAL,
            "released");
    fixture_consume(&f, first);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
}
END_TEST

START_TEST(a_source_without_a_runtime_is_given_back)
{
    const struct uva_arrow_source options = fake_source_options(fake);
    struct ArrowDeviceArrayStream device;
    struct ArrowArrayStream source;

    fake_source_plain(fake, &source);
    refused(uva_stream_from_arrow_stream(NULL, &source, &options), EINVAL,
            "runtime");
    ck_assert_int_eq(atomic_load(&fake->released), 1);
    ck_assert_int_eq(atomic_load(&fake->freed), 1);
    fake_source_device(fake, ARROW_DEVICE_CPU, &device);
    refused(uva_stream_from_device_stream(NULL, &device, &options), EINVAL,
            "runtime");
    releases = frees = 2;
}
END_TEST

static int open_never(void *ctx, struct ArrowArrayStream *out,
                      struct uva_error *why)
{
    (void)ctx;
    (void)out;
    (void)why;
    ck_abort_msg("a stream that was refused is not opened");
}

START_TEST(a_source_and_a_hook_are_one_too_many)
{
    struct uva_arrow_source options = fake_source_options(fake);
    struct ArrowArrayStream source;

    options.open = open_never;
    fake_source_plain(fake, &source);
    refused(uva_stream_from_arrow_stream(runtime(), &source, &options), EINVAL,
            "not both");
}
END_TEST

START_TEST(neither_a_source_nor_a_hook_is_one_too_few)
{
    struct uva_arrow_source options = fake_source_options(fake);

    releases = 0;
    frees = 2;
    refused(uva_stream_from_arrow_stream(runtime(), NULL, &options), EINVAL,
            "options->open");
    options.open = open_never; /* belongs to the other kind of stream */
    refused(uva_stream_from_device_stream(runtime(), NULL, &options), EINVAL,
            "options->open_device");
    refused(uva_stream_from_arrow_stream(runtime(), NULL, NULL), EINVAL,
            "options->open");
}
END_TEST

static struct uva_window bad_window(int i)
{
    static const int32_t batches[] = {-1, (1 << 20) + 1, 0, 0};

    return (struct uva_window){.batches = batches[i],
                               .bytes = i == 2 ? -1 : 0,
                               .reserved = {NULL, i == 3 ? &frees : NULL}};
}

START_TEST(a_bad_window_is_refused)
{
    struct uva_arrow_source options = fake_source_options(fake);
    struct uva_task_source tasks = fake_source_tasks(fake);
    struct uva_parallel parallel = {.window = bad_window(_i)};
    struct ArrowArrayStream source;
    struct uva_stream *stream;

    frees = 3;
    releases = 2;
    options.window = tasks.window = bad_window(_i);
    fake_source_plain(fake, &source);
    refused(uva_stream_from_arrow_stream(runtime(), &source, &options), EINVAL,
            "window");
    refused(uva_stream_from_tasks(runtime(), &tasks), EINVAL, "window");
    stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_parallel(stream, &parallel), EINVAL);
    refused(stream, EINVAL, "window");
}
END_TEST

/* ---- tasks -------------------------------------------------------------- */

START_TEST(a_task_source_with_an_empty_slot_is_refused)
{
    static const char *const slots[] = {"schema", "next", "extract"};
    struct uva_task_source source = fake_source_tasks(fake);

    releases = 0;
    if (_i == 0)
        source.schema = NULL;
    else if (_i == 1)
        source.next = NULL;
    else
        source.extract = NULL;
    refused(uva_stream_from_tasks(runtime(), &source), EINVAL, slots[_i]);
}
END_TEST

START_TEST(no_task_source_or_no_runtime_is_refused)
{
    struct uva_task_source source = fake_source_tasks(fake);

    releases = 0;
    refused(uva_stream_from_tasks(runtime(), NULL), EINVAL, "uva_task_source");
    refused(uva_stream_from_tasks(NULL, &source), EINVAL, "runtime");
}
END_TEST

/* ---- options never cleared ---------------------------------------------- */

/* Fills the struct as memory might be before it is cleared. The test then sets
 * the members that a caller knows, but not `reserved`. */
static void spoil(void *options, size_t size)
{
    memset(options, 0xa5, size);
}

START_TEST(uncleared_sources_are_refused)
{
    const struct uva_arrow_source blocking = fake_source_options(fake);
    const struct uva_task_source tasks = fake_source_tasks(fake);
    struct uva_arrow_source options;
    struct uva_task_source source;
    struct ArrowArrayStream stream;

    spoil(&options, sizeof(options));
    options.open = NULL;
    options.free_ctx = blocking.free_ctx;
    options.ctx = fake;
    fake_source_plain(fake, &stream);
    refused(uva_stream_from_arrow_stream(runtime(), &stream, &options), EINVAL,
            "reserved");
    spoil(&source, sizeof(source));
    source.free_ctx = tasks.free_ctx;
    source.ctx = fake;
    refused(uva_stream_from_tasks(runtime(), &source), EINVAL, "reserved");
    frees = 0; /* no pointer in such a struct can be trusted */
}
END_TEST

START_TEST(uncleared_stages_are_refused)
{
    struct uva_map map;
    struct uva_parallel parallel;
    struct uva_stream *stream = fixture_blocking(&f);

    spoil(&map, sizeof(map));
    map.free_ctx = fake_source_options(fake).free_ctx;
    map.ctx = fake;
    ck_assert_int_eq(uva_stream_map(stream, &map), EINVAL);
    refused(stream, EINVAL, "uva_map: reserved");
    stream = fixture_blocking(&f);
    spoil(&parallel, sizeof(parallel));
    ck_assert_int_eq(uva_stream_parallel(stream, &parallel), EINVAL);
    refused(stream, EINVAL, "uva_parallel: reserved");
    stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_set_name(stream, NULL), EINVAL);
    ck_assert_int_eq(uva_stream_map(stream, &map), EINVAL);
    refused(stream, EINVAL, "name");
    releases = 3;
    frees = 3; /* the map's context is not freed */
}
END_TEST

START_TEST(uncleared_terminals_are_refused_and_the_stream_is_still_good)
{
    struct uva_stream *stream = fixture_blocking(&f);
    struct recording_handler handler;
    struct uva_consumer consumer;
    struct uva_drive options;

    spoil(&consumer, sizeof(consumer));
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, &error), EINVAL);
    expect_text("uva_consumer: reserved");
    recording_handler_init(&handler, 1, 1);
    spoil(&options, sizeof(options));
    ck_assert_int_eq(
        uva_stream_drive(stream, &handler.handler, &options, &error), EINVAL);
    expect_text("uva_drive: reserved");
    ck_assert_str_eq(handler.transcript, "");
    fixture_consume(&f, stream);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
}
END_TEST

START_TEST(uncleared_options_of_runtimes_and_workers_are_refused)
{
    struct uva_runtime_options options;
    struct uva_workers_options more;
    struct uva_workers *workers;
    struct uva_runtime *out;

    frees = releases = 0;
    spoil(&options, sizeof(options));
    ck_assert_int_eq(uva_runtime_open(NULL, &options, &out, &error), EINVAL);
    expect_text("reserved");
    spoil(&more, sizeof(more));
    ck_assert_int_eq(uva_workers_new(&more, &workers, &error), EINVAL);
    expect_text("reserved");
}
END_TEST

/* ---- runtimes ----------------------------------------------------------- */

static void never(void *ctx)
{
    (void)ctx;
}

static void *no_memory(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    return NULL;
}

START_TEST(options_that_make_no_sense_are_refused)
{
    static const struct {
        struct uva_runtime_options options;
        const char *text;
    } bad[] = {
        {{.memory_bytes = -1}, "memory_bytes"},
        {{.close_limit_ms = INT64_MIN}, "close_limit_ms"},
        {{.reserved = {[7] = &frees}}, "reserved"},
        {{.turn_us = -1}, "turn_us"},
        {{.allocator = {.alloc = no_memory}}, "allocator"},
    };
    struct uva_runtime *out = NULL;

    frees = releases = 0;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        error.message[0] = '\0';
        ck_assert_int_eq(
            uva_runtime_open(&f.loop.uv, &bad[i].options, &out, &error),
            EINVAL);
        expect_text(bad[i].text);
        ck_assert_ptr_null(out);
    }
}
END_TEST

START_TEST(pool_that_make_no_sense_are_refused)
{
    static const struct {
        struct uva_workers_options options;
        const char *text;
    } bad[] = {
        {{.compute_threads = -1}, "compute_threads"},
        {{.blocking_threads = -1}, "blocking_threads"},
        {{.allocator = {.alloc = no_memory}}, "allocator"},
    };
    struct uva_workers *out = NULL;

    frees = releases = 0;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        error.message[0] = '\0';
        ck_assert_int_eq(uva_workers_new(&bad[i].options, &out, &error),
                         EINVAL);
        expect_text(bad[i].text);
        ck_assert_ptr_null(out);
    }
    uva_workers_release(NULL);
}
END_TEST

START_TEST(without_a_runtime_there_is_nothing_to_do)
{
    struct uva_runtime_stats stats;

    frees = releases = 0;
    memset(&stats, 0xa5, sizeof(stats));
    uva_runtime_get_stats(NULL, &stats);
    for (size_t i = 0; i < sizeof(stats) / sizeof(int64_t); i++)
        ck_assert_int_eq(((const int64_t *)&stats)[i], 0);
    ck_assert_int_eq(uva_runtime_close(NULL, 0, never, NULL), EINVAL);
    ck_assert_int_eq(uva_runtime_join(NULL, UVA_FOREVER), EINVAL);
    ck_assert_int_eq(uva_runtime_post(NULL, never, NULL), EINVAL);
    ck_assert_int_eq(uva_runtime_post(runtime(), NULL, NULL), EINVAL);
    ck_assert_int_eq(
        uva_runtime_run(NULL, UVA_LANE_BLOCKING, never, NULL, NULL), EINVAL);
    ck_assert_int_eq(
        uva_runtime_run(runtime(), UVA_LANE_BLOCKING, NULL, never, NULL),
        EINVAL);
    ck_assert_int_eq(
        uva_runtime_run(runtime(), (enum uva_lane)2, never, NULL, NULL),
        EINVAL);
    ck_assert_int_eq(uva_runtime_fd(NULL), -1);
    ck_assert(!uva_runtime_turn(NULL));
    ck_assert(!uva_runtime_on_loop(NULL));
    ck_assert_ptr_null(uva_runtime_loop(NULL));
}
END_TEST

/* ---- stages ------------------------------------------------------------- */

static int map_never(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *why)
{
    (void)ctx;
    (void)in;
    (void)out;
    (void)why;
    ck_abort_msg("a map that was refused is not called");
}

static struct uva_map counted_map(void)
{
    return (struct uva_map){.batch = map_never,
                            .free_ctx = fake_source_options(fake).free_ctx,
                            .ctx = fake};
}

START_TEST(a_map_without_its_function_is_refused)
{
    struct uva_stream *stream = fixture_blocking(&f);
    struct uva_map map = counted_map();

    map.batch = NULL;
    ck_assert_int_eq(uva_stream_map(stream, &map), EINVAL);
    ck_assert_int_eq(atomic_load(&fake->freed), 1);
    ck_assert_int_eq(uva_stream_map(stream, NULL), EINVAL);
    refused(stream, EINVAL, "uva_map: batch");
    frees = 2;
}
END_TEST

START_TEST(a_stage_on_a_failed_stream_does_nothing_but_say_why)
{
    struct uva_stream *stream = fixture_blocking(&f);
    const struct uva_map map = counted_map();

    ck_assert_int_eq(uva__stream_limit(stream, -1), EINVAL);
    ck_assert_int_eq(uva_stream_map(stream, &map), EINVAL);
    ck_assert_int_eq(atomic_load(&fake->freed), 1);
    ck_assert_int_eq(uva__stream_limit(stream, 1), EINVAL);
    ck_assert_int_eq(uva_stream_parallel(stream, NULL), EINVAL);
    ck_assert_int_eq(uva_stream_set_name(stream, "late"), EINVAL);
    refused(stream, EINVAL, "limit: -1");
    frees = 2;
}
END_TEST

START_TEST(pool_of_a_stage_must_make_sense)
{
    const struct uva_parallel few = {.workers = -1},
                              many = {.workers = 1 << 30};
    struct uva_stream *stream = fixture_blocking(&f);

    ck_assert_int_eq(uva_stream_parallel(stream, &few), EINVAL);
    refused(stream, EINVAL, "workers");
    stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_parallel(stream, &many), EINVAL);
    refused(stream, EINVAL, "workers");
    releases = frees = 2;
}
END_TEST

START_TEST(a_name_must_be_one)
{
    struct uva_stream *stream = fixture_blocking(&f);

    ck_assert_int_eq(uva_stream_set_name(stream, "first"), 0);
    ck_assert_int_eq(uva_stream_set_name(stream, "second"), 0);
    ck_assert_int_eq(uva_stream_set_name(stream, NULL), EINVAL);
    refused(stream, EINVAL, "name");
}
END_TEST

START_TEST(a_stage_after_the_start_is_refused)
{
    struct uva_stream *stream = fixture_blocking(&f);
    const struct uva_map map = counted_map();

    recording_consume(got, uva_stream_acquire(stream));
    ck_assert_int_eq(uva_stream_map(stream, &map), EBUSY);
    ck_assert_int_eq(atomic_load(&fake->freed), 1);
    ck_assert_int_eq(uva__stream_limit(stream, 1), EBUSY);
    ck_assert_int_eq(uva_stream_parallel(stream, NULL), EBUSY);
    ck_assert_int_eq(uva_stream_set_name(stream, "late"), EBUSY);
    fixture_await(&f);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got->batches, BATCHES);
    ck_assert_int_eq(uva__stream_limit(stream, 1), EBUSY);
    uva_stream_release(stream);
    frees = 2;
}
END_TEST

/* ---- starts ------------------------------------------------------------- */

START_TEST(a_stream_starts_once)
{
    const struct uva_consumer table = recording_table(got);
    struct uva_stream *stream = fixture_blocking(&f);
    struct recording_handler handler;

    recording_handler_init(&handler, 1, 1);
    recording_consume(got, uva_stream_acquire(stream));
    for (int i = 0; i < 2; i++) { /* while it runs, and after its end */
        ck_assert_int_eq(uva_stream_for_each(stream, &table, &error), EBUSY);
        expect_text("started");
        ck_assert_int_eq(
            uva_stream_start_take(stream, NULL, NULL, NULL, &error), EBUSY);
        expect_text("started");
        ck_assert_int_eq(
            uva_stream_drive(stream, &handler.handler, NULL, &error), EBUSY);
        expect_text("started");
        fixture_await(&f);
    }
    ck_assert_int_eq(uva_stream_status(stream, &error), 0);
    uva_stream_release(stream);
    ck_assert_int_eq(got->done, 1);
    ck_assert_str_eq(handler.transcript, "");
}
END_TEST

START_TEST(a_stream_that_was_cancelled_has_started_too)
{
    const struct uva_consumer table = recording_table(got);
    struct uva_stream *stream = fixture_blocking(&f);

    recording_consume(got, uva_stream_acquire(stream));
    uva_stream_cancel(stream, 0, "enough");
    ck_assert_int_eq(uva_stream_for_each(stream, &table, &error), EBUSY);
    fixture_await(&f);
    recording_ended(&f.got, UVA_END_CANCELLED, ECANCELED, "enough");
    ck_assert_int_eq(uva_stream_for_each(stream, &table, &error), EBUSY);
    uva_stream_release(stream);
}
END_TEST

START_TEST(a_cancel_before_the_start_makes_it_fail)
{
    const struct uva_consumer table = recording_table(got);
    struct uva_stream *stream = fixture_blocking(&f);
    int code = _i == 0 ? 0 : EDOM;

    uva_stream_cancel(stream, code, "not needed");
    uva_stream_cancel(stream, EIO, "the second does not count");
    ck_assert_int_eq(uva_stream_for_each(stream, &table, &error),
                     code != 0 ? code : ECANCELED);
    ck_assert_str_eq(error.message, "not needed");
    uva_stream_release(stream);
    ck_assert_int_eq(got->done, 0);
}
END_TEST

START_TEST(a_refused_start_has_taken_nothing)
{
    struct uva_consumer consumer = {.ctx = &f.got};
    struct uva_stream *stream = fixture_blocking(&f);

    ck_assert_int_eq(uva_stream_for_each(stream, NULL, &error), EINVAL);
    expect_text("uva_consumer");
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, &error), EINVAL);
    expect_text("on_batch");
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), EINVAL);
    ck_assert_int_eq(uva_stream_status(stream, &error), 0);
    fixture_consume(&f, stream);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got->rows, BATCHES * 3);
}
END_TEST

static void drive_never(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    (void)outcome;
    ck_abort_msg("a drive that was refused has no end");
}

static const char *const handler_slots[] = {"on_schema", "on_next_task",
                                            "on_error", "release"};

START_TEST(a_handler_with_an_empty_slot_is_refused_untouched)
{
    const struct uva_drive options = {.on_done = drive_never};
    struct uva_stream *stream = fixture_blocking(&f);
    struct ArrowAsyncDeviceStreamHandler before;
    struct recording_handler handler;

    recording_handler_init(&handler, 1, 1);
    if (_i == 0)
        handler.handler.on_schema = NULL;
    else if (_i == 1)
        handler.handler.on_next_task = NULL;
    else if (_i == 2)
        handler.handler.on_error = NULL;
    else
        handler.handler.release = NULL;
    before = handler.handler;
    ck_assert_int_eq(
        uva_stream_drive(stream, &handler.handler, &options, &error), EINVAL);
    expect_text(handler_slots[_i]);
    ck_assert_mem_eq(&before, &handler.handler, sizeof(before));
    fixture_consume(&f, stream); /* the stream is still valid */
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
}
END_TEST

START_TEST(a_drive_without_a_handler_or_with_bad_metadata_is_refused)
{
    static const int32_t counts[] = {-1, INT32_MAX};
    struct uva_stream *stream = fixture_blocking(&f);
    struct recording_handler handler;
    struct uva_drive options = {.on_done = drive_never};

    recording_handler_init(&handler, 1, 1);
    ck_assert_int_eq(uva_stream_drive(stream, NULL, &options, &error), EINVAL);
    expect_text("handler");
    for (int i = 0; i < 2; i++) {
        options.metadata = (const char *)&counts[i];
        ck_assert_int_eq(
            uva_stream_drive(stream, &handler.handler, &options, &error),
            EINVAL);
        expect_text("metadata");
    }
    ck_assert_str_eq(handler.transcript, "");
    uva_stream_release(stream);
}
END_TEST

START_TEST(without_a_stream_there_is_nothing_to_do)
{
    const struct uva_consumer table = recording_table(got);
    const struct uva_map map = counted_map();
    struct recording_handler handler;

    releases = 0;
    recording_handler_init(&handler, 1, 1);
    ck_assert_int_eq(uva_stream_map(NULL, &map), EINVAL);
    ck_assert_int_eq(uva__stream_limit(NULL, 1), EINVAL);
    ck_assert_int_eq(uva_stream_parallel(NULL, NULL), EINVAL);
    ck_assert_int_eq(uva_stream_set_name(NULL, "none"), EINVAL);
    ck_assert_int_eq(uva_stream_for_each(NULL, &table, &error), EINVAL);
    expect_text("stream");
    ck_assert_int_eq(uva_stream_start_take(NULL, NULL, NULL, NULL, &error),
                     EINVAL);
    expect_text("stream");
    ck_assert_int_eq(uva_stream_drive(NULL, &handler.handler, NULL, &error),
                     EINVAL);
    expect_text("stream");
    ck_assert_int_eq(uva_stream_status(NULL, &error), EINVAL);
    expect_text("stream");
    ck_assert_ptr_null(uva_stream_acquire(NULL));
    ck_assert_ptr_null(uva_stream_get_info(NULL));
    uva_stream_cancel(NULL, 0, NULL);
    uva_stream_resume(NULL);
    uva_stream_release(NULL);
    uva_stream_drop(NULL);
}
END_TEST

static TCase *in_sources(void)
{
    TCase *c = suite_tests("sources", a_source_given_away_twice_is_refused,
                           a_source_without_a_runtime_is_given_back,
                           a_source_and_a_hook_are_one_too_many,
                           neither_a_source_nor_a_hook_is_one_too_few,
                           no_task_source_or_no_runtime_is_refused, NULL);
    suite_add_loops(c, 0, 4, a_source_with_an_empty_slot_is_refused,
                    a_device_source_with_an_empty_slot_is_refused,
                    a_bad_window_is_refused, NULL);
    tcase_add_loop_test(c, a_task_source_with_an_empty_slot_is_refused, 0, 3);
    return c;
}

static TCase *in_options(void)
{
    return suite_tests(
        "options", uncleared_sources_are_refused, uncleared_stages_are_refused,
        uncleared_terminals_are_refused_and_the_stream_is_still_good,
        uncleared_options_of_runtimes_and_workers_are_refused,
        options_that_make_no_sense_are_refused,
        pool_that_make_no_sense_are_refused,
        without_a_runtime_there_is_nothing_to_do, NULL);
}

static TCase *in_stages(void)
{
    return suite_tests("stages", a_map_without_its_function_is_refused,
                       a_stage_on_a_failed_stream_does_nothing_but_say_why,
                       pool_of_a_stage_must_make_sense, a_name_must_be_one,
                       a_stage_after_the_start_is_refused, NULL);
}

static TCase *in_starts(void)
{
    TCase *c =
        suite_tests("starts", a_stream_starts_once,
                    a_stream_that_was_cancelled_has_started_too,
                    a_refused_start_has_taken_nothing,

                    a_drive_without_a_handler_or_with_bad_metadata_is_refused,
                    without_a_stream_there_is_nothing_to_do, NULL);
    tcase_add_loop_test(c, a_cancel_before_the_start_makes_it_fail, 0, 2);
    tcase_add_loop_test(c, a_handler_with_an_empty_slot_is_refused_untouched, 0,
                        4);
    return c;
}

int main(void)
{
    return suite_main("bad_calls", set_up, tear_down, in_sources(),
                      in_options(), in_stages(), in_starts(), NULL);
}
