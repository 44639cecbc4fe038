/* SPDX-License-Identifier: Apache-2.0 */
/* Which job runs where and when. That nothing more happens is seen from counts,
 * not by waiting. */
#define _GNU_SOURCE
#include "exec/lane.h"

#include <check.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "support/lane_rig.h"

/* ---- jobs --------------------------------------------------------------- */

START_TEST(every_job_runs_once)
{
    enum { EACH = 500 };
    struct rig rig;
    struct rig_work *works = calloc(3 * EACH, sizeof(*works));

    rig_open(&rig, NULL);
    for (int i = 0; i < 3 * EACH; i++) {
        works[i] = rig_work(&rig, false, NULL);
        if (i % 3 == 2)
            uva__lane_run_uncapped(&rig.jobs, &works[i].job);
        else
            uva__lane_submit(&rig.jobs, (enum uva_lane)(i % 3), &works[i].job);
    }
    rig_take_n(&rig.done, 3 * EACH);
    rig_close(&rig);
    for (int i = 0; i < 3 * EACH; i++)
        ck_assert_int_eq(works[i].runs, 1);
    free(works);
}
END_TEST

START_TEST(a_lane_grows_to_its_cap_and_not_beyond)
{
    struct rig rig;
    struct rig_work works[5];

    rig_open(&rig, &(struct uva_workers_options){.blocking_threads = 3});
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_BLOCKING), 0);
    for (int i = 0; i < 5; i++) {
        works[i] = rig_work(&rig, true, NULL);
        uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    rig_take_n(&rig.entered, 3);
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_BLOCKING), 3);
    ck_assert_int_eq(rig_value(&rig.entered), 0);
    ck_assert(uva__lane_is_wanted(&rig.jobs, UVA_LANE_BLOCKING));
    ck_assert(!uva__lane_is_wanted(&rig.jobs, UVA_LANE_COMPUTE));
    rig_post_n(&rig.leave, 5);
    rig_take_n(&rig.done, 5);
    ck_assert(!uva__lane_is_wanted(&rig.jobs, UVA_LANE_BLOCKING));
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_BLOCKING), 3);
    rig_close(&rig);
}
END_TEST

START_TEST(a_thread_that_sleeps_is_used_before_one_is_started)
{
    struct rig rig;
    struct rig_work work;

    rig_open(&rig, NULL);
    for (int i = 0; i < 200; i++) {
        work = rig_work(&rig, false, NULL);
        uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &work.job);
        rig_take(&rig.done);
        rig_await_sleepers(&rig, UVA_LANE_BLOCKING, 1);
    }
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_BLOCKING), 1);
    rig_close(&rig);
}
END_TEST

static void again_run(struct uva_job *job)
{
    struct rig_work *work = uva__container_of(job, struct rig_work, job);

    if (++work->runs < 1000)
        uva__lane_submit(&work->rig->jobs, UVA_LANE_COMPUTE, job);
    else
        sem_post(&work->rig->done);
}

START_TEST(a_job_may_submit_itself_again)
{
    struct rig rig;
    struct rig_work work = {.job.run = again_run, .rig = &rig};

    rig_open(&rig, NULL);
    uva__lane_submit(&rig.jobs, UVA_LANE_COMPUTE, &work.job);
    rig_take(&rig.done);
    rig_close(&rig);
    ck_assert_int_eq(work.runs, 1000);
}
END_TEST

START_TEST(queues_that_share_a_lane_take_turns)
{
    static const char *const names[] = {"x1", "x2", "x3", "y1", "y2"};
    struct uva_workers *workers;
    struct rig x, y;
    struct rig_work works[5], first;

    ck_assert_int_eq(
        uva_workers_new(&(struct uva_workers_options){.compute_threads = 1},
                        &workers, NULL),
        0);
    rig_share(&x, workers);
    rig_share(&y, workers);
    first = rig_work(&x, true, NULL);
    uva__lane_submit(&x.jobs, UVA_LANE_COMPUTE, &first.job);
    rig_take(&x.entered);
    for (int i = 0; i < 5; i++) {
        works[i] = rig_work(i < 3 ? &x : &y, false, names[i]);
        uva__lane_submit(&works[i].rig->jobs, UVA_LANE_COMPUTE, &works[i].job);
    }
    sem_post(&x.leave);
    rig_take_n(&x.done, 4);
    rig_take_n(&y.done, 2);
    ck_assert_str_eq(rig_story, "x1 y1 x2 y2 x3");
    uva_workers_free(workers);
    rig_close(&x);
    rig_close(&y);
}
END_TEST

