/* SPDX-License-Identifier: Apache-2.0 */
/* A run that is stopped while the stream of its first statement is already
 * complete: no later statement is executed. The stop comes with the schema, and
 * its cancel is dropped, as if there were nothing left to cancel. */
#define _GNU_SOURCE
#include "commands.h"
#include "output.h"
#include "support/check_suite.h"
#include "uvarrow/adbc.h"
#include "uvarrow/stream.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

enum stop { GO_ON, INTERRUPT, READER_GONE, DISK_FULL, STOPS };

static enum stop stop;
static uv_signal_cb on_signal;
static uv_signal_t *on_signal_handle;
static struct uva__output_events output;

int __real_uv_signal_start(uv_signal_t *handle, uv_signal_cb cb, int signal);
int __wrap_uv_signal_start(uv_signal_t *handle, uv_signal_cb cb, int signal);
int __wrap_uv_signal_start(uv_signal_t *handle, uv_signal_cb cb, int signal)
{
    if (signal == SIGINT) {
        on_signal = cb;
        on_signal_handle = handle;
    }
    return __real_uv_signal_start(handle, cb, signal);
}

int __real_uva__output_open_fd(struct uva__output *out, uv_loop_t *loop, int fd,
                               const char *name,
                               const struct uva__output_events *events,
                               struct uva_error *error);
int __wrap_uva__output_open_fd(struct uva__output *out, uv_loop_t *loop, int fd,
                               const char *name,
                               const struct uva__output_events *events,
                               struct uva_error *error);
int __wrap_uva__output_open_fd(struct uva__output *out, uv_loop_t *loop, int fd,
                               const char *name,
                               const struct uva__output_events *events,
                               struct uva_error *error)
{
    output = *events;
    return __real_uva__output_open_fd(out, loop, fd, name, events, error);
}

int __real_uva__output_open(struct uva__output *out, uv_loop_t *loop,
                            const char *path,
                            const struct uva__output_events *events,
                            struct uva_error *error);
int __wrap_uva__output_open(struct uva__output *out, uv_loop_t *loop,
                            const char *path,
                            const struct uva__output_events *events,
                            struct uva_error *error);
int __wrap_uva__output_open(struct uva__output *out, uv_loop_t *loop,
                            const char *path,
                            const struct uva__output_events *events,
                            struct uva_error *error)
{
    output = *events;
    return __real_uva__output_open(out, loop, path, events, error);
}

void __real_uva_stream_cancel(struct uva_stream *stream, int code,
                              const char *reason);
void __wrap_uva_stream_cancel(struct uva_stream *stream, int code,
                              const char *reason);
void __wrap_uva_stream_cancel(struct uva_stream *stream, int code,
                              const char *reason)
{
    if (stop == GO_ON)
        __real_uva_stream_cancel(stream, code, reason);
}

/* The command asks this when the schema of a statement is here. */
int64_t __real_uva_adbc_rows_changed(const struct uva_stream_info *info);
int64_t __wrap_uva_adbc_rows_changed(const struct uva_stream_info *info);
int64_t __wrap_uva_adbc_rows_changed(const struct uva_stream_info *info)
{
    if (stop == INTERRUPT)
        on_signal(on_signal_handle, SIGINT);
    if (stop == READER_GONE)
        output.on_failed(output.ctx, EPIPE);
    if (stop == DISK_FULL)
        output.on_failed(output.ctx, ENOSPC);
    return __real_uva_adbc_rows_changed(info);
}

/* Runs statements; returns the exit code. */
static int run(const char *database, char *sql, char *view, char *path)
{
    char uri[64];
    char *words[] = {
        "--driver", UVA_TEST_DRIVER, "--uri",    uri,  sql,       "--format",
        view,       "--in-place",    "--output", path, "--quiet", NULL};

    (void)snprintf(uri, sizeof(uri), "file:%s", database);
    return uva__query_main(words);
}

/* Reads the file, which is small; returns its size. */
static size_t read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t count;

    ck_assert_ptr_nonnull(file);
    count = fread(text, 1, size - 1, file);
    text[count] = '\0';
    ck_assert_int_eq(fclose(file), 0);
    return count;
}

START_TEST(a_stopped_run_executes_no_later_statement)
{
    static const int CODES[] = {0, 128 + SIGINT, 0, 1};
    static char *const VIEWS[] = {"json-array", "table", "csv"};
    const enum stop how = (enum stop)(_i % STOPS);
    char database[] = "/tmp/uva_stopped_XXXXXX", text[256];
    char path[] = "/tmp/uva_stopped_XXXXXX";

    ck_assert_int_eq(close(mkstemp(database)), 0);
    ck_assert_int_eq(close(mkstemp(path)), 0);
    stop = how;
    ck_assert_int_eq(run(database, "CREATE TABLE a (x); CREATE TABLE b (x)",
                         VIEWS[_i / STOPS], path),
                     CODES[how]);
    stop = GO_ON;
    if (how != GO_ON)
        ck_assert_uint_eq(read_file(path, text, sizeof(text)), 0);
    ck_assert_int_eq(
        run(database, "SELECT name FROM sqlite_schema", "csv", path), 0);
    (void)read_file(path, text, sizeof(text));
    ck_assert_str_eq(text, how == GO_ON ? "name\na\nb\n" : "name\na\n");
    (void)unlink(database);
    (void)unlink(path);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("stopped");

    suite_add_loops(tc, 0, 3 * STOPS, a_stopped_run_executes_no_later_statement,
                    NULL);
    return suite_main("query_stopped", NULL, NULL, tc, NULL);
}
