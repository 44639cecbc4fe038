/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are given up, and the threads that are written off for them. The
 * time at which a thread was given up is set by the test, so that no test
 * depends on the clock. */
#define _GNU_SOURCE
#include "exec/pool.h"

#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "exec/lane.h"
#include "support/check_suite.h"
#include "support/lane_fixture.h"

/* ---- fixture ------------------------------------------------------------ */

/* A full lane in which jobs wait is looked at again. */
enum { WATCHES = UVA__NEWS_RETRY };

static struct lane_fixture lanes;
static atomic_int notified;

static void on_news(struct uva__jobs *jobs)
{
    ck_assert_ptr_eq(jobs, &lanes.jobs);
    notified++;
}

static void open_with(const struct uva_workers_options *options)
{
    lane_open(&lanes, options);
    notified = 0;
    lanes.jobs.notify = on_news;
}

/* One thread, which stays, and as many as that may be stuck. */
static void open_limited(int32_t stuck_threads)
{
    lane_open_limited(&lanes,
                      &(struct uva_workers_options){.blocking_threads = 1},
                      INT32_MAX, stuck_threads);
    notified = 0;
    lanes.jobs.notify = on_news;
}

static void open_one(void)
{
    open_limited(256);
}

/* Submits a job that holds its thread, and waits until it has one. */
static void hold(struct lane_work *work)
{
    *work = lane_work(&lanes, true, NULL);
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &work->job);
    lane_take(&lanes.entered);
}

static void queue(struct lane_work *work)
{
    *work = lane_work(&lanes, false, NULL);
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &work->job);
}

/* Gives up a job that runs, `when` it was: 0 is long ago, later is never. */
static void give_up(struct lane_work *work, uint64_t when)
{
    struct uva_workers *workers = lanes.jobs.workers;
    struct uva__pool_class *blocking =
        &workers->locked.classes[UVA_LANE_BLOCKING];

    uva__lock_take(&workers->locked.lock);
    uva__worker_give_up_locked(
        uva__pool_class_find_locked(blocking, &work->job));
    uva__pool_class_find_locked(blocking, &work->job)->given_up_ns = when;
    uva__lock_drop(&workers->locked.lock);
    ck_assert_int_eq(
        uva__lane_give_up(&lanes.jobs, UVA_LANE_BLOCKING, &work->job),
        UVA__JOB_RUNNING);
}

enum { LONG_AGO = 0 };
static const uint64_t NEVER = UINT64_MAX / 2;

static void let_go(int n)
{
    lane_post_n(&lanes.leave, n);
    lane_take_n(&lanes.done, n);
}

static void await_written_off(int64_t n)
{
    while (uva__lane_count_written_off(&lanes.jobs) != n)
        sched_yield();
}

/* ---- one thread --------------------------------------------------------- */

START_TEST(a_thread_that_does_not_return_is_replaced)
{
    struct lane_work stuck, next;

    open_one();
    hold(&stuck);
    give_up(&stuck, LONG_AGO);
    ck_assert_int_eq(uva__lane_count_written_off(&lanes.jobs), 0);
    queue(&next);
    lane_take(&lanes.done);
    ck_assert_int_eq(next.runs, 1);
    ck_assert_int_eq(uva__lane_count_written_off(&lanes.jobs), 1);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 2);
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs), UVA__NEWS_WRITTEN_OFF);
    ck_assert_int_eq(notified, 1);
    let_go(1);
    lane_await_threads(&lanes, UVA_LANE_BLOCKING, 1);
    ck_assert_int_eq(uva__lane_count_written_off(&lanes.jobs), 0);
    lane_close(&lanes);
}
END_TEST

START_TEST(a_thread_that_was_just_given_up_is_waited_for)
{
    struct lane_work slow, next;

    open_one();
    hold(&slow);
    give_up(&slow, NEVER);
    ck_assert_int_eq(notified, 0);
    queue(&next);
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs), UVA__NEWS_RETRY);
    uva__lane_retry(&lanes.jobs);
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs), UVA__NEWS_RETRY);
    ck_assert_int_eq(notified, 2);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 1);
    ck_assert_int_eq(next.runs, 0);
    let_go(1);
    lane_take(&lanes.done);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 1);
    uva__lane_retry(&lanes.jobs); /* no job waits */
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs), 0);
    lane_close(&lanes);
}
END_TEST

START_TEST(a_job_that_is_given_up_while_others_wait_makes_room_after_a_while)
{
    struct lane_work stuck, next;

    open_one();
    hold(&stuck);
    queue(&next);
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs), WATCHES);
    ck_assert_int_eq(
        uva__lane_give_up(&lanes.jobs, UVA_LANE_BLOCKING, &stuck.job),
        UVA__JOB_RUNNING);
    while (lane_value(&lanes.done) == 0) {
        uva__lane_retry(&lanes.jobs);
        sched_yield();
    }
    lane_take(&lanes.done);
    ck_assert_int_eq(next.runs, 1);
    let_go(1);
    lane_close(&lanes);
}
END_TEST

