/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a reader's worker is in a call of its source, whether it was
 * cancelled, and whether an interrupt is running, in one atomic: so that a call
 * is interrupted, and a source that is being closed is not. */
#ifndef UVA_SOURCE_INTERRUPT_H
#define UVA_SOURCE_INTERRUPT_H

#include "base/atomic.h"

enum {
    INTERRUPT_INSIDE = 1,  /* in a call of the source, or between two */
    INTERRUPT_RUNNING = 2, /* besides, an interrupt is running */
    INTERRUPT_CANCEL = 4,  /* no further call */
    INTERRUPT_STUCK = 8    /* the call is counted as stuck */
};

enum {
    /* Between two interrupts of one call; doubled each time. They are no time
     * limits: the interrupts go on until the call returns. */
    INTERRUPT_PAUSE_MS = 100,
    INTERRUPT_PAUSE_MAX_MS = 5000
};

/* Interrupts a call until it returns, with growing pauses: drivers forget an
 * interrupt that came just before the call. `once` interrupts it, and returns
 * false if it has returned; `await` waits for that, at most for the pause. */
static inline void
uva__interrupt_repeat(bool (*once)(void *ctx),
                      void (*await)(void *ctx, int64_t limit_ms), void *ctx)
{
    int64_t pause_ms = INTERRUPT_PAUSE_MS;

    while (once(ctx)) {
        await(ctx, pause_ms);
        pause_ms = pause_ms * 2 < INTERRUPT_PAUSE_MAX_MS
                       ? pause_ms * 2
                       : INTERRUPT_PAUSE_MAX_MS;
    }
}

/* All zeroes: in no call. */
struct uva__interrupt {
    struct uva__atomic64 word;
    struct uva__futex left; /* raised when a call or an interrupt ends */
};

/* ---- the worker --------------------------------------------------------- */

/* False if it was cancelled before: then the source must not be called. Thread:
 * worker. */
static inline bool uva__interrupt_enter(struct uva__interrupt *interrupt)
{
    if (!(uva__atomic64_or(&interrupt->word, INTERRUPT_INSIDE) &
          INTERRUPT_CANCEL))
        return true;
    uva__atomic64_and(&interrupt->word, ~(uint64_t)INTERRUPT_INSIDE);
    return false;
}

/* Returns whether it was cancelled: then no further call is made. A cancel that
 * comes after this check finds INSIDE set, and interrupts. Thread: worker. */
static inline bool
uva__interrupt_is_cancelled(const struct uva__interrupt *interrupt)
{
    return (uva__atomic64_load(&interrupt->word) & INTERRUPT_CANCEL) != 0;
}

/* Clears INSIDE. First waits for an interrupt that is running, so that it never
 * overlaps later calls. Returns the bits before that: with CANCEL if one came
 * meanwhile. Thread: worker. */
static inline uint64_t uva__interrupt_leave(struct uva__interrupt *interrupt)
{
    uint64_t word = uva__atomic64_load(&interrupt->word);
    uint32_t seen;

    do
        while (word & INTERRUPT_RUNNING) {
            seen = uva__futex_now(&interrupt->left);
            word = uva__atomic64_load(&interrupt->word);
            if (word & INTERRUPT_RUNNING)
                (void)uva__futex_wait(&interrupt->left, seen, -1);
            word = uva__atomic64_load(&interrupt->word);
        }
    while (
        !uva__atomic64_cas(&interrupt->word, &word, word & INTERRUPT_CANCEL));
    return word;
}

/* Wakes the interrupting thread after a leave: the call has returned. Thread:
 * worker. */
static inline void uva__interrupt_wake(struct uva__interrupt *interrupt)
{
    uva__futex_raise(&interrupt->left);
}

/* ---- the cancelling thread ----------------------------------------------- */

/* Sets CANCEL, which the worker checks before and after each call. True if it
 * is in a call, which counts as stuck from then on. Thread: loop. */
static inline bool uva__interrupt_cancel(struct uva__interrupt *interrupt)
{
    uint64_t word = uva__atomic64_load(&interrupt->word), add;

    do
        add = word & INTERRUPT_INSIDE ? INTERRUPT_CANCEL | INTERRUPT_STUCK
                                      : INTERRUPT_CANCEL;
    while (!uva__atomic64_cas(&interrupt->word, &word, word | add));
    return (word & INTERRUPT_INSIDE) != 0;
}

/* Begins an interrupt, if the worker is still in the call. Thread: the
 * interrupting one. */
static inline bool uva__interrupt_begin(struct uva__interrupt *interrupt)
{
    const uint64_t inside =
        INTERRUPT_INSIDE | INTERRUPT_CANCEL | INTERRUPT_STUCK;
    uint64_t word = inside;

    return uva__atomic64_cas(&interrupt->word, &word,
                             inside | INTERRUPT_RUNNING);
}

static inline void uva__interrupt_end(struct uva__interrupt *interrupt)
{
    uva__atomic64_and(&interrupt->word, ~(uint64_t)INTERRUPT_RUNNING);
    uva__futex_raise(&interrupt->left);
}

/* Waits up to `limit_ms` for the worker to leave the call. Thread: the
 * interrupting one. */
static inline void uva__interrupt_await(struct uva__interrupt *interrupt,
                                        int64_t limit_ms)
{
    const uint32_t seen = uva__futex_now(&interrupt->left);

    if (uva__atomic64_load(&interrupt->word) & INTERRUPT_INSIDE)
        (void)uva__futex_wait(&interrupt->left, seen, limit_ms);
}

#endif
