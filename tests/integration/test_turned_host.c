/* SPDX-License-Identifier: Apache-2.0 */
/* A host that turns the runtime itself: timers that it starts on the runtime's
 * loop between two turns, the thread that counts as the loop thread before the
 * first turn, and the system calls of a turn. The calls named below are wrapped
 * at link time (CMakeLists.txt) and counted. test_hosting.c tests the rest. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

#include "loop/runtime_impl.h"
#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/hosting_fixture.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"
#include "uvarrow/stages.h"

enum { PATIENCE_MS = 600000, TURNS = 50, AN_HOUR_MS = 3600000 };

/* ---- counted calls ------------------------------------------------------ */

static atomic_int times_set; /* calls of timerfd_settime() */
static atomic_int wakes;     /* calls that wake a futex */
static atomic_int written;   /* calls of write() */
static atomic_int others;    /* other calls of syscall(), and of read() */

int __real_timerfd_settime(int fd, int flags, const struct itimerspec *when,
                           struct itimerspec *before);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
                           struct itimerspec *before);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
                           struct itimerspec *before)
{
    atomic_fetch_add(&times_set, 1);
    return __real_timerfd_settime(fd, flags, when, before);
}

ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    atomic_fetch_add(&written, 1);
    return __real_write(fd, data, size);
}

ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size)
{
    atomic_fetch_add(&others, 1);
    return __real_read(fd, data, size);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE)
        atomic_fetch_add(&wakes, 1);
    else
        atomic_fetch_add(&others, 1);
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- the host ----------------------------------------------------------- */

static struct hosting_fixture h;
static uv_timer_t timer;
static int fired; /* calls of on_timer() */
static int calls; /* calls of on_post() */

static void open_turned(void)
{
    ck_assert_int_eq(uva_runtime_open_turned(NULL, NULL, NULL, &h.rt, NULL), 0);
}

static void set_up(void)
{
    hosting_init(&h);
    fired = calls = 0;
    open_turned();
}

static void tear_down(void)
{
    ck_assert_int_eq(uva_runtime_close(h.rt, 0, hosting_on_closed, &h), 0);
    while (uva_runtime_turn(h.rt))
        ;
    ck_assert_int_eq(atomic_load(&h.closings), 1);
    hosting_fini(&h);
}

static bool is_readable(int timeout_ms)
{
    struct pollfd watched = {.fd = uva_runtime_fd(h.rt), .events = POLLIN};

    return poll(&watched, 1, timeout_ms) > 0;
}

/* Makes a turn once the descriptor is readable. */
static void turn_when_readable(void)
{
    ck_assert(is_readable(PATIENCE_MS));
    ck_assert(uva_runtime_turn(h.rt));
}

static void settle(void)
{
    while (is_readable(0))
        ck_assert(uva_runtime_turn(h.rt));
}

static void on_post(void *ctx)
{
    (void)ctx;
    calls++;
}

/* ---- timers of the host ------------------------------------------------- */

static void on_timer(uv_timer_t *handle)
{
    (void)handle;
    fired++;
}

static void close_timer(void)
{
    (void)uva_runtime_loop(h.rt);
    uv_close((uv_handle_t *)&timer, NULL);
    turn_when_readable();
}

START_TEST(a_timer_started_between_turns_makes_the_descriptor_readable)
{
    ck_assert_int_eq(uv_timer_init(uva_runtime_loop(h.rt), &timer), 0);
    for (int i = 0; i < 3; i++) {
        settle();
        (void)uva_runtime_loop(h.rt);
        ck_assert_int_eq(uv_timer_start(&timer, on_timer, 20, 0), 0);
        while (fired == i)
            turn_when_readable();
    }
    ck_assert_int_eq(fired, 3);
    close_timer();
}
END_TEST

/* The loop's time is from the last turn, unless it is updated: a timer started
 * long after that would fire too soon. */
START_TEST(the_loop_between_turns_knows_the_time)
{
    uv_loop_t *loop = uva_runtime_loop(h.rt);
    const uint64_t before = uv_now(loop);

    while (uv_hrtime() / 1000000 <= before + 1)
        ;
    ck_assert_uint_eq(uv_now(loop), before);
    (void)uva_runtime_loop(h.rt);
    ck_assert_uint_gt(uv_now(loop), before);
}
END_TEST

