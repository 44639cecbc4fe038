/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to host a runtime: embedded on a libuv loop, on its own thread, or
 * turned by the program when its descriptor is readable. test_posted_host.c
 * tests a runtime that is turned after a post, test_runtime.c the part common
 * to all ways, test_closing.c how a runtime closes. */
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/hosting_fixture.h"

enum { TURNS_MAX = 1000, DESCRIPTORS_MAX = 1024 };

static struct hosting_fixture h;

static void set_up(void)
{
    hosting_init(&h);
}

static void tear_down(void)
{
    hosting_fini(&h);
}

/* ---- embedded ----------------------------------------------------------- */

struct census {
    int handles;
    int with_data;
    int of[UV_HANDLE_TYPE_MAX];
};

static void count_handle(uv_handle_t *handle, void *arg)
{
    struct census *census = arg;

    census->handles++;
    census->with_data += handle->data != NULL;
    census->of[handle->type]++;
}

static struct census take_census(void)
{
    struct census census = {0};

    uv_walk(&h.loop, count_handle, &census);
    return census;
}

static void ck_is_ours(const struct census *census)
{
    ck_assert_int_eq(census->handles, 4);
    ck_assert_int_eq(census->with_data, 0);
    ck_assert_int_eq(census->of[UV_POLL] + census->of[UV_ASYNC], 1);
    ck_assert_int_eq(census->of[UV_TIMER], 1);
    ck_assert_int_eq(census->of[UV_IDLE], 1);
    ck_assert_int_eq(census->of[UV_CHECK], 1);
}

static void look_around(struct recording_consumer *o, struct uva_batch *batch)
{
    struct census census = take_census();

    (void)o;
    (void)batch;
    ck_is_ours(&census);
}

START_TEST(a_guest_adds_four_handles_and_leaves_their_data_alone)
{
    struct census before = take_census(), census;

    hosting_open_embedded(&h);
    census = take_census();
    ck_is_ours(&census);
    h.consumer.on_batch = look_around;
    hosting_start_stream(&h);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    hosting_completed(&h);
    hosting_close_embedded(&h);
    ck_assert_int_eq(before.handles, 0);
    ck_assert_int_eq(take_census().handles, 0);
}
END_TEST

START_TEST(an_idle_guest_does_not_keep_the_loop_alive)
{
    hosting_open_embedded(&h);
    ck_assert_int_eq(uv_loop_alive(&h.loop), 0);
    ck_assert_int_eq(uv_run(&h.loop, UV_RUN_DEFAULT), 0);
    hosting_close_embedded(&h);
}
END_TEST

START_TEST(a_stream_keeps_the_loop_alive_until_its_end)
{
    hosting_open_embedded(&h);
    hosting_start_stream(&h);
    ck_assert_int_eq(uv_loop_alive(&h.loop), 1);
    ck_assert_int_eq(uv_run(&h.loop, UV_RUN_DEFAULT), 0);
    hosting_completed(&h);
    ck_assert_int_eq(uv_loop_alive(&h.loop), 0);
    hosting_close_embedded(&h);
}
END_TEST

START_TEST(a_stream_not_started_does_not_keep_the_loop_alive)
{
    struct uva_stream *stream;

    hosting_open_embedded(&h);
    stream = hosting_stream(&h, false);
    ck_assert_int_eq(uv_run(&h.loop, UV_RUN_DEFAULT), 0);
    uva_stream_release(stream);
    await_count(&h.fake.freed, 1);
    hosting_close_embedded(&h);
}
END_TEST

static void tick(uv_timer_t *timer)
{
    int *ticks = timer->data;

    if (++*ticks == 20)
        uv_close((uv_handle_t *)timer, NULL);
}

