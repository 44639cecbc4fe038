/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of worker threads, to which jobs are submitted. The work of a job, and
 * the way it wakes the loop afterwards, are up to the job.
 *
 * compute   as many threads as cores; a job uses a core and never waits
 * blocking  grows on demand up to a cap; a job may wait for ever
 * uncapped  extra threads, for jobs that must run whatever the lanes do
 *
 * Jobs are intrusive: the submitter owns the memory of a job, and a submit
 * cannot fail once the thread that guarantees progress exists
 * (uva__lane_ensure()). */
#ifndef UVA_EXEC_LANE_H
#define UVA_EXEC_LANE_H

#include "base/counter.h"
#include "base/list.h"
#include "exec/awaited.h"
#include "exec/fair_queue.h"
#include "uvarrow/runtime.h"

struct uva__jobs;

/* One lane more than the public lanes, for the extra, uncapped threads. */
enum { UVA__LANE_UNCAPPED = UVA_LANE_BLOCKING + 1, UVA__LANES };

/* One piece of work, embedded in the object that it works on. Ready to be
 * submitted when all fields but `run` are zero; it may be submitted again once
 * `run` was entered. */
struct uva__job {
    struct uva__fair_queue_link link;  /* in the queue of its lane */
    void (*run)(struct uva__job *job); /* the work; may free the job */
    struct uva__jobs *jobs;            /* borrows: the queue it came from */
    int lane;                          /* the lane it was submitted to */
    struct uva__atomic64 *awaited;     /* borrows: the results that a consumer
                                          waits for; NULL: this job is one */
    uint64_t done;    /* results that there are; set before a submit */
    int32_t priority; /* its sign: before or after other jobs of its queue */
    uint8_t turns;    /* a thread has taken it so often, at most
                         UVA__JOB_NEW_TURNS; locked */
};

/* Where a job is. */
enum uva__job_place {
    UVA__JOB_GONE,    /* it has ended */
    UVA__JOB_RUNNING, /* a thread runs it */
    UVA__JOB_WAITING  /* it is queued: a thread without a job may take another
                         one first */
};

/* News about its threads for a runtime, to act on or to log. */
enum uva__news {
    UVA__NEWS_RETRY = 1,       /* call uva__lane_retry() after a while */
    UVA__NEWS_WRITTEN_OFF = 2, /* threads were written off for its jobs */
    UVA__NEWS_FULL = 4,        /* no more threads may be written off */
    UVA__NEWS_STANDS = 8       /* jobs wait, and for long none has ended */
};

/* A job goes before others in its first turns: the few calls of a small query
 * then do not queue after the calls of long queries. */
enum { UVA__JOB_NEW_TURNS = 4 };

/* The place of `job`, which is running or about to be queued, depending on
 * whether it is read-ahead. Thread: the caller runs or queues it. */
static inline enum uva__place uva__place_of_job(const struct uva__job *job,
                                                bool ahead)
{
    if (ahead)
        return UVA__PLACE_AHEAD;
    return job->turns < UVA__JOB_NEW_TURNS ? UVA__PLACE_NEW : UVA__PLACE_WAITED;
}

/* An object that a higher layer keeps with the workers: its first member. */
struct uva__pool_data {
    void (*end)(struct uva__pool_data *data); /* frees it; any thread */
};

/* The job queue of one runtime; runtimes that share workers are served in fair
 * turns. Embedded in an object that outlives its jobs. */
struct uva__jobs {
    struct uva_workers *workers; /* owns a count */
    /* called when uva__lane_take_news() returns something new; any thread, with
     * the lock held. NULL: no reports */
    void (*notify)(struct uva__jobs *jobs);
    int32_t stuck_threads; /* as the workers have it */
    struct {               /* under the lock of `workers` */
        unsigned news;     /* bits UVA__NEWS_..., to be taken */
        struct uva__fair_queue_client
            clients[UVA__LANES];   /* submitted, not running */
        bool reserved[UVA__LANES]; /* a thread of the lane is reserved */
        bool watches; /* it will look at the blocking lane, which is full */
    } locked;
};

/* Makes the job queue of one runtime on `workers`, and takes a reference to
 * them; NULL: makes new workers with `allocator` and `name`, for this runtime
 * alone. 0, EINVAL, ENOMEM, EPERM in a forked child. Thread: any. */
UVA_MUST_CHECK int uva__jobs_init(struct uva__jobs *jobs,
                                  struct uva_workers *workers,
                                  const struct uva_allocator *allocator,
                                  const char *name);

/* Has `freed(ctx)` called when the workers have ended and their memory is
 * freed, as the last act of the thread that frees them. For workers that are
 * not shared; once, before any job. Thread: any. */
void uva__jobs_on_freed(struct uva__jobs *jobs, void (*freed)(void *ctx),
                        void *ctx);

