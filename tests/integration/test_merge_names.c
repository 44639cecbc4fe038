/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the inputs of merge and concat: an error begins with the name of
 * the input that failed, a limit of time names the input that it waits for, and
 * the statistics have the name of each, and tell an input that is stuck from
 * one that is over. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/stages.h"

enum { WAYS = 2, MERGE = 0 }; /* the loop index */
enum { STREAMS = 3 };

static struct loop_fixture loop;
static struct recording_consumer consumer;
static struct uva_stream *streams[STREAMS];
static struct uva_pusher *pushers[STREAMS]; /* NULL once closed */

static void set_up(void)
{
    recording_init(&consumer);
    loop_open_with(&loop, &(struct uva_runtime_options){0});
}

static void push_end(int i, int code, const char *text)
{
    struct uva_error error;

    if (pushers[i] != NULL)
        uva_pusher_close(
            pushers[i],
            uva_error_set(&error, code, "%s", text) != 0 ? &error : NULL, NULL);
    pushers[i] = NULL;
}

static void tear_down(void)
{
    for (int i = 0; i < STREAMS; i++)
        push_end(i, 0, "");
    loop_close(&loop);
}

/* Makes the streams, with pushers and these names, of which any may be NULL. */
static void open_named(const char *const names[STREAMS])
{
    for (int i = 0; i < STREAMS; i++) {
        struct ArrowSchema schema;

        batch_schema(&schema);
        streams[i] = uva_stream_from_pusher(
            loop.runtime, &(struct uva_push_source){0}, &pushers[i]);
        ck_assert_int_eq(uva_pusher_set_schema(pushers[i], &schema), 0);
        if (names[i] != NULL)
            ck_assert_int_eq(uva_stream_set_name(streams[i], names[i]), 0);
    }
}

/* Joins `count` other streams to the stream `of`. */
static void join(int way, int of, size_t count)
{
    ck_assert_int_eq((way == MERGE ? uva_stream_merge : uva_stream_concat)(
                         streams[of], streams + of + 1, count, NULL),
                     0);
}

/* The input `bad` fails, after the end of the inputs before it. */
static void fails(int bad, const char *text)
{
    struct uva_error error = {0};

    recording_start(&consumer, streams[0]);
    for (int i = 0; i < bad; i++)
        push_end(i, 0, "");
    loop_settle(&loop);
    push_end(bad, EIO, "broke");
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_FAILED, EIO, text);
    ck_assert_int_eq(uva_stream_status(streams[0], &error), EIO);
    ck_assert_str_eq(error.message, text);
    uva_stream_release(streams[0]);
}

/* ---- errors ------------------------------------------------------------- */

static const char *const ALL[STREAMS] = {"A", "B", "C"};

START_TEST(an_error_begins_with_the_input_that_failed)
{
    static const char *const texts[] = {"A: broke", "B: broke", "C: broke"};

    open_named(ALL);
    join(_i % WAYS, 0, 2);
    fails(_i / WAYS, texts[_i / WAYS]);
}
END_TEST

START_TEST(an_input_without_a_name_adds_none)
{
    static const char *const first_only[STREAMS] = {"A", NULL, NULL};

    open_named(first_only);
    join(_i, 0, 2);
    fails(1, "broke");
}
END_TEST

START_TEST(a_name_given_later_is_that_of_the_whole)
{
    static const char *const texts[] = {"all: A: broke", "all: B: broke"};

    open_named(ALL);
    join(_i % WAYS, 0, 2);
    ck_assert_int_eq(uva_stream_set_name(streams[0], "all"), 0);
    fails(_i / WAYS, texts[_i / WAYS]);
}
END_TEST

START_TEST(names_of_merges_in_merges_follow_each_other)
{
    static const char *const texts[] = {"A: broke", "BC: B: broke",
                                        "BC: C: broke"};

    open_named(ALL);
    join(_i % WAYS, 1, 1);
    ck_assert_int_eq(uva_stream_set_name(streams[1], "BC"), 0);
    join(MERGE, 0, 1);
    fails(_i / WAYS, texts[_i / WAYS]);
}
END_TEST

