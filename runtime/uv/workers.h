/* SPDX-License-Identifier: Apache-2.0 */
/* What a struct uva_workers is made of, who owns it, and how its threads are
 * found for a job. Which job goes to which lane is uv/lane.c. */
#ifndef UVA_UV_WORKERS_H
#define UVA_UV_WORKERS_H

#include <pthread.h>
#include <sys/types.h>

#include "core/list.h"
#include "core/sync.h"
#include "uv/lane.h"
#include "uvarrow/runtime.h"

/* One thread. Its own, but for what is marked. */
struct uva__worker {
    struct uva_workers *workers; /* borrows: outlives the thread's use of it */
    struct uva__worker *below;   /* the one that fell asleep before; locked */
    struct uva__signal call;     /* raised to wake it; locked */
    int lane;                    /* whose jobs it runs */
    uint32_t number;             /* for its name */
    int waits;                   /* depth of uva__lane_wait_begin() */
    bool asleep;                 /* among the sleepers; locked */
    bool late;                   /* nobody called it in time */
    bool busy;                   /* inside a job, or just back */
};

/* The threads of one lane and the jobs that wait for them. */
struct uva__crew {
    struct uva__list round;     /* whose turn it is: uv/rota.h */
    struct uva__worker *asleep; /* a stack: who slept least is called first, so
                                   that the others may leave */
    int32_t cap;                /* at most so many, blocked ones not counted */
    int32_t threads;            /* those there are, and those being started */
    int32_t starting;           /* calls of pthread_create() under way */
    int32_t sleeping;           /* threads in the stack */
    int32_t running;            /* threads inside a job */
    int32_t blocked;            /* of these, inside uva__lane_wait_begin() */
    int32_t promised; /* job queues that one free thread is kept for */
};

/* What is above `waiting` never changes. */
struct uva_workers {
    struct uva_allocator allocator;
    struct uva_executor executor; /* `submit` is NULL: threads of our own */
    void (*thread_begin)(void *ctx, enum uva_lane lane); /* or NULL */
    void (*thread_end)(void *ctx, enum uva_lane lane);   /* or NULL */
    void *ctx;                                           /* borrows, for both */
    int32_t idle_ms;                      /* how long to sleep before leaving */
    pid_t process;                        /* a fork has none of the threads */
    char name[16];                        /* cut to what a thread name holds */
    struct uva__word waiting[UVA__LANES]; /* jobs queued; written locked */
    struct uva__word born[UVA__LANES];    /* threads ever begun, for names */
    struct uva__shared fixture;           /* owns: struct uva__fixture, what a
                                             higher floor keeps here; or NULL */
    struct uva__signal changed;           /* raised when a start or a leave is
                                             over; raised locked */
    struct {
        struct uva__lock lock;
        struct uva__crew crews[UVA__LANES];
        int32_t owners;  /* the user and the job queues */
        int32_t leaving; /* threads in no crew any more, not yet ended */
        pthread_t last;  /* the one that left last, to be joined */
        bool has_last;   /* whether there is one */
        bool ending;     /* nobody owns us: the threads leave */
        bool abandoned;  /* nobody joins any more: the last to leave frees */
    } locked;
};

/* Adds an owner; uva_workers_free() takes it away. EPERM in a forked child.
 * Thread: any. */
UVA_MUST_CHECK int uva__workers_acquire(struct uva_workers *workers);

/* Whether this is a fork of the process that made them. Thread: any. */
bool uva__workers_are_forked(const struct uva_workers *workers);

/* Drops the lock, and sees to it that some thread comes for each job that waits
 * in `lane`: if too few are on their way, one is woken, or started if none
 * sleeps and the cap allows for another. Thread: any. */
void uva__crew_drop_locked(struct uva_workers *workers, int lane);

/* Counts a thread that the caller will start at once. Thread: any. */
void uva__crew_reserve_locked(struct uva_workers *workers, int lane);

/* Starts the thread that was reserved. 0; ENOMEM; EAGAIN if the system gives
 * none: then jobs wait for the threads there are. Thread: any. */
int uva__crew_start(struct uva_workers *workers, int lane);

/* Wakes all sleepers of a lane to look whether they may leave. Thread: any. */
void uva__crew_rouse_locked(struct uva_workers *workers, int lane);

/* The worker that the caller is, or NULL. Thread: any. */
struct uva__worker *uva__crew_here(void);

#endif
