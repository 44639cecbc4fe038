/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a lane: how they are found for a job, start, sleep, take turns
 * at the jobs, leave and are joined. Who owns them all is uv/workers.c. */
#ifndef UVA_UV_CREW_H
#define UVA_UV_CREW_H

#include <stdbool.h>

#include "uvarrow/base.h"

struct uva__worker;
struct uva_workers;

/* Drops the lock, and sees to it that some thread comes for each job that waits
 * in `lane`: if too few are on their way, one is woken, or started if none
 * sleeps and the cap allows for another. Thread: any. */
void uva__crew_drop_locked(struct uva_workers *workers, int lane);

/* Counts a thread that the caller will start at once. Thread: any. */
void uva__crew_reserve_locked(struct uva_workers *workers, int lane);

/* Starts the thread that was reserved. 0; ENOMEM; EAGAIN if the system gives
 * none: then jobs wait for the threads there are. Thread: any. */
int uva__crew_start(struct uva_workers *workers, int lane);

/* Wakes all sleepers of a lane to look whether they may leave. Thread: any. */
void uva__crew_rouse_locked(struct uva_workers *workers, int lane);

/* The worker that the caller is, or NULL. Thread: any. */
struct uva__worker *uva__crew_here(void);

#endif
