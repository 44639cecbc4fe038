/* SPDX-License-Identifier: Apache-2.0 */
/* Which job runs where and when. That no more calls come is seen from counts,
 * not by waiting. */
#define _GNU_SOURCE
#include "exec/lane.h"

#include <check.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/lane_fixture.h"

/* ---- jobs --------------------------------------------------------------- */

START_TEST(every_job_runs_once)
{
    enum { EACH = 500 };
    struct lane_fixture lanes;
    struct lane_work *works = calloc(3 * EACH, sizeof(*works));

    lane_open(&lanes, NULL);
    for (int i = 0; i < 3 * EACH; i++) {
        works[i] = lane_work(&lanes, false, NULL);
        if (i % 3 == 2)
            uva__lane_run_uncapped(&lanes.jobs, &works[i].job);
        else
            uva__lane_submit(&lanes.jobs, (enum uva_lane)(i % 3),
                             &works[i].job);
    }
    lane_take_n(&lanes.done, 3 * EACH);
    lane_close(&lanes);
    for (int i = 0; i < 3 * EACH; i++)
        ck_assert_int_eq(works[i].runs, 1);
    free(works);
}
END_TEST

START_TEST(a_lane_grows_to_its_cap_and_not_beyond)
{
    struct lane_fixture lanes;
    struct lane_work works[5];

    lane_open(&lanes, &(struct uva_workers_options){.blocking_threads = 3});
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 0);
    for (int i = 0; i < 5; i++) {
        works[i] = lane_work(&lanes, true, NULL);
        uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    lane_take_n(&lanes.entered, 3);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 3);
    ck_assert_int_eq(lane_value(&lanes.entered), 0);
    ck_assert(uva__lane_is_wanted(&lanes.jobs, UVA_LANE_BLOCKING));
    ck_assert(!uva__lane_is_wanted(&lanes.jobs, UVA_LANE_COMPUTE));
    lane_post_n(&lanes.leave, 5);
    lane_take_n(&lanes.done, 5);
    ck_assert(!uva__lane_is_wanted(&lanes.jobs, UVA_LANE_BLOCKING));
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 3);
    lane_close(&lanes);
}
END_TEST

static void begin_held(void *ctx, enum uva_lane lane)
{
    (void)lane;
    lane_take(ctx);
}

START_TEST(a_thread_is_started_when_the_one_before_it_has_taken_a_job)
{
    enum { JOBS = 4 };
    struct lane_fixture lanes;
    struct lane_work works[JOBS];
    sem_t begin;

    ck_assert_int_eq(sem_init(&begin, 0, 0), 0);
    lane_open(&lanes, &(struct uva_workers_options){.thread_begin = begin_held,
                                                    .ctx = &begin});
    for (int i = 0; i < JOBS; i++) {
        works[i] = lane_work(&lanes, true, NULL);
        uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    for (int i = 1; i <= JOBS; i++) {
        ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), i);
        lane_post_n(&begin, 1);
        lane_take(&lanes.entered);
    }
    lane_post_n(&lanes.leave, JOBS);
    lane_take_n(&lanes.done, JOBS);
    lane_close(&lanes);
    (void)sem_destroy(&begin);
}
END_TEST

/* A job that comes later may have the thread that is there. */
START_TEST(a_job_that_is_given_up_waits_though_a_thread_has_none)
{
    struct lane_fixture lanes;
    struct lane_work work;
    sem_t begin;

    ck_assert_int_eq(sem_init(&begin, 0, 0), 0);
    lane_open(&lanes, &(struct uva_workers_options){.thread_begin = begin_held,
                                                    .ctx = &begin});
    work = lane_work(&lanes, false, NULL);
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &work.job);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 1);
    ck_assert_int_eq(
        uva__lane_give_up(&lanes.jobs, UVA_LANE_BLOCKING, &work.job),
        UVA__JOB_WAITING);
    ck_assert(uva__lane_take_back(&lanes.jobs, &work.job));
    lane_post_n(&begin, 1);
    lane_close(&lanes);
    (void)sem_destroy(&begin);
}
END_TEST