START_TEST(a_guest_leaves_the_other_handles_alone)
{
    uv_timer_t timer;
    int ticks = 0;

    ck_assert_int_eq(uv_timer_init(&h.loop, &timer), 0);
    timer.data = &ticks;
    ck_assert_int_eq(uv_timer_start(&timer, tick, 0, 1), 0);
    hosting_open_embedded(&h);
    ck_assert_int_eq(take_census().handles, 5);
    hosting_start_stream(&h);
    ck_assert_int_eq(
        uva_runtime_close(h.rt, UVA_FOREVER, hosting_on_closed, &h), 0);
    while (atomic_load(&h.closings) == 0)
        (void)uv_run(&h.loop, UV_RUN_ONCE);
    hosting_completed(&h);
    if (ticks < 20) {
        ck_assert_int_eq(take_census().handles, 1);
        ck_assert_ptr_eq(timer.data, &ticks);
    }
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(ticks, 20);
}
END_TEST

static int count_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void open_and_close(uv_loop_t *where, bool is_turned)
{
    atomic_store(&h.closings, 0);
    ck_assert_int_eq(
        is_turned ? uva_runtime_open_turned(NULL, NULL, NULL, &h.rt, NULL)
                  : uva_runtime_open(where, NULL, &h.rt, NULL),
        0);
    ck_assert_int_eq(uva_runtime_close(h.rt, 0, hosting_on_closed, &h), 0);
    if (where != NULL)
        (void)uv_run(where, UV_RUN_DEFAULT);
    else
        ck_assert_int_eq(uva_runtime_join(h.rt, UVA_FOREVER), 0);
    ck_assert_int_eq(atomic_load(&h.closings), 1);
}

START_TEST(hundreds_of_runtimes_leave_no_descriptor_behind)
{
    int before = count_descriptors();

    for (int i = 0; i < 200; i++) {
        open_and_close(&h.loop, false);
        open_and_close(NULL, false);
        open_and_close(NULL, true);
    }
    ck_assert_int_eq(count_descriptors(), before);
}
END_TEST

START_TEST(hundreds_of_runtimes_with_streams_leave_no_descriptor_behind)
{
    int before = count_descriptors();

    for (int i = 0; i < 100; i++) {
        atomic_store(&h.fake.given, 0);
        recording_init(&h.consumer);
        atomic_store(&h.closings, 0);
        hosting_open_embedded(&h);
        hosting_start_stream(&h);
        (void)uv_run(&h.loop, UV_RUN_DEFAULT);
        hosting_completed(&h);
        await_count(&h.fake.freed, i + 1);
        hosting_close_embedded(&h);
    }
    while (count_descriptors() > before)
        sched_yield(); /* a worker may still hold the last reference */
    ck_assert_int_eq(count_descriptors(), before);
}
END_TEST

/* ---- on its own thread -------------------------------------------------- */

static void join_in_callback(struct recording_consumer *o,
                             struct uva_batch *batch)
{
    (void)o;
    (void)batch;
    ck_assert(uva_runtime_on_loop(h.rt));
    ck_assert_int_eq(uva_runtime_join(h.rt, UVA_FOREVER), EDEADLK);
}

START_TEST(join_lets_the_streams_finish)
{
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &h.rt, NULL), 0);
    hosting_start_stream(&h);
    ck_assert_int_eq(uva_runtime_join(h.rt, UVA_FOREVER), 0);
    hosting_completed(&h);
    ck_assert(!pthread_equal(h.consumer.thread, pthread_self()));
    await_count(&h.fake.freed, 1);
}
END_TEST

/* Opens the gate once the join has begun to close the runtime. */
static void *open_late(void *ctx)
{
    int code;

    (void)ctx;
    do
        code = uva_runtime_post(h.rt, hosting_on_closed, &h);
    while (code == 0);
    ck_assert_int_eq(code, ESHUTDOWN);
    ck_assert_int_eq(atomic_load(&h.consumer.done), 0);
    fake_source_open_gate(&h.fake);
    return NULL;
}

START_TEST(join_waits_for_a_stream_that_waits)
{
    pthread_t thread;

    h.fake.gate_at = 2;
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &h.rt, NULL), 0);
    hosting_start_stream(&h);
    fake_source_await(&h.fake);
    thread = hosting_thread(open_late, NULL);
    ck_assert_int_eq(uva_runtime_join(h.rt, UVA_FOREVER), 0);
    hosting_completed(&h);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    await_count(&h.fake.freed, 1);
}
END_TEST

