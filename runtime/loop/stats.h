/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a runtime, counted on any thread. */
#ifndef UVA_LOOP_STATS_H
#define UVA_LOOP_STATS_H

#include "base/atomic.h"

/* Counts for uva_runtime_get_stats(). */
struct uva__stats {
    struct uva__atomic64 streams_held;
    struct uva__atomic64 tasks_held;
    struct uva__atomic64 calls_stuck;
    struct uva__atomic64 peer_breaches;
    struct uva__atomic64 late_calls;
    struct uva__atomic64 hold_max_ns;
    struct uva__atomic64 hold_max_cpu_ns;
    struct uva__atomic64 turns;
    struct uva__atomic64 memory_held;   /* by windows; by the loop alone */
    struct uva__atomic64 memory_excess; /* the most beyond the limit so far */
};

#endif
