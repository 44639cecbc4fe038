/* SPDX-License-Identifier: Apache-2.0 */
/* The extractors of a parallel stage, which run on compute workers.
 *
 * Happy path:  a batch is granted and published -> a worker is started, or an
 *              active one goes on -> it claims the batch -> extracts it ->
 *              marks it as done and posts the stage.
 *
 * Failures: an extraction; the batch has its code.
 *
 * On stop:     batches that are not claimed are taken back; a batch that is
 *              being extracted is discarded by its worker, which is not waited
 *              for: its thread may be written off. */
#include "stage/extract_pool.h"

#include <assert.h>
#include <errno.h>

#include "base/memory.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

enum { WORK_SHIFT = 8, WORK_WORKERS = 255 };

struct uva__extractor {
    struct uva__link link; /* among those with a job that is not queued */
    struct uva_job job;    /* submitted when there is work */
    uint64_t submitted_ns; /* when that was; 0: not timed */
    struct uva__extract_pool
        *pool; /* borrows: its stage is counted meanwhile */
};

void uva__extract_pool_grant(struct uva__extract_pool *pool,
                             struct uva__flight_batch *batch)
{
    uva__atomic_ptr_store(&pool->granted[pool->put++ & (pool->ring - 1)],
                          batch);
}

/* The ring is read before the claim: once the batch is claimed and done, the
 * loop may grant another one in its place. */
static struct uva__flight_batch *
extract_pool_take(struct uva__extract_pool *pool)
{
    uint64_t claimed = uva__atomic64_load(&pool->claimed);
    struct uva__flight_batch *batch;

    do
        batch =
            uva__atomic_ptr_load(&pool->granted[claimed & (pool->ring - 1)]);
    while (!uva__atomic64_cas(&pool->claimed, &claimed, claimed + 1));
    return batch;
}

/* Claims the next batch. NULL without one: then the caller no longer counts as
 * active. */
static struct uva__flight_batch *
extract_pool_claim(struct uva__extract_pool *pool)
{
    uint64_t work = uva__atomic64_load(&pool->work);
    bool some;

    do
        some = work >> WORK_SHIFT != 0;
    while (!uva__atomic64_cas(&pool->work, &work,
                              some ? work - (1 << WORK_SHIFT) : work - 1));
    return some ? extract_pool_take(pool) : NULL;
}

/* The array takes the place of the promise in the slot. */
static void extract_pool_extract(struct uva__extract_pool *pool,
                                 struct uva__flight_batch *batch)
{
    struct uva__task *slot = batch->slot;
    struct ArrowAsyncTask promise = slot->promise;

    batch->failure.code = uva_task_extract(&promise, &slot->array);
    if (batch->failure.code != 0)
        slot->array.array.release = NULL;
    else if (uva__atomic64_load(&pool->stopped) != 0)
        uva_array_release(&slot->array);
    else if (!uva__measure_size(&pool->measure, &slot->array,
                                &slot->info.bytes))
        slot->info.bytes = 0;
}

/* Between two batches an extractor yields to jobs that go before its next
 * batch. `waited` is its place if a consumer waits for that. */
static bool extract_pool_must_yield(const struct uva__extract_pool *pool,
                                    enum uva__place waited)
{
    const struct uva__jobs *jobs = &pool->flight->stage.source.rt->jobs;

    if (!uva__lane_must_yield(jobs, UVA_LANE_COMPUTE, UVA__PLACE_AHEAD) ||
        uva__atomic64_load(&pool->work) >> WORK_SHIFT == 0)
        return false;
    return !uva__awaited_is(&pool->awaited,
                            uva__atomic64_load(&pool->claimed)) ||
           uva__lane_must_yield(jobs, UVA_LANE_COMPUTE, waited);
}

/* Submits the job of an idle extractor, of which there is one: no more jobs are
 * queued than workers are counted, and the caller has counted one that is not
 * queued. */
static void extract_pool_submit(struct uva__extract_pool *pool)
{
    struct uva__extractor *worker;

    uva__lock_take(&pool->lock);
    worker = uva__container_of(uva__list_pop(&pool->locked.idle),
                               struct uva__extractor, link);
    uva__lock_drop(&pool->lock);
    worker->job.done = uva__atomic64_load(&pool->claimed);
    uva__meter_submit(pool->flight->stage.source.meter, UVA_LANE_COMPUTE,
                      &worker->job, &worker->submitted_ns);
}

/* Extracts batches. False: no batch is left, and the caller no longer counts as
 * active; true: it yields. */
static bool extract_pool_work(struct uva__extract_pool *pool,
                              enum uva__place waited)
{
    struct uva__flight_batch *batch;

    while ((batch = extract_pool_claim(pool)) != NULL) {
        extract_pool_extract(pool, batch);
        uva__flight_finish(pool->flight, batch);
        if (extract_pool_must_yield(pool, waited))
            return true;
    }
    return false;
}

