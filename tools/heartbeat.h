/* SPDX-License-Identifier: Apache-2.0 */
/* A timer set to fire every millisecond, which measures how late it fires: the
 * delay that any other user of the loop would see. */
#ifndef UVA_TOOLS_HEARTBEAT_H
#define UVA_TOOLS_HEARTBEAT_H

#include <stdint.h>
#include <uv.h>

/* Number of classes of the histogram of delays. */
#define UVA__HEARTBEAT_CLASSES 512

/* A heartbeat and its measurements. */
struct uva__heartbeat {
    uv_timer_t timer;                        /* on the loop to measure */
    uint64_t last_ns;                        /* time of the last beat */
    uint64_t max_ns;                         /* largest delay, exact */
    uint64_t beats;                          /* number of beats */
    uint64_t counts[UVA__HEARTBEAT_CLASSES]; /* histogram of delays */
};

/* Starts to beat on `loop`, every millisecond. Keeps the loop alive until
 * uva__heartbeat_stop(). Thread: loop. */
void uva__heartbeat_start(struct uva__heartbeat *heart, uv_loop_t *loop);

/* Stops: counts the time since the last beat and closes the timer; the loop
 * must still run for that. A second call has no effect. Thread: loop. */
void uva__heartbeat_stop(struct uva__heartbeat *heart);

/* Returns the delay that a `share` (0 to 1) of the beats did not exceed, to
 * within an eighth. Thread: loop. */
uint64_t uva__heartbeat_quantile_ns(const struct uva__heartbeat *heart,
                                    double share);

#endif
