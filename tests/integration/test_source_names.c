/* SPDX-License-Identifier: Apache-2.0 */
/* The names of sources, in statistics, trace events, logs and errors: that of
 * the kind, or a copy of the name that the program gives. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"

static struct fixture f;

static void tear_down(void)
{
    fixture_close(&f);
}

/* The stream's first stage has the name, also after the end of the source. */
static void ck_named(struct uva_stream *stream, const char *name)
{
    struct uva_stage_stats stage;
    size_t count = 1;

    ck_assert_int_eq(uva_stream_get_stats(stream, &stage, &count), 0);
    ck_assert_str_eq(stage.name, name);
}

/* ---- kinds -------------------------------------------------------------- */

static int never_starts(void *ctx,
                        struct ArrowAsyncDeviceStreamHandler *handler,
                        struct uva_error *error)
{
    (void)ctx;
    (void)handler;
    return uva_error_set(error, EIO, "never");
}

static struct uva_stream *from_async(struct fixture *of)
{
    return uva_stream_from_async(
        of->loop.runtime, &(struct uva_async_source){.start = never_starts});
}

static struct uva_stream *from_pusher(struct fixture *of)
{
    struct uva_pusher *pusher;
    struct uva_stream *stream =
        uva_stream_from_pusher(of->loop.runtime, NULL, &pusher);

    uva_pusher_close(pusher, NULL, NULL);
    return stream;
}

static struct uva_stream *from_arrays(struct fixture *of)
{
    return fixture_arrays(of, NULL, 0);
}

static const struct {
    const char *name;
    struct uva_stream *(*make)(struct fixture *f);
} KINDS[] = {
    {"arrow_stream", fixture_hook}, {"device_stream", fixture_on_loop},
    {"tasks", fixture_tasks},       {"arrays", from_arrays},
    {"async", from_async},          {"pusher", from_pusher},
};

START_TEST(a_source_without_a_name_has_that_of_its_kind)
{
    fixture_open(&f, 1);
    f.stream = KINDS[_i].make(&f);
    ck_named(f.stream, KINDS[_i].name);
}
END_TEST

/* ---- names given -------------------------------------------------------- */

static struct uva_stream *tasks_named(const char *name)
{
    struct uva_task_source source = fake_source_tasks(&f.fake);

    source.name = name;
    f.contexts++;
    return uva_stream_from_tasks(f.loop.runtime, &source);
}

static struct uva_stream *stream_named(const char *name)
{
    f.options.name = name;
    return fixture_hook(&f);
}

static struct uva_stream *(*const NAMED[])(const char *name) = {tasks_named,
                                                                stream_named};

START_TEST(a_name_is_copied_and_lives_as_long_as_the_stream)
{
    char name[] = "records";

    fixture_open(&f, 2);
    f.stream = NAMED[_i](name);
    memset(name, 'x', sizeof(name) - 1);
    ck_named(f.stream, "records");
    ck_assert_int_eq(fixture_run(&f), 0);
    loop_settle(&f.loop);
    ck_named(f.stream, "records");
}
END_TEST

/* The 31st byte would be the first half of a character. */
START_TEST(a_long_name_is_cut_between_characters)
{
    fixture_open(&f, 0);
    f.stream = NAMED[_i]("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xC3\xA4z");
    ck_named(f.stream, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    fixture_release(&f);
    f.stream = NAMED[_i]("aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xC3\xA4z");
    ck_named(f.stream, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xC3\xA4");
}
END_TEST

START_TEST(an_empty_name_is_none)
{
    fixture_open(&f, 0);
    f.stream = NAMED[_i]("");
    ck_named(f.stream, _i == 0 ? "tasks" : "arrow_stream");
}
END_TEST

START_TEST(a_time_limit_names_the_source)
{
    fixture_open(&f, 1);
    f.fake.gate_at = 0;
    f.stream = NAMED[_i]("records");
    ck_assert_int_eq(
        uva_stream_timeout(f.stream, &(struct uva_timeout){.first_ms = 1}), 0);
    ck_assert_int_eq(fixture_run(&f), ETIMEDOUT);
    ck_assert_ptr_nonnull(
        strstr(f.got.outcome.error.message, "records waits for "));
}
END_TEST

/* The text of its failure begins with it: of an open, a read, an extraction,
 * and of a batch that does not fit. */
START_TEST(an_error_begins_with_the_name)
{
    const int step = _i / 2;

    if (_i == 5 || _i == 6)
        return; /* a stream extracts nothing, and tasks are not measured */
    fixture_open(&f, 3);
    if (step == 0)
        f.fake.schema_code = EIO;
    else if (step == 1)
        f.fake.fail_at = 1;
    else if (step == 2)
        f.fake.extract_at = 1;
    else
        f.fake.wrong_shape = true;
    f.fake.fail_code = EIO;
    f.fake.fail_text = "no disk";
    f.stream = NAMED[_i % 2]("records");
    ck_assert_int_ne(fixture_run(&f), 0);
    if (f.got.outcome.error.message[0] != '\0')
        ck_assert_ptr_eq(strstr(f.got.outcome.error.message, "records: "),
                         f.got.outcome.error.message);
    else
        ck_assert_int_eq(step, 0); /* it gave no text */
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

START_TEST(without_memory_for_it_there_is_no_stream)
{
    bool failed = true;
    int enomem = 0;

    fixture_open(&f, 1);
    for (long n = 1; failed; n++) {
        loop_fail(&f.loop, n);
        f.stream = NAMED[_i]("records");
        failed = faulty_allocator_has_failed(&f.loop.memory);
        loop_fail(&f.loop, 0);
        enomem += uva_stream_status(f.stream, NULL) == ENOMEM;
        ck_assert(failed || uva_stream_status(f.stream, NULL) == 0);
        fixture_release(&f);
    }
    ck_assert_int_gt(enomem, 2);
}
END_TEST

int main(void)
{
    const int kinds = sizeof(KINDS) / sizeof(*KINDS);
    Suite *suite = suite_create("source_names");
    TCase *cases = suite_case(suite, "names", NULL, tear_down);

    tcase_add_loop_test(cases, a_source_without_a_name_has_that_of_its_kind, 0,
                        kinds);
    tcase_add_loop_test(cases, a_name_is_copied_and_lives_as_long_as_the_stream,
                        0, 2);
    tcase_add_loop_test(cases, a_long_name_is_cut_between_characters, 0, 2);
    tcase_add_loop_test(cases, an_empty_name_is_none, 0, 2);
    tcase_add_loop_test(cases, a_time_limit_names_the_source, 0, 2);
    tcase_add_loop_test(cases, an_error_begins_with_the_name, 0, 8);
    tcase_add_loop_test(cases, without_memory_for_it_there_is_no_stream, 0, 2);
    return suite_run(suite);
}
