/* SPDX-License-Identifier: Apache-2.0 */
/* Reading by a thread through uva_stream_to_device_stream(), up to the end, an
 * error, or a limit of the window. test_to_arrow_stream_life.c tests how
 * reading is stopped, and how long each object lives. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "stage/limit.h"
#include "support/blocking_fixture.h"
#include "support/check_suite.h"
#include "support/loop_fixture.h"
#include "uvarrow/arrow.h"

static struct blocking_fixture b;

static void tear_down(void)
{
    blocking_close(&b);
}

/* ---- reading ------------------------------------------------------------ */

START_TEST(all_batches_are_read_in_order)
{
    const int32_t windows[] = {1, 2, 3, 8, 64, 0};

    blocking_run(&b, 500, windows[_i]);
    ck_assert_int_eq(blocking_read(&b.out, 0, INT64_MAX, NULL), 500);
    ck_assert_ptr_null(b.out.get_last_error(&b.out));
}
END_TEST

START_TEST(a_stream_without_batches_ends_at_once)
{
    blocking_run(&b, 0, 1);
    ck_assert_int_eq(blocking_read(&b.out, 0, 1, NULL), 0);
    ck_assert_int_eq(uva_stream_status(b.stream, NULL), 0);
}
END_TEST

START_TEST(the_end_is_sticky)
{
    struct uva__task_ring *task_ring;

    blocking_run(&b, 2, 4);
    task_ring = blocking_task_ring(&b.out);
    ck_assert_int_eq(blocking_read(&b.out, 0, INT64_MAX, NULL), 2);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(blocking_read(&b.out, 2, 1, NULL), 0);
    uva_stream_cancel(b.stream, EIO, "too late");
    ck_assert_int_eq(blocking_read(&b.out, 2, 1, NULL), 0);
    blocking_end_runtime(&b);
    /* the state after a cancel that the loop saw a moment before */
    uva__failure_format(&task_ring->inlet.failure,
                        &task_ring->stream->rt->allocator, EIO, "raced");
    uva__atomic64_or(&task_ring->events, UVA__TASK_RING_CANCELLED);
    ck_assert_int_eq(blocking_read(&b.out, 2, 1, NULL), 0);
    ck_assert_ptr_null(b.out.get_last_error(&b.out));
}
END_TEST

START_TEST(a_struct_may_be_moved_between_calls)
{
    struct ArrowArrayStream *places = calloc(3, sizeof(*places));

    blocking_run(&b, 3, 2);
    places[0] = b.out;
    memset(&b.out, 0xDD, sizeof(b.out));
    b.out.release = NULL;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(blocking_read(&places[i], i, 1, NULL), 1);
        places[i + 1] = places[i];
        memset(&places[i], 0xDD, sizeof(places[i]));
    }
    ck_assert_int_eq(blocking_read(&places[2], 2, 9, NULL), 1);
    places[2].release(&places[2]);
    ck_assert(places[2].release == NULL);
    free(places);
}
END_TEST

START_TEST(threads_may_read_one_after_the_other)
{
    struct blocking_reader reader;

    blocking_run(&b, 100, 4);
    for (int i = 0; i < 2; i++) {
        blocking_reader_start(&reader, &b.out);
        blocking_reader_join(&reader);
        ck_assert_int_eq(reader.code, 0);
        ck_assert_int_eq(reader.batches, i == 0 ? 100 : 0);
    }
}
END_TEST

START_TEST(batches_outlive_the_stream_and_the_runtime)
{
    struct ArrowArray array;

    blocking_run(&b, 5, 4);
    ck_assert_int_eq(b.out.get_next(&b.out, &array), 0);
    b.out.release(&b.out);
    blocking_end_runtime(&b);
    ck_assert_int_eq(((const int64_t *)array.children[0]->buffers[1])[2], 2);
    array.release(&array);
}
END_TEST

/* ---- the schema --------------------------------------------------------- */

