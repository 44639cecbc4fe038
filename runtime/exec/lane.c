/* SPDX-License-Identifier: Apache-2.0 */
/* Queues jobs in lanes, and makes sure that a thread runs them.
 *
 * Happy path:  ensure keeps one thread for the lane -> submit queues the job
 *              and finds it a thread -> it runs.
 *
 * Failures:
 * - thread creation fails: ensure returns the code; a job waits for an existing
 *   thread, and the loop of its runtime tries again;
 * - a job that was given up does not return: exec/pool.c.
 *
 * On close:    queued jobs still run; running ones go on, and use only the
 *              workers, which live as long as their threads. */
#include "exec/lane.h"

#include <assert.h>

#include "base/atomic.h"
#include "base/locked_wait.h"
#include "exec/pool.h"

/* ---- the jobs of one runtime -------------------------------------------- */

int uva__jobs_init(struct uva__jobs *jobs, struct uva_workers *workers,
                   const struct uva_allocator *allocator, const char *name)
{
    struct uva_workers_options own = {.name = name};
    int code;

    *jobs = (struct uva__jobs){.workers = workers};
    if (workers != NULL) {
        code = uva__pool_acquire(workers);
    } else {
        own.allocator = *allocator;
        code = uva_workers_new(&own, &jobs->workers, NULL);
    }
    if (code == 0)
        jobs->stuck_threads = jobs->workers->stuck_threads;
    return code;
}

void uva__jobs_on_freed(struct uva__jobs *jobs, void (*freed)(void *ctx),
                        void *ctx)
{
    jobs->workers->freed = freed;
    jobs->workers->freed_ctx = ctx;
}

void uva__jobs_fini(struct uva__jobs *jobs)
{
    struct uva_workers *workers = jobs->workers;

    if (uva__pool_is_forked(workers))
        return;
    uva__lock_take(&workers->locked.lock);
    for (int lane = 0; lane < UVA__LANES; lane++) {
        assert(uva__fair_queue_client_is_empty(&jobs->locked.clients[lane]));
        if (!jobs->locked.reserved[lane])
            continue;
        workers->locked.classes[lane].reserved--;
        uva__pool_class_wake_locked(workers, lane);
    }
    uva__lock_drop(&workers->locked.lock);
    uva_workers_release(workers);
}

/* ---- making sure of a thread -------------------------------------------- */

static void lane_reserve_locked(struct uva__jobs *jobs, int lane)
{
    if (jobs->locked.reserved[lane])
        return;
    jobs->locked.reserved[lane] = true;
    jobs->workers->locked.classes[lane].reserved++;
}

/* A capped lane needs any thread that is not written off, as its jobs end; the
 * uncapped lane needs a free one. */
static bool lane_has_thread_locked(const struct uva_workers *workers, int lane)
{
    const struct uva__pool_class *pool_class = &workers->locked.classes[lane];

    if (lane == UVA__LANE_UNCAPPED)
        return uva__pool_class_sum_locked(pool_class, UVA__WORKER_LOOKING,
                                          UVA__WORKER_ASLEEP) >
               (int64_t)uva__atomic64_load(&workers->waiting[lane]);
    return uva__pool_class_sum_locked(pool_class, UVA__WORKER_LOOKING,
                                      UVA__WORKER_BLOCKED) > 0;
}

/* While a thread is being started, waits until it has begun, or could not be
 * started. */
static void lane_await_starts_locked(struct uva_workers *workers, int lane)
{
    while (!lane_has_thread_locked(workers, lane) &&
           workers->locked.classes[lane].count[UVA__WORKER_STARTING] > 0)
        (void)uva__locked_wait(&workers->locked.lock, &workers->changed, -1);
}

static int lane_ensure(struct uva__jobs *jobs, int lane)
{
    struct uva_workers *workers = jobs->workers;
    bool starts;

    uva__lock_take(&workers->locked.lock);
    lane_reserve_locked(jobs, lane);
    lane_await_starts_locked(workers, lane);
    starts = !lane_has_thread_locked(workers, lane);
    if (starts)
        uva__pool_class_reserve_locked(workers, lane);
    uva__lock_drop(&workers->locked.lock);
    return starts ? uva__pool_class_start(workers, lane) : 0;
}

