/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol checker on every hop of our streams: it reports no breach of
 * ours, and the breaches of peers. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check_suite.h"
#include "support/fake_source.h"
#include "support/hostile_producer.h"
#include "support/loop_fixture.h"
#include "support/recording_consumer.h"
#include "support/recording_handler.h"
#include "uvarrow/uvarrow.h"

enum { LOG_SIZE = 4096 };

static struct loop_fixture loop;
static struct fake_source fake;
static struct recording_consumer consumer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[LOG_SIZE]; /* "CLAUSE message", one line each */
static bool logless;            /* the runtime has no log */
static int32_t workers;         /* of the parallel stage; 0: no stage */

/* ---- the fixture -------------------------------------------------------- */

static void hear(void *ctx, const struct uva_log_record *record)
{
    size_t used;

    (void)ctx;
    ck_assert_int_eq(pthread_mutex_lock(&lock), 0);
    used = strlen(log_text);
    (void)snprintf(log_text + used, sizeof(log_text) - used, "%s %s\n",
                   record->clause != NULL ? record->clause : "-",
                   record->message);
    ck_assert_int_eq(pthread_mutex_unlock(&lock), 0);
}

static void open_checked(bool check)
{
    struct uva_runtime_options options = {.check = check};

    log_text[0] = '\0';
    recording_init(&consumer);
    options.log.write = logless ? NULL : hear;
    loop_open_with(&loop, &options);
    fake_source_init(&fake, 20);
}

static void close_checked(void)
{
    loop_close(&loop);
    ck_assert_int_eq(atomic_load(&fake.live), 0);
    fake_source_fini(&fake);
}

static struct uva_stream *device_stream(ArrowDeviceType device_type)
{
    const struct uva_arrow_source options = fake_source_options(&fake);
    struct ArrowDeviceArrayStream source;
    struct uva_stream *stream;

    fake_source_device(&fake, device_type, &source);
    stream = uva_stream_from_device_stream(loop.runtime, &source, &options);
    if (workers > 0)
        ck_assert_int_eq(
            uva_stream_parallel(stream,
                                &(struct uva_parallel){.workers = workers}),
            0);
    return stream;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

static void note_done(void *ctx, const struct uva_outcome *how)
{
    (void)how;
    *(bool *)ctx = true;
}

static void drive(struct uva_stream *stream, struct recording_handler *h,
                  bool on_worker)
{
    bool done = false;
    const struct uva_drive options = {
        .on_done = note_done, .ctx = &done, .on_worker = on_worker};

    ck_assert_int_eq(uva_stream_drive(stream, &h->handler, &options, NULL), 0);
    loop_until(&loop, is_set, &done);
    uva_stream_release(stream);
}

static struct uva_runtime_stats stats(void)
{
    struct uva_runtime_stats now;