START_TEST(a_thread_that_sleeps_is_used_before_one_is_started)
{
    struct lane_fixture lanes;
    struct lane_work work;

    lane_open(&lanes, NULL);
    for (int i = 0; i < 200; i++) {
        work = lane_work(&lanes, false, NULL);
        uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &work.job);
        lane_take(&lanes.done);
        lane_await_sleepers(&lanes, UVA_LANE_BLOCKING, 1);
    }
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 1);
    lane_close(&lanes);
}
END_TEST

static void again_run(struct uva__job *job)
{
    struct lane_work *work = uva__container_of(job, struct lane_work, job);

    if (++work->runs < 1000)
        uva__lane_submit(&work->lanes->jobs, UVA_LANE_COMPUTE, job);
    else
        sem_post(&work->lanes->done);
}

START_TEST(a_job_may_submit_itself_again)
{
    struct lane_fixture lanes;
    struct lane_work work = {.job.run = again_run, .lanes = &lanes};

    lane_open(&lanes, NULL);
    uva__lane_submit(&lanes.jobs, UVA_LANE_COMPUTE, &work.job);
    lane_take(&lanes.done);
    lane_close(&lanes);
    ck_assert_int_eq(work.runs, 1000);
}
END_TEST

START_TEST(queues_that_share_a_lane_take_turns)
{
    static const char *const names[] = {"x1", "x2", "x3", "y1", "y2"};
    struct uva_workers *workers;
    struct lane_fixture x, y;
    struct lane_work works[5], first;

    ck_assert_int_eq(
        uva_workers_new(&(struct uva_workers_options){.compute_threads = 1},
                        &workers, NULL),
        0);
    lane_share(&x, workers);
    lane_share(&y, workers);
    first = lane_work(&x, true, NULL);
    uva__lane_submit(&x.jobs, UVA_LANE_COMPUTE, &first.job);
    lane_take(&x.entered);
    for (int i = 0; i < 5; i++) {
        works[i] = lane_work(i < 3 ? &x : &y, false, names[i]);
        uva__lane_submit(&works[i].lanes->jobs, UVA_LANE_COMPUTE,
                         &works[i].job);
    }
    sem_post(&x.leave);
    lane_take_n(&x.done, 4);
    lane_take_n(&y.done, 2);
    ck_assert_str_eq(lane_order, "x1 y1 x2 y2 x3");
    uva_workers_release(workers);
    lane_close(&x);
    lane_close(&y);
}
END_TEST

START_TEST(a_job_that_has_not_begun_can_be_taken_back)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct lane_fixture lanes;
    struct lane_work works[4];

    lane_open(&lanes, &(struct uva_workers_options){.blocking_threads = 1});
    for (int i = 0; i < 4; i++) {
        works[i] = lane_work(&lanes, i == 0, names[i]);
        uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    lane_take(&lanes.entered);
    ck_assert(!uva__lane_take_back(&lanes.jobs, &works[0].job));
    ck_assert(uva__lane_take_back(&lanes.jobs, &works[3].job));
    ck_assert(uva__lane_take_back(&lanes.jobs, &works[1].job));
    ck_assert(!uva__lane_take_back(&lanes.jobs, &works[1].job));
    sem_post(&lanes.leave);
    lane_take_n(&lanes.done, 2);
    ck_assert_str_eq(lane_order, "a c");
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &works[1].job);
    lane_take(&lanes.done);
    ck_assert_str_eq(lane_order, "a c b");
    lane_close(&lanes);
}
END_TEST

