/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that all devices share: it runs commands in the order in which
 * they were sent, polls items until they complete, and ends only after the last
 * one. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "device/device_thread.h"
#include "support/check_suite.h"

struct device_thread_fixture {
    struct uva__device_thread device_thread; /* first */
    atomic_int counts;                       /* of the struct around it */
    atomic_int cleared;
    sem_t passed;
    int64_t last;        /* errand that was run */
    atomic_bool stopped; /* the next report stops half-way */
    bool in_order;
};

static struct device_thread_fixture s;

static void
device_thread_fixture_begin(struct uva__device_thread *device_thread)
{
    atomic_fetch_add(&s.counts, 1);
    if (!atomic_exchange(&s.stopped, false))
        return;
    (void)sem_post(&s.passed);
    while (!uva__inflight_is_closed(&device_thread->reports) ||
           uva__atomic64_load(&device_thread->parker.sleeping) == 0)
        sched_yield();
}

static void device_thread_fixture_end(struct uva__device_thread *device_thread)
{
    (void)device_thread;
    atomic_fetch_sub(&s.counts, 1);
}

static void
device_thread_fixture_clear(struct uva__device_thread *device_thread)
{
    (void)device_thread;
    atomic_fetch_add(&s.cleared, 1);
}

static void fixture_end(void)
{
    uva__device_thread_end(&s.device_thread, uva__device_thread_limit_ns());
}

static void fixture_settle(void)
{
    uva__device_thread_settle(&s.device_thread, uva__device_thread_limit_ns());
}

static void device_thread_fixture_open(void)
{
    memset(&s, 0, sizeof(s));
    s.device_thread.begin = device_thread_fixture_begin;
    s.device_thread.end = device_thread_fixture_end;
    s.device_thread.clear = device_thread_fixture_clear;
    s.last = -1;
    s.in_order = true;
    ck_assert_int_eq(sem_init(&s.passed, 0, 0), 0);
    ck_assert_int_eq(uva__device_thread_start(&s.device_thread), 0);
    ck_assert_int_eq(uva__device_thread_start(&s.device_thread), 0);
}

static void await(int times)
{
    while (times > 0)
        times -= sem_wait(&s.passed) == 0;
}

static void device_thread_fixture_close(void)
{
    fixture_end();
    ck_assert_int_eq(atomic_load(&s.counts), 0);
    ck_assert_int_eq(atomic_load(&s.cleared), 1);
    ck_assert_int_eq(uva__device_thread_start(&s.device_thread), ESHUTDOWN);
    (void)sem_destroy(&s.passed);
}

/* ---- errands ------------------------------------------------------------ */

struct numbered {
    struct uva__device_command command; /* first */
    int64_t number;
    int again; /* so many times it sends itself */
};

static void numbered_run(struct uva__device_command *command)
{
    struct numbered *numbered = (struct numbered *)command;

    s.in_order = s.in_order && numbered->number == s.last + 1;
    s.last = numbered->number;
    if (numbered->again-- > 0) {
        s.last--;
        ck_assert(uva__device_thread_send(&s.device_thread, command));
    }
    (void)sem_post(&s.passed);
}

START_TEST(commands_are_run_in_the_order_in_which_they_were_sent)
{
    enum { MANY = 1000 };
    static struct numbered commands[MANY];

    device_thread_fixture_open();
    for (int i = 0; i < MANY; i++) {
        commands[i] = (struct numbered){{.run = numbered_run}, i, 0};
        if (i % 2 == 0) /* these do not wake the thread */
            ck_assert(uva__device_thread_report(&s.device_thread,
                                                &commands[i].command, false));
        else
            ck_assert(uva__device_thread_send(&s.device_thread,
                                              &commands[i].command));
    }
    await(MANY);
    ck_assert(s.in_order);
    device_thread_fixture_close();
}
END_TEST

