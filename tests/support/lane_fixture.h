/* SPDX-License-Identifier: Apache-2.0 */
/* A queue on its own worker threads, jobs that can be held, and an allocator
 * and a system that fail on request. */
#ifndef UVA_SUPPORT_LANE_FIXTURE_H
#define UVA_SUPPORT_LANE_FIXTURE_H

#include <semaphore.h>
#include <stdbool.h>

#include "exec/lane.h"

/* ---- queues and jobs ---------------------------------------------------- */

struct lane_fixture {
    struct uva__jobs jobs;
    sem_t entered; /* posted by a job that begins */
    sem_t leave;   /* lets one held job go on */
    sem_t done;    /* posted by a job that ends */
};

struct lane_work {
    struct uva__job job;
    struct lane_fixture *lanes; /* borrows */
    const char *name;           /* added to `lane_order`, or NULL */
    _Atomic int runs;           /* how often the job ran */
    bool held;                  /* waits for `leave` */
};

/* The names of the jobs in the order in which they began. */
extern char lane_order[200];

/* Makes a queue on `workers`, or on its own workers with `options`; limited:
 * with limits that programs do not have. */
void lane_share(struct lane_fixture *lanes, struct uva_workers *workers);
void lane_open(struct lane_fixture *lanes,
               const struct uva_workers_options *options);
void lane_open_limited(struct lane_fixture *lanes,
                       const struct uva_workers_options *options,
                       int32_t idle_ms, int32_t stuck_threads);
void lane_close(struct lane_fixture *lanes);

/* Makes a job that posts `entered`, waits if `held`, and posts `done`. */
struct lane_work lane_work(struct lane_fixture *lanes, bool held,
                           const char *name);

/* Has `n` threads of the blocking lane each run a job at the same moment; n <=
 * 8. */
void lane_burst(struct lane_fixture *lanes, int n);

void lane_take(sem_t *sem);
void lane_take_n(sem_t *sem, int n);
void lane_post_n(sem_t *sem, int n);
int lane_value(sem_t *sem);

/* Returns the number of threads; waits until there are `n`, or until `n` sleep.
 */
int64_t lane_threads(struct lane_fixture *lanes, enum uva_lane lane);
void lane_await_threads(struct lane_fixture *lanes, enum uva_lane lane,
                        int64_t n);
void lane_await_sleepers(struct lane_fixture *lanes, int lane, int n);

/* ---- faults ------------------------------------------------------------- */

/* Sets whether the system refuses to create threads. */
void lane_threads_run_out(bool out);

/* The memory that an allocator has given. All zeroes before lane_allocator().
 */
struct lane_memory {
    _Atomic int live;        /* blocks not freed */
    _Atomic int left;        /* allocations until one fails; -1: no failure */
    void (*hook)(void *ctx); /* called once, in the next allocation; or NULL */
    void *hook_ctx;          /* borrows */
};

struct uva_allocator lane_allocator(struct lane_memory *memory);
void lane_await_no_memory(struct lane_memory *memory);

/* ---- hooks of threads --------------------------------------------------- */

/* The context of the two hooks: how often each was called, by lane, as the
 * first and as the last call on a thread. */
struct lane_hooks {
    _Atomic int begun[2];
    _Atomic int ended[2];
};

/* The number of hooks called on this thread. */
extern _Thread_local int lane_hooked;

void lane_hook_begin(void *ctx, enum uva_lane lane);
void lane_hook_end(void *ctx, enum uva_lane lane);

#endif
