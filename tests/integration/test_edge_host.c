/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that notice when the descriptor becomes readable, and not that it still
 * is: epoll with EPOLLET, kqueue with EV_CLEAR, tokio's AsyncFd. Such a host
 * has to turn again while a turn returns that more is due, and a host that does
 * not has to get on, too. test_turned_host.c has hosts that notice both. */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <uv.h>

#include "loop/runtime_impl.h"
#include "support/check_suite.h"
#include "support/hosting_fixture.h"
#include "uvarrow/arrow.h"

enum { PATIENCE_MS = 600000, MANY = 20000 };

static struct hosting_fixture h;
static int edges; /* an epoll that reports the descriptor by edges */

static void open_edged(int32_t turn_batches)
{
    struct epoll_event watched = {.events = EPOLLIN | EPOLLET};

    ck_assert_int_eq(uva_runtime_open_turned(NULL, NULL, NULL, &h.rt, NULL), 0);
    h.rt->turn_batches = turn_batches;
    ck_assert_int_eq(
        epoll_ctl(edges, EPOLL_CTL_ADD, uva_runtime_fd(h.rt), &watched), 0);
}

static void set_up(void)
{
    hosting_init(&h);
    edges = epoll_create1(EPOLL_CLOEXEC);
    ck_assert_int_ge(edges, 0);
}

static void await_edge(void)
{
    struct epoll_event event;

    ck_assert_int_eq(epoll_wait(edges, &event, 1, PATIENCE_MS), 1);
}

static bool is_readable(void)
{
    struct pollfd watched = {.fd = uva_runtime_fd(h.rt), .events = POLLIN};

    return poll(&watched, 1, 0) > 0;
}

/* Waits for an edge, and makes the turns that follow from it. */
static enum uva_turn turn_all(void)
{
    enum uva_turn left;

    await_edge();
    do
        left = uva_runtime_turn(h.rt);
    while (left == UVA_TURN_DUE);
    return left;
}

/* Ignores the result of the turn: the next edge has to come in any case. */
static enum uva_turn turn_once(void)
{
    await_edge();
    return uva_runtime_turn(h.rt);
}

static enum uva_turn (*const turns[])(void) = {turn_all, turn_once};

static void close_edged(enum uva_turn (*turn)(void))
{
    ck_assert_int_eq(uva_runtime_close(h.rt, 0, hosting_on_closed, &h), 0);
    while (turn() != UVA_TURN_CLOSED)
        ;
    ck_assert_int_eq(atomic_load(&h.closings), 1);
}

static void tear_down(void)
{
    ck_assert_int_eq(close(edges), 0);
    hosting_fini(&h);
}

/* ---- streams to their ends ---------------------------------------------- */

/* Nearly all turns end at a limit of a few batches, and some at the limit of
 * time. */