START_TEST(an_command_may_be_sent_again_from_its_run)
{
    struct numbered command = {{.run = numbered_run}, 0, 100};

    device_thread_fixture_open();
    ck_assert(uva__device_thread_send(&s.device_thread, &command.command));
    await(101);
    ck_assert(s.in_order);
    device_thread_fixture_close();
}
END_TEST

START_TEST(what_was_sent_before_the_end_is_run_and_nothing_after_it)
{
    struct numbered commands[3];

    device_thread_fixture_open();
    for (int i = 0; i < 3; i++)
        commands[i] = (struct numbered){{.run = numbered_run}, i, 0};
    ck_assert(uva__device_thread_report(&s.device_thread, &commands[0].command,
                                        false));
    ck_assert(uva__device_thread_report(&s.device_thread, &commands[1].command,
                                        false));
    device_thread_fixture_close();
    ck_assert_int_eq(s.last, 1);
    ck_assert(!uva__device_thread_send(&s.device_thread, &commands[2].command));
    ck_assert(!uva__device_thread_report(&s.device_thread, &commands[2].command,
                                         true));
}
END_TEST

static void ending_run(struct uva__device_command *command)
{
    (void)command;
    fixture_end();
    (void)sem_post(&s.passed);
}

START_TEST(it_may_end_itself)
{
    struct uva__device_command command = {.run = ending_run};

    device_thread_fixture_open();
    ck_assert(uva__device_thread_send(&s.device_thread, &command));
    await(1);
    while (uva__atomic64_load(&s.device_thread.over) == 0)
        sched_yield();
    while (atomic_load(&s.counts) != 0)
        sched_yield();
    ck_assert_int_eq(atomic_load(&s.cleared), 1);
}
END_TEST

/* ---- settling ------------------------------------------------------------ */

START_TEST(it_has_settled_when_it_has_run_all_and_sleeps)
{
    struct numbered command = {{.run = numbered_run}, 0, 1000};

    fixture_settle(); /* it was never started */
    device_thread_fixture_open();
    ck_assert(uva__device_thread_send(&s.device_thread, &command.command));
    fixture_settle();
    ck_assert_int_eq(command.again, -1);
    ck_assert_int_eq(atomic_load(&s.cleared), 0);
    device_thread_fixture_close();
}
END_TEST

static void ending_later_run(struct uva__device_command *command)
{
    while (uva__atomic64_load(&s.device_thread.settling) == 0)
        sched_yield();
    for (int i = 0; i < 10; i++) /* it is waited for no longer than a second */
        sched_yield();
    ending_run(command);
}

/* Otherwise the thread would still be running after that. */
START_TEST(it_has_settled_when_it_has_ended_itself)
{
    struct uva__device_command command = {.run = ending_later_run};

    device_thread_fixture_open();
    ck_assert(uva__device_thread_send(&s.device_thread, &command));
    fixture_settle();
    ck_assert_int_eq(atomic_load(&s.cleared), 1);
    ck_assert_int_eq(atomic_load(&s.counts), 0);
    fixture_settle(); /* it is over */
    (void)sem_destroy(&s.passed);
}
END_TEST

static sem_t stuck;

static void stuck_run(struct uva__device_command *command)
{
    (void)command;
    while (sem_wait(&stuck) != 0)
        continue;
}

static void settling_run(struct uva__device_command *command)
{
    (void)command;
    fixture_settle(); /* returns at once */
    (void)sem_post(&s.passed);
}

START_TEST(a_thread_that_is_stuck_is_not_waited_for)
{
    struct uva__device_command command = {.run = stuck_run},
                               settling = {.run = settling_run};

    ck_assert_int_eq(sem_init(&stuck, 0, 0), 0);
    device_thread_fixture_open();
    ck_assert(uva__device_thread_send(&s.device_thread, &settling));
    await(1);
    ck_assert(uva__device_thread_send(&s.device_thread, &command));
    if (_i == 0)
        fixture_settle();
    fixture_end();
    ck_assert_int_eq(atomic_load(&s.cleared), 0);
    (void)sem_post(&stuck);
    while (atomic_load(&s.counts) != 0)
        sched_yield();
    (void)sem_destroy(&stuck);
    (void)sem_destroy(&s.passed);
}
END_TEST

