/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads: how they are made, found for a job, started, put to sleep,
 * joined and freed. Which job goes to which lane is exec/lane.c.
 *
 * Happy path:  made with one owner -> each job queue adds one -> a thread is
 *              reserved under the lock and started without it -> it takes jobs
 *              in turn -> sleeps without jobs -> leaves when its idle
 *              timeout expires, and joins the thread that left before -> the
 *              last owner has all threads leave, joins the last of them (which
 *              has joined the rest) and frees.
 *
 * Failures:
 * - thread creation: queued jobs then wait for existing threads; each later
 *   submit or take in the lane tries again, and so do the loops of the runtimes
 *   with jobs that wait;
 * - all blocking threads are inside calls that wait, as for feeds without news:
 *   when none has returned for UVA__LIMIT_STANDS_MS and jobs wait, more threads
 *   are started, up to SPARE_THREADS; they leave when they have no work;
 * - a job that was given up does not return, and other jobs wait while the lane
 *   is at its cap: the thread is written off, and one more may start. When the
 *   job returns after all, the thread counts again, and the lane has one too
 *   many: the first thread without a job exits.
 *
 * On the end:  sleeping threads are woken and leave; running ones leave when
 *              their job returns. Threads that stay inside a job for
 *              UVA__LIMIT_WORKERS_MS are stuck and are abandoned: they are not
 *              joined but detach themselves, and the last one to leave frees.
 *              So does the thread of the last owner, if it is a worker.
 *
 * One rule keeps jobs from being forgotten: while a job is queued that may be
 * taken and a thread sleeps, or may be started, another thread is awake and
 * without a job. A function that adds such a job or takes away such a thread
 * restores that before it drops the lock. A thread that takes a job is such a
 * function: it wakes the next thread only if jobs are left. So a queue of short
 * jobs, which one thread takes one after the other, wakes few threads. */
#define _GNU_SOURCE
#include "exec/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/locked_wait.h"
#include "base/memory.h"
#include "base/platform.h"
#include "base/thread.h"
#include "base/time_limits.h"
#include "exec/fair_queue.h"

enum {
    IDLE_MS = 10000,
    BLOCKING_CAP = 64,
    SPARE_THREADS = 192,
    STUCK_THREADS = 256,
    KEPT_SHARE = 8
};

static _Thread_local struct uva__worker *here; /* NULL: no worker thread */
static _Thread_local bool in_compute; /* inside a job of the compute lane */

static void *worker_main(void *arg);

struct uva__worker *uva__pool_class_here(void)
{
    return here;
}

static struct uva__pool_class *class_of(const struct uva__worker *worker)
{
    return &worker->workers->locked.classes[worker->lane];
}

void uva__worker_set_locked(struct uva__worker *worker,
                            enum uva__worker_state state)
{
    class_of(worker)->count[worker->state]--;
    class_of(worker)->count[state]++;
    worker->state = state;
}

/* ---- making them -------------------------------------------------------- */

static int options_check(const struct uva_workers_options *options,
                         struct uva_error *error)
{
    static void *const zero[4];

    if (memcmp(options->reserved, zero, sizeof(zero)) != 0)
        return uva_error_set(error, EINVAL,
                             "struct uva_workers_options: `reserved` must be "
                             "zero; was the struct cleared?");
    if (options->compute_threads < 0 || options->blocking_threads < 0)
        return uva_error_set(error, EINVAL,
                             "struct uva_workers_options: `compute_threads` "
                             "and `blocking_threads` must not be negative");
    return 0;
}