static void schema_check(struct ArrowArrayStream *stream,
                         struct ArrowSchema *out)
{
    memset(out, 0xA5, sizeof(*out));
    ck_assert_int_eq(stream->get_schema(stream, out), 0);
    ck_assert_str_eq(out->format, "+s");
    ck_assert_str_eq(out->children[0]->name, "n");
    ck_assert_ptr_null(stream->get_last_error(stream));
}

START_TEST(the_schema_can_be_had_before_between_and_after_the_batches)
{
    struct ArrowSchema schemas[4];

    blocking_run(&b, 2, 2);
    schema_check(&b.out, &schemas[0]);
    ck_assert_int_eq(blocking_read(&b.out, 0, 1, NULL), 1);
    schema_check(&b.out, &schemas[1]);
    uva_schema_release(&schemas[0]);
    ck_assert_int_eq(blocking_read(&b.out, 1, 9, NULL), 1);
    schema_check(&b.out, &schemas[2]);
    blocking_end_runtime(&b);
    schema_check(&b.out, &schemas[3]);
    blocking_close(&b);
    for (int i = 1; i < 4; i++) { /* each is an independent copy (DS-21) */
        ck_assert_str_eq(schemas[i].children[0]->format, "l");
        uva_schema_release(&schemas[i]);
    }
}
END_TEST

START_TEST(the_schema_does_not_wait_for_the_first_batch)
{
    struct ArrowSchema schema;

    blocking_open(&b, NULL, 2);
    b.fake.gate_at = 0;
    blocking_start_plain(&b, 2);
    schema_check(&b.out, &schema);
    uva_schema_release(&schema);
    fake_source_await(&b.fake);
}
END_TEST

START_TEST(the_schema_can_be_had_after_an_error)
{
    struct ArrowSchema schema;
    int code;

    blocking_open(&b, NULL, 9);
    b.fake.fail_at = 0;
    blocking_start_plain(&b, 2);
    ck_assert_int_eq(blocking_read(&b.out, 0, 9, &code), 0);
    ck_assert_int_eq(code, EIO);
    schema_check(&b.out, &schema);
    uva_schema_release(&schema);
}
END_TEST

START_TEST(a_schema_that_fails_is_told_by_every_call)
{
    struct ArrowSchema schema;
    int code;

    blocking_open(&b, NULL, 9);
    b.fake.schema_code = ENOENT;
    blocking_start_plain(&b, 2);
    for (int i = 0; i < 2; i++) {
        memset(&schema, 0xA5, sizeof(schema));
        ck_assert_int_eq(b.out.get_schema(&b.out, &schema), ENOENT);
        ck_assert(schema.release == NULL);
        ck_assert_str_eq(b.out.get_last_error(&b.out),
                         "arrow_stream: the disk is on fire");
        ck_assert_int_eq(blocking_read(&b.out, 0, 9, &code), 0);
        ck_assert_int_eq(code, ENOENT);
    }
}
END_TEST

/* ---- errors ------------------------------------------------------------- */

START_TEST(an_error_comes_behind_the_batches_before_it_and_stays)
{
    struct uva_error error = {0};
    char text[64] = "";
    int code;

    blocking_open(&b, NULL, 20);
    b.fake.fail_at = 7;
    blocking_start_plain(&b, 64);
    blocking_await_event(&b.out, UVA__TASK_RING_FAILED);
    ck_assert_int_eq(blocking_read(&b.out, 0, 99, &code), 7);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(code, EIO);
        strncpy(text, b.out.get_last_error(&b.out), sizeof(text) - 1);
        ck_assert_str_eq(text, "arrow_stream: the disk is on fire");
        ck_assert_int_eq(blocking_read(&b.out, 7, 1, &code), 0);
    }
    uva_stream_cancel(b.stream, EPERM, "too late");
    ck_assert_int_eq(blocking_read(&b.out, 7, 1, &code), 0);
    ck_assert_int_eq(code, EIO);
    blocking_end_runtime(&b);
    ck_assert_int_eq(uva_stream_status(b.stream, &error), EIO);
    ck_assert_str_eq(error.message, "arrow_stream: the disk is on fire");
}
END_TEST

