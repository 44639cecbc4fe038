/* SPDX-License-Identifier: Apache-2.0 */
/* Retries: which failures are tried again, after how many batches, the
 * requirements on streams of later attempts, and how a delay ends. Batches are
 * known by their lengths. Pushers that have ended feed the streams, unless a
 * test keeps one open. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/plain_tree.h"

enum { HOUR = 3600000, ATTEMPTS = 8 };

static struct loop_fixture loop, foreign; /* `foreign` is opened by its test */
static struct recording_consumer consumer;
static struct uva_retry options;
static struct uva_stream *stream;
static struct uva_pusher *pusher; /* of the last stream, if it was left open */
static char metadata[64];         /* sent with errors */
static long freed;                /* calls of free_ctx */
static long expected;             /* of these at the end */

/* An attempt, and the arguments of `again` before it. */
static struct attempt {
    const char *lengths; /* of its batches, one digit each */
    int code;            /* how it ends; 0: well; -1: not at all */
    const char *text;
    struct uva_stream *(*make)(const struct attempt *attempt);
    int64_t passed, rows;
    struct uva_error failed;
    size_t metadata_size;
} attempts[ATTEMPTS];
static int calls; /* of `again` */

/* ---- streams ------------------------------------------------------------ */

static struct uva_stream *stream_on(struct uva_runtime *runtime,
                                    const struct attempt *attempt)
{
    struct uva_stream *made = uva_stream_from_pusher(runtime, NULL, &pusher);
    struct uva_error error;
    struct ArrowSchema schema;
    struct ArrowDeviceArray array;

    batch_schema(&schema);
    if (attempt->lengths != NULL)
        ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
    else
        uva_schema_release(&schema);
    for (const char *l = attempt->lengths; l != NULL && *l != '\0'; l++) {
        batch_make(&array, *l - '0');
        ck_assert_int_eq(uva_pusher_push(pusher, &array, metadata, 0), 0);
    }
    if (attempt->code == -1)
        return made;
    uva_pusher_close(
        pusher,
        uva_error_set(&error, attempt->code, "%s",
                      attempt->text != NULL ? attempt->text : "") != 0
            ? &error
            : NULL,
        attempt->code != 0 ? metadata : NULL);
    pusher = NULL;
    return made;
}

static struct uva_stream *plain(const struct attempt *attempt)
{
    return stream_on(loop.runtime, attempt);
}

static struct uva_stream *nothing(const struct attempt *attempt)
{
    (void)attempt;
    return NULL;
}

/* ---- the fixture -------------------------------------------------------- */

static struct uva_stream *again(void *ctx, const struct uva_outcome *failed,
                                int32_t attempt, int64_t passed, int64_t rows)
{
    struct attempt *now = &attempts[calls < ATTEMPTS ? calls : ATTEMPTS - 1];

    ck_assert_ptr_eq(ctx, &options);
    ck_assert(uva_runtime_on_loop(loop.runtime));
    ck_assert_int_eq(attempt, ++calls);
    ck_assert_int_eq(failed->end, UVA_END_FAILED);
    ck_assert_int_eq(failed->batches, passed);
    ck_assert_ptr_null(failed->stream);
    now->passed = passed;
    now->rows = rows;
    now->failed = failed->error;
    if (failed->metadata != NULL)
        ck_assert_int_eq(
            uva_metadata_size(failed->metadata, &now->metadata_size), 0);
    return now->make != NULL ? now->make(now) : plain(now);
}

static void count_free(void *ctx)
{
    ck_assert_ptr_eq(ctx, &options);
    freed++;
}

static void set_up(void)
{
    const struct uva_pair pair[] = {{.key = "k", .value = "v"}, {0}};
    size_t size = sizeof(metadata);

    recording_init(&consumer);
    consumer.transcribes = true;
    loop_open(&loop);
    options = (struct uva_retry){.again = again,
                                 .free_ctx = count_free,
                                 .ctx = &options,
                                 .delay_ms = 1,
                                 .delay_max_ms = 2};
    memset(attempts, 0, sizeof(attempts));
    ck_assert_int_eq(uva_metadata_encode(pair, metadata, &size), 0);
    freed = calls = 0;
    expected = 1;
    stream = NULL;
    pusher = NULL;
}