START_TEST(taking_back_the_only_job_leaves_the_round)
{
    struct uva_workers *workers;
    struct lane_fixture x, y;
    struct lane_work a, b, c;

    ck_assert_int_eq(
        uva_workers_new(&(struct uva_workers_options){.compute_threads = 1},
                        &workers, NULL),
        0);
    lane_share(&x, workers);
    lane_share(&y, workers);
    a = lane_work(&y, true, "a");
    b = lane_work(&x, false, "b");
    c = lane_work(&y, false, "c");
    uva__lane_submit(&y.jobs, UVA_LANE_COMPUTE, &a.job);
    lane_take(&y.entered);
    uva__lane_submit(&x.jobs, UVA_LANE_COMPUTE, &b.job);
    uva__lane_submit(&y.jobs, UVA_LANE_COMPUTE, &c.job);
    ck_assert(uva__lane_take_back(&x.jobs, &b.job));
    lane_close(&x);
    sem_post(&y.leave);
    lane_take_n(&y.done, 2);
    ck_assert_str_eq(lane_order, "a c");
    lane_close(&y);
    uva_workers_release(workers);
}
END_TEST

/* ---- the order ---------------------------------------------------------- */

/* A queue with one blocking thread, which a job holds. */
static void order_open(struct lane_fixture *lanes, struct lane_work *holder)
{
    lane_open(lanes, &(struct uva_workers_options){.blocking_threads = 1});
    *holder = lane_work(lanes, true, NULL);
    uva__lane_submit(&lanes->jobs, UVA_LANE_BLOCKING, &holder->job);
    lane_take(&lanes->entered);
}

/* Runs the `n` jobs that are queued, one after the other. */
static void order_run(struct lane_fixture *lanes, int n)
{
    lane_order[0] = '\0';
    sem_post(&lanes->leave);
    lane_take_n(&lanes->done, n + 1);
}

/* The places by their first letter: new, waited for, read-ahead. */
static void order_submit(struct lane_fixture *lanes, struct lane_work *work,
                         const char *name, struct uva__atomic64 *awaited)
{
    *work = lane_work(lanes, false, name);
    work->job.turns = name[0] == 'n' ? 0 : UVA__JOB_NEW_TURNS;
    work->job.awaited = name[0] == 'a' ? awaited : NULL;
    uva__lane_submit(&lanes->jobs, UVA_LANE_BLOCKING, &work->job);
}

START_TEST(what_a_consumer_waits_for_goes_before_read_ahead)
{
    static const char *const names[] = {"a1", "w1", "a2", "n1", "w2", "n2"};
    struct uva__atomic64 awaited = {0};
    struct lane_fixture lanes;
    struct lane_work holder, works[6];

    order_open(&lanes, &holder);
    for (int i = 0; i < 6; i++)
        order_submit(&lanes, &works[i], names[i], &awaited);
    order_run(&lanes, 6);
    ck_assert_str_eq(lane_order, "n1 n2 w1 w2 a1 a2");
    lane_close(&lanes);
}
END_TEST

START_TEST(read_ahead_has_one_turn_in_nine)
{
    struct uva__atomic64 awaited = {0};
    struct lane_fixture lanes;
    struct lane_work holder, works[22];

    order_open(&lanes, &holder);
    order_submit(&lanes, &works[0], "a1", &awaited);
    order_submit(&lanes, &works[1], "a2", &awaited);
    for (int i = 2; i < 22; i++)
        order_submit(&lanes, &works[i], i % 2 == 0 ? "w" : "n", &awaited);
    order_run(&lanes, 22);
    ck_assert_str_eq(lane_order,
                     "n n n n n n n n a1 w n n w w w w w a2 w w w w");
    lane_close(&lanes);
}
END_TEST

