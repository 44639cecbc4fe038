/* SPDX-License-Identifier: Apache-2.0 */
/* How a pushed stream ends: by the writer, by the consumer, with the runtime,
 * or before it was made; and which callbacks and codes each side gets. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "stage/limit.h"
#include "stream/stream_impl.h"
#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "support/push_fixture.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

static struct push_fixture p;

static void tear_down(void)
{
    push_close(&p);
}

/* ---- ended by the writer ------------------------------------------------ */

START_TEST(an_error_comes_after_what_was_pushed)
{
    struct uva_error error = {0};
    char block[64];
    size_t size = sizeof(block);
    const struct uva_pair pair[] = {{.key = "why\0not",
                                     .value = "\0\1\xff",
                                     .key_size = 7,
                                     .value_size = 3},
                                    {0}};

    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    push_open(&p, 0, 0);
    push_batches(&p, 1, 2);
    (void)uva_error_set(&error, 4711, "the wire is cut");
    uva_pusher_close(p.pusher, &error, block);
    memset(&error, 0xee, sizeof(error)); /* the pusher has copied the error */
    memset(block, 0xee, sizeof(block));
    p.pusher = NULL;
    push_start(&p);
    push_ends(&p, "schema 1 2 failed");
    ck_assert_int_eq(p.consumer.outcome.error.code, 4711);
    ck_assert_str_eq(p.consumer.outcome.error.message, "the wire is cut");
    ck_assert_uint_eq(p.consumer.metadata_size, size);
    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    ck_assert_mem_eq(p.consumer.metadata, block, size);
}
END_TEST

static void close_with(int code)
{
    struct uva_error error = {0};

    (void)uva_error_set(&error, code, "%s", "");
    uva_pusher_close(p.pusher, &error, NULL);
    p.pusher = NULL;
    push_start(&p);
    push_await_done(&p);
}

START_TEST(an_error_may_come_before_the_schema)
{
    push_open_bare(&p, 0, 0);
    close_with(ECONNREFUSED);
    ck_assert_str_eq(p.consumer.transcript, "failed");
    ck_assert_int_eq(p.consumer.outcome.error.code, ECONNREFUSED);
}
END_TEST

START_TEST(a_code_of_libuv_counts_as_its_twin)
{
    push_open(&p, 0, 0);
    close_with(UV_ECONNRESET);
    ck_assert_int_eq(p.consumer.outcome.error.code, ECONNRESET);
}
END_TEST

START_TEST(an_error_without_a_code_is_one_still)
{
    push_open(&p, 0, 0);
    close_with(0);
    ck_assert_int_eq(p.consumer.outcome.error.code, EIO);
}
END_TEST

START_TEST(a_close_without_a_schema_is_an_error)
{
    push_open_bare(&p, 0, 0);
    push_start(&p);
    push_end(&p);
    push_ends(&p, "failed");
    ck_assert_int_eq(p.consumer.outcome.error.code, EPROTO);
    ck_assert(strstr(p.consumer.outcome.error.message, "schema"));
}
END_TEST

static void end(struct push_fixture *s)
{
    push_end(s);
}

START_TEST(closed_in_on_room_it_hears_no_more)
{
    push_open(&p, 1, 0);
    p.on_callback = end;
    ck_assert_int_eq(push_batch(&p, 1, 0), EAGAIN);
    push_start(&p);
    push_await_done(&p);
    push_settles(&p, "schema 1 room complete");
}
END_TEST

START_TEST(closed_before_the_room_came_it_hears_nothing)
{
    push_open(&p, 1, 0);
    ck_assert_int_eq(push_batch(&p, 1, 0), EAGAIN);
    push_end(&p);
    push_start(&p);
    push_await_done(&p);
    push_settles(&p, "schema 1 complete");
}
END_TEST

/* ---- ended by the other side -------------------------------------------- */

/* Checks that pushes are refused, that on_closed has been called once, and that
 * no batch is kept. */
static void ck_closed(const char *expected)
{
    push_settles(&p, expected);
    ck_assert_int_eq(push_batch(&p, 1, 0), EPIPE);
    ck_assert_int_eq(push_describe(&p), EPIPE);
    push_settles(&p, expected);
    ck_assert_int_eq(p.freed, 0);
    push_end(&p);
    push_settles(&p, expected);
}