/* Releases the reference to the workers. No job may be queued or be submitted
 * any more; some may still be running. The last reference ends the threads, and
 * they have ended when this returns. Two kinds of threads are left out and end
 * with their job, the last of them freeing the workers: a thread that is still
 * inside a job after UVA__LIMIT_WORKERS_MS (a stuck one holds this call up so
 * long), and the caller's own. Without effect in a forked child. Thread: any,
 * also inside a job, as its last act. */
void uva__jobs_fini(struct uva__jobs *jobs);

/* Makes sure that jobs of `lane` will be run: starts its first thread if it has
 * none, and keeps one thread until uva__jobs_fini(), even without work. 0;
 * ENOMEM without memory or a thread: try again or give up. Thread: any. */
UVA_MUST_CHECK int uva__lane_ensure(struct uva__jobs *jobs, enum uva_lane lane);

/* Submits `job` to `lane`, for which uva__lane_ensure() has returned 0 before.
 * It never runs inside this call. If there is no thread and none can be
 * created, it waits until one is created, by a later submit or
 * uva__lane_retry(). The job may have ended,
 * and `jobs` with it, before this returns. `wakeups` (or NULL) counts a system
 * call that wakes a thread, before the job can run. Thread: any. */
void uva__lane_submit_counted(struct uva__jobs *jobs, enum uva_lane lane,
                              struct uva__job *job,
                              struct uva__counter *wakeups);
static inline void uva__lane_submit(struct uva__jobs *jobs, enum uva_lane lane,
                                    struct uva__job *job)
{
    uva__lane_submit_counted(jobs, lane, job, NULL);
}

/* Moves `job`, if it is queued in `lane` as read-ahead, to the place that it
 * has now that a consumer waits for it: uva__awaited_want() has returned true.
 * Thread: any. */
void uva__lane_raise(struct uva__jobs *jobs, enum uva_lane lane,
                     struct uva__job *job);

/* Takes back a job that was submitted and is not running (or is, but has not
 * been freed). True: the job is the caller's again and will not run. Thread:
 * any.
 */
bool uva__lane_take_back(struct uva__jobs *jobs, struct uva__job *job);

/* Gives up a job of `lane`: no one waits for it any more. A job that was never
 * submitted is GONE. If it runs, its thread may be written off from now on, so
 * that another one takes its place. If it waits, it still runs in turn; the
 * caller may take it back instead. The job has not been freed. Thread: any. */
enum uva__job_place uva__lane_give_up(struct uva__jobs *jobs,
                                      enum uva_lane lane, struct uva__job *job);

/* Gives up the job that the caller runs, if it runs one. Thread: any. */
void uva__lane_give_up_here(void);

/* Takes the news, as bits UVA__NEWS_.... Thread: any. */
unsigned uva__lane_take_news(struct uva__jobs *jobs);

/* Tries again to find threads for jobs that wait. Thread: any. */
void uva__lane_retry(struct uva__jobs *jobs);

/* Whether another job of `lane` waits for a thread: a long job then gives its
 * thread back by submitting itself again. Thread: any. */
bool uva__lane_is_wanted(struct uva__jobs *jobs, enum uva_lane lane);

/* Whether a job of `lane` waits that goes before the jobs of `place`: a job
 * there then gives its thread back after each step. Thread: any. */
bool uva__lane_must_yield(const struct uva__jobs *jobs, enum uva_lane lane,
                          enum uva__place place);

/* Makes sure that one uncapped thread exists and is free, for a later
 * uva__lane_run_uncapped() that must not fail, and keeps it until
 * uva__jobs_fini(), even without work. 0; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__lane_ensure_uncapped(struct uva__jobs *jobs);

/* Runs `job` on an uncapped thread at once, whatever else runs. Starts a thread
 * if all are busy; if none can be created, the job waits for the next free one.
 * Thread: any. */
void uva__lane_run_uncapped(struct uva__jobs *jobs, struct uva__job *job);

/* Brackets a wait inside a blocking job that another job of the same lane may
 * have to end: during the wait the thread does not count against the cap. No
 * effect outside the blocking lane. Thread: any. */
void uva__lane_wait_begin(void);
void uva__lane_wait_end(void);

/* Whether the caller is a compute worker, where waiting is forbidden.
 * Thread: any. */
bool uva__lane_is_compute(void);

/* Counts the threads that exist now; uncapped ones count as blocking.
 * Thread: any. */
void uva__lane_count(struct uva__jobs *jobs, int64_t *compute,
                     int64_t *blocking);

/* Counts the threads that are written off now. Thread: any. */
int64_t uva__lane_count_written_off(struct uva__jobs *jobs);

/* Returns the one object that a higher layer keeps with the workers, made by
 * `make` at first need; NULL without memory. It is ended together with the
 * workers. The caller holds a reference to them. Thread: any. */
struct uva__pool_data *uva__pool_get_data(struct uva_workers *workers,
                                          struct uva__pool_data *(*make)(void));

#endif