/* Sends until the door is shut; commands that were taken are run. */
static void *sender_main(void *arg)
{
    struct numbered *command = arg;
    sem_t *passed = &s.passed;

    while (uva__device_thread_send(&s.device_thread, &command->command)) {
        command->number++;
        while (sem_wait(passed) != 0)
            continue;
    }
    return NULL;
}

static void counting_run(struct uva__device_command *command)
{
    (void)command;
    (void)sem_post(&s.passed);
}

START_TEST(nobody_is_forgotten_who_sends_while_it_ends)
{
    struct numbered command;
    pthread_t thread;

    for (int round = 0; round < 50; round++) {
        device_thread_fixture_open();
        command = (struct numbered){{.run = counting_run}, 0, 0};
        ck_assert_int_eq(pthread_create(&thread, NULL, sender_main, &command),
                         0);
        sched_yield();
        fixture_end();
        ck_assert_int_eq(pthread_join(thread, NULL), 0); /* or it hangs */
        ck_assert_int_eq(atomic_load(&s.counts), 0);
        ck_assert_int_eq(sem_trywait(&s.passed), -1);
        (void)sem_destroy(&s.passed);
    }
}
END_TEST

static void *reporter_main(void *arg)
{
    struct numbered *command = arg;

    ck_assert(
        uva__device_thread_report(&s.device_thread, &command->command, true));
    return NULL;
}

START_TEST(a_report_that_is_being_made_is_waited_for_at_the_end)
{
    struct numbered command = {{.run = numbered_run}, 0, 0};
    pthread_t thread;

    device_thread_fixture_open();
    atomic_store(&s.stopped, true);
    ck_assert_int_eq(pthread_create(&thread, NULL, reporter_main, &command), 0);
    await(1);
    fixture_end();
    ck_assert_int_eq(s.last, 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(atomic_load(&s.counts), 0);
    (void)sem_destroy(&s.passed);
}
END_TEST

/* ---- chores ------------------------------------------------------------- */

struct job {
    struct uva__poll_item item; /* first */
    int looks;                  /* so many until it is over */
    int looked;
    uint64_t age_ns; /* at the last */
    bool until_end;
    int finished;
    const struct job *beside; /* looked at before this is finished; or NULL */
};

static bool job_poll(struct uva__poll_item *item, uint64_t age_ns)
{
    struct job *job = (struct job *)item;

    ck_assert_int_ge(age_ns, job->age_ns);
    job->age_ns = age_ns;
    job->looked++;
    return job->until_end ? uva__device_thread_is_ending(&s.device_thread)
                          : job->looked >= job->looks;
}

static void job_finish(struct uva__poll_item *item)
{
    struct job *job = (struct job *)item;

    ck_assert(job->beside == NULL || job->beside->looked > 0);
    job->finished++;
    (void)sem_post(&s.passed);
}

struct polling {
    struct uva__device_command command; /* first */
    struct job *job;
    int times;
};

static void polling_run(struct uva__device_command *command)
{
    struct polling *polling = (struct polling *)command;

    for (int i = 0; i < polling->times; i++)
        uva__device_thread_poll(&s.device_thread, &polling->job->item);
}

START_TEST(a_item_is_asked_after_until_it_is_over)
{
    enum { JOBS = 20 };
    static struct job jobs[JOBS];
    struct polling polling[JOBS];

    device_thread_fixture_open();
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.item = {.poll = job_poll, .finish = job_finish},
                               .looks = i + 1};
        jobs[i].item.has_callback = _i == 1 && i % 10 == 9;
        if (jobs[i].item.has_callback)
            jobs[i].looks = 2;
        polling[i] =
            (struct polling){{.run = polling_run}, &jobs[i], 1 + i % 2};
        ck_assert(
            uva__device_thread_send(&s.device_thread, &polling[i].command));
    }
    await(JOBS);
    device_thread_fixture_close();
    for (int i = 0; i < JOBS; i++) {
        ck_assert_int_eq(jobs[i].looked, jobs[i].looks);
        ck_assert(!jobs[i].item.listed);
        ck_assert_int_eq(jobs[i].finished, 1);
    }
    ck_assert(_i == 0 || jobs[9].age_ns >= 20000000);
}
END_TEST

