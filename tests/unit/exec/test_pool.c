/* SPDX-License-Identifier: Apache-2.0 */
/* Making workers, ending them, and everything at once. */
#define _GNU_SOURCE
#include "exec/pool.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "exec/lane.h"
#include "support/check_suite.h"
#include "support/forked_child.h"
#include "support/lane_fixture.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* ---- options ------------------------------------------------------------ */

START_TEST(no_options_are_sound)
{
    struct uva_workers *workers;

    ck_assert_int_eq(uva_workers_new(NULL, &workers, NULL), 0);
    uva_workers_release(workers);
    uva_workers_release(NULL);
}
END_TEST

START_TEST(options_that_make_no_sense_are_refused)
{
    struct lane_memory memory = {0};
    const struct uva_allocator whole = lane_allocator(&memory);
    const struct uva_workers_options bad[] = {
        {.reserved = {[3] = &lane_order}},
        {.compute_threads = -1},
        {.blocking_threads = -1},
        {.allocator.alloc = whole.alloc},
        {.allocator.dealloc = whole.dealloc},
    };
    struct uva_workers *workers = NULL;
    struct uva_error error;

    for (int i = 0; i < COUNT(bad); i++) {
        ck_assert_int_eq(uva_workers_new(&bad[i], &workers, &error), EINVAL);
        ck_assert_int_eq(error.code, EINVAL);
        ck_assert_ptr_nonnull(strstr(error.message, "uva_workers_options"));
        ck_assert_int_eq(uva_workers_new(&bad[i], &workers, NULL), EINVAL);
    }
    ck_assert_ptr_null(workers);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    struct lane_memory memory = {0};
    struct uva_workers_options options = {.allocator = lane_allocator(&memory)};
    struct uva_workers *workers = NULL;
    struct uva__jobs jobs;
    int n = 0, code = ENOMEM;

    for (; code == ENOMEM; n++) {
        memory.left = n;
        code = uva_workers_new(&options, &workers, NULL);
    }
    ck_assert_int_eq(code, 0);
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(uva__jobs_init(&jobs, workers, NULL, NULL), 0);
    memory.left = 0;
    ck_assert_int_eq(uva__lane_ensure(&jobs, UVA_LANE_COMPUTE), ENOMEM);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&jobs), ENOMEM);
    memory.left = 1;
    ck_assert_int_eq(uva__lane_ensure(&jobs, UVA_LANE_COMPUTE), 0);
    uva__jobs_fini(&jobs);
    uva_workers_release(workers);
    ck_assert_int_eq(memory.live, 0);
}
END_TEST

START_TEST(private_workers_need_memory_too)
{
    struct lane_memory memory = {0};
    struct uva_allocator allocator = lane_allocator(&memory);
    struct uva__jobs jobs;

    memory.left = 0;
    ck_assert_int_eq(uva__jobs_init(&jobs, NULL, &allocator, "x"), ENOMEM);
    memory.left = -1;
    ck_assert_int_eq(uva__jobs_init(&jobs, NULL, &allocator, "x"), 0);
    ck_assert_int_eq(uva__lane_ensure_uncapped(&jobs), 0);
    uva__jobs_fini(&jobs);
    ck_assert_int_eq(memory.live, 0);
}
END_TEST

/* ---- objects kept with the workers -------------------------------------- */

static struct uva_workers *keepers;
static struct uva__pool_data fixtures[2];
static int ends[2];

static void fixture_end(struct uva__pool_data *fixture)
{
    ends[fixture - fixtures]++;
}

static struct uva__pool_data *fixture_make(void)
{
    fixtures[0].end = fixture_end;
    return &fixtures[0];
}

/* Another thread is faster. */
static struct uva__pool_data *fixture_make_late(void)
{
    ck_assert_ptr_eq(uva__pool_get_data(keepers, fixture_make), &fixtures[0]);
    fixtures[1].end = fixture_end;
    return &fixtures[1];
}