START_TEST(the_loop_is_looked_at_once)
{
    int turns = 0;

    (void)uva_runtime_loop(h.rt);
    ck_assert(is_readable(0));
    for (; is_readable(0); turns++)
        ck_assert(uva_runtime_turn(h.rt));
    ck_assert_int_eq(turns, 1);
}
END_TEST

static void look_at_loop(void *ctx)
{
    *(struct uv_loop_s **)ctx = uva_runtime_loop(h.rt);
}

/* A turn ends by computing when the next one is due. */
START_TEST(the_loop_inside_a_turn_is_only_returned)
{
    struct uv_loop_s *loop = NULL;

    ck_assert_int_eq(uva_runtime_post(h.rt, look_at_loop, &loop), 0);
    turn_when_readable();
    ck_assert_ptr_nonnull(loop);
    ck_assert(!is_readable(0));
}
END_TEST

static void *take_loop(void *ctx)
{
    *(struct uv_loop_s **)ctx = uva_runtime_loop(h.rt);
    return NULL;
}

START_TEST(the_loop_on_another_thread_is_only_returned)
{
    struct uv_loop_s *loop = NULL;

    ck_assert_int_eq(pthread_join(hosting_thread(take_loop, &loop), NULL), 0);
    ck_assert_ptr_nonnull(loop);
    ck_assert(!is_readable(0));
}
END_TEST

/* ---- the system calls of a turn ----------------------------------------- */

/* Turns as often as work comes from a post; counts the calls meanwhile. */
static void turn_posts(int n)
{
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(uva_runtime_post(h.rt, on_post, NULL), 0);
        turn_when_readable();
    }
    ck_assert_int_eq(calls, n);
}

START_TEST(a_turn_without_timers_sets_no_time_and_wakes_no_thread)
{
    settle();
    atomic_store(&times_set, 0);
    atomic_store(&wakes, 0);
    turn_posts(TURNS);
    ck_assert_int_eq(atomic_load(&times_set), 0);
    ck_assert_int_eq(atomic_load(&wakes), 0);
}
END_TEST

START_TEST(a_timer_far_away_sets_the_time_once)
{
    ck_assert_int_eq(uv_timer_init(uva_runtime_loop(h.rt), &timer), 0);
    ck_assert_int_eq(uv_timer_start(&timer, on_timer, AN_HOUR_MS, 0), 0);
    atomic_store(&times_set, 0);
    turn_posts(TURNS);
    ck_assert_int_eq(atomic_load(&times_set), 1);
    close_timer();
    ck_assert_int_eq(fired, 0);
}
END_TEST

/* ---- the loop thread before the first turn ------------------------------ */

START_TEST(waiting_on_the_opener_before_the_first_turn_says_edeadlk)
{
    struct uva_stream *stream = hosting_stream(&h, false);
    struct ArrowArrayStream blocking;
    struct ArrowArray array = {0};
    struct ArrowSchema schema = {0};

    ck_assert(uva_runtime_on_loop(h.rt));
    ck_assert_int_eq(uva_stream_to_arrow_stream(stream, NULL, &blocking, NULL),
                     0);
    uva_stream_release(stream);
    ck_assert_int_eq(blocking.get_next(&blocking, &array), EDEADLK);
    ck_assert_int_eq(blocking.get_schema(&blocking, &schema), EDEADLK);
    blocking.release(&blocking);
    while (atomic_load(&h.fake.freed) == 0)
        ck_assert(uva_runtime_turn(h.rt));
}
END_TEST

/* ---- taking between turns ----------------------------------------------- */

static void on_ready(void *ctx)
{
    (void)ctx;
}

/* A source that never waits: its batches are in memory. */
static struct uva_stream *stream_of(int count)
{
    struct ArrowDeviceArray arrays[400];
    struct ArrowSchema schema;

    fake_source_schema(&h.fake, &schema);
    for (int i = 0; i < count; i++)
        fake_source_batch(&h.fake, i, &arrays[i]);
    return uva_stream_from_arrays(h.rt, &schema, arrays, (size_t)count);
}

/* Takes the waiting batches, and counts the calls meanwhile. */
static int take_what_waits(struct uva_stream *stream, int *taken)
{
    const int before = atomic_load(&written);
    const int calls_before = atomic_load(&others) + atomic_load(&wakes);
    struct uva_batch batch;
    int code;

    while ((code = uva_stream_take(stream, &batch, NULL)) == 0) {
        uva_array_release(&batch.data);
        ++*taken;
    }
    ck_assert_int_le(atomic_load(&written) - before, 1);
    ck_assert_int_eq(atomic_load(&others) + atomic_load(&wakes), calls_before);
    return code;
}