START_TEST(a_job_that_has_not_begun_can_be_taken_back)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct rig rig;
    struct rig_work works[4];

    rig_open(&rig, &(struct uva_workers_options){.blocking_threads = 1});
    for (int i = 0; i < 4; i++) {
        works[i] = rig_work(&rig, i == 0, names[i]);
        uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    rig_take(&rig.entered);
    ck_assert(!uva__lane_take_back(&rig.jobs, &works[0].job));
    ck_assert(uva__lane_take_back(&rig.jobs, &works[3].job));
    ck_assert(uva__lane_take_back(&rig.jobs, &works[1].job));
    ck_assert(!uva__lane_take_back(&rig.jobs, &works[1].job));
    sem_post(&rig.leave);
    rig_take_n(&rig.done, 2);
    ck_assert_str_eq(rig_story, "a c");
    uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &works[1].job);
    rig_take(&rig.done);
    ck_assert_str_eq(rig_story, "a c b");
    rig_close(&rig);
}
END_TEST

START_TEST(taking_back_the_only_job_leaves_the_round)
{
    struct uva_workers *workers;
    struct rig x, y;
    struct rig_work a, b, c;

    ck_assert_int_eq(
        uva_workers_new(&(struct uva_workers_options){.compute_threads = 1},
                        &workers, NULL),
        0);
    rig_share(&x, workers);
    rig_share(&y, workers);
    a = rig_work(&y, true, "a");
    b = rig_work(&x, false, "b");
    c = rig_work(&y, false, "c");
    uva__lane_submit(&y.jobs, UVA_LANE_COMPUTE, &a.job);
    rig_take(&y.entered);
    uva__lane_submit(&x.jobs, UVA_LANE_COMPUTE, &b.job);
    uva__lane_submit(&y.jobs, UVA_LANE_COMPUTE, &c.job);
    ck_assert(uva__lane_take_back(&x.jobs, &b.job));
    rig_close(&x);
    sem_post(&y.leave);
    rig_take_n(&y.done, 2);
    ck_assert_str_eq(rig_story, "a c");
    rig_close(&y);
    uva_workers_free(workers);
}
END_TEST

/* ---- waiting inside a job ----------------------------------------------- */

static void waiter_run(struct uva_job *job)
{
    struct rig_work *work = uva__container_of(job, struct rig_work, job);
    struct rig *rig = work->rig;

    sem_post(&rig->entered);
    rig_take(&rig->leave);
    uva__lane_wait_begin();
    uva__lane_wait_begin();
    uva__lane_wait_end();
    rig_take(&rig->leave); /* posted by a job of the same lane */
    uva__lane_wait_end();
    sem_post(&rig->done);
}

static void helper_run(struct uva_job *job)
{
    struct rig_work *work = uva__container_of(job, struct rig_work, job);

    sem_post(&work->rig->leave);
    rig_take(&work->rig->done); /* the waiter has left its bracket */
    sem_post(&work->rig->entered);
}

START_TEST(a_wait_lets_one_more_thread_in_while_it_lasts)
{
    struct rig rig;
    struct rig_work waiter = {.job.run = waiter_run, .rig = &rig};
    struct rig_work helper = {.job.run = helper_run, .rig = &rig};

    rig_open(&rig, &(struct uva_workers_options){.blocking_threads = 1,
                                                 .idle_ms = INT32_MAX});
    uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &waiter.job);
    rig_take(&rig.entered);
    uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &helper.job);
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_BLOCKING), 1);
    sem_post(&rig.leave);
    rig_take(&rig.entered); /* the helper ran, and the waiter returned */
    rig_await_threads(&rig, UVA_LANE_BLOCKING, 1);
    rig_close(&rig);
}
END_TEST

START_TEST(a_wait_lets_jobs_in_that_come_later)
{
    struct rig rig;
    struct rig_work waiter = {.job.run = waiter_run, .rig = &rig};
    struct rig_work works[3];

    rig_open(&rig, &(struct uva_workers_options){.blocking_threads = 1});
    uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &waiter.job);
    sem_post(&rig.leave);
    for (int i = 0; i < 3; i++) {
        works[i] = rig_work(&rig, false, NULL);
        uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    rig_take_n(&rig.done, 3);
    sem_post(&rig.leave);
    rig_take(&rig.done);
    ck_assert_int_le(rig_threads(&rig, UVA_LANE_BLOCKING), 2);
    rig_close(&rig);
}
END_TEST

static void compute_run(struct uva_job *job)
{
    struct rig_work *work = uva__container_of(job, struct rig_work, job);

    work->runs = uva__lane_is_compute();
    uva__lane_wait_begin(); /* no effect in any lane but the blocking one */
    uva__lane_wait_end();
    sem_post(&work->rig->done);
}

