/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the protocol checker between the parties of a simulated schedule. A
 * breach of a "must" by either party ends the schedule, unless it is excused.
 */
#ifndef SIM_MONITOR_H
#define SIM_MONITOR_H

#include <stdbool.h>

#include "uvarrow/check.h"

/* Starts a new schedule; `hostile`: a peer breaks rules, so the other parties
 * are not checked. */
void monitor_begin(bool hostile);

/* The log of runtimes: breaches found by their own checks end the schedule,
 * too. The log does not show which check it was, so behaviour tolerated in one
 * is tolerated in all. */
struct uva_log monitor_log(void);
void monitor_excuse(enum uva_party party);

/* Sometimes puts a check in front of `handler`; otherwise returns it. Takes it.
 * `excused`: the party with tolerated deviations; 0: no party. */
struct ArrowAsyncDeviceStreamHandler *
monitor_handler(struct ArrowAsyncDeviceStreamHandler *handler,
                enum uva_party excused);

/* Sometimes puts a check around a blocking stream, in place. */
void monitor_blocking(struct ArrowDeviceArrayStream *stream);

#endif