START_TEST(join_says_edeadlk_on_the_loop_thread)
{
    h.consumer.on_batch = join_in_callback;
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &h.rt, NULL), 0);
    hosting_start_stream(&h);
    ck_assert_int_eq(uva_runtime_join(h.rt, UVA_FOREVER), 0);
    hosting_completed(&h);
    await_count(&h.fake.freed, 1);
}
END_TEST

START_TEST(join_says_einval_for_a_runtime_on_a_loop_of_the_host)
{
    hosting_open_embedded(&h);
    ck_assert_int_eq(uva_runtime_join(h.rt, UVA_FOREVER), EINVAL);
    hosting_close_embedded(&h);
    ck_assert_int_eq(uva_runtime_join(NULL, UVA_FOREVER), EINVAL);
}
END_TEST

START_TEST(join_after_close_ends_what_would_never_end)
{
    h.fake.gate_at = 0;
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &h.rt, NULL), 0);
    hosting_start_stream(&h);
    fake_source_await(&h.fake);
    ck_assert_int_eq(uva_runtime_close(h.rt, 0, hosting_on_closed, &h), 0);
    ck_assert_int_eq(uva_runtime_join(h.rt, UVA_FOREVER), 0);
    ck_assert_int_eq(atomic_load(&h.closings), 1);
    ck_assert_int_eq(h.consumer.outcome.end, UVA_END_CANCELLED);
    await_count(&h.fake.freed, 1);
}
END_TEST

/* ---- turned, with a descriptor ------------------------------------------ */

static void open_turned(void)
{
    ck_assert_int_eq(uva_runtime_open_turned(NULL, NULL, NULL, &h.rt, NULL), 0);
    ck_assert_int_ge(uva_runtime_fd(h.rt), 0);
}

static bool is_readable(int timeout_ms)
{
    struct pollfd watched = {.fd = uva_runtime_fd(h.rt), .events = POLLIN};
    int n = poll(&watched, 1, timeout_ms);

    ck_assert_int_ge(n, 0);
    ck_assert(n == 0 || watched.revents == POLLIN);
    return n > 0;
}

/* Turns the runtime as a host does it: only when the descriptor is readable. */
static void turn_until_done(void)
{
    while (atomic_load(&h.consumer.done) == 0) {
        ck_assert(is_readable(-1));
        ck_assert(uva_runtime_turn(h.rt));
    }
}

/* If the descriptor stayed readable without work, hosts would spin. */
static void ck_falls_silent(void)
{
    int turns = 0;

    while (is_readable(0)) {
        ck_assert(uva_runtime_turn(h.rt));
        ck_assert_int_lt(turns++, TURNS_MAX);
    }
}

static void close_turned(void)
{
    bool open = true;

    ck_assert_int_eq(uva_runtime_close(h.rt, 0, hosting_on_closed, &h), 0);
    while (open) {
        ck_assert_int_eq(atomic_load(&h.closings), 0);
        ck_assert(is_readable(-1));
        open = uva_runtime_turn(h.rt);
    }
    ck_assert_int_eq(atomic_load(&h.closings), 1);
}

static void *start_elsewhere(void *ctx)
{
    (void)ctx;
    hosting_start_stream(&h);
    return NULL;
}

START_TEST(the_descriptor_is_silent_while_there_is_nothing_to_do)
{
    open_turned();
    ck_assert(!is_readable(0));
    ck_assert(uva_runtime_turn(h.rt));
    ck_assert(!is_readable(0));
    close_turned();
}
END_TEST

START_TEST(the_descriptor_alone_carries_a_stream_to_its_end)
{
    open_turned();
    ck_assert_int_eq(pthread_join(hosting_thread(start_elsewhere, NULL), NULL),
                     0);
    ck_assert(is_readable(0));
    turn_until_done();
    hosting_completed(&h);
    ck_assert(pthread_equal(h.consumer.thread, pthread_self()));
    await_count(&h.fake.freed, 1);
    ck_falls_silent();
    ck_assert(!is_readable(0));
    close_turned();
}
END_TEST

