/* SPDX-License-Identifier: Apache-2.0 */
/* The extractors of a stage: after its runtime has released the worker threads
 * no extractor can be launched, and none stays counted; and when their jobs are
 * raised, for which the test replaces uva__lane_raise() at link time. The happy
 * path runs in tests/model and in the tests of streams. */
#include "stage/extract_pool.h"

#include <check.h>

#include "exec/awaited.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "uvarrow/arrow.h"

START_TEST(without_worker_threads_no_extractor_is_launched)
{
    static const struct uva__wakeup_ops no_ops;
    const struct uva__measure measure = {0}; /* no batch is extracted */
    struct faulty_allocator memory;
    struct uva_runtime_options options = {0};
    struct uva__producer producer = {0};
    static struct uva__flight_batch entries[3];
    struct uva__extract_pool pool = {.workers = 2};
    struct uva__stage *stage = &pool.flight.stage;
    struct uva__list unclaimed = {0};

    faulty_allocator_init(&memory, 0);
    options.allocator = faulty_allocator_table(&memory);
    ck_assert_int_eq(uva__rt_new(&options, &stage->source.rt), 0);
    stage->source.producer = &producer;
    uva__wakeup_init(&stage->source.wakeup, &no_ops, 1);
    ck_assert_int_eq(uva__extract_pool_prepare(&pool, &measure), 0);
    uva__rt_retire(stage->source.rt);
    for (int i = 0; i < 3; i++) { /* more often than there are extractors */
        uva__extract_pool_grant(&pool, &entries[i]);
        uva__extract_pool_publish(&pool);
        ck_assert_uint_eq(uva__atomic64_load(&stage->source.wakeup.refs), 1);
        ck_assert_int_eq(pool.locked.active, 0);
    }
    uva__extract_pool_stop(&pool, &unclaimed);
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_eq(uva__list_pop(&unclaimed), &entries[i].work_link);
    ck_assert_ptr_null(uva__list_pop(&unclaimed));
    uva__extract_pool_fini(&pool);
    uva__rt_release(stage->source.rt);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}
END_TEST

static int raised; /* jobs */

void __wrap_uva__lane_raise(struct uva__jobs *jobs, enum uva_lane lane,
                            struct uva__job *job);
void __wrap_uva__lane_raise(struct uva__jobs *jobs, enum uva_lane lane,
                            struct uva__job *job)
{
    (void)jobs;
    (void)lane;
    ck_assert_ptr_nonnull(job);
    raised++;
}

START_TEST(jobs_are_raised_once_when_a_consumer_begins_to_wait_for_read_ahead)
{
    struct uva_runtime_options options = {0};
    struct faulty_allocator memory;
    const struct uva__measure measure = {0}; /* no batch is extracted */
    struct uva__extract_pool pool = {.workers = 2};
    struct uva__source *source = &pool.flight.stage.source;

    faulty_allocator_init(&memory, 0);
    options.allocator = faulty_allocator_table(&memory);
    ck_assert_int_eq(uva__rt_new(&options, &source->rt), 0);
    ck_assert_int_eq(uva__extract_pool_prepare(&pool, &measure), 0);
    raised = 0;
    uva__extract_pool_want(&pool, 1); /* no job is queued */
    ck_assert_int_eq(raised, 0);
    ck_assert(!uva__awaited_submit(&pool.awaited, 0)); /* it is waited for */
    ck_assert(uva__awaited_submit(&pool.awaited, 1));
    uva__extract_pool_want(&pool, 1); /* no further one */
    ck_assert_int_eq(raised, 0);
    uva__extract_pool_want(&pool, 2);
    ck_assert_int_eq(raised, 2);
    uva__extract_pool_want(&pool, 2);
    ck_assert_int_eq(raised, 2);
    uva__extract_pool_fini(&pool);
    uva__rt_retire(source->rt);
    uva__rt_release(source->rt);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}
END_TEST

int main(void)
{
    return suite_main(
        "extractors", NULL, NULL,
        suite_tests(
            "pool", without_worker_threads_no_extractor_is_launched,
            jobs_are_raised_once_when_a_consumer_begins_to_wait_for_read_ahead,
            NULL),
        NULL);
}
