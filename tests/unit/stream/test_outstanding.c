/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks that a handler holds: however many they are, taking back the slots
 * of those that are over costs a few steps for each task. The steps are
 * counted, not timed: a search of all tasks, which resets `age`, takes as many
 * as there are. */
#include "stream/outstanding.h"

#include <check.h>
#include <stdlib.h>

#include "stream/producer.h"
#include "stream/slots.h"
#include "support/check_suite.h"

enum { MANY = 1 << 13, FEW_STEPS = 4 };

static struct uva__rt *rt;
static struct uva__producer producer;
static struct uva__failure failure;
static struct uva__outstanding out;
static struct uva__task **tasks; /* that are held, in order */
static int64_t steps;            /* of searches */

static void set_up(void)
{
    ck_assert_int_eq(uva__rt_new(&(struct uva_runtime_options){0}, &rt), 0);
    ck_assert_int_eq(uva__slots_ensure(rt), 0);
    producer = (struct uva__producer){.rt = rt};
    failure = (struct uva__failure){0};
    out = (struct uva__outstanding){.failure = &failure};
    tasks = calloc(MANY, sizeof(struct uva__task *));
    ck_assert_ptr_nonnull(tasks);
    steps = 0;
}

static void tear_down(void)
{
    free(tasks);
    uva__rt_retire(rt);
    uva__rt_release(rt);
}

/* Offers a task to a handler that keeps it. */
static struct uva__task *keep(void)
{
    struct uva__task *task = uva__slots_take_task(rt);
    const int32_t before = out.count;

    if (task == NULL)
        ck_abort_msg("no memory");
    task->producer = &producer;
    (void)uva__task_state_offer(&task->state, 0);
    uva__outstanding_keep(&out, task);
    if (out.age == 0)
        steps += before + 1;
    return task;
}

static void extract(struct uva__task *task)
{
    bool orphaned;
    const uint64_t generation =
        uva__atomic64_load(&task->state) >> UVA__TASK_GENERATION_SHIFT;

    ck_assert_int_eq(uva__task_state_claim(&task->state, generation, &orphaned),
                     0);
    (void)uva__task_state_settle(&task->state, UVA__TASK_DONE, false);
}

static void keep_many(void)
{
    for (int i = 0; i < MANY; i++)
        tasks[i] = keep();
    ck_assert_int_eq(out.count, MANY);
}

/* Takes back after an event, as a producer whose handler was released. */
static void reap(void)
{
    const int32_t before = out.count, age = out.age;

    uva__outstanding_reap_after(&out);
    steps += out.age == 0 && age > 0 && out.count > 0 ? before : 1;
}

START_TEST(a_handler_that_holds_many_costs_a_few_steps_a_task)
{
    keep_many();
    ck_assert_int_gt(steps, 0);
    ck_assert_int_le(steps, FEW_STEPS * (int64_t)MANY);
    for (int i = 0; i < MANY; i++)
        extract(tasks[i]);
    uva__outstanding_reap(&out);
    ck_assert_int_eq(out.count, 0);
}
END_TEST

/* The oldest one is extracted last, so each of the others is found by a search
 * alone. */
START_TEST(many_that_are_extracted_one_by_one_cost_a_few_steps_each)
{
    keep_many();
    steps = 0;
    for (int i = MANY - 1; i > 0; i--) {
        extract(tasks[i]);
        reap();
    }
    ck_assert_int_le(steps, FEW_STEPS * (int64_t)MANY);
    ck_assert_int_lt(out.count, MANY / 100); /* their slots are back */
    extract(tasks[0]);
    reap();
    ck_assert_int_eq(out.count, 0);
}
END_TEST

/* Few slots wait for a task that is held for ever. */
START_TEST(one_that_is_held_holds_up_few_others)
{
    struct uva__task *held = keep();
    int32_t most = 0;

    for (int i = 0; i < MANY; i++) {
        extract(keep());
        most = out.count > most ? out.count : most;
    }
    ck_assert_int_lt(most, 100);
    extract(held);
    uva__outstanding_reap(&out);
    ck_assert_int_eq(out.count, 0);
}
END_TEST

/* Nor do more wait than are held. */
START_TEST(many_that_are_held_hold_up_as_many_at_most)
{
    int32_t most = 0;

    keep_many();
    for (int i = 0; i < 4 * MANY; i++) {
        extract(keep());
        most = out.count > most ? out.count : most;
    }
    ck_assert_int_lt(most, 2 * MANY + 100);
    ck_assert_int_le(steps, FEW_STEPS * (int64_t)(5 * MANY));
    for (int i = 0; i < MANY; i++)
        extract(tasks[i]);
    uva__outstanding_reap(&out);
    ck_assert_int_eq(out.count, 0);
}
END_TEST

int main(void)
{
    TCase *searches = suite_tests(
        "searches", a_handler_that_holds_many_costs_a_few_steps_a_task,
        many_that_are_extracted_one_by_one_cost_a_few_steps_each,
        one_that_is_held_holds_up_few_others,
        many_that_are_held_hold_up_as_many_at_most, NULL);

    return suite_main("outstanding", set_up, tear_down, searches, NULL);
}