START_TEST(only_compute_jobs_are_on_a_compute_worker)
{
    struct rig rig;
    struct rig_work works[3];

    rig_open(&rig, NULL);
    for (int i = 0; i < 3; i++)
        works[i] = (struct rig_work){.job.run = compute_run, .rig = &rig};
    uva__lane_submit(&rig.jobs, UVA_LANE_COMPUTE, &works[0].job);
    uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &works[1].job);
    uva__lane_run_uncapped(&rig.jobs, &works[2].job);
    rig_take_n(&rig.done, 3);
    ck_assert_int_eq(works[0].runs, 1);
    ck_assert_int_eq(works[1].runs, 0);
    ck_assert_int_eq(works[2].runs, 0);
    ck_assert(!uva__lane_is_compute());
    uva__lane_wait_begin();
    uva__lane_wait_end();
    rig_close(&rig);
}
END_TEST

/* ---- uncapped threads --------------------------------------------------- */

START_TEST(guests_run_whatever_the_lanes_do)
{
    struct rig rig;
    struct rig_work stuck, guests[5];

    rig_open(&rig, &(struct uva_workers_options){.blocking_threads = 1});
    stuck = rig_work(&rig, true, NULL);
    uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &stuck.job);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&rig.jobs), 0);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&rig.jobs), 0);
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_BLOCKING), 2);
    for (int i = 0; i < 5; i++) {
        guests[i] = rig_work(&rig, true, NULL);
        uva__lane_run_uncapped(&rig.jobs, &guests[i].job);
    }
    rig_take_n(&rig.entered, 6); /* all at once */
    ck_assert_int_eq(uva__lane_ensure_uncapped(&rig.jobs), 0);
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_BLOCKING), 7);
    rig_post_n(&rig.leave, 6);
    rig_take_n(&rig.done, 6);
    rig_close(&rig);
}
END_TEST

START_TEST(a_uncapped_that_was_made_sure_of_needs_no_thread)
{
    struct rig rig;
    struct rig_work works[2];

    rig_open(&rig, NULL);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&rig.jobs), 0);
    rig_threads_run_out(true);
    for (int i = 0; i < 2; i++) {
        works[i] = rig_work(&rig, true, NULL);
        uva__lane_run_uncapped(&rig.jobs, &works[i].job);
    }
    rig_take(&rig.entered);
    ck_assert_int_eq(rig_value(&rig.entered), 0);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&rig.jobs), EAGAIN);
    rig_post_n(&rig.leave, 2);
    rig_take_n(&rig.done, 2);
    rig_threads_run_out(false);
    rig_close(&rig);
}
END_TEST

/* ---- executors ---------------------------------------------------------- */

struct recording_executor {
    struct uva_job *jobs[4];
    int count;
    int answer; /* what submit returns */
};

static int recording_submit(void *ctx, enum uva_lane lane, struct uva_job *job)
{
    struct recording_executor *executor = ctx;

    ck_assert_int_eq((int)lane, job->lane);
    if (executor->answer == 0)
        executor->jobs[executor->count++] = job;
    return executor->answer;
}

START_TEST(an_executor_runs_the_jobs_it_accepts)
{
    struct recording_executor executor = {0};
    struct rig rig;
    struct rig_work works[2];

    rig_open(&rig, &(struct uva_workers_options){
                       .executor = {recording_submit, &executor}});
    for (int i = 0; i < 2; i++) {
        works[i] = (struct rig_work){.job.run = compute_run, .rig = &rig};
        ck_assert_int_eq(uva__lane_ensure(&rig.jobs, (enum uva_lane)i), 0);
        uva__lane_submit(&rig.jobs, (enum uva_lane)i, &works[i].job);
        ck_assert(!uva__lane_take_back(&rig.jobs, &works[i].job));
        ck_assert(uva__lane_is_wanted(&rig.jobs, (enum uva_lane)i));
    }
    ck_assert_int_eq(rig_value(&rig.done), 0);
    ck_assert_int_eq(executor.count, 2);
    uva_job_run(executor.jobs[0]);
    ck_assert(!uva__lane_is_compute());
    uva_job_run(executor.jobs[1]);
    ck_assert_int_eq(works[0].runs, 1); /* a compute worker meanwhile */
    ck_assert_int_eq(works[1].runs, 0);
    ck_assert_int_eq(rig_value(&rig.done), 2);
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_COMPUTE), 0);
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_BLOCKING), 0);
    rig_close(&rig);
}
END_TEST

