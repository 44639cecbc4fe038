/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to pipes and sockets by a worker: they wait for the reader, and a
 * cancel, a drop, a drain and a close end the wait. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "support/plain_tree.h"
#include "uvarrow/io.h"

enum {
    BATCHES = 20,
    ROWS = 2000,
    BYTES = BATCHES * ROWS * 8,
    MANY = 70000,
    ROOM = 64
};

/* Two ends of a pipe, whose writer blocks; of one whose writer does not; and of
 * sockets. */
enum ends { PIPE, PIPE_NONBLOCK, SOCKETS, KINDS };

static struct fixture f;
static struct uva_stream *stream;
static int reader; /* the end that the test reads; -1: closed */
static bool reads; /* the test reads */
static int64_t received;
static struct {
    bool is_done, is_drained, is_closed;
    struct uva_outcome outcome;
    int64_t bytes;
} run;

static void set_up(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    memset(&run, 0, sizeof(run));
    received = 0;
    reads = false;
    fixture_open(&f, BATCHES);
    f.fake.rows = ROWS;
    stream = fixture_blocking(&f);
}

static void close_reader(void)
{
    if (reader >= 0)
        (void)close(reader);
    reader = -1;
}

static void tear_down(void)
{
    uva_stream_release(stream);
    stream = NULL;
    loop_settle(&f.loop);
    fixture_close(&f);
    close_reader();
}

/* ---- both ends ----------------------------------------------------------- */

static void on_done(void *ctx, const struct uva_outcome *outcome, int64_t bytes)
{
    ck_assert_ptr_eq(ctx, &run);
    ck_assert(!run.is_done);
    ck_assert(uva_runtime_on_loop(f.loop.runtime));
    run.is_done = true;
    run.outcome = *outcome;
    run.bytes = bytes;
}

static void read_some(void)
{
    char bytes[4096];
    ssize_t got;

    while (reads && reader >= 0 &&
           (got = read(reader, bytes, sizeof(bytes))) > 0)
        received += got;
}

static bool is_done(void *ctx)
{
    (void)ctx;
    read_some();
    if (!run.is_done)
        loop_nudge(&f.loop);
    return run.is_done;
}

/* The writer has closed its end, so no worker is left in a write. */
static bool writer_has_gone(void *ctx)
{
    struct pollfd end = {.fd = reader};

    (void)ctx;
    loop_nudge(&f.loop);
    return poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0;
}

