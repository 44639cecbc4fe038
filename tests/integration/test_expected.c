/* SPDX-License-Identifier: Apache-2.0 */
/* The rows and bytes that a source expects to give, in the statistics of its
 * stage. */
#include <check.h>
#include <errno.h>

#include "support/check_suite.h"
#include "support/fixture.h"

static struct fixture f;
static int64_t rows, bytes; /* that the source states */
static atomic_int asked;    /* calls of expect */

static void set_up(void)
{
    fixture_open(&f, 2);
    rows = 20;
    bytes = 300;
    atomic_store(&asked, 0);
}

static void tear_down(void)
{
    fixture_close(&f);
}

static void expect(void *ctx, int64_t *rows_out, int64_t *bytes_out)
{
    const struct fake_source *fake = ctx;

    ck_assert_ptr_eq(fake, &f.fake);
    ck_assert_int_eq(*rows_out, 0);
    ck_assert_int_eq(*bytes_out, 0);
    atomic_fetch_add(&asked, 1);
    *rows_out = rows;
    *bytes_out = bytes;
}

static struct uva_stream *make(int kind)
{
    struct uva_task_source tasks = fake_source_tasks(&f.fake);

    f.options.expect = tasks.expect = expect;
    f.options.ctx = &f.fake;
    if (kind != SOURCE_TASKS)
        return fixture_sources[kind].make(&f);
    f.contexts++;
    return uva_stream_from_tasks(f.loop.runtime, &tasks);
}

static struct uva_stage_stats first_stage(const struct uva_stream *stream)
{
    struct uva_stage_stats stages[4];
    size_t count = 4;

    ck_assert_int_eq(uva_stream_get_stats(stream, stages, &count), 0);
    for (size_t i = 1; i < count; i++) {
        ck_assert_int_eq(stages[i].rows_expected, 0);
        ck_assert_int_eq(stages[i].bytes_expected, 0);
    }
    return stages[0];
}

START_TEST(what_is_expected_is_in_the_statistics)
{
    struct uva_stage_stats stage;

    f.stream = make(_i);
    stage = first_stage(f.stream);
    ck_assert_int_eq(stage.rows_expected, 0); /* until it is open */
    ck_assert_int_eq(stage.bytes_expected, 0);
    ck_assert_int_eq(fixture_run(&f), 0);
    stage = first_stage(f.stream);
    ck_assert_int_eq(stage.rows_expected, 20);
    ck_assert_int_eq(stage.bytes_expected, 300);
    ck_assert_int_eq(atomic_load(&asked), 1);
}
END_TEST

START_TEST(numbers_below_zero_are_not_known)
{
    rows = -1;
    bytes = INT64_MIN;
    f.stream = make(_i);
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(first_stage(f.stream).rows_expected, 0);
    ck_assert_int_eq(first_stage(f.stream).bytes_expected, 0);
}
END_TEST

START_TEST(a_source_without_a_schema_is_not_asked)
{
    f.fake.schema_code = EIO;
    f.stream = make(_i);
    ck_assert_int_eq(fixture_run(&f), EIO);
    ck_assert_int_eq(atomic_load(&asked), 0);
}
END_TEST

START_TEST(without_the_function_they_are_not_known)
{
    f.stream = fixture_sources[_i].make(&f);
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(first_stage(f.stream).rows_expected, 0);
    ck_assert_int_eq(first_stage(f.stream).bytes_expected, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("expected");
    TCase *cases = suite_case(suite, "expected", set_up, tear_down);

    tcase_add_loop_test(cases, what_is_expected_is_in_the_statistics, 0,
                        FIXTURE_SOURCES);
    tcase_add_loop_test(cases, numbers_below_zero_are_not_known, 0,
                        FIXTURE_SOURCES);
    tcase_add_loop_test(cases, a_source_without_a_schema_is_not_asked, 0,
                        FIXTURE_SOURCES);
    tcase_add_loop_test(cases, without_the_function_they_are_not_known, 0,
                        FIXTURE_SOURCES);
    return suite_run(suite);
}