static void tear_down(void)
{
    if (pusher != NULL)
        uva_pusher_close(pusher, NULL, NULL);
    uva_stream_release(stream);
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
    ck_assert_int_eq(freed, expected);
}

/* Makes the first stream, with the stage. */
static void open_first(const char *lengths, int code, const char *text)
{
    stream = plain(
        &(struct attempt){.lengths = lengths, .code = code, .text = text});
    ck_assert_int_eq(uva_stream_retry(stream, &options), 0);
}

static void start_first(const char *lengths, int code, const char *text)
{
    open_first(lengths, code, text);
    recording_start(&consumer, stream);
}

static void ends(enum uva_end end, int code, const char *text,
                 const char *transcript)
{
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, end, code, text);
    ck_assert_str_eq(consumer.transcript, transcript);
    ck_assert(consumer.in_order);
    ck_assert(!loop_has_timer(&loop));
}

static void called(int i, int code, int64_t passed, int64_t rows)
{
    ck_assert_int_gt(calls, i);
    ck_assert_int_eq(attempts[i].failed.code, code);
    ck_assert_int_eq(attempts[i].passed, passed);
    ck_assert_int_eq(attempts[i].rows, rows);
}

/* ---- failures that are tried again -------------------------------------- */

START_TEST(a_stream_that_does_not_fail_is_passed_on)
{
    start_first("123", 0, NULL);
    ends(UVA_END_COMPLETE, 0, NULL, "schema 1 2 3 complete");
    ck_assert_int_eq(calls, 0);
    ck_assert_int_gt(consumer.metadata_size, 0);
}
END_TEST

/* Before and after the schema. */
START_TEST(a_failure_before_the_first_batch_is_tried_again)
{
    attempts[0] = (struct attempt){
        .lengths = _i == 0 ? NULL : "", .code = ERANGE, .text = "again"};
    attempts[1] = (struct attempt){.lengths = "12", .code = 0};
    start_first(_i == 0 ? NULL : "", EDOM, "no good");
    ends(UVA_END_COMPLETE, 0, NULL, "schema 1 2 complete");
    ck_assert_int_eq(calls, 2);
    called(0, EDOM, 0, 0);
    ck_assert_str_eq(attempts[0].failed.message, "no good");
    ck_assert_int_gt(attempts[0].metadata_size, 0);
    called(1, ERANGE, 0, 0);
}
END_TEST

START_TEST(a_failure_behind_it_is_not)
{
    options.free_ctx = NULL;
    expected = 0;
    start_first("12", EDOM, "no good");
    ends(UVA_END_FAILED, EDOM, "no good", "schema 1 2 failed");
    ck_assert_int_eq(calls, 0);
    ck_assert_int_gt(consumer.metadata_size, 0);
}
END_TEST

START_TEST(with_resume_the_streams_go_on_behind_what_was_passed_on)
{
    options.resume = true;
    attempts[0] = (struct attempt){.lengths = "3", .code = ERANGE};
    attempts[1] = (struct attempt){.lengths = "", .code = ERANGE};
    attempts[2] = (struct attempt){.lengths = "45", .code = 0};
    start_first("12", EDOM, "no good");
    ends(UVA_END_COMPLETE, 0, NULL, "schema 1 2 3 4 5 complete");
    ck_assert_int_eq(calls, 3);
    called(0, EDOM, 2, 3);
    called(1, ERANGE, 3, 6);
    called(2, ERANGE, 3, 6);
    ck_assert_int_eq(consumer.ordinal, 4);
}
END_TEST

static int map_fails(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    if (in->ordinal == 1)
        return uva_error_set(error, ENOMEM, "no memory in a map");
    uva_array_move(&in->data, out);
    return 0;
}

static bool maps_on_loop;

static struct uva_stream *mapped(const struct attempt *attempt)
{
    struct uva_stream *made = plain(attempt);

    (void)uva_stream_map(
        made, &(struct uva_map){.batch = map_fails, .on_loop = maps_on_loop});
    return made;
}