/* Adds an item for the second time, so that it is due at once. */
static void both_poll(struct uva__device_command *command)
{
    struct polling *polling = (struct polling *)command;

    for (int i = 0; i < 2 * polling->times; i++)
        uva__device_thread_poll(&s.device_thread, &polling->job[i % 2].item);
}

START_TEST(items_over_together_are_finished_when_all_were_looked_at)
{
    struct job jobs[2];
    struct polling polling = {{.run = both_poll}, jobs, 2};

    for (int i = 0; i < 2; i++)
        jobs[i] = (struct job){.item = {.poll = job_poll, .finish = job_finish},
                               .looks = 1,
                               .beside = &jobs[1 - i]};
    device_thread_fixture_open();
    ck_assert(uva__device_thread_send(&s.device_thread, &polling.command));
    await(2);
    device_thread_fixture_close();
}
END_TEST

START_TEST(the_end_asks_after_every_item_once_more)
{
    struct job job = {
        .item = {.poll = job_poll, .finish = job_finish, .has_callback = true},
        .until_end = true};
    struct polling polling = {{.run = polling_run}, &job, 1};

    device_thread_fixture_open();
    ck_assert(uva__device_thread_send(&s.device_thread, &polling.command));
    device_thread_fixture_close();
    ck_assert_int_ge(job.looked, 1);
}
END_TEST

START_TEST(gaps_grow_with_age_but_not_for_ever)
{
    struct job job = {.item = {.poll = job_poll, .finish = job_finish},
                      .looks = 150};
    struct polling polling = {{.run = polling_run}, &job, 1};

    device_thread_fixture_open();
    ck_assert(uva__device_thread_send(&s.device_thread, &polling.command));
    await(1);
    device_thread_fixture_close();
    ck_assert_int_ge(job.age_ns, 50000000); /* of gaps of 30 us: 4.5 ms */
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, commands_are_run_in_the_order_in_which_they_were_sent);
    tcase_add_test(tc, an_command_may_be_sent_again_from_its_run);
    tcase_add_test(tc,
                   what_was_sent_before_the_end_is_run_and_nothing_after_it);
    tcase_add_test(tc, it_may_end_itself);
    tcase_add_test(tc, it_has_settled_when_it_has_run_all_and_sleeps);
    tcase_add_test(tc, it_has_settled_when_it_has_ended_itself);
    tcase_add_loop_test(tc, a_thread_that_is_stuck_is_not_waited_for, 0, 2);
    tcase_add_test(tc, nobody_is_forgotten_who_sends_while_it_ends);
    tcase_add_test(tc, a_report_that_is_being_made_is_waited_for_at_the_end);
    tcase_add_loop_test(tc, a_item_is_asked_after_until_it_is_over, 0, 2);
    tcase_add_test(tc, the_end_asks_after_every_item_once_more);
    tcase_add_test(tc,
                   items_over_together_are_finished_when_all_were_looked_at);
    tcase_add_test(tc, gaps_grow_with_age_but_not_for_ever);
}

int main(void)
{
    TCase *tc = tcase_create("commands");

    tcase_set_timeout(tc, 60);
    add_tests(tc);
    return suite_main("device service", NULL, NULL, tc, NULL);
}
