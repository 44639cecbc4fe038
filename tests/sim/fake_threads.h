/* SPDX-License-Identifier: Apache-2.0 */
/* Fake threads: pthread's functions that the library calls, on fibers. The
 * program is linked so that they stand in pthread's place (--wrap). */
#ifndef SIM_FAKE_THREADS_H
#define SIM_FAKE_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* Begins anew; the `fail_at`-th creation fails, from 1; 0: none. */
void fake_threads_begin(int64_t fail_at);

/* Whether that one has been asked for. */
bool fake_threads_may_fail(void);
bool fake_threads_have_failed(void);

/* Ends the schedule as failed if a thread was neither joined nor detached. */
void fake_threads_check(void);

#endif