START_TEST(a_cancel_releases_the_queue_and_is_told)
{
    push_open(&p, 4, 0);
    p.consumer.appetite = 0;
    push_start(&p);
    push_batches(&p, 1, 4);
    ck_assert_int_eq(push_batch(&p, 5, 0), EAGAIN);
    loop_settle(&p.loop);
    uva_stream_cancel(p.stream, 0, NULL);
    push_await_done(&p);
    ck_closed("schema cancelled gone");
    ck_assert_int_eq(plain_live(), 1); /* the schema of the stream */
}
END_TEST

START_TEST(a_cancel_is_told_while_others_hold_the_producer)
{
    struct uva__producer *producer;

    push_open(&p, 0, 0);
    producer = p.stream->tail;
    uva__producer_acquire(producer);
    push_start(&p);
    push_batches(&p, 1, 1);
    loop_settle(&p.loop);
    uva_stream_cancel(p.stream, 0, NULL);
    ck_closed("schema 1 cancelled gone");
    uva__producer_release(producer);
}
END_TEST

START_TEST(a_cancel_before_the_schema_is_told)
{
    push_open_bare(&p, 0, 0);
    push_start(&p);
    loop_settle(&p.loop);
    uva_stream_cancel(p.stream, 0, NULL);
    ck_closed("cancelled gone");
}
END_TEST

START_TEST(a_drop_is_told)
{
    push_open(&p, 0, 0);
    push_start(&p);
    push_batches(&p, 1, 1);
    loop_settle(&p.loop);
    uva_stream_drop(p.stream);
    p.stream = NULL;
    ck_closed("schema 1 gone");
}
END_TEST

START_TEST(a_rejection_is_told)
{
    push_open(&p, 0, 0);
    p.consumer.batch_code = EIO;
    push_start(&p);
    push_batches(&p, 1, 3);
    ck_closed("schema rejected gone");
}
END_TEST

START_TEST(a_limit_that_is_reached_is_told)
{
    push_open(&p, 0, 0);
    ck_assert_int_eq(uva__stream_limit(p.stream, 2), 0);
    push_start(&p);
    push_batches(&p, 1, 3);
    ck_closed("schema 1 2 complete gone");
}
END_TEST

START_TEST(a_stream_released_before_its_start_is_told)
{
    push_open(&p, 0, 0);
    push_batches(&p, 1, 3);
    push_release(&p);
    ck_assert_int_eq(push_batch(&p, 1, 0), EPIPE);
    ck_assert_int_eq(plain_live(), 1); /* the schema, until the close */
    ck_closed("gone");
    ck_assert_int_eq(p.freed, 1);
}
END_TEST

START_TEST(closed_in_on_gone_it_is_freed_after)
{
    push_open(&p, 0, 0);
    p.on_callback = end;
    push_release(&p);
    ck_assert_int_eq(p.freed, 0);
    push_settles(&p, "gone");
    ck_assert_int_eq(p.freed, 1);
}
END_TEST

START_TEST(after_a_close_nothing_is_told)
{
    push_open(&p, 0, 0);
    p.consumer.appetite = 0;
    push_start(&p);
    push_batches(&p, 1, 3);
    push_end(&p);
    loop_settle(&p.loop);
    uva_stream_cancel(p.stream, 0, NULL);
    push_await_done(&p);
    push_settles(&p, "schema cancelled");
}
END_TEST

/* ---- the runtime closes ------------------------------------------------- */

START_TEST(a_close_of_the_runtime_cancels_and_is_told)
{
    push_open(&p, 0, 0);
    push_start(&p);
    push_batches(&p, 1, 1);
    loop_settle(&p.loop);
    loop_close_runtime(&p.loop, 0);
    ck_assert_str_eq(p.consumer.transcript, "schema 1 cancelled gone");
    ck_assert_int_eq(push_batch(&p, 1, 0), EPIPE);
    ck_assert_int_eq(push_describe(&p), EPIPE);
}
END_TEST

START_TEST(a_runtime_that_closes_in_time_lets_the_stream_end)
{
    push_open(&p, 0, 0);
    push_start(&p);
    ck_assert_int_eq(uva_runtime_close(p.loop.runtime, UVA_FOREVER, NULL, NULL),
                     0);
    (void)uv_run(&p.loop.uv, UV_RUN_NOWAIT);
    push_batches(&p, 1, 2);
    push_end(&p);
    push_await_done(&p);
    p.loop.runtime = NULL;
    ck_assert_str_eq(p.consumer.transcript, "schema 1 2 complete");
}
END_TEST

