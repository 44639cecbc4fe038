/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that were given up, as nothing waits for them any more, and threads that
 * are written off because they do not return from such a job: they do not count
 * against the cap of their lane, so that another thread takes their place.
 * Threads themselves are exec/pool.c. */
#ifndef UVA_EXEC_WRITE_OFF_H
#define UVA_EXEC_WRITE_OFF_H

#include "exec/pool.h"

/* Notifies a queue of something new. Thread: any. */
void uva__write_off_report_locked(struct uva__jobs *jobs, enum uva__news news);

/* Notifies every queue with jobs that wait in the lane to look for threads
 * again later. Thread: any. */
void uva__write_off_retry_locked(struct uva_workers *workers, int lane);

/* The thread of a lane that runs `job`, or NULL. Thread: any. */
struct uva__worker *
uva__write_off_find_locked(const struct uva__pool_class *pool_class,
                           const struct uva_job *job);

/* Gives up the job of `worker`; no effect if it was given up before. Thread:
 * any. */
void uva__write_off_begin_locked(struct uva__worker *worker);

/* The job of `worker` has ended: its thread counts again. Thread: that of
 * `worker`. */
void uva__write_off_end_locked(struct uva__worker *worker);

/* For a lane at its cap, in which jobs wait: writes off the thread that was
 * given up first, if it has had time to return, and returns true. If it has
 * not, notifies the queues to look for threads again later. Thread: any. */
bool uva__write_off_next_locked(struct uva_workers *workers, int lane);

#endif