static void caps_init(struct uva_workers *workers,
                      const struct uva_workers_options *options)
{
    struct uva__pool_class *classes = workers->locked.classes;

    classes[UVA_LANE_COMPUTE].cap = options->compute_threads > 0
                                        ? options->compute_threads
                                        : uva__platform_cores();
    classes[UVA_LANE_BLOCKING].cap = options->blocking_threads > 0
                                         ? options->blocking_threads
                                         : BLOCKING_CAP;
    if (options->blocking_threads == 0)
        classes[UVA_LANE_BLOCKING].spare_cap = SPARE_THREADS;
    classes[UVA__LANE_UNCAPPED].cap = INT32_MAX;
    for (int lane = 0; lane < UVA__LANES; lane++)
        classes[lane].ahead_cap = classes[lane].cap;
    classes[UVA_LANE_BLOCKING].ahead_cap -=
        classes[UVA_LANE_BLOCKING].cap / KEPT_SHARE;
}

static void pool_init(struct uva_workers *workers,
                      const struct uva_workers_options *options)
{
    workers->thread_begin = options->thread_begin;
    workers->thread_end = options->thread_end;
    workers->ctx = options->ctx;
    workers->idle_ms = IDLE_MS;
    workers->stuck_threads = STUCK_THREADS;
    workers->process = uva__platform_process();
    if (options->name != NULL)
        (void)snprintf(workers->name, sizeof(workers->name), "%s",
                       options->name);
    caps_init(workers, options);
    workers->locked.owners = 1;
}

int uva_workers_new(const struct uva_workers_options *options,
                    struct uva_workers **out, struct uva_error *error)
{
    static const struct uva_workers_options defaults;
    struct uva_allocator allocator;
    struct uva_workers *workers;
    int code;

    if (options == NULL)
        options = &defaults;
    code = options_check(options, error);
    if (code != 0)
        return code;
    if (uva__memory_adopt(&options->allocator, &allocator) != 0)
        return uva_error_set(error, EINVAL,
                             "struct uva_workers_options: `allocator` needs "
                             "both functions or none");
    workers = uva__memory_new(&allocator, sizeof(*workers));
    if (workers == NULL)
        return uva_error_set(error, ENOMEM, "out of memory for workers");
    workers->allocator = allocator;
    pool_init(workers, options);
    *out = workers;
    return 0;
}

void uva__workers_limit(struct uva_workers *workers, int32_t idle_ms,
                        int32_t stuck_threads)
{
    workers->idle_ms = idle_ms;
    workers->stuck_threads = stuck_threads;
}

void uva__workers_spare(struct uva_workers *workers, int32_t threads)
{
    workers->locked.classes[UVA_LANE_BLOCKING].spare_cap = threads;
}

bool uva__pool_is_forked(const struct uva_workers *workers)
{
    return uva__platform_process() != workers->process;
}

int uva__pool_acquire(struct uva_workers *workers)
{
    if (uva__pool_is_forked(workers))
        return EPERM;
    uva__lock_take(&workers->locked.lock);
    workers->locked.owners++;
    uva__lock_drop(&workers->locked.lock);
    return 0;
}

/* ---- data of higher layers ---------------------------------------------- */

/* If two threads make the data at once, the later one frees its own. */
struct uva__pool_data *uva__pool_get_data(struct uva_workers *workers,
                                          struct uva__pool_data *(*make)(void))
{
    struct uva__pool_data *fresh, *data = uva__atomic_ptr_load(&workers->data);
    void *none = NULL;

    if (data != NULL)
        return data;
    fresh = make();
    if (fresh == NULL || uva__atomic_ptr_cas(&workers->data, &none, fresh))
        return fresh;
    fresh->end(fresh);
    return none;
}

/* ---- news for runtimes -------------------------------------------------- */

/* The queue of which a turn in `place` is linked into the rounds of a lane. */
static struct uva__jobs *jobs_of(struct uva__link *link, int lane, int place)
{
    struct uva__fair_queue_turn *turn =
        uva__container_of(link, struct uva__fair_queue_turn, link);
    struct uva__fair_queue_client *client =
        uva__container_of(turn - place, struct uva__fair_queue_client, turns);

    return uva__container_of(client - lane, struct uva__jobs, locked.clients);
}

void uva__pool_report_locked(struct uva__jobs *jobs, enum uva__news news)
{
    const unsigned before = jobs->locked.news;

    jobs->locked.news = before | news;
    if (before != jobs->locked.news && jobs->notify != NULL)
        jobs->notify(jobs);
}

