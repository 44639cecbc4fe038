/* SPDX-License-Identifier: Apache-2.0 */
/* The half of a runtime that only its loop thread touches: libuv handles,
 * turns, timers, what is open and must be told of a close. */
#ifndef UVA_UV_LOOP_H
#define UVA_UV_LOOP_H

#include "uv/hub.h"

/* Something open that a close has to end. Part of it; linked while open. */
struct uva__tenant {
    struct uva__tenant *next, *before; /* borrows: its neighbours */
    /* begins to end it, on the loop; must not move it out before it returns */
    void (*evict)(struct uva__tenant *tenant);
    bool evicted; /* has been told */
};

/* The hub of an open runtime; NULL for NULL. Thread: any. */
struct uva__hub *uva__loop_hub(struct uva_runtime *runtime);

/* Enters and leaves the list of what is open. A tenant that comes when the
 * grace of a close is over is evicted at once, before this returns.
 * Thread: loop. */
void uva__loop_move_in(struct uva__hub *hub, struct uva__tenant *tenant);
void uva__loop_move_out(struct uva__hub *hub, struct uva__tenant *tenant);

/* One reason more, or less, to keep a guest's loop alive (12.8). No effect once
 * the loop has let go. Thread: loop. */
void uva__loop_hold(struct uva__hub *hub);
void uva__loop_unhold(struct uva__hub *hub);

/* A call at a time. Part of what it is about; all zeroes is not running. */
struct uva__timer {
    struct uva__timer *next, *before; /* borrows: its neighbours in time */
    void (*fire)(struct uva__timer *timer); /* on the loop */
    uint64_t due_ms;                        /* of the loop's clock */
    bool running;
};

/* Has `timer` fire once, after `delay_ms`; or not any more. Timers do not keep
 * the loop alive. Thread: loop. */
void uva__timer_start(struct uva__hub *hub, struct uva__timer *timer,
                      int64_t delay_ms);
void uva__timer_stop(struct uva__hub *hub, struct uva__timer *timer);

#endif
