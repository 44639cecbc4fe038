/* SPDX-License-Identifier: Apache-2.0 */
/* Streams read from a socket and from a file: the batches, back-pressure, every
 * end, limits, and memory that runs out. The input was written by the encoder,
 * from the source of the fixture. The consumer knows its values. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "io/flatbuffer_reader.h"
#include "io/ipc_read_header.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "support/native.h"
#include "support/plain_tree.h"
#include "uvarrow/io.h"

enum { BATCHES = 6, ROWS = 200, ROOM = 1 << 20 };

static struct fixture f;
static char bytes[ROOM]; /* an Arrow stream or file */
static size_t size;      /* of that */
static size_t sent;      /* of these, the sent ones */
static size_t piece;     /* at most so many at one time */
static uv_pipe_t ours;   /* a handle of libuv's */
static bool is_open;     /* `ours` is */
static int peer;         /* the other end; -1: closed */
static int released;     /* calls of on_released */
static struct uva_ipc_source options;
static int written; /* calls of on_done of the writer */
static int ends[2]; /* of a pipe that is closed last; -1: open */

/* ---- sound input -------------------------------------------------------- */

static void on_written(void *ctx, const struct uva_outcome *outcome,
                       int64_t count)
{
    (void)ctx;
    (void)count;
    ck_assert_int_eq(outcome->end, UVA_END_COMPLETE);
    written++;
}

static bool is_written(void *ctx)
{
    (void)ctx;
    return written > 0;
}

/* Encodes the batches of the source. False without the codec. */
static bool encode(enum uva_format format, int32_t compression)
{
    const struct uva_write write = {
        .encode = {.format = format, .compression = compression},
        .on_done = on_written};
    const int fd = memfd_create("test", MFD_CLOEXEC);
    struct uva_stream *stream = fixture_blocking(&f);
    const int code = uva_stream_write_file(stream, fd, &write, NULL);

    if (code == 0)
        loop_until(&f.loop, is_written, NULL);
    uva_stream_release(stream);
    size = (size_t)pread(fd, bytes, ROOM, 0);
    atomic_store(&f.fake.given, 0); /* for the next one */
    (void)close(fd);
    return code == 0;
}

static void set_up_with(const struct uva_runtime_options *runtime)
{
    int pair[2];

    options = (struct uva_ipc_source){0};
    sent = 0;
    piece = ROOM;
    released = written = 0;
    ends[0] = ends[1] = -1;
    fixture_open_with(&f, BATCHES, runtime);
    f.fake.rows = ROWS;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair),
                     0);
    ck_assert_int_eq(uv_pipe_init(&f.loop.uv, &ours, 0), 0);
    ck_assert_int_eq(uv_pipe_open(&ours, pair[0]), 0);
    ours.data = &size;
    is_open = true;
    peer = pair[1];
    ck_assert(encode(UVA_FORMAT_ARROW, 0));
}

static void set_up(void)
{
    set_up_with(&(struct uva_runtime_options){0});
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
    fixture_close(&f);
    close_peer();
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            (void)close(ends[i]);
    ck_assert_int_eq(plain_live(), 0);
}

/* ---- the sender --------------------------------------------------------- */

/* Sends a piece, if there is room. */
static void send_some(void)
{
    ssize_t count;

    if (peer < 0 || sent >= size)
        return;
    count =
        write(peer, bytes + sent, piece < size - sent ? piece : size - sent);
    if (count > 0)
        sent += (size_t)count;
    else
        ck_assert_int_eq(errno, EAGAIN);
}

static bool is_done(void *ctx)
{
    (void)ctx;
    send_some();
    if (f.got.done == 0)
        loop_nudge(&f.loop);
    return f.got.done > 0;
}

static bool is_released(void *ctx)
{
    (void)ctx;
    if (released == 0)
        loop_nudge(&f.loop);
    return released > 0;
}

static bool is_still(void *ctx)
{
    long *turns = ctx;

    send_some();
    loop_nudge(&f.loop);
    return --*turns < 0;
}

/* Turns the loop some times. */
static void turn(void)
{
    long turns = 200;

    loop_until(&f.loop, is_still, &turns);
}

/* ---- the reader --------------------------------------------------------- */

static void on_released(void *ctx, struct uv_stream_s *socket)
{
    ck_assert_ptr_eq(ctx, &released);
    ck_assert_ptr_eq(socket, &ours);
    ck_assert_ptr_eq(socket->data, &size);
    ck_assert(!uv_is_active((uv_handle_t *)socket));
    released++;
}

static struct uva_stream *from_socket(void)
{
    options.on_released = on_released;
    options.ctx = &released;
    return uva_stream_from_socket(f.loop.runtime, (uv_stream_t *)&ours,
                                  &options);
}

