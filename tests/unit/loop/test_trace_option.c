/* SPDX-License-Identifier: Apache-2.0 */
/* Where the trace of a runtime goes: to its option, to the file that UVA_TRACE
 * names, or nowhere; and the log if that file cannot be written. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop/rt.h"
#include "support/check_suite.h"
#include "support/forked_child.h"

static char path[200], line[300];
static int lines, events; /* that were logged and reported */

static void keep_line(void *ctx, const struct uva_log_record *record)
{
    (void)ctx;
    (void)snprintf(line, sizeof(line), "%s", record->message);
    lines++;
}

static void count_event(void *ctx, const struct uva_trace_event *event)
{
    (void)ctx;
    (void)event;
    events++;
}

static void set_up(void)
{
    lines = events = 0;
    (void)snprintf(path, sizeof(path), "%s/trace_option_%ld.json",
                   UVA_TEST_BUILD, (long)getpid());
    ck_assert_int_eq(setenv("UVA_TRACE", path, 1), 0);
}

static void tear_down(void)
{
    (void)unlink(path);
}

static struct uva__rt *rt_open(const struct uva_runtime_options *options)
{
    struct uva__rt *rt;

    ck_assert_int_eq(uva__rt_new(options, &rt), 0);
    return rt;
}

static void rt_close(struct uva__rt *rt)
{
    uva__rt_retire(rt);
    uva__rt_release(rt);
}

/* Opens a runtime with a log of that level, and closes it. */
static void open_and_close(enum uva_log_level level)
{
    rt_close(rt_open(&(struct uva_runtime_options){
        .log = {.write = keep_line, .level = level}}));
}

static void report(struct uva__rt *rt)
{
    rt->trace.event(rt->trace.ctx,
                    &(struct uva_trace_event){.kind = UVA_TRACE_CANCEL,
                                              .name = "cancel",
                                              .stage_name = "arrays"});
}

START_TEST(the_environment_names_a_file)
{
    struct uva__rt *rt = rt_open(&(struct uva_runtime_options){0});
    char text[1000] = "";
    FILE *file;

    report(rt);
    rt_close(rt);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    (void)fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    ck_assert_ptr_nonnull(strstr(text, "\"name\":\"cancel\""));
    ck_assert_ptr_nonnull(strstr(text, "}\n]\n"));
}
END_TEST

START_TEST(the_option_goes_before_the_environment)
{
    struct uva__rt *rt =
        rt_open(&(struct uva_runtime_options){.trace = {.event = count_event}});

    report(rt);
    rt_close(rt);
    ck_assert_int_eq(events, 1);
    ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

START_TEST(without_either_there_are_no_events)
{
    struct uva__rt *rt;

    ck_assert_int_eq(unsetenv("UVA_TRACE"), 0);
    rt = rt_open(&(struct uva_runtime_options){0});
    ck_assert(rt->trace.event == NULL);
    rt_close(rt);
    ck_assert_int_eq(setenv("UVA_TRACE", "", 1), 0);
    rt = rt_open(&(struct uva_runtime_options){0});
    ck_assert(rt->trace.event == NULL);
    rt_close(rt);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_one_line_of_the_log)
{
    ck_assert_int_eq(setenv("UVA_TRACE", "/no\nfolder/t.json", 1), 0);
    open_and_close(UVA_LOG_WARN);
    ck_assert_int_eq(lines, 1);
    ck_assert_str_eq(line, "UVA_TRACE: cannot write to /no folder/t.json: No "
                           "such file or directory");
    open_and_close(UVA_LOG_ERROR);
    ck_assert_int_eq(lines, 1);
}
END_TEST

START_TEST(a_pipe_is_no_file_for_a_trace)
{
    char expected[300];
    int reader;

    (void)snprintf(expected, sizeof(expected),
                   "UVA_TRACE: cannot write to %s: Invalid argument; it is no "
                   "regular file",
                   path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(reader, 0);
    open_and_close(UVA_LOG_WARN);
    ck_assert_str_eq(line, expected);
    (void)close(reader);
}
END_TEST

/* A child may not write to the file of its parent. */
static int open_in_child(void *ctx)
{
    (void)ctx;
    open_and_close(UVA_LOG_WARN);
    return lines == 1 && strstr(line, "; another process writes to it") != NULL
               ? 0
               : 1;
}

START_TEST(a_file_of_another_process_is_left_to_it)
{
    struct uva__rt *rt = rt_open(&(struct uva_runtime_options){0});

    forked_child_run(open_in_child, NULL);
    rt_close(rt);
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(without_a_log_the_line_goes_to_standard_error)
{
    char text[300] = "";
    FILE *file;

    ck_assert_ptr_nonnull(freopen(path, "w", stderr));
    ck_assert_int_eq(setenv("UVA_TRACE", "/no/t.json", 1), 0);
    rt_close(rt_open(&(struct uva_runtime_options){0}));
    (void)fflush(stderr);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
    ck_assert_str_eq(text, "uvarrow: warn: UVA_TRACE: cannot write to "
                           "/no/t.json: No such file or directory\n");
    ck_assert_ptr_null(fgets(text, sizeof(text), file));
    (void)fclose(file);
}
END_TEST

/* The parent's runtime may be released for good in a child, too. */
static int close_in_child(void *ctx)
{
    uva__rt_release(ctx);
    return 0;
}

START_TEST(a_release_in_a_child_leaves_the_file_alone)
{
    struct uva__rt *rt = rt_open(&(struct uva_runtime_options){0});

    uva__rt_retire(rt);
    forked_child_run(close_in_child, rt);
    uva__rt_release(rt);
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

int main(void)
{
    return suite_main(
        "trace_option", set_up, tear_down,
        suite_tests("trace_option", the_environment_names_a_file,
                    the_option_goes_before_the_environment,
                    without_either_there_are_no_events,
                    a_file_that_cannot_be_written_is_one_line_of_the_log,
                    a_pipe_is_no_file_for_a_trace,
                    a_file_of_another_process_is_left_to_it,
                    without_a_log_the_line_goes_to_standard_error,
                    a_release_in_a_child_leaves_the_file_alone, NULL),
        NULL);
}
