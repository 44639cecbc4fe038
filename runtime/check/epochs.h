/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls are under way, on which threads: overlap and reentrancy are read
 * off it. Each call brings its own record, on its stack. Pure; under its
 * owner's lock. */
#ifndef UVA_CHECK_EPOCHS_H
#define UVA_CHECK_EPOCHS_H

#include <stddef.h>

#include "core/sync.h"

/* The calls that pass through a checked stream. */
enum uva__call {
    UVA__CALL_NONE,    /* none */
    UVA__CALL_SCHEMA,  /* on_schema */
    UVA__CALL_TASK,    /* on_next_task with a task */
    UVA__CALL_END,     /* on_next_task with NULL */
    UVA__CALL_ERROR,   /* on_error */
    UVA__CALL_RELEASE, /* release: the last of the callbacks */
    UVA__CALL_REQUEST, /* of the producer */
    UVA__CALL_CANCEL,  /* of the producer */
    UVA__CALL_EXTRACT  /* of a task */
};

/* One call under way. */
struct uva__epoch {
    struct uva__epoch *next; /* borrows: one that began before */
    enum uva__call call;     /* which */
    uint64_t thread;         /* that called */
    struct uva__word runner; /* the thread that runs it instead; or 0 */
    bool inside;             /* began inside a callback, on the same thread */
    struct uva__epoch *host; /* borrows: the callback that a request is a part
                                of, instead of being under way by itself */
    enum uva__call part;     /* of a callback: such a call, or none. Its own
                                thread's */
};

/* All zeroes is none. */
struct uva__epochs {
    struct uva__epoch *newest; /* borrows */
};

/* Whether `call`, which is one, is of the handler's. */
static inline bool uva__call_is_callback(enum uva__call call)
{
    return call <= UVA__CALL_RELEASE;
}

static inline bool uva__call_is_next_task(enum uva__call call)
{
    return call == UVA__CALL_TASK || call == UVA__CALL_END;
}

/* Whether the call is under way on `thread`. */
static inline bool uva__epoch_is_on(const struct uva__epoch *epoch,
                                    uint64_t thread)
{
    return epoch->thread == thread || uva__word_load(&epoch->runner) == thread;
}

/* Where a call would begin. */
struct uva__place {
    enum uva__call within;        /* the innermost call on this thread */
    enum uva__call callback;      /* the innermost callback on this thread */
    enum uva__call beside;        /* a callback on another thread; on_next_task
                                     rather than any other */
    struct uva__epoch *innermost; /* on this thread; borrows, or NULL */
};

/* Looks around for a call that begins on `thread`. */
static inline struct uva__place
uva__epochs_place(const struct uva__epochs *epochs, uint64_t thread)
{
    struct uva__place place = {.within = UVA__CALL_NONE};
    struct uva__epoch *e;

    for (e = epochs->newest; e != NULL; e = e->next) {
        if (!uva__epoch_is_on(e, thread)) {
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

/* Begins and ends a call; `epoch` has its call and thread, and stays until it
 * ended. */
static inline void uva__epochs_enter(struct uva__epochs *epochs,
                                     struct uva__epoch *epoch)
{
    epoch->next = epochs->newest;
    epochs->newest = epoch;
}

static inline void uva__epochs_leave(struct uva__epochs *epochs,
                                     struct uva__epoch *epoch)
{
    struct uva__epoch **at = &epochs->newest;

    while (*at != epoch)
        at = &(*at)->next;
    *at = epoch->next;
}

/* Makes a call a part of `host`, the callback that it began directly inside, on
 * the same thread; and ends that. For one that nobody else needs to know of, as
 * the callback stands for it. */
static inline void uva__epochs_join(struct uva__epoch *host,
                                    struct uva__epoch *epoch)
{
    epoch->host = host;
    host->part = epoch->call;
}

static inline void uva__epochs_part(const struct uva__epoch *epoch)
{
    epoch->host->part = UVA__CALL_NONE;
}

/* Whether a request or cancel is under way on another thread than those of
 * `epoch`, that did not begin inside a callback. */
bool uva__epochs_calls_beside(const struct uva__epochs *epochs,
                              const struct uva__epoch *epoch);

/* Whether release must wait for others: callbacks, or calls of `thread`, on
 * which it came. */
bool uva__epochs_hold_release(const struct uva__epochs *epochs,
                              uint64_t thread);

#endif
