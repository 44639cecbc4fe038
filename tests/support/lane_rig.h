/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of worker threads share: a queue on workers that nobody else owns,
 * jobs that can be held, an allocator and a system that fail on cue. */
#ifndef UVA_SUPPORT_LANE_RIG_H
#define UVA_SUPPORT_LANE_RIG_H

#include <semaphore.h>
#include <stdbool.h>

#include "exec/lane.h"

/* ---- queues and jobs ---------------------------------------------------- */

struct rig {
    struct uva__jobs jobs;
    sem_t entered; /* posted by a job that begins */
    sem_t leave;   /* lets one held job go on */
    sem_t done;    /* posted by a job that ends */
};

struct rig_work {
    struct uva_job job;
    struct rig *rig;  /* borrows */
    const char *name; /* added to `rig_story`, or NULL */
    _Atomic int runs; /* how often it ran */
    bool held;        /* waits for `leave` */
};

/* The names of the jobs in the order in which they began. */
extern char rig_story[200];

/* Makes a queue on `workers`, or on some of its own with `options`. */
void rig_share(struct rig *rig, struct uva_workers *workers);
void rig_open(struct rig *rig, const struct uva_workers_options *options);
void rig_close(struct rig *rig);

/* Makes a job that posts `entered`, waits if `held`, and posts `done`. */
struct rig_work rig_work(struct rig *rig, bool held, const char *name);

/* Has `n` threads of the blocking lane run a job at the same time; n <= 8. */
void rig_burst(struct rig *rig, int n);

void rig_take(sem_t *sem);
void rig_take_n(sem_t *sem, int n);
void rig_post_n(sem_t *sem, int n);
int rig_value(sem_t *sem);

/* How many threads there are, how many of these sleep; and until there are. */
int64_t rig_threads(struct rig *rig, enum uva_lane lane);
void rig_await_threads(struct rig *rig, enum uva_lane lane, int64_t n);
void rig_await_sleepers(struct rig *rig, int lane, int n);

/* ---- faults ------------------------------------------------------------- */

/* From now on the system gives no thread, or gives them again. */
void rig_threads_run_out(bool out);

/* What an allocator has given; all zeroes before rig_allocator(). */
struct rig_memory {
    _Atomic int live;        /* blocks given and not taken back */
    _Atomic int left;        /* fails when this has run out; -1: never */
    void (*hook)(void *ctx); /* called once, at the next request; or NULL */
    void *hook_ctx;          /* borrows */
};

struct uva_allocator rig_allocator(struct rig_memory *memory);
void rig_await_no_memory(struct rig_memory *memory);

/* ---- hooks of threads --------------------------------------------------- */

/* The context of the two hooks: how often each was called, by lane, as a
 * thread's first and as its last. */
struct rig_hooks {
    _Atomic int begun[2];
    _Atomic int ended[2];
};

/* How many hooks have been called on this thread. */
extern _Thread_local int rig_hooked;

void rig_hook_begin(void *ctx, enum uva_lane lane);
void rig_hook_end(void *ctx, enum uva_lane lane);

#endif