static struct uva_stream *from_fd(int fd)
{
    return uva_stream_from_file(f.loop.runtime, NULL,
                                &(struct uva_ipc_source){.fd = fd});
}

/* A stream of the bytes in a file. */
static struct uva_stream *from_file(void)
{
    const int fd = memfd_create("test", MFD_CLOEXEC);
    struct uva_stream *stream;

    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    options.fd = fd;
    stream = uva_stream_from_file(f.loop.runtime, NULL, &options);
    (void)close(fd); /* the stream has a copy */
    return stream;
}

/* Runs a stream, which it takes, to its end. */
static void run(struct uva_stream *stream)
{
    recording_init(&f.got);
    recording_consume(&f.got, stream);
    loop_until(&f.loop, is_done, NULL);
}

static void check_complete(void)
{
    recording_ended(&f.got, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(f.got.taken, BATCHES);
    ck_assert_int_eq(f.got.rows, BATCHES * ROWS);
    ck_assert(f.got.in_order);
    ck_assert_int_eq(f.got.wrong, 0);
}

/* Both readers, on the same bytes, fail. */
static void check_fails(int code, const char *text)
{
    run(from_file());
    recording_ended(&f.got, UVA_END_FAILED, code, text);
}

/* ---- whole streams ------------------------------------------------------ */

START_TEST(a_file_is_read)
{
    written = 0;
    if (!encode(_i % 2 == 0 ? UVA_FORMAT_ARROW : UVA_FORMAT_ARROW_FILE, _i / 2))
        return; /* built without the codec */
    run(from_file());
    check_complete();
}
END_TEST

/* Several batches are decoded at once. */
START_TEST(a_file_is_read_in_parallel)
{
    struct uva_stream *stream;

    options.window.batches = 4;
    stream = from_file();
    ck_assert_int_eq(
        uva_stream_parallel(stream, &(struct uva_parallel){.workers = 3}), 0);
    run(stream);
    check_complete();
}
END_TEST

/* It begins at the position of the descriptor. */
START_TEST(a_file_inside_of_another_is_read)
{
    const int fd = memfd_create("test", MFD_CLOEXEC);

    written = 0;
    ck_assert(encode(_i == 0 ? UVA_FORMAT_ARROW : UVA_FORMAT_ARROW_FILE, 0));
    ck_assert_int_eq(write(fd, "front", 5), 5);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    ck_assert_int_eq(lseek(fd, 5, SEEK_SET), 5);
    run(from_fd(fd));
    check_complete();
    (void)close(fd);
}
END_TEST

/* A descriptor that cannot be sought, and does not block: of a file, too. */
START_TEST(a_socket_is_read_as_a_file)
{
    int pair[2];

    written = 0;
    ck_assert(encode(_i == 0 ? UVA_FORMAT_ARROW : UVA_FORMAT_ARROW_FILE, 0));
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair),
                     0);
    close_peer();
    peer = pair[1];
    piece = 999;
    run(from_fd(pair[0]));
    check_complete();
    (void)close(pair[0]);
}
END_TEST

static const size_t pieces[] = {ROOM, 1000, 8, 3};

START_TEST(a_socket_is_read)
{
    piece = pieces[_i];
    run(from_socket());
    check_complete();
    loop_until(&f.loop, is_released, NULL);
    ck_assert_int_eq(released, 1);
}
END_TEST

START_TEST(a_compressed_stream_is_read)
{
    written = 0;
    if (!encode(UVA_FORMAT_ARROW, 1 + _i))
        return; /* built without the codec */
    run(from_socket());
    check_complete();
}
END_TEST

/* The input may be something else afterwards. */
START_TEST(what_follows_stays_in_the_socket)
{
    char rest[8] = {0};

    memcpy(bytes + size, "behind", 6);
    size += 6;
    options.on_released = NULL;
    run(uva_stream_from_socket(f.loop.runtime, (uv_stream_t *)&ours, &options));
    check_complete();
    ck_assert_int_eq(read(ours.io_watcher.fd, rest, sizeof(rest)), 6);
    ck_assert_str_eq(rest, "behind");
    ck_assert_ptr_eq(ours.data, &size);
}
END_TEST

/* Takes away the markers, which there were not before Arrow 0.15. */
static void without_markers(void)
{
    char *to = bytes;
    size_t at = 0;

    while (at < size) {
        const size_t head = uva__table_load((uint8_t *)bytes + at + 4, 4);
        struct uva__ipc_head message = {0};

        if (head > 0)
            ck_assert_int_eq(uva__ipc_head_read((uint8_t *)bytes + at + 8, head,
                                                &message, NULL),
                             0);
        memmove(to, bytes + at + 4, 4 + head + (size_t)message.body_size);
        to += 4 + head + (size_t)message.body_size;
        at += 8 + head + (size_t)message.body_size;
    }
    size = (size_t)(to - bytes);
}