START_TEST(of_two_who_make_a_fixture_at_once_the_later_gives_his_up)
{
    memset(ends, 0, sizeof(ends));
    ck_assert_int_eq(uva_workers_new(NULL, &keepers, NULL), 0);
    ck_assert_ptr_eq(uva__pool_get_data(keepers, fixture_make_late),
                     &fixtures[0]);
    ck_assert_int_eq(ends[1], 1);
    ck_assert_ptr_eq(uva__pool_get_data(keepers, fixture_make_late),
                     &fixtures[0]);
    ck_assert_int_eq(ends[1], 1); /* not made */
    ck_assert_int_eq(ends[0], 0);
    uva_workers_release(keepers);
    ck_assert_int_eq(ends[0], 1);
}
END_TEST

/* ---- the end ------------------------------------------------------------ */

START_TEST(pool_end_with_their_last_owner)
{
    struct lane_hooks hooks = {0};
    struct uva_workers_options options = {.thread_begin = lane_hook_begin,
                                          .thread_end = lane_hook_end,
                                          .ctx = &hooks};
    struct uva_workers *workers;
    struct lane_fixture x, y;

    ck_assert_int_eq(uva_workers_new(&options, &workers, NULL), 0);
    lane_share(&x, workers);
    lane_share(&y, workers);
    uva_workers_release(workers);
    lane_burst(&x, 4);
    lane_close(&x);
    ck_assert_int_eq(hooks.ended[UVA_LANE_BLOCKING], 0);
    lane_await_sleepers(&y, UVA_LANE_BLOCKING, 4);
    lane_burst(&y, 4);
    lane_close(&y);
    ck_assert_int_eq(hooks.ended[UVA_LANE_BLOCKING], 4);
}
END_TEST

START_TEST(stuck_threads_are_left_behind_and_free_the_workers)
{
    struct lane_memory memory = {0};
    struct lane_hooks hooks = {0};
    struct lane_fixture lanes;
    struct lane_work stuck[2];

    lane_open(&lanes, &(struct uva_workers_options){
                          .allocator = lane_allocator(&memory),
                          .thread_begin = lane_hook_begin,
                          .thread_end = lane_hook_end,
                          .ctx = &hooks});
    lane_burst(&lanes, 5);
    lane_await_sleepers(&lanes, UVA_LANE_BLOCKING, 5);
    for (int i = 0; i < 2; i++) {
        stuck[i] = lane_work(&lanes, true, NULL);
        uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &stuck[i].job);
    }
    lane_take_n(&lanes.entered, 2);
    uva__jobs_fini(&lanes.jobs);
    ck_assert_int_eq(hooks.ended[UVA_LANE_BLOCKING], 3);
    ck_assert_int_eq(memory.live, 3); /* the workers, two threads */
    lane_post_n(&lanes.leave, 2);
    lane_take_n(&lanes.done, 2);
    lane_await_no_memory(&memory);
    ck_assert_int_eq(hooks.ended[UVA_LANE_BLOCKING], 5);
}
END_TEST

static void last_run(struct uva__job *job)
{
    struct lane_work *work = uva__container_of(job, struct lane_work, job);
    struct lane_fixture *lanes = work->lanes;

    lane_take(&lanes->leave);
    uva__jobs_fini(&lanes->jobs);
    sem_post(&lanes->done);
}

START_TEST(a_job_may_be_what_ends_its_workers)
{
    struct lane_memory memory = {0};
    struct lane_fixture lanes;
    struct lane_work last = {.job.run = last_run, .lanes = &lanes};

    lane_open(&lanes, &(struct uva_workers_options){
                          .allocator = lane_allocator(&memory)});
    uva__lane_submit(&lanes.jobs, UVA_LANE_BLOCKING, &last.job);
    lane_burst(&lanes, 4);
    sem_post(&lanes.leave);
    lane_take(&lanes.done);
    lane_await_no_memory(&memory);
}
END_TEST

struct ender {
    struct uva__job job;
    struct lane_fixture *own,
        *other; /* borrows; the latter is of other workers */
};

static void ender_run(struct uva__job *job)
{
    struct ender *ender = uva__container_of(job, struct ender, job);

    lane_close(ender->other);
    sem_post(&ender->own->done);
}