/* Extracted by the stage, and on a worker before it. */
START_TEST(an_extraction_that_fails_is_tried_again)
{
    options.resume = true;
    maps_on_loop = _i == 0;
    attempts[0] = (struct attempt){.lengths = "23", .code = 0, .make = mapped};
    attempts[1] = (struct attempt){.lengths = "3", .code = 0, .make = mapped};
    stream = mapped(&(struct attempt){.lengths = "12", .code = 0});
    ck_assert_int_eq(uva_stream_retry(stream, &options), 0);
    recording_start(&consumer, stream);
    ends(UVA_END_COMPLETE, 0, NULL, "schema 1 2 3 complete");
    ck_assert_int_eq(calls, 2);
    called(0, ENOMEM, 1, 1);
    called(1, ENOMEM, 2, 3);
    ck_assert_str_eq(attempts[0].failed.message, "no memory in a map");
}
END_TEST

/* ---- how often ---------------------------------------------------------- */

START_TEST(attempts_are_limited)
{
    static const int32_t times[] = {0, 1, 2};
    static const int counts[] = {3, 1, 2};

    for (int i = 0; i < 3; i++)
        attempts[i] = (struct attempt){.lengths = "",
                                       .code = ERANGE,
                                       .text = i == counts[_i] - 1 ? "the last"
                                                                   : "before"};
    options.times = times[_i];
    start_first("", EDOM, "no good");
    ends(UVA_END_FAILED, ERANGE, "the last", "schema failed");
    ck_assert_int_eq(calls, counts[_i]);
}
END_TEST

START_TEST(the_maker_gives_up)
{
    for (int i = 0; i < ATTEMPTS - 1; i++)
        attempts[i] =
            (struct attempt){.lengths = "", .code = ERANGE, .text = "before"};
    attempts[ATTEMPTS - 2].text = "the last";
    attempts[ATTEMPTS - 1].make = nothing;
    options.times = -1;
    start_first("", EDOM, "no good");
    ends(UVA_END_FAILED, ERANGE, "the last", "schema failed");
    ck_assert_int_eq(calls, ATTEMPTS);
    ck_assert_int_gt(consumer.metadata_size, 0);
}
END_TEST

/* ---- requirements on the streams ---------------------------------------- */

static struct recording_consumer other;

static struct uva_stream *started(const struct attempt *attempt)
{
    struct uva_stream *made = plain(attempt);

    recording_init(&other);
    recording_start(&other, made);
    return made;
}

static struct uva_stream *itself(const struct attempt *attempt)
{
    (void)attempt;
    return uva_stream_acquire(stream);
}

static struct uva_stream *of_another_runtime(const struct attempt *attempt)
{
    return stream_on(foreign.runtime, attempt);
}

static struct uva_stream *with_schema(const char *name, ArrowDeviceType type)
{
    const struct uva_push_source source = {.device_type = type};
    struct uva_stream *made =
        uva_stream_from_pusher(loop.runtime, &source, &pusher);
    struct ArrowSchema schema;

    if (name != NULL)
        plain_schema(&schema, "l", name, 0);
    else
        batch_schema(&schema);
    ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
    uva_pusher_close(pusher, NULL, NULL);
    pusher = NULL;
    return made;
}

static struct uva_stream *of_another_schema(const struct attempt *attempt)
{
    (void)attempt;
    return with_schema("n", ARROW_DEVICE_CPU);
}

static struct uva_stream *of_another_device(const struct attempt *attempt)
{
    (void)attempt;
    return with_schema(NULL, ARROW_DEVICE_CUDA);
}

static const struct {
    struct uva_stream *(*make)(const struct attempt *attempt);
    int code;
    const char *text;
} BAD[] = {
    {started, EBUSY, "attempt 1 was started"},
    {itself, EBUSY, "attempt 1 was started"},
    {of_another_runtime, EINVAL, "attempt 1 is of another runtime"},
    {of_another_schema, EINVAL, "attempt 1 has another schema"},
    {of_another_device, EINVAL,
     "attempt 1 has another schema than the first one: its device type is 2, "
     "not 1"},
};

START_TEST(a_stream_that_cannot_go_on_is_an_error)
{
    loop_open(&foreign);
    attempts[0] =
        (struct attempt){.lengths = "1", .code = 0, .make = BAD[_i].make};
    start_first("", EDOM, "no good");
    ends(UVA_END_FAILED, BAD[_i].code, BAD[_i].text, "schema failed");
    ck_assert_int_eq(calls, 1);
    loop_settle(&loop);
    loop_close(&foreign);
}
END_TEST