static void close_never_started(int64_t grace_ms)
{
    push_open(&p, 0, 0);
    push_batches(&p, 1, 1);
    loop_close_runtime(&p.loop, grace_ms);
    ck_assert_str_eq(p.consumer.transcript, "");
    ck_assert_int_eq(push_batch(&p, 1, 0), EPIPE);
    ck_assert_int_eq(push_describe(&p), EPIPE);
}

START_TEST(never_started_it_is_over_with_the_runtime)
{
    close_never_started(0);
    push_end(&p);
    ck_assert_int_eq(p.freed, 0);
    push_release(&p);
    ck_assert_int_eq(p.freed, 1);
}
END_TEST

START_TEST(never_started_it_is_over_with_a_runtime_that_had_time)
{
    close_never_started(UVA_FOREVER);
    push_release(&p);
    ck_assert_int_eq(push_batch(&p, 1, 0), EPIPE);
    ck_assert_int_eq(p.freed, 0);
    push_end(&p);
    ck_assert_int_eq(p.freed, 1);
    ck_assert_str_eq(p.consumer.transcript, "");
}
END_TEST

START_TEST(a_pusher_may_be_made_while_the_runtime_closes)
{
    struct uva_push_source options = push_options(&p);
    struct uva_stream *stream;
    struct uva_pusher *pusher;
    struct uva_error error = {0};
    struct uva_consumer table = recording_table(&p.consumer);

    push_open(&p, 0, 0);
    ck_assert_int_eq(uva_runtime_close(p.loop.runtime, 0, NULL, NULL), 0);
    stream = uva_stream_from_pusher(p.loop.runtime, &options, &pusher);
    ck_assert_int_eq(uva_stream_for_each(stream, &table, &error), ESHUTDOWN);
    uva_stream_release(stream);
    uva_pusher_close(pusher, NULL, NULL);
    (void)uv_run(&p.loop.uv, UV_RUN_NOWAIT);
    p.loop.runtime = NULL;
    ck_assert_int_eq(p.freed, 1);
    p.freed = 0; /* the second free_ctx is still to be called */
}
END_TEST

/* ---- making a pusher ---------------------------------------------------- */

static void ck_not_made(struct uva_runtime *runtime,
                        const struct uva_push_source *options, const char *text)
{
    struct uva_pusher *pusher = (struct uva_pusher *)&p;
    struct uva_error error = {0};
    struct uva_stream *stream;

    stream = uva_stream_from_pusher(runtime, options, &pusher);
    ck_assert_ptr_null(pusher);
    ck_assert_int_eq(uva_stream_status(stream, &error), EINVAL);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
    ck_assert_int_eq(p.freed, 1);
    p.freed = 0;
    uva_stream_release(stream);
    push_settles(&p, "");
}

START_TEST(options_that_make_no_sense_are_refused)
{
    struct uva_push_source options = push_options(&p);
    struct uva_stream *stream;

    push_open(&p, 0, 0);
    ck_not_made(NULL, &options, "without a runtime");
    options.window.bytes = -1;
    ck_not_made(p.loop.runtime, &options, "window");
    options.window.bytes = 0;
    options.reserved[2] = &options;
    ck_not_made(p.loop.runtime, &options, "reserved");
    options.reserved[2] = NULL;
    stream = uva_stream_from_pusher(p.loop.runtime, &options, NULL);
    ck_assert_int_eq(uva_stream_status(stream, NULL), EINVAL);
    ck_assert_int_eq(p.freed, 1);
    p.freed = 0;
    uva_stream_release(stream);
}
END_TEST

START_TEST(without_options_the_defaults_hold)
{
    struct uva_pusher *pusher;
    struct uva_stream *stream;

    push_open(&p, 0, 0);
    stream = uva_stream_from_pusher(p.loop.runtime, NULL, &pusher);
    ck_assert_int_eq(uva_stream_status(stream, NULL), 0);
    uva_pusher_close(pusher, NULL, NULL);
    uva_stream_release(stream);
}
END_TEST

