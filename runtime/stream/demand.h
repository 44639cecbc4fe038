/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a handler to its producer, from any thread, in one atomic:
 * the number of batches requested, and flags. The thread that changes it posts
 * the producer; the dispatcher absorbs it. */
#ifndef UVA_STREAM_DEMAND_H
#define UVA_STREAM_DEMAND_H

#include "base/atomic.h"

/* The flags; the number of batches is in the bits above them. */
enum {
    UVA__DEMAND_CANCEL = 1,    /* the handler cancelled */
    UVA__DEMAND_BAD = 2,       /* it requested fewer than one */
    UVA__DEMAND_UNBOUNDED = 4, /* it requested more than can be counted */
    UVA__DEMAND_DEAD = 8,      /* its release was entered */
    UVA__DEMAND_ASLEEP = 16,   /* the object is in quarantine */
    UVA__DEMAND_FAILED = 32,   /* an extraction failed; it stays set */
    UVA__DEMAND_SHIFT = 8
};

/* From this number on, requests count as unbounded. */
#define UVA__DEMAND_MAX ((uint64_t)1 << 48)

/* Requests n more batches. Returns the flags before; with DEAD the request is
 * late. Thread: any. */
static inline uint64_t uva__demand_request(struct uva__atomic64 *word,
                                           int64_t n)
{
    uint64_t before;

    if (n < 1)
        before = uva__atomic64_or(word, UVA__DEMAND_BAD);
    else if ((uint64_t)n >= UVA__DEMAND_MAX)
        before = uva__atomic64_or(word, UVA__DEMAND_UNBOUNDED);
    else
        before = uva__atomic64_add(word, (uint64_t)n << UVA__DEMAND_SHIFT);
    if ((before >> UVA__DEMAND_SHIFT) + (uint64_t)(n > 0 ? n : 0) >=
        UVA__DEMAND_MAX)
        uva__atomic64_or(word, UVA__DEMAND_UNBOUNDED);
    return before;
}

/* Cancels. Returns the flags before. Thread: any. */
static inline uint64_t uva__demand_cancel(struct uva__atomic64 *word)
{
    return uva__atomic64_or(word, UVA__DEMAND_CANCEL);
}

/* Takes the requests since the last call: clears the number, BAD and UNBOUNDED.
 * Thread: loop. */
static inline uint64_t uva__demand_take(struct uva__atomic64 *word)
{
    const uint64_t seen = uva__atomic64_peek(word);

    if (seen >> UVA__DEMAND_SHIFT ||
        (seen & (UVA__DEMAND_BAD | UVA__DEMAND_UNBOUNDED)))
        return uva__atomic64_and(word, UVA__DEMAND_CANCEL | UVA__DEMAND_DEAD |
                                           UVA__DEMAND_FAILED);
    return seen;
}

/* Notes that an extraction failed, after its slot is FAILED and before the
 * extraction returns. Thread: the claimer. */
static inline void uva__demand_note_failed(struct uva__atomic64 *word)
{
    uva__atomic64_or(word, UVA__DEMAND_FAILED);
}

#endif