START_TEST(an_ensured_lane_has_a_thread_that_is_not_written_off)
{
    struct lane_work stuck, next;

    open_one();
    hold(&stuck);
    give_up(&stuck, LONG_AGO);
    lane_threads_run_out(true);
    queue(&next); /* writes the thread off, and finds no other */
    ck_assert_int_eq(uva__lane_ensure(&lanes.jobs, UVA_LANE_BLOCKING), ENOMEM);
    lane_threads_run_out(false);
    ck_assert_int_eq(uva__lane_ensure(&lanes.jobs, UVA_LANE_BLOCKING), 0);
    lane_take(&lanes.done);
    let_go(1);
    lane_close(&lanes);
}
END_TEST

/* ---- the limit ---------------------------------------------------------- */

START_TEST(beyond_the_limit_jobs_wait_and_that_is_reported_once)
{
    struct lane_work stuck[2], next[2];

    open_limited(1);
    hold(&stuck[0]);
    give_up(&stuck[0], LONG_AGO);
    hold(&stuck[1]);
    give_up(&stuck[1], LONG_AGO);
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs), UVA__NEWS_WRITTEN_OFF);
    queue(&next[0]);
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs),
                      UVA__NEWS_FULL | WATCHES);
    queue(&next[1]);
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs), 0);
    ck_assert_int_eq(next[0].runs + next[1].runs, 0);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 2);
    sem_post(&lanes.leave); /* whichever goes on, one place is free */
    lane_take_n(&lanes.done, 3);
    ck_assert_int_eq(next[0].runs + next[1].runs, 2);
    let_go(1);
    lane_await_threads(&lanes, UVA_LANE_BLOCKING, 1);
    await_written_off(0);
    lane_close(&lanes);
}
END_TEST

START_TEST(at_most_256_threads_are_written_off)
{
    struct uva_workers *workers;

    ck_assert_int_eq(uva_workers_new(NULL, &workers, NULL), 0);
    lane_share(&lanes, workers);
    ck_assert_int_eq(lanes.jobs.stuck_threads, 256);
    lane_close(&lanes);
    uva_workers_release(workers);
}
END_TEST

/* ---- threads that are not written off ----------------------------------- */

static sem_t in_wait, in_stuck, go_on;

/* Gives itself up, waits in a bracket, and is stuck. */
static void bracket_run(struct uva__job *job)
{
    struct lane_work *work = uva__container_of(job, struct lane_work, job);

    uva__lane_give_up_here();
    uva__lane_give_up_here();
    uva__lane_wait_begin();
    sem_post(&in_wait);
    lane_take(&go_on);
    uva__lane_wait_end();
    sem_post(&in_stuck);
    lane_take(&go_on);
    uva__lane_wait_begin(); /* written off by now: counts no second time */
    uva__lane_wait_end();
    work->runs++;
    sem_post(&lanes.done);
}

START_TEST(a_thread_that_is_blocked_is_not_written_off_until_it_goes_on)
{
    struct lane_work work = {.job.run = bracket_run}, next, last;

    sem_init(&in_wait, 0, 0);
    sem_init(&in_stuck, 0, 0);
    sem_init(&go_on, 0, 0);
    open_one();
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &work.job);
    lane_take(&in_wait);
    give_up(&work, LONG_AGO);
    hold(&next); /* on a thread that the wait has let in */
    queue(&last);
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs), WATCHES);
    ck_assert_int_eq(uva__lane_count_written_off(&lanes.jobs), 0);
    sem_post(&go_on);
    lane_take(&in_stuck);
    uva__lane_retry(&lanes.jobs); /* the one place is now `next`'s */
    ck_assert_int_eq(uva__lane_count_written_off(&lanes.jobs), 1);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 2);
    let_go(1);
    lane_take(&lanes.done);
    ck_assert_int_eq(last.runs, 1);
    sem_post(&go_on);
    lane_take(&lanes.done);
    ck_assert_int_eq(work.runs, 1);
    lane_close(&lanes);
}
END_TEST

START_TEST(threads_outside_the_capped_lanes_cannot_be_given_up)
{
    struct lane_work work = lane_work(&lanes, true, NULL);

    open_one();
    uva__lane_give_up_here(); /* no worker */
    uva__lane_run_uncapped(&lanes.jobs, &work.job);
    lane_take(&lanes.entered);
    ck_assert_int_eq(
        uva__lane_give_up(&lanes.jobs, UVA_LANE_BLOCKING, &work.job),
        UVA__JOB_GONE);
    let_go(1);
    lane_close(&lanes);
}
END_TEST

static void itself_run(struct uva__job *job)
{
    (void)job;
    uva__lane_give_up_here();
    sem_post(&lanes.done);
}

START_TEST(an_uncapped_thread_that_gives_itself_up_stays_as_it_is)
{
    struct lane_work work = {.job.run = itself_run};

    open_one();
    uva__lane_run_uncapped(&lanes.jobs, &work.job);
    lane_take(&lanes.done);
    lane_close(&lanes);
}
END_TEST

