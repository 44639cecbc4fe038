/* SPDX-License-Identifier: Apache-2.0 */
/* The pool with Flight SQL: a server in Python in another process. Partitions,
 * errors, a cancel that stops the server's work, a server that goes away.
 * Without the driver or pyarrow the test is skipped. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/adbc.h"

enum { SKIP = 77 };

static struct fixture f;
static struct uva_adbc_pool *pool;
static struct uva_stream *stream;
static char folder[] = "/tmp/uva_flight_XXXXXX";
static pid_t server;
static int server_stdin; /* closed: the server ends */

/* Waits for a file in the folder; 0 if the server has ended, as far as its
 * parent can see. */
static int await_file(const char *name)
{
    char path[100];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    while (access(path, R_OK) != 0) {
        if (waitpid(server, NULL, WNOHANG) > 0)
            return 0;
        (void)usleep(10000);
    }
    return 1;
}

/* Starts it; it ends with this process. */
static int start_server(void)
{
    int ends[2];

    if (mkdtemp(folder) == NULL || pipe2(ends, O_CLOEXEC) != 0)
        return 0;
    server = fork();
    if (server == 0) {
        (void)dup2(ends[0], STDIN_FILENO);
        (void)execl(UVA_TEST_PYTHON, UVA_TEST_PYTHON,
                    UVA_TEST_SOURCE "/tests/support/flight_server.py", folder,
                    (char *)NULL);
        _exit(1);
    }
    (void)close(ends[0]);
    server_stdin = ends[1];
    return await_file("port");
}

static void end_server(void)
{
    char command[100];

    (void)close(server_stdin);
    (void)kill(server, SIGKILL);
    (void)waitpid(server, NULL, 0);
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    (void)!system(command);
}

/* ---- queries ------------------------------------------------------------ */

static void set_up(void)
{
    static char uri[60];
    static const struct uva_pair options[] = {{.key = "uri", .value = uri},
                                              {0}};
    char path[100];
    int port = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/port", folder);
    file = fopen(path, "r");
    ck_assert_int_eq(fscanf(file, "%d", &port), 1);
    (void)fclose(file);
    (void)snprintf(uri, sizeof(uri), "grpc://127.0.0.1:%d", port);
    fixture_open(&f, 0);
    ck_assert_int_eq(
        uva_adbc_pool_new(f.loop.runtime,
                          &(struct uva_adbc_pool_options){
                              .driver = UVA_TEST_FLIGHTSQL, .options = options},
                          &pool, NULL),
        0);
}

static void tear_down(void)
{
    uva_adbc_pool_release(pool);
    fixture_close(&f);
}

static void start(struct uva_stream *made)
{
    recording_init(&f.got);
    stream = made;
    recording_start(&f.got, stream);
}

static void await_end(void)
{
    recording_await_done(&f.got, &f.loop);
    f.got.wrong = 0; /* partitions come in any order */
    uva_stream_release(stream);
}

static struct uva_stream *query(const char *sql)
{
    return uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
}

static void ask(const char *sql)
{
    start(query(sql));
    await_end();
}

START_TEST(rows_come_and_errors_are_reported)
{
    ask("rows 100");
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(f.got.rows, 100);
    ask("fails");
    recording_ended(&f.got, UVA_END_FAILED, EIO, "division by zero");
    ask("fails 3");
    recording_ended(&f.got, UVA_END_FAILED, EIO, "connection reset");
    ask("rows 1");
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
}
END_TEST

static struct ArrowDeviceArray partitions;

static void on_partitions(void *ctx, const struct uva_stream_info *info,
                          struct ArrowDeviceArray *batches, size_t count,
                          const struct uva_outcome *outcome)
{
    (void)info;
    ck_assert_int_eq(outcome->error.code, 0);
    ck_assert_uint_eq(count, 1);
    uva_array_move(&batches[0], &partitions);
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

START_TEST(partitions_are_read_and_merged)
{
    bool done = false;

    stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = "parts 20",
                                       .result = UVA_ADBC_PARTITIONS});
    ck_assert_int_eq(uva_stream_collect(stream, 0, on_partitions, &done, NULL),
                     0);
    loop_until(&f.loop, is_set, &done);
    uva_stream_release(stream);
    ck_assert_int_eq(partitions.array.length, 20);
    start(uva_stream_from_partitions(pool, &partitions.array, NULL));
    uva_array_release(&partitions);
    await_end();
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(f.got.rows, 20 * 21 / 2);
}
END_TEST

static bool has_rows(void *ctx)
{
    (void)ctx;
    return f.got.rows > 0;
}

START_TEST(a_cancel_stops_the_server)
{
    start(query("endless"));
    loop_until(&f.loop, has_rows, NULL);
    uva_stream_cancel(stream, 0, NULL);
    await_end();
    recording_ended(&f.got, UVA_END_CANCELLED, ECANCELED, "");
    ck_assert(await_file("stopped"));
}
END_TEST

START_TEST(a_server_that_goes_away_is_reported)
{
    start(query("endless"));
    loop_until(&f.loop, has_rows, NULL);
    (void)kill(server, SIGKILL);
    await_end();
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    ck_assert_int_gt(f.got.rows, 0);
    do { /* the kernel may still accept for it */
        ask("rows 1");
        ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    } while (strstr(f.got.outcome.error.message, "reset by peer") != NULL);
    text_contains(f.got.outcome.error.message, "refused");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("flightsql");
    int result;

    if (access(UVA_TEST_FLIGHTSQL, R_OK) != 0 || !start_server())
        return SKIP;
    suite_add(tc, rows_come_and_errors_are_reported,
              partitions_are_read_and_merged, a_cancel_stops_the_server,
              a_server_that_goes_away_is_reported, NULL); /* the last one */
    result = suite_main("adbc_flightsql", set_up, tear_down, tc, NULL);
    end_server();
    return result;
}
