/* SPDX-License-Identifier: Apache-2.0 */
/* An executor supplied by the program: fibers that run any number of the
 * library's jobs. */
#ifndef SIM_EXECUTOR_H
#define SIM_EXECUTOR_H

#include <stdbool.h>

#include "uvarrow/runtime.h"

/* Starts a new schedule. `refuses`: it refuses some jobs, which the library
 * then runs on a separate thread; without a thread, or memory for one, they may
 * wait for ever. */
void executor_begin(bool refuses);

/* Returns the executor; its fibers stay until the end. */
struct uva_executor executor_table(void);

/* Ends the fibers once their jobs are done. Jobs that still arrive, from calls
 * that were abandoned, get new fibers. */
void executor_end(void);

#endif