START_TEST(a_failed_call_leaves_the_array_released)
{
    struct ArrowArray array;

    blocking_open(&b, NULL, 20);
    b.fake.fail_at = 0;
    blocking_start_plain(&b, 1);
    memset(&array, 0xA5, sizeof(array));
    ck_assert_int_eq(b.out.get_next(&b.out, &array), EIO);
    ck_assert(array.release == NULL);
}
END_TEST

/* Fails on every thread except the one in `ctx`. */
static int map_here(void *ctx, struct uva_batch *in,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    if (!pthread_equal(*(pthread_t *)ctx, pthread_self()))
        return uva_error_set(error, EPERM, "another thread");
    uva_array_move(&in->data, out);
    return 0;
}

START_TEST(a_batch_is_made_by_the_thread_that_reads_it)
{
    pthread_t self = pthread_self();
    const struct uva_map map = {.batch = map_here, .ctx = &self};

    blocking_open(&b, NULL, 100);
    blocking_tasks(&b);
    ck_assert_int_eq(uva_stream_map(b.stream, &map), 0);
    blocking_start(&b, 8);
    ck_assert_int_eq(blocking_read(&b.out, 0, 101, NULL), 100);
    blocking_close(&b);
}
END_TEST

/* The code is known at once, but its text only when the stream reports it. */
START_TEST(a_batch_that_cannot_be_made_ends_the_stream_with_its_reason)
{
    const int64_t batches = _i == 0 ? 6 : 20; /* the last batch fails, or not */
    int code;

    blocking_open(&b, NULL, batches);
    b.fake.extract_at = 5;
    blocking_start_tasks(&b, 64);
    blocking_await_event(&b.out, UVA__TASK_RING_END);
    ck_assert_int_eq(blocking_read(&b.out, 0, 99, &code), 5);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(code, EIO);
        ck_assert_str_eq(b.out.get_last_error(&b.out),
                         "tasks: the disk is on fire");
        ck_assert_int_eq(blocking_read(&b.out, 6, 1, &code), 0);
    }
    blocking_close(&b); /* all other tasks were discarded */
}
END_TEST

static void hurry(void *ctx)
{
    uva__producer_end_drain(blocking_task_ring(ctx)->stream->tail);
}

/* This happens when a batch waits longer than its producer lives. */
START_TEST(a_batch_that_fails_when_the_producer_has_gone_is_an_error_too)
{
    int code;

    blocking_open(&b, NULL, 3);
    b.fake.extract_at = 1;
    blocking_start_tasks(&b, 64);
    blocking_await_event(&b.out, UVA__TASK_RING_END);
    ck_assert_int_eq(uva_runtime_post(b.runtime, hurry, &b.out), 0);
    blocking_await_event(&b.out, UVA__TASK_RING_RELEASED);
    ck_assert_int_eq(blocking_read(&b.out, 0, 99, &code), 1);
    ck_assert_int_eq(code, EIO);
    ck_assert_str_eq(b.out.get_last_error(&b.out), strerror(EIO));
    ck_assert_int_eq(blocking_read(&b.out, 2, 1, &code), 0);
    ck_assert_int_eq(code, EIO);
    blocking_close(&b);
}
END_TEST

/* ---- the window --------------------------------------------------------- */

START_TEST(the_source_is_asked_for_no_more_than_the_window)
{
    const int32_t windows[] = {1, 2, 5, 16};
    const int32_t window = windows[_i];

    blocking_run(&b, 1000, window);
    blocking_await(&b.fake.given, window); /* and the window is used */
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(blocking_read(&b.out, i, 1, NULL), 1);
        ck_assert_int_le(atomic_load(&b.fake.given), i + 1 + window);
    }
}
END_TEST

