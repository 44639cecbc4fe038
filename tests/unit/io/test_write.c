/* SPDX-License-Identifier: Apache-2.0 */
/* Streams written to a socket and to a file: the bytes, back-pressure, every
 * end, and memory that runs out. The peer is the other end of a pair of
 * sockets, which the test reads between turns of the loop. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "uvarrow/io.h"

enum { BATCHES = 20, ROWS = 2000, ROOM = 1 << 20 };

static struct fixture f;
static struct uva_runtime_options runtime_options; /* for set_up() */
static struct uva_stream *stream;
static uv_pipe_t ours; /* a handle of libuv's */
static bool is_open;   /* `ours` is */
static int peer;       /* the other end; -1: closed */
static char received[ROOM];
static size_t size; /* bytes received */
static bool reads;  /* the peer reads */
static struct {
    int count; /* calls of on_done */
    enum uva_end end;
    struct uva_error error;
    int64_t batches, rows, bytes;
} done;

static void set_up(void)
{
    int pair[2];

    (void)signal(SIGPIPE, SIG_IGN); /* as every program with sockets does */
    memset(&done, 0, sizeof(done));
    size = 0;
    reads = true;
    fixture_open_with(&f, BATCHES, &runtime_options);
    f.fake.rows = ROWS;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair),
                     0);
    ck_assert_int_eq(uv_pipe_init(&f.loop.uv, &ours, 0), 0);
    ck_assert_int_eq(uv_pipe_open(&ours, pair[0]), 0);
    is_open = true;
    peer = pair[1];
    stream = fixture_blocking(&f);
}

static void on_closed(uv_handle_t *handle)
{
    (void)handle;
}

static void close_ours(void)
{
    if (is_open)
        uv_close((uv_handle_t *)&ours, on_closed);
    is_open = false;
}

static void close_peer(void)
{
    if (peer >= 0)
        (void)close(peer);
    peer = -1;
}

static void tear_down(void)
{
    close_ours();
    loop_settle(&f.loop);
    uva_stream_release(stream);
    fixture_close(&f);
    close_peer();
}

/* For the next set_up(); the test frees the workers. */
static void use_one_worker(void)
{
    ck_assert_int_eq(
        uva_workers_new(&(struct uva_workers_options){.compute_threads = 1},
                        &runtime_options.workers, NULL),
        0);
}

/* ---- the peer ----------------------------------------------------------- */

static void peer_read(void)
{
    ssize_t got;

    while (reads && peer >= 0 &&
           (got = read(peer, received + size, ROOM - size)) > 0)
        size += (size_t)got;
}

static bool is_done(void *ctx)
{
    (void)ctx;
    peer_read();
    if (done.count == 0)
        loop_nudge(&f.loop); /* reading makes room for the waiting data */
    return done.count > 0;
}

static void await_done(void)
{
    loop_until(&f.loop, is_done, NULL);
    peer_read();
    ck_assert_int_eq(done.count, 1);
}

static bool is_still(void *ctx)
{
    long *turns = ctx;

    loop_nudge(&f.loop);
    return --*turns < 0;
}

/* Turns the loop some times. */
static void turn(void)
{
    long turns = 200;

    loop_until(&f.loop, is_still, &turns);
}

/* ---- the writer --------------------------------------------------------- */

static void on_done(void *ctx, const struct uva_outcome *outcome, int64_t bytes)
{
    ck_assert_ptr_eq(ctx, &done);
    ck_assert_ptr_eq(outcome->stream, stream);
    done.count++;
    done.end = outcome->end;
    done.error = outcome->error;
    done.batches = outcome->batches;
    done.rows = outcome->rows;
    done.bytes = bytes;
}

static struct uva_write options(void)
{
    return (struct uva_write){.on_done = on_done, .ctx = &done};
}

static void start(const struct uva_write *write)
{
    struct uva_error error = {0};

    ck_assert_msg(
        uva_stream_write(stream, (uv_stream_t *)&ours, write, &error) == 0,
        "%s", error.message);
}

/* Takes the frames of chunks out of the received bytes; whether the last one
 * was there. */
