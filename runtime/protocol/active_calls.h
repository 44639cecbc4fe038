/* SPDX-License-Identifier: Apache-2.0 */
/* The calls in flight and their threads, from which overlap and reentrancy are
 * found. Each call has its own record, on its stack. Pure; used under the lock
 * of its owner. */
#ifndef UVA_PROTOCOL_ACTIVE_CALLS_H
#define UVA_PROTOCOL_ACTIVE_CALLS_H

#include <stddef.h>

#include "base/atomic.h"

/* The calls that pass through a checked stream. */
enum uva__call {
    UVA__CALL_NONE,    /* no call */
    UVA__CALL_SCHEMA,  /* on_schema */
    UVA__CALL_TASK,    /* on_next_task with a task */
    UVA__CALL_END,     /* on_next_task with NULL */
    UVA__CALL_ERROR,   /* on_error */
    UVA__CALL_RELEASE, /* release: the last of the callbacks */
    UVA__CALL_REQUEST, /* of the producer */
    UVA__CALL_CANCEL,  /* of the producer */
    UVA__CALL_EXTRACT  /* of a task */
};

/* One call in flight. */
struct uva__active_call {
    struct uva__active_call *next; /* borrows: an older call */
    enum uva__call call;           /* its kind */
    uint64_t thread;               /* the calling thread */
    struct uva__atomic64
        runner;  /* the thread that runs it for the caller; or 0 */
    bool inside; /* begun inside a callback, on its thread */
    struct uva__active_call
        *host;           /* borrows: the callback that a request belongs to,
                      which then has no place in the list */
    enum uva__call part; /* of a callback: a request that runs inside it, or
                            NONE; only its own thread uses this */
};

/* All zeroes is an empty list. */
struct uva__active_calls {
    struct uva__active_call *newest; /* borrows */
};

/* Whether `call`, which is not NONE, is a callback of the handler. */
static inline bool uva__call_is_callback(enum uva__call call)
{
    return call <= UVA__CALL_RELEASE;
}

static inline bool uva__call_is_next_task(enum uva__call call)
{
    return call == UVA__CALL_TASK || call == UVA__CALL_END;
}

/* Whether the call runs on `thread`. */
static inline bool
uva__active_call_is_on(const struct uva__active_call *active_call,
                       uint64_t thread)
{
    return active_call->thread == thread ||
           uva__atomic64_load(&active_call->runner) == thread;
}

/* The calls around a new one. */
struct uva__call_context {
    enum uva__call within;   /* the innermost call on this thread */
    enum uva__call callback; /* the innermost callback on this thread */
    enum uva__call beside;   /* a callback on another thread; on_next_task if
                                there are several */
    struct uva__active_call *innermost; /* record of `within`; borrows */
};

/* Returns the calls around a new one on `thread`. */
static inline struct uva__call_context
uva__active_calls_context(const struct uva__active_calls *active_calls,
                          uint64_t thread)
{
    struct uva__call_context place = {.within = UVA__CALL_NONE};
    struct uva__active_call *e;

    for (e = active_calls->newest; e != NULL; e = e->next) {
        if (!uva__active_call_is_on(e, thread)) {
            if (uva__call_is_callback(e->call) &&
                !uva__call_is_next_task(place.beside))
                place.beside = e->call;
            continue;
        }
        if (place.innermost == NULL) {
            place.innermost = e;
            place.within = e->part != UVA__CALL_NONE ? e->part : e->call;
        }
        if (place.callback == UVA__CALL_NONE && uva__call_is_callback(e->call))
            place.callback = e->call;
    }
    return place;
}

/* Add and remove a call. `call` has its kind and thread, and stays where it is
 * until it is removed. */
static inline void
uva__active_calls_enter(struct uva__active_calls *active_calls,
                        struct uva__active_call *active_call)
{
    active_call->next = active_calls->newest;
    active_calls->newest = active_call;
}

static inline void
uva__active_calls_leave(struct uva__active_calls *active_calls,
                        struct uva__active_call *active_call)
{
    struct uva__active_call **at = &active_calls->newest;

    while (*at != active_call)
        at = &(*at)->next;
    *at = active_call->next;
}

/* Make a call a part of `host`, the callback that it began directly inside, on
 * one thread, and end that. For calls that no other thread needs to see, as the
 * callback stands for them. */
static inline void uva__active_calls_join(struct uva__active_call *host,
                                          struct uva__active_call *active_call)
{
    active_call->host = host;
    host->part = active_call->call;
}

static inline void
uva__active_calls_part(const struct uva__active_call *active_call)
{
    active_call->host->part = UVA__CALL_NONE;
}

/* Whether a request or cancel that did not begin inside a callback runs on
 * another thread than the threads of `call`. */
bool uva__active_calls_calls_beside(
    const struct uva__active_calls *active_calls,
    const struct uva__active_call *active_call);

/* Whether a release that came on `thread` must wait: for callbacks, or for
 * calls of that thread. */
bool uva__active_calls_hold_release(
    const struct uva__active_calls *active_calls, uint64_t thread);

#endif
