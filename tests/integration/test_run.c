/* SPDX-License-Identifier: Apache-2.0 */
/* uva_runtime_run(): where `work` and `done` are called, how often, and what a
 * close does with work that is running. */
#include <check.h>
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/loop_fixture.h"

enum { AT_ONCE = 100 };

static struct loop_fixture loop;
static uv_thread_t loop_thread;
static atomic_int worked, ended;
static atomic_bool ended_on_loop;
static sem_t may_return;

static void set_up(void)
{
    loop_open(&loop);
    loop_thread = uv_thread_self();
    atomic_store(&worked, 0);
    atomic_store(&ended, 0);
    ck_assert_int_eq(sem_init(&may_return, 0, 0), 0);
}

static void tear_down(void)
{
    loop_close(&loop);
    (void)sem_destroy(&may_return);
}

static bool is_loop_thread(void)
{
    const uv_thread_t self = uv_thread_self();

    return uv_thread_equal(&self, &loop_thread) != 0;
}

static void work(void *ctx)
{
    (void)ctx;
    ck_assert(!is_loop_thread());
    atomic_fetch_add(&worked, 1);
    loop_nudge(&loop);
}

static void done(void *ctx)
{
    atomic_store(&ended_on_loop, is_loop_thread());
    ck_assert_ptr_eq(ctx, &worked);
    atomic_fetch_add(&ended, 1);
}

static void never(void *ctx)
{
    (void)ctx;
    ck_abort_msg("a call that was refused");
}

static bool has_ended(void *ctx)
{
    return atomic_load(&ended) == *(const int *)ctx;
}

static bool has_worked(void *ctx)
{
    return atomic_load(&worked) == *(const int *)ctx;
}

static int run(enum uva_lane lane, uva_call_fn *end)
{
    return uva_runtime_run(loop.runtime, lane, work, end, &worked);
}

START_TEST(work_is_done_by_a_worker_and_ends_on_the_loop)
{
    const int each = 2;

    ck_assert_int_eq(run(UVA_LANE_COMPUTE, done), 0);
    ck_assert_int_eq(run(UVA_LANE_BLOCKING, done), 0);
    ck_assert_int_eq(atomic_load(&ended), 0);
    loop_until(&loop, has_ended, (void *)(uintptr_t)&each);
    ck_assert_int_eq(atomic_load(&worked), each);
    ck_assert(atomic_load(&ended_on_loop));
}
END_TEST

START_TEST(work_without_an_end_does_not_keep_the_loop)
{
    const int one = 1;

    ck_assert_int_eq(run(UVA_LANE_BLOCKING, NULL), 0);
    loop_until(&loop, has_worked, (void *)(uintptr_t)&one);
    loop_settle(&loop);
}
END_TEST

static void work_until_others_return(void *ctx)
{
    if (atomic_fetch_add(&worked, 1) == AT_ONCE - 1)
        for (int i = 0; i < AT_ONCE; i++)
            ck_assert_int_eq(sem_post(&may_return), 0);
    (void)ctx;
    ck_assert_int_eq(sem_wait(&may_return), 0);
}

START_TEST(blocking_work_never_waits_for_other_blocking_work)
{
    const int all = AT_ONCE;

    for (int i = 0; i < AT_ONCE; i++)
        ck_assert_int_eq(uva_runtime_run(loop.runtime, UVA_LANE_BLOCKING,
                                         work_until_others_return, done,
                                         &worked),
                         0);
    loop_until(&loop, has_ended, (void *)(uintptr_t)&all);
}
END_TEST

static void work_until_released(void *ctx)
{
    (void)ctx;
    ck_assert_int_eq(sem_wait(&may_return), 0);
    atomic_fetch_add(&worked, 1);
}

static void wait_for_end(void)
{
    while (atomic_load(&ended) == 0)
        uv_sleep(1);
}

START_TEST(a_close_waits_for_work_and_its_end_is_called)
{
    ck_assert_int_eq(run(UVA_LANE_BLOCKING, done), 0);
    loop_close_runtime(&loop, 0);
    wait_for_end();
    ck_assert_int_eq(atomic_load(&ended), 1);
}
END_TEST

START_TEST(work_that_outlives_the_runtime_ends_on_its_worker)
{
    ck_assert_int_eq(uva_runtime_run(loop.runtime, UVA_LANE_BLOCKING,
                                     work_until_released, done, &worked),
                     0);
    loop_close_runtime(&loop, 0);
    ck_assert_int_eq(atomic_load(&ended), 0);
    ck_assert_int_eq(sem_post(&may_return), 0);
    wait_for_end();
    ck_assert(!atomic_load(&ended_on_loop));
}
END_TEST

START_TEST(a_closed_runtime_refuses_work)
{
    struct uva_runtime *late = uva_runtime_acquire(loop.runtime);

    loop_close_runtime(&loop, 0);
    ck_assert_int_eq(
        uva_runtime_run(late, UVA_LANE_BLOCKING, never, never, NULL),
        ESHUTDOWN);
    uva_runtime_release(late);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    int runs = 0;

    for (long n = 1; runs < 2; n++) {
        const enum uva_lane lane = runs;
        int code;

        loop_fail(&loop, n);
        code = run(lane, done);
        loop_fail(&loop, 0);
        if (code != 0) {
            ck_assert_int_eq(code, ENOMEM);
            continue;
        }
        ck_assert_int_gt(n, 1);
        runs++;
        n = 0;
        loop_until(&loop, has_ended, &runs);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_tests("run", work_is_done_by_a_worker_and_ends_on_the_loop,
                           work_without_an_end_does_not_keep_the_loop,
                           blocking_work_never_waits_for_other_blocking_work,
                           a_close_waits_for_work_and_its_end_is_called,
                           work_that_outlives_the_runtime_ends_on_its_worker,
                           a_closed_runtime_refuses_work,
                           every_allocation_may_fail, NULL);

    return suite_main("run", set_up, tear_down, c, NULL);
}
