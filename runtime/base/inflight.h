/* SPDX-License-Identifier: Apache-2.0 */
/* An in-flight counter with a closed bit in one atomic, so that exactly one
 * caller sees "closed and drained". */
#ifndef UVA_BASE_INFLIGHT_H
#define UVA_BASE_INFLIGHT_H

#include "base/atomic.h"

/* All zeroes is open and empty. */
struct uva__inflight {
    struct uva__atomic64 word; /* count << 1 | closed */
};

/* Counts the caller in, unless the counter is closed. Thread: any. */
static inline bool uva__inflight_enter(struct uva__inflight *inflight)
{
    uint64_t word = uva__atomic64_load(&inflight->word);

    do
        if (word & 1)
            return false;
    while (!uva__atomic64_cas(&inflight->word, &word, word + 2));
    return true;
}

/* Counts the caller in, unless the counter is closed and drained: as long as
 * other callers are counted, they keep the resource alive. Thread: any. */
static inline bool uva__inflight_join(struct uva__inflight *inflight)
{
    uint64_t word = uva__atomic64_load(&inflight->word);

    do
        if (word == 1)
            return false;
    while (!uva__atomic64_cas(&inflight->word, &word, word + 2));
    return true;
}

/* The counter after a leave or a close. */
enum uva__inflight_left {
    UVA__INFLIGHT_BUSY, /* other callers are counted, or it was closed before */
    UVA__INFLIGHT_IDLE, /* the count is 0, and it is open */
    UVA__INFLIGHT_DRAINED /* closed and drained; returned to exactly one caller
                           */
};

/* Counts the caller out. Thread: any that was counted in. */
static inline enum uva__inflight_left
uva__inflight_leave(struct uva__inflight *inflight)
{
    const uint64_t before = uva__atomic64_sub(&inflight->word, 2);

    if (before == 3)
        return UVA__INFLIGHT_DRAINED;
    return before == 2 ? UVA__INFLIGHT_IDLE : UVA__INFLIGHT_BUSY;
}

/* Closes it; only the first call has an effect. Thread: any. */
static inline enum uva__inflight_left
uva__inflight_close(struct uva__inflight *inflight)
{
    return uva__atomic64_or(&inflight->word, 1) == 0 ? UVA__INFLIGHT_DRAINED
                                                     : UVA__INFLIGHT_BUSY;
}

/* Whether it is closed, for a caller that has just changed another atomic,
 * which the closing thread reads after it has closed: of the two threads, at
 * least one sees the other's change (see atomic.h). Thread: any. */
static inline bool uva__inflight_is_closed(struct uva__inflight *inflight)
{
    return (uva__atomic64_or(&inflight->word, 0) & 1) != 0;
}

/* The number of callers that are counted. Thread: any. */
static inline int64_t uva__inflight_count(const struct uva__inflight *inflight)
{
    return (int64_t)(uva__atomic64_load(&inflight->word) >> 1);
}

/* Whether it is open and the count is 0. Thread: any. */
static inline bool uva__inflight_is_idle(const struct uva__inflight *inflight)
{
    return uva__atomic64_load(&inflight->word) == 0;
}

/* Whether it is closed and drained. Thread: any. */
static inline bool
uva__inflight_is_drained(const struct uva__inflight *inflight)
{
    return uva__atomic64_load(&inflight->word) == 1;
}

#endif
