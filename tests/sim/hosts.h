/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes of a simulated schedule, hosted in all four ways, each by a
 * fiber that runs its loop. */
#ifndef SIM_HOSTS_H
#define SIM_HOSTS_H

#include <stdbool.h>

#include "uvarrow/runtime.h"

enum { HOSTS = 3 };

/* Starts a new schedule. `varied`: some runtimes check every hop, or limit how
 * many sources are open. */
void hosts_begin(bool varied);

/* No close is shorter than usual: for peers that break rules, and can do so no
 * more after it; for calls that are slow, and are not to be given up; and for
 * jobs without a thread, which get one after 10 ms. */
void hosts_be_patient(void);

/* Sets a function to call on the loop's fiber when a runtime has closed. */
void hosts_on_closed(void (*fn)(void *ctx), void *ctx);

/* Opens a runtime in some way; returns NULL if that fails, as it may without
 * memory or threads. `workers` may be NULL. */
struct uva_runtime *hosts_open(struct uva_workers *workers);

/* Opens a runtime as the only user of a loop, and calls `begin` on that loop's
 * fiber before it runs. The loop ends when no stream keeps it alive, and runs
 * once more to close the runtime. */
struct uva_runtime *hosts_open_alone(struct uva_workers *workers,
                                     void (*begin)(struct uva_runtime *rt));

/* Has a thread of `workers` exit after `idle_ms` without a job, and so many of
 * a lane written off at one time. */
void hosts_limit_workers(struct uva_workers *workers, int32_t idle_ms,
                         int32_t stuck_threads);

/* Gives the blocking lane so many threads more while it stands. */
void hosts_spare_workers(struct uva_workers *workers, int32_t threads);

/* Returns whether the runtime limits how many of its sources are open; NULL:
 * whether one does. */
bool hosts_limit_sources(const struct uva_runtime *runtime);

/* Returns whether some runtime checks every hop. */
bool hosts_are_checked(void);

/* Begins to close a runtime; calls after the first have no effect. */
void hosts_close(struct uva_runtime *runtime, int64_t grace_ms);

/* Returns whether a close of the runtime may take tasks back when its grace
 * ends. */
bool hosts_may_revoke(const struct uva_runtime *runtime);

/* Around a call that is lawful until the runtime is closed: false if a close
 * has begun, so that the call must not be made. A close waits for these calls.
 */
bool hosts_enter(const struct uva_runtime *runtime);
void hosts_leave(const struct uva_runtime *runtime);

/* Gives the permits for the sources of the runtime, between these two calls;
 * NULL: there is no limit, no memory, or a close has begun. */
struct uva_permits *hosts_permits(const struct uva_runtime *runtime);

/* Counts a call of one of the runtime's sources that begins (1) or has returned
 * (-1): a close waits for it as long as its limit. */
void hosts_count_call(const struct uva_runtime *runtime, int change);

/* Begins to drain a runtime, unless it is closing; may be called again. */
void hosts_drain(struct uva_runtime *runtime, int64_t deadline_ms);

/* After the schedule: checks that each runtime that promised its last call has
 * made it. */
void hosts_check(void);

/* Closes all runtimes without grace, while no other fiber runs. */
void hosts_force_close(void);

/* Returns whether the caller is the loop of a runtime that is not closing. */
bool hosts_on_loop(void);

/* Returns how many are closed. */
int hosts_closed(void);

/* Closes the open ones, and waits until all are closed. `patient`: perhaps only
 * after their streams have ended. */
void hosts_end(bool patient);

#endif
