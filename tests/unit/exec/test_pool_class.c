/* SPDX-License-Identifier: Apache-2.0 */
/* How threads start, fail to start, sleep and leave, and which properties they
 * have. Whether one has exited is polled. */
#define _GNU_SOURCE
#include "exec/pool.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "exec/lane.h"
#include "support/check_suite.h"
#include "support/lane_fixture.h"

/* ---- no thread can be created ------------------------------------------- */

START_TEST(a_builder_is_delivered_when_there_is_no_thread)
{
    struct lane_fixture lanes;

    lane_open(&lanes, NULL);
    lane_threads_run_out(true);
    ck_assert_int_eq(uva__lane_ensure(&lanes.jobs, UVA_LANE_COMPUTE), ENOMEM);
    ck_assert_int_eq(uva__lane_ensure(&lanes.jobs, UVA_LANE_BLOCKING), ENOMEM);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&lanes.jobs), ENOMEM);
    lane_threads_run_out(false);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 0);
    ck_assert_int_eq(uva__lane_ensure(&lanes.jobs, UVA_LANE_BLOCKING), 0);
    ck_assert_int_eq(uva__lane_ensure(&lanes.jobs, UVA_LANE_BLOCKING), 0);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 1);
    lane_close(&lanes);
}
END_TEST

START_TEST(jobs_wait_for_the_threads_there_are)
{
    struct lane_fixture lanes;
    struct lane_work works[6];

    lane_open(&lanes, NULL);
    ck_assert_int_eq(uva__lane_ensure(&lanes.jobs, UVA_LANE_BLOCKING), 0);
    lane_threads_run_out(true);
    for (int i = 0; i < 4; i++) {
        works[i] = lane_work(&lanes, true, NULL);
        uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    sem_post(&lanes.leave);
    lane_take_n(&lanes.entered, 2); /* one after the other */
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 1);
    lane_threads_run_out(false);
    for (int i = 4; i < 6; i++) {
        works[i] = lane_work(&lanes, true, NULL);
        uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    lane_take_n(&lanes.entered,
                4); /* a thread that takes one job sees the rest */
    lane_post_n(&lanes.leave, 5);
    lane_take_n(&lanes.done, 6);
    lane_close(&lanes);
}
END_TEST

struct relied {
    struct lane_fixture *lanes;
    struct lane_work
        *timed_out; /* is submitted while a thread is being started */
    struct lane_memory *memory;
};

/* The sleeper is not woken for `late`, as a thread is being started. */
static void relied_hook(void *ctx)
{
    struct relied *relied = ctx;

    sem_post(&relied->lanes->leave);
    lane_take_n(&relied->lanes->done, 2);
    lane_await_sleepers(relied->lanes, UVA_LANE_BLOCKING, 1);
    uva__lane_submit(&relied->lanes->jobs, UVA_LANE_BLOCKING,
                     &relied->timed_out->job);
    relied->memory->left = 0;
}

START_TEST(a_start_that_fails_wakes_a_sleeper_in_its_place)
{
    struct lane_memory memory = {0};
    struct lane_fixture lanes;
    struct lane_work works[3];
    struct relied relied = {&lanes, &works[2], &memory};

    lane_open_limited(
        &lanes,
        &(struct uva_workers_options){.allocator = lane_allocator(&memory)},
        INT32_MAX, 256); /* no thread wakes by itself */
    for (int i = 0; i < 3; i++)
        works[i] = lane_work(&lanes, i == 0, NULL);
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &works[0].job);
    lane_take(&lanes.entered);
    memory.hook_ctx = &relied;
    memory.hook = relied_hook;
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &works[1].job);
    lane_take(&lanes.done);
    ck_assert_int_eq(works[2].runs, 1);
    lane_close(&lanes);
    ck_assert_int_eq(memory.live, 0);
}
END_TEST

static void *ensure_main(void *arg)
{
    struct lane_fixture *lanes = arg;

    sem_post(&lanes->entered);
    return uva__lane_ensure(&lanes->jobs, UVA_LANE_COMPUTE) == 0 ? lanes : NULL;
}

struct pair {
    struct lane_fixture *second;
    pthread_t thread;
};

static void pair_hook(void *ctx)
{
    struct pair *pair = ctx;

    ck_assert_int_eq(
        pthread_create(&pair->thread, NULL, ensure_main, pair->second), 0);
    lane_take(&pair->second->entered);
    sched_yield();
}