/* With 10 batches in the window five are read before the next request. */
START_TEST(more_is_requested_when_few_are_left)
{
    const struct uva_window window = {.batches = 10};

    blocking_open(&b, NULL, 1000);
    blocking_plain(&b);
    ck_assert_int_eq(
        uva_stream_to_arrow_stream(b.stream, &window, &b.out, NULL), 0);
    blocking_await(&b.fake.given, 10);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(blocking_read(&b.out, i, 1, NULL), 1);
        ck_assert_int_eq(blocking_task_ring(&b.out)->reader.refill_at, 5);
        ck_assert_int_eq(atomic_load(&b.fake.given), 10);
    }
    ck_assert_int_eq(blocking_read(&b.out, 4, 1, NULL), 1);
    blocking_await(&b.fake.given, 15);
}
END_TEST

/* A batch has 24 bytes. One more may be in flight, unless the number of batches
 * is the limit. */
START_TEST(the_source_is_asked_for_no_more_than_the_bytes)
{
    const int64_t bytes[] = {1, 24, 100, 10000};
    const int64_t given[] = {2, 2, 6, 64};
    const struct uva_window window = {.bytes = bytes[_i]};

    blocking_open(&b, NULL, 1000);
    blocking_plain(&b);
    ck_assert_int_eq(
        uva_stream_to_arrow_stream(b.stream, &window, &b.out, NULL), 0);
    blocking_await(&b.fake.given, given[_i]);
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(blocking_read(&b.out, i, 1, NULL), 1);
        ck_assert_int_le(atomic_load(&b.fake.given), i + 1 + given[_i]);
    }
    ck_assert_int_eq(blocking_read(&b.out, 1000, 1, NULL), 0);
}
END_TEST

/* ---- devices ------------------------------------------------------------ */

/* Makes a stream of two arrays of a device type. */
static struct uva_stream *device_stream(struct blocking_fixture *fixture,
                                        ArrowDeviceType type, void *event)
{
    struct ArrowDeviceArray arrays[2];
    struct ArrowSchema schema;

    fake_source_schema(&fixture->fake, &schema);
    for (int i = 0; i < 2; i++) {
        fake_source_batch(&fixture->fake, i, &arrays[i]);
        arrays[i].device_type = type;
        arrays[i].device_id = 3;
        arrays[i].sync_event = event;
    }
    return uva_stream_from_arrays(fixture->runtime, &schema, arrays, 2);
}

START_TEST(a_device_stream_says_its_type_early_and_passes_events_on)
{
    struct ArrowDeviceArrayStream out;
    struct ArrowDeviceArray array, end = {.device_type = ARROW_DEVICE_CUDA};
    struct ArrowSchema schema;
    int event;

    blocking_open(&b, NULL, 0);
    struct uva_stream *stream = device_stream(&b, ARROW_DEVICE_CUDA, &event);
    ck_assert_int_eq(uva_stream_to_device_stream(stream, NULL, &out, NULL), 0);
    ck_assert_int_eq(out.device_type, ARROW_DEVICE_CUDA);
    ck_assert_int_eq(out.get_schema(&out, &schema), 0);
    uva_schema_release(&schema);
    for (int i = 0; i < 2; i++) {
        memset(&array, 0xA5, sizeof(array));
        ck_assert_int_eq(out.get_next(&out, &array), 0);
        ck_assert_int_eq(array.device_type, ARROW_DEVICE_CUDA);
        ck_assert_int_eq(array.device_id, 3);
        ck_assert_ptr_eq(array.sync_event, &event);
        uva_array_release(&array);
    }
    memset(&array, 0xA5, sizeof(array));
    ck_assert_int_eq(out.get_next(&out, &array), 0);
    ck_assert_mem_eq(&array, &end, sizeof(array)); /* G-67 */
    ck_assert_ptr_null(out.get_last_error(&out));
    out.release(&out);
    ck_assert(out.release == NULL);
    uva_stream_release(stream);
}
END_TEST

static int open_cuda(void *ctx, struct ArrowDeviceArrayStream *out,
                     struct uva_error *error)
{
    (void)error;
    fake_source_device(ctx, ARROW_DEVICE_CUDA, out);
    return 0;
}