START_TEST(the_framing_before_0_15_is_read)
{
    char rest[8] = {0};

    without_markers();
    run(from_file());
    check_complete();
    memcpy(bytes + size, "behind", 6);
    size += 6;
    piece = pieces[_i];
    run(from_socket());
    check_complete();
    while (sent < size)
        send_some();
    ck_assert_int_eq(read(ours.io_watcher.fd, rest, sizeof(rest)), 6);
    ck_assert_str_eq(rest, "behind");
}
END_TEST

/* After messages with markers, where 8 bytes are wanted. */
START_TEST(an_end_without_a_marker_is_read)
{
    memset(bytes + size - 8, 0, 4);
    size -= 4;
    run(from_file());
    check_complete();
    recording_init(&f.got);
    recording_consume(&f.got, from_socket());
    while (sent < size)
        send_some();
    close_peer();
    loop_until(&f.loop, is_done, NULL);
    check_complete();
}
END_TEST

/* Other data than Arrow IPC begins with a size, too. */
START_TEST(a_size_without_a_marker_is_checked)
{
    static const char sizes[][5] = {"\1\0\0\0", "\7\0\0\0", "\377\377\377\376",
                                    "a,b\n", "a\tb\t"};
    char text[80];

    memcpy(bytes, sizes[_i], 4);
    (void)snprintf(text, sizeof(text),
                   "message 0 at byte 0: it begins with %02x",
                   (uint8_t)sizes[_i][0]);
    check_fails(EPROTO, text);
}
END_TEST

/* Without on_released, only the socket has to stay. */
START_TEST(options_may_be_left_out)
{
    run(uva_stream_from_socket(f.loop.runtime, (uv_stream_t *)&ours, NULL));
    check_complete();
}
END_TEST

/* ---- metadata ----------------------------------------------------------- */

static void put(const struct uva__flatbuffer *flat)
{
    memcpy(bytes + size, uva__flatbuffer_bytes(flat), flat->used);
    size += flat->used;
}

/* Ends a message in which the table `header` is of the kind `what`. */
static void put_message(struct uva__flatbuffer *flat, int version, int what,
                        size_t header, size_t metadata)
{
    size_t message;

    uva__flatbuffer_begin_table(flat, 5);
    uva__flatbuffer_set_place(flat, 2, header);
    uva__flatbuffer_set_place(flat, 4, metadata);
    uva__flatbuffer_set(flat, 0, 2, (uint64_t)version);
    uva__flatbuffer_set(flat, 1, 1, (uint64_t)what);
    message = uva__flatbuffer_end_table(flat);
    uva__flatbuffer_finish(flat, message);
    uva__flatbuffer_put(flat, 4, flat->used);
    uva__flatbuffer_put(flat, 4, UINT32_MAX);
    put(flat);
    uva__flatbuffer_clear(flat);
}

/* Begins a stream without columns. */
static void put_schema(struct uva__flatbuffer *flat)
{
    struct uva__ipc_plan plan;
    struct ArrowSchema schema;

    size = 0;
    plain_schema(&schema, "+s", "", 0);
    ck_assert_int_eq(uva__ipc_plan_init(&plan, &schema, NULL), 0);
    uva_schema_release(&schema);
    uva__ipc_message_schema(flat, &plan);
    put(flat);
    uva__flatbuffer_clear(flat);
    uva__ipc_plan_fini(&plan);
}

static void put_end(struct uva__flatbuffer *flat)
{
    memcpy(bytes + size, "\xff\xff\xff\xff\0\0\0\0", 8);
    size += 8;
    uva__flatbuffer_fini(flat);
}

/* A vector with one pair. */
static size_t put_pair(struct uva__flatbuffer *flat)
{
    const size_t value = uva__flatbuffer_string(flat, "value", -1);
    const size_t key = uva__flatbuffer_string(flat, "key", -1);
    size_t pair;

    uva__flatbuffer_begin_table(flat, 2);
    uva__flatbuffer_set_place(flat, 0, key);
    uva__flatbuffer_set_place(flat, 1, value);
    pair = uva__flatbuffer_end_table(flat);
    uva__flatbuffer_align(flat, 4, 0);
    uva__flatbuffer_put_place(flat, pair);
    return uva__flatbuffer_end_vector(flat, 1);
}

/* The table of an empty batch. */
static size_t put_batch(struct uva__flatbuffer *flat)
{
    uva__flatbuffer_begin_table(flat, 5);
    uva__flatbuffer_set(flat, 0, 8, 0);
    return uva__flatbuffer_end_table(flat);
}

