/* SPDX-License-Identifier: Apache-2.0 */
/* The half of a runtime that only its loop thread uses: libuv handles, turns,
 * timers, and the list of open objects that a close must abort. */
#ifndef UVA_LOOP_LOOP_H
#define UVA_LOOP_LOOP_H

#include "loop/rt.h"

/* An object that shutdown must abort: part of that object, linked while it is
 * open. */
struct uva__open_object {
    struct uva__open_object *next, *before; /* borrows: its neighbours */
    /* begins to abort the object, on the loop; must not unlink it before it
     * returns */
    void (*abort)(struct uva__open_object *object);
    /* begins to end it, as the deadline of a drain has passed; as `abort`.
     * NULL: a drain does not wait for it */
    void (*time_out)(struct uva__open_object *object);
    /* no stream starts any more, as a drain has begun; as `abort`. NULL: no
     * change for it */
    void (*drain)(struct uva__open_object *object);
    bool aborted; /* `abort` was called */
};

/* The runtime core of an open runtime; NULL for NULL. Thread: any. */
struct uva__rt *uva__loop_rt(struct uva_runtime *runtime);

/* Adds an object to the list of open ones, and removes it. An object that is
 * added after the grace of a close is aborted at once, before this returns; a
 * stream that is added after the deadline of a drain is ended at once, too.
 * Thread: loop. */
void uva__loop_track(struct uva__rt *rt, struct uva__open_object *object);
void uva__loop_untrack(struct uva__rt *rt, struct uva__open_object *object);

/* Counts a reason to keep the user's loop alive, as uv_ref() does, and takes it
 * back: uv_run() returns when there is no reason left. No effect once the
 * runtime has detached. Thread: loop. */
void uva__loop_ref(struct uva__rt *rt);
void uva__loop_unref(struct uva__rt *rt);

/* The same for a stream that runs, which is no reason while the user lets it go
 * by uva_runtime_keep_alive(). Thread: loop. */
void uva__loop_ref_stream(struct uva__rt *rt);
void uva__loop_unref_stream(struct uva__rt *rt);

/* Counts the reason of an object of which `*keeps` states that it is counted.
 * Thread: loop. */
static inline void uva__loop_keep(struct uva__rt *rt, bool *keeps)
{
    if (!*keeps)
        uva__loop_ref(rt);
    *keeps = true;
}

/* A timer, embedded in the object that it is for. All zeroes: not running. */
struct uva__timer {
    struct uva__timer *next, *before; /* borrows: its neighbours in time */
    void (*fire)(struct uva__timer *timer); /* on the loop */
    uint64_t due_ms;                        /* on the loop's clock */
    bool running;
};

/* Starts `timer` to fire once, after `delay_ms`; stops it. Timers do not keep
 * the loop alive. Thread: loop. */
void uva__timer_start(struct uva__rt *rt, struct uva__timer *timer,
                      int64_t delay_ms);
void uva__timer_stop(struct uva__rt *rt, struct uva__timer *timer);

/* Starts it as uva__timer_start() does, unless it runs and fires before that.
 * Thread: loop. */
void uva__timer_start_sooner(struct uva__rt *rt, struct uva__timer *timer,
                             int64_t delay_ms);

/* The same for a time of uva__clock_ns(): it does not fire before that.
 * Thread: loop. */
void uva__timer_start_at(struct uva__rt *rt, struct uva__timer *timer,
                         uint64_t due_ns);

#endif