int uva__lane_ensure(struct uva__jobs *jobs, enum uva_lane lane)
{
    return lane_ensure(jobs, (int)lane);
}

int uva__lane_ensure_uncapped(struct uva__jobs *jobs)
{
    return lane_ensure(jobs, UVA__LANE_UNCAPPED);
}

/* ---- handing jobs over -------------------------------------------------- */

/* Decides under the lock whether the job is read-ahead: so a consumer that
 * begins to wait after that finds it queued. */
static void job_push_locked(struct uva__jobs *jobs, struct uva__job *job)
{
    struct uva_workers *workers = jobs->workers;
    const bool ahead =
        job->awaited != NULL && uva__awaited_submit(job->awaited, job->done);

    uva__fair_queue_push(&workers->locked.classes[job->lane].round,
                         &jobs->locked.clients[job->lane], &job->link,
                         uva__place_of_job(job, ahead), job->priority);
    uva__pool_class_publish_locked(workers, job->lane);
}

static bool job_remove_locked(struct uva__jobs *jobs, struct uva__job *job)
{
    struct uva_workers *workers = jobs->workers;

    if (!uva__fair_queue_remove(&workers->locked.classes[job->lane].round,
                                &jobs->locked.clients[job->lane], &job->link))
        return false;
    uva__pool_class_publish_locked(workers, job->lane);
    return true;
}

/* Once the lock is dropped the job may have run, and have freed its `jobs`. */
static void lane_queue(struct uva__jobs *jobs, int lane, struct uva__job *job,
                       struct uva__counter *wakeups)
{
    struct uva_workers *workers = jobs->workers;

    uva__lock_take(&workers->locked.lock);
    job->jobs = jobs;
    job->lane = lane;
    job_push_locked(jobs, job);
    uva__atomic64_add(&workers->waiting[lane], 1);
    uva__pool_class_drop_for_locked(workers, lane, wakeups);
}

static void lane_retry(struct uva__jobs *jobs, int lane)
{
    struct uva_workers *workers = jobs->workers;

    if (uva__atomic64_load(&workers->waiting[lane]) == 0 &&
        lane != UVA_LANE_BLOCKING)
        return;
    uva__lock_take(&workers->locked.lock);
    if (lane == UVA_LANE_BLOCKING && jobs->locked.watches) {
        jobs->locked.watches = false;
        uva__pool_class_look_locked(workers, lane);
    }
    uva__pool_class_drop_locked(workers, lane);
}

void uva__lane_retry(struct uva__jobs *jobs)
{
    for (int lane = 0; lane < UVA__LANES; lane++)
        lane_retry(jobs, lane);
}

void uva__lane_submit_counted(struct uva__jobs *jobs, enum uva_lane lane,
                              struct uva__job *job,
                              struct uva__counter *wakeups)
{
    lane_queue(jobs, (int)lane, job, wakeups);
}

void uva__lane_run_uncapped(struct uva__jobs *jobs, struct uva__job *job)
{
    lane_queue(jobs, UVA__LANE_UNCAPPED, job, NULL);
}

void uva__lane_raise(struct uva__jobs *jobs, enum uva_lane lane,
                     struct uva__job *job)
{
    struct uva_workers *workers = jobs->workers;

    uva__lock_take(&workers->locked.lock);
    if (job->link.queued && job->link.place == UVA__PLACE_AHEAD) {
        (void)job_remove_locked(jobs, job);
        job_push_locked(jobs, job);
    }
    uva__pool_class_drop_locked(workers, lane);
}

bool uva__lane_take_back(struct uva__jobs *jobs, struct uva__job *job)
{
    struct uva_workers *workers = jobs->workers;
    bool taken;

    uva__lock_take(&workers->locked.lock);
    taken = job_remove_locked(jobs, job);
    if (taken)
        uva__atomic64_sub(&workers->waiting[job->lane], 1);
    uva__lock_drop(&workers->locked.lock);
    return taken;
}

/* ---- giving jobs up ----------------------------------------------------- */

enum uva__job_place uva__lane_give_up(struct uva__jobs *jobs,
                                      enum uva_lane lane, struct uva__job *job)
{
    struct uva_workers *workers = jobs->workers;
    enum uva__job_place place = UVA__JOB_GONE;
    struct uva__worker *worker;

