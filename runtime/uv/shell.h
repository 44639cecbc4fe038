/* SPDX-License-Identifier: Apache-2.0 */
/* What uv/loop.c, which turns, and uv/hosting.c, which opens and closes, have
 * in common: the struct of a runtime. For no other file. */
#ifndef UVA_UV_SHELL_H
#define UVA_UV_SHELL_H

#include <pthread.h>
#include <uv.h>

#include "uv/loop.h"

/* Who runs the loop. */
enum uva__hosting {
    UVA__HOSTED_BY_LOOP,   /* the user's uv_loop_t: we are guests on it */
    UVA__HOSTED_BY_THREAD, /* a thread of ours */
    UVA__HOSTED_BY_TURNS,  /* whoever calls uva_runtime_turn() */
    UVA__HOSTED_BY_POSTS   /* the same, called for by a host's post */
};

/* Where a runtime is in its life; only ever forwards. */
enum uva__phase {
    UVA__OPEN,
    UVA__CLOSING,  /* nothing new; waits for what is owed */
    UVA__DETACHED, /* its handles are being closed */
    UVA__GONE      /* they are; the user has been told */
};

/* What a close asked for. Any thread, under the lock. */
struct uva__wish {
    struct uva__lock lock;
    bool wished;       /* a close was asked for */
    int64_t grace_ms;  /* the shortest asked for; UVA_FOREVER: none */
    uva_closed_fn *fn; /* of the first; NULL: none */
    void *ctx;         /* borrows */
};

struct uva_runtime {
    struct uva__hub *hub;      /* counts */
    enum uva__hosting hosting; /* who runs the loop */
    enum uva__phase phase;     /* loop only */
    uv_loop_t *loop;           /* borrows: the user's, or `own` */
    uv_loop_t own;             /* unless a guest */

    uv_poll_t wake;   /* on the hub's descriptor */
    uv_timer_t timer; /* for the earliest of `timers` */
    uv_idle_t idle;   /* runs while a turn was cut short: no sleep */
    uv_check_t check; /* goes on with such a turn */
    uv_poll_t clock;  /* hosted by turns: on the timerfd */
    int clock_fd;     /* owns: makes timers readable; or -1 */
    void (*gone)(struct uva_runtime *runtime); /* the last one is closed */
    int handles; /* of those above, not yet closed */

    struct uva__timer *timers;     /* borrows: the earliest first */
    struct uva__timer *last_timer; /* borrows: the latest */
    struct uva__tenant *tenants;   /* borrows: what is open */
    int32_t turn_batches;          /* the budget of one turn */
    uint64_t turn_ns;              /* likewise in time */

    struct uva__wish wish;      /* of close */
    struct uva__timer grace;    /* of a close that waits */
    struct uva__timer patience; /* with who is on the way home */
    bool impatient;             /* that is over */
    bool evicting;              /* the grace is over */
    bool closer_held;           /* the loop is kept alive for the close */

    pthread_t thread;             /* hosted by a thread: that */
    void (*post)(void *post_ctx); /* hosted by posts */
    void *post_ctx;               /* borrows */
    pthread_t watcher;            /* hosted by posts: calls post */
    struct uva__signal turned;    /* raised after each turn, for the watcher */
    int leave_fd;                 /* owns: readable when the watcher is to end;
                                     or -1 */
};

/* Takes one turn, within the budget. Thread: loop. */
void uva__loop_turn(struct uva_runtime *runtime);

/* Goes on with a close as far as it can now. Thread: loop. */
void uva__loop_close_on(struct uva_runtime *runtime);

/* Starts and ends the handles on the loop; `done` is called when the last is
 * closed. Thread: loop. */
UVA_MUST_CHECK int uva__loop_attach(struct uva_runtime *runtime);
void uva__loop_detach(struct uva_runtime *runtime);

#endif
