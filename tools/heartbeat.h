/* SPDX-License-Identifier: Apache-2.0 */
/* A timer that wants to fire every millisecond, and how late it was: what any
 * other user of the loop would have felt. */
#ifndef UVA_TOOLS_HEARTBEAT_H
#define UVA_TOOLS_HEARTBEAT_H

#include <stdint.h>
#include <uv.h>

/* How many classes latenesses are counted in. */
#define UVA__HEARTBEAT_CLASSES 512

/* A heartbeat and what it has seen. */
struct uva__heartbeat {
    uv_timer_t timer; /* on the loop that is listened to */
    uint64_t last_ns; /* when it fired last */
    uint64_t max_ns;  /* the worst lateness, exactly */
    uint64_t beats;   /* times it fired */
    uint64_t counts[UVA__HEARTBEAT_CLASSES]; /* of latenesses, by size */
};

/* Starts to beat on `loop`, every millisecond. Keeps the loop alive until
 * uva__heartbeat_stop(). Thread: loop. */
void uva__heartbeat_start(struct uva__heartbeat *heart, uv_loop_t *loop);

/* Stops: counts what has passed since the last beat and closes the timer, which
 * the loop must still run for. A second call does nothing. Thread: loop. */
void uva__heartbeat_stop(struct uva__heartbeat *heart);

/* The lateness that a `share` (0 to 1) of the beats kept below, to within an
 * eighth. Thread: loop. */
uint64_t uva__heartbeat_quantile_ns(const struct uva__heartbeat *heart,
                                    double share);

#endif