START_TEST(the_descriptor_is_the_same_until_closed)
{
    int fd;

    open_turned();
    fd = uva_runtime_fd(h.rt);
    hosting_start_stream(&h);
    turn_until_done();
    ck_assert_int_eq(uva_runtime_fd(h.rt), fd);
    await_count(&h.fake.freed, 1);
    close_turned();
}
END_TEST

START_TEST(timers_make_the_descriptor_readable)
{
    bool open = true;

    h.fake.gate_at = 1;
    open_turned();
    hosting_start_stream(&h);
    while (atomic_load(&h.consumer.batches) < 1) {
        ck_assert(is_readable(-1));
        ck_assert(uva_runtime_turn(h.rt));
    }
    fake_source_await(&h.fake);
    ck_falls_silent();
    ck_assert_int_eq(uva_runtime_close(h.rt, 200, hosting_on_closed, &h), 0);
    ck_assert(is_readable(0));
    ck_assert(uva_runtime_turn(h.rt));
    ck_assert_int_eq(atomic_load(&h.consumer.done), 0);
    for (int turns = 0; open; turns++) { /* only the timer is left */
        ck_assert(is_readable(-1));
        open = uva_runtime_turn(h.rt);
        ck_assert_int_lt(turns, TURNS_MAX);
    }
    ck_assert_int_eq(h.consumer.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(atomic_load(&h.closings), 1);
    await_count(&h.fake.freed, 1);
}
END_TEST

/* The last thing that happens is the end of a time limit. */
START_TEST(a_close_that_leaves_a_call_behind_is_announced_to_its_end)
{
    open_turned();
    hosting_start_stuck(&h);
    while (!fake_source_is_waiting(&h.fake))
        if (is_readable(1))
            ck_assert(uva_runtime_turn(h.rt));
    close_turned();
    ck_assert_int_eq(h.consumer.outcome.end, UVA_END_CANCELLED);
    fake_source_open_gate(&h.fake);
    await_count(&h.fake.freed, 1);
}
END_TEST

static void turn_in_callback(struct recording_consumer *o,
                             struct uva_batch *batch)
{
    long before = atomic_load(&o->batches);

    (void)batch;
    ck_assert(uva_runtime_turn(h.rt));
    ck_assert_int_eq(atomic_load(&o->batches), before);
}

START_TEST(a_turn_inside_a_callback_does_nothing)
{
    h.consumer.on_batch = turn_in_callback;
    open_turned();
    hosting_start_stream(&h);
    turn_until_done();
    hosting_completed(&h);
    await_count(&h.fake.freed, 1);
    close_turned();
}
END_TEST

int main(void)
{
    TCase *embedded = tcase_create("guest"), *thread = tcase_create("thread");
    TCase *turned = tcase_create("turned");

    suite_add(embedded, a_guest_adds_four_handles_and_leaves_their_data_alone,
              an_idle_guest_does_not_keep_the_loop_alive,
              a_stream_keeps_the_loop_alive_until_its_end,
              a_stream_not_started_does_not_keep_the_loop_alive,
              a_guest_leaves_the_other_handles_alone,
              hundreds_of_runtimes_leave_no_descriptor_behind,
              hundreds_of_runtimes_with_streams_leave_no_descriptor_behind,
              NULL);
    suite_add(thread, join_lets_the_streams_finish,
              join_waits_for_a_stream_that_waits,
              join_says_edeadlk_on_the_loop_thread,
              join_says_einval_for_a_runtime_on_a_loop_of_the_host,
              join_after_close_ends_what_would_never_end, NULL);
    suite_add(turned, the_descriptor_is_silent_while_there_is_nothing_to_do,
              the_descriptor_alone_carries_a_stream_to_its_end,
              the_descriptor_is_the_same_until_closed,
              timers_make_the_descriptor_readable,
              a_close_that_leaves_a_call_behind_is_announced_to_its_end,
              a_turn_inside_a_callback_does_nothing, NULL);
    return suite_main("hosting", set_up, tear_down, embedded, thread, turned,
                      NULL);
}