/* Notifies every queue with jobs that wait in the lane to look for threads
 * again later. */
static void class_retry_locked(struct uva_workers *workers, int lane)
{
    const struct uva__fair_queue *round = &workers->locked.classes[lane].round;

    for (int place = 0; place < UVA__PLACES; place++)
        for (struct uva__link *link = round->rounds[place].head; link != NULL;
             link = link->next)
            uva__pool_report_locked(jobs_of(link, lane, place),
                                    UVA__NEWS_RETRY);
}

/* Reports to the queue of the job that is next. */
static void report_locked(struct uva_workers *workers, int lane,
                          enum uva__news news)
{
    const struct uva__fair_queue *round = &workers->locked.classes[lane].round;
    const int place = uva__fair_queue_first(round);

    uva__pool_report_locked(jobs_of(round->rounds[place].head, lane, place),
                            news);
}

/* ---- jobs that were given up -------------------------------------------- */

struct uva__worker *
uva__pool_class_find_locked(const struct uva__pool_class *pool_class,
                            const struct uva__job *job)
{
    struct uva__link *link = pool_class->workers.head;
    struct uva__worker *worker;

    for (; link != NULL; link = link->next) {
        worker = uva__container_of(link, struct uva__worker, link);
        if (worker->job == job)
            return worker;
    }
    return NULL;
}

void uva__worker_give_up_locked(struct uva__worker *worker)
{
    if (worker->given_up)
        return;
    worker->given_up = true;
    worker->given_up_ns = uva__clock_ns();
    uva__list_push(&class_of(worker)->given_up, &worker->given);
    class_of(worker)->may_return++;
}

/* The thread that was given up first. A blocked thread does not count
 * against the cap anyway. */
static struct uva__worker *
class_oldest_locked(const struct uva__pool_class *pool_class)
{
    struct uva__link *link = pool_class->given_up.head;
    struct uva__worker *worker;

    for (; link != NULL; link = link->next) {
        worker = uva__container_of(link, struct uva__worker, given);
        if (worker->state != UVA__WORKER_BLOCKED)
            return worker;
    }
    return NULL;
}

/* For a lane at its cap, in which jobs wait: writes off the thread that was
 * given up first, if it has had time to return, and returns true. If it has
 * not, notifies the queues to look for threads again later. */
static bool class_write_off_locked(struct uva_workers *workers, int lane)
{
    const uint64_t limit_ns = (uint64_t)UVA__LIMIT_GIVEN_UP_MS * 1000000;
    struct uva__pool_class *pool_class = &workers->locked.classes[lane];
    struct uva__worker *worker = class_oldest_locked(pool_class);

    if (worker == NULL)
        return false;
    if (pool_class->count[UVA__WORKER_WRITTEN_OFF] >= workers->stuck_threads) {
        if (!workers->locked.full)
            report_locked(workers, lane, UVA__NEWS_FULL);
        workers->locked.full = true;
        return false;
    }
    if (uva__clock_ns() < worker->given_up_ns + limit_ns) {
        class_retry_locked(workers, lane);
        return false;
    }
    uva__list_remove(&pool_class->given_up, &worker->given);
    pool_class->may_return--;
    uva__worker_set_locked(worker, UVA__WORKER_WRITTEN_OFF);
    report_locked(workers, lane, UVA__NEWS_WRITTEN_OFF);
    return true;
}

/* Notes how many jobs have ended. Returns for how many ms that is so. */
static uint64_t class_see_locked(struct uva__pool_class *pool_class)
{
    const uint64_t now_ns = uva__clock_ns();

    if (pool_class->seen_ns == 0 || pool_class->seen != pool_class->ended)
        pool_class->seen_ns = now_ns;
    pool_class->seen = pool_class->ended;
    return (now_ns - pool_class->seen_ns) / 1000000;
}

/* Has the queues with jobs that wait look at the lane after a while, unless
 * they will do so: the clock is read, and a loop woken, only then. */
