/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a runtime that only the loop thread uses: wake-ups that are run,
 * timers, and how a close ends them. */
#include "loop/loop.h"

#include <check.h>
#include <pthread.h>

#include "base/clock.h"
#include "loop/runtime_impl.h"
#include "support/check_suite.h"
#include "support/loop_fixture.h"

static struct loop_fixture loop;
static struct uva__rt *rt;

static void set_up(void)
{
    loop_open(&loop);
    rt = uva__loop_rt(loop.runtime);
}

static void tear_down(void)
{
    loop_close(&loop);
}

/* ---- how long a turn holds the loop -------------------------------------- */

enum { WORK_NS = 20000000 };

static uint64_t work(void)
{
    const uint64_t begun = uva__clock_thread_cpu_ns();
    uint64_t used;

    do
        used = uva__clock_thread_cpu_ns() - begun;
    while (used < WORK_NS);
    return used;
}

static void *work_elsewhere(void *ctx)
{
    (void)ctx;
    (void)work();
    return NULL;
}

static void hold_by_waiting(void *ctx)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, work_elsewhere, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    *(bool *)ctx = true;
}

static void hold_by_working(void *ctx)
{
    (void)work();
    *(bool *)ctx = true;
}

static bool is_held(void *ctx)
{
    return *(bool *)ctx;
}

static struct uva_runtime_stats held_by(uva_call_fn *fn)
{
    struct uva_runtime_stats stats;
    bool over = false;

    ck_assert_int_eq(uva_runtime_post(loop.runtime, fn, &over), 0);
    loop_until(&loop, is_held, &over);
    uva_runtime_get_stats(loop.runtime, &stats);
    ck_assert_int_ge(stats.hold_max_ns, WORK_NS);
    ck_assert_int_le(stats.hold_max_cpu_ns, stats.hold_max_ns);
    return stats;
}

/* Time of other threads is not used by the turn; time of its own thread between
 * the turns is not, either. */
START_TEST(a_turn_that_waits_has_used_little_time)
{
    (void)held_by(hold_by_waiting);
    (void)work();
    ck_assert_int_lt(held_by(hold_by_waiting).hold_max_cpu_ns, WORK_NS / 2);
}
END_TEST

START_TEST(a_turn_that_works_has_used_that_time)
{
    (void)held_by(hold_by_waiting);
    ck_assert_int_ge(held_by(hold_by_working).hold_max_cpu_ns, WORK_NS);
}
END_TEST

/* ---- turns -------------------------------------------------------------- */

struct runs {
    struct uva__wakeup wakeup;
    bool posts;  /* at its first run it posts itself */
    int count;   /* runs so far */
    bool inside; /* the last was on the loop thread, as the rt sees it */
};

static bool on_wakeup(struct uva__wakeup *wakeup)
{
    struct runs *v = uva__container_of(wakeup, struct runs, wakeup);

    v->inside = uva__rt_on_loop(rt);
    if (v->count++ > 0)
        return false;
    if (v->posts)
        uva__rt_wake(rt, wakeup);
    return true;
}

static const struct uva__wakeup_ops run_ops = {on_wakeup, NULL};

START_TEST(a_node_that_wants_another_visit_and_posts_itself_has_one_more)
{
    struct runs v = {.wakeup.ops = &run_ops, .posts = _i == 1};

    uva__rt_wake(rt, &v.wakeup);
    loop_settle(&loop);
    ck_assert_int_eq(v.count, 2);
    ck_assert(v.inside);
}
END_TEST

static void *turn_elsewhere(void *ctx)
{
    (void)ctx;
    loop_settle(&loop);
    return NULL;
}

