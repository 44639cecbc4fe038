/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of tasks rest before they are used again, except those to which no
 * token leads that is still used: they are used again at once, and other
 * threads get them when there are many. */
#include "stream/slots.h"

#include <check.h>

#include "support/check_suite.h"

enum {
    MANY = 64,    /* TASKS_STEP in slots.c: so many go to other threads */
    RESTING = 256 /* TASKS_QUARANTINE */
};

static struct uva__rt *rt;

static void set_up(void)
{
    ck_assert_int_eq(uva__rt_new(&(struct uva_runtime_options){0}, &rt), 0);
    ck_assert_int_eq(uva__slots_ensure(rt), 0);
}

static void tear_down(void)
{
    uva__rt_retire(rt);
    uva__rt_release(rt);
}

static struct uva__task *take(void)
{
    struct uva__task *task = uva__slots_take_task(rt);

    ck_assert_ptr_nonnull(task);
    return task;
}

START_TEST(a_slot_rests_behind_many_others)
{
    struct uva__task *task = take();

    uva__slots_put_task(rt, task, true);
    for (int i = 0; i < RESTING; i++) {
        struct uva__task *other = take();

        ck_assert_ptr_ne(other, task);
        uva__slots_put_task(rt, other, true);
    }
    ck_assert_ptr_eq(take(), task);
}
END_TEST

START_TEST(a_slot_without_a_token_does_not_rest)
{
    struct uva__task *first = take(), *second = take();

    uva__slots_put_task(rt, first, false);
    uva__slots_put_task(rt, second, false);
    ck_assert_ptr_eq(take(), second); /* which is in the cache */
    ck_assert_ptr_eq(take(), first);
    ck_assert_ptr_ne(take(), first);
}
END_TEST

START_TEST(several_do_not_rest_either)
{
    struct uva__task *first = take(), *second = take(), *third = take();
    struct uva__list tasks = {0};

    uva__slots_put_task(rt, third, false);
    uva__list_push(&tasks, &first->link);
    uva__list_push(&tasks, &second->link);
    uva__slots_put_tasks(rt, &tasks, 2, false);
    ck_assert_ptr_eq(take(), first);
    ck_assert_ptr_eq(take(), second);
    ck_assert_ptr_eq(take(), third);
}
END_TEST

/* Gives `count` slots back that need no rest; returns the last one. */
static struct uva__task *give_back(int count)
{
    struct uva__task *tasks[MANY];

    for (int i = 0; i < count; i++)
        tasks[i] = take();
    for (int i = 0; i < count; i++)
        uva__slots_put_task(rt, tasks[i], false);
    uva__slots_trim_tasks(rt);
    return tasks[count - 1];
}

static struct uva__link *fetch_first(void)
{
    struct uva__list fetched = {0};

    ck_assert(uva__slots_fetch_tasks(rt, &fetched, 1));
    return fetched.head;
}

START_TEST(many_go_to_other_threads_the_latest_first)
{
    const struct uva__task *last = give_back(MANY);

    ck_assert_ptr_eq(fetch_first(), &last->link);
}
END_TEST

START_TEST(a_few_stay_with_the_loop)
{
    struct uva__task *last = give_back(MANY - 1);

    ck_assert_ptr_ne(fetch_first(), &last->link);
    ck_assert_ptr_eq(take(), last);
}
END_TEST

int main(void)
{
    TCase *slots = suite_tests("slots", a_slot_rests_behind_many_others,
                               a_slot_without_a_token_does_not_rest,
                               several_do_not_rest_either,
                               many_go_to_other_threads_the_latest_first,
                               a_few_stay_with_the_loop, NULL);

    return suite_main("slots", set_up, tear_down, slots, NULL);
}