START_TEST(read_ahead_that_a_consumer_begins_to_wait_for_is_raised)
{
    struct uva__atomic64 awaited[4] = {{0}};
    struct lane_fixture lanes;
    struct lane_work holder, works[4];

    order_open(&lanes, &holder);
    ck_assert(!uva__awaited_want(&awaited[3], 1)); /* not queued */
    order_submit(&lanes, &works[0], "a1", &awaited[0]);
    order_submit(&lanes, &works[1], "w1", NULL);
    order_submit(&lanes, &works[2], "a2", &awaited[2]);
    order_submit(&lanes, &works[3], "a3", &awaited[3]);
    ck_assert(uva__awaited_want(&awaited[2], 1));
    uva__lane_raise(&lanes.jobs, UVA_LANE_BLOCKING, &works[2].job);
    ck_assert(!uva__awaited_want(&awaited[2], 1)); /* once */
    uva__lane_raise(&lanes.jobs, UVA_LANE_BLOCKING, &works[1].job);
    order_run(&lanes, 4);
    ck_assert_str_eq(lane_order, "w1 a3 a2 a1");
    uva__lane_raise(&lanes.jobs, UVA_LANE_BLOCKING,
                    &works[2].job); /* it has run: no effect */
    ck_assert(!uva__lane_is_wanted(&lanes.jobs, UVA_LANE_BLOCKING));
    ck_assert(!uva__awaited_want(&awaited[0], 1)); /* not queued any more */
    lane_close(&lanes);
}
END_TEST

START_TEST(a_job_is_new_for_its_first_turns)
{
    struct lane_fixture lanes;
    struct lane_work holder, again, old;

    order_open(&lanes, &holder);
    again = lane_work(&lanes, false, "n");
    for (int i = 0; i <= UVA__JOB_NEW_TURNS; i++) {
        order_submit(&lanes, &old, "w", NULL);
        uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &again.job);
        order_run(&lanes, 2);
        ck_assert_str_eq(lane_order, i < UVA__JOB_NEW_TURNS ? "n w" : "w n");
        lane_take_n(&lanes.entered, 2);
        uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &holder.job);
        lane_take(&lanes.entered);
    }
    order_run(&lanes, 0);
    lane_close(&lanes);
}
END_TEST

START_TEST(priorities_order_the_jobs_of_one_queue)
{
    static const int32_t priorities[] = {-7, 0, INT32_MAX, INT32_MIN, 1, 0};
    static const char *const names[] = {"w1", "w2", "w3", "w4", "w5", "w6"};
    struct lane_fixture lanes;
    struct lane_work holder, works[6], ahead;
    struct uva__atomic64 awaited = {0};

    order_open(&lanes, &holder);
    ahead = lane_work(&lanes, false, "a1");
    ahead.job.awaited = &awaited;
    ahead.job.priority = 1;
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &ahead.job);
    for (int i = 0; i < 6; i++) {
        works[i] = lane_work(&lanes, false, names[i]);
        works[i].job.priority = priorities[i];
        uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    order_run(&lanes, 7);
    ck_assert_str_eq(lane_order, "w3 w5 w2 w6 w1 w4 a1");
    lane_close(&lanes);
}
END_TEST