/* The device type is promised before there is a schema. */
START_TEST(a_device_type_is_compared_without_a_schema)
{
    attempts[0].make = of_another_device;
    start_first(NULL, EDOM, "no good");
    ends(UVA_END_FAILED, EINVAL, "device type", "failed");
}
END_TEST

static struct uva_stream *ready(const struct attempt *attempt)
{
    struct uva_stream *made = plain(attempt);

    (void)uva_stream_ready(made, NULL);
    return made;
}

START_TEST(a_stream_must_be_ready_if_the_first_one_is)
{
    attempts[0] = (struct attempt){
        .lengths = "1", .code = 0, .make = _i == 0 ? ready : plain};
    stream = ready(
        &(struct attempt){.lengths = "", .code = EDOM, .text = "no good"});
    ck_assert_int_eq(uva_stream_retry(stream, &options), 0);
    recording_start(&consumer, stream);
    if (_i == 0)
        ends(UVA_END_COMPLETE, 0, NULL, "schema 1 complete");
    else
        ends(UVA_END_FAILED, EINVAL, "events", "schema failed");
}
END_TEST

static struct uva_stream *not_built(const struct attempt *attempt)
{
    struct uva_stream *made = plain(attempt);

    (void)uva__stream_limit(made, -1);
    return made;
}

static struct uva_stream *without_runtime(const struct attempt *attempt)
{
    return uva_stream_from_pusher(NULL, NULL, attempt != NULL ? &pusher : NULL);
}

static struct uva_stream *cancelled(const struct attempt *attempt)
{
    struct uva_stream *made = plain(attempt);

    uva_stream_cancel(made, EDOM, "not this one");
    return made;
}

START_TEST(a_stream_that_cannot_be_opened_has_failed)
{
    attempts[0] =
        (struct attempt){.lengths = "1", .code = 0, .make = not_built};
    attempts[1] =
        (struct attempt){.lengths = "1", .code = 0, .make = cancelled};
    attempts[2] =
        (struct attempt){.lengths = "1", .code = 0, .make = without_runtime};
    attempts[3] = (struct attempt){.lengths = "1", .code = 0};
    options.times = 4;
    start_first("", ERANGE, "no good");
    ends(UVA_END_COMPLETE, 0, NULL, "schema 1 complete");
    called(1, EINVAL, 0, 0);
    called(2, EDOM, 0, 0);
    ck_assert_str_eq(attempts[2].failed.message, "not this one");
    called(3, EINVAL, 0, 0);
}
END_TEST

/* ---- the streams of attempts --------------------------------------------- */

static struct uva_stream *held; /* a reference of the test */

static struct uva_stream *hold(const struct attempt *attempt)
{
    struct uva_stream *made = plain(attempt);

    held = uva_stream_acquire(made);
    return made;
}

static bool is_held(void *ctx)
{
    (void)ctx;
    return held != NULL;
}

static void await_held(void)
{
    loop_until(&loop, is_held, NULL);
    loop_settle(&loop);
}

static void held_ended(int code)
{
    ck_assert_int_eq(uva_stream_status(held, NULL), code);
    uva_stream_cancel(held, 0, "too late");
    loop_settle(&loop);
    uva_stream_release(held);
    held = NULL;
}

/* Well, with a failure, because of a cancel from below, and by its own cancel,
 * which counts as a failure. */
START_TEST(the_stream_of_an_attempt_has_a_status)
{
    static const int codes[] = {0, ERANGE, ECANCELED, ETIMEDOUT};
    static const char *const transcripts[] = {
        "schema 1 complete", "schema 1 failed", "schema 1 cancelled",
        "schema 1 failed"};

    held = NULL;
    attempts[0] = (struct attempt){.lengths = "1",
                                   .code = _i < 2 ? codes[_i] : -1,
                                   .text = "no good",
                                   .make = hold};
    attempts[1].make = nothing;
    options.resume = true;
    start_first("", EDOM, "no good");
    await_held();
    uva_stream_resume(held); /* has no effect */
    loop_settle(&loop);
    if (_i == 2) {
        uva_stream_cancel(stream, 0, "no more");
        uva_stream_cancel(held, ETIMEDOUT, "too late");
    } else if (_i == 3)
        uva_stream_cancel(held, ETIMEDOUT, "not this one");
    recording_await_done(&consumer, &loop);
    ck_assert_str_eq(consumer.transcript, transcripts[_i]);
    ck_assert_int_eq(consumer.outcome.error.code, codes[_i]);
    held_ended(codes[_i]);
}
END_TEST