START_TEST(two_that_make_sure_at_once_start_one_thread)
{
    struct lane_memory memory = {0};
    struct uva_workers_options options = {.compute_threads = 1,
                                          .allocator = lane_allocator(&memory)};
    struct uva_workers *workers;
    struct lane_fixture x, y;
    struct pair pair = {.second = &y};
    void *result;

    ck_assert_int_eq(uva_workers_new(&options, &workers, NULL), 0);
    lane_share(&x, workers);
    lane_share(&y, workers);
    memory.hook_ctx = &pair;
    memory.hook = pair_hook;
    ck_assert_int_eq(uva__lane_ensure(&x.jobs, UVA_LANE_COMPUTE), 0);
    pthread_join(pair.thread, &result);
    ck_assert_ptr_nonnull(result);
    ck_assert_int_eq(lane_threads(&x, UVA_LANE_COMPUTE), 1);
    lane_close(&x);
    lane_close(&y);
    uva_workers_release(workers);
}
END_TEST

/* ---- idle threads ------------------------------------------------------- */

START_TEST(threads_without_work_leave)
{
    struct lane_fixture lanes;

    lane_open_limited(&lanes, NULL, 1, 256);
    lane_burst(&lanes, 8);
    lane_await_threads(&lanes, UVA_LANE_BLOCKING, 0);
    lane_burst(&lanes, 3);
    lane_close(&lanes);
}
END_TEST

/* A thread of the other lane that starts and exits is the clock. */
static void lane_let_time_pass(struct lane_fixture *lanes)
{
    struct lane_work work;

    for (int i = 0; i < 5; i++) {
        work = lane_work(lanes, false, NULL);
        uva__lane_submit(&lanes->jobs, UVA_LANE_COMPUTE, &work.job);
        lane_take(&lanes->entered);
        lane_take(&lanes->done);
        lane_await_threads(lanes, UVA_LANE_COMPUTE, 0);
    }
}

START_TEST(a_promised_thread_stays_while_its_queue_lives)
{
    struct uva_workers *workers;
    struct lane_fixture x, y;
    struct lane_work work;

    ck_assert_int_eq(uva_workers_new(NULL, &workers, NULL), 0);
    uva__workers_limit(workers, 1, 256);
    lane_share(&x, workers);
    lane_share(&y, workers);
    ck_assert_int_eq(uva__lane_ensure(&x.jobs, UVA_LANE_BLOCKING), 0);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&x.jobs), 0);
    lane_burst(&x, 4);
    lane_await_threads(&x, UVA_LANE_BLOCKING, 2);
    lane_let_time_pass(&x);
    ck_assert_int_eq(lane_threads(&x, UVA_LANE_BLOCKING), 2);
    lane_threads_run_out(true);
    work = lane_work(&x, false, NULL);
    uva__lane_submit(&x.jobs, UVA_LANE_BLOCKING, &work.job);
    lane_take(&x.done);
    lane_threads_run_out(false);
    lane_close(&x);
    lane_await_threads(&y, UVA_LANE_BLOCKING, 0);
    lane_close(&y);
    uva_workers_release(workers);
}
END_TEST

START_TEST(a_job_that_meets_a_leaving_thread_still_runs)
{
    struct lane_fixture lanes;
    struct lane_work work;

    lane_open_limited(&lanes, NULL, 1, 256);
    for (int i = 0; i < 500; i++) {
        work = lane_work(&lanes, false, NULL);
        uva__lane_submit(&lanes.jobs, UVA_LANE_COMPUTE, &work.job);
        lane_take(&lanes.done);
        for (int j = 0; j < i * 4 && lane_threads(&lanes, UVA_LANE_COMPUTE) > 0;
             j++)
            sched_yield();
    }
    lane_close(&lanes);
}
END_TEST

/* ---- properties of a thread --------------------------------------------- */

struct portrait {
    struct uva__job job;
    sem_t *done;
    char name[16];
    sigset_t blocked;
    int cancel_state;
};

static void portrait_run(struct uva__job *job)
{
    struct portrait *portrait = uva__container_of(job, struct portrait, job);

    pthread_getname_np(pthread_self(), portrait->name, sizeof(portrait->name));
    pthread_sigmask(SIG_SETMASK, NULL, &portrait->blocked);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &portrait->cancel_state);
    sem_post(portrait->done);
}

