/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking threads that are all inside calls which do not return, as for feeds
 * without news: other jobs get spare threads, if the program has not set their
 * number, and otherwise it is reported that the lane stands. The time for which
 * it stands is set by the test, so that no test depends on the clock. */
#include <check.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "exec/lane.h"
#include "exec/pool.h"
#include "support/check_suite.h"
#include "support/lane_fixture.h"

enum { CAP = 64, SPARES = 192, MANY = 200 };

static struct lane_fixture lanes;
static struct lane_work held[CAP + SPARES], more[MANY];
static atomic_int notified;

static void on_news(struct uva__jobs *jobs)
{
    ck_assert_ptr_eq(jobs, &lanes.jobs);
    notified++;
}

static void open_with(int32_t blocking_threads, int32_t idle_ms)
{
    lane_open_limited(
        &lanes,
        &(struct uva_workers_options){.blocking_threads = blocking_threads},
        idle_ms, 256);
    notified = 0;
    lanes.jobs.notify = on_news;
}

static struct uva__pool_class *blocking(void)
{
    return &lanes.jobs.workers->locked.classes[UVA_LANE_BLOCKING];
}

static void submit(struct lane_work *work, bool is_held)
{
    *work = lane_work(&lanes, is_held, NULL);
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &work->job);
}

/* Submits jobs that hold their threads, and waits until `n` have one. */
static void hold(int n)
{
    ck_assert_int_eq(uva__lane_ensure(&lanes.jobs, UVA_LANE_BLOCKING), 0);
    for (int i = 0; i < n; i++)
        submit(&held[i], true);
    lane_take_n(&lanes.entered, n);
}

/* The lane has stood for so long; looks for threads again. */
static void stand(uint64_t ms)
{
    struct uva_workers *workers = lanes.jobs.workers;

    uva__lock_take(&workers->locked.lock);
    ck_assert_uint_ne(blocking()->seen_ns, 0);
    blocking()->seen_ns = uva__clock_ns() - ms * 1000000;
    uva__lock_drop(&workers->locked.lock);
    uva__lane_retry(&lanes.jobs);
}

/* Lets the jobs go on that are held, and then those that wait. */
static void end(int held_jobs, int waiting_jobs)
{
    lane_post_n(&lanes.leave, held_jobs);
    lane_take_n(&lanes.done, held_jobs + waiting_jobs);
    lane_close(&lanes);
}

static void news_are(unsigned expected)
{
    ck_assert_uint_eq(uva__lane_take_news(&lanes.jobs), expected);
}

START_TEST(jobs_that_wait_get_spare_threads_once_the_lane_stands)
{
    open_with(0, INT32_MAX);
    hold(CAP);
    news_are(0);
    for (int i = 0; i < MANY; i++)
        submit(&more[i], i < SPARES - 1);
    news_are(UVA__NEWS_RETRY);
    ck_assert_int_eq(lane_value(&lanes.entered), 0);
    stand(5);
    lane_take_n(&lanes.entered, MANY); /* the last ones are short */
    lane_take_n(&lanes.done, MANY - (SPARES - 1));
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), CAP + SPARES);
    end(CAP + SPARES - 1, 0);
}
END_TEST

START_TEST(there_are_no_spare_threads_before)
{
    open_with(0, INT32_MAX);
    hold(CAP);
    submit(&more[0], false);
    stand(0);
    news_are(UVA__NEWS_RETRY);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), CAP);
    end(CAP, 1);
}
END_TEST

START_TEST(a_lane_in_which_jobs_end_does_not_stand)
{
    open_with(0, INT32_MAX);
    hold(CAP);
    submit(&more[0], true);
    submit(&more[1], false);
    lane_post_n(&lanes.leave, 1); /* one of them ends, and another one begins */
    lane_take(&lanes.done);
    lane_take(&lanes.entered);
    uva__lock_take(&lanes.jobs.workers->locked.lock);
    blocking()->seen_ns = 1; /* long ago, but for the job before */
    blocking()->seen = blocking()->ended - 1;
    uva__lock_drop(&lanes.jobs.workers->locked.lock);
    uva__lane_retry(&lanes.jobs);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), CAP);
    end(CAP, 1);
}
END_TEST

START_TEST(spare_threads_leave_when_they_have_no_work)
{
    open_with(0, 1);
    hold(CAP);
    for (int i = 0; i < 10; i++)
        submit(&more[i], true);
    stand(5);
    lane_take_n(&lanes.entered, 10);
    ck_assert_int_eq(blocking()->spares, 10);
    lane_post_n(&lanes.leave, CAP + 10);
    lane_take_n(&lanes.done, CAP + 10);
    lane_await_threads(&lanes, UVA_LANE_BLOCKING, 1);
    ck_assert_int_eq(blocking()->spares, 0);
    lane_close(&lanes);
}
END_TEST

START_TEST(a_number_that_was_set_is_kept_and_reported)
{
    open_with(2, INT32_MAX);
    hold(2);
    submit(&more[0], false);
    news_are(UVA__NEWS_RETRY);
    stand(999);
    news_are(UVA__NEWS_RETRY);
    stand(1000);
    news_are(UVA__NEWS_STANDS);
    stand(5000); /* once */
    news_are(0);
    ck_assert_int_eq(lane_threads(&lanes, UVA_LANE_BLOCKING), 2);
    lane_post_n(&lanes.leave, 2);
    lane_take_n(&lanes.done, 3);
    lane_take(&lanes.entered);
    lane_await_sleepers(&lanes, UVA_LANE_BLOCKING, 2);
    hold(2); /* and again, after it had no work */
    submit(&more[0], false);
    stand(1000);
    news_are(UVA__NEWS_RETRY | UVA__NEWS_STANDS);
    end(2, 1);
}
END_TEST

START_TEST(a_full_compute_lane_does_not_stand)
{
    lane_open(&lanes, &(struct uva_workers_options){.compute_threads = 1});
    lanes.jobs.notify = on_news;
    ck_assert_int_eq(uva__lane_ensure(&lanes.jobs, UVA_LANE_COMPUTE), 0);
    for (int i = 0; i < 2; i++) {
        held[i] = lane_work(&lanes, true, NULL);
        uva__lane_submit(&lanes.jobs, UVA_LANE_COMPUTE, &held[i].job);
    }
    lane_take(&lanes.entered);
    uva__lane_retry(&lanes.jobs);
    news_are(0);
    lane_post_n(&lanes.leave, 2);
    lane_take_n(&lanes.done, 2);
    lane_close(&lanes);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("spares");

    suite_add(tests, jobs_that_wait_get_spare_threads_once_the_lane_stands,
              there_are_no_spare_threads_before,
              a_lane_in_which_jobs_end_does_not_stand,
              spare_threads_leave_when_they_have_no_work,
              a_number_that_was_set_is_kept_and_reported,
              a_full_compute_lane_does_not_stand, NULL);
    return suite_main("spares", NULL, NULL, tests, NULL);
}
