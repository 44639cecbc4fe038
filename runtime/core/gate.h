/* SPDX-License-Identifier: Apache-2.0 */
/* How many are inside, and whether the gate is shut, in one word: so that there
 * is one who leaves last and knows it. */
#ifndef UVA_CORE_GATE_H
#define UVA_CORE_GATE_H

#include "core/sync.h"

/* All zeroes is open and empty. */
struct uva__gate {
    struct uva__word word; /* inside << 1 | shut */
};

/* Goes in, unless the gate is shut. Thread: any. */
static inline bool uva__gate_enter(struct uva__gate *gate)
{
    uint64_t word = uva__word_load(&gate->word);

    do
        if (word & 1)
            return false;
    while (!uva__word_cas(&gate->word, &word, word + 2));
    return true;
}

/* Goes in, unless the gate is shut and nobody is inside any more: what the
 * others hold on to is there yet. Thread: any. */
static inline bool uva__gate_join(struct uva__gate *gate)
{
    uint64_t word = uva__word_load(&gate->word);

    do
        if (word == 1)
            return false;
    while (!uva__word_cas(&gate->word, &word, word + 2));
    return true;
}

/* How a leave, or a shut, has left the gate. */
enum uva__gate_left {
    UVA__GATE_OTHERS, /* others are inside */
    UVA__GATE_EMPTY,  /* nobody is, and it is open */
    UVA__GATE_OVER    /* nobody is, nor will be: told to one caller alone */
};

/* Goes out. Thread: who is inside. */
static inline enum uva__gate_left uva__gate_leave(struct uva__gate *gate)
{
    const uint64_t before = uva__word_sub(&gate->word, 2);

    if (before == 3)
        return UVA__GATE_OVER;
    return before == 2 ? UVA__GATE_EMPTY : UVA__GATE_OTHERS;
}

/* Shuts it; the first time counts. Thread: any. */
static inline enum uva__gate_left uva__gate_shut(struct uva__gate *gate)
{
    return uva__word_or(&gate->word, 1) == 0 ? UVA__GATE_OVER
                                             : UVA__GATE_OTHERS;
}

/* Whether it is shut, for a caller who has just changed another word that is
 * looked at behind the shutting: of the two, one sees the other (see sync.h).
 * Thread: any. */
static inline bool uva__gate_is_shut(struct uva__gate *gate)
{
    return (uva__word_or(&gate->word, 0) & 1) != 0;
}

/* Whether it is open and nobody is inside. Thread: any. */
static inline bool uva__gate_is_empty(const struct uva__gate *gate)
{
    return uva__word_load(&gate->word) == 0;
}

/* Whether nobody is inside, nor will be. Thread: any. */
static inline bool uva__gate_is_over(const struct uva__gate *gate)
{
    return uva__word_load(&gate->word) == 1;
}

#endif