static struct uva_pair found; /* the value of the metadata */
static char found_text[16];

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    ck_assert_int_eq(uva_metadata_get(batch->metadata, "key", &found), 0);
    memcpy(found_text, found.value, found.value_size);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    ck_assert_int_eq(outcome->end, UVA_END_COMPLETE);
    ck_assert_int_eq(outcome->batches, 1);
    f.got.done++;
}

START_TEST(the_metadata_of_a_message_is_passed_on)
{
    const struct uva_consumer consumer = {.on_batch = on_batch,
                                          .on_done = on_done};
    struct uva__flatbuffer flat = {0};
    struct uva_stream *stream;
    size_t pair, batch;

    put_schema(&flat);
    pair = put_pair(&flat);
    batch = put_batch(&flat);
    put_message(&flat, 4, 3, batch, pair);
    put_end(&flat);
    recording_init(&f.got);
    stream = _i == 0 ? from_socket() : from_file();
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    uva_stream_release(stream);
    loop_until(&f.loop, is_done, NULL);
    ck_assert_str_eq(found_text, "value");
}
END_TEST

/* ---- back-pressure ------------------------------------------------------ */

static bool all_sent(void *ctx)
{
    (void)ctx;
    send_some();
    loop_nudge(&f.loop);
    return sent == size;
}

/* The sender waits while the consumer does. */
START_TEST(a_full_window_stops_the_sender)
{
    struct uva_stream *stream;
    size_t before;

    written = 0;
    f.fake.batches = 100;
    f.fake.rows = 1000;
    ck_assert(encode(UVA_FORMAT_ARROW, 0));
    options.window.batches = 1 + _i;
    stream = from_socket();
    recording_init(&f.got);
    f.got.appetite = 0;
    recording_consume(&f.got, stream);
    turn();
    before = sent;
    turn();
    ck_assert_uint_eq(sent, before);
    ck_assert_uint_lt(sent, size);
    ck_assert_int_eq(f.got.taken, 0);
    recording_feed(&f.got, 1000);
    loop_until(&f.loop, all_sent, NULL);
    loop_until(&f.loop, is_done, NULL);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(f.got.taken, 100);
    ck_assert_int_eq(f.got.wrong, 0);
}
END_TEST

/* Messages count with their bytes, although 64 of them were allowed. */
START_TEST(a_window_of_bytes_stops_the_writer_of_a_pipe)
{
    struct uva_stream *stream;

    written = 0;
    f.fake.batches = 100;
    f.fake.rows = 1000;
    ck_assert(encode(UVA_FORMAT_ARROW, 0));
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    close_peer();
    peer = ends[1];
    ends[1] = -1;
    options.window.bytes = 1;
    options.fd = ends[0];
    stream = uva_stream_from_file(f.loop.runtime, NULL, &options);
    ck_assert_int_eq(
        uva_stream_parallel(
            stream, &(struct uva_parallel){.workers = 1, .window.batches = 1}),
        0);
    recording_init(&f.got);
    f.got.appetite = 1;
    recording_consume(&f.got, stream);
    turn();
    ck_assert_uint_lt(sent, size / 2); /* the capacity of the pipe, and a few */
    recording_feed(&f.got, 1000);
    loop_until(&f.loop, is_done, NULL);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(f.got.taken, 100);
}
END_TEST

/* ---- ends --------------------------------------------------------------- */

/* The connection or the file is cut after so many bytes. */
START_TEST(a_cut_is_reported)
{
    const size_t whole = size;

    options.need_end_mark = true;
    size = whole * (size_t)_i / 20;
    if (_i == 20)
        size = whole - 8; /* all but the marker of the end */
    if (_i > 20)
        size = (size_t)(_i - 21) * 6; /* in the schema */
    run(from_file());
    recording_ended(&f.got, UVA_END_FAILED, EPROTO, "the input ends at byte");
    recording_init(&f.got);
    recording_consume(&f.got, from_socket());
    while (sent < size)
        turn();
    close_peer();
    loop_until(&f.loop, is_done, NULL);
    recording_ended(&f.got, UVA_END_FAILED, EPROTO, "the input ends at byte");
    loop_until(&f.loop, is_released, NULL);
}
END_TEST

static int warnings; /* about a missing mark */

static void on_log(void *ctx, const struct uva_log_record *record)
{
    (void)ctx;
    ck_assert_int_eq(record->level, UVA_LOG_WARN);
    ck_assert_msg(strstr(record->message, "without the marker of the end: rows "
                                          "may be missing") != NULL,
                  "%s", record->message);
    warnings++;
}

