/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a runtime. Only loop/loop.c (turns), loop/runtime.c (open,
 * close), loop/drain.c, loop/post.c and loop/lane_news.c include it. */
#ifndef UVA_LOOP_RUNTIME_IMPL_H
#define UVA_LOOP_RUNTIME_IMPL_H

#include <pthread.h>
#include <uv.h>

#include "base/parker.h"
#include "base/platform.h"
#include "loop/loop.h"
#include "loop/readiness.h"

/* The driver of the loop. */
enum uva__hosting {
    UVA__HOSTED_BY_LOOP,   /* the user's uv_loop_t, on which we are embedded */
    UVA__HOSTED_BY_THREAD, /* our own thread */
    UVA__HOSTED_BY_TURNS,  /* the user's calls of uva_runtime_turn() */
    UVA__HOSTED_BY_POSTS   /* such calls, requested through options.post */
};

/* The state of a runtime; it only moves forwards. */
enum uva__runtime_state {
    UVA__RUNTIME_OPEN,
    UVA__RUNTIME_CLOSING,  /* no stream starts; waits for open objects */
    UVA__RUNTIME_DETACHED, /* its handles are being closed */
    UVA__RUNTIME_CLOSED    /* they are closed; the user's callback was called */
};

/* The arguments of uva_runtime_close() or uva_runtime_drain(). Any thread,
 * under the lock. */
struct uva__close_request {
    struct uva__lock lock;
    bool requested;   /* it was called */
    int64_t grace_ms; /* the shortest requested; UVA_FOREVER: not limited */
    uva_call_fn *fn;  /* of the first request; may be NULL */
    void *ctx;        /* borrows */
};

/* The state of a drain. The loop thread's, except for the request. */
struct uva__drain {
    struct uva__close_request request; /* the deadline is its grace */
    struct uva__timer timer;           /* until the deadline */
    bool keeps_loop;                   /* it keeps the loop alive */
    bool begun;                        /* open objects were notified */
    bool timed_out;                    /* the deadline has passed */
    bool over;                         /* no stream is open any more */
};

struct uva_runtime {
    struct uva__rt *rt;            /* holds it; while open, a reference too */
    struct uva__atomic64 users;    /* uva_runtime_acquire(), and we until it has
                                      closed */
    enum uva__hosting hosting;     /* the driver of the loop */
    enum uva__runtime_state state; /* loop only */
    char name[32];                 /* in the log; may be empty */
    uv_loop_t *loop;               /* borrows: the user's, or `own` */
    uv_loop_t own;                 /* unless it is the user's */

    uv_poll_t wake;   /* on the wake-up descriptor */
    uv_timer_t timer; /* for the earliest of `timers` */
    uv_idle_t idle;   /* active after a turn was cut short: no sleep */
    uv_check_t check; /* continues such a turn */
    uv_poll_t clock;  /* hosted by turns: on `clock_fd` */
    struct uva__timer_fd clock_fd; /* makes timers readable; its fd is -1 with
                                      any other hosting */
    void (*on_detached)(struct uva_runtime *runtime); /* last handle closed */
    int handles;          /* number of those above that are not closed */
    int64_t clock_due_ms; /* when clock_fd becomes readable: see clock_set() */
    bool is_loop_used;    /* hosted by turns: the host may have handles on it */
    bool is_running;      /* hosted by turns: inside a turn or a callback */

    struct uva__timer *timers;        /* borrows: the earliest first */
    struct uva__timer *last_timer;    /* borrows: the latest */
    struct uva__open_object *objects; /* borrows: objects that are open */
    int32_t turn_batches;             /* the budget of one turn; tests set it */
    uint64_t turn_ns;                 /* its budget in time */
    struct {                          /* CPU time, as last read */
        uint64_t read_ns;             /* when it was read; 0: never */
        uint64_t used_ns;             /* time the loop thread had used */
    } cpu;

    struct uva__drain drain;
    struct uva__close_request close_request; /* the request to close */
    struct uva__timer grace;       /* until open objects are aborted */
    struct uva__timer close_timer; /* limits how long close waits for workers */
    bool close_forced;             /* that limit has passed */
    bool aborting;                 /* the grace is over */
    struct uva__timer lane_timer;  /* until threads are looked for again */

    pthread_t thread;            /* hosted by a thread: that thread */
    uva_call_fn *post;           /* hosted by posts */
    void *post_ctx;              /* borrows */
    pthread_t watcher;           /* hosted by posts: calls post */
    struct uva__atomic64 turned; /* number of turns, for the watcher */

    struct uva__readiness readiness; /* hosted by posts: the watcher's wait */
    struct uva__parker turn_awaited; /* the watcher, until the next turn */
};

/* Takes one turn, within the budget. Thread: loop. */
void uva__loop_turn(struct uva_runtime *runtime);

/* Stores a request; of a later request only a shorter grace, and it gets
 * EALREADY. grace_ms: reads the grace. Thread: any. */
UVA_MUST_CHECK int uva__close_request_set(struct uva__close_request *request,
                                          int64_t grace_ms, uva_call_fn *fn,
                                          void *ctx);
int64_t uva__close_request_grace_ms(struct uva__close_request *request);

/* No stream starts from now on; the loop is kept alive until the handles are
 * closed. The first call alone has an effect. Thread: loop. */
void uva__loop_begin_close(struct uva_runtime *runtime);

/* Prepares a drain, while the runtime is opened. Thread: any. */
void uva__drain_init(struct uva_runtime *runtime);

/* Prepares for news of the worker threads. Thread: any, before the first job.
 */
void uva__lane_news_init(struct uva_runtime *runtime);

/* Starts and closes the handles on the loop; calls `on_detached` when the last
 * is closed. Thread: loop. */
UVA_MUST_CHECK int uva__loop_attach(struct uva_runtime *runtime);
void uva__loop_detach(struct uva_runtime *runtime);

#endif
