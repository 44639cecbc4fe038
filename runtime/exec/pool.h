/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of uva_workers, its owners, and how a job gets a thread. Which job
 * goes to which lane is exec/lane.c. */
#ifndef UVA_EXEC_POOL_H
#define UVA_EXEC_POOL_H

#include <pthread.h>

#include "base/atomic.h"
#include "base/list.h"
#include "exec/lane.h"
#include "uvarrow/runtime.h"

/* The state of a thread. Each number that a rule needs is the sum of a range of
 * states. */
enum uva__worker_state {
    UVA__WORKER_STARTING,    /* it was reserved, and has not begun */
    UVA__WORKER_LOOKING,     /* it is awake without a job */
    UVA__WORKER_ASLEEP,      /* it is in the stack of sleepers */
    UVA__WORKER_RUNNING,     /* it is inside a job, as in the states below */
    UVA__WORKER_BLOCKED,     /* inside uva__lane_wait_begin(): this state and
                                the next one do not count against the cap */
    UVA__WORKER_WRITTEN_OFF, /* it does not return from a job that was given up
                              */
    UVA__WORKER_STATES
};

/* One thread. Only that thread uses the fields, but for those marked locked. */
struct uva__worker {
    struct uva_workers *workers;  /* borrows: outlives the thread's use of it */
    struct uva__link sleeper;     /* among the sleepers; locked */
    struct uva__link link;        /* among the lane's threads; locked */
    struct uva__link given;       /* among the threads given up; locked */
    struct uva__futex call;       /* raised to wake the thread; locked */
    enum uva__worker_state state; /* counted in the lane; locked */
    int lane;                     /* the lane from which it takes jobs */
    uint32_t number;              /* for the thread's name */
    int waits;                    /* depth of uva__lane_wait_begin() */
    bool timed_out;               /* its idle timeout has expired */
    bool given_up;                /* no one waits for its job; locked */
    uint64_t given_up_ns;         /* since when; locked */
    const struct uva__job *job;   /* its job, only to be compared; locked */
};

/* The threads of one lane and the jobs that wait for them. */
struct uva__pool_class {
    struct uva__fair_queue round; /* queues with jobs, in turn */
    struct uva__list asleep;   /* the thread that slept least is woken first, so
                                  that the rest may time out */
    struct uva__list workers;  /* the threads that have begun */
    struct uva__list given_up; /* of these, the threads given up and not
                                  written off, the oldest first */
    int32_t count[UVA__WORKER_STATES]; /* threads in each state */
    int32_t may_return;                /* threads in `given_up` */
    int32_t cap;                       /* most threads that count against it */
    int32_t ahead_cap; /* read-ahead begins while fewer are running */
    int32_t reserved;  /* job queues for which a free thread is kept */
    int32_t spare_cap; /* most threads beyond `cap`, for a lane that stands */
    int32_t spares;    /* of these, how many may count against it now */
    bool stands;       /* none has ended for long, when it was looked at */
    bool stood;        /* that was reported */
    uint64_t ended;    /* jobs that have ended */
    uint64_t seen;     /* `ended`, when jobs first waited since then ... */
    uint64_t seen_ns;  /* ... and when that was; 0: never */
};

/* Counts the threads in the states from `first` to `last`. Thread: any. */
static inline int32_t
uva__pool_class_sum_locked(const struct uva__pool_class *pool_class,
                           enum uva__worker_state first,
                           enum uva__worker_state last)
{
    int32_t n = 0;

    for (int state = (int)first; state <= (int)last; state++)
        n += pool_class->count[state];
    return n;
}