START_TEST(an_end_without_a_marker_is_logged)
{
    tear_down();
    set_up_with(&(struct uva_runtime_options){.log.write = on_log});
    warnings = 0;
    size -= 8;
    run(from_file());
    check_complete();
    ck_assert_int_eq(warnings, 1);
    recording_init(&f.got);
    recording_consume(&f.got, from_socket());
    while (sent < size)
        turn();
    close_peer();
    loop_until(&f.loop, is_done, NULL);
    check_complete();
    ck_assert_int_eq(warnings, 2);
    size -= 4;
    check_fails(EPROTO, "inside of message");
    ck_assert_int_eq(warnings, 2);
}
END_TEST

/* Through a pipe, only the missing mark shows that it is cut off. */
START_TEST(a_file_is_marked_at_its_end)
{
    int pair[2];
    uint8_t *mark;

    written = 0;
    ck_assert(encode(UVA_FORMAT_ARROW_FILE, 0));
    mark = memmem(bytes, size, "\xff\xff\xff\xff\0\0\0\0", 8);
    ck_assert_ptr_nonnull(mark);
    ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
    ck_assert_int_eq(write(pair[1], bytes, (size_t)((char *)mark - bytes)),
                     (char *)mark - bytes);
    (void)close(pair[1]);
    run(from_fd(pair[0]));
    recording_ended(&f.got, UVA_END_FAILED, EPROTO, "the marker of the end");
    (void)close(pair[0]);
}
END_TEST

/* Ends a stream in the middle of a message: by a cancel, by a drop, or by a
 * release without a start; with a full window, too. */
START_TEST(a_stream_that_ends_early_releases_the_socket)
{
    const int way = _i % 3;
    struct uva_stream *stream;

    if (_i < 3)
        size = size / 2; /* it waits for the rest */
    else
        options.window.batches = 1;
    stream = from_socket();
    recording_init(&f.got);
    if (way < 2) {
        struct uva_consumer consumer = recording_table(&f.got);

        f.got.appetite = 0;
        ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    }
    turn();
    if (way == 0)
        uva_stream_cancel(stream, EIO, "enough");
    if (way == 1)
        uva_stream_drop(stream);
    else
        uva_stream_release(stream);
    loop_until(&f.loop, is_released, NULL);
    if (way == 0) {
        loop_until(&f.loop, is_done, NULL);
        recording_ended(&f.got, UVA_END_CANCELLED, EIO, "enough");
    }
    turn();
    ck_assert_int_eq(released, 1);
}
END_TEST

/* Whether the pipe was read to its end. */
static bool is_drained(void *ctx)
{
    int left = 0;

    (void)ctx;
    loop_nudge(&f.loop);
    return ioctl(ends[0], FIONREAD, &left) == 0 && left == 0;
}

/* A worker that waits for a pipe is woken: the fixture waits for its return,
 * and the other end stays open until then. */
START_TEST(a_cancel_ends_the_wait_for_a_descriptor)
{
    struct uva_stream *stream;

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    if (_i == 1) /* in the middle of a message */
        ck_assert_int_eq(write(ends[1], bytes, 500), 500);
    stream = from_fd(ends[0]);
    recording_init(&f.got);
    recording_start(&f.got, stream);
    loop_until(&f.loop, is_drained, NULL);
    uva_stream_cancel(stream, 0, "enough");
    uva_stream_release(stream);
    close_peer();
    loop_until(&f.loop, is_done, NULL);
    recording_ended(&f.got, UVA_END_CANCELLED, ECANCELED, "enough");
}
END_TEST

/* The consumer has enough: the source ends. */
START_TEST(a_limit_releases_the_socket)
{
    struct uva_stream *stream;

    size = size - 8; /* without the mark of the end */
    stream = from_socket();
    ck_assert_int_eq(uva_stream_limit_rows(stream, ROWS + 1), 0);
    run(stream);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, NULL);
    loop_until(&f.loop, is_released, NULL);
}
END_TEST

/* Closing the socket too early is a mistake that can be seen only if reading
 * was stopped. */
START_TEST(a_closed_socket_fails_the_stream)
{
    written = 0;
    f.fake.batches = 100;
    f.fake.rows = 1000;
    ck_assert(encode(UVA_FORMAT_ARROW, 0));
    options.window.batches = 1;
    recording_init(&f.got);
    f.got.appetite = 0;
    recording_consume(&f.got, from_socket());
    turn();
    close_ours();
    recording_feed(&f.got, 1000);
    close_peer();
    loop_until(&f.loop, is_done, NULL);
    recording_ended(&f.got, UVA_END_FAILED, EINVAL, "cannot read");
    ck_assert_int_eq(released, 1);
}
END_TEST

