/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns a reader's source, and how many slots it may fill, in one word: so
 * that a grant and the lane's way home cannot miss each other. For a reader's
 * loop (adapters/reader.c) and lane (adapters/lane_side.c). */
#ifndef UVA_ADAPTERS_LANE_WORD_H
#define UVA_ADAPTERS_LANE_WORD_H

#include "core/sync.h"

/* Credits stand above these. */
enum {
    LANE_RUNNING = 1, /* somebody owns the source, and everything of the lane */
    LANE_PAUSED = 2,  /* gave that up until bytes are eaten */
    LANE_CANCEL = 4,  /* nothing more is wanted */
    LANE_HOME = 8,    /* the source is closed, the slots are the loop's */
    LANE_FLAGS = 15,
    LANE_SHIFT = 4
};

/* ---- the loop ----------------------------------------------------------- */

/* Sets the lane off, whatever it has; the caller has it run. Thread: loop, when
 * RUNNING is not set. */
static inline void uva__lane_word_run(struct uva__word *word)
{
    uva__word_or(word, LANE_RUNNING);
}

/* Gives n credits. Whether the caller now has to have the lane run.
 * Thread: loop. */
static inline bool uva__lane_word_grant(struct uva__word *word, uint64_t n)
{
    const uint64_t before = uva__word_add(word, n << LANE_SHIFT);

    if (before & (LANE_RUNNING | LANE_PAUSED | LANE_HOME))
        return false;
    uva__lane_word_run(word);
    return true;
}

/* Ends a pause; the caller has the lane run. Thread: loop. */
static inline void uva__lane_word_unpause(struct uva__word *word)
{
    uva__word_and(word, ~(uint64_t)LANE_PAUSED);
    uva__lane_word_run(word);
}

/* Wants no more. Returns the word before: with HOME all is the loop's; without
 * RUNNING the caller has to set the lane off. Thread: loop. */
static inline uint64_t uva__lane_word_cancel(struct uva__word *word)
{
    return uva__word_or(word, LANE_CANCEL);
}

/* ---- the lane, while it has RUNNING ------------------------------------- */

/* What there is for it to do. */
enum uva__lane_word_next {
    UVA__LANE_WORD_GO,   /* credits were taken */
    UVA__LANE_WORD_IDLE, /* there are none: RUNNING was given up */
    UVA__LANE_WORD_STOP  /* nothing more is wanted */
};

/* Takes all credit there is, or gives up RUNNING. */
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

/* Gives up RUNNING until the loop ends the pause. False if nothing more is
 * wanted. */
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

/* Leaves all to the loop, if it has not said that it wants no more: then false,
 * and what was filled and not taken is the lane's to discard. After that, or if
 * true, nothing is the lane's any more. */
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
