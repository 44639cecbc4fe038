/* SPDX-License-Identifier: Apache-2.0 */
/* A program's own executor: fibers that run what the library hands in, as many
 * as it takes. */
#ifndef SIM_EXECUTOR_H
#define SIM_EXECUTOR_H

#include <stdbool.h>

#include "uvarrow/runtime.h"

/* Begins anew. `refuses`: some jobs, which the library then runs on a thread of
 * its own; without one, or memory for it, they may wait for ever. */
void executor_begin(bool refuses);

/* The executor; once its fibers are there, they stay until the end. */
struct uva_executor executor_table(void);

/* Lets the fibers go, once they have run what they were given. For what still
 * comes, as who was left behind goes home, there are new ones. */
void executor_end(void);

#endif