/* ---- jobs that do not run ----------------------------------------------- */

START_TEST(a_job_that_waits_while_all_threads_are_busy_can_be_taken_back)
{
    struct lane_work busy, waits;

    open_one();
    hold(&busy);
    queue(&waits);
    ck_assert_int_eq(
        uva__lane_give_up(&lanes.jobs, UVA_LANE_BLOCKING, &waits.job),
        UVA__JOB_WAITING);
    ck_assert(uva__lane_take_back(&lanes.jobs, &waits.job));
    ck_assert_int_eq(
        uva__lane_give_up(&lanes.jobs, UVA_LANE_BLOCKING, &waits.job),
        UVA__JOB_GONE);
    ck_assert(!uva__lane_take_back(&lanes.jobs, &waits.job));
    let_go(1);
    ck_assert_int_eq(waits.runs, 0);
    lane_close(&lanes);
}
END_TEST

START_TEST(a_job_that_has_ended_is_gone)
{
    struct lane_work work;

    open_one();
    queue(&work);
    lane_take(&lanes.done);
    lane_await_sleepers(&lanes, UVA_LANE_BLOCKING, 1);
    ck_assert_int_eq(
        uva__lane_give_up(&lanes.jobs, UVA_LANE_BLOCKING, &work.job),
        UVA__JOB_GONE);
    ck_assert_int_eq(notified, 0);
    lane_close(&lanes);
}
END_TEST

/* ---- threads that cannot be created ------------------------------------- */

START_TEST(a_job_that_found_no_thread_asks_for_another_try)
{
    struct lane_work busy, next;

    open_with(NULL);
    hold(&busy);
    lane_threads_run_out(true);
    queue(&next);
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs), UVA__NEWS_RETRY);
    uva__lane_retry(&lanes.jobs);
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs), UVA__NEWS_RETRY);
    lane_threads_run_out(false);
    uva__lane_retry(&lanes.jobs);
    lane_take(&lanes.done);
    ck_assert_int_eq(next.runs, 1);
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs), 0);
    let_go(1);
    lane_close(&lanes);
}
END_TEST

START_TEST(every_queue_with_jobs_that_wait_asks_for_another_try)
{
    struct uva_workers *workers;
    struct lane_fixture other;
    struct lane_work busy, mine, theirs;

    ck_assert_int_eq(uva_workers_new(NULL, &workers, NULL), 0);
    lane_share(&lanes, workers);
    lane_share(&other, workers);
    uva_workers_release(workers);
    lanes.jobs.notify = NULL; /* not every queue wants to know */
    hold(&busy);
    lane_threads_run_out(true);
    queue(&mine);
    theirs = lane_work(&other, false, NULL);
    uva__lane_submit(&other.jobs, UVA_LANE_BLOCKING, &theirs.job);
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs), UVA__NEWS_RETRY);
    ck_assert_uint_eq(uva__lane_take_news(&other.jobs), UVA__NEWS_RETRY);
    lane_threads_run_out(false);
    uva__lane_retry(&other.jobs);
    lane_take(&lanes.done);
    lane_take(&other.done);
    let_go(1);
    lane_close(&lanes);
    lane_close(&other);
}
END_TEST

/* ---- the end ------------------------------------------------------------ */

START_TEST(a_thread_that_is_written_off_frees_the_workers_when_it_returns)
{
    struct lane_memory memory = {0};
    struct lane_work stuck, next;

    open_with(&(struct uva_workers_options){
        .allocator = lane_allocator(&memory), .blocking_threads = 1});
    hold(&stuck);
    give_up(&stuck, LONG_AGO);
    queue(&next);
    lane_take(&lanes.done);
    uva__jobs_fini(&lanes.jobs);
    ck_assert_int_eq(memory.live, 2); /* the workers, one thread */
    let_go(1);
    lane_await_no_memory(&memory);
}
END_TEST

int main(void)
{
    return suite_main(
        "write_off", NULL, NULL,
        suite_tests(
            "thread", a_thread_that_does_not_return_is_replaced,
            a_thread_that_was_just_given_up_is_waited_for,
            a_job_that_is_given_up_while_others_wait_makes_room_after_a_while,
            an_ensured_lane_has_a_thread_that_is_not_written_off,
            beyond_the_limit_jobs_wait_and_that_is_reported_once,
            at_most_256_threads_are_written_off, NULL),
        suite_tests(
            "not", a_thread_that_is_blocked_is_not_written_off_until_it_goes_on,
            threads_outside_the_capped_lanes_cannot_be_given_up,
            an_uncapped_thread_that_gives_itself_up_stays_as_it_is,
            a_job_that_waits_while_all_threads_are_busy_can_be_taken_back,
            a_job_that_has_ended_is_gone, NULL),
        suite_tests(
            "retry", a_job_that_found_no_thread_asks_for_another_try,
            every_queue_with_jobs_that_wait_asks_for_another_try,
            a_thread_that_is_written_off_frees_the_workers_when_it_returns,
            NULL),
        NULL);
}