/* The first wake-up of a window has more requested; the descriptor is readable
 * from then on. */
START_TEST(a_window_of_batches_is_taken_with_one_system_call)
{
    const struct uva_window window = {.batches = 64};
    struct uva_stream *stream = stream_of(400);
    int taken = 0, rounds = 0;

    ck_assert_int_eq(
        uva_stream_start_take(stream, &window, on_ready, NULL, NULL), 0);
    while (take_what_waits(stream, &taken) == EAGAIN) {
        turn_when_readable();
        rounds++;
    }
    ck_assert_int_eq(taken, 400);
    ck_assert_int_le(rounds, 400 / 64 + 3);
    uva_stream_release(stream);
}
END_TEST

START_TEST(nothing_is_written_while_more_than_half_a_window_waits)
{
    const struct uva_window window = {.batches = 64};
    struct uva_stream *stream = stream_of(400);
    struct uva_batch batch;
    int before;

    ck_assert_int_eq(
        uva_stream_start_take(stream, &window, on_ready, NULL, NULL), 0);
    settle();
    before = atomic_load(&written);
    for (int i = 0; i < 33; i++) {
        ck_assert_int_eq(atomic_load(&written), before + (i == 32));
        ck_assert_int_eq(uva_stream_take(stream, &batch, NULL), 0);
        uva_array_release(&batch.data);
    }
    uva_stream_release(stream);
    settle();
}
END_TEST

/* ---- batches that come between turns ------------------------------------ */

enum { FEW = 4, MANY = 3000 };

/* A stream of a source that a worker reads, `ahead` batches ahead. Not started.
 */
static struct uva_stream *read_stream(int64_t batches, int32_t ahead)
{
    struct uva_arrow_source options = fake_source_options(&h.fake);
    struct ArrowArrayStream source;

    h.fake.batches = batches;
    options.window.batches = ahead;
    fake_source_plain(&h.fake, &source);
    return uva_stream_from_arrow_stream(h.rt, &source, &options);
}

static void start_few(struct uva_stream *stream)
{
    const struct uva_window window = {.batches = FEW};

    ck_assert_int_eq(
        uva_stream_start_take(stream, &window, on_ready, NULL, NULL), 0);
}

/* Turns until the worker has read and closed the source, and a window waits. */
static void await_all_read(void)
{
    while (atomic_load(&h.fake.released) == 0)
        if (is_readable(1))
            ck_assert(uva_runtime_turn(h.rt));
    settle();
}

/* Takes up to `most` batches, which must be the next ones. */
static int take_in_order(struct uva_stream *stream, int64_t most,
                         int64_t *taken)
{
    struct uva_batch batch;
    int code = 0;

    while (most-- > 0) {
        code = uva_stream_take(stream, &batch, NULL);
        if (code != 0)
            break;
        ck_assert_int_eq(batch.ordinal, *taken);
        uva_array_release(&batch.data);
        ++*taken;
    }
    return code;
}

static void end_with(struct uva_stream *stream, enum uva_end end)
{
    struct uva_outcome outcome;
    struct uva_batch batch;
    int code;

    while ((code = uva_stream_take(stream, &batch, &outcome)) == EAGAIN)
        turn_when_readable();
    ck_assert_int_eq(code, ENOENT);
    ck_assert_int_eq(outcome.end, end);
    uva_stream_release(stream);
}

START_TEST(what_was_read_ahead_is_taken_without_a_turn)
{
    struct uva_stream *stream = read_stream(3 * FEW, 64);
    int64_t taken = 0;

    start_few(stream);
    await_all_read();
    ck_assert_int_eq(take_in_order(stream, 100, &taken), EAGAIN);
    ck_assert_int_eq(taken, 3 * FEW);
    end_with(stream, UVA_END_COMPLETE);
}
END_TEST

static void reopen(const struct uva_runtime_options *options)
{
    tear_down();
    hosting_init(&h);
    ck_assert_int_eq(uva_runtime_open_turned(NULL, NULL, options, &h.rt, NULL),
                     0);
}