static void class_watch_locked(struct uva_workers *workers, int lane)
{
    struct uva__pool_class *pool_class = &workers->locked.classes[lane];
    bool is_new = false;

    for (int place = 0; place < UVA__PLACES; place++)
        for (struct uva__link *link = pool_class->round.rounds[place].head;
             link != NULL; link = link->next) {
            struct uva__jobs *jobs = jobs_of(link, lane, place);

            if (jobs->locked.watches)
                continue;
            jobs->locked.watches = is_new = true;
            uva__pool_report_locked(jobs, UVA__NEWS_RETRY);
        }
    if (is_new)
        (void)class_see_locked(pool_class);
}

void uva__pool_class_look_locked(struct uva_workers *workers, int lane)
{
    struct uva__pool_class *pool_class = &workers->locked.classes[lane];
    const uint64_t stands_ms = class_see_locked(pool_class);

    pool_class->stands = stands_ms >= UVA__LIMIT_STANDS_MS;
    if (stands_ms < UVA__LIMIT_STANDS_LONG_MS || pool_class->stood ||
        pool_class->spares < pool_class->spare_cap ||
        uva__fair_queue_is_empty(&pool_class->round))
        return;
    pool_class->stood = true;
    report_locked(workers, lane, UVA__NEWS_STANDS);
}

/* For a lane at its cap, in which jobs wait: whether one more thread may be
 * started, as it stands. */
static bool class_spare_locked(struct uva_workers *workers, int lane)
{
    struct uva__pool_class *pool_class = &workers->locked.classes[lane];
    const bool stands =
        pool_class->stands && pool_class->seen == pool_class->ended;

    if (stands && pool_class->spares < pool_class->spare_cap) {
        pool_class->spares++;
        return true;
    }
    if (!stands || !pool_class->stood)
        class_watch_locked(workers, lane);
    return false;
}

/* ---- finding a thread for a job ----------------------------------------- */

static int32_t class_cap_locked(const struct uva__pool_class *pool_class)
{
    return pool_class->cap + pool_class->spares;
}

/* The woken worker may exit as soon as the lock is released, so the caller must
 * not touch it after that. Returns the futex to wake. */
static struct uva__futex *class_call_locked(struct uva__pool_class *pool_class)
{
    struct uva__worker *worker = uva__container_of(
        uva__list_pop(&pool_class->asleep), struct uva__worker, sleeper);

    uva__worker_set_locked(worker, UVA__WORKER_LOOKING);
    uva__futex_change(&worker->call);
    return &worker->call;
}

static void class_wake_locked(struct uva__pool_class *pool_class)
{
    uva__futex_wake(class_call_locked(pool_class));
}

void uva__pool_class_wake_locked(struct uva_workers *workers, int lane)
{
    while (workers->locked.classes[lane].asleep.head != NULL)
        class_wake_locked(&workers->locked.classes[lane]);
}

/* How many more threads may take read-ahead. The last threads of the blocking
 * lane take no read-ahead, so that a job that a consumer waits for finds one
 * free, even if all read-ahead blocks. Threads that were given up do not count:
 * read-ahead has to find the lane at its cap for them to be written off. */
static int32_t class_ahead_room_locked(const struct uva__pool_class *pool_class)
{
    const int32_t busy =
        pool_class->count[UVA__WORKER_RUNNING] - pool_class->may_return;
    const int32_t room = pool_class->ahead_cap + pool_class->spares - busy;

    return room > 0 ? room : 0;
}

/* Whether jobs are queued that a thread may take, and no thread is about to
 * take one. */
static bool class_is_short_locked(const struct uva_workers *workers, int lane)
{
    const struct uva__pool_class *pool_class = &workers->locked.classes[lane];
    const int32_t coming = uva__pool_class_sum_locked(
        pool_class, UVA__WORKER_STARTING, UVA__WORKER_LOOKING);
    const int32_t excess =
        pool_class->round.ahead - class_ahead_room_locked(pool_class);

    return coming == 0 && (int64_t)uva__atomic64_peek(&workers->waiting[lane]) >
                              (excess > 0 ? excess : 0);
}