START_TEST(no_priority_is_starved)
{
    struct lane_fixture lanes;
    struct lane_work holder, works[11];

    order_open(&lanes, &holder);
    for (int i = 0; i < 11; i++) {
        works[i] = lane_work(&lanes, false, i == 0 ? "low" : "-");
        works[i].job.priority = i == 0 ? -1 : 1;
        uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    order_run(&lanes, 11);
    ck_assert_str_eq(lane_order, "- - - - - - - - low - -");
    lane_close(&lanes);
}
END_TEST

START_TEST(queues_take_turns_within_a_place)
{
    static const char *const names[] = {"x1", "x2", "y1", "y2", "y3", "x3"};
    struct uva__atomic64 awaited = {0};
    struct lane_fixture x, y;
    struct lane_work holder, works[6];

    order_open(&x, &holder);
    lane_share(&y, x.jobs.workers);
    for (int i = 0; i < 6; i++) {
        works[i] = lane_work(names[i][0] == 'x' ? &x : &y, false, names[i]);
        works[i].job.priority = names[i][0] == 'x';
        works[i].job.awaited = i == 4 || i == 5 ? &awaited : NULL;
        uva__lane_submit(&works[i].lanes->jobs, UVA_LANE_BLOCKING,
                         &works[i].job);
    }
    sem_post(&x.leave);
    lane_take_n(&x.done, 4);
    lane_take_n(&y.done, 3);
    ck_assert_str_eq(lane_order, "x1 y1 x2 y2 y3 x3");
    lane_close(&y);
    lane_close(&x);
}
END_TEST

START_TEST(read_ahead_leaves_an_eighth_of_the_blocking_threads_free)
{
    struct uva__atomic64 awaited[9] = {{0}};
    struct lane_fixture lanes;
    struct lane_work aheads[9], waited;

    lane_open(&lanes, &(struct uva_workers_options){.blocking_threads = 8});
    for (int i = 0; i < 9; i++) {
        aheads[i] = lane_work(&lanes, true, NULL);
        aheads[i].job.awaited = &awaited[i];
        uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &aheads[i].job);
    }
    lane_take_n(&lanes.entered, 7);
    lane_await_threads(&lanes, UVA_LANE_BLOCKING, 7);
    ck_assert_int_eq(lane_value(&lanes.entered), 0);
    waited = lane_work(&lanes, false, NULL); /* finds a thread at once */
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &waited.job);
    lane_take(&lanes.done);
    lane_await_sleepers(&lanes, UVA_LANE_BLOCKING, 1);
    ck_assert_int_eq(aheads[7].runs, 0);
    ck_assert(uva__awaited_want(&awaited[8], 1)); /* and so does this one */
    uva__lane_raise(&lanes.jobs, UVA_LANE_BLOCKING, &aheads[8].job);
    lane_take_n(&lanes.entered, 2);
    ck_assert_int_eq(aheads[8].runs, 1);
    ck_assert_int_eq(aheads[7].runs, 0);
    lane_post_n(&lanes.leave, 9);
    lane_take_n(&lanes.done, 9);
    ck_assert_int_eq(aheads[7].runs, 1);
    lane_close(&lanes);
}
END_TEST

START_TEST(a_job_yields_to_those_before_it)
{
    struct uva__atomic64 awaited = {0};
    struct lane_fixture lanes;
    struct lane_work holder, works[3];
    const struct uva__jobs *jobs = &lanes.jobs;

    order_open(&lanes, &holder);
    ck_assert(!uva__lane_must_yield(jobs, UVA_LANE_BLOCKING, UVA__PLACE_AHEAD));
    order_submit(&lanes, &works[0], "a1", &awaited);
    ck_assert(!uva__lane_must_yield(jobs, UVA_LANE_BLOCKING, UVA__PLACE_AHEAD));
    order_submit(&lanes, &works[1], "w1", NULL);
    ck_assert(uva__lane_must_yield(jobs, UVA_LANE_BLOCKING, UVA__PLACE_AHEAD));
    ck_assert(
        !uva__lane_must_yield(jobs, UVA_LANE_BLOCKING, UVA__PLACE_WAITED));
    order_submit(&lanes, &works[2], "n1", NULL);
    ck_assert(uva__lane_must_yield(jobs, UVA_LANE_BLOCKING, UVA__PLACE_WAITED));
    ck_assert(!uva__lane_must_yield(jobs, UVA_LANE_BLOCKING, UVA__PLACE_NEW));
    ck_assert(!uva__lane_must_yield(jobs, UVA_LANE_COMPUTE, UVA__PLACE_AHEAD));
    ck_assert(uva__lane_take_back(&lanes.jobs, &works[2].job));
    ck_assert(uva__lane_take_back(&lanes.jobs, &works[1].job));
    ck_assert(!uva__lane_must_yield(jobs, UVA_LANE_BLOCKING, UVA__PLACE_AHEAD));
    order_run(&lanes, 1);
    ck_assert_str_eq(lane_order, "a1");
    lane_close(&lanes);
}
END_TEST