static bool unframe(void)
{
    size_t from = 0, to = 0;

    while (from < size) {
        char *end = NULL;
        const size_t chunk = strtoul(received + from, &end, 16);

        ck_assert_int_eq(memcmp(end, "\r\n", 2), 0);
        from = (size_t)(end - received) + 2;
        if (chunk == 0) {
            ck_assert_uint_eq(size, from + 2);
            size = to;
            return true;
        }
        if (chunk + 2 > size - from)
            break;
        memmove(received + to, received + from, chunk);
        to += chunk;
        ck_assert_int_eq(memcmp(received + from + chunk, "\r\n", 2), 0);
        from += chunk + 2;
    }
    size = to;
    return false;
}

/* Whether all batches were received, and the end of the stream. */
static void check_received(void)
{
    ck_assert_uint_gt(size, BATCHES * ROWS * 8);
    ck_assert_int_eq(memcmp(received, "\xff\xff\xff\xff", 4), 0);
    ck_assert_int_eq(memcmp(received + size - 8, "\xff\xff\xff\xff\0\0\0\0", 8),
                     0);
}

/* ---- the whole stream --------------------------------------------------- */

START_TEST(a_stream_is_written)
{
    struct uva_write write = options();

    write.http_chunked = _i & 1;
    write.encode.compression = _i / 2;
    if (write.encode.compression != 0)
        stream = (uva_stream_release(stream), fixture_tasks(&f));
    if (uva_stream_write(stream, (uv_stream_t *)&ours, &write, NULL) == ENOTSUP)
        return; /* built without the codec */
    await_done();
    ck_assert_int_eq(done.end, UVA_END_COMPLETE);
    ck_assert_int_eq(done.error.code, 0);
    ck_assert_int_eq(done.batches,
                     BATCHES); /* without the schema and the end */
    ck_assert_int_eq(done.rows, BATCHES * f.fake.rows);
    ck_assert_int_eq(done.bytes, (int64_t)size);
    if (write.http_chunked)
        ck_assert(unframe());
    if (write.encode.compression == 0)
        check_received();
}
END_TEST

START_TEST(a_file_is_written)
{
    struct uva_write write = options();
    const int fd = memfd_create("test", MFD_CLOEXEC);
    char *bytes = malloc(ROOM);
    ssize_t got;

    ck_assert(fd >= 0 && bytes != NULL);
    write.encode.format = _i == 0 ? UVA_FORMAT_ARROW : UVA_FORMAT_ARROW_FILE;
    ck_assert_int_eq(uva_stream_write_file(stream, fd, &write, NULL), 0);
    await_done();
    ck_assert_int_eq(done.end, UVA_END_COMPLETE);
    got = pread(fd, bytes, ROOM, 0);
    ck_assert_int_eq(got, done.bytes);
    ck_assert_int_gt(got, BATCHES * ROWS * 8);
    if (_i == 1)
        ck_assert_int_eq(memcmp(bytes + got - 6, "ARROW1", 6), 0);
    (void)close(fd);
    free(bytes);
}
END_TEST

START_TEST(a_pipe_is_written_to_in_pieces)
{
    struct uva_write write = options();
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    close_peer();
    peer = ends[0];
    reads = false; /* the first write blocks, and others wait for it */
    ck_assert_int_eq(uva_stream_write_file(stream, ends[1], &write, NULL), 0);
    (void)close(ends[1]); /* the writer has a copy */
    turn();
    reads = true;
    await_done();
    ck_assert_int_eq(done.end, UVA_END_COMPLETE);
    check_received();
}
END_TEST

START_TEST(an_empty_stream_is_written)
{
    struct uva_write write = options();

    f.fake.batches = 0;
    start(&write);
    await_done();
    ck_assert_int_eq(done.end, UVA_END_COMPLETE);
    ck_assert_uint_gt(size, 8);
}
END_TEST

/* ---- text --------------------------------------------------------------- */

/* Checks that the lines of all batches were received, in order. `five` is how
 * the number 5 is written. */
static void check_lines(enum uva_format format, const char *five)
{
    char *expected = malloc(ROOM), *at = expected;

    ck_assert_ptr_nonnull(expected);
    if (format == UVA_FORMAT_CSV)
        at += sprintf(at, "n\n");
    for (int64_t i = 0; i < f.fake.batches; i++) {
        for (int64_t k = 0; k < f.fake.rows; k++) {
            const int value = (int)(i * 10 + k);

            if (format == UVA_FORMAT_JSON)
                at += sprintf(at, "{\"n\":%d}\n", value);
            else if (value == 5)
                at += sprintf(at, "%s\n", five);
            else
                at += sprintf(at, "%d\n", value);
        }
    }
    ck_assert_uint_eq(size, (size_t)(at - expected));
    ck_assert_int_eq(memcmp(received, expected, size), 0);
    free(expected);
}

