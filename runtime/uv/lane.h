/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads for jobs: the compute lane, the elastic blocking lane, and
 * guests. What a job does, and telling the loop of it, is the job's business.
 *
 * compute   as many threads as cores; a job uses a core and never waits
 * blocking  grows on demand up to a cap; a job may wait for ever
 * guests    outside any cap: a job that must run whatever the lanes do
 *
 * Jobs are intrusive: whoever submits one owns its memory, and a submit cannot
 * fail once the thread that guarantees progress exists (uva__lane_ensure()). */
#ifndef UVA_UV_LANE_H
#define UVA_UV_LANE_H

#include "core/list.h"
#include "uv/rota.h"
#include "uvarrow/runtime.h"

struct uva__jobs;

/* Where jobs wait: in a lane, or here for a guest thread. */
enum { UVA__LANE_GUEST = UVA_LANE_BLOCKING + 1, UVA__LANES };

/* One piece of work, embedded in what it is about. All zeroes but `run` is
 * ready to be submitted; it may be submitted again once `run` was entered. */
struct uva_job {
    struct uva__link link;            /* in the queue of its lane */
    void (*run)(struct uva_job *job); /* the work; the job may die in it */
    struct uva__jobs *jobs;           /* borrows: whose turn it counts as */
    int lane;                         /* where it was submitted */
};

/* What a higher floor keeps with the workers; the first member of more. */
struct uva__fixture {
    void (*end)(struct uva__fixture *fixture); /* frees it; any thread */
};

/* The jobs of one runtime; runtimes that share workers are served in fair
 * turns. Embedded in what outlives its jobs. */
struct uva__jobs {
    struct uva_workers *workers;               /* owns a count */
    struct {                                   /* under the lock of `workers` */
        struct uva__party parties[UVA__LANES]; /* submitted, not begun */
        bool promised[UVA__LANES]; /* a thread of the lane is kept for us */
    } locked;
};

/* Makes the job queue of one runtime on `workers`, counting them; NULL: new
 * workers with `allocator` and `name`, which nobody else shares. 0, EINVAL,
 * ENOMEM, EPERM in a forked child. Thread: any. */
UVA_MUST_CHECK int uva__jobs_init(struct uva__jobs *jobs,
                                  struct uva_workers *workers,
                                  const struct uva_allocator *allocator,
                                  const char *name);

/* Gives the count on the workers back; no job may be waiting or be submitted
 * any more (running ones may still run). With the last count the threads leave
 * and have ended when this returns, except a thread that stays inside a job for
 * a second more (a stuck one holds this up so long), and the caller's own:
 * these end with their job, and free the workers. In a forked child it does
 * nothing. Thread: any, also inside a job, as its last act. */
void uva__jobs_fini(struct uva__jobs *jobs);

/* Makes sure that jobs of `lane` will be run: starts its first thread if there
 * is none, and keeps one from leaving for want of work until uva__jobs_fini().
 * Does nothing with an executor. 0; EAGAIN if the system gives no thread,
 * ENOMEM: try again or give up. Thread: any. */
UVA_MUST_CHECK int uva__lane_ensure(struct uva__jobs *jobs, enum uva_lane lane);

/* Has `job` run on a thread of `lane`, after uva__lane_ensure() once returned 0
 * for it; never inside this call. A job which the executor refuses runs on a
 * thread of our own; if there is none and the system gives none, it waits until
 * a later submit to the lane gets one. The job may be over, and `jobs` with it,
 * before this returns. Thread: any. */
void uva__lane_submit(struct uva__jobs *jobs, enum uva_lane lane,
                      struct uva_job *job);

/* Takes back a job that was submitted and has not begun (or has, but still
 * lives). True: it is the caller's again and will not run. Always false for one
 * that an executor accepted. Steps through the jobs before it.
 * Thread: any. */
bool uva__lane_take_back(struct uva__jobs *jobs, struct uva_job *job);

/* Whether another job of `lane` waits for a thread: a long job then gives its
 * thread back by submitting itself again. Always true with an executor, whose
 * queue we cannot see. Thread: any. */
bool uva__lane_is_wanted(struct uva__jobs *jobs, enum uva_lane lane);

/* Makes sure that one guest thread exists and is free, for a later
 * uva__guest_run() that must not fail, and keeps one from leaving while it is
 * free, until uva__jobs_fini(). Our own threads, also with an executor. 0;
 * EAGAIN, ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__guest_ensure(struct uva__jobs *jobs);

/* Has `job` run on a guest thread at once, whatever else runs. Starts one if
 * all are taken; where the system gives none, the job waits for the next that
 * is free. Thread: any. */
void uva__guest_run(struct uva__jobs *jobs, struct uva_job *job);

/* Brackets a wait inside a blocking job that another job of the same lane may
 * have to end: the thread does not count against the cap meanwhile. No effect
 * on other threads. Thread: any. */
void uva__lane_wait_begin(void);
void uva__lane_wait_end(void);

/* How many CPUs this process may use. Thread: any. */
int32_t uva__lane_cores(void);

/* Whether the caller is a compute worker, where waiting is forbidden.
 * Thread: any. */
bool uva__lane_is_compute(void);

/* How many threads there are now; guests count as blocking, those of an
 * executor not at all. Thread: any. */
void uva__lane_count(struct uva__jobs *jobs, int64_t *compute,
                     int64_t *blocking);

/* Gives the one thing that a higher floor keeps with the workers, made by
 * `make` at first need; NULL without memory. It is ended when nobody owns the
 * workers any more. Thread: any who owns them. */
struct uva__fixture *uva__workers_fixture(struct uva_workers *workers,
                                          struct uva__fixture *(*make)(void));

#endif