    uva_runtime_get_stats(loop.runtime, &now);
    return now;
}

/* ---- our own streams ---------------------------------------------------- */

START_TEST(our_own_hops_give_no_report)
{
    workers = _i;
    open_checked(true);
    recording_consume(&consumer, device_stream(ARROW_DEVICE_CPU));
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(consumer.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(atomic_load(&consumer.batches), 20);
    ck_assert_str_eq(log_text, "");
    close_checked();
    ck_assert_str_eq(log_text, "");
}
END_TEST

static int schema_fails(void *ctx, const struct ArrowSchema *in,
                        struct ArrowSchema *out, struct uva_error *error)
{
    (void)ctx;
    (void)in;
    (void)out;
    return uva_error_set(error, ENOTSUP, "no schema");
}

static int no_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                    void *emitter, struct uva_error *error)
{
    (void)ctx;
    (void)in;
    (void)emit;
    (void)emitter;
    (void)error;
    return 0;
}

/* The release of the transform waits for the stage above it, which uses a
 * device stream: the stage below has its error, and no schema, meanwhile. */
START_TEST(AH04_a_stage_that_failed_before_its_schema_is_not_called)
{
    static int device_stream_of_ours;
    const struct uva_ready ready = {.wait = UVA_WAIT_STREAM,
                                    .device_stream = &device_stream_of_ours};
    const struct uva_transform transform = {
        .schema = schema_fails, .batch = no_batch, .on_loop = true};
    struct uva_stream *stream;

    workers = 0;
    open_checked(true);
    stream = device_stream(ARROW_DEVICE_CPU);
    ck_assert_int_eq(uva_stream_ready(stream, &ready), 0);
    ck_assert_int_eq(uva_stream_transform(stream, &transform), 0);
    ck_assert_int_eq(uva_stream_limit_rows(stream, 1), 0);
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(consumer.outcome.error.code, ENOTSUP);
    close_checked();
    ck_assert_str_eq(log_text, "");
}
END_TEST

START_TEST(a_driven_handler_that_keeps_the_rules_gives_no_report)
{
    struct recording_handler h;

    workers = 0;
    open_checked(true);
    recording_handler_init(&h, 2, 1);
    drive(device_stream(ARROW_DEVICE_CPU), &h, _i == 1);
    ck_assert_int_eq(h.tasks, 20);
    ck_assert_str_eq(log_text, "");
    recording_handler_fini(&h);
    close_checked();
    ck_assert_str_eq(log_text, "");
}
END_TEST

/* ---- peers -------------------------------------------------------------- */

static void ask_for_nothing(struct recording_handler *h)
{
    h->handler.producer->request(h->handler.producer, 0);
}

START_TEST(AP08_a_bad_request_is_told_with_what_led_to_it)
{
    struct recording_handler h;

    workers = 0;
    open_checked(true);
    recording_handler_init(&h, 1, 0);
    h.on_task = ask_for_nothing;
    drive(device_stream(ARROW_DEVICE_CPU), &h, _i == 1);
    ck_assert_ptr_nonnull(strstr(log_text, "AP-08 "));
    ck_assert_ptr_nonnull(strstr(log_text, "AP-08   after: "));
    ck_assert_int_gt(stats().peer_breaches, 0);
    recording_handler_fini(&h);
    close_checked();
}
END_TEST

/* Returns how many breaches the streams' statistics count. */
static int64_t count_breaches(void)
{
    struct recording_handler h;
    int64_t count;

    open_checked(true);
    recording_handler_init(&h, 1, 0);
    h.on_task = ask_for_nothing;
    drive(device_stream(ARROW_DEVICE_CPU), &h, false);
    recording_handler_fini(&h);
    count = stats().peer_breaches;
    close_checked();
    return count;
}

START_TEST(without_a_log_breaches_are_lines_on_standard_error_and_count)
{
    FILE *file = tmpfile();
    const int real = dup(STDERR_FILENO);
    char text[LOG_SIZE] = "";
    int64_t count;

    workers = 0;
    ck_assert(file != NULL && real >= 0);
    ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
    logless = true;
    count = count_breaches();
    logless = false;
    ck_assert_int_ge(dup2(real, STDERR_FILENO), 0);
    ck_assert_int_eq(close(real), 0);
    rewind(file);
    (void)!fread(text, 1, sizeof(text) - 1, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_msg(strstr(text, "AP-08 (error, consumer)") != NULL, "%s", text);
    ck_assert_int_eq(count, count_breaches());
    ck_assert_ptr_nonnull(strstr(log_text, "AP-08 "));
}
END_TEST

START_TEST(DS01_a_batch_that_does_not_fit_is_told)
{
    workers = 0;
    open_checked(true);
    fake.wrong_shape = true;
    recording_consume(&consumer, device_stream(ARROW_DEVICE_CPU));
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(consumer.outcome.end, UVA_END_FAILED);
    ck_assert_msg(strstr(log_text, "DS-01 ") != NULL, "%s", log_text);
    close_checked();
}
END_TEST

START_TEST(a_producer_that_refuses_its_handler_leaves_nothing)
{
    struct hostile_producer peer;
    struct uva_async_source source;

    workers = 0;
    open_checked(true);
    hostile_producer_init(&peer, "");
    peer.start_code = EACCES;
    source = hostile_producer_source(&peer);
    recording_consume(&consumer, uva_stream_from_async(loop.runtime, &source));
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(consumer.outcome.error.code, EACCES);
    close_checked();
    hostile_producer_fini(&peer);
    ck_assert_str_eq(log_text, "");
}
END_TEST

/* A foreign producer may fail before it has set its place in the handler.
 * Clauses: AP-01, AH-03. */
START_TEST(an_early_error_with_garbage_for_a_producer_is_passed_on)
{
    struct hostile_producer peer;
    struct uva_async_source source;

    workers = 0;
    open_checked(true);
    hostile_producer_init(&peer, "poison error release");
    source = hostile_producer_source(&peer);
    recording_consume(&consumer, uva_stream_from_async(loop.runtime, &source));
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(consumer.outcome.error.code, EIO);
    close_checked();
    hostile_producer_fini(&peer);
    ck_assert_str_eq(log_text, "");
}
END_TEST

/* ---- when streams are checked ------------------------------------------- */

/* Returns whether streams are checked: a bad request is then reported as a
 * breach, with a transcript. */
static bool is_checked(bool check)
{
    struct recording_handler h;
    bool reported;

    workers = 0;
    open_checked(check);
    recording_handler_init(&h, 1, 0);
    h.on_task = ask_for_nothing;
    drive(device_stream(ARROW_DEVICE_CPU), &h, false);
    reported = strstr(log_text, "after: ") != NULL;
    recording_handler_fini(&h);
    close_checked();
    return reported;
}

START_TEST(the_environment_counts_as_the_option_does)
{
    ck_assert_int_eq(unsetenv("UVA_CHECK"), 0);
    ck_assert(!is_checked(false));
    ck_assert(is_checked(true));
    ck_assert_int_eq(setenv("UVA_CHECK", "1", 1), 0);
    ck_assert(is_checked(false));
    ck_assert(is_checked(true));
    ck_assert_int_eq(setenv("UVA_CHECK", "0", 1), 0);
    ck_assert(!is_checked(false));
    ck_assert(is_checked(true));
    ck_assert_int_eq(unsetenv("UVA_CHECK"), 0);
}
END_TEST

/* Runs a stream in which the `n`-th allocation fails. */
static void run_without(long n)
{
    const struct uva_consumer table = recording_table(&consumer);
    struct uva_stream *stream;

    open_checked(true);
    loop_fail(&loop, n);
    stream = device_stream(ARROW_DEVICE_CPU);
    if (uva_stream_for_each(stream, &table, NULL) == 0)
        recording_await_done(&consumer, &loop);
    else
        consumer.outcome.end = UVA_END_FAILED;
    uva_stream_release(stream);
    loop_fail(&loop, 0);
    close_checked();
}

START_TEST(without_memory_for_a_check_a_hop_goes_unchecked)
{
    bool unchecked = false;

    workers = 0;
    for (long n = 1; n < 60; n++) {
        run_without(n);
        unchecked = unchecked || (strstr(log_text, "goes unchecked") != NULL &&
                                  consumer.outcome.end == UVA_END_COMPLETE);
    }
    ck_assert(unchecked);
}
END_TEST

static Suite *checked_suite(void)
{
    Suite *suite = suite_create("checked");
    TCase *c = suite_tests(
        "hops", without_a_log_breaches_are_lines_on_standard_error_and_count,
        DS01_a_batch_that_does_not_fit_is_told,
        AH04_a_stage_that_failed_before_its_schema_is_not_called,
        a_producer_that_refuses_its_handler_leaves_nothing,
        an_early_error_with_garbage_for_a_producer_is_passed_on,
        the_environment_counts_as_the_option_does,
        without_memory_for_a_check_a_hop_goes_unchecked, NULL);
    tcase_add_loop_test(c, our_own_hops_give_no_report, 0, 3);
    suite_add_loops(c, 0, 2,
                    a_driven_handler_that_keeps_the_rules_gives_no_report,
                    AP08_a_bad_request_is_told_with_what_led_to_it, NULL);
    suite_add_tcase(suite, c);
    return suite;
}

int main(void)
{
    return suite_run(checked_suite());
}
