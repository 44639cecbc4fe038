/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a runtime, counted on any thread. */
#ifndef UVA_UV_COUNTS_H
#define UVA_UV_COUNTS_H

#include "base/atomic.h"

/* Counts for uva_runtime_get_stats(). */
struct uva__counts {
    struct uva__word streams_open;
    struct uva__word streams_held;
    struct uva__word tasks_held;
    struct uva__word calls_stuck;
    struct uva__word peer_breaches;
    struct uva__word late_calls;
    struct uva__word hold_max_ns;
    struct uva__word turns;
};

#endif