START_TEST(a_worker_may_end_other_workers)
{
    struct lane_memory memory = {0};
    struct lane_fixture own, other;
    struct ender ender = {{.run = ender_run}, &own, &other};

    lane_open(&own, NULL);
    lane_open(&other, &(struct uva_workers_options){
                          .allocator = lane_allocator(&memory)});
    lane_burst(&other, 4);
    uva__lane_submit(&own.jobs, UVA_LANE_BLOCKING, &ender.job);
    lane_take(&own.done);
    ck_assert_int_eq(memory.live, 0);
    lane_close(&own);
}
END_TEST

static void free_hook(void *ctx, enum uva_lane lane)
{
    struct uva_workers **workers = ctx;

    (void)lane;
    uva_workers_release(*workers);
}

/* The hook is a worker's last act, but it still is one. */
START_TEST(the_hook_of_a_leaving_thread_may_end_its_workers)
{
    struct lane_memory memory = {0};
    struct uva_workers *workers = NULL;
    struct uva_workers_options options = {.allocator = lane_allocator(&memory),
                                          .thread_end = free_hook,
                                          .ctx = &workers};
    struct lane_fixture lanes;

    ck_assert_int_eq(uva_workers_new(&options, &workers, NULL), 0);
    uva__workers_limit(workers, 1, 256);
    lane_share(&lanes, workers);
    lane_burst(&lanes, 1);
    lane_close(&lanes);
    lane_await_no_memory(&memory);
}
END_TEST

static int child_release(void *ctx)
{
    struct lane_fixture *lanes = ctx;
    struct uva_workers *workers = lanes->jobs.workers;
    struct uva__jobs jobs;

    uva__jobs_fini(&lanes->jobs);
    uva_workers_release(workers);
    return uva__jobs_init(&jobs, workers, NULL, NULL) == EPERM ? 0 : 1;
}

START_TEST(a_forked_child_touches_nothing)
{
    struct uva_workers *workers;
    struct lane_fixture lanes;

    ck_assert_int_eq(uva_workers_new(NULL, &workers, NULL), 0);
    lane_share(&lanes, workers);
    lane_burst(&lanes, 3);
    forked_child_run(child_release, &lanes);
    lane_close(&lanes);
    uva_workers_release(workers);
}
END_TEST

/* ---- all at once -------------------------------------------------------- */

enum { SUBMITTERS = 8, JOBS_EACH = 10000 };

struct submitter {
    pthread_t thread;
    struct lane_fixture lanes;
    struct lane_work *works;
};

static void stress_run(struct uva__job *job)
{
    struct lane_work *work = uva__container_of(job, struct lane_work, job);

    if (work->held) {
        uva__lane_wait_begin();
        sched_yield();
        uva__lane_wait_end();
    }
    work->runs++;
    sem_post(&work->lanes->done);
}

static void *submitter_main(void *arg)
{
    struct submitter *own = arg;
    struct lane_fixture *lanes = &own->lanes;
    int user_refs = 0;

    for (int i = 0; i < JOBS_EACH; i++) {
        own->works[i] = (struct lane_work){
            .job.run = stress_run, .lanes = lanes, .held = i % 7 == 0};
        if (i % 50 == 49)
            uva__lane_run_uncapped(&lanes->jobs, &own->works[i].job);
        else
            uva__lane_submit(&lanes->jobs, (enum uva_lane)(i % 2),
                             &own->works[i].job);
        user_refs++;
        if (i % 11 == 0 &&
            uva__lane_take_back(&lanes->jobs, &own->works[i].job))
            uva__lane_submit(&lanes->jobs, UVA_LANE_COMPUTE,
                             &own->works[i].job);
        if (i % 1000 == 0)
            for (; user_refs > 0; user_refs--)
                lane_take(&lanes->done);
    }
    lane_take_n(&lanes->done, user_refs);
    uva__jobs_fini(&lanes->jobs);
    return NULL;
}