void uva__pool_class_publish_locked(struct uva_workers *workers, int lane)
{
    const uint64_t foremost =
        (uint64_t)(UVA__PLACES -
                   uva__fair_queue_first(&workers->locked.classes[lane].round));

    if (uva__atomic64_peek(&workers->foremost[lane]) != foremost)
        uva__atomic64_store(&workers->foremost[lane], foremost);
}

/* Whether one more thread may be started; threads that do not return are
 * written off for it, or, in the blocking lane, others beside them. */
static bool class_has_room_locked(struct uva_workers *workers, int lane)
{
    const struct uva__pool_class *pool_class = &workers->locked.classes[lane];

    while (uva__pool_class_sum_locked(pool_class, UVA__WORKER_STARTING,
                                      UVA__WORKER_RUNNING) >=
           class_cap_locked(pool_class))
        if (!class_write_off_locked(workers, lane) &&
            (lane != UVA_LANE_BLOCKING || !class_spare_locked(workers, lane)))
            return false;
    return true;
}

/* Whether a thread without a job has to exit. A start in progress does not
 * count, as it may fail. */
static bool class_is_beyond_cap_locked(const struct uva__pool_class *pool_class)
{
    return uva__pool_class_sum_locked(pool_class, UVA__WORKER_LOOKING,
                                      UVA__WORKER_RUNNING) >
           class_cap_locked(pool_class);
}

/* Wakes only after it has dropped the lock: on one CPU a thread that is woken
 * runs at once, and would wait for the lock. */
void uva__pool_class_drop_for_locked(struct uva_workers *workers, int lane,
                                     struct uva__counter *wakeups)
{
    struct uva__pool_class *pool_class = &workers->locked.classes[lane];
    struct uva__futex *call = NULL;
    bool start = false;

    if (class_is_short_locked(workers, lane)) {
        if (pool_class->asleep.head != NULL)
            call = class_call_locked(pool_class);
        else
            start = class_has_room_locked(workers, lane);
    }
    if (start)
        uva__pool_class_reserve_locked(workers, lane);
    if (call != NULL && wakeups != NULL)
        uva__counter_add_shared(wakeups, 1);
    uva__lock_drop(&workers->locked.lock);
    if (call != NULL)
        uva__futex_wake(call);
    if (start)
        (void)uva__pool_class_start(workers, lane);
}

/* ---- starting ----------------------------------------------------------- */

void uva__pool_class_reserve_locked(struct uva_workers *workers, int lane)
{
    workers->locked.classes[lane].count[UVA__WORKER_STARTING]++;
    workers->locked.starts++;
}

static int worker_create(struct uva_workers *workers, int lane)
{
    struct uva__worker *worker =
        uva__memory_new(&workers->allocator, sizeof(*worker));
    pthread_t thread;
    int code;

    if (worker == NULL)
        return ENOMEM;
    worker->workers = workers;
    worker->lane = lane;
    code = uva__platform_start_thread(&thread, worker_main, worker);
    if (code == 0)
        return 0;
    uva__memory_free(&workers->allocator, worker, sizeof(*worker));
    return code;
}

/* The thread counts from its reservation, so it may well have exited before
 * pthread_create() returns. The pool is not freed while this call runs, as
 * `starts` counts it. */
int uva__pool_class_start(struct uva_workers *workers, int lane)
{
    struct uva__pool_class *pool_class = &workers->locked.classes[lane];
    const int code = worker_create(workers, lane);

    uva__lock_take(&workers->locked.lock);
    workers->locked.starts--;
    if (code != 0) {
        pool_class->count[UVA__WORKER_STARTING]--;
        if (pool_class->asleep.head != NULL &&
            class_is_short_locked(workers, lane))
            class_wake_locked(pool_class);
        if (class_is_short_locked(workers, lane))
            class_retry_locked(workers, lane);
    }
    uva__futex_raise(&workers->changed);
    assert(!workers->locked.abandoned);
    uva__lock_drop(&workers->locked.lock);
    return code;
}

