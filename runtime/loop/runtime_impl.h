/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a runtime. Only loop/loop.c (turns), loop/runtime.c (open,
 * close), loop/post.c and loop/lane_news.c include it. */
#ifndef UVA_LOOP_RUNTIME_IMPL_H
#define UVA_LOOP_RUNTIME_IMPL_H

#include <pthread.h>
#include <uv.h>

#include "loop/loop.h"

/* What runs the loop. */
enum uva__hosting {
    UVA__HOSTED_BY_LOOP,   /* the user's uv_loop_t, on which we are embedded */
    UVA__HOSTED_BY_THREAD, /* a thread of ours */
    UVA__HOSTED_BY_TURNS,  /* the user's calls of uva_runtime_turn() */
    UVA__HOSTED_BY_POSTS   /* such calls, requested through options.post */
};

/* The state of a runtime; it only moves forwards. */
enum uva__runtime_state {
    UVA__RUNTIME_OPEN,
    UVA__RUNTIME_CLOSING,  /* nothing new starts; waits for open objects */
    UVA__RUNTIME_DETACHED, /* its handles are being closed */
    UVA__RUNTIME_CLOSED    /* they are closed; the user's callback was called */
};

/* The arguments of uva_runtime_close(). Any thread, under the lock. */
struct uva__close_request {
    struct uva__lock lock;
    bool requested;    /* a close was requested */
    int64_t grace_ms;  /* the shortest requested; UVA_FOREVER: none */
    uva_closed_fn *fn; /* of the first request; NULL: none */
    void *ctx;         /* borrows */
};

struct uva_runtime {
    struct uva__rt *rt;            /* holds a reference */
    enum uva__hosting hosting;     /* what runs the loop */
    enum uva__runtime_state state; /* loop only */
    uv_loop_t *loop;               /* borrows: the user's, or `own` */
    uv_loop_t own;                 /* unless it is the user's */

    uv_poll_t wake;   /* on the wake-up descriptor */
    uv_timer_t timer; /* for the earliest of `timers` */
    uv_idle_t idle;   /* active after a turn was cut short: no sleep */
    uv_check_t check; /* continues such a turn */
    uv_poll_t clock;  /* hosted by turns: on the timerfd */
    int clock_fd;     /* owns: makes timers readable; or -1 */
    void (*on_detached)(struct uva_runtime *runtime); /* last handle closed */
    int handles; /* number of those above that are not closed */

    struct uva__timer *timers;        /* borrows: the earliest first */
    struct uva__timer *last_timer;    /* borrows: the latest */
    struct uva__open_object *objects; /* borrows: objects that are open */
    int32_t turn_batches;             /* the budget of one turn */
    uint64_t turn_ns;                 /* its budget in time */

    struct uva__close_request close_request; /* the request to close */
    struct uva__timer grace;       /* until open objects are aborted */
    struct uva__timer close_timer; /* limits how long close waits for workers */
    bool close_forced;             /* that limit has passed */
    bool aborting;                 /* the grace is over */
    bool closer_keeps_loop;        /* the close keeps the loop alive */
    struct uva__timer lane_timer;  /* until threads are looked for again */
    struct uva__timer executor_timer; /* until stuck calls are reported */
    bool executor_warned;             /* they were reported */

    pthread_t thread;             /* hosted by a thread: that thread */
    void (*post)(void *post_ctx); /* hosted by posts */
    void *post_ctx;               /* borrows */
    pthread_t watcher;            /* hosted by posts: calls post */
    struct uva__futex turned;     /* raised after each turn, for the watcher */
    int leave_fd;                 /* owns: readable when the watcher must end;
                                     or -1 */
};

/* Takes one turn, within the budget. Thread: loop. */
void uva__loop_turn(struct uva_runtime *runtime);

/* Continues a close as far as possible now. Thread: loop. */
void uva__loop_close_on(struct uva_runtime *runtime);

/* Prepares for news of the worker threads. Thread: any, before the first job.
 */
void uva__lane_news_init(struct uva_runtime *runtime);

/* Starts and closes the handles on the loop; calls `on_detached` when the last
 * is closed. Thread: loop. */
UVA_MUST_CHECK int uva__loop_attach(struct uva_runtime *runtime);
void uva__loop_detach(struct uva_runtime *runtime);

#endif
