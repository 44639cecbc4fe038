/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread owns a reader's source, and how many slots it may fill, in one
 * atomic: so that granting credit and closing cannot race. Used by a reader's
 * loop (source/reader.c) and worker (source/reader_worker.c). */
#ifndef UVA_ADAPTERS_LANE_WORD_H
#define UVA_ADAPTERS_LANE_WORD_H

#include "base/atomic.h"

/* The credits are in the bits above these. */
enum {
    LANE_RUNNING = 1, /* a thread owns the source, and reader->lane */
    LANE_PAUSED = 2,  /* it has given that up until bytes are consumed */
    LANE_CANCEL = 4,  /* no more batches are wanted */
    LANE_HOME = 8,    /* the source is closed, the slots are the loop's */
    LANE_FLAGS = 15,
    LANE_SHIFT = 4
};

/* ---- the loop ----------------------------------------------------------- */

/* Sets RUNNING; the caller starts the worker. Thread: loop, when RUNNING is not
 * set. */
static inline void uva__lane_word_run(struct uva__word *word)
{
    uva__word_or(word, LANE_RUNNING);
}

/* Grants n credits. Returns whether the caller has to start the worker. Thread:
 * loop. */
static inline bool uva__lane_word_grant(struct uva__word *word, uint64_t n)
{
    const uint64_t before = uva__word_add(word, n << LANE_SHIFT);

    if (before & (LANE_RUNNING | LANE_PAUSED | LANE_HOME))
        return false;
    uva__lane_word_run(word);
    return true;
}

/* Ends a pause; the caller starts the worker. Thread: loop. */
static inline void uva__lane_word_unpause(struct uva__word *word)
{
    uva__word_and(word, ~(uint64_t)LANE_PAUSED);
    uva__lane_word_run(word);
}

/* Sets CANCEL. Returns the bits before that: with HOME the slots are the
 * loop's; without RUNNING the caller has to start the worker. Thread: loop. */
static inline uint64_t uva__lane_word_cancel(struct uva__word *word)
{
    return uva__word_or(word, LANE_CANCEL);
}

/* ---- the lane, while it has RUNNING ------------------------------------- */

/* What the worker does next. */
enum uva__lane_word_next {
    UVA__LANE_WORD_GO,   /* credits were taken */
    UVA__LANE_WORD_IDLE, /* there were none: RUNNING was given up */
    UVA__LANE_WORD_STOP  /* no more batches are wanted */
};

/* Takes all credits, or gives up RUNNING if there are none. Thread: worker. */
static inline enum uva__lane_word_next
uva__lane_word_refill(struct uva__word *word, uint64_t *credits)
{
    uint64_t seen = uva__word_load(word), next;

    do {
        if (seen & LANE_CANCEL)
            return UVA__LANE_WORD_STOP;
        next = seen >> LANE_SHIFT == 0 ? seen & ~(uint64_t)LANE_RUNNING
                                       : seen & LANE_FLAGS;
    } while (!uva__word_cas(word, &seen, next));
    *credits = seen >> LANE_SHIFT;
    return *credits == 0 ? UVA__LANE_WORD_IDLE : UVA__LANE_WORD_GO;
}

/* Gives up RUNNING until the loop ends the pause. False if it was cancelled.
 * Thread: worker. */
static inline bool uva__lane_word_pause(struct uva__word *word)
{
    uint64_t seen = uva__word_load(word);

    do
        if (seen & LANE_CANCEL)
            return false;
    while (!uva__word_cas(word, &seen,
                          (seen & ~(uint64_t)LANE_RUNNING) | LANE_PAUSED));
    return true;
}

/* Sets HOME, which gives the slots to the loop. False if it was cancelled: then
 * the worker discards the slots that were filled and not taken, and sets HOME
 * after that with uva__lane_word_is_home(). Thread: worker. */
static inline bool uva__lane_word_go_home(struct uva__word *word)
{
    uint64_t seen = uva__word_load(word);

    do
        if (seen & LANE_CANCEL)
            return false;
    while (!uva__word_cas(word, &seen, seen | LANE_HOME));
    return true;
}

static inline void uva__lane_word_is_home(struct uva__word *word)
{
    uva__word_or(word, LANE_HOME);
}

#endif
