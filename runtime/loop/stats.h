/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a runtime, counted on any thread. */
#ifndef UVA_LOOP_STATS_H
#define UVA_LOOP_STATS_H

#include "base/atomic.h"

/* Tasks given to foreign handlers, and how many of these are over. */
struct uva__task_counts {
    struct uva__atomic64 given, over;
};

/* Counts for uva_runtime_get_stats(). */
struct uva__stats {
    struct uva__atomic64 streams_held;
    struct uva__atomic64 tasks_revoked;    /* by the loop thread alone */
    struct uva__task_counts tasks_in_turn; /* by turns alone, which therefore
                                              need no read-modify-write */
    struct uva__atomic64 calls_stuck;
    struct uva__atomic64 peer_breaches;
    struct uva__atomic64 late_calls;
    struct uva__atomic64 hold_max_ns;
    struct uva__atomic64 hold_max_cpu_ns;
    struct uva__atomic64 turns;
    struct uva__atomic64 memory_held;   /* by windows; by the loop alone */
    struct uva__atomic64 memory_excess; /* the most beyond the limit so far */
    char apart[64]; /* apart from counters of extracting threads */
    struct uva__task_counts tasks_elsewhere; /* by all other threads */
};

/* Counts one more; `here`: this is a turn of the runtime. Thread: any. */
static inline void uva__stats_count_task(struct uva__atomic64 *in_turn,
                                         struct uva__atomic64 *elsewhere,
                                         bool here)
{
    if (here)
        uva__atomic64_store(in_turn, uva__atomic64_peek(in_turn) + 1);
    else
        uva__atomic64_add(elsewhere, 1);
}

/* Notes a task that a foreign handler is about to be given, and a task that it
 * has no more. `here` as above. Thread: any. */
static inline void uva__stats_give_task(struct uva__stats *stats, bool here)
{
    uva__stats_count_task(&stats->tasks_in_turn.given,
                          &stats->tasks_elsewhere.given, here);
}

static inline void uva__stats_end_task(struct uva__stats *stats, bool here)
{
    uva__stats_count_task(&stats->tasks_in_turn.over,
                          &stats->tasks_elsewhere.over, here);
}

/* How many tasks foreign handlers have. Ended tasks are read first, so each of
 * them was given before. Thread: any. */
static inline int64_t uva__stats_tasks_held(const struct uva__stats *stats)
{
    const uint64_t over = uva__atomic64_load(&stats->tasks_in_turn.over) +
                          uva__atomic64_load(&stats->tasks_elsewhere.over);

    return (int64_t)(uva__atomic64_load(&stats->tasks_in_turn.given) +
                     uva__atomic64_load(&stats->tasks_elsewhere.given) - over);
}

#endif