    uva__lock_take(&workers->locked.lock);
    worker = uva__pool_class_find_locked(&workers->locked.classes[lane], job);
    if (worker != NULL) {
        uva__worker_give_up_locked(worker);
        place = UVA__JOB_RUNNING;
    } else if (job->link.queued) {
        place = UVA__JOB_WAITING;
    }
    uva__pool_class_drop_locked(workers, (int)lane);
    return place;
}

void uva__lane_give_up_here(void)
{
    struct uva__worker *worker = uva__pool_class_here();
    struct uva_workers *workers;

    if (worker == NULL || worker->lane == UVA__LANE_UNCAPPED)
        return;
    workers = worker->workers;
    uva__lock_take(&workers->locked.lock);
    uva__worker_give_up_locked(worker);
    uva__pool_class_drop_locked(workers, worker->lane);
}

unsigned uva__lane_take_news(struct uva__jobs *jobs)
{
    unsigned news;

    uva__lock_take(&jobs->workers->locked.lock);
    news = jobs->locked.news;
    jobs->locked.news = 0;
    uva__lock_drop(&jobs->workers->locked.lock);
    return news;
}

/* ---- inside a job ------------------------------------------------------- */

bool uva__lane_is_wanted(struct uva__jobs *jobs, enum uva_lane lane)
{
    return uva__atomic64_load(&jobs->workers->waiting[lane]) > 0;
}

bool uva__lane_must_yield(const struct uva__jobs *jobs, enum uva_lane lane,
                          enum uva__place place)
{
    return uva__atomic64_peek(&jobs->workers->foremost[lane]) >
           (uint64_t)(UVA__PLACES - (int)place);
}

/* Whether the calling thread counts against the cap. */
static bool worker_is_capped(const struct uva__worker *worker)
{
    return worker != NULL && worker->lane == UVA_LANE_BLOCKING;
}

void uva__lane_wait_begin(void)
{
    struct uva__worker *worker = uva__pool_class_here();
    struct uva_workers *workers;

    if (!worker_is_capped(worker) || worker->waits++ > 0)
        return;
    workers = worker->workers;
    uva__lock_take(&workers->locked.lock);
    if (worker->state == UVA__WORKER_RUNNING)
        uva__worker_set_locked(worker, UVA__WORKER_BLOCKED);
    uva__pool_class_drop_locked(workers, worker->lane);
}

void uva__lane_wait_end(void)
{
    struct uva__worker *worker = uva__pool_class_here();
    struct uva_workers *workers;

    if (!worker_is_capped(worker) || --worker->waits > 0)
        return;
    workers = worker->workers;
    uva__lock_take(&workers->locked.lock);
    if (worker->state == UVA__WORKER_BLOCKED)
        uva__worker_set_locked(worker, UVA__WORKER_RUNNING);
    uva__lock_drop(&workers->locked.lock);
}

/* ---- for the statistics ------------------------------------------------- */

static int64_t lane_threads_locked(const struct uva_workers *workers, int lane)
{
    return uva__pool_class_sum_locked(&workers->locked.classes[lane],
                                      UVA__WORKER_STARTING,
                                      UVA__WORKER_WRITTEN_OFF);
}

void uva__lane_count(struct uva__jobs *jobs, int64_t *compute,
                     int64_t *blocking)
{
    struct uva_workers *workers = jobs->workers;

    uva__lock_take(&workers->locked.lock);
    *compute = lane_threads_locked(workers, UVA_LANE_COMPUTE);
    *blocking = lane_threads_locked(workers, UVA_LANE_BLOCKING) +
                lane_threads_locked(workers, UVA__LANE_UNCAPPED);
    uva__lock_drop(&workers->locked.lock);
}

int64_t uva__lane_count_written_off(struct uva__jobs *jobs)
{
    struct uva_workers *workers = jobs->workers;
    int64_t n = 0;

    uva__lock_take(&workers->locked.lock);
    for (int lane = 0; lane < UVA__LANES; lane++)
        n += workers->locked.classes[lane].count[UVA__WORKER_WRITTEN_OFF];
    uva__lock_drop(&workers->locked.lock);
    return n;
}
