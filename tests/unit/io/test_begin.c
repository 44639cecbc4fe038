/* SPDX-License-Identifier: Apache-2.0 */
/* on_begin of a writer: the moment for the head of an answer. It comes once,
 * before the first byte, and not for a stream that fails before it has any. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/io.h"

enum { ROOM = 4096 };

/* What on_begin does. */
enum deed { GO_ON, ANSWER, CANCEL, DROP };

static struct fixture f;
static struct uva_stream *stream;
static int fd; /* the output */
static struct {
    enum deed deed;
    int answer;   /* of on_begin */
    int begins;   /* calls of it */
    int64_t seen; /* bytes in the output at that time */
    int64_t columns;
    bool is_done;
    struct uva_outcome outcome;
    int64_t bytes; /* that the library has written */
} run;

static void set_up(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    memset(&run, 0, sizeof(run));
    fixture_open(&f, 2);
    f.fake.rows = 1;
    stream = fixture_blocking(&f);
    fd = memfd_create("test", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
}

static void tear_down(void)
{
    loop_settle(&f.loop);
    uva_stream_release(stream);
    stream = NULL;
    fixture_close(&f);
    (void)close(fd);
}

/* ---- the callbacks ------------------------------------------------------- */

static int on_begin(void *ctx, const struct uva_stream_info *info)
{
    ck_assert_ptr_eq(ctx, &run);
    ck_assert_ptr_eq(info->stream, stream);
    run.begins++;
    run.seen = lseek(fd, 0, SEEK_END);
    run.columns = info->schema->n_children;
    switch (run.deed) {
    case GO_ON:
        ck_assert_int_eq(write(fd, "head\n", 5), 5);
        break;
    case ANSWER:
        break;
    case CANCEL:
        uva_stream_cancel(stream, ETIMEDOUT, "too late");
        break;
    case DROP:
        uva_stream_drop(stream);
        stream = NULL;
        break;
    }
    return run.answer;
}

static void on_done(void *ctx, const struct uva_outcome *outcome, int64_t bytes)
{
    ck_assert_ptr_eq(ctx, &run);
    ck_assert(!run.is_done);
    run.is_done = true;
    run.outcome = *outcome;
    run.bytes = bytes;
}

static bool is_done(void *ctx)
{
    (void)ctx;
    return run.is_done;
}

static void start(enum uva_format format)
{
    const struct uva_write options = {.encode.format = format,
                                      .on_begin = on_begin,
                                      .on_done = on_done,
                                      .ctx = &run};

    ck_assert_int_eq(uva_stream_write_file(stream, fd, &options, NULL), 0);
}

static void write_all(enum uva_format format)
{
    start(format);
    loop_until(&f.loop, is_done, NULL);
}

static void check_output(const char *text)
{
    char bytes[ROOM];
    const ssize_t size = pread(fd, bytes, ROOM - 1, 0);

    ck_assert_int_ge(size, 0);
    bytes[size] = '\0';
    ck_assert_str_eq(bytes, text);
}

/* ---- the moment ---------------------------------------------------------- */

START_TEST(the_head_is_in_front)
{
    write_all(UVA_FORMAT_CSV);
    ck_assert_int_eq(run.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(run.outcome.batches, 2);
    ck_assert_int_eq(run.begins, 1);
    ck_assert_int_eq(run.seen, 0);
    ck_assert_int_eq(run.columns, 0);
    ck_assert_int_eq(run.bytes, 7);
    check_output("head\nn\n0\n10\n");
}
END_TEST

/* JSON lines of no rows have no bytes. */
START_TEST(a_stream_without_batches_begins)
{
    f.fake.batches = 0;
    write_all(_i == 0 ? UVA_FORMAT_CSV : UVA_FORMAT_JSON);
    ck_assert_int_eq(run.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(run.begins, 1);
    check_output(_i == 0 ? "head\nn\n" : "head\n");
}
END_TEST

START_TEST(a_stream_that_fails_at_once_does_not_begin)
{
    f.fake.fail_at = 0;
    f.fake.fail_code = EIO;
    f.fake.fail_text = "the disk is gone";
    write_all(UVA_FORMAT_CSV);
    ck_assert_int_eq(run.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(run.outcome.error.code, EIO);
    ck_assert_int_eq(run.begins, 0);
    check_output("");
}
END_TEST

START_TEST(a_stream_that_fails_later_has_begun)
{
    f.fake.fail_at = 1;
    f.fake.fail_code = EIO;
    f.fake.fail_text = "the disk is gone";
    write_all(UVA_FORMAT_CSV);
    ck_assert_int_eq(run.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(run.begins, 1);
}
END_TEST

/* A head that the socket takes at once comes before the chunks. */
START_TEST(the_head_of_a_socket_is_in_front)
{
    struct uva_write options = {.encode.format = UVA_FORMAT_CSV,
                                .http_chunked = true,
                                .on_begin = on_begin,
                                .on_done = on_done,
                                .ctx = &run};
    char bytes[ROOM] = {0};
    uv_pipe_t ours;
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                     0);
    (void)close(fd);
    fd = dup(pair[0]);
    ck_assert_int_eq(uv_pipe_init(&f.loop.uv, &ours, 0), 0);
    ck_assert_int_eq(uv_pipe_open(&ours, pair[0]), 0);
    ck_assert_int_eq(
        uva_stream_write(stream, (uv_stream_t *)&ours, &options, NULL), 0);
    loop_until(&f.loop, is_done, NULL);
    uv_close((uv_handle_t *)&ours, NULL);
    loop_settle(&f.loop);
    (void)shutdown(fd, SHUT_WR);
    ck_assert_int_eq(recv(pair[1], bytes, ROOM - 1, MSG_WAITALL), 27);
    ck_assert_str_eq(bytes, "head\n4\r\nn\n0\n\r\n3\r\n10\n\r\n0\r\n\r\n");
    (void)close(pair[1]);
}
END_TEST

/* ---- answers ------------------------------------------------------------- */

static const struct {
    int answer, code;
    enum uva_end end;
} answers[] = {
    {EPERM, EPERM, UVA_END_REJECTED},
    {UV_EPIPE, EPIPE, UVA_END_REJECTED},
    {EAGAIN, EPROTO, UVA_END_REJECTED},
    {ECANCELED, ECANCELED, UVA_END_CANCELLED},
};

/* Odd ones: of a stream that has no bytes. */
START_TEST(an_answer_ends_the_stream)
{
    run.deed = ANSWER;
    run.answer = answers[_i / 2].answer;
    if (_i & 1)
        f.fake.batches = 0;
    write_all(_i & 1 ? UVA_FORMAT_JSON : UVA_FORMAT_CSV);
    ck_assert_int_eq(run.begins, 1);
    ck_assert_int_eq(run.outcome.end, answers[_i / 2].end);
    ck_assert_int_eq(run.outcome.error.code, answers[_i / 2].code);
    ck_assert_int_ne(run.outcome.error.message[0], 0);
    ck_assert_int_eq(run.outcome.batches, 0);
    ck_assert_int_eq(run.bytes, 0);
    check_output("");
}
END_TEST

START_TEST(a_cancel_ends_the_stream)
{
    run.deed = CANCEL;
    write_all(_i == 0 ? UVA_FORMAT_CSV : UVA_FORMAT_ARROW);
    ck_assert_int_eq(run.begins, 1);
    ck_assert_int_eq(run.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(run.outcome.error.code, ETIMEDOUT);
}
END_TEST

static bool has_begun(void *ctx)
{
    (void)ctx;
    return run.begins > 0;
}

/* Odd ones: of a stream that has no bytes. */
START_TEST(a_drop_writes_nothing)
{
    run.deed = DROP;
    if (_i & 1)
        f.fake.batches = 0;
    start(_i & 1 ? UVA_FORMAT_JSON : UVA_FORMAT_CSV);
    loop_until(&f.loop, has_begun, NULL);
    loop_settle(&f.loop);
    ck_assert(!run.is_done);
    ck_assert_int_eq(run.begins, 1);
    check_output("");
}
END_TEST

/* ---- bad calls ----------------------------------------------------------- */

START_TEST(reserved_members_are_null)
{
    struct uva_write options = {.on_done = on_done};
    struct uva_error error = {0};

    options.reserved[_i] = &run;
    ck_assert_int_eq(uva_stream_write_file(stream, fd, &options, &error),
                     EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "uva_write: reserved["));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("begin");
    TCase *all = suite_case(suite, "begin", set_up, tear_down);

    suite_add_loops(all, 0, 2, a_stream_without_batches_begins, NULL);
    suite_add_loops(all, 0, 8, an_answer_ends_the_stream, NULL);
    suite_add_loops(all, 0, 2, a_cancel_ends_the_stream, NULL);
    suite_add_loops(all, 0, 2, a_drop_writes_nothing, NULL);
    suite_add_loops(all, 0, 4, reserved_members_are_null, NULL);
    suite_add(all, the_head_is_in_front, the_head_of_a_socket_is_in_front,
              a_stream_that_fails_at_once_does_not_begin,
              a_stream_that_fails_later_has_begun, NULL);
    return suite_run(suite);
}