/* ---- waiting inside a job ----------------------------------------------- */

static void waiter_run(struct uva__job *job)
{
    struct lane_work *work = uva__container_of(job, struct lane_work, job);
    struct lane_fixture *lanes = work->lanes;

    sem_post(&lanes->entered);
    lane_take(&lanes->leave);
    uva__lane_wait_begin();
    uva__lane_wait_begin();
    uva__lane_wait_end();
    lane_take(&lanes->leave); /* posted by a job of the same lane */
    uva__lane_wait_end();
    sem_post(&lanes->done);
}

static void helper_run(struct uva__job *job)
{
    struct lane_work *work = uva__container_of(job, struct lane_work, job);

    sem_post(&work->lanes->leave);
    lane_take(&work->lanes->done); /* the waiter has left its bracket */
    sem_post(&work->lanes->entered);
}

START_TEST(a_wait_lets_one_more_thread_in_while_it_lasts)
{
    struct lane_fixture lanes;
    struct lane_work waiter = {.job.run = waiter_run, .lanes = &lanes};
    struct lane_work helper = {.job.run = helper_run, .lanes = &lanes};

    lane_open_limited(&lanes,
                      &(struct uva_workers_options){.blocking_threads = 1},
                      INT32_MAX, 256);
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &waiter.job);
    lane_take(&lanes.entered);
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &helper.job);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 1);
    sem_post(&lanes.leave);
    lane_take(
        &lanes.entered); /* the helper ran, and the waiting job returned */
    lane_await_threads(&lanes, UVA_LANE_BLOCKING, 1);
    lane_close(&lanes);
}
END_TEST

START_TEST(a_wait_lets_jobs_in_that_come_later)
{
    struct lane_fixture lanes;
    struct lane_work waiter = {.job.run = waiter_run, .lanes = &lanes};
    struct lane_work works[3];

    lane_open(&lanes, &(struct uva_workers_options){.blocking_threads = 1});
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &waiter.job);
    sem_post(&lanes.leave);
    for (int i = 0; i < 3; i++) {
        works[i] = lane_work(&lanes, false, NULL);
        uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    lane_take_n(&lanes.done, 3);
    sem_post(&lanes.leave);
    lane_take(&lanes.done);
    ck_assert_int_le(lane_threads(&lanes, UVA_LANE_BLOCKING), 2);
    lane_close(&lanes);
}
END_TEST

static void compute_run(struct uva__job *job)
{
    struct lane_work *work = uva__container_of(job, struct lane_work, job);

    work->runs = uva__lane_is_compute();
    uva__lane_wait_begin(); /* no effect in any lane but the blocking one */
    uva__lane_wait_end();
    sem_post(&work->lanes->done);
}

START_TEST(only_compute_jobs_are_on_a_compute_worker)
{
    struct lane_fixture lanes;
    struct lane_work works[3];

    lane_open(&lanes, NULL);
    for (int i = 0; i < 3; i++)
        works[i] = (struct lane_work){.job.run = compute_run, .lanes = &lanes};
    uva__lane_submit(&lanes.jobs, UVA_LANE_COMPUTE, &works[0].job);
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &works[1].job);
    uva__lane_run_uncapped(&lanes.jobs, &works[2].job);
    lane_take_n(&lanes.done, 3);
    ck_assert_int_eq(works[0].runs, 1);
    ck_assert_int_eq(works[1].runs, 0);
    ck_assert_int_eq(works[2].runs, 0);
    ck_assert(!uva__lane_is_compute());
    uva__lane_wait_begin();
    uva__lane_wait_end();
    lane_close(&lanes);
}
END_TEST

/* ---- extra threads
 * ------------------------------------------------------------- */

