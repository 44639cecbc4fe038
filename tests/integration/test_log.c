/* SPDX-License-Identifier: Apache-2.0 */
/* The log that an environment variable turns on: lines on standard error, if
 * the program has set no log of its own. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/loop.h"
#include "support/check_suite.h"
#include "support/loop_fixture.h"

/* Logs a line of each kind, and returns what was written to standard error. */
static const char *logged(const char *close_request)
{
    static char text[512];
    FILE *file = tmpfile();
    const int before = dup(STDERR_FILENO);
    struct loop_fixture loop;
    struct uva__rt *rt;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(setenv("UVA_LOG", close_request, 1), 0);
    ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
    loop_open(&loop);
    rt = uva__loop_rt(loop.runtime);
    uva__rt_log(rt, UVA_LOG_ERROR, NULL, NULL, "lost %d", 3);
    uva__rt_log(rt, UVA_LOG_WARN, "flights", "AP-06", "too many");
    uva__rt_log(rt, UVA_LOG_INFO, "flights", NULL, "open");
    uva__rt_log(rt, UVA_LOG_DEBUG, NULL, "AH-11", "end");
    loop_close(&loop);
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    (void)fclose(file);
    return text;
}

START_TEST(the_environment_says_how_much_is_told)
{
    ck_assert_str_eq(logged("error"), "uvarrow: error: lost 3\n");
    ck_assert_str_eq(logged("warn"),
                     "uvarrow: error: lost 3\n"
                     "uvarrow: warn: flights: too many AP-06\n");
    ck_assert_ptr_nonnull(strstr(logged("info"), "info: flights: open\n"));
    ck_assert_ptr_null(strstr(logged("info"), "debug"));
    ck_assert_ptr_nonnull(strstr(logged("debug"), "debug: end AH-11\n"));
}
END_TEST

START_TEST(a_word_that_is_no_level_means_silence)
{
    ck_assert_str_eq(logged("loud"), "");
    ck_assert_str_eq(logged(""), "");
}
END_TEST

static void count_lines(void *ctx, const struct uva_log_record *record)
{
    (void)record;
    (*(int *)ctx)++;
}

START_TEST(a_log_of_the_programs_own_goes_first)
{
    int lines = 0;
    const struct uva_runtime_options options = {
        .log = {count_lines, &lines, UVA_LOG_ERROR}, .no_thread = true};
    struct uva_runtime *runtime;
    struct uva__rt *rt;

    ck_assert_int_eq(setenv("UVA_LOG", "debug", 1), 0);
    ck_assert_int_eq(uva_runtime_open(NULL, &options, &runtime, NULL), 0);
    rt = uva__loop_rt(runtime);
    uva__rt_log(rt, UVA_LOG_ERROR, NULL, NULL, "lost");
    uva__rt_log(rt, UVA_LOG_WARN, NULL, NULL, "too many");
    ck_assert_int_eq(lines, 1);
    ck_assert_int_eq(uva_runtime_close(runtime, 0, NULL, NULL), 0);
    while (uva_runtime_turn(runtime))
        ;
}
END_TEST

int main(void)
{
    TCase *tcase = suite_tests("lines", the_environment_says_how_much_is_told,
                               a_word_that_is_no_level_means_silence,
                               a_log_of_the_programs_own_goes_first, NULL);
    return suite_main("log", NULL, NULL, tcase, NULL);
}