static void extract_pool_run(struct uva_job *job)
{
    struct uva__extractor *worker =
        uva__container_of(job, struct uva__extractor, job);
    struct uva__extract_pool *pool = worker->pool;
    struct uva__rt *rt = pool->flight->stage.source.rt;
    struct uva__meter *meter = pool->flight->stage.source.meter;
    const enum uva__place waited = uva__place_of_job(job, false);
    bool counts, yields;

    uva__meter_run_begin(meter, worker->submitted_ns);
    uva__lock_take(&pool->lock); /* the job is not queued any more */
    uva__list_push(&pool->locked.idle, &worker->link);
    counts = uva__stuck_calls_enter(&pool->locked.calls);
    uva__lock_drop(&pool->lock);
    yields = extract_pool_work(pool, waited);
    uva__meter_run_end(meter);
    if (counts) {
        uva__lock_take(&pool->lock);
        uva__stuck_calls_leave(&pool->locked.calls, &rt->stats);
        uva__lock_drop(&pool->lock);
    }
    if (yields) {
        extract_pool_submit(pool);
        return;
    }
    uva__stage_release(&pool->flight->stage);
    uva__rt_job_end(rt);
}

/* Starts one more worker, which was counted as active. False if the worker
 * threads were released: then it is counted no more. */
static bool extract_pool_launch(struct uva__extract_pool *pool)
{
    uva__stage_acquire(&pool->flight->stage);
    if (uva__rt_job_begin(pool->flight->stage.source.rt)) {
        extract_pool_submit(pool);
        return true;
    }
    uva__atomic64_sub(&pool->work, 1);
    uva__stage_release(&pool->flight->stage);
    return false;
}

void uva__extract_pool_publish(struct uva__extract_pool *pool, uint64_t count)
{
    uint64_t work = uva__atomic64_add(&pool->work, count << WORK_SHIFT);
    uint64_t most = (work & WORK_WORKERS) + (work >> WORK_SHIFT) + count;

    if (most > (uint64_t)pool->workers)
        most = (uint64_t)pool->workers;
    work = uva__atomic64_load(&pool->work);
    while ((work & WORK_WORKERS) < most && work >> WORK_SHIFT != 0) {
        if (!uva__atomic64_cas(&pool->work, &work, work + 1))
            continue;
        if (!extract_pool_launch(pool))
            return;
        work = uva__atomic64_load(&pool->work);
    }
}

static void extract_pool_abandon(struct uva__extract_pool *pool)
{
    uva__lock_take(&pool->lock);
    uva__stuck_calls_abandon(&pool->locked.calls,
                             &pool->flight->stage.source.rt->stats);
    uva__lock_drop(&pool->lock);
}

/* No one waits for the workers any more: their threads may be written off. */
static void extract_pool_give_up(struct uva__extract_pool *pool)
{
    struct uva__rt *rt = pool->flight->stage.source.rt;

    if (!uva__rt_job_begin(rt))
        return;
    for (int32_t i = 0; i < pool->workers; i++)
        (void)uva__lane_give_up(&rt->jobs, UVA_LANE_COMPUTE,
                                &pool->extractors[i].job);
    uva__rt_job_end(rt);
}

void uva__extract_pool_want(struct uva__extract_pool *pool, uint64_t count)
{
    if (!uva__awaited_want(&pool->awaited, count))
        return;
    for (int32_t i = 0; i < pool->workers; i++)
        uva__lane_raise(&pool->flight->stage.source.rt->jobs, UVA_LANE_COMPUTE,
                        &pool->extractors[i].job);
}

uint64_t uva__extract_pool_stop(struct uva__extract_pool *pool)
{
    uint64_t work;

    uva__atomic64_exchange(&pool->stopped, 1);
    work = uva__atomic64_and(&pool->work, WORK_WORKERS);
    if ((work & WORK_WORKERS) != 0) {
        extract_pool_abandon(pool);
        extract_pool_give_up(pool);
    }
    return work >> WORK_SHIFT;
}

struct uva__flight_batch *
uva__extract_pool_ungrant(struct uva__extract_pool *pool)
{
    return uva__atomic_ptr_load(&pool->granted[--pool->put & (pool->ring - 1)]);
}

/* ---- room --------------------------------------------------------------- */

void uva__extract_pool_fini(struct uva__extract_pool *pool)
{
    const struct uva_allocator *allocator =
        &pool->flight->stage.source.rt->allocator;

    uva__measure_fini(&pool->measure);
    uva__memory_free(allocator, pool->granted,
                     sizeof(*pool->granted) * pool->ring);
    uva__memory_free(allocator, pool->extractors,
                     sizeof(*pool->extractors) * (size_t)pool->workers);
    pool->granted = NULL;
    pool->extractors = NULL;
}

int uva__extract_pool_prepare(struct uva__extract_pool *pool, int64_t batches,
                              const struct ArrowSchema *schema)
{
    const struct uva_allocator *allocator =
        &pool->flight->stage.source.rt->allocator;
    int32_t i;

    pool->ring = uva__window_ring(batches);
    pool->granted =
        uva__memory_new(allocator, sizeof(*pool->granted) * pool->ring);
    pool->extractors = uva__memory_new(allocator, sizeof(*pool->extractors) *
                                                      (size_t)pool->workers);
    if (pool->granted == NULL || pool->extractors == NULL ||
        uva__measure_init(&pool->measure, allocator, schema) != 0) {
        uva__extract_pool_fini(pool);
        return ENOMEM;
    }
    for (i = 0; i < pool->workers; i++) {
        pool->extractors[i].job.run = extract_pool_run;
        pool->extractors[i].job.awaited = &pool->awaited;
        pool->extractors[i].job.priority = pool->priority;
        pool->extractors[i].pool = pool;
        uva__list_push(&pool->locked.idle, &pool->extractors[i].link);
    }
    return 0;
}