START_TEST(eight_threads_submit_ten_thousand_jobs_each)
{
    struct lane_memory memory = {0};
    struct submitter *all = calloc(SUBMITTERS, sizeof(*all));
    struct uva_workers_options options = {.compute_threads = 3,
                                          .blocking_threads = 5};
    struct uva_workers *workers;

    options.allocator = lane_allocator(&memory);
    ck_assert_int_eq(uva_workers_new(&options, &workers, NULL), 0);
    uva__workers_limit(workers, 1, 256);
    for (int i = 0; i < SUBMITTERS; i++) {
        lane_share(&all[i].lanes, workers);
        all[i].works = calloc(JOBS_EACH, sizeof(*all[i].works));
    }
    uva_workers_release(workers);
    for (int i = 0; i < SUBMITTERS; i++)
        ck_assert_int_eq(
            pthread_create(&all[i].thread, NULL, submitter_main, &all[i]), 0);
    for (int i = 0; i < SUBMITTERS; i++)
        pthread_join(all[i].thread, NULL);
    ck_assert_int_eq(memory.live, 0);
    for (int i = 0; i < SUBMITTERS; i++) {
        for (int j = 0; j < JOBS_EACH; j++)
            ck_assert_int_eq(all[i].works[j].runs, 1);
        free(all[i].works);
    }
    free(all);
}
END_TEST

/* A queue that its last job ends, wherever that runs. */
struct brief {
    struct uva__jobs jobs;
    struct uva__job work[6];
    _Atomic int user_refs;
};

static void brief_run(struct uva__job *job)
{
    struct uva__jobs *jobs = job->jobs;
    struct brief *brief = uva__container_of(jobs, struct brief, jobs);

    if (--brief->user_refs > 0)
        return;
    uva__jobs_fini(jobs);
    free(brief);
}

START_TEST(pool_end_at_any_moment)
{
    struct lane_memory memory = {0};
    struct uva_allocator allocator = lane_allocator(&memory);
    struct brief *brief;

    for (int i = 0; i < 500; i++) {
        brief = calloc(1, sizeof(*brief));
        ck_assert_int_eq(
            uva__jobs_init(&brief->jobs, NULL, &allocator, "brief"), 0);
        if (i % 2 == 0)
            ck_assert_int_eq(uva__lane_ensure_uncapped(&brief->jobs), 0);
        brief->user_refs = COUNT(brief->work);
        for (int j = 0; j < COUNT(brief->work); j++)
            brief->work[j].run = brief_run;
        for (int j = 0; j + 1 < COUNT(brief->work); j++)
            uva__lane_submit(&brief->jobs, (enum uva_lane)((i + j) % 2),
                             &brief->work[j]);
        uva__lane_run_uncapped(&brief->jobs,
                               &brief->work[COUNT(brief->work) - 1]);
    }
    lane_await_no_memory(&memory);
}
END_TEST

int main(void)
{
    TCase *options = tcase_create("options");
    tcase_add_test(options, no_options_are_sound);
    tcase_add_test(options, options_that_make_no_sense_are_refused);
    tcase_add_test(options, every_allocation_may_fail);
    tcase_add_test(options, private_workers_need_memory_too);
    tcase_add_test(options,
                   of_two_who_make_a_fixture_at_once_the_later_gives_his_up);

    TCase *the_end = tcase_create("the end");
    tcase_add_test(the_end, pool_end_with_their_last_owner);
    tcase_add_test(the_end, stuck_threads_are_left_behind_and_free_the_workers);
    tcase_add_test(the_end, a_job_may_be_what_ends_its_workers);
    tcase_add_test(the_end, a_worker_may_end_other_workers);
    tcase_add_test(the_end, the_hook_of_a_leaving_thread_may_end_its_workers);
    tcase_add_test(the_end, a_forked_child_touches_nothing);

    TCase *all_at_once = tcase_create("all at once");
    tcase_add_loop_test(all_at_once,
                        eight_threads_submit_ten_thousand_jobs_each, 0, 2);
    tcase_add_test(all_at_once, pool_end_at_any_moment);

    return suite_main("workers", NULL, NULL, options, the_end, all_at_once,
                      NULL);
}
