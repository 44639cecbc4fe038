/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol checker between the parties of a simulated schedule: a breach of
 * a "must" by either ends the schedule, but for what is excused. */
#ifndef SIM_OVERSEER_H
#define SIM_OVERSEER_H

#include <stdbool.h>

#include "uvarrow/check.h"

/* Begins anew; `hostile`: somebody breaks rules, so nobody else is judged. */
void overseer_begin(bool hostile);

/* Where runtimes log: what a check of their own has found ends the schedule,
 * too. They do not say whose check it was, so manners that are tolerated in one
 * are so in all. */
struct uva_log overseer_log(void);
void overseer_excuse(enum uva_party party);

/* Puts a check in front of `handler`, now and then; otherwise returns it. Takes
 * it. `excused`: whose breaches are manners that are tolerated; 0: nobody's. */
struct ArrowAsyncDeviceStreamHandler *
overseer_handler(struct ArrowAsyncDeviceStreamHandler *handler,
                 enum uva_party excused);

/* Puts a check around a blocking stream, in place, now and then. */
void overseer_blocking(struct ArrowDeviceArrayStream *stream);

#endif