START_TEST(a_broken_connection_fails_the_stream)
{
    char some[64];

    recording_init(&f.got);
    recording_consume(&f.got, from_socket());
    ck_assert_int_eq(uv_try_write((uv_stream_t *)&ours,
                                  &(uv_buf_t){.base = some, .len = 8}, 1),
                     8);
    close_peer(); /* with bytes that were not read */
    loop_until(&f.loop, is_done, NULL);
    recording_ended(&f.got, UVA_END_FAILED, ECONNRESET,
                    "cannot read at byte 0");
}
END_TEST

/* ---- faulty input ------------------------------------------------------- */

START_TEST(something_else_is_refused)
{
    size = (size_t)(stpcpy(bytes, "GET / HTTP/1.1\r\n\r\n") - bytes);
    check_fails(EPROTO, "message 0 at byte 0: it begins with 47 45 54 20");
    run(from_socket());
    recording_ended(&f.got, UVA_END_FAILED, EPROTO, "it begins with");
}
END_TEST

START_TEST(a_stream_has_a_schema)
{
    memcpy(bytes, "\xff\xff\xff\xff\0\0\0\0", size = 8);
    check_fails(EPROTO, "there is no schema");
    run(from_socket());
    recording_ended(&f.got, UVA_END_FAILED, EPROTO, "there is no schema");
}
END_TEST

/* As Polars writes files: the first header has no size in front, whatever else
 * its first bytes could be. Only the footer shows where messages are. */
START_TEST(a_file_without_its_first_size_is_read_by_its_footer)
{
    written = 0;
    ck_assert(encode(UVA_FORMAT_ARROW_FILE, 0));
    memset(bytes + 8, 0, 8);
    bytes[8] = _i == 0 ? 4 : 16;
    run(from_file());
    check_complete();
    run(from_socket());
    recording_ended(&f.got, UVA_END_FAILED, EPROTO,
                    "message 0 at byte 8: its size is missing");
}
END_TEST

/* As before Arrow 0.15, without messages: 8 bytes are wanted in front. */
START_TEST(an_end_without_a_schema_is_refused)
{
    memset(bytes, 0, size = 4);
    check_fails(EPROTO, "the input ends at byte 4, inside of message 0");
    recording_init(&f.got);
    recording_consume(&f.got, from_socket());
    while (sent < size)
        send_some();
    close_peer();
    loop_until(&f.loop, is_done, NULL);
    recording_ended(&f.got, UVA_END_FAILED, EPROTO,
                    "the input ends at byte 4, inside of message 0");
}
END_TEST

/* Messages that are well formed and impossible. */
START_TEST(an_impossible_message_is_refused)
{
    static const struct {
        int version, what, code;
        const char *text;
    } cases[] = {
        {4, 1, EPROTO, "message 1 at byte"},
        {4, 5, EPROTO, "neither a batch nor a dictionary"},
        {2, 3, ENOTSUP, "version 3"},
        {4, 2, EPROTO, "table of a dictionary"},
    };
    struct uva__flatbuffer flat = {0};

    put_schema(&flat);
    put_message(&flat, cases[_i].version, cases[_i].what, put_batch(&flat), 0);
    put_end(&flat);
    check_fails(cases[_i].code, cases[_i].text);
}
END_TEST

START_TEST(an_unknown_byte_order_is_refused)
{
    struct uva__flatbuffer flat = {0};
    size_t schema;

    size = 0;
    uva__flatbuffer_begin_table(&flat, 1);
    uva__flatbuffer_set(&flat, 0, 2, 2);
    schema = uva__flatbuffer_end_table(&flat);
    put_message(&flat, 4, 1, schema, 0);
    put_end(&flat);
    check_fails(EPROTO, "a malformed schema");
}
END_TEST

/* Ends of files that are no footers. */
START_TEST(a_file_without_a_footer_is_refused)
{
    static const struct {
        int64_t at, value;
        int code;
        const char *text;
    } cases[] = {
        {-1, 'X', EPROTO, "does not end with ARROW1"},
        {-7, 0x7f, EPROTO, "a footer of"},
        {-7, -1, EPROTO, "a footer of"},
        {-10, 8, EPROTO, "footer"},
        {8, 'X', EPROTO, "it begins with"},
    };

    written = 0;
    ck_assert(encode(UVA_FORMAT_ARROW_FILE, 0));
    bytes[cases[_i].at < 0 ? (int64_t)size + cases[_i].at : cases[_i].at] =
        (char)cases[_i].value;
    if (_i == 3)
        bytes[size - 9] = bytes[size - 8] = 0;
    if (_i < 4)
        check_fails(cases[_i].code, cases[_i].text);
    size = 12;
    check_fails(EPROTO, "without a footer");
}
END_TEST

