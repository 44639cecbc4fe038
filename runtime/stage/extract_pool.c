/* SPDX-License-Identifier: Apache-2.0 */
/* The extractors of a parallel stage, which run on compute workers.
 *
 * Happy path:  a batch is granted and published -> an idle extractor is
 *              submitted, or an active one goes on -> it claims the batch ->
 *              extracts it -> marks it as done and posts the stage. Without a
 *              batch to claim it is idle again.
 *
 * Failures:    an extraction; the batch has its code.
 *
 * On stop:     batches that are not claimed are taken back; a batch that is
 *              being extracted is discarded by its worker, which is not waited
 *              for: its thread may be written off. */
#include "stage/extract_pool.h"

#include <errno.h>

#include "base/memory.h"
#include "stage/worker_job.h"
#include "uvarrow/arrow.h"

struct uva__extractor {
    struct uva__link link; /* idle */
    struct uva__worker_job job;
};

static struct uva__extract_pool *pool_of(const struct uva__worker_job *job)
{
    return uva__container_of(uva__flight_of(job->stage),
                             struct uva__extract_pool, flight);
}

static struct uva__extractor *extractor_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva__extractor, link);
}

/* ---- a worker ----------------------------------------------------------- */

static void extractor_rest_locked(struct uva__extract_pool *pool,
                                  struct uva__extractor *extractor)
{
    pool->locked.active--;
    uva__list_push(&pool->locked.idle, &extractor->link);
}

/* Claims the next batch. NULL without one: then the extractor is idle. */
static struct uva__flight_batch *
extractor_claim(struct uva__extract_pool *pool,
                struct uva__extractor *extractor)
{
    struct uva__link *done;

    uva__lock_take(&pool->lock);
    done = uva__list_pop(&pool->locked.granted);
    if (done != NULL)
        pool->locked.claimed++;
    else
        extractor_rest_locked(pool, extractor);
    uva__lock_drop(&pool->lock);
    return done == NULL
               ? NULL
               : uva__container_of(done, struct uva__flight_batch, work_link);
}

/* The array takes the place of the promise in the slot. */
static void batch_extract(struct uva__extract_pool *pool,
                          struct uva__flight_batch *batch)
{
    struct uva__task *slot = batch->slot;
    struct ArrowAsyncTask promise = slot->promise;

    batch->failure.code = uva_task_extract(&promise, &slot->array);
    if (batch->failure.code != 0)
        slot->array.array.release = NULL;
    else if (uva__atomic64_load(&pool->stopped) != 0)
        uva_array_release(&slot->array);
    else if (!slot->measured)
        slot->measured = uva__measure(pool->measure, &slot->array,
                                      &slot->info.bytes, NULL) == 0;
}

/* Between two batches an extractor yields to jobs that go before its next
 * batch. `waited` is its place if a consumer waits for that. */
static bool extractor_yields(struct uva__extract_pool *pool,
                             struct uva__job *job, enum uva__place waited)
{
    const struct uva__jobs *jobs = &pool->flight.stage.source.rt->jobs;
    bool more;

    if (!uva__lane_must_yield(jobs, UVA_LANE_COMPUTE, UVA__PLACE_AHEAD))
        return false;
    uva__lock_take(&pool->lock);
    more = !uva__list_is_empty(&pool->locked.granted);
    job->done = pool->locked.claimed;
    uva__lock_drop(&pool->lock);
    return more && (!uva__awaited_is(&pool->awaited, job->done) ||
                    uva__lane_must_yield(jobs, UVA_LANE_COMPUTE, waited));
}

static bool extractor_work(struct uva__worker_job *job)
{
    struct uva__extractor *extractor =
        uva__container_of(job, struct uva__extractor, job);
    struct uva__extract_pool *pool = pool_of(job);
    const enum uva__place waited = uva__place_of_job(&job->job, false);
    struct uva__flight_batch *batch;

    while ((batch = extractor_claim(pool, extractor)) != NULL) {
        batch_extract(pool, batch);
        uva__flight_finish(&pool->flight, batch);
        if (extractor_yields(pool, &job->job, waited))
            return true;
    }
    return false;
}

/* ---- the loop ----------------------------------------------------------- */

void uva__extract_pool_grant(struct uva__extract_pool *pool,
                             struct uva__flight_batch *batch)
{
    uva__list_push(&pool->fresh, &batch->work_link);
}

/* An extractor is idle only if no batch is granted, so one for each fresh batch
 * is enough. */
void uva__extract_pool_publish(struct uva__extract_pool *pool)
{
    struct uva__list starting = {0};
    struct uva__extractor *extractor;
    struct uva__link *link;

    uva__lock_take(&pool->lock);
    while ((link = uva__list_pop(&pool->fresh)) != NULL) {
        uva__list_push(&pool->locked.granted, link);
        link = uva__list_pop(&pool->locked.idle);
        if (link == NULL)
            continue;
        extractor_of(link)->job.job.done = pool->locked.claimed;
        pool->locked.active++;
        uva__list_push(&starting, link);
    }
    uva__lock_drop(&pool->lock);
    while ((link = uva__list_pop(&starting)) != NULL) {
        extractor = extractor_of(link);
        if (uva__worker_job_submit(&extractor->job))
            continue;
        uva__lock_take(&pool->lock);
        extractor_rest_locked(pool, extractor);
        uva__lock_drop(&pool->lock);
    }
}

void uva__extract_pool_want(struct uva__extract_pool *pool, uint64_t count)
{
    if (!uva__awaited_want(&pool->awaited, count))
        return;
    for (int32_t i = 0; i < pool->workers; i++)
        uva__lane_raise(&pool->flight.stage.source.rt->jobs, UVA_LANE_COMPUTE,
                        &pool->extractors[i].job.job);
}

void uva__extract_pool_stop(struct uva__extract_pool *pool,
                            struct uva__list *unclaimed)
{
    bool active;

    uva__atomic64_exchange(&pool->stopped, 1);
    uva__lock_take(&pool->lock);
    uva__list_append(unclaimed, &pool->locked.granted);
    active = pool->locked.active > 0;
    uva__lock_drop(&pool->lock);
    for (int32_t i = 0; active && i < pool->workers; i++)
        uva__worker_job_give_up(&pool->extractors[i].job);
}

/* ---- life --------------------------------------------------------------- */

void uva__extract_pool_fini(struct uva__extract_pool *pool)
{
    uva__memory_free(&pool->flight.stage.source.rt->allocator, pool->extractors,
                     sizeof(*pool->extractors) * (size_t)pool->workers);
    pool->extractors = NULL;
}

int uva__extract_pool_prepare(struct uva__extract_pool *pool,
                              const struct uva__measure *measure)
{
    pool->extractors =
        uva__memory_new(&pool->flight.stage.source.rt->allocator,
                        sizeof(*pool->extractors) * (size_t)pool->workers);
    if (pool->extractors == NULL)
        return ENOMEM;
    pool->measure = measure;
    for (int32_t i = 0; i < pool->workers; i++) {
        struct uva__extractor *extractor = &pool->extractors[i];

        uva__worker_job_init(&extractor->job, &pool->flight.stage,
                             extractor_work);
        extractor->job.job.awaited = &pool->awaited;
        uva__list_push(&pool->locked.idle, &extractor->link);
    }
    return 0;
}
