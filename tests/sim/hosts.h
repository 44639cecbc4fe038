/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes of a simulated schedule, hosted in all four ways, each by a
 * fiber that runs its loop. */
#ifndef SIM_HOSTS_H
#define SIM_HOSTS_H

#include <stdbool.h>

#include "uvarrow/runtime.h"

enum { HOSTS = 3 };

/* Begins anew. `checks`: some runtimes have a check on every hop. */
void hosts_begin(bool checks);

/* Has `fn` called on the loop's fiber when a runtime has gone. */
void hosts_say_gone(void (*fn)(void *ctx), void *ctx);

/* Opens a runtime in some way; NULL if that fails, as it may without memory or
 * threads. `workers` may be NULL. */
struct uva_runtime *hosts_open(struct uva_workers *workers);

/* Opens a runtime as the one guest of a loop that nothing else keeps alive, and
 * calls `begin` on that loop's fiber before it runs. That is left when no
 * stream keeps it, and run once more to close. */
struct uva_runtime *hosts_open_alone(struct uva_workers *workers,
                                     void (*begin)(struct uva_runtime *rt));

/* Whether one has a check on every hop. */
bool hosts_are_checked(void);

/* Begins to close a runtime, once; later calls do nothing. */
void hosts_close(struct uva_runtime *runtime, int64_t grace_ms);

/* Closes all of them without grace, while nothing else goes on. */
void hosts_hurry(void);

/* Whether the caller is the loop of a runtime that nobody closes. */
bool hosts_on_loop(void);

/* How many are closed. */
int hosts_closed(void);

/* Closes those that are still open, and waits until all are gone. `patient`:
 * perhaps only when their streams have come to their end. */
void hosts_end(bool patient);

#endif