/* ---- inside a job ------------------------------------------------------- */

static void job_run(struct uva__job *job)
{
    const bool before = in_compute;

    in_compute = job->lane == UVA_LANE_COMPUTE;
    job->run(job);
    in_compute = before;
}

bool uva__lane_is_compute(void)
{
    return in_compute;
}

/* ---- the last use ------------------------------------------------------- */

/* Counts the threads in the states from `first` on. */
static int32_t pool_count_locked(const struct uva_workers *workers,
                                 enum uva__worker_state first)
{
    int32_t n = 0;

    for (int lane = 0; lane < UVA__LANES; lane++)
        n += uva__pool_class_sum_locked(&workers->locked.classes[lane], first,
                                        UVA__WORKER_WRITTEN_OFF);
    return n;
}

/* Counts threads, and calls of uva__pool_class_start() that will use `workers`
 * again. */
static int32_t pool_present_locked(const struct uva_workers *workers)
{
    return workers->locked.exiting + workers->locked.starts +
           pool_count_locked(workers, UVA__WORKER_STARTING);
}

/* Whether the caller, which has just ended its own use, must free. */
static bool pool_is_over_locked(const struct uva_workers *workers)
{
    return workers->locked.abandoned && pool_present_locked(workers) == 0;
}

static void pool_destroy(struct uva_workers *workers)
{
    const struct uva_allocator allocator = workers->allocator;
    void (*freed)(void *ctx) = workers->freed;
    void *ctx = workers->freed_ctx;

    for (int lane = 0; lane < UVA__LANES; lane++)
        assert(uva__atomic64_load(&workers->waiting[lane]) == 0);
    uva__memory_free(&allocator, workers, sizeof(*workers));
    if (freed != NULL)
        freed(ctx);
}

static void pool_join(pthread_t thread)
{
    int before;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    (void)pthread_join(thread, NULL);
    (void)pthread_setcancelstate(before, NULL);
}

/* ---- the life of a thread ----------------------------------------------- */

/* "uva-NAME-c0": lane and number whole, the name cut to 15 characters. */
static void worker_name(const struct uva__worker *worker)
{
    const char *name = worker->workers->name;
    const char lane = "cbg"[worker->lane];
    char tail[16], text[48];
    const int length =
        snprintf(tail, sizeof(tail), "-%c%u", lane, worker->number % 10000);

    (void)snprintf(text, sizeof(text), "uva%s%.*s%s", name[0] ? "-" : "",
                   11 - length, name, tail);
    uva__platform_name_thread(text);
}

/* The lane that hooks get: uncapped threads do blocking work. */
static enum uva_lane worker_lane(const struct uva__worker *worker)
{
    return worker->lane == UVA_LANE_COMPUTE ? UVA_LANE_COMPUTE
                                            : UVA_LANE_BLOCKING;
}

static void worker_begin(struct uva__worker *worker)
{
    struct uva_workers *workers = worker->workers;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    here = worker;
    worker->number =
        (uint32_t)uva__atomic64_add(&workers->threads_started[worker->lane], 1);
    worker_name(worker);
    uva__lock_take(&workers->locked.lock);
    uva__list_push(&class_of(worker)->workers, &worker->link);
    uva__worker_set_locked(worker, UVA__WORKER_LOOKING);
    uva__futex_raise(&workers->changed);
    uva__lock_drop(&workers->locked.lock);
    if (workers->thread_begin != NULL)
        workers->thread_begin(workers->ctx, worker_lane(worker));
}

/* The thread counts again, if it was written off. */
static void worker_end_job_locked(struct uva__worker *worker)
{
    assert(worker->waits == 0);
    if (worker->given_up && worker->state != UVA__WORKER_WRITTEN_OFF) {
        uva__list_remove(&class_of(worker)->given_up, &worker->given);
        class_of(worker)->may_return--;
    }
    worker->given_up = false;
    class_of(worker)->ended += worker->job != NULL;
    worker->job = NULL;
    uva__worker_set_locked(worker, UVA__WORKER_LOOKING);
}