START_TEST(guests_run_whatever_the_lanes_do)
{
    struct lane_fixture lanes;
    struct lane_work stuck, extras[5];

    lane_open(&lanes, &(struct uva_workers_options){.blocking_threads = 1});
    stuck = lane_work(&lanes, true, NULL);
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &stuck.job);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&lanes.jobs), 0);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&lanes.jobs), 0);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 2);
    for (int i = 0; i < 5; i++) {
        extras[i] = lane_work(&lanes, true, NULL);
        uva__lane_run_uncapped(&lanes.jobs, &extras[i].job);
    }
    lane_take_n(&lanes.entered, 6); /* all at once */
    ck_assert_int_eq(uva__lane_ensure_uncapped(&lanes.jobs), 0);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 7);
    lane_post_n(&lanes.leave, 6);
    lane_take_n(&lanes.done, 6);
    lane_close(&lanes);
}
END_TEST

START_TEST(a_uncapped_that_was_made_sure_of_needs_no_thread)
{
    struct lane_fixture lanes;
    struct lane_work works[2];

    lane_open(&lanes, NULL);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&lanes.jobs), 0);
    lane_threads_run_out(true);
    for (int i = 0; i < 2; i++) {
        works[i] = lane_work(&lanes, true, NULL);
        uva__lane_run_uncapped(&lanes.jobs, &works[i].job);
    }
    lane_take(&lanes.entered);
    ck_assert_int_eq(lane_value(&lanes.entered), 0);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&lanes.jobs), ENOMEM);
    lane_post_n(&lanes.leave, 2);
    lane_take_n(&lanes.done, 2);
    lane_threads_run_out(false);
    lane_close(&lanes);
}
END_TEST

int main(void)
{
    TCase *jobs = tcase_create("jobs");
    tcase_add_test(jobs, every_job_runs_once);
    tcase_add_test(jobs, a_lane_grows_to_its_cap_and_not_beyond);
    tcase_add_test(jobs,
                   a_thread_is_started_when_the_one_before_it_has_taken_a_job);
    tcase_add_test(jobs, a_job_that_is_given_up_waits_though_a_thread_has_none);
    tcase_add_test(jobs, a_thread_that_sleeps_is_used_before_one_is_started);
    tcase_add_test(jobs, a_job_may_submit_itself_again);
    tcase_add_test(jobs, queues_that_share_a_lane_take_turns);
    tcase_add_test(jobs, a_job_that_has_not_begun_can_be_taken_back);
    tcase_add_test(jobs, taking_back_the_only_job_leaves_the_round);

    TCase *order = tcase_create("the order");
    tcase_add_test(order, what_a_consumer_waits_for_goes_before_read_ahead);
    tcase_add_test(order, read_ahead_has_one_turn_in_nine);
    tcase_add_test(order,
                   read_ahead_that_a_consumer_begins_to_wait_for_is_raised);
    tcase_add_test(order, a_job_is_new_for_its_first_turns);
    tcase_add_test(order, priorities_order_the_jobs_of_one_queue);
    tcase_add_test(order, no_priority_is_starved);
    tcase_add_test(order, queues_take_turns_within_a_place);
    tcase_add_test(order, a_job_yields_to_those_before_it);
    tcase_add_test(order,
                   read_ahead_leaves_an_eighth_of_the_blocking_threads_free);

    TCase *waiting_inside_a_job = tcase_create("waiting inside a job");
    tcase_add_test(waiting_inside_a_job,
                   a_wait_lets_one_more_thread_in_while_it_lasts);
    tcase_add_test(waiting_inside_a_job, a_wait_lets_jobs_in_that_come_later);
    tcase_add_test(waiting_inside_a_job,
                   only_compute_jobs_are_on_a_compute_worker);

    TCase *extras = tcase_create("uncapped threads");
    tcase_add_test(extras, guests_run_whatever_the_lanes_do);
    tcase_add_test(extras, a_uncapped_that_was_made_sure_of_needs_no_thread);

    return suite_main("lane", NULL, NULL, jobs, order, waiting_inside_a_job,
                      extras, NULL);
}