/* Other streams must have their turn, too. */
START_TEST(no_more_come_without_a_turn_than_in_a_turn)
{
    struct uva_stream *stream;
    int64_t taken = 0;

    h.rt->turn_batches = FEW + 1;
    stream = read_stream(10 * FEW, 64);
    start_few(stream);
    await_all_read();
    ck_assert_int_eq(take_in_order(stream, 100, &taken), EAGAIN);
    ck_assert_int_ge(taken, FEW);
    ck_assert_int_le(taken, 2 * FEW + 1);
    while (take_in_order(stream, 100, &taken) == EAGAIN)
        turn_when_readable();
    ck_assert_int_eq(taken, 10 * FEW);
    end_with(stream, UVA_END_COMPLETE);
}
END_TEST

START_TEST(a_limit_holds_without_a_turn)
{
    struct uva_stream *stream = read_stream(3 * FEW, 64);
    int64_t taken = 0;

    ck_assert_int_eq(uva__stream_limit(stream, 2 * FEW + 1), 0);
    start_few(stream);
    await_all_read();
    ck_assert_int_eq(take_in_order(stream, 100, &taken), EAGAIN);
    ck_assert_int_eq(taken, 2 * FEW + 1);
    end_with(stream, UVA_END_COMPLETE);
}
END_TEST

START_TEST(after_a_cancel_nothing_comes_without_a_turn)
{
    struct uva_stream *stream = read_stream(3 * FEW, 64);
    int64_t taken = 0;

    start_few(stream);
    await_all_read();
    ck_assert_int_eq(take_in_order(stream, 1, &taken), 0);
    uva_stream_cancel(stream, 0, NULL);
    ck_assert_int_eq(take_in_order(stream, 100, &taken), EAGAIN);
    ck_assert_int_eq(taken, FEW);
    end_with(stream, UVA_END_CANCELLED);
}
END_TEST

/* Sometimes the worker is ahead, and sometimes the host: no wake-up may get
 * lost. With a window of one batch there is no read-ahead, and with a limit of
 * three batches a source may be refused one. */
START_TEST(a_host_that_only_waits_for_the_descriptor_takes_all)
{
    static const int32_t ahead[] = {1, 2, 7, 64};
    const struct uva_runtime_options options = {
        .memory_bytes = _i < 4 ? 0 : 3 * h.fake.rows * (int64_t)sizeof(int64_t),
    };
    struct uva_stream *stream;
    int64_t taken = 0;

    reopen(&options);
    stream = read_stream(MANY, ahead[_i % 4]);
    start_few(stream);
    while (take_in_order(stream, MANY, &taken) == EAGAIN)
        turn_when_readable();
    ck_assert_int_eq(taken, MANY);
    end_with(stream, UVA_END_COMPLETE);
}
END_TEST

static void *turn_once(void *ctx)
{
    (void)ctx;
    ck_assert(uva_runtime_turn(h.rt));
    ck_assert(uva_runtime_on_loop(h.rt));
    return NULL;
}

START_TEST(the_first_turn_makes_another_thread_the_loop_thread)
{
    ck_assert_int_eq(pthread_join(hosting_thread(turn_once, NULL), NULL), 0);
    ck_assert(!uva_runtime_on_loop(h.rt));
}
END_TEST

int main(void)
{
    TCase *timers = tcase_create("timers"), *cost = tcase_create("cost");
    TCase *thread = tcase_create("thread"), *direct = tcase_create("direct");

    suite_add(timers,
              a_timer_started_between_turns_makes_the_descriptor_readable,
              the_loop_between_turns_knows_the_time, the_loop_is_looked_at_once,
              the_loop_inside_a_turn_is_only_returned,
              the_loop_on_another_thread_is_only_returned, NULL);
    suite_add(cost, a_turn_without_timers_sets_no_time_and_wakes_no_thread,
              a_timer_far_away_sets_the_time_once,
              a_window_of_batches_is_taken_with_one_system_call,
              nothing_is_written_while_more_than_half_a_window_waits, NULL);
    suite_add(thread, waiting_on_the_opener_before_the_first_turn_says_edeadlk,
              the_first_turn_makes_another_thread_the_loop_thread, NULL);
    suite_add(direct, what_was_read_ahead_is_taken_without_a_turn,
              no_more_come_without_a_turn_than_in_a_turn,
              a_limit_holds_without_a_turn,
              after_a_cancel_nothing_comes_without_a_turn, NULL);
    tcase_add_loop_test(
        direct, a_host_that_only_waits_for_the_descriptor_takes_all, 0, 8);
    return suite_main("turned host", set_up, tear_down, timers, cost, thread,
                      direct, NULL);
}