START_TEST(the_loop_may_be_turned_by_another_thread)
{
    struct runs v = {.wakeup.ops = &run_ops};
    pthread_t thread;

    loop_settle(&loop);
    uva__rt_wake(rt, &v.wakeup);
    ck_assert_int_eq(pthread_create(&thread, NULL, turn_elsewhere, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(v.count, 2);
    ck_assert(v.inside);
    ck_assert(!uva__rt_on_loop(rt));
    v.count = 0;
    uva__rt_wake(rt, &v.wakeup);
    loop_settle(&loop);
    ck_assert(v.inside);
    ck_assert(uva__rt_on_loop(rt));
}
END_TEST

/* ---- timers ------------------------------------------------------------- */

struct alarm {
    struct uva__timer timer;
    int fired;
};

static void alarm_fire(struct uva__timer *timer)
{
    uva__container_of(timer, struct alarm, timer)->fired++;
    loop_nudge(&loop); /* it may fire before the loop sleeps */
}

static bool has_fired(void *ctx)
{
    return ((struct alarm *)ctx)->fired > 0;
}

START_TEST(a_timer_without_delay_fires_in_the_next_turn)
{
    struct alarm alarm = {.timer.fire = alarm_fire};

    uva__timer_start(rt, &alarm.timer, 0);
    ck_assert_int_eq(alarm.fired, 0);
    loop_until(&loop, has_fired, &alarm);
    ck_assert_int_eq(alarm.fired, 1);
    ck_assert(!alarm.timer.running);
}
END_TEST

START_TEST(a_timer_that_is_started_again_fires_once_at_its_new_time)
{
    struct alarm early = {.timer.fire = alarm_fire};
    struct alarm timed_out = {.timer.fire = alarm_fire};

    uva__timer_start(rt, &timed_out.timer, 3600000);
    uva__timer_start(rt, &early.timer, 3600000);
    uva__timer_start(rt, &early.timer, 1);
    loop_until(&loop, has_fired, &early);
    loop_settle(&loop);
    ck_assert_int_eq(early.fired, 1);
    ck_assert_int_eq(timed_out.fired, 0);
    uva__timer_stop(rt, &timed_out.timer);
    uva__timer_stop(rt, &timed_out.timer);
}
END_TEST

START_TEST(a_timer_of_the_clock_fires_at_its_time_or_sooner_but_not_before)
{
    struct alarm alarm = {.timer.fire = alarm_fire};
    const uint64_t due_ns = uva__clock_ns() + 2000001;

    uva__timer_start_at(rt, &alarm.timer, due_ns + 3600000000000);
    uva__timer_start_at(rt, &alarm.timer, due_ns);
    uva__timer_start_at(rt, &alarm.timer, due_ns + 3600000000000);
    loop_until(&loop, has_fired, &alarm);
    ck_assert_uint_ge(uva__clock_ns(), due_ns);
    uva__timer_start_at(rt, &alarm.timer, due_ns); /* it has passed */
    alarm.fired = 0;
    loop_until(&loop, has_fired, &alarm);
}
END_TEST

/* ---- closing ------------------------------------------------------------ */

struct guest {
    struct uva__open_object object;
    int aborted;
};

static void uncapped_abort(struct uva__open_object *object)
{
    uva__container_of(object, struct guest, object)->aborted++;
}

static void uncapped_open(struct guest *guest)
{
    *guest = (struct guest){.object.abort = uncapped_abort};
    ck_assert(uva__rt_enter(rt));
    uva__loop_track(rt, &guest->object);
}

static void set(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

/* Only the first close's function is called. */
static void close_with(int64_t grace_ms, bool *gone)
{
    (void)uva_runtime_close(loop.runtime, grace_ms, set, gone);
    (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
}

static void uncapped_leave(struct guest *guest, bool *gone)
{
    uva__loop_untrack(rt, &guest->object);
    uva__rt_leave(rt);
    uva__rt_wake(rt, &rt->closer); /* it is not in a turn */
    loop_until(&loop, is_set, gone);
    loop.runtime = NULL;
}

static bool grace_is_over(void *ctx)
{
    (void)ctx;
    return !loop.runtime->grace.running;
}

START_TEST(of_several_graces_the_shortest_holds)
{
    struct guest guest;
    bool gone = false;
    uint64_t due;

    uncapped_open(&guest);
    close_with(3600000, &gone);
    due = loop.runtime->grace.due_ms;
    close_with(7200000, &gone);
    ck_assert_uint_eq(loop.runtime->grace.due_ms, due);
    close_with(1, &gone);
    ck_assert_uint_lt(loop.runtime->grace.due_ms, due);
    loop_until(&loop, grace_is_over, NULL);
    ck_assert_int_eq(guest.aborted, 1);
    uncapped_leave(&guest, &gone);
}
END_TEST

START_TEST(who_was_evicted_is_not_delivered_again_when_the_grace_ends)
{
    struct guest guest;
    bool gone = false;

    uncapped_open(&guest);
    close_with(1, &gone);
    close_with(0, &gone);
    ck_assert_int_eq(guest.aborted, 1);
    loop_until(&loop, grace_is_over, NULL);
    ck_assert_int_eq(guest.aborted, 1);
    uncapped_leave(&guest, &gone);
}
END_TEST

START_TEST(a_hold_has_no_effect_once_the_loop_has_let_go)
{
    struct uva__rt *kept = uva__rt_acquire(rt);

    loop_close_runtime(&loop, 0);
    kept->loop.keepalive = 0; /* but for the close's own */
    uva__loop_ref(kept);
    uva__loop_unref(kept);
    ck_assert_int_eq(kept->loop.keepalive, 0);
    uva__rt_release(kept);
}
END_TEST

/* ---- a drain ------------------------------------------------------------ */

static int timed_out; /* calls of count_time_out() */

static void count_time_out(struct uva__open_object *object)
{
    (void)object;
    timed_out++;
}

static void never_aborted(struct uva__open_object *object)
{
    (void)object;
    ck_abort_msg("the runtime is not closed");
}

START_TEST(a_stream_that_begins_after_the_deadline_is_ended_at_once)
{
    struct uva__open_object before = {.abort = never_aborted,
                                      .time_out = count_time_out};
    struct uva__open_object after = before, other = {.abort = never_aborted};

    timed_out = 0;
    ck_assert(uva__rt_stream_begin(rt)); /* it is started, and not begun */
    uva__loop_track(rt, &before);
    uva__loop_track(rt, &other);
    ck_assert_int_eq(uva_runtime_drain(loop.runtime, 0, NULL, NULL), 0);
    loop_settle(&loop);
    ck_assert_int_eq(timed_out, 1);
    uva__loop_untrack(rt, &other);
    uva__loop_track(rt, &other);
    ck_assert_int_eq(timed_out, 1);
    uva__loop_track(rt, &after);
    ck_assert_int_eq(timed_out, 2);
    uva__loop_untrack(rt, &before);
    uva__loop_untrack(rt, &other);
    uva__loop_untrack(rt, &after);
    ck_assert(!uva__rt_stream_begin(rt));
    uva__rt_stream_end(rt);
    loop_settle(&loop);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("loop");

    tcase_add_loop_test(
        tc, a_node_that_wants_another_visit_and_posts_itself_has_one_more, 0,
        2);
    tcase_add_test(tc, the_loop_may_be_turned_by_another_thread);
    tcase_add_test(tc, a_timer_without_delay_fires_in_the_next_turn);
    tcase_add_test(tc,
                   a_timer_that_is_started_again_fires_once_at_its_new_time);
    tcase_add_test(
        tc, a_timer_of_the_clock_fires_at_its_time_or_sooner_but_not_before);
    tcase_add_test(tc, of_several_graces_the_shortest_holds);
    tcase_add_test(tc,
                   who_was_evicted_is_not_delivered_again_when_the_grace_ends);
    tcase_add_test(tc, a_hold_has_no_effect_once_the_loop_has_let_go);
    tcase_add_test(tc, a_turn_that_waits_has_used_little_time);
    tcase_add_test(tc, a_turn_that_works_has_used_that_time);
    tcase_add_test(tc,
                   a_stream_that_begins_after_the_deadline_is_ended_at_once);
    return suite_main("loop", set_up, tear_down, tc, NULL);
}