START_TEST(a_merge_that_is_merged_again_has_no_name_of_its_own)
{
    static const char *const texts[] = {"A: broke", "B: broke", "C: broke"};

    open_named(ALL);
    join(MERGE, 0, 1);
    ck_assert_int_eq(uva_stream_merge(streams[0], &streams[2], 1, NULL), 0);
    fails(_i, texts[_i]);
}
END_TEST

static int refuse(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                  struct uva_error *error)
{
    (void)ctx;
    (void)in;
    (void)out;
    return uva_error_set(error, EILSEQ, "refused");
}

START_TEST(a_stage_behind_them_fails_for_no_input)
{
    struct ArrowDeviceArray array;

    open_named(ALL);
    join(_i, 0, 2);
    (void)uva_stream_map(streams[0], &(struct uva_map){.batch = refuse});
    recording_start(&consumer, streams[0]);
    batch_make(&array, 1);
    ck_assert_int_eq(uva_pusher_push(pushers[0], &array, NULL, 0), 0);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_FAILED, EILSEQ, "refused");
    uva_stream_release(streams[0]);
}
END_TEST

START_TEST(a_code_alone_gets_the_name_and_its_description)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "B: %s", strerror(EPIPE));
    open_named(ALL);
    join(_i, 0, 2);
    recording_start(&consumer, streams[0]);
    push_end(0, 0, "");
    loop_settle(&loop);
    uva_pusher_close(pushers[1], &(struct uva_error){.code = EPIPE}, NULL);
    pushers[1] = NULL;
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_FAILED, EPIPE, text);
    uva_stream_release(streams[0]);
}
END_TEST

/* Without memory for a text the code is left. */
START_TEST(a_name_may_find_no_memory)
{
    char named[128];
    int unnamed = 0;

    (void)snprintf(named, sizeof(named), "B: %s", strerror(EPIPE));
    for (int k = 1; k < 8; k++) {
        recording_init(&consumer);
        open_named(ALL);
        join(MERGE, 0, 2);
        recording_start(&consumer, streams[0]);
        loop_settle(&loop);
        loop_fail(&loop, k);
        uva_pusher_close(pushers[1], &(struct uva_error){.code = EPIPE}, NULL);
        pushers[1] = NULL;
        recording_await_done(&consumer, &loop);
        loop_fail(&loop, 0);
        if (strcmp(consumer.outcome.error.message, strerror(EPIPE)) == 0)
            unnamed++;
        else if (consumer.outcome.error.code != ENOMEM)
            ck_assert_str_eq(consumer.outcome.error.message, named);
        uva_stream_release(streams[0]);
        push_end(0, 0, "");
        push_end(2, 0, "");
    }
    ck_assert_int_eq(unnamed, 1);
}
END_TEST

static struct ArrowArrayStream out;
static atomic_bool was_read;

static void *read_once(void *ctx)
{
    struct ArrowArray array = {0};

    (void)ctx;
    ck_assert_int_eq(out.get_next(&out, &array), EIO);
    atomic_store(&was_read, true);
    loop_nudge(&loop);
    return NULL;
}

static bool is_read(void *ctx)
{
    (void)ctx;
    return atomic_load(&was_read);
}

START_TEST(a_blocking_stream_out_has_the_names_too)
{
    pthread_t reader;

    open_named(ALL);
    join(MERGE, 0, 2);
    ck_assert_int_eq(uva_stream_set_name(streams[0], "all"), 0);
    ck_assert_int_eq(uva_stream_to_arrow_stream(streams[0], NULL, &out, NULL),
                     0);
    push_end(1, EIO, "broke");
    ck_assert_int_eq(pthread_create(&reader, NULL, read_once, NULL), 0);
    loop_until(&loop, is_read, NULL);
    (void)pthread_join(reader, NULL);
    ck_assert_str_eq(out.get_last_error(&out), "all: B: broke");
    out.release(&out);
    uva_stream_release(streams[0]);
}
END_TEST

