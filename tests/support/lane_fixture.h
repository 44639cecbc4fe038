/* SPDX-License-Identifier: Apache-2.0 */
/* A queue on worker threads of its own, jobs that can be held, and an allocator
 * and a system that fail on cue. */
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
    struct uva_job job;
    struct lane_fixture *lanes; /* borrows */
    const char *name;           /* added to `lane_story`, or NULL */
    _Atomic int runs;           /* how often it ran */
    bool held;                  /* waits for `leave` */
};

/* The names of the jobs in the order in which they began. */
extern char lane_story[200];

/* Makes a queue on `workers`, or on some of its own with `options`. */
void lane_share(struct lane_fixture *lanes, struct uva_workers *workers);
void lane_open(struct lane_fixture *lanes,
               const struct uva_workers_options *options);
void lane_close(struct lane_fixture *lanes);

/* Makes a job that posts `entered`, waits if `held`, and posts `done`. */
struct lane_work lane_work(struct lane_fixture *lanes, bool held,
                           const char *name);

/* Has `n` threads of the blocking lane run a job at the same time; n <= 8. */
void lane_burst(struct lane_fixture *lanes, int n);

void lane_take(sem_t *sem);
void lane_take_n(sem_t *sem, int n);
void lane_post_n(sem_t *sem, int n);
int lane_value(sem_t *sem);

/* The number of threads; waits until there are `n`, or until `n` sleep. */
int64_t lane_threads(struct lane_fixture *lanes, enum uva_lane lane);
void lane_await_threads(struct lane_fixture *lanes, enum uva_lane lane,
                        int64_t n);
void lane_await_sleepers(struct lane_fixture *lanes, int lane, int n);

/* ---- faults ------------------------------------------------------------- */

/* From now on the system gives no thread, or gives them again. */
void lane_threads_run_out(bool out);

/* What an allocator has given; all zeroes before lane_allocator(). */
struct lane_memory {
    _Atomic int live;        /* blocks given and not taken back */
    _Atomic int left;        /* fails when this has run out; -1: never */
    void (*hook)(void *ctx); /* called once, at the next request; or NULL */
    void *hook_ctx;          /* borrows */
};

struct uva_allocator lane_allocator(struct lane_memory *memory);
void lane_await_no_memory(struct lane_memory *memory);

/* ---- hooks of threads --------------------------------------------------- */

/* The context of the two hooks: how often each was called, by lane, as a
 * thread's first and as its last. */
struct lane_hooks {
    _Atomic int begun[2];
    _Atomic int ended[2];
};

/* How many hooks have been called on this thread. */
extern _Thread_local int lane_hooked;

void lane_hook_begin(void *ctx, enum uva_lane lane);
void lane_hook_end(void *ctx, enum uva_lane lane);

#endif