static struct uva__job *worker_take_locked(struct uva__worker *worker)
{
    struct uva_workers *workers = worker->workers;
    struct uva__pool_class *pool_class = class_of(worker);
    struct uva__fair_queue_link *link = uva__fair_queue_pop(
        &pool_class->round, class_ahead_room_locked(pool_class) > 0);
    struct uva__job *job;

    if (link == NULL)
        return NULL;
    job = uva__container_of(link, struct uva__job, link);
    worker->job = job;
    uva__atomic64_sub(&workers->waiting[worker->lane], 1);
    uva__pool_class_publish_locked(workers, worker->lane);
    uva__worker_set_locked(worker, UVA__WORKER_RUNNING);
    if (link->place == UVA__PLACE_AHEAD)
        uva__awaited_run(job->awaited);
    if (job->turns < UVA__JOB_NEW_TURNS)
        job->turns++;
    return job;
}

/* How many free threads the lane keeps, with or without jobs. */
static int32_t class_kept_locked(const struct uva__pool_class *pool_class,
                                 int lane)
{
    return lane == UVA__LANE_UNCAPPED ? pool_class->reserved
                                      : pool_class->reserved > 0;
}

/* Whether the thread exits: at the end, beyond the cap (another thread was
 * started while one waited or was written off, and that has ended), or for want
 * of work. A thread inside a job does not count as free, as it may be stuck; a
 * thread that is being started does not either, as that may fail. */
static bool worker_is_done_locked(const struct uva__worker *worker)
{
    const struct uva_workers *workers = worker->workers;
    const struct uva__pool_class *pool_class = class_of(worker);

    if (workers->locked.ending || class_is_beyond_cap_locked(pool_class))
        return true;
    return worker->timed_out && uva__fair_queue_is_empty(&pool_class->round) &&
           uva__pool_class_sum_locked(pool_class, UVA__WORKER_LOOKING,
                                      UVA__WORKER_ASLEEP) >
               class_kept_locked(pool_class, worker->lane);
}

/* How long to sleep. A thread that the lane keeps sleeps until it is woken. If
 * a start in progress could make it such a thread, it sleeps for idle_ms too,
 * and then checks again. */
static int64_t worker_limit_locked(const struct uva__worker *worker)
{
    const struct uva__pool_class *pool_class = class_of(worker);

    return uva__pool_class_sum_locked(pool_class, UVA__WORKER_STARTING,
                                      UVA__WORKER_ASLEEP) >
                   class_kept_locked(pool_class, worker->lane)
               ? worker->workers->idle_ms
               : -1;
}

/* Drops the lock while it sleeps. */
static void worker_sleep_locked(struct uva__worker *worker)
{
    struct uva_workers *workers = worker->workers;
    const int64_t limit_ms = worker_limit_locked(worker);
    bool in_time;

    class_of(worker)->stood = false;
    uva__list_push_front(&class_of(worker)->asleep, &worker->sleeper);
    uva__worker_set_locked(worker, UVA__WORKER_ASLEEP);
    in_time = uva__locked_wait(&workers->locked.lock, &worker->call, limit_ms);
    worker->timed_out = worker->state == UVA__WORKER_ASLEEP && !in_time;
    if (worker->state != UVA__WORKER_ASLEEP)
        return;
    uva__list_remove(&class_of(worker)->asleep, &worker->sleeper);
    uva__worker_set_locked(worker, UVA__WORKER_LOOKING);
}

/* A spare thread is not replaced when threads leave for want of work. */
static void worker_exit_locked(struct uva__worker *worker)
{
    struct uva__pool_class *pool_class = class_of(worker);

    uva__list_remove(&pool_class->workers, &worker->link);
    pool_class->count[worker->state]--;
    if (worker->timed_out && pool_class->spares > 0)
        pool_class->spares--;
    worker->workers->locked.exiting++;
}