static struct portrait portrait_take(const char *name, enum uva_lane lane)
{
    struct lane_fixture lanes;
    struct portrait portrait = {.job.run = portrait_run, .done = &lanes.done};

    lane_open(&lanes, &(struct uva_workers_options){.name = name});
    uva__lane_submit(&lanes.jobs, lane, &portrait.job);
    lane_take(&lanes.done);
    lane_close(&lanes);
    return portrait;
}

START_TEST(threads_have_names)
{
    ck_assert_str_eq(portrait_take("db", UVA_LANE_COMPUTE).name, "uva-db-c0");
    ck_assert_str_eq(portrait_take(NULL, UVA_LANE_BLOCKING).name, "uva-b0");
    ck_assert_str_eq(
        portrait_take("a name far too long", UVA_LANE_BLOCKING).name,
        "uva-a name f-b0");
}
END_TEST

START_TEST(threads_take_no_signals_and_no_cancel)
{
    struct portrait portrait = portrait_take("db", UVA_LANE_COMPUTE);
    sigset_t mine;

    ck_assert(sigismember(&portrait.blocked, SIGTERM));
    ck_assert(sigismember(&portrait.blocked, SIGCHLD));
    ck_assert(!sigismember(&portrait.blocked, SIGSEGV));
    ck_assert_int_eq(portrait.cancel_state, PTHREAD_CANCEL_DISABLE);
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    ck_assert(!sigismember(&mine, SIGTERM));
}
END_TEST

static void hooked_run(struct uva__job *job)
{
    struct lane_work *work = uva__container_of(job, struct lane_work, job);

    work->runs = lane_hooked;
    sem_post(&work->lanes->done);
}

START_TEST(hooks_are_a_threads_first_and_last_act)
{
    struct lane_hooks hooks = {0};
    struct lane_fixture lanes;
    struct lane_work works[3];

    lane_open(&lanes,
              &(struct uva_workers_options){.thread_begin = lane_hook_begin,
                                            .thread_end = lane_hook_end,
                                            .ctx = &hooks});
    for (int i = 0; i < 3; i++)
        works[i] = (struct lane_work){.job.run = hooked_run, .lanes = &lanes};
    uva__lane_submit(&lanes.jobs, UVA_LANE_COMPUTE, &works[0].job);
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &works[1].job);
    uva__lane_run_uncapped(&lanes.jobs, &works[2].job);
    lane_take_n(&lanes.done, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(works[i].runs, 1);
    lane_close(&lanes);
    ck_assert_int_eq(hooks.begun[UVA_LANE_COMPUTE], 1);
    ck_assert_int_eq(hooks.begun[UVA_LANE_BLOCKING],
                     2); /* and an uncapped one */
    ck_assert_int_eq(hooks.ended[UVA_LANE_COMPUTE], 1);
    ck_assert_int_eq(hooks.ended[UVA_LANE_BLOCKING], 2);
}
END_TEST

int main(void)
{
    TCase *no_thread_to_be_had = tcase_create("no thread can be created");
    tcase_add_test(no_thread_to_be_had,
                   a_builder_is_delivered_when_there_is_no_thread);
    tcase_add_test(no_thread_to_be_had, jobs_wait_for_the_threads_there_are);
    tcase_add_test(no_thread_to_be_had,
                   a_start_that_fails_wakes_a_sleeper_in_its_place);
    tcase_add_test(no_thread_to_be_had,
                   two_that_make_sure_at_once_start_one_thread);

    TCase *idle_threads = tcase_create("idle threads");
    tcase_add_test(idle_threads, threads_without_work_leave);
    tcase_add_test(idle_threads, a_promised_thread_stays_while_its_queue_lives);
    tcase_add_test(idle_threads, a_job_that_meets_a_leaving_thread_still_runs);

    TCase *what_a_thread_is_like = tcase_create("what a thread is like");
    tcase_add_test(what_a_thread_is_like, threads_have_names);
    tcase_add_test(what_a_thread_is_like,
                   threads_take_no_signals_and_no_cancel);
    tcase_add_test(what_a_thread_is_like,
                   hooks_are_a_threads_first_and_last_act);

    return suite_main("crew", NULL, NULL, no_thread_to_be_had, idle_threads,
                      what_a_thread_is_like, NULL);
}
