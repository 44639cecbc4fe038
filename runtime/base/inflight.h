/* SPDX-License-Identifier: Apache-2.0 */
/* An in-flight counter with a closed bit in one atomic, so that exactly one
 * caller sees "closed and drained". */
#ifndef UVA_CORE_GATE_H
#define UVA_CORE_GATE_H

#include "base/atomic.h"

/* All zeroes is open and empty. */
struct uva__gate {
    struct uva__word word; /* count << 1 | closed */
};

/* Counts the caller in, unless the counter is closed. Thread: any. */
static inline bool uva__gate_enter(struct uva__gate *gate)
{
    uint64_t word = uva__word_load(&gate->word);

    do
        if (word & 1)
            return false;
    while (!uva__word_cas(&gate->word, &word, word + 2));
    return true;
}

/* Counts the caller in, unless the counter is closed and drained: as long as
 * other callers are counted, they keep the resource alive. Thread: any. */
static inline bool uva__gate_join(struct uva__gate *gate)
{
    uint64_t word = uva__word_load(&gate->word);

    do
        if (word == 1)
            return false;
    while (!uva__word_cas(&gate->word, &word, word + 2));
    return true;
}

/* The counter after a leave or a shut. */
enum uva__gate_left {
    UVA__GATE_OTHERS, /* other callers are counted, or it was closed before */
    UVA__GATE_EMPTY,  /* the count is 0, and it is open */
    UVA__GATE_OVER    /* closed and drained; returned to exactly one caller */
};

/* Counts the caller out. Thread: any that was counted in. */
static inline enum uva__gate_left uva__gate_leave(struct uva__gate *gate)
{
    const uint64_t before = uva__word_sub(&gate->word, 2);

    if (before == 3)
        return UVA__GATE_OVER;
    return before == 2 ? UVA__GATE_EMPTY : UVA__GATE_OTHERS;
}

/* Closes it; only the first call has an effect. Thread: any. */
static inline enum uva__gate_left uva__gate_shut(struct uva__gate *gate)
{
    return uva__word_or(&gate->word, 1) == 0 ? UVA__GATE_OVER
                                             : UVA__GATE_OTHERS;
}

/* Whether it is closed, for a caller that has just changed another atomic,
 * which the closing thread reads after it has closed: of the two threads, at
 * least one sees the other's change (see sync.h). Thread: any. */
static inline bool uva__gate_is_shut(struct uva__gate *gate)
{
    return (uva__word_or(&gate->word, 0) & 1) != 0;
}

/* Whether it is open and the count is 0. Thread: any. */
static inline bool uva__gate_is_empty(const struct uva__gate *gate)
{
    return uva__word_load(&gate->word) == 0;
}

/* Whether it is closed and drained. Thread: any. */
static inline bool uva__gate_is_over(const struct uva__gate *gate)
{
    return uva__word_load(&gate->word) == 1;
}

#endif
