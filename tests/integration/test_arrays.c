/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of arrays in memory: their batches, the arrays that they refuse, and
 * that every array put in is released once in each case. */
#include <check.h>
#include <string.h>

#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "support/recording_consumer.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"
#include "uvarrow/stages.h"

static struct loop_fixture loop;
static struct recording_consumer consumer;
static struct ArrowSchema schema;
static struct ArrowDeviceArray arrays[4];

static void set_up(void)
{
    recording_init(&consumer);
    consumer.transcribes = true;
    loop_open(&loop);
    batch_schema(&schema);
    for (int i = 0; i < 4; i++)
        batch_make(&arrays[i], i + 1);
}

static void tear_down(void)
{
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

static struct uva_stream *make(size_t count)
{
    struct uva_stream *stream =
        uva_stream_from_arrays(loop.runtime, &schema, arrays, count);

    ck_assert_ptr_nonnull(stream);
    ck_assert(!uva_schema_is_live(&schema));
    for (size_t i = 0; i < count; i++)
        ck_assert(!uva_array_is_live(&arrays[i]));
    return stream;
}

/* Releases the arrays from `i` on, which the test did not put in. */
static void release_from(int i)
{
    for (; i < 4; i++)
        uva_array_release(&arrays[i]);
}

static void ck_refused(struct uva_stream *stream, int code, const char *text)
{
    struct uva_error error = {0};

    ck_assert_int_eq(uva_stream_status(stream, &error), code);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
    uva_stream_release(stream);
}

/* ---- batches ------------------------------------------------------------ */

START_TEST(arrays_come_in_order_with_their_ordinals)
{
    struct uva_stream *stream = make(4);

    recording_start(&consumer, stream);
    uva_stream_release(stream);
    recording_await_done(&consumer, &loop);
    ck_assert_str_eq(consumer.transcript, "schema 1 2 3 4 complete");
    ck_assert_int_eq(consumer.ordinal, 3);
}
END_TEST

START_TEST(no_arrays_are_a_schema_and_an_end)
{
    struct uva_stream *stream =
        uva_stream_from_arrays(loop.runtime, &schema, NULL, 0);

    release_from(0);
    recording_start(&consumer, stream);
    uva_stream_release(stream);
    recording_await_done(&consumer, &loop);
    ck_assert_str_eq(consumer.transcript, "schema complete");
}
END_TEST

START_TEST(arrays_wait_for_demand)
{
    struct uva_stream *stream = make(4);

    consumer.appetite = 1;
    recording_start(&consumer, stream);
    loop_settle(&loop);
    ck_assert_str_eq(consumer.transcript, "schema 1");
    ck_assert_int_eq(plain_live(), 4); /* schema, one offered, two kept */
    recording_feed(&consumer, -1 - consumer.appetite);
    recording_await_done(&consumer, &loop);
    ck_assert_str_eq(consumer.transcript, "schema 1 2 3 4 complete");
    uva_stream_release(stream);
}
END_TEST

START_TEST(the_stream_is_of_the_device_of_its_arrays)
{
    struct uva_stream *stream;

    for (int i = 0; i < 4; i++)
        arrays[i].device_type = ARROW_DEVICE_CUDA_HOST;
    stream = make(4);
    recording_start(&consumer, stream);
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(uva_stream_get_info(stream)->device_type,
                     ARROW_DEVICE_CUDA_HOST);
    uva_stream_release(stream);
}
END_TEST

/* ---- releasing early ---------------------------------------------------- */

START_TEST(a_cancel_releases_what_was_not_delivered)
{
    struct uva_stream *stream = make(4);

    consumer.appetite = 2;
    recording_start(&consumer, stream);
    recording_await(&consumer, &loop, 2);
    uva_stream_cancel(stream, 0, NULL);
    recording_await_done(&consumer, &loop);
    ck_assert_str_eq(consumer.transcript, "schema 1 2 cancelled");
    ck_assert_int_eq(plain_live(), 1); /* the stream has the schema */
    uva_stream_release(stream);
}
END_TEST

START_TEST(a_limit_releases_the_rest)
{
    struct uva_stream *stream = make(4);

    ck_assert_int_eq(uva__stream_limit(stream, 3), 0);
    recording_start(&consumer, stream);
    uva_stream_release(stream);
    recording_await_done(&consumer, &loop);
    ck_assert_str_eq(consumer.transcript, "schema 1 2 3 complete");
}
END_TEST

START_TEST(a_stream_that_was_never_started_releases_all)
{
    uva_stream_release(make(4));
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

START_TEST(a_stream_may_outlive_its_runtime)
{
    struct uva_stream *stream = make(4);

    loop_close_runtime(&loop, UVA_FOREVER);
    ck_assert_int_eq(plain_live(), 5);
    uva_stream_release(stream);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

START_TEST(a_close_cancels_it)
{
    struct uva_stream *stream = make(4);

    consumer.appetite = 0;
    recording_start(&consumer, stream);
    uva_stream_release(stream);
    loop_close_runtime(&loop, 0);
    ck_assert_str_eq(consumer.transcript, "schema cancelled");
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

/* ---- refused arrays ----------------------------------------------------- */

START_TEST(a_released_schema_is_refused)
{
    uva_schema_release(&schema);
    ck_refused(make(4), EINVAL, "schema");
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

START_TEST(a_missing_schema_is_refused)
{
    ck_refused(uva_stream_from_arrays(loop.runtime, NULL, arrays, 4), EINVAL,
               "schema");
    uva_schema_release(&schema);
}
END_TEST

START_TEST(arrays_that_are_not_there_are_refused)
{
    ck_refused(uva_stream_from_arrays(loop.runtime, &schema, NULL, 2), EINVAL,
               "arrays is NULL");
    ck_assert(!uva_schema_is_live(&schema));
    release_from(0);
}
END_TEST

START_TEST(a_released_array_is_refused_by_its_number)
{
    uva_array_release(&arrays[2]);
    ck_refused(make(4), EINVAL, "array 2 is released");
}
END_TEST

START_TEST(an_array_that_does_not_fit_is_refused_by_its_number)
{
    uva_array_release(&arrays[3]);
    batch_make(&arrays[3], 9);
    arrays[3].array.n_buffers = 1;
    ck_refused(make(4), EINVAL, "array 3 does not fit the schema");
}
END_TEST

START_TEST(arrays_of_two_devices_are_refused)
{
    arrays[1].device_type = ARROW_DEVICE_CUDA_HOST;
    ck_refused(make(4), EINVAL, "array 1 is of device type 3");
}
END_TEST

START_TEST(a_missing_runtime_is_refused_and_all_released)
{
    ck_refused(uva_stream_from_arrays(NULL, &schema, arrays, 4), EINVAL,
               "without a runtime");
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

START_TEST(a_format_unknown_here_is_passed_on)
{
    struct uva_stream *stream;

    schema.format = "?!";
    stream = make(4);
    ck_assert_int_eq(uva_stream_status(stream, NULL), 0);
    uva_stream_release(stream);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

static const struct uva_consumer *into(struct recording_consumer *c)
{
    static struct uva_consumer table;

    table = recording_table(c);
    return &table;
}

/* The start adds a wait for events after arrays in pinned memory. */
static const ArrowDeviceType kinds[] = {ARROW_DEVICE_CPU,
                                        ARROW_DEVICE_CUDA_HOST};

START_TEST(every_allocation_may_fail)
{
    bool failed = true;

    release_from(0);
    uva_schema_release(&schema);
    for (long n = 1; failed; n++) {
        struct uva_stream *stream;
        int code;

        recording_init(&consumer);
        consumer.transcribes = true;
        batch_schema(&schema);
        for (int i = 0; i < 4; i++) {
            batch_make(&arrays[i], i + 1);
            arrays[i].device_type = kinds[_i];
        }
        loop_fail(&loop, n);
        stream = make(4);
        code = uva_stream_for_each(stream, into(&consumer), NULL);
        if (code == 0)
            recording_await_done(&consumer, &loop);
        uva_stream_release(stream);
        failed = faulty_allocator_has_failed(&loop.memory);
        loop_fail(&loop, 0);
        if (code == 0)
            code = consumer.outcome.error.code;
        ck_assert_int_eq(code, failed ? ENOMEM : 0);
        ck_assert_int_eq(plain_live(), 0);
    }
    ck_assert_str_eq(consumer.transcript, "schema 1 2 3 4 complete");
}
END_TEST

int main(void)
{
    TCase *memory = tcase_create("memory");

    suite_add_loops(memory, 0, 2, every_allocation_may_fail, NULL);

    return suite_main(
        "from_arrays", set_up, tear_down,
        suite_tests("what comes out", arrays_come_in_order_with_their_ordinals,
                    no_arrays_are_a_schema_and_an_end, arrays_wait_for_demand,
                    the_stream_is_of_the_device_of_its_arrays, NULL),
        suite_tests("letting go", a_cancel_releases_what_was_not_delivered,
                    a_limit_releases_the_rest,
                    a_stream_that_was_never_started_releases_all,
                    a_stream_may_outlive_its_runtime, a_close_cancels_it, NULL),
        suite_tests("what is refused", a_released_schema_is_refused,
                    a_missing_schema_is_refused,
                    arrays_that_are_not_there_are_refused,
                    a_released_array_is_refused_by_its_number,
                    an_array_that_does_not_fit_is_refused_by_its_number,
                    arrays_of_two_devices_are_refused,
                    a_missing_runtime_is_refused_and_all_released,
                    a_format_unknown_here_is_passed_on, NULL),
        memory, NULL);
}
