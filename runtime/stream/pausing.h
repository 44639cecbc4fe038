/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a consumer with callbacks wants batches: one word, which any thread
 * sets, and the loop reads.
 *
 * A consumer that begins to write in on_batch, and returns EAGAIN, may be
 * resumed by the thread that writes before it has returned. So that this
 * resume is not lost, the word remembers it from one on_batch to the next.
 *
 * Clauses: AP-25. */
#ifndef UVA_STREAM_PAUSING_H
#define UVA_STREAM_PAUSING_H

#include "base/atomic.h"

enum uva__pausing {
    UVA__PAUSING_NOT,    /* batches are delivered */
    UVA__PAUSING_PAUSED, /* no batch is */
    UVA__PAUSING_RESUMED /* batches are, and a resume has come, perhaps during
                            an on_batch that returns EAGAIN later */
};

/* Notes a pause. Returns whether the loop has to know. Thread: any. */
static inline bool uva__pausing_pause(struct uva__atomic64 *word)
{
    return uva__atomic64_exchange(word, UVA__PAUSING_PAUSED) !=
           UVA__PAUSING_PAUSED;
}

/* Notes a resume. Returns the state before: the loop has to know if that was
 * PAUSED. Thread: any. */
static inline enum uva__pausing uva__pausing_resume(struct uva__atomic64 *word)
{
    return (enum uva__pausing)uva__atomic64_exchange(word,
                                                     UVA__PAUSING_RESUMED);
}

/* Whether no batch is to be offered. Thread: loop. */
static inline bool uva__pausing_is_on(const struct uva__atomic64 *word)
{
    return uva__atomic64_peek(word) == UVA__PAUSING_PAUSED;
}

/* on_batch is about to be called: a resume before that has no effect.
 * Thread: loop. */
static inline void uva__pausing_begin(struct uva__atomic64 *word)
{
    uint64_t resumed = UVA__PAUSING_RESUMED;

    if (uva__atomic64_peek(word) == UVA__PAUSING_RESUMED)
        (void)uva__atomic64_cas(word, &resumed, UVA__PAUSING_NOT);
}

/* on_batch has returned EAGAIN: as if a pause had come before it.
 * Thread: loop. */
static inline void uva__pausing_note_full(struct uva__atomic64 *word)
{
    uint64_t undecided = UVA__PAUSING_NOT;

    (void)uva__atomic64_cas(word, &undecided, UVA__PAUSING_PAUSED);
}

#endif
