/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of tasks rest before they are used again, except those to which no
 * token leads that is still used: they are used again at once, and other
 * threads get them when there are many. */
#include "stream/slots.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>

#include "support/check_suite.h"

enum {
    MANY = 64,     /* TASKS_STEP in slots.c: so many go to other threads */
    RESTING = 256, /* TASKS_QUARANTINE */
    ROUNDS = 20000
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

/* Counts the slots that it fetched and another thread had, too. */
static void *fetch_and_return(void *shared)
{
    int *const count = shared;
    const int64_t own = (intptr_t)count;

    for (int i = 0; i < ROUNDS; i++) {
        struct uva__list fetched = {0};
        struct uva__task *task;

        if (!uva__slots_fetch_tasks(rt, &fetched, 1))
            return NULL;
        task = uva__container_of(fetched.head, struct uva__task, link);
        task->info.bytes = own;
        sched_yield();
        *count += task->info.bytes != own;
        task->info.bytes = 0;
        uva__slots_return_tasks(rt, &fetched);
    }
    return NULL;
}

START_TEST(two_threads_never_have_the_same_slot)
{
    int shared[2] = {0};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, fetch_and_return, &shared[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(shared[i], 0);
    }
}
END_TEST

int main(void)
{
    TCase *slots = suite_tests(
        "slots", a_slot_rests_behind_many_others,
        a_slot_without_a_token_does_not_rest, several_do_not_rest_either,
        many_go_to_other_threads_the_latest_first, a_few_stay_with_the_loop,
        two_threads_never_have_the_same_slot, NULL);

    return suite_main("slots", set_up, tear_down, slots, NULL);
}