START_TEST(text_is_written_in_order)
{
    struct uva_write write = options();

    write.encode.format = _i & 1 ? UVA_FORMAT_CSV : UVA_FORMAT_JSON;
    write.http_chunked = (_i & 2) != 0;
    if (_i & 4)
        stream = (uva_stream_release(stream), fixture_tasks(&f));
    start(&write);
    await_done();
    ck_assert_int_eq(done.end, UVA_END_COMPLETE);
    ck_assert_int_eq(done.batches, BATCHES);
    ck_assert_int_eq(done.rows, BATCHES * f.fake.rows);
    ck_assert_int_eq(done.bytes, (int64_t)size);
    if (write.http_chunked)
        ck_assert(unframe());
    check_lines(write.encode.format, "5");
}
END_TEST

START_TEST(text_is_written_to_a_file)
{
    struct uva_write write = options();
    const int fd = memfd_create("test", MFD_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    write.encode.format = UVA_FORMAT_CSV;
    ck_assert_int_eq(uva_stream_write_file(stream, fd, &write, NULL), 0);
    await_done();
    ck_assert_int_eq(done.end, UVA_END_COMPLETE);
    size = (size_t)pread(fd, received, ROOM, 0);
    check_lines(UVA_FORMAT_CSV, "5");
    (void)close(fd);
}
END_TEST

/* A chunk without bytes would be the last one. */
START_TEST(batches_without_rows_are_no_chunks)
{
    struct uva_write write = options();

    f.fake.rows = 0;
    write.encode.format = _i == 0 ? UVA_FORMAT_CSV : UVA_FORMAT_JSON;
    write.http_chunked = true;
    start(&write);
    await_done();
    ck_assert_int_eq(done.end, UVA_END_COMPLETE);
    ck_assert(unframe());
    check_lines(write.encode.format, "5");
}
END_TEST

START_TEST(the_text_of_nulls_is_copied)
{
    struct uva_write write = options();
    char *null_text = strdup("5");

    write.encode.format = UVA_FORMAT_CSV;
    write.encode.csv.null_text = null_text;
    start(&write);
    memset(null_text, 'x', 1);
    free(null_text);
    await_done();
    ck_assert_int_eq(done.end, UVA_END_COMPLETE);
    check_lines(UVA_FORMAT_CSV, "\"5\"");
}
END_TEST

START_TEST(a_failed_write_of_names_cancels_the_stream)
{
    struct uva_write write = options();

    write.encode.format = UVA_FORMAT_CSV;
    f.fake.batches = 0; /* the names are all there is */
    start(&write);
    close_ours();
    await_done();
    ck_assert_int_eq(done.end, UVA_END_CANCELLED);
    ck_assert_int_eq(done.bytes, 0);
}
END_TEST

static bool is_queued(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return ours.write_queue_size > 0;
}

/* One worker: with more, each would have its own batches. Once data waits to be
 * written, no batch is added. */
START_TEST(a_slow_reader_stops_the_encoding_of_text)
{
    struct uva_write write = options();
    const int small = 4096;
    uv_os_fd_t fd;
    size_t queued;

    use_one_worker();
    tear_down();
    set_up();
    uva_stream_release(stream);
    f.fake.batches = 400;
    f.fake.rows = 200;
    f.options.window.batches = 1;
    stream = fixture_blocking(&f);
    write.encode.format = UVA_FORMAT_JSON;
    write.high_bytes = 1;
    reads = false;
    ck_assert_int_eq(uv_fileno((uv_handle_t *)&ours, &fd), 0);
    ck_assert_int_eq(
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    start(&write);
    loop_until(&f.loop, is_queued, NULL);
    queued = ours.write_queue_size;
    turn();
    ck_assert_uint_eq(ours.write_queue_size, queued);
    ck_assert_int_eq(done.count, 0);
    ck_assert_int_lt(atomic_load(&f.fake.given), 400);
    reads = true;
    await_done();
    ck_assert_int_eq(done.end, UVA_END_COMPLETE);
    uva_workers_release(runtime_options.workers);
}
END_TEST

START_TEST(text_that_cannot_be_encoded_fails_the_stream)
{
    struct uva_write write = options();

    write.encode.format = UVA_FORMAT_JSON;
    f.fake.wrong_shape = true;
    start(&write);
    await_done();
    ck_assert_int_eq(done.end, UVA_END_FAILED);
    ck_assert_int_ne(done.error.code, 0);
}
END_TEST

/* ---- back-pressure ------------------------------------------------------ */

START_TEST(a_slow_reader_stops_the_source)
{
    struct uva_write write = options();

    uva_stream_release(stream);
    f.fake.batches = 60;
    f.fake.rows = 1600; /* the pair takes some of these */
    f.options.window.batches = 1;
    stream = fixture_blocking(&f);
    write.high_bytes = 1;
    reads = false;
    start(&write);
    turn();
    ck_assert_int_eq(done.count, 0);
    ck_assert_int_lt(atomic_load(&f.fake.given), 50);
    reads = true;
    await_done();
    ck_assert_int_eq(done.end, UVA_END_COMPLETE);
    ck_assert_int_eq(done.bytes, (int64_t)size);
}
END_TEST

/* ---- failures ----------------------------------------------------------- */

START_TEST(a_failed_write_cancels_the_stream)
{
    struct uva_write write = options();

    reads = false;
    f.fake.gate_at = 2;
    start(&write);
    fixture_await_gate(&f);
    close_peer();
    fake_source_open_gate(&f.fake);
    await_done();
    ck_assert_int_eq(done.end, UVA_END_CANCELLED);
    ck_assert_int_eq(done.error.code, EPIPE);
    ck_assert_ptr_nonnull(strstr(done.error.message, "cannot write"));
}
END_TEST

/* All batches were taken, and wait. */
START_TEST(a_write_that_fails_after_the_source_is_reported)
{
    struct uva_write write = options();

    write.http_chunked = _i == 1;
    write.high_bytes = ROOM;
    reads = false;
    start(&write);
    turn();
    ck_assert_int_eq(done.count, 0);
    close_peer();
    await_done();
    ck_assert_int_eq(done.end, UVA_END_CANCELLED);
    ck_assert_int_eq(done.error.code, EPIPE);
    ck_assert_int_le(done.batches, BATCHES);
}
END_TEST

START_TEST(a_closing_socket_fails_the_first_write)
{
    struct uva_write write = options();

    start(&write);
    close_ours();
    await_done();
    ck_assert_int_eq(done.end, UVA_END_CANCELLED);
    ck_assert_int_eq(done.bytes, 0);
}
END_TEST

/* By the last chunk a reader knows a whole answer. */
START_TEST(a_failed_stream_has_no_last_chunk)
{
    struct uva_write write = options();

    write.http_chunked = true;
    f.fake.fail_at = 3;
    f.fake.fail_code = EIO;
    f.fake.fail_text = "the disk is gone";
    start(&write);
    await_done();
    ck_assert_int_eq(done.end, UVA_END_FAILED);
    ck_assert_int_eq(done.error.code, EIO);
    ck_assert_ptr_nonnull(strstr(done.error.message, "the disk is gone"));
    ck_assert_int_eq(done.batches, 3);
    ck_assert_int_eq(done.rows, 3 * f.fake.rows);
    turn();
    peer_read();
    ck_assert(!unframe());
    ck_assert_uint_gt(size, 0);
}
END_TEST

START_TEST(a_batch_that_cannot_be_encoded_fails_the_stream)
{
    struct uva_write write = options();

    f.fake.wrong_shape = true;
    start(&write);
    await_done();
    ck_assert_int_eq(done.end, UVA_END_FAILED);
    ck_assert_int_ne(done.error.code, 0);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_cancels_the_stream)
{
    struct uva_write write = options();
    const int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    ck_assert_int_eq(uva_stream_write_file(stream, fd, &write, NULL), 0);
    await_done();
    ck_assert_int_eq(done.end, UVA_END_CANCELLED);
    ck_assert_int_eq(done.error.code, ENOSPC);
    (void)close(fd);
    turn();
}
END_TEST

/* ---- cancel and drop ---------------------------------------------------- */

START_TEST(a_cancel_is_reported_at_once)
{
    struct uva_write write = options();

    write.http_chunked = true;
    reads = false;
    f.fake.gate_at = 3;
    start(&write);
    fixture_await_gate(&f);
    turn();
    uva_stream_cancel(stream, ETIMEDOUT, "too slow");
    await_done();
    ck_assert_int_eq(done.end, UVA_END_CANCELLED);
    ck_assert_int_eq(done.error.code, ETIMEDOUT);
    reads = true;
    turn();
    peer_read();
    ck_assert(!unframe());
}
END_TEST

START_TEST(a_cancel_leaves_out_what_waits_for_a_pipe)
{
    struct uva_write write = options();
    struct pollfd first = {.events = POLLIN};
    int ends[2], i;

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    close_peer();
    peer = ends[0];
    reads = false;
    f.fake.gate_at = BATCHES - 1;
    ck_assert_int_eq(uva_stream_write_file(stream, ends[1], &write, NULL), 0);
    (void)close(ends[1]);
    fixture_await_gate(&f);
    turn();
    first.fd = ends[0];
    ck_assert_int_eq(poll(&first, 1, -1), 1);
    if (_i == 0) {
        uva_stream_cancel(stream, ETIMEDOUT, "too slow");
        await_done();
        ck_assert_int_eq(done.end, UVA_END_CANCELLED);
    } else {
        uva_stream_drop(stream);
        stream = NULL;
    }
    reads = true;
    for (i = 0; i < 5; i++) {
        turn();
        peer_read();
    }
    ck_assert_uint_gt(size, 0);
    ck_assert_uint_lt(size, (BATCHES - 1) * ROWS * 8);
}
END_TEST

START_TEST(a_dropped_stream_reports_nothing)
{
    struct uva_write write = options();

    reads = false;
    if (_i == 2) /* no byte was written */
        f.fake.gate_at = 0;
    write.high_bytes = _i == 0 ? 1 : ROOM; /* 1: it waits for writes alone */
    start(&write);
    if (_i == 2)
        fixture_await_gate(&f);
    turn();
    ck_assert_int_eq(done.count, 0);
    uva_stream_drop(stream);
    stream = NULL;
    turn();
    reads = true;
    peer_read();
    turn();
    close_ours();
    loop_settle(&f.loop);
    ck_assert_int_eq(done.count, 0);
}
END_TEST

START_TEST(a_close_ends_writes_under_way)
{
    struct uva_write write = options();

    reads = false;
    write.high_bytes = ROOM;
    start(&write);
    turn();
    close_ours();
    await_done();
    ck_assert_int_eq(done.end, UVA_END_CANCELLED);
    ck_assert(done.error.code == ECANCELED || done.error.code == EBADF);
}
END_TEST

/* ---- bad calls ---------------------------------------------------------- */

static void refused(const struct uva_write *write, int code, const char *text)
{
    struct uva_error error = {0};

    ck_assert_int_eq(
        uva_stream_write(stream, (uv_stream_t *)&ours, write, &error), code);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
    ck_assert_int_eq(uva_stream_write_file(stream, 1, write, &error), code);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
}

START_TEST(options_are_checked)
{
    struct uva_write write = options();
    struct uva_error error;
    uv_loop_t other;
    uv_pipe_t foreign;

    ck_assert(!uva_stream_is_dropped(NULL));
    refused(NULL, EINVAL, "no options");
    write.on_done = NULL;
    refused(&write, EINVAL, "on_done");
    write = options();
    write.high_bytes = -1;
    refused(&write, EINVAL, "high_bytes is negative");
    write = options();
    write.low_bytes = -1;
    refused(&write, EINVAL, "low_bytes is negative");
    write.low_bytes = 2 << 20;
    refused(&write, EINVAL, "above high_bytes");
    write = options();
    write.encode.compression = 9;
    refused(&write, EINVAL, "compression");
    write = options();
    write.encode.format = UVA_FORMAT_CSV;
    write.encode.csv.delimiter = '"';
    refused(&write, EINVAL, "csv.delimiter");
    write = options();
    ck_assert_int_eq(uva_stream_write(stream, NULL, &write, &error), EINVAL);
    ck_assert_int_eq(uva_stream_write_file(stream, -1, &write, &error), EBADF);
    ck_assert_int_eq(
        uva_stream_write(NULL, (uv_stream_t *)&ours, &write, &error), EINVAL);
    ck_assert_int_eq(uva_stream_write_file(NULL, 1, &write, &error), EINVAL);
    ck_assert_int_eq(uv_loop_init(&other), 0);
    ck_assert_int_eq(uv_pipe_init(&other, &foreign, 0), 0);
    ck_assert_int_eq(
        uva_stream_write(stream, (uv_stream_t *)&foreign, &write, &error),
        EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "loop"));
    uv_close((uv_handle_t *)&foreign, NULL);
    (void)uv_run(&other, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&other), 0);
    start(&write);
    ck_assert_int_eq(
        uva_stream_write(stream, (uv_stream_t *)&ours, &write, &error), EBUSY);
    await_done();
}
END_TEST

