/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a handler to its producer, from any thread, in one atomic:
 * credits, and flags beside them. The thread that changes it posts the
 * producer; the dispatcher absorbs it. */
#ifndef UVA_STREAM_DEMAND_H
#define UVA_STREAM_DEMAND_H

#include "base/atomic.h"

/* The flags; credits stand above them. */
enum {
    UVA__WORD_CANCEL = 1,    /* the handler cancelled */
    UVA__WORD_BAD = 2,       /* it requested fewer than one */
    UVA__WORD_UNBOUNDED = 4, /* it requested more than can be counted */
    UVA__WORD_DEAD = 8,      /* its release was entered */
    UVA__WORD_RESTS = 16,    /* the object is in quarantine */
    UVA__WORD_FAILED = 32,   /* an extraction failed: search all tasks */
    UVA__WORD_SHIFT = 8
};

/* From this number on, credits count as unbounded. */
#define UVA__CREDITS_MAX ((uint64_t)1 << 48)

/* Requests n more. Returns the flags before; with DEAD the request is late.
 * Thread: any. */
static inline uint64_t uva__demand_ask(struct uva__word *word, int64_t n)
{
    uint64_t before;

    if (n < 1)
        before = uva__word_or(word, UVA__WORD_BAD);
    else if ((uint64_t)n >= UVA__CREDITS_MAX)
        before = uva__word_or(word, UVA__WORD_UNBOUNDED);
    else
        before = uva__word_add(word, (uint64_t)n << UVA__WORD_SHIFT);
    if ((before >> UVA__WORD_SHIFT) + (uint64_t)(n > 0 ? n : 0) >=
        UVA__CREDITS_MAX)
        uva__word_or(word, UVA__WORD_UNBOUNDED);
    return before;
}

/* Cancels. Returns the flags before. Thread: any. */
static inline uint64_t uva__demand_cancel(struct uva__word *word)
{
    return uva__word_or(word, UVA__WORD_CANCEL);
}

/* Takes the requests since the last call: clears credits, BAD and UNBOUNDED.
 * Thread: loop. */
static inline uint64_t uva__demand_take(struct uva__word *word)
{
    const uint64_t seen = uva__word_peek(word);

    if (seen >> UVA__WORD_SHIFT ||
        (seen & (UVA__WORD_BAD | UVA__WORD_UNBOUNDED)))
        return uva__word_and(word, UVA__WORD_CANCEL | UVA__WORD_DEAD |
                                       UVA__WORD_FAILED);
    return seen;
}

/* Notes that an extraction failed, after its slot states so and before the
 * producer is posted. Thread: the one that claimed it. And whether one failed
 * since the last call. Thread: loop. */
static inline void uva__demand_note_failed(struct uva__word *word)
{
    uva__word_or(word, UVA__WORD_FAILED);
}

static inline bool uva__demand_take_failed(struct uva__word *word)
{
    if (!(uva__word_peek(word) & UVA__WORD_FAILED))
        return false;
    uva__word_and(word, ~(uint64_t)UVA__WORD_FAILED);
    return true;
}

#endif
