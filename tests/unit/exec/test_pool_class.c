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

#include "exec/lane.h"
#include "support/lane_rig.h"

/* ---- no thread can be created ------------------------------------------- */

START_TEST(a_builder_is_delivered_when_there_is_no_thread)
{
    struct rig rig;

    rig_open(&rig, NULL);
    rig_threads_run_out(true);
    ck_assert_int_eq(uva__lane_ensure(&rig.jobs, UVA_LANE_COMPUTE), EAGAIN);
    ck_assert_int_eq(uva__lane_ensure(&rig.jobs, UVA_LANE_BLOCKING), EAGAIN);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&rig.jobs), EAGAIN);
    rig_threads_run_out(false);
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_BLOCKING), 0);
    ck_assert_int_eq(uva__lane_ensure(&rig.jobs, UVA_LANE_BLOCKING), 0);
    ck_assert_int_eq(uva__lane_ensure(&rig.jobs, UVA_LANE_BLOCKING), 0);
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_BLOCKING), 1);
    rig_close(&rig);
}
END_TEST

START_TEST(jobs_wait_for_the_threads_there_are)
{
    struct rig rig;
    struct rig_work works[6];

    rig_open(&rig, NULL);
    ck_assert_int_eq(uva__lane_ensure(&rig.jobs, UVA_LANE_BLOCKING), 0);
    rig_threads_run_out(true);
    for (int i = 0; i < 4; i++) {
        works[i] = rig_work(&rig, true, NULL);
        uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    sem_post(&rig.leave);
    rig_take_n(&rig.entered, 2); /* one after the other */
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_BLOCKING), 1);
    rig_threads_run_out(false);
    for (int i = 4; i < 6; i++) {
        works[i] = rig_work(&rig, true, NULL);
        uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    rig_take_n(&rig.entered, 4); /* a thread that takes one job sees the rest */
    rig_post_n(&rig.leave, 5);
    rig_take_n(&rig.done, 6);
    rig_close(&rig);
}
END_TEST

struct relied {
    struct rig *rig;
    struct rig_work
        *timed_out; /* is submitted while a thread is being started */
    struct rig_memory *memory;
};

/* The sleeper is not woken for `late`, as a thread is being started. */
static void relied_hook(void *ctx)
{
    struct relied *relied = ctx;

    sem_post(&relied->rig->leave);
    rig_take_n(&relied->rig->done, 2);
    rig_await_sleepers(relied->rig, UVA_LANE_BLOCKING, 1);
    uva__lane_submit(&relied->rig->jobs, UVA_LANE_BLOCKING,
                     &relied->timed_out->job);
    relied->memory->left = 0;
}

START_TEST(a_start_that_fails_wakes_a_sleeper_in_its_place)
{
    struct rig_memory memory = {0};
    struct rig rig;
    struct rig_work works[3];
    struct relied relied = {&rig, &works[2], &memory};

    rig_open(&rig, &(struct uva_workers_options){
                       .idle_ms = INT32_MAX, /* no thread wakes by itself */
                       .allocator = rig_allocator(&memory)});
    for (int i = 0; i < 3; i++)
        works[i] = rig_work(&rig, i == 0, NULL);
    uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &works[0].job);
    rig_take(&rig.entered);
    memory.hook_ctx = &relied;
    memory.hook = relied_hook;
    uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &works[1].job);
    rig_take(&rig.done);
    ck_assert_int_eq(works[2].runs, 1);
    rig_close(&rig);
    ck_assert_int_eq(memory.live, 0);
}
END_TEST

static void *ensure_main(void *arg)
{
    struct rig *rig = arg;

    sem_post(&rig->entered);
    return uva__lane_ensure(&rig->jobs, UVA_LANE_COMPUTE) == 0 ? rig : NULL;
}

struct pair {
    struct rig *second;
    pthread_t thread;
};

static void pair_hook(void *ctx)
{
    struct pair *pair = ctx;

    ck_assert_int_eq(
        pthread_create(&pair->thread, NULL, ensure_main, pair->second), 0);
    rig_take(&pair->second->entered);
    sched_yield();
}

START_TEST(two_that_make_sure_at_once_start_one_thread)
{
    struct rig_memory memory = {0};
    struct uva_workers_options options = {.compute_threads = 1,
                                          .allocator = rig_allocator(&memory)};
    struct uva_workers *workers;
    struct rig x, y;
    struct pair pair = {.second = &y};
    void *result;

    ck_assert_int_eq(uva_workers_new(&options, &workers, NULL), 0);
    rig_share(&x, workers);
    rig_share(&y, workers);
    memory.hook_ctx = &pair;
    memory.hook = pair_hook;
    ck_assert_int_eq(uva__lane_ensure(&x.jobs, UVA_LANE_COMPUTE), 0);
    pthread_join(pair.thread, &result);
    ck_assert_ptr_nonnull(result);
    ck_assert_int_eq(rig_threads(&x, UVA_LANE_COMPUTE), 1);
    rig_close(&x);
    rig_close(&y);
    uva_workers_free(workers);
}
END_TEST

/* ---- idle threads ------------------------------------------------------- */

START_TEST(threads_without_work_leave)
{
    struct rig rig;

    rig_open(&rig, &(struct uva_workers_options){.idle_ms = 1});
    rig_burst(&rig, 8);
    rig_await_threads(&rig, UVA_LANE_BLOCKING, 0);
    rig_burst(&rig, 3);
    rig_close(&rig);
}
END_TEST

/* A thread of the other lane that starts and exits is the clock. */
static void rig_let_time_pass(struct rig *rig)
{
    struct rig_work work;

    for (int i = 0; i < 5; i++) {
        work = rig_work(rig, false, NULL);
        uva__lane_submit(&rig->jobs, UVA_LANE_COMPUTE, &work.job);
        rig_take(&rig->entered);
        rig_take(&rig->done);
        rig_await_threads(rig, UVA_LANE_COMPUTE, 0);
    }
}