static void count_warning(void *ctx, const struct uva_log_record *record)
{
    if (record->clause != NULL && strcmp(record->clause, "DS-05") == 0)
        atomic_fetch_add((atomic_int *)ctx, 1);
}

START_TEST(a_device_that_was_not_announced_is_warned_of)
{
    atomic_int warnings = 0;
    const struct uva_runtime_options options = {
        .log = {.write = count_warning, .ctx = &warnings}};
    struct ArrowDeviceArrayStream out;
    struct ArrowDeviceArray array;
    struct uva_runtime *runtime;

    blocking_open(&b, NULL, 1);
    ck_assert_int_eq(uva_runtime_open(NULL, &options, &runtime, NULL), 0);
    struct uva_arrow_source source = fake_source_options(&b.fake);
    source.open_device = open_cuda;
    if (_i == 1)
        source.device_type = ARROW_DEVICE_CUDA;
    b.stream = uva_stream_from_device_stream(runtime, NULL, &source);
    b.sources = 1;
    ck_assert_int_eq(uva_stream_to_device_stream(b.stream, NULL, &out, NULL),
                     0);
    ck_assert_int_eq(out.device_type,
                     _i == 1 ? ARROW_DEVICE_CUDA : ARROW_DEVICE_CPU);
    ck_assert_int_eq(out.get_next(&out, &array), 0);
    ck_assert_int_eq(array.device_type, ARROW_DEVICE_CUDA);
    uva_array_release(&array);
    ck_assert_int_eq(atomic_load(&warnings), _i == 1 ? 0 : 1);
    out.release(&out);
    ck_assert_int_eq(uva_runtime_join(runtime, UVA_FOREVER), 0);
    blocking_await(&b.fake.freed, 1);
}
END_TEST

START_TEST(a_plain_stream_refuses_data_that_the_host_cannot_read)
{
    const ArrowDeviceType types[] = {ARROW_DEVICE_CUDA, ARROW_DEVICE_CUDA_HOST,
                                     ARROW_DEVICE_CUDA_MANAGED};
    struct uva_error error = {0};
    struct ArrowArray array;
    int event;

    blocking_open(&b, NULL, 0);
    struct uva_stream *stream = device_stream(&b, types[_i], &event);
    ck_assert_int_eq(uva_stream_to_arrow_stream(stream, NULL, &b.out, NULL), 0);
    for (int i = 0; i < 2; i++) {
        memset(&array, 0xA5, sizeof(array));
        ck_assert_int_eq(b.out.get_next(&b.out, &array), ENOTSUP);
        ck_assert(array.release == NULL);
        ck_assert_ptr_nonnull(strstr(b.out.get_last_error(&b.out),
                                     "uva_stream_to_device_stream()"));
    }
    blocking_end_runtime(&b);
    ck_assert_int_eq(uva_stream_status(stream, &error), ENOTSUP);
    uva_stream_release(stream);
}
END_TEST

START_TEST(a_plain_stream_gives_what_the_host_can_read)
{
    const ArrowDeviceType types[] = {ARROW_DEVICE_CPU, ARROW_DEVICE_CUDA_HOST,
                                     ARROW_DEVICE_CUDA_MANAGED};

    blocking_open(&b, NULL, 0);
    struct uva_stream *stream = device_stream(&b, types[_i], NULL);
    ck_assert_int_eq(uva_stream_to_arrow_stream(stream, NULL, &b.out, NULL), 0);
    ck_assert_int_eq(blocking_read(&b.out, 0, 9, NULL), 2);
    uva_stream_release(stream);
}
END_TEST

/* ---- the start ---------------------------------------------------------- */

static int start(struct uva_stream *stream, const struct uva_window *window,
                 struct uva_error *error)
{
    const struct ArrowDeviceArrayStream nothing = {0};
    struct ArrowDeviceArrayStream device;
    struct ArrowArrayStream plain;
    int code;