START_TEST(without_callbacks_room_and_the_end_are_not_reported)
{
    const struct uva_push_source options = {.window.batches = 1};

    push_open(&p, 0, 0);
    push_end(&p);
    push_release(&p);
    p.stream = uva_stream_from_pusher(p.loop.runtime, &options, &p.pusher);
    ck_assert_int_eq(push_describe(&p), 0);
    ck_assert_int_eq(push_batch(&p, 1, 0), EAGAIN);
    push_start(&p);
    push_settles(&p, "schema 1");
    uva_stream_cancel(p.stream, 0, NULL);
    push_await_done(&p);
    ck_assert_int_eq(push_batch(&p, 2, 0), EPIPE);
    push_settles(&p, "schema 1 cancelled");
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

/* Runs a stream from its making to its end with the code 4711. Returns the
 * first error reported. */
static int live(const char *block)
{
    struct uva_push_source options = push_options(&p);
    struct uva_error error = {0};
    struct uva_consumer table = recording_table(&p.consumer);
    int code;

    p.stream = uva_stream_from_pusher(p.loop.runtime, &options, &p.pusher);
    (void)uva_error_set(&error, 4711, "cut");
    if (p.pusher == NULL)
        code = uva_stream_status(p.stream, NULL);
    else
        code = push_describe(&p);
    for (int i = 1; code == 0 && i <= 3; i++)
        code = push_batch_with(&p, i, block, 0);
    uva_pusher_close(p.pusher, &error, block);
    p.pusher = NULL;
    if (code == 0)
        code = uva_stream_for_each(p.stream, &table, NULL);
    if (code == 0)
        push_await_done(&p);
    if (code == 0)
        code = p.consumer.outcome.error.code;
    push_release(&p);
    return code;
}

static void begin_empty(void)
{
    push_open(&p, 0, 0);
    push_end(&p);
    push_release(&p);
    loop_settle(&p.loop);
}

/* In one runtime, which keeps memory for later streams; or in a new one each
 * time. */
START_TEST(every_allocation_may_fail)
{
    char block[256], value[100] = {0};
    size_t size = sizeof(block);
    const struct uva_pair pair[] = {
        {.key = "key", .value = value, .value_size = sizeof(value)}, {0}};
    bool failed = true;
    int enomem = 0;

    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    begin_empty();
    for (long n = 1; failed; n++) {
        if (_i == 1) {
            push_close(&p);
            begin_empty();
        }
        p.freed = 0;
        recording_init(&p.consumer);
        p.consumer.transcribes = true;
        loop_fail(&p.loop, n);
        int code = live(block);
        failed = faulty_allocator_has_failed(&p.loop.memory);
        loop_fail(&p.loop, 0);
        loop_settle(&p.loop);
        ck_assert_int_eq(p.freed, 1);
        ck_assert_int_eq(plain_live(), 0);
        ck_assert_ptr_null(
            strstr(p.consumer.transcript, "gone")); /* the pusher was closed */
        enomem += code == ENOMEM;
        ck_assert(code == 4711 || (failed && code == ENOMEM));
    }
    ck_assert_int_gt(enomem,
                     _i == 1 ? 5 : 4); /* the copy of the schema is kept */
    ck_assert_str_eq(p.consumer.transcript, "schema 1 2 3 failed");
}
END_TEST

/* ------------------------------------------------------------------------- */

static void add_ends(Suite *suite)
{
    TCase *other =
        suite_case(suite, "the end, by the other side", NULL, tear_down);
    TCase *making = suite_case(suite, "making one", NULL, tear_down);

    suite_add(suite_case(suite, "the end, by the writer", NULL, tear_down),
              an_error_comes_after_what_was_pushed,
              an_error_may_come_before_the_schema,
              a_code_of_libuv_counts_as_its_twin,
              an_error_without_a_code_is_one_still,
              a_close_without_a_schema_is_an_error,
              closed_in_on_room_it_hears_no_more,
              closed_before_the_room_came_it_hears_nothing, NULL);
    suite_add(other, a_cancel_releases_the_queue_and_is_told,
              a_cancel_is_told_while_others_hold_the_producer,
              a_cancel_before_the_schema_is_told, a_drop_is_told,
              a_rejection_is_told, a_limit_that_is_reached_is_told,
              a_stream_released_before_its_start_is_told,
              closed_in_on_gone_it_is_freed_after,
              after_a_close_nothing_is_told, NULL);
    suite_add(suite_case(suite, "the runtime closes", NULL, tear_down),
              a_close_of_the_runtime_cancels_and_is_told,
              a_runtime_that_closes_in_time_lets_the_stream_end,
              never_started_it_is_over_with_the_runtime,
              never_started_it_is_over_with_a_runtime_that_had_time,
              a_pusher_may_be_made_while_the_runtime_closes, NULL);
    suite_add(making, options_that_make_no_sense_are_refused,
              without_options_the_defaults_hold,
              without_callbacks_room_and_the_end_are_not_reported, NULL);
    tcase_add_loop_test(making, every_allocation_may_fail, 0, 2);
}

int main(void)
{
    Suite *suite = suite_create("from_pusher, ends");

    add_ends(suite);
    return suite_run(suite);
}