static int open_ends(enum ends kind)
{
    int ends[2];

    if (kind == SOCKETS)
        ck_assert_int_eq(
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    else
        ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    if (kind == PIPE_NONBLOCK)
        (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    reader = ends[0];
    (void)fcntl(reader, F_SETFL, O_NONBLOCK);
    return ends[1];
}

static void start_within(enum ends kind, bool is_chunked, int64_t high_bytes)
{
    const struct uva_write options = {.http_chunked = is_chunked,
                                      .on_done = on_done,
                                      .ctx = &run,
                                      .high_bytes = high_bytes};
    const int fd = open_ends(kind);

    ck_assert_int_eq(uva_stream_write_file(stream, fd, &options, NULL), 0);
    (void)close(fd); /* the writer has a copy */
}

static void start(enum ends kind, bool is_chunked)
{
    start_within(kind, is_chunked, 2 * BYTES);
}

/* Turns the loop until the source has given all batches, and the other end is
 * full: only writes are left, and a worker waits. */
static bool only_writes_are_left(void *ctx)
{
    static int turns;

    (void)ctx;
    loop_nudge(&f.loop);
    turns = atomic_load(&f.fake.given) < BATCHES ? 0 : turns + 1;
    return turns > 100;
}

static void fill(enum ends kind)
{
    struct pollfd first = {.events = POLLIN};

    start(kind, false);
    first.fd = reader;
    loop_until(&f.loop, only_writes_are_left, NULL);
    ck_assert_int_eq(poll(&first, 1, -1), 1);
    ck_assert(!run.is_done);
}

/* ---- cases --------------------------------------------------------------- */

START_TEST(a_reader_gets_all)
{
    reads = true;
    start(_i % KINDS, _i >= KINDS);
    loop_until(&f.loop, is_done, NULL);
    read_some();
    ck_assert_int_eq(run.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(run.outcome.batches, BATCHES);
    ck_assert_int_eq(run.outcome.rows, BATCHES * ROWS);
    ck_assert_int_eq(run.bytes, received);
    ck_assert_int_gt(received, BYTES);
}
END_TEST

/* Columns of nulls need no memory. */
static struct uva_stream *stream_of_nulls(int64_t rows)
{
    struct ArrowDeviceArray arrays[5];
    struct ArrowSchema schema;
    struct ArrowArray array;

    plain_schema(&schema, "+s", "", 1);
    plain_schema(schema.children[0], "n", "", 0);
    for (int i = 0; i < 5; i++) {
        plain_array(&array, rows, 1, 1);
        plain_array(array.children[0], rows, 0, 0);
        array.children[0]->null_count = rows;
        uva_array_from_cpu(&array, &arrays[i]);
    }
    return uva_stream_from_arrays(f.loop.runtime, &schema, arrays, 5);
}

START_TEST(rows_are_counted_as_far_as_possible)
{
    uva_stream_release(stream);
    stream = stream_of_nulls(INT64_MAX / 4);
    reads = true;
    start(PIPE, false);
    loop_until(&f.loop, is_done, NULL);
    ck_assert_int_eq(run.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(run.outcome.batches, 5);
    ck_assert_int_eq(run.outcome.rows, INT64_MAX);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

START_TEST(a_reader_that_comes_later_gets_all)
{
    fill(_i);
    reads = true;
    loop_until(&f.loop, is_done, NULL);
    read_some();
    ck_assert_int_eq(run.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(run.bytes, received);
}
END_TEST

START_TEST(a_reader_that_leaves_ends_the_stream)
{
    fill(_i);
    close_reader();
    loop_until(&f.loop, is_done, NULL);
    ck_assert_int_eq(run.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(run.outcome.error.code, EPIPE);
}
END_TEST

/* The other end is not read, and stays open. */
START_TEST(a_cancel_ends_the_wait)
{
    f.fake.gate_at = BATCHES - 1;
    start(_i, false);
    fixture_await_gate(&f);
    uva_stream_cancel(stream, ETIMEDOUT, "too slow");
    loop_until(&f.loop, is_done, NULL);
    ck_assert_int_eq(run.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(run.outcome.error.code, ETIMEDOUT);
    fake_source_open_gate(&f.fake);
    loop_until(&f.loop, writer_has_gone, NULL);
}
END_TEST

/* The stream is over; the writes that are left go on. */
START_TEST(a_cancel_comes_too_late_after_the_source)
{
    fill(_i);
    uva_stream_cancel(stream, ETIMEDOUT, "too slow");
    reads = true;
    loop_until(&f.loop, is_done, NULL);
    read_some();
    ck_assert_int_eq(run.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(run.bytes, received);
}
END_TEST

/* More parts than bytes that the wake-up of the worker has room for. */
START_TEST(a_cancel_leaves_out_any_number_of_parts)
{
    f.fake.batches = MANY;
    f.fake.rows = 1;
    f.fake.gate_at = MANY - 1;
    start_within(PIPE, false, INT64_MAX);
    fixture_await_gate(&f);
    uva_stream_cancel(stream, ETIMEDOUT, "too slow");
    loop_until(&f.loop, is_done, NULL);
    ck_assert_int_eq(run.outcome.end, UVA_END_CANCELLED);
    fake_source_open_gate(&f.fake);
    uva_stream_release(stream);
    stream = NULL;
    fixture_close(&f); /* the loop thread is not left in a write either */
    close_reader();
    set_up();
}
END_TEST

START_TEST(a_drop_ends_the_wait)
{
    f.fake.gate_at = BATCHES - 1;
    start(_i, false);
    fixture_await_gate(&f);
    uva_stream_drop(stream);
    stream = NULL;
    fake_source_open_gate(&f.fake);
    loop_until(&f.loop, writer_has_gone, NULL);
    ck_assert(!run.is_done);
}
END_TEST

static void on_drained(void *ctx)
{
    (void)ctx;
    ck_assert(run.is_done);
    run.is_drained = true;
}

static bool is_drained(void *ctx)
{
    (void)ctx;
    read_some();
    loop_nudge(&f.loop);
    return run.is_drained;
}

/* Odd ones are read, and are complete. */
START_TEST(a_drain_waits_for_writes)
{
    fill(_i / 2);
    reads = _i % 2 == 1;
    ck_assert_int_eq(uva_runtime_drain(f.loop.runtime, reads ? UVA_FOREVER : 10,
                                       on_drained, NULL),
                     0);
    loop_until(&f.loop, is_drained, NULL);
    read_some();
    ck_assert_int_eq(run.outcome.end,
                     reads ? UVA_END_COMPLETE : UVA_END_CANCELLED);
    ck_assert_int_eq(run.outcome.error.code, reads ? 0 : ETIMEDOUT);
    if (reads)
        ck_assert_int_eq(run.bytes, received);
}
END_TEST

/* Odd ones have a source that runs. */
START_TEST(a_close_ends_the_wait)
{
    if (_i % 2 == 0) {
        fill(_i / 2);
    } else {
        f.fake.gate_at = BATCHES - 1;
        start(_i / 2, false);
        fixture_await_gate(&f);
        fake_source_open_gate(&f.fake);
    }
    uva_stream_release(stream);
    stream = NULL;
    fixture_close(&f);
    ck_assert(run.is_done);
    ck_assert_int_eq(run.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(run.outcome.error.code, ECANCELED);
    close_reader();
    set_up();
}
END_TEST

static void wait_for_byte(void *ctx)
{
    char byte;

    (void)!read(*(const int *)ctx, &byte, 1);
}

/* Other work has the threads that there are. */
START_TEST(a_write_without_a_thread_ends_the_stream)
{
    int gate[2];

    ck_assert_int_eq(pipe2(gate, O_CLOEXEC), 0);
    f.fake.gate_at = 0;
    start(PIPE, false);
    fixture_await_gate(&f);
    faulty_libc_threads(false);
    while (uva_runtime_run(f.loop.runtime, UVA_LANE_BLOCKING, wait_for_byte,
                           NULL, &gate[0]) == 0)
        continue;
    fake_source_open_gate(&f.fake);
    loop_until(&f.loop, is_done, NULL);
    faulty_libc_threads(true);
    ck_assert_int_eq(run.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(run.outcome.error.code, EPERM); /* of the double */
    ck_assert_ptr_nonnull(strstr(run.outcome.error.message, "cannot write"));
    ck_assert_int_eq(run.bytes, 0);
    (void)close(gate[1]);
    uva_stream_release(stream);
    stream = NULL;
    fixture_close(&f); /* waits for the other work */
    (void)close(gate[0]);
    close_reader();
    set_up();
}
END_TEST

START_TEST(descriptors_that_run_out_are_reported)
{
    const struct uva_write options = {.on_done = on_done, .ctx = &run};
    struct uva_error error = {0};
    const struct rlimit limit = {.rlim_cur = ROOM, .rlim_max = ROOM};
    int fds[ROOM], count = 0;
    const int fd = open_ends(PIPE);

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while ((fds[count] = dup(fd)) >= 0)
        count++;
    for (int left = 0; left < 3; left++) { /* a copy, and a pipe */
        ck_assert_int_eq(uva_stream_write_file(stream, fd, &options, &error),
                         EMFILE);
        ck_assert_ptr_nonnull(strstr(error.message, "fd "));
        (void)close(fds[--count]);
    }
    while (count > 0)
        (void)close(fds[--count]);
    (void)close(fd);
}
END_TEST

START_TEST(each_allocation_fails_once)
{
    bool failed = true;

    for (long k = 1; failed; k++) {
        const struct uva_write options = {.on_done = on_done, .ctx = &run};
        const int fd = open_ends(PIPE);
        int code;

        reads = true;
        faulty_libc_only_thread("test_write_file");
        faulty_libc_fail(k);
        code = uva_stream_write_file(stream, fd, &options, NULL);
        (void)close(fd);
        if (code == 0)
            loop_until(&f.loop, is_done, NULL);
        failed = faulty_libc_stop();
        if (code != 0)
            ck_assert_int_eq(code, ENOMEM);
        else if (run.outcome.error.code != 0)
            ck_assert_int_eq(run.outcome.error.code, ENOMEM);
        ck_assert(failed || run.outcome.end == UVA_END_COMPLETE);
        tear_down();
        set_up();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("write_file");
    TCase *all = suite_case(suite, "write_file", set_up, tear_down);

    suite_add_loops(all, 0, 2 * KINDS, a_reader_gets_all, NULL);
    suite_add_loops(all, 0, KINDS, a_reader_that_comes_later_gets_all, NULL);
    suite_add_loops(all, 0, KINDS, a_reader_that_leaves_ends_the_stream, NULL);
    suite_add_loops(all, 0, KINDS, a_cancel_ends_the_wait, NULL);
    suite_add_loops(all, 0, KINDS, a_cancel_comes_too_late_after_the_source,
                    NULL);
    suite_add(all, a_cancel_leaves_out_any_number_of_parts, NULL);
    suite_add_loops(all, 0, KINDS, a_drop_ends_the_wait, NULL);
    suite_add_loops(all, 0, 2 * KINDS, a_drain_waits_for_writes, NULL);
    suite_add_loops(all, 0, 2 * KINDS, a_close_ends_the_wait, NULL);
    suite_add(all, rows_are_counted_as_far_as_possible,
              a_write_without_a_thread_ends_the_stream,
              descriptors_that_run_out_are_reported, each_allocation_fails_once,
              NULL);
    return suite_run(suite);
}