    memset(&plain, 0xA5, sizeof(plain));
    memset(&device, 0xA5, sizeof(device));
    code = uva_stream_to_arrow_stream(stream, window, &plain, error);
    ck_assert_int_ne(code, 0);
    ck_assert_int_eq(error->code, code);
    ck_assert_str_ne(error->message, "");
    ck_assert_mem_eq(&plain, &nothing, sizeof(plain));
    ck_assert_int_eq(
        uva_stream_to_device_stream(stream, window, &device, error), code);
    ck_assert_mem_eq(&device, &nothing, sizeof(device));
    return code;
}

START_TEST(a_start_that_fails_gives_a_released_stream)
{
    struct uva_error error = {0};

    blocking_open(&b, NULL, 5);
    blocking_plain(&b);
    ck_assert_int_eq(start(NULL, NULL, &error), EINVAL);
    ck_assert_int_eq(
        start(b.stream, &(struct uva_window){.batches = -1}, &error), EINVAL);
    ck_assert_int_eq(start(b.stream, &(struct uva_window){.bytes = -1}, &error),
                     EINVAL);
    ck_assert_int_eq(uva_stream_to_device_stream(b.stream, NULL, NULL, &error),
                     EINVAL);
    ck_assert_int_eq(uva_stream_to_arrow_stream(b.stream, NULL, NULL, &error),
                     EINVAL);
    blocking_start(&b, 2); /* these calls have not started the stream */
    ck_assert_int_eq(start(b.stream, NULL, &error), EBUSY);
    ck_assert_int_eq(blocking_read(&b.out, 0, 9, NULL), 5);
}
END_TEST

START_TEST(the_first_error_of_building_is_told_by_the_start)
{
    struct uva_error error = {0};

    blocking_open(&b, NULL, 5);
    blocking_plain(&b);
    (void)uva__stream_limit(b.stream, -5);
    ck_assert_int_eq(start(b.stream, NULL, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "limit"));
}
END_TEST

START_TEST(a_stream_that_was_cancelled_before_does_not_start)
{
    struct uva_error error = {0};

    blocking_open(&b, NULL, 5);
    blocking_plain(&b);
    uva_stream_cancel(b.stream, EACCES, "not you");
    ck_assert_int_eq(start(b.stream, NULL, &error), EACCES);
    ck_assert_str_eq(error.message, "not you");
}
END_TEST

START_TEST(a_runtime_that_closes_starts_nothing)
{
    struct uva_error error = {0};

    blocking_open(&b, NULL, 5);
    blocking_plain(&b);
    ck_assert_int_eq(uva_runtime_close(b.runtime, 0, NULL, NULL), 0);
    ck_assert_int_eq(start(b.stream, NULL, &error), ESHUTDOWN);
}
END_TEST

/* ---- several streams ---------------------------------------------------- */

/* Exports the stream of `fixture` to a second stream, which is exported again.
 */
static struct uva_stream *chain(struct blocking_fixture *fixture,
                                struct ArrowArrayStream *out)
{
    struct uva_stream *stream =
        uva_stream_from_arrow_stream(fixture->runtime, &fixture->out, NULL);

    ck_assert(fixture->out.release == NULL);
    ck_assert_int_eq(uva_stream_to_arrow_stream(stream, NULL, out, NULL), 0);
    return stream;
}

START_TEST(streams_may_be_chained_on_one_runtime)
{
    struct ArrowArrayStream out;

    blocking_run(&b, 300, 4);
    struct uva_stream *second = chain(&b, &out);
    ck_assert_int_eq(blocking_read(&out, 0, INT64_MAX, NULL), 300);
    out.release(&out);
    uva_stream_release(second);
}
END_TEST