START_TEST(a_host_by_edges_gets_all_batches)
{
    static const int32_t limits[] = {1, 7, 256};
    enum uva_turn (*const turn)(void) = turns[_i % 2];
    const bool on_loop = _i / 2 % 2 == 1;

    h.fake.batches = MANY;
    open_edged(limits[_i / 4]);
    recording_consume(&h.consumer, hosting_stream(&h, on_loop));
    while (atomic_load(&h.consumer.done) == 0)
        ck_assert_int_ne(turn(), UVA_TURN_CLOSED);
    ck_assert_int_eq(h.consumer.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(atomic_load(&h.consumer.batches), MANY);
    close_edged(turn);
}
END_TEST

static void on_ready(void *ctx)
{
    (void)ctx;
}

/* Taking batches between turns has the source read on. */
START_TEST(a_host_by_edges_takes_all_batches)
{
    enum uva_turn (*const turn)(void) = turns[_i];
    const struct uva_window window = {.batches = 8};
    struct uva_batch batch;
    struct uva_stream *stream;
    int64_t taken = 0;
    int code;

    h.fake.batches = MANY;
    open_edged(7);
    stream = hosting_stream(&h, false);
    ck_assert_int_eq(
        uva_stream_start_take(stream, &window, on_ready, NULL, NULL), 0);
    while ((code = uva_stream_take(stream, &batch, NULL)) != ENOENT) {
        if (code == EAGAIN) {
            ck_assert_int_ne(turn(), UVA_TURN_CLOSED);
            continue;
        }
        ck_assert_int_eq(code, 0);
        uva_array_release(&batch.data);
        taken++;
    }
    ck_assert_int_eq(taken, MANY);
    uva_stream_release(stream);
    close_edged(turn);
}
END_TEST

/* The grace is a timer. */
START_TEST(timers_are_edges_too)
{
    enum uva_turn (*const turn)(void) = turns[_i];

    h.fake.gate_at = 0;
    open_edged(256);
    hosting_start_stream(&h);
    while (atomic_load(&h.consumer.schemas) == 0)
        ck_assert_int_ne(turn(), UVA_TURN_CLOSED);
    fake_source_await(&h.fake);
    ck_assert_int_eq(uva_runtime_close(h.rt, 50, hosting_on_closed, &h), 0);
    while (turn() != UVA_TURN_CLOSED)
        ;
    ck_assert_int_eq(h.consumer.outcome.end, UVA_END_CANCELLED);
    await_count(&h.fake.freed, 1);
}
END_TEST

/* ---- the result of a turn ----------------------------------------------- */

/* No thread works for these, so that no work becomes due after a turn. */
static void starts_in_memory(int count)
{
    struct ArrowDeviceArray arrays[100];
    struct ArrowSchema schema;

    ck_assert_int_le(count, 100);
    fake_source_schema(&h.fake, &schema);
    for (int i = 0; i < count; i++)
        fake_source_batch(&h.fake, i, &arrays[i]);
    recording_consume(&h.consumer, uva_stream_from_arrays(h.rt, &schema, arrays,
                                                          (size_t)count));
}

START_TEST(more_is_due_as_long_as_the_descriptor_stays_readable)
{
    enum uva_turn left;
    int due = 0;

    open_edged(7);
    starts_in_memory(100);
    do {
        left = uva_runtime_turn(h.rt);
        ck_assert_int_eq(left, is_readable() ? UVA_TURN_DUE : UVA_TURN_IDLE);
        due += left == UVA_TURN_DUE;
    } while (left == UVA_TURN_DUE);
    ck_assert_int_eq(atomic_load(&h.consumer.done), 1);
    ck_assert_int_ge(due, 10);
    close_edged(turn_all);
}
END_TEST

static void turn_inside(void *left)
{
    *(enum uva_turn *)left = uva_runtime_turn(h.rt);
}

START_TEST(a_call_inside_a_turn_finds_nothing_due)
{
    enum uva_turn inside = UVA_TURN_DUE;

    open_edged(0);
    ck_assert_int_eq(uva_runtime_post(h.rt, turn_inside, &inside), 0);
    ck_assert_int_eq(turn_all(), UVA_TURN_IDLE);
    ck_assert_int_eq(inside, UVA_TURN_IDLE);
    close_edged(turn_all);
}
END_TEST

/* ---- handles of the host ------------------------------------------------ */

static int ends[2]; /* of a pipe, which a handle of the host reads */
static uv_poll_t handle;

static void read_one(uv_poll_t *poll_handle, int status, int events)
{
    char byte;

    (void)poll_handle;
    (void)events;
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
}

/* The pipe stays readable, which is no edge. */
START_TEST(a_socket_of_which_not_all_was_read_is_due)
{
    open_edged(0);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(uv_poll_init(uva_runtime_loop(h.rt), &handle, ends[0]), 0);
    ck_assert_int_eq(uv_poll_start(&handle, UV_READABLE, read_one), 0);
    ck_assert_int_eq(turn_all(), UVA_TURN_IDLE);
    ck_assert_int_eq(write(ends[1], "abc", 3), 3);
    await_edge();
    ck_assert_int_eq(uva_runtime_turn(h.rt), UVA_TURN_DUE);
    ck_assert_int_eq(uva_runtime_turn(h.rt), UVA_TURN_DUE);
    ck_assert_int_eq(uva_runtime_turn(h.rt), UVA_TURN_IDLE);
    ck_assert(!is_readable());
    (void)uva_runtime_loop(h.rt);
    uv_close((uv_handle_t *)&handle, NULL);
    ck_assert_int_eq(turn_all(), UVA_TURN_IDLE);
    close_edged(turn_all);
    ck_assert_int_eq(close(ends[0]) | close(ends[1]), 0);
}
END_TEST

int main(void)
{
    TCase *streams = tcase_create("streams");

    suite_add_loops(streams, 0, 12, a_host_by_edges_gets_all_batches, NULL);
    suite_add_loops(streams, 0, 2, a_host_by_edges_takes_all_batches,
                    timers_are_edges_too, NULL);
    return suite_main(
        "edge host", set_up, tear_down, streams,
        suite_tests("turns",
                    more_is_due_as_long_as_the_descriptor_stays_readable,
                    a_call_inside_a_turn_finds_nothing_due,
                    a_socket_of_which_not_all_was_read_is_due, NULL),
        NULL);
}
