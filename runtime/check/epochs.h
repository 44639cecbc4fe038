/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls are under way, on which threads: overlap and reentrancy are read
 * off it. Each call brings its own record, on its stack. Pure; under its
 * owner's lock. */
#ifndef UVA_CHECK_EPOCHS_H
#define UVA_CHECK_EPOCHS_H

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

/* Where a call would begin. */
struct uva__place {
    enum uva__call within;   /* the innermost call on this thread */
    enum uva__call callback; /* the innermost callback on this thread */
    enum uva__call beside;   /* a callback on another thread; on_next_task
                                rather than any other */
};

/* Looks around for a call that begins on `thread`. */
struct uva__place uva__epochs_place(const struct uva__epochs *epochs,
                                    uint64_t thread);

/* Begins and ends a call; `epoch` has its call and thread, and stays until it
 * ended. */
void uva__epochs_enter(struct uva__epochs *epochs, struct uva__epoch *epoch);
void uva__epochs_leave(struct uva__epochs *epochs, struct uva__epoch *epoch);

/* Whether a request or cancel is under way on another thread than those of
 * `epoch`, that did not begin inside a callback. */
bool uva__epochs_calls_beside(const struct uva__epochs *epochs,
                              const struct uva__epoch *epoch);

/* Whether release must wait for others: callbacks, or calls of `thread`, on
 * which it came. */
bool uva__epochs_hold_release(const struct uva__epochs *epochs,
                              uint64_t thread);

#endif
