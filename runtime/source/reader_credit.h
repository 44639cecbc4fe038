/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread owns a reader's source, how many slots it may fill, and how far
 * it has come, in one atomic: so that granting credit and closing cannot race.
 * Used by a reader's loop (source/reader.c) and worker
 * (source/reader_worker.c).
 */
#ifndef UVA_SOURCE_READER_CREDIT_H
#define UVA_SOURCE_READER_CREDIT_H

#include "base/atomic.h"

/* The credits are in the bits above these. */
enum {
    CREDIT_RUNNING = 1,    /* a thread owns the source, and reader->worker */
    CREDIT_PAUSED = 2,     /* it has given that up until bytes are consumed */
    CREDIT_CANCEL = 4,     /* no more batches are wanted */
    CREDIT_CLOSED = 8,     /* the source is closed, the slots are the loop's */
    CREDIT_DESCRIBED = 16, /* the schema can be read */
    CREDIT_ENDED = 32,     /* no batch follows, and the failure can be read */
    CREDIT_FLAGS = 63,
    CREDIT_SHIFT = 6
};

/* ---- the loop ----------------------------------------------------------- */

/* Sets RUNNING; the caller starts the worker. Thread: loop, when RUNNING is not
 * set. */
static inline void uva__reader_credit_run(struct uva__atomic64 *word)
{
    uva__atomic64_or(word, CREDIT_RUNNING);
}

/* Grants n credits. Returns whether the caller has to start the worker. Thread:
 * loop. */
static inline bool uva__reader_credit_grant(struct uva__atomic64 *word,
                                            uint64_t n)
{
    const uint64_t before = uva__atomic64_add(word, n << CREDIT_SHIFT);

    if (before & (CREDIT_RUNNING | CREDIT_PAUSED | CREDIT_CLOSED))
        return false;
    uva__reader_credit_run(word);
    return true;
}

/* Ends a pause; the caller starts the worker. Thread: loop. */
static inline void uva__reader_credit_unpause(struct uva__atomic64 *word)
{
    uva__atomic64_and(word, ~(uint64_t)CREDIT_PAUSED);
    uva__reader_credit_run(word);
}

/* Sets CANCEL. Returns the bits before that: with CLOSED the slots are the
 * loop's; without RUNNING the caller has to start the worker. Thread: loop. */
static inline uint64_t uva__reader_credit_cancel(struct uva__atomic64 *word)
{
    return uva__atomic64_or(word, CREDIT_CANCEL);
}

/* ---- the worker, while it has RUNNING ----------------------------------- */

/* States a fact: DESCRIBED or ENDED. Thread: worker. */
static inline void uva__reader_credit_state(struct uva__atomic64 *word,
                                            uint64_t fact)
{
    uva__atomic64_or(word, fact);
}

/* The next step of the worker. */
enum uva__reader_credit_next {
    UVA__READER_CREDIT_GO,   /* credits were taken */
    UVA__READER_CREDIT_IDLE, /* there were no credits: RUNNING was given up */
    UVA__READER_CREDIT_STOP  /* no more batches are wanted */
};

/* Takes all credits, or gives up RUNNING without credits. Thread: worker. */
static inline enum uva__reader_credit_next
uva__reader_credit_refill(struct uva__atomic64 *word, uint64_t *credits)
{
    uint64_t seen = uva__atomic64_load(word), next;

    do {
        if (seen & CREDIT_CANCEL)
            return UVA__READER_CREDIT_STOP;
        next = seen >> CREDIT_SHIFT == 0 ? seen & ~(uint64_t)CREDIT_RUNNING
                                         : seen & CREDIT_FLAGS;
    } while (!uva__atomic64_cas(word, &seen, next));
    *credits = seen >> CREDIT_SHIFT;
    return *credits == 0 ? UVA__READER_CREDIT_IDLE : UVA__READER_CREDIT_GO;
}

/* Gives up RUNNING until the loop ends the pause. False if it was cancelled.
 * Thread: worker. */
static inline bool uva__reader_credit_pause(struct uva__atomic64 *word)
{
    uint64_t seen = uva__atomic64_load(word);

    do
        if (seen & CREDIT_CANCEL)
            return false;
    while (!uva__atomic64_cas(
        word, &seen, (seen & ~(uint64_t)CREDIT_RUNNING) | CREDIT_PAUSED));
    return true;
}

/* Sets CLOSED, which gives the slots to the loop. False if it was cancelled:
 * then the worker discards the slots that were filled and not taken, and sets
 * CLOSED after that with uva__reader_credit_set_closed(). Thread: worker. */
static inline bool uva__reader_credit_finish(struct uva__atomic64 *word)
{
    uint64_t seen = uva__atomic64_load(word);

    do
        if (seen & CREDIT_CANCEL)
            return false;
    while (!uva__atomic64_cas(word, &seen, seen | CREDIT_CLOSED));
    return true;
}

static inline void uva__reader_credit_set_closed(struct uva__atomic64 *word)
{
    uva__atomic64_or(word, CREDIT_CLOSED);
}

#endif