/* ---- limits of time ----------------------------------------------------- */

START_TEST(a_limit_of_the_whole_names_the_input_that_it_waits_for)
{
    open_named(ALL);
    join(_i, 0, 2);
    (void)uva_stream_timeout(streams[0],
                             &(struct uva_timeout){.between_ms = 1});
    recording_start(&consumer, streams[0]);
    push_end(0, 0, "");
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_FAILED, ETIMEDOUT,
                    "timeout: no batch came within 1 ms (between_ms); "
                    "B: pusher waits for its source");
    uva_stream_release(streams[0]);
}
END_TEST

/* ---- statistics --------------------------------------------------------- */

static struct uva_stage_stats stages[8];

static void stages_are(const char *expected)
{
    size_t count = sizeof(stages) / sizeof(stages[0]);
    char text[256] = "";

    ck_assert_int_eq(uva_stream_get_stats(streams[0], stages, &count), 0);
    for (size_t i = 0; i < count; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
                       "%s%s:%s", i > 0 ? " " : "",
                       stages[i].stream != NULL ? stages[i].stream : "-",
                       stages[i].name);
    ck_assert_str_eq(text, expected);
}

START_TEST(stages_have_the_name_of_their_input)
{
    open_named(ALL);
    join(MERGE, 1, 1);
    stages_are("A:pusher");
    join(MERGE, 0, 1);
    stages_are("A:pusher B:pusher C:pusher -:merge -:merge");
    ck_assert_int_eq(uva_stream_set_name(streams[0], "all"), 0);
    stages_are("A:pusher B:pusher C:pusher all:merge all:merge");
    uva_stream_release(streams[0]);
}
END_TEST

START_TEST(inputs_without_a_name_have_that_of_the_whole)
{
    static const char *const middle[STREAMS] = {NULL, "B", NULL};

    open_named(middle);
    join(_i, 0, 2);
    ck_assert_int_eq(uva_stream_set_name(streams[0], "all"), 0);
    stages_are(_i == MERGE ? "all:pusher B:pusher all:pusher all:merge"
                           : "all:pusher B:pusher all:pusher all:concat");
    uva_stream_release(streams[0]);
}
END_TEST

START_TEST(an_input_that_is_over_differs_from_one_that_waits)
{
    open_named(ALL);
    join(MERGE, 0, 2);
    recording_start(&consumer, streams[0]);
    push_end(1, 0, "");
    loop_settle(&loop);
    stages_are("A:pusher B:pusher C:pusher -:merge");
    ck_assert_int_eq(stages[0].waiting, UVA_WAITING_SOURCE);
    ck_assert_int_eq(stages[1].waiting, UVA_WAITING_OVER);
    ck_assert_int_eq(stages[2].waiting, UVA_WAITING_SOURCE);
    push_end(0, 0, "");
    push_end(2, 0, "");
    recording_await_done(&consumer, &loop);
    uva_stream_release(streams[0]);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("merge_names");

    suite_add_loops(tests, 0, WAYS, an_input_without_a_name_adds_none,
                    a_stage_behind_them_fails_for_no_input,
                    a_code_alone_gets_the_name_and_its_description,
                    a_limit_of_the_whole_names_the_input_that_it_waits_for,
                    inputs_without_a_name_have_that_of_the_whole, NULL);
    suite_add_loops(tests, 0, 2 * WAYS, a_name_given_later_is_that_of_the_whole,
                    NULL);
    suite_add_loops(tests, 0, STREAMS * WAYS,
                    an_error_begins_with_the_input_that_failed,
                    names_of_merges_in_merges_follow_each_other, NULL);
    suite_add_loops(tests, 0, STREAMS,
                    a_merge_that_is_merged_again_has_no_name_of_its_own, NULL);
    suite_add(tests, a_name_may_find_no_memory,
              a_blocking_stream_out_has_the_names_too,
              stages_have_the_name_of_their_input,
              an_input_that_is_over_differs_from_one_that_waits, NULL);
    return suite_main("merge_names", set_up, tear_down, tests, NULL);
}
