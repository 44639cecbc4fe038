/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a task's slot in one atomic: which thread may access it, the
 * generation of its content, and whether the loop watches for its end.
 * stream/task.c defines the content of a slot, and the purpose of a claim. */
#ifndef UVA_STREAM_TASK_STATE_H
#define UVA_STREAM_TASK_STATE_H

#include <errno.h>

#include "base/atomic.h"

/* A slot's state: the low bits of its atomic. The high bits are the generation.
 */
enum uva__task_state {
    UVA__TASK_FREE = 0,   /* in the free list, or being filled */
    UVA__TASK_HELD,       /* offered, and not claimed */
    UVA__TASK_EXTRACTING, /* claimed; the claimer owns all but the state */
    UVA__TASK_DISCARDING, /* revoked; being discarded */
    UVA__TASK_ORPHANED,   /* discarded, as the runtime closed: over, but its
                             memory stays, with a hold on the rt, until it
                             is extracted. Clauses: AT-02. */
    UVA__TASK_DONE,       /* over: the loop may reuse it */
    UVA__TASK_FAILED,     /* over; the loop has not read the error */
    UVA__TASK_REVOKED,    /* over; it was revoked */

    UVA__TASK_STATES = 15,   /* the bits of the above */
    UVA__TASK_COUNTED = 16,  /* with HELD or EXTRACTING: a foreign handler has
                                it, and the statistics count it */
    UVA__TASK_ORPHAN = 32,   /* with DISCARDING: will be ORPHANED */
    UVA__TASK_SPENT = 64,    /* with DISCARDING or ORPHANED: was extracted */
    UVA__TASK_NOTIFY = 128,  /* the settling thread must post the producer */
    UVA__TASK_ALL_BITS = 255 /* state and flags */
};

enum { UVA__TASK_GENERATION_SHIFT = 8 };
#define UVA__TASK_GENERATIONS ((uint64_t)0xffffff)

/* Makes a filled slot claimable, once; gives the generation that a claim must
 * name. `flags`: COUNTED, or 0. Thread: loop. */
static inline uint64_t uva__task_state_offer(struct uva__atomic64 *state,
                                             uint64_t flags)
{
    uint64_t generation =
        uva__atomic64_peek(state) >> UVA__TASK_GENERATION_SHIFT;

    generation = (generation + 1) & UVA__TASK_GENERATIONS;
    uva__atomic64_store(state, generation << UVA__TASK_GENERATION_SHIFT |
                                   UVA__TASK_HELD | flags);
    return generation;
}

/* Marks an unclaimed task as COUNTED; false if it was taken back. Thread: it
 * passes it to its handler next. */
static inline bool uva__task_state_count(struct uva__atomic64 *state,
                                         uint64_t generation)
{
    uint64_t word = uva__atomic64_load(state);

    do
        if ((word & UVA__TASK_STATES) != UVA__TASK_HELD ||
            word >> UVA__TASK_GENERATION_SHIFT != generation)
            return false;
    while (!uva__atomic64_cas(state, &word, word | UVA__TASK_COUNTED));
    return true;
}

/* A claim of a revoked task: returns 0 if the state changed meanwhile and must
 * be read again. */
static inline int uva__task_state_late(struct uva__atomic64 *state,
                                       uint64_t *seen, bool *orphaned)
{
    const uint64_t word = *seen, now = word & UVA__TASK_STATES;

    if (now == UVA__TASK_REVOKED || (word & UVA__TASK_SPENT))
        return ECANCELED;
    if (now != UVA__TASK_DISCARDING && now != UVA__TASK_ORPHANED)
        return EINVAL;
    if (!uva__atomic64_cas(state, seen, word | UVA__TASK_SPENT))
        return 0;
    *orphaned = now == UVA__TASK_ORPHANED;
    return ECANCELED;
}

/* One compare-and-swap elects the single extractor: returns 0 to the winner.
 * EINVAL for a second claim or a stale generation; ECANCELED if the task was
 * revoked, and `*orphaned` if the caller must give up its hold on the rt.
 * Thread: any. */
static inline int uva__task_state_claim(struct uva__atomic64 *state,
                                        uint64_t generation, bool *orphaned)
{
    uint64_t seen = uva__atomic64_load(state);
    int code = 0;

    *orphaned = false;
    while (code == 0) {
        if (seen >> UVA__TASK_GENERATION_SHIFT != generation)
            return EINVAL;
        if ((seen & UVA__TASK_STATES) != UVA__TASK_HELD)
            code = uva__task_state_late(state, &seen, orphaned);
        else if (uva__atomic64_cas(state, &seen, seen + 1))
            return 0;
    }
    return code;
}

/* Ends a claim or a discard: the caller's last access to the slot. True if the
 * task was watched: the caller then posts the producer and releases a reference
 * to it. `alone`: no watch can be set meanwhile. Thread: the claimer. */
static inline bool uva__task_state_settle(struct uva__atomic64 *state,
                                          enum uva__task_state as, bool alone)
{
    const uint64_t word = uva__atomic64_peek(state);
    const uint64_t over = (word & ~(uint64_t)UVA__TASK_ALL_BITS) | (uint64_t)as;

    if (alone && !(word & UVA__TASK_NOTIFY)) {
        uva__atomic64_store(state, over);
        return false;
    }
    return (uva__atomic64_exchange(state, over) & UVA__TASK_NOTIFY) != 0;
}

/* Sets the watch; false if the task is over. Thread: loop. */
static inline bool uva__task_state_notify(struct uva__atomic64 *state)
{
    uint64_t word = uva__atomic64_load(state);

    do
        if ((word & UVA__TASK_STATES) >= UVA__TASK_DONE ||
            (word & UVA__TASK_NOTIFY))
            return (word & UVA__TASK_NOTIFY) != 0;
    while (!uva__atomic64_cas(state, &word, word | UVA__TASK_NOTIFY));
    return true;
}

/* Revokes an unclaimed task. True if the caller must discard it now, and, if it
 * is `*counted`, takes it out of the statistics. `flags`: ORPHAN, or 0.
 * Thread: any. */
static inline bool uva__task_state_take_back(struct uva__atomic64 *state,
                                             uint64_t generation,
                                             uint64_t flags, bool *counted)
{
    const uint64_t kept = ~(uint64_t)UVA__TASK_COUNTED;
    uint64_t word = uva__atomic64_load(state);

    do
        if ((word & UVA__TASK_STATES) != UVA__TASK_HELD ||
            word >> UVA__TASK_GENERATION_SHIFT != generation)
            return false;
    while (!uva__atomic64_cas(
        state, &word,
        ((word & kept) - UVA__TASK_HELD + UVA__TASK_DISCARDING) | flags));
    *counted = (word & UVA__TASK_COUNTED) != 0;
    return true;
}

/* Ends a discard with ORPHANED, if ORPHAN was set and the task was not
 * extracted since; otherwise returns false, and the caller settles it. The
 * hold on the rt was taken before. As for a settle, the caller posts the
 * producer and releases the reference of the watch. Thread: that discarded
 * it. */
static inline bool uva__task_state_orphan(struct uva__atomic64 *state)
{
    const uint64_t kept = ~(uint64_t)UVA__TASK_ALL_BITS;
    uint64_t word = uva__atomic64_load(state);

    while ((word & UVA__TASK_ORPHAN) && !(word & UVA__TASK_SPENT))
        if (uva__atomic64_cas(state, &word, (word & kept) | UVA__TASK_ORPHANED))
            return true;
    return false;
}

#endif