START_TEST(an_error_comes_through_a_chain)
{
    struct ArrowArrayStream out;
    int code;

    blocking_open(&b, NULL, 300);
    b.fake.fail_at = 5;
    blocking_start_plain(&b, 4);
    struct uva_stream *second = chain(&b, &out);
    ck_assert_int_eq(blocking_read(&out, 0, INT64_MAX, &code), 5);
    ck_assert_int_eq(code, EIO);
    ck_assert_str_eq(out.get_last_error(&out),
                     "arrow_stream: arrow_stream: the disk is on fire");
    out.release(&out);
    uva_stream_release(second);
}
END_TEST

/* The only worker waits for a batch that a second worker must read. */
START_TEST(a_worker_that_waits_for_another_does_not_use_up_the_lane)
{
    const struct uva_workers_options one = {.blocking_threads = 1};
    struct ArrowArrayStream out;
    struct uva_workers *workers;

    ck_assert_int_eq(uva_workers_new(&one, &workers, NULL), 0);
    blocking_open(&b, workers, 300);
    blocking_start_plain(&b, 1);
    struct uva_stream *second = chain(&b, &out);
    ck_assert_int_eq(blocking_read(&out, 0, INT64_MAX, NULL), 300);
    out.release(&out);
    uva_stream_release(second);
    blocking_close(&b);
    uva_workers_release(workers);
}
END_TEST

static void add_reading(Suite *suite)
{
    TCase *reading = suite_case(suite, "reading", NULL, tear_down);

    suite_add(reading, a_stream_without_batches_ends_at_once, the_end_is_sticky,
              a_struct_may_be_moved_between_calls,
              threads_may_read_one_after_the_other,
              batches_outlive_the_stream_and_the_runtime, NULL);
    tcase_add_loop_test(reading, all_batches_are_read_in_order, 0, 6);

    suite_add(suite_case(suite, "schema", NULL, tear_down),
              the_schema_can_be_had_before_between_and_after_the_batches,
              the_schema_does_not_wait_for_the_first_batch,
              the_schema_can_be_had_after_an_error,
              a_schema_that_fails_is_told_by_every_call, NULL);
}

static void add_errors(Suite *suite)
{
    TCase *errors = suite_case(suite, "errors", NULL, tear_down);

    suite_add(errors, an_error_comes_behind_the_batches_before_it_and_stays,
              a_failed_call_leaves_the_array_released,
              a_batch_is_made_by_the_thread_that_reads_it,
              a_batch_that_fails_when_the_producer_has_gone_is_an_error_too,
              NULL);
    tcase_add_loop_test(
        errors, a_batch_that_cannot_be_made_ends_the_stream_with_its_reason, 0,
        2);

    TCase *window = suite_case(suite, "window", NULL, tear_down);
    tcase_add_test(window, more_is_requested_when_few_are_left);
    suite_add_loops(window, 0, 4,
                    the_source_is_asked_for_no_more_than_the_window,
                    the_source_is_asked_for_no_more_than_the_bytes, NULL);
}

static void add_others(Suite *suite)
{
    TCase *devices = suite_case(suite, "devices", NULL, tear_down);

    tcase_add_test(devices,
                   a_device_stream_says_its_type_early_and_passes_events_on);
    tcase_add_loop_test(devices, a_device_that_was_not_announced_is_warned_of,
                        0, 2);
    suite_add_loops(devices, 0, 3,
                    a_plain_stream_refuses_data_that_the_host_cannot_read,
                    a_plain_stream_gives_what_the_host_can_read, NULL);

    suite_add(suite_case(suite, "the start", NULL, tear_down),
              a_start_that_fails_gives_a_released_stream,
              the_first_error_of_building_is_told_by_the_start,
              a_stream_that_was_cancelled_before_does_not_start,
              a_runtime_that_closes_starts_nothing, NULL);

    suite_add(suite_case(suite, "several", NULL, tear_down),
              streams_may_be_chained_on_one_runtime,
              an_error_comes_through_a_chain,
              a_worker_that_waits_for_another_does_not_use_up_the_lane, NULL);
}

int main(void)
{
    Suite *suite = suite_create("to_arrow_stream");

    add_reading(suite);
    add_errors(suite);
    add_others(suite);

    return suite_run(suite);
}