START_TEST(an_attempt_has_limits_of_its_own)
{
    const struct uva_timeout soon = {.open_ms = 1};

    attempts[0] = (struct attempt){.lengths = "1", .code = 0};
    stream = plain(&(struct attempt){.lengths = NULL, .code = -1});
    ck_assert_int_eq(uva_stream_timeout(stream, &soon), 0);
    ck_assert_int_eq(uva_stream_retry(stream, &options), 0);
    recording_start(&consumer, stream);
    uva_pusher_close(pusher, NULL, NULL);
    pusher = NULL;
    recording_await_done(&consumer, &loop);
    ck_assert_str_eq(consumer.transcript, "schema 1 complete");
    ck_assert_int_eq(calls, 1);
}
END_TEST

/* ---- delays ------------------------------------------------------------- */

static void wait_in_delay(void)
{
    options.delay_ms = options.delay_max_ms = HOUR;
    start_first("", EDOM, "no good");
    loop_until_timer(&loop);
}

START_TEST(a_cancel_ends_a_delay)
{
    wait_in_delay();
    uva_stream_cancel(stream, 0, "no more");
    ends(UVA_END_CANCELLED, ECANCELED, "no more", "schema cancelled");
    ck_assert_int_eq(calls, 0);
}
END_TEST

static void set(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

/* Begun in the delay, and before the failure. */
START_TEST(a_drain_has_nothing_tried_again)
{
    bool drained = false;

    options.delay_ms = options.delay_max_ms = HOUR;
    if (_i == 0)
        wait_in_delay();
    else
        open_first("", -1, NULL);
    if (_i == 1)
        recording_start(&consumer, stream);
    ck_assert_int_eq(
        uva_runtime_drain(loop.runtime, UVA_FOREVER, set, &drained), 0);
    ck_assert_int_eq(uva_runtime_drain(loop.runtime, UVA_FOREVER, NULL, NULL),
                     EALREADY);
    if (_i == 1) {
        loop_settle(&loop);
        uva_pusher_close(
            pusher, &(struct uva_error){.code = EDOM, .message = "no good"},
            NULL);
        pusher = NULL;
    }
    ends(UVA_END_FAILED, EDOM, "no good", "schema failed");
    loop_until(&loop, is_set, &drained);
    ck_assert_int_eq(calls, 0);
}
END_TEST

START_TEST(a_close_ends_a_delay)
{
    wait_in_delay();
    loop_close_runtime(&loop, 0);
    recording_ended(&consumer, UVA_END_CANCELLED, ECANCELED, "closed");
    ck_assert_int_eq(calls, 0);
}
END_TEST

/* The close waits for the delay, after which there is no attempt. */
START_TEST(a_close_has_nothing_tried_again)
{
    options.delay_ms = options.delay_max_ms = 20;
    start_first("", EDOM, "no good");
    loop_until_timer(&loop);
    loop_close_runtime(&loop, UVA_FOREVER);
    recording_ended(&consumer, UVA_END_FAILED, EDOM, "no good");
    ck_assert_int_eq(calls, 0);
}
END_TEST

START_TEST(a_limit_that_passes_in_a_delay_names_it)
{
    options.delay_ms = options.delay_max_ms = HOUR;
    open_first("", EDOM, "no good");
    ck_assert_int_eq(
        uva_stream_timeout(stream, &(struct uva_timeout){.first_ms = 1}), 0);
    recording_start(&consumer, stream);
    ends(UVA_END_FAILED, ETIMEDOUT, "retry waits for time to pass",
         "schema failed");
}
END_TEST

START_TEST(a_limit_that_passes_names_the_source_of_the_attempt)
{
    open_first("", -1, "no good");
    ck_assert_int_eq(
        uva_stream_timeout(stream, &(struct uva_timeout){.first_ms = 1}), 0);
    recording_start(&consumer, stream);
    ends(UVA_END_FAILED, ETIMEDOUT, "pusher waits for its source",
         "schema failed");
}
END_TEST

/* The consumer holds up the batches before the failure. */
START_TEST(batches_before_a_failure_are_passed_on_first)
{
    options.resume = true;
    consumer.appetite = 1;
    attempts[0] = (struct attempt){.lengths = "4", .code = 0};
    start_first("123", EDOM, "no good");
    loop_settle(&loop);
    ck_assert_int_eq(calls, 0);
    recording_feed(&consumer, 9);
    ends(UVA_END_COMPLETE, 0, NULL, "schema 1 2 3 4 complete");
    called(0, EDOM, 3, 6);
}
END_TEST

/* A reader without room accepts no batch, although it has requested more. */
START_TEST(batches_that_are_kept_are_passed_on_before_another_attempt)
{
    const struct uva_window window = {.bytes = 1};
    struct ArrowDeviceArrayStream out;

    options.resume = true;
    open_first("123", EDOM, "no good");
    ck_assert_int_eq(uva_stream_to_device_stream(stream, &window, &out, NULL),
                     0);
    loop_settle(&loop);
    ck_assert(!loop_has_timer(&loop));
    out.release(&out);
    loop_settle(&loop);
    ck_assert_int_eq(calls, 0);
}
END_TEST

/* ---- bad options -------------------------------------------------------- */

static void refused(const struct uva_retry *bad, const char *text)
{
    struct uva_stream *made =
        plain(&(struct attempt){.lengths = "1", .code = 0});
    struct uva_error error = {0};

    ck_assert_int_eq(uva_stream_retry(made, bad), EINVAL);
    ck_assert_int_eq(uva_stream_status(made, &error), EINVAL);
    text_contains(error.message, text);
    uva_stream_release(made);
}

START_TEST(options_are_checked)
{
    struct uva_retry bad = options;

    bad.again = NULL;
    refused(&bad, "again");
    bad = options;
    bad.times = -2;
    refused(&bad, "times");
    bad = options;
    bad.delay_ms = -1;
    refused(&bad, "delay_ms");
    bad = options;
    bad.delay_max_ms = -1;
    refused(&bad, "delay_max_ms");
    bad = options;
    bad.delay_ms = 3;
    refused(&bad, "larger");
    ck_assert_int_eq(freed, 5);
    bad.reserved[3] = &bad;
    refused(&bad, "reserved");
    refused(NULL, "again");
    bad = (struct uva_retry){0};
    refused(&bad, "again");
    expected = 5;
}
END_TEST

/* Also the defaults of the delays. */
START_TEST(a_stream_that_has_started_takes_no_stage)
{
    struct uva_retry bad = options;

    options.delay_ms = options.delay_max_ms = 0;
    start_first("1", 0, NULL);
    bad.reserved[0] = &bad;
    ck_assert_int_eq(uva_stream_retry(stream, &options), EBUSY);
    ck_assert_int_eq(uva_stream_retry(stream, &bad), EBUSY);
    ck_assert_int_eq(uva_stream_retry(stream, NULL), EBUSY);
    recording_await_done(&consumer, &loop);
    expected = 2;
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("retries");

    suite_add_loops(tests, 0, 2,
                    a_failure_before_the_first_batch_is_tried_again,
                    an_extraction_that_fails_is_tried_again,
                    a_stream_must_be_ready_if_the_first_one_is,
                    a_drain_has_nothing_tried_again, NULL);
    suite_add_loops(tests, 0, 3, attempts_are_limited, NULL);
    suite_add_loops(tests, 0, 4, the_stream_of_an_attempt_has_a_status, NULL);
    suite_add_loops(tests, 0, sizeof(BAD) / sizeof(BAD[0]),
                    a_stream_that_cannot_go_on_is_an_error, NULL);
    suite_add(tests, a_stream_that_does_not_fail_is_passed_on,
              a_failure_behind_it_is_not,
              with_resume_the_streams_go_on_behind_what_was_passed_on,
              the_maker_gives_up, a_device_type_is_compared_without_a_schema,
              a_stream_that_cannot_be_opened_has_failed,
              an_attempt_has_limits_of_its_own, a_cancel_ends_a_delay,
              a_close_ends_a_delay, a_close_has_nothing_tried_again,
              a_limit_that_passes_in_a_delay_names_it,
              a_limit_that_passes_names_the_source_of_the_attempt,
              batches_before_a_failure_are_passed_on_first,
              batches_that_are_kept_are_passed_on_before_another_attempt,
              options_are_checked, a_stream_that_has_started_takes_no_stage,
              NULL);
    return suite_main("retry", set_up, tear_down, tests, NULL);
}