/* Every byte of the footer is changed: it fails, or the batches are read. */
START_TEST(a_changed_footer_is_harmless)
{
    size_t footer;

    written = 0;
    f.fake.batches = 2;
    f.fake.rows = 3;
    ck_assert(encode(UVA_FORMAT_ARROW_FILE, 0));
    footer = (size_t)(uint8_t)bytes[size - 10] |
             (size_t)(uint8_t)bytes[size - 9] << 8;
    for (size_t i = size - 10 - footer; i < size - 10; i++) {
        const char before = bytes[i];

        bytes[i] = (char)(before ^ (1 << (i + (size_t)_i) % 8));
        run(from_file());
        ck_assert(f.got.outcome.end == UVA_END_COMPLETE ||
                  f.got.outcome.end == UVA_END_FAILED);
        bytes[i] = before;
    }
}
END_TEST

/* The footer takes batches for dictionaries. */
START_TEST(a_footer_may_not_swap_its_lists)
{
    struct uva__table footer;
    uint8_t *slots, before[2];
    size_t footer_size;

    written = 0;
    ck_assert(encode(UVA_FORMAT_ARROW_FILE, 0));
    footer_size = (size_t)uva__table_load((uint8_t *)bytes + size - 10, 4);
    ck_assert(uva__table_root((uint8_t *)bytes + size - 10 - footer_size,
                              footer_size, &footer));
    slots = (uint8_t *)(uintptr_t)footer.bytes + footer.slots_at;
    memcpy(before, slots + 4, 2);
    memcpy(slots + 4, slots + 6, 2);
    memcpy(slots + 6, before, 2);
    check_fails(EPROTO, "entry 0 of the footer is no dictionary");
}
END_TEST

/* ---- limits and options ------------------------------------------------- */

START_TEST(a_limit_is_kept)
{
    const char *const text = "max_bytes";

    if (_i > 0) {
        written = 0;
        if (!encode(_i == 1 ? UVA_FORMAT_ARROW_FILE : UVA_FORMAT_ARROW,
                    _i > 1 ? _i - 1 : 0))
            return; /* built without the codec */
    }
    options.max_bytes = 50; /* a header */
    check_fails(EMSGSIZE, text);
    options.max_bytes = 700; /* a body, or the schema */
    check_fails(EMSGSIZE, text);
    options.max_bytes = 1500; /* a body, when decompressed */
    check_fails(EMSGSIZE, text);
    options.max_bytes = 1 << 20;
    run(from_file());
    check_complete();
}
END_TEST

/* A stream that cannot be started: its status and the start report why. */
static void check_refused(struct uva_stream *stream, int code, const char *text)
{
    fixture_refused(&f, stream, code, text);
}

START_TEST(options_are_checked)
{
    uv_loop_t other;
    uv_pipe_t elsewhere;

    options.max_bytes = -1;
    check_refused(from_socket(), EINVAL, "max_bytes");
    check_refused(from_file(), EINVAL, "max_bytes");
    options.max_bytes = 0;
    options.reserved[3] = &other;
    check_refused(from_socket(), EINVAL, "reserved[3]");
    check_refused(from_file(), EINVAL, "reserved[3]");
    options.reserved[3] = NULL;
    options.window.batches = -1;
    check_refused(from_socket(), EINVAL, "window");
    check_refused(from_file(), EINVAL, "window");
    options.window.batches = 0;
    check_refused(uva_stream_from_socket(f.loop.runtime, NULL, NULL), EINVAL,
                  "no socket");
    check_refused(uva_stream_from_socket(NULL, (uv_stream_t *)&ours, NULL),
                  EINVAL, "without a runtime");
    check_refused(from_fd(-1), EBADF, "fd -1");
    ck_assert_int_eq(uv_loop_init(&other), 0);
    ck_assert_int_eq(uv_pipe_init(&other, &elsewhere, 0), 0);
    check_refused(
        uva_stream_from_socket(f.loop.runtime, (uv_stream_t *)&elsewhere, NULL),
        EINVAL, "not on the runtime's loop");
    uv_close((uv_handle_t *)&elsewhere, NULL);
    (void)uv_run(&other, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&other), 0);
    ck_assert_int_eq(released, 0);
}
END_TEST

START_TEST(descriptors_that_run_out_are_reported)
{
    struct rlimit limit, small;
    const int next = dup(0);

    ck_assert_int_ge(next, 0);
    (void)close(next);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    small = limit;
    small.rlim_cur = (rlim_t)next + 1;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &small), 0);
    check_refused(from_fd(0), EMFILE, "pipe");
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}
END_TEST

enum { UV_1_38 = 1 << 16 | 38 << 8 };