static void call_elsewhere(void *ctx)
{
    struct uva_write write = options();

    (void)ctx;
    ck_assert_int_eq(
        uva_stream_write(stream, (uv_stream_t *)&ours, &write, NULL), EPERM);
    ck_assert_int_eq(uva_stream_write_file(stream, 1, &write, NULL), EPERM);
}

START_TEST(another_thread_is_refused)
{
    uv_thread_t thread;

    ck_assert_int_eq(uv_thread_create(&thread, call_elsewhere, NULL), 0);
    (void)uv_thread_join(&thread);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

/* ---- parts for an output of the program ---------------------------------- */

static struct {
    int64_t rows;
    int batches, frames; /* parts with and without rows */
    int foreign;         /* calls for an array that carries no part */
} parts;

static int on_part(void *ctx, struct uva_batch *batch)
{
    struct uva_part part;
    struct ArrowDeviceArray other = {0};

    (void)ctx;
    parts.foreign += uva_part_take(&other, &part) == EINVAL;
    if (uva_part_take(&batch->data, &part) != 0)
        return ENOMEM;
    ck_assert(!uva_array_is_live(&batch->data));
    for (size_t i = 0; i < part.count; i++) {
        memcpy(received + size, part.buffers[i].base, part.buffers[i].len);
        size += part.buffers[i].len;
    }
    ck_assert_int_gt(part.bytes, 0);
    parts.rows += part.rows;
    parts.batches += part.rows > 0;
    parts.frames += part.rows == 0;
    uva_part_release(&part);
    ck_assert_ptr_null(part.owner);
    return 0;
}

static void on_parts_done(void *ctx, const struct uva_outcome *outcome)
{
    on_done(ctx, outcome, (int64_t)size);
}

static int take_parts(const struct uva_encode *encode, struct uva_error *error)
{
    memset(&parts, 0, sizeof(parts));
    (void)uva_stream_encode(stream, encode); /* the stream has the error */
    return uva_stream_for_each(stream,
                               &(struct uva_consumer){.on_batch = on_part,
                                                      .on_done = on_parts_done,
                                                      .ctx = &done},
                               error);
}

START_TEST(parts_are_the_bytes_of_the_stream)
{
    const struct uva_encode encode = {.format = _i & 1 ? UVA_FORMAT_CSV
                                                       : UVA_FORMAT_ARROW};

    f.fake.batches = _i < 2 ? BATCHES : 0;
    ck_assert_int_eq(take_parts(_i == 0 ? NULL : &encode, NULL), 0);
    await_done();
    ck_assert_int_eq(done.end, UVA_END_COMPLETE);
    ck_assert_int_eq(parts.batches, f.fake.batches);
    ck_assert_int_eq(parts.rows, f.fake.batches * ROWS);
    ck_assert_int_eq(parts.frames, _i == 1 ? 0 : 1); /* text has no end */
    ck_assert_int_eq(parts.foreign, parts.batches + parts.frames);
    if (_i == 0)
        check_received();
    else if (_i & 1)
        check_lines(UVA_FORMAT_CSV, "5");
}
END_TEST

START_TEST(a_batch_of_a_source_carries_no_part)
{
    struct uva_part part;
    struct ArrowArray array = {.length = 0, .n_buffers = 1};
    const void *buffers[] = {&array};
    struct ArrowDeviceArray device = {.array = array};

    device.array.buffers = buffers;
    device.array.release = (void (*)(struct ArrowArray *))(uintptr_t)1;
    ck_assert_int_eq(uva_part_take(&device, &part), EINVAL);
}
END_TEST

START_TEST(an_encode_without_memory_fails)
{
    const struct uva_encode encode = {.format = _i == 0 ? UVA_FORMAT_ARROW
                                                        : UVA_FORMAT_CSV};
    bool failed = true;

    for (long k = 1; failed; k++) {
        int code;

        done.count = 0;
        tear_down();
        set_up();
        f.fake.batches = 3;
        faulty_libc_only_thread("test_write");
        faulty_libc_fail(k);
        code = take_parts(&encode, NULL);
        if (code == 0)
            await_done();
        failed = faulty_libc_stop();
        if (code == 0 && done.error.code != 0)
            code = done.error.code;
        ck_assert(code == 0 || code == ENOMEM);
        ck_assert(failed || code == 0);
    }
}
END_TEST

START_TEST(an_encode_checks_its_options)
{
    const struct uva_encode encode = {.format = UVA_FORMAT_CSV,
                                      .compression = 1};

    ck_assert_int_eq(take_parts(&encode, NULL), 0);
    await_done();
    ck_assert_int_eq(done.error.code, EINVAL);
    ck_assert_ptr_nonnull(strstr(done.error.message, "compression"));
}
END_TEST

/* Every allocation fails once, of the loop thread or of the one worker that
 * encodes text: the start fails, or the end reports ENOMEM. */
START_TEST(a_stream_without_memory_fails)
{
    bool failed = true;

    use_one_worker();

    for (long k = 1; failed; k++) {
        struct uva_write write = options();
        struct uva_error error = {0};
        int code;

        write.http_chunked = true;
        write.encode.format = _i < 4 ? UVA_FORMAT_ARROW : UVA_FORMAT_CSV;
        done.count = 0;
        size = 0;
        tear_down();
        set_up();
        f.fake.batches = _i % 4 < 2 ? 3 : 0;
        faulty_libc_only_thread(_i < 8 ? "test_write" : "uva-c0");
        faulty_libc_fail(k);
        code =
            _i % 2 == 0
                ? uva_stream_write(stream, (uv_stream_t *)&ours, &write, &error)
                : uva_stream_write_file(stream, peer, &write, &error);
        if (code == 0)
            await_done();
        failed = faulty_libc_stop();
        if (code != 0)
            ck_assert_int_eq(code, ENOMEM);
        else if (failed && done.error.code != 0)
            ck_assert_int_eq(done.error.code, ENOMEM);
        else
            ck_assert_int_eq(done.end, UVA_END_COMPLETE);
    }
    uva_workers_release(runtime_options.workers);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("write");
    TCase *all = suite_case(suite, "write", set_up, tear_down);

    suite_add_loops(all, 0, 6, a_stream_is_written, NULL);
    suite_add_loops(all, 0, 2, a_file_is_written, NULL);
    suite_add_loops(all, 0, 10, a_stream_without_memory_fails, NULL);
    suite_add_loops(all, 0, 8, text_is_written_in_order, NULL);
    suite_add_loops(all, 0, 2, batches_without_rows_are_no_chunks, NULL);
    suite_add_loops(all, 0, 2, a_cancel_leaves_out_what_waits_for_a_pipe, NULL);
    suite_add_loops(all, 0, 3, a_dropped_stream_reports_nothing, NULL);
    suite_add_loops(all, 0, 2, a_write_that_fails_after_the_source_is_reported,
                    NULL);
    suite_add_loops(all, 0, 4, parts_are_the_bytes_of_the_stream, NULL);
    suite_add_loops(all, 0, 2, an_encode_without_memory_fails, NULL);
    suite_add(all, a_batch_of_a_source_carries_no_part,
              an_encode_checks_its_options, a_pipe_is_written_to_in_pieces,
              an_empty_stream_is_written, a_slow_reader_stops_the_source,
              a_failed_write_cancels_the_stream,
              a_closing_socket_fails_the_first_write,
              a_failed_stream_has_no_last_chunk,
              a_batch_that_cannot_be_encoded_fails_the_stream,
              a_file_that_cannot_be_written_cancels_the_stream,
              a_cancel_is_reported_at_once, a_close_ends_writes_under_way,
              options_are_checked, another_thread_is_refused,
              text_is_written_to_a_file, the_text_of_nulls_is_copied,
              a_failed_write_of_names_cancels_the_stream,
              a_slow_reader_stops_the_encoding_of_text,
              text_that_cannot_be_encoded_fails_the_stream, NULL);
    return suite_run(suite);
}
