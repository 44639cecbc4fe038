/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a reader's worker is in a call of its source, whether it was
 * cancelled, and whether an interrupt is running, in one atomic: so that a call
 * is interrupted, and a source that is being closed is not. */
#ifndef UVA_ADAPTERS_PHASE_WORD_H
#define UVA_ADAPTERS_PHASE_WORD_H

#include "base/atomic.h"

enum {
    PHASE_IN = 1,     /* in a call of the source, or between two */
    PHASE_INTR = 2,   /* besides, an interrupt is running */
    PHASE_CANCEL = 4, /* no further call */
    PHASE_STUCK = 8   /* the call is counted as stuck */
};

/* All zeroes: in no call. */
struct uva__phase {
    struct uva__word word;
    struct uva__signal left; /* raised when a call or an interrupt ends */
};

/* ---- the lane ----------------------------------------------------------- */

/* False if it was cancelled before: then the source must not be called. Thread:
 * worker. */
static inline bool uva__phase_enter(struct uva__phase *phase)
{
    if (!(uva__word_or(&phase->word, PHASE_IN) & PHASE_CANCEL))
        return true;
    uva__word_and(&phase->word, ~(uint64_t)PHASE_IN);
    return false;
}

/* Returns whether it was cancelled: then no further call is made. A cancel that
 * comes after this check finds IN set, and interrupts. Thread: worker. */
static inline bool uva__phase_is_cancelled(const struct uva__phase *phase)
{
    return (uva__word_load(&phase->word) & PHASE_CANCEL) != 0;
}

/* Clears IN. First waits for an interrupt that is running, so that it never
 * overlaps later calls. Returns the bits before that: with CANCEL if one came
 * meanwhile. Thread: worker. */
static inline uint64_t uva__phase_leave(struct uva__phase *phase)
{
    uint64_t word = uva__word_load(&phase->word);
    uint32_t seen;

    do
        while (word & PHASE_INTR) {
            seen = uva__signal_now(&phase->left);
            word = uva__word_load(&phase->word);
            if (word & PHASE_INTR)
                (void)uva__signal_wait(&phase->left, seen, -1);
            word = uva__word_load(&phase->word);
        }
    while (!uva__word_cas(&phase->word, &word, word & PHASE_CANCEL));
    return word;
}

/* Wakes the interrupting thread after a leave: the call has returned. Thread:
 * worker. */
static inline void uva__phase_tell(struct uva__phase *phase)
{
    uva__signal_raise(&phase->left);
}

/* ---- the cancelling thread ----------------------------------------------- */

/* Sets CANCEL, which the worker checks before and after each call. True if it
 * is in a call, which counts as stuck from then on. Thread: loop. */
static inline bool uva__phase_cancel(struct uva__phase *phase)
{
    uint64_t word = uva__word_load(&phase->word), add;

    do
        add = word & PHASE_IN ? PHASE_CANCEL | PHASE_STUCK : PHASE_CANCEL;
    while (!uva__word_cas(&phase->word, &word, word | add));
    return (word & PHASE_IN) != 0;
}

/* Begins an interrupt, if the worker is still in the call. Thread: the
 * interrupting one. */
static inline bool uva__phase_interrupt_begin(struct uva__phase *phase)
{
    const uint64_t inside = PHASE_IN | PHASE_CANCEL | PHASE_STUCK;
    uint64_t word = inside;

    return uva__word_cas(&phase->word, &word, inside | PHASE_INTR);
}

static inline void uva__phase_interrupt_end(struct uva__phase *phase)
{
    uva__word_and(&phase->word, ~(uint64_t)PHASE_INTR);
    uva__signal_raise(&phase->left);
}

/* Waits up to `limit_ms` for the worker to leave the call. Thread: the
 * interrupting one. */
static inline void uva__phase_await(struct uva__phase *phase, int64_t limit_ms)
{
    const uint32_t seen = uva__signal_now(&phase->left);

    if (uva__word_load(&phase->word) & PHASE_IN)
        (void)uva__signal_wait(&phase->left, seen, limit_ms);
}

#endif