START_TEST(what_an_executor_refuses_runs_on_a_thread_of_ours)
{
    struct recording_executor executor = {.answer = ENOMEM};
    struct rig rig;
    struct rig_work work, uncapped;

    rig_open(&rig, &(struct uva_workers_options){
                       .executor = {recording_submit, &executor}});
    work = rig_work(&rig, false, NULL);
    uva__lane_submit(&rig.jobs, UVA_LANE_COMPUTE, &work.job);
    rig_take(&rig.done);
    executor.answer = 0;
    uncapped = rig_work(&rig, false, NULL);
    uva__lane_run_uncapped(&rig.jobs, &uncapped.job);
    rig_take(&rig.done);
    ck_assert_int_eq(executor.count, 0);
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_COMPUTE), 1);
    rig_close(&rig);
}
END_TEST

START_TEST(what_nobody_takes_waits_for_a_later_submit)
{
    struct recording_executor executor = {.answer = EAGAIN};
    struct rig rig;
    struct rig_work refused, withdrawn, accepted;

    rig_open(&rig, &(struct uva_workers_options){
                       .executor = {recording_submit, &executor}});
    refused = rig_work(&rig, false, NULL);
    withdrawn = rig_work(&rig, false, NULL);
    accepted = rig_work(&rig, false, NULL);
    rig_threads_run_out(true);
    uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &withdrawn.job);
    uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &refused.job);
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_BLOCKING), 0);
    ck_assert(uva__lane_take_back(&rig.jobs, &withdrawn.job));
    rig_threads_run_out(false);
    executor.answer = 0;
    uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &accepted.job);
    rig_take(&rig.done);
    ck_assert_int_eq(refused.runs, 1);
    ck_assert_int_eq(executor.count, 1);
    uva_job_run(executor.jobs[0]);
    rig_close(&rig);
}
END_TEST

START_TEST(a_refused_job_waits_for_the_thread_that_is_busy)
{
    struct recording_executor executor = {.answer = EAGAIN};
    struct rig rig;
    struct rig_work works[3];

    rig_open(&rig, &(struct uva_workers_options){
                       .blocking_threads = 1,
                       .executor = {recording_submit, &executor}});
    for (int i = 0; i < 3; i++) {
        works[i] = rig_work(&rig, i == 0, NULL);
        uva__lane_submit(&rig.jobs, UVA_LANE_BLOCKING, &works[i].job);
        if (i == 0)
            rig_take(&rig.entered);
    }
    ck_assert_int_eq(rig_threads(&rig, UVA_LANE_BLOCKING), 1);
    sem_post(&rig.leave);
    rig_take_n(&rig.done, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(works[i].runs, 1);
    rig_close(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lane");

    TCase *jobs = tcase_create("jobs");
    tcase_add_test(jobs, every_job_runs_once);
    tcase_add_test(jobs, a_lane_grows_to_its_cap_and_not_beyond);
    tcase_add_test(jobs, a_thread_that_sleeps_is_used_before_one_is_started);
    tcase_add_test(jobs, a_job_may_submit_itself_again);
    tcase_add_test(jobs, queues_that_share_a_lane_take_turns);
    tcase_add_test(jobs, a_job_that_has_not_begun_can_be_taken_back);
    tcase_add_test(jobs, taking_back_the_only_job_leaves_the_round);
    suite_add_tcase(suite, jobs);

    TCase *waiting_inside_a_job = tcase_create("waiting inside a job");
    tcase_add_test(waiting_inside_a_job,
                   a_wait_lets_one_more_thread_in_while_it_lasts);
    tcase_add_test(waiting_inside_a_job, a_wait_lets_jobs_in_that_come_later);
    tcase_add_test(waiting_inside_a_job,
                   only_compute_jobs_are_on_a_compute_worker);
    suite_add_tcase(suite, waiting_inside_a_job);

    TCase *guests = tcase_create("uncapped threads");
    tcase_add_test(guests, guests_run_whatever_the_lanes_do);
    tcase_add_test(guests, a_uncapped_that_was_made_sure_of_needs_no_thread);
    suite_add_tcase(suite, guests);

    TCase *executors = tcase_create("executors");
    tcase_add_test(executors, an_executor_runs_the_jobs_it_accepts);
    tcase_add_test(executors,
                   what_an_executor_refuses_runs_on_a_thread_of_ours);
    tcase_add_test(executors, what_nobody_takes_waits_for_a_later_submit);
    tcase_add_test(executors, a_refused_job_waits_for_the_thread_that_is_busy);
    suite_add_tcase(suite, executors);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
