/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a lane is at the calls of its source, whether a cancel has come, and
 * whether an interrupt is running, in one word: so that a source which was
 * entered is interrupted, and one that is closed is not. */
#ifndef UVA_ADAPTERS_PHASE_WORD_H
#define UVA_ADAPTERS_PHASE_WORD_H

#include "core/sync.h"

enum {
    PHASE_IN = 1,     /* inside a call of the source, or between two */
    PHASE_INTR = 2,   /* and an interrupt is running */
    PHASE_CANCEL = 4, /* no further call */
    PHASE_STUCK = 8   /* the call is counted as stuck */
};

/* All zeroes is outside. */
struct uva__phase {
    struct uva__word word;
    struct uva__signal left; /* raised when a call ends that is waited for */
};

/* ---- the lane ----------------------------------------------------------- */

/* False when a cancel was first: then the source is not to be called. */
static inline bool uva__phase_enter(struct uva__phase *phase)
{
    if (!(uva__word_or(&phase->word, PHASE_IN) & PHASE_CANCEL))
        return true;
    uva__word_and(&phase->word, ~(uint64_t)PHASE_IN);
    return false;
}

/* Whether a cancel was seen: no call after the one before, then. One that is
 * not seen here finds us inside. */
static inline bool uva__phase_is_cancelled(const struct uva__phase *phase)
{
    return (uva__word_load(&phase->word) & PHASE_CANCEL) != 0;
}

/* Waits for an interrupt that is running, so that it never overlaps what comes
 * next. Returns the word before: CANCEL if one came meanwhile. */
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

/* Tells an interrupter, after a leave, that he need not come again. */
static inline void uva__phase_tell(struct uva__phase *phase)
{
    uva__signal_raise(&phase->left);
}

/* ---- who cancels -------------------------------------------------------- */

/* Marks the cancel where the lane looks before and after each call. True if it
 * is inside one, which counts as stuck then. Thread: loop. */
static inline bool uva__phase_cancel(struct uva__phase *phase)
{
    uint64_t word = uva__word_load(&phase->word), add;

    do
        add = word & PHASE_IN ? PHASE_CANCEL | PHASE_STUCK : PHASE_CANCEL;
    while (!uva__word_cas(&phase->word, &word, word | add));
    return (word & PHASE_IN) != 0;
}

/* Begins an interrupt, if the lane is still inside. Thread: guest. */
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

/* Waits a while for the lane to leave. Thread: guest. */
static inline void uva__phase_await(struct uva__phase *phase, int64_t limit_ms)
{
    const uint32_t seen = uva__signal_now(&phase->left);

    if (uva__word_load(&phase->word) & PHASE_IN)
        (void)uva__signal_wait(&phase->left, seen, limit_ms);
}

#endif
