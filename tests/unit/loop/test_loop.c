/* SPDX-License-Identifier: Apache-2.0 */
/* The half of a runtime that the loop's thread has to itself: nodes that are
 * visited, timers, and what a close makes of them. */
#include "loop/loop.h"

#include <check.h>
#include <pthread.h>

#include "support/loop_rig.h"
#include "loop/runtime_impl.h"

static struct loop_rig rig;
static struct uva__hub *hub;

static void set_up(void)
{
    loop_rig_open(&rig);
    hub = uva__loop_hub(rig.runtime);
}

static void tear_down(void)
{
    loop_rig_close(&rig);
}

/* ---- turns -------------------------------------------------------------- */

struct visits {
    struct uva__node node;
    bool posts;  /* at the first visit it posts itself */
    int count;   /* visits so far */
    bool inside; /* the last was on the loop's thread, as the hub sees it */
};

static bool visit(struct uva__node *node)
{
    struct visits *v = uva__container_of(node, struct visits, node);

    v->inside = uva__hub_on_loop(hub);
    if (v->count++ > 0)
        return false;
    if (v->posts)
        uva__hub_post(hub, node);
    return true;
}

static const struct uva__node_ops visit_ops = {visit, NULL};

START_TEST(a_node_that_wants_another_visit_and_posts_itself_has_one_more)
{
    struct visits v = {.node.ops = &visit_ops, .posts = _i == 1};

    uva__hub_post(hub, &v.node);
    loop_rig_settle(&rig);
    ck_assert_int_eq(v.count, 2);
    ck_assert(v.inside);
}
END_TEST

static void *turn_elsewhere(void *ctx)
{
    (void)ctx;
    loop_rig_settle(&rig);
    return NULL;
}

START_TEST(the_loop_may_be_turned_by_another_thread)
{
    struct visits v = {.node.ops = &visit_ops};
    pthread_t thread;

    loop_rig_settle(&rig);
    uva__hub_post(hub, &v.node);
    ck_assert_int_eq(pthread_create(&thread, NULL, turn_elsewhere, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(v.count, 2);
    ck_assert(v.inside);
    ck_assert(!uva__hub_on_loop(hub));
    v.count = 0;
    uva__hub_post(hub, &v.node);
    loop_rig_settle(&rig);
    ck_assert(v.inside);
    ck_assert(uva__hub_on_loop(hub));
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
    loop_rig_nudge(&rig); /* it may come before the loop sleeps */
}

static bool has_fired(void *ctx)
{
    return ((struct alarm *)ctx)->fired > 0;
}

START_TEST(a_timer_without_delay_fires_in_the_next_turn)
{
    struct alarm alarm = {.timer.fire = alarm_fire};

    uva__timer_start(hub, &alarm.timer, 0);
    ck_assert_int_eq(alarm.fired, 0);
    loop_rig_until(&rig, has_fired, &alarm);
    ck_assert_int_eq(alarm.fired, 1);
    ck_assert(!alarm.timer.running);
}
END_TEST

START_TEST(a_timer_that_is_started_again_fires_once_at_its_new_time)
{
    struct alarm early = {.timer.fire = alarm_fire};
    struct alarm late = {.timer.fire = alarm_fire};

    uva__timer_start(hub, &late.timer, 3600000);
    uva__timer_start(hub, &early.timer, 3600000);
    uva__timer_start(hub, &early.timer, 1);
    loop_rig_until(&rig, has_fired, &early);
    loop_rig_settle(&rig);
    ck_assert_int_eq(early.fired, 1);
    ck_assert_int_eq(late.fired, 0);
    uva__timer_stop(hub, &late.timer);
    uva__timer_stop(hub, &late.timer);
}
END_TEST

/* ---- closing ------------------------------------------------------------ */

struct guest {
    struct uva__tenant tenant;
    int evicted;
};

static void guest_evict(struct uva__tenant *tenant)
{
    uva__container_of(tenant, struct guest, tenant)->evicted++;
}

static void guest_open(struct guest *guest)
{
    *guest = (struct guest){.tenant.evict = guest_evict};
    ck_assert(uva__hub_enter(hub));
    uva__loop_move_in(hub, &guest->tenant);
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
    (void)uva_runtime_close(rig.runtime, grace_ms, set, gone);
    (void)uv_run(&rig.loop, UV_RUN_NOWAIT);
}

static void guest_leave(struct guest *guest, bool *gone)
{
    uva__loop_move_out(hub, &guest->tenant);
    uva__hub_leave(hub);
    uva__hub_post(hub, &hub->closer); /* it is not in a turn */
    loop_rig_until(&rig, is_set, gone);
    rig.runtime = NULL;
}

static bool grace_is_over(void *ctx)
{
    (void)ctx;
    return !rig.runtime->grace.running;
}

START_TEST(of_several_graces_the_shortest_holds)
{
    struct guest guest;
    bool gone = false;
    uint64_t due;

    guest_open(&guest);
    close_with(3600000, &gone);
    due = rig.runtime->grace.due_ms;
    close_with(7200000, &gone);
    ck_assert_uint_eq(rig.runtime->grace.due_ms, due);
    close_with(1, &gone);
    ck_assert_uint_lt(rig.runtime->grace.due_ms, due);
    loop_rig_until(&rig, grace_is_over, NULL);
    ck_assert_int_eq(guest.evicted, 1);
    guest_leave(&guest, &gone);
}
END_TEST

START_TEST(who_was_evicted_is_not_told_again_when_the_grace_ends)
{
    struct guest guest;
    bool gone = false;

    guest_open(&guest);
    close_with(1, &gone);
    close_with(0, &gone);
    ck_assert_int_eq(guest.evicted, 1);
    loop_rig_until(&rig, grace_is_over, NULL);
    ck_assert_int_eq(guest.evicted, 1);
    guest_leave(&guest, &gone);
}
END_TEST

START_TEST(a_hold_has_no_effect_once_the_loop_has_let_go)
{
    struct uva__hub *kept = uva__hub_acquire(hub);

    loop_rig_close_runtime(&rig, 0);
    kept->loop.owed = 0; /* but for the close's own */
    uva__loop_hold(kept);
    uva__loop_unhold(kept);
    ck_assert_int_eq(kept->loop.owed, 0);
    uva__hub_release(kept);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("loop");
    TCase *tc = tcase_create("loop");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(
        tc, a_node_that_wants_another_visit_and_posts_itself_has_one_more, 0,
        2);
    tcase_add_test(tc, the_loop_may_be_turned_by_another_thread);
    tcase_add_test(tc, a_timer_without_delay_fires_in_the_next_turn);
    tcase_add_test(tc,
                   a_timer_that_is_started_again_fires_once_at_its_new_time);
    tcase_add_test(tc, of_several_graces_the_shortest_holds);
    tcase_add_test(tc, who_was_evicted_is_not_told_again_when_the_grace_ends);
    tcase_add_test(tc, a_hold_has_no_effect_once_the_loop_has_let_go);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