/* Returns the next job, or NULL: then the thread counts in no lane any more. */
static struct uva__job *worker_next(struct uva__worker *worker)
{
    struct uva_workers *workers = worker->workers;
    struct uva__job *job = NULL;

    uva__lock_take(&workers->locked.lock);
    worker_end_job_locked(worker);
    while (!worker_is_done_locked(worker)) {
        job = worker_take_locked(worker);
        if (job != NULL)
            break;
        worker_sleep_locked(worker);
    }
    if (job == NULL)
        worker_exit_locked(worker);
    worker->timed_out = false;
    uva__pool_class_drop_locked(workers, worker->lane);
    return job;
}

/* ---- exit --------------------------------------------------------------- */

/* The thread's last use of `workers`: the thread that joins it may free them.
 */
static void thread_exit(struct uva_workers *workers)
{
    pthread_t before;
    bool alone, follows, over;

    uva__lock_take(&workers->locked.lock);
    workers->locked.exiting--;
    alone = workers->locked.abandoned;
    follows = workers->locked.has_last;
    before = workers->locked.last;
    workers->locked.last = pthread_self();
    workers->locked.has_last = true;
    over = pool_is_over_locked(workers);
    uva__futex_raise(&workers->changed);
    uva__lock_drop(&workers->locked.lock);
    if (alone)
        (void)pthread_detach(pthread_self());
    else if (follows)
        pool_join(before);
    if (over)
        pool_destroy(workers);
}

static void *worker_main(void *arg)
{
    struct uva__worker *worker = arg;
    struct uva_workers *workers = worker->workers;
    struct uva__job *job;

    worker_begin(worker);
    while ((job = worker_next(worker)) != NULL)
        job_run(job);
    if (workers->thread_end != NULL)
        workers->thread_end(workers->ctx, worker_lane(worker));
    here = NULL;
    uva__memory_free(&workers->allocator, worker, sizeof(*worker));
    thread_exit(workers);
    return NULL;
}

/* ---- the end ------------------------------------------------------------ */

/* Returns when all other threads have exited, or seem to be stuck in jobs. */
static void pool_await_others(struct uva_workers *workers)
{
    const bool ours = here != NULL && here->workers == workers;
    int32_t others, stuck;
    uint32_t seen;

    do {
        uva__lock_take(&workers->locked.lock);
        seen = uva__futex_now(&workers->changed);
        others = pool_present_locked(workers) - ours;
        stuck = pool_count_locked(workers, UVA__WORKER_RUNNING) -
                (ours && here->state >= UVA__WORKER_RUNNING);
        uva__lock_drop(&workers->locked.lock);
    } while (others > 0 &&
             uva__futex_wait(&workers->changed, seen,
                             others > stuck ? -1 : UVA__LIMIT_WORKERS_MS));
}

static void pool_finish(struct uva_workers *workers)
{
    struct uva__pool_data *data;
    pthread_t last;
    bool joins, over;

    pool_await_others(workers);
    data = uva__atomic_ptr_load(&workers->data);
    if (data != NULL)
        data->end(data);
    uva__lock_take(&workers->locked.lock);
    workers->locked.abandoned = true;
    joins = workers->locked.has_last;
    last = workers->locked.last;
    over = pool_is_over_locked(workers);
    uva__lock_drop(&workers->locked.lock);
    if (joins)
        pool_join(last);
    if (over)
        pool_destroy(workers);
}

void uva_workers_release(struct uva_workers *workers)
{
    bool ends;

    if (workers == NULL || uva__pool_is_forked(workers))
        return;
    uva__lock_take(&workers->locked.lock);
    ends = --workers->locked.owners == 0;
    workers->locked.ending = ends;
    for (int lane = 0; lane < UVA__LANES && ends; lane++)
        uva__pool_class_wake_locked(workers, lane);
    uva__lock_drop(&workers->locked.lock);
    if (ends)
        pool_finish(workers);
}