/* Before 1.38 libuv itself lets a second reader replace the first. */
START_TEST(a_socket_has_one_reader)
{
    struct uva_stream *first = from_socket();
    uv_pipe_t unconnected;

    if (uv_version() >= UV_1_38)
        check_refused(from_socket(), EINVAL, "cannot read");
    ck_assert_int_eq(uv_pipe_init(&f.loop.uv, &unconnected, 0), 0);
    check_refused(uva_stream_from_socket(f.loop.runtime,
                                         (uv_stream_t *)&unconnected, NULL),
                  ENOTCONN, "cannot read");
    uv_close((uv_handle_t *)&unconnected, on_closed);
    ck_assert_int_eq(released, 0);
    run(first);
    check_complete();
    ck_assert_ptr_eq(ours.data, &size);
}
END_TEST

static void *from_another_thread(void *ctx)
{
    *(struct uva_stream **)ctx = from_socket();
    return NULL;
}

START_TEST(another_thread_is_refused)
{
    struct uva_stream *stream = NULL;
    pthread_t thread;

    ck_assert_int_eq(
        pthread_create(&thread, NULL, from_another_thread, &stream), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    check_refused(stream, EPERM, "not on the loop thread");
}
END_TEST

START_TEST(a_directory_cannot_be_read)
{
    const int fd = open("/", O_RDONLY | O_CLOEXEC);

    run(from_fd(fd));
    recording_ended(&f.got, UVA_END_FAILED, EISDIR, "cannot read at byte 0");
    (void)close(fd);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

/* Every allocation fails once, of the library or of the runtime: the stream
 * fails with ENOMEM, or was complete without that. */
START_TEST(a_stream_without_memory_fails)
{
    bool failed = true;

    for (long k = 1; failed; k++) {
        struct uva_error error = {0};
        struct uva_stream *stream;
        struct uva_consumer consumer;
        int code;

        if (k > 1) {
            tear_down();
            set_up();
        }
        written = 0;
        if (!encode(_i == 1 ? UVA_FORMAT_ARROW_FILE : UVA_FORMAT_ARROW,
                    _i == 3 || _i == 4 ? _i - 2 : 0))
            return; /* built without the codec */
        recording_init(&f.got);
        consumer = recording_table(&f.got);
        if (_i < 5)
            faulty_libc_fail(k);
        else
            loop_fail(&f.loop, k);
        stream = _i % 3 == 0 ? from_socket() : from_file();
        code = uva_stream_for_each(stream, &consumer, &error);
        uva_stream_release(stream);
        if (code == 0)
            loop_until(&f.loop, is_done, NULL);
        failed = _i < 5 ? faulty_libc_stop()
                        : faulty_allocator_has_failed(&f.loop.memory);
        loop_fail(&f.loop, 0);
        if (code != 0)
            ck_assert_int_eq(code, ENOMEM);
        else if (failed && f.got.outcome.end == UVA_END_FAILED)
            ck_assert_int_eq(f.got.outcome.error.code, ENOMEM);
        else
            check_complete();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("read");
    TCase *all = suite_case(suite, "read", set_up, tear_down);

    suite_add_loops(all, 0, 6, a_file_is_read,
                    a_stream_that_ends_early_releases_the_socket, NULL);
    suite_add_loops(all, 0, 2, a_file_inside_of_another_is_read,
                    a_socket_is_read_as_a_file, a_compressed_stream_is_read,
                    the_metadata_of_a_message_is_passed_on,
                    a_file_without_its_first_size_is_read_by_its_footer,
                    a_full_window_stops_the_sender,
                    a_cancel_ends_the_wait_for_a_descriptor, NULL);
    suite_add_loops(all, 0, 4, a_socket_is_read,
                    an_impossible_message_is_refused, a_limit_is_kept,
                    the_framing_before_0_15_is_read, NULL);
    suite_add_loops(all, 0, 5, a_size_without_a_marker_is_checked,
                    a_file_without_a_footer_is_refused, NULL);
    suite_add_loops(all, 0, 8, a_stream_without_memory_fails, NULL);
    suite_add_loops(all, 0, 8, a_changed_footer_is_harmless, NULL);
    suite_add_loops(all, 1, 25, a_cut_is_reported, NULL);
    suite_add(all, a_file_is_read_in_parallel, what_follows_stays_in_the_socket,
              an_end_without_a_marker_is_read, options_may_be_left_out,
              an_end_without_a_marker_is_logged, a_file_is_marked_at_its_end,
              a_limit_releases_the_socket, a_closed_socket_fails_the_stream,
              a_broken_connection_fails_the_stream, something_else_is_refused,
              a_stream_has_a_schema, an_end_without_a_schema_is_refused,
              an_unknown_byte_order_is_refused, options_are_checked,
              a_socket_has_one_reader, another_thread_is_refused,
              a_directory_cannot_be_read, a_footer_may_not_swap_its_lists,
              descriptors_that_run_out_are_reported,
              a_window_of_bytes_stops_the_writer_of_a_pipe, NULL);
    return suite_run(suite);
}