/* The fields above `waiting` never change. */
struct uva_workers {
    struct uva_allocator allocator;
    void (*thread_begin)(void *ctx, enum uva_lane lane); /* or NULL */
    void (*thread_end)(void *ctx, enum uva_lane lane);   /* or NULL */
    void *ctx;                                           /* borrows, for both */
    void (*freed)(void *ctx); /* the last call of all; or NULL */
    void *freed_ctx;          /* borrows */
    int32_t idle_ms;          /* sleep so long, then exit */
    int32_t stuck_threads;    /* most of a lane written off */
    int64_t process;          /* maker: a fork has no threads */
    char name[16];            /* cut to a thread name's size */
    struct uva__atomic64 waiting[UVA__LANES]; /* jobs queued; written locked */
    struct uva__atomic64
        foremost[UVA__LANES]; /* UVA__PLACES less the first place in which a
                                 job is queued, or 0; written locked */
    struct uva__atomic64
        threads_started[UVA__LANES]; /* threads ever begun, for names */
    struct uva__atomic_ptr data; /* owns: struct uva__pool_data, an object of a
                                    higher layer; or NULL */
    struct uva__futex changed;   /* raised when a thread begins, could not be
                                    started or exits; raised locked */
    struct {
        struct uva__lock lock;
        struct uva__pool_class classes[UVA__LANES];
        int32_t owners;  /* the user and the job queues */
        bool full;       /* no more threads may be written off: reported */
        int32_t starts;  /* calls of uva__pool_class_start() in progress */
        int32_t exiting; /* threads that count in no lane any more, but have
                            not ended */
        pthread_t last;  /* the thread that left last, to be joined */
        bool has_last;   /* `last` is set */
        bool ending;     /* no owner is left: the threads exit */
        bool abandoned;  /* no thread is joined any more: the last one frees */
    } locked;
};

/* Adds an owner; uva_workers_release() takes it away. EPERM in a forked child.
 * Thread: any. */
UVA_MUST_CHECK int uva__pool_acquire(struct uva_workers *workers);

/* Has a thread sleep for `idle_ms` before it exits, and `stuck_threads` of a
 * lane written off at one time, for tests: programs have the same limits
 * everywhere. Before the first job queue of `workers`. Thread: any. */
void uva__workers_limit(struct uva_workers *workers, int32_t idle_ms,
                        int32_t stuck_threads);

/* Sets how many threads more the blocking lane may have while it stands, for
 * tests. Before the first job queue of `workers`. Thread: any. */
void uva__workers_spare(struct uva_workers *workers, int32_t threads);

/* Whether this process is a fork of the process that made the workers.
 * Thread: any. */
bool uva__pool_is_forked(const struct uva_workers *workers);

/* Drops the lock, and makes sure that a thread takes each job queued in `lane`:
 * if no thread is about to take one, it wakes a thread, or starts one if no
 * thread sleeps and the cap allows it. That thread calls this, too, when it has
 * taken a job. `wakeups` (or NULL) counts a thread that is woken, while the
 * lock is held. Thread: any. */
void uva__pool_class_drop_for_locked(struct uva_workers *workers, int lane,
                                     struct uva__counter *wakeups);
static inline void uva__pool_class_drop_locked(struct uva_workers *workers,
                                               int lane)
{
    uva__pool_class_drop_for_locked(workers, lane, NULL);
}

/* Looks whether jobs end in a lane, before it is seen to that jobs which wait
 * have a thread. Thread: any. */
void uva__pool_class_look_locked(struct uva_workers *workers, int lane);

/* Publishes the first place of `lane` in which a job is queued, after a change
 * of the queue. Thread: any. */
void uva__pool_class_publish_locked(struct uva_workers *workers, int lane);

/* Counts a thread that the caller will start at once. Thread: any. */
void uva__pool_class_reserve_locked(struct uva_workers *workers, int lane);

/* Starts the thread that was reserved. 0; ENOMEM without memory or a
 * thread: then jobs wait for existing threads. Thread: any. */
int uva__pool_class_start(struct uva_workers *workers, int lane);

/* Wakes all sleeping threads of a lane, to check whether they may exit.
 * Thread: any. */
void uva__pool_class_wake_locked(struct uva_workers *workers, int lane);

/* The worker that the calling thread is, or NULL. Thread: any. */
struct uva__worker *uva__pool_class_here(void);

/* Puts a thread that has begun into another state. Thread: any. */
void uva__worker_set_locked(struct uva__worker *worker,
                            enum uva__worker_state state);

/* The thread of a lane that runs `job`, or NULL. Thread: any. */
struct uva__worker *
uva__pool_class_find_locked(const struct uva__pool_class *pool_class,
                            const struct uva__job *job);

/* Gives up the job of `worker`, for which no one waits any more: if it does not
 * return, and other jobs wait, the thread is written off, so that another one
 * takes its place. No effect if it was given up before. Thread: any. */
void uva__worker_give_up_locked(struct uva__worker *worker);

/* Notifies a queue of something new. Thread: any. */
void uva__pool_report_locked(struct uva__jobs *jobs, enum uva__news news);

#endif