START_TEST(a_promised_thread_stays_while_its_queue_lives)
{
    struct uva_workers_options options = {.idle_ms = 1};
    struct uva_workers *workers;
    struct rig x, y;
    struct rig_work work;

    ck_assert_int_eq(uva_workers_new(&options, &workers, NULL), 0);
    rig_share(&x, workers);
    rig_share(&y, workers);
    ck_assert_int_eq(uva__lane_ensure(&x.jobs, UVA_LANE_BLOCKING), 0);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&x.jobs), 0);
    rig_burst(&x, 4);
    rig_await_threads(&x, UVA_LANE_BLOCKING, 2);
    rig_let_time_pass(&x);
    ck_assert_int_eq(rig_threads(&x, UVA_LANE_BLOCKING), 2);
    rig_threads_run_out(true);
    work = rig_work(&x, false, NULL);
    uva__lane_submit(&x.jobs, UVA_LANE_BLOCKING, &work.job);
    rig_take(&x.done);
    rig_threads_run_out(false);
    rig_close(&x);
    rig_await_threads(&y, UVA_LANE_BLOCKING, 0);
    rig_close(&y);
    uva_workers_free(workers);
}
END_TEST

START_TEST(a_job_that_meets_a_leaving_thread_still_runs)
{
    struct rig rig;
    struct rig_work work;

    rig_open(&rig, &(struct uva_workers_options){.idle_ms = 1});
    for (int i = 0; i < 500; i++) {
        work = rig_work(&rig, false, NULL);
        uva__lane_submit(&rig.jobs, UVA_LANE_COMPUTE, &work.job);
        rig_take(&rig.done);
        for (int j = 0; j < i * 4 && rig_threads(&rig, UVA_LANE_COMPUTE) > 0;
             j++)
            sched_yield();
    }
    rig_close(&rig);
}
END_TEST

/* ---- what a thread is like ---------------------------------------------- */

struct portrait {
    struct uva_job job;
    sem_t *done;
    char name[16];
    sigset_t blocked;
    int cancel_state;
};

static void portrait_run(struct uva_job *job)
{
    struct portrait *portrait = uva__container_of(job, struct portrait, job);

    pthread_getname_np(pthread_self(), portrait->name, sizeof(portrait->name));
    pthread_sigmask(SIG_SETMASK, NULL, &portrait->blocked);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &portrait->cancel_state);
    sem_post(portrait->done);
}

static struct portrait portrait_take(const char *name, enum uva_lane lane)
{
    struct rig rig;
    struct portrait portrait = {.job.run = portrait_run, .done = &rig.done};

    rig_open(&rig, &(struct uva_workers_options){.name = name});
    uva__lane_submit(&rig.jobs, lane, &portrait.job);
    rig_take(&rig.done);
    rig_close(&rig);
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

static void hooked_run(struct uva_job *job)
{
    struct rig_work *work = uva__container_of(job, struct rig_work, job);

    work->runs = rig_hooked;
    sem_post(&work->rig->done);
}

START_TEST(hooks_are_a_threads_first_and_last_act)
{
    struct rig_hooks hooks = {0};
    struct rig rig;
    struct rig_work works[3];

    rig_open(&rig, &(struct uva_workers_options){.thread_begin = rig_hook_begin,
                                                 .thread_end = rig_hook_end,
                                                 .ctx = &hooks});
    for (int i = 0; i < 3; i++)
        works[i] = (struct rig_work){.job.run = hooked_run, .rig = &rig};
    uva__lane_submit(&rig.jobs, UVA_LANE_COMPUTE, &works[0].job);
    uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &works[1].job);
    uva__lane_run_uncapped(&rig.jobs, &works[2].job);
    rig_take_n(&rig.done, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(works[i].runs, 1);
    rig_close(&rig);
    ck_assert_int_eq(hooks.begun[UVA_LANE_COMPUTE], 1);
    ck_assert_int_eq(hooks.begun[UVA_LANE_BLOCKING],
                     2); /* and an uncapped one */
    ck_assert_int_eq(hooks.ended[UVA_LANE_COMPUTE], 1);
    ck_assert_int_eq(hooks.ended[UVA_LANE_BLOCKING], 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool class");

    TCase *no_thread_to_be_had = tcase_create("no thread can be created");
    tcase_add_test(no_thread_to_be_had,
                   a_builder_is_delivered_when_there_is_no_thread);
    tcase_add_test(no_thread_to_be_had, jobs_wait_for_the_threads_there_are);
    tcase_add_test(no_thread_to_be_had,
                   a_start_that_fails_wakes_a_sleeper_in_its_place);
    tcase_add_test(no_thread_to_be_had,
                   two_that_make_sure_at_once_start_one_thread);
    suite_add_tcase(suite, no_thread_to_be_had);

    TCase *idle_threads = tcase_create("idle threads");
    tcase_add_test(idle_threads, threads_without_work_leave);
    tcase_add_test(idle_threads, a_promised_thread_stays_while_its_queue_lives);
    tcase_add_test(idle_threads, a_job_that_meets_a_leaving_thread_still_runs);
    suite_add_tcase(suite, idle_threads);

    TCase *what_a_thread_is_like = tcase_create("what a thread is like");
    tcase_add_test(what_a_thread_is_like, threads_have_names);
    tcase_add_test(what_a_thread_is_like,
                   threads_take_no_signals_and_no_cancel);
    tcase_add_test(what_a_thread_is_like,
                   hooks_are_a_threads_first_and_last_act);
    suite_add_tcase(suite, what_a_thread_is_like);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
