/* SPDX-License-Identifier: Apache-2.0 */
/* Fake threads: the pthread functions that the library calls, implemented with
 * fibers. The linker puts them in place of the real ones (--wrap). */
#ifndef SIM_FAKE_THREADS_H
#define SIM_FAKE_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* Starts a new schedule; the `fail_at`-th creation fails, from 1; 0: no
 * failure. */
void fake_threads_begin(int64_t fail_at);

/* Return whether a creation is set to fail, and whether it was requested. */
bool fake_threads_may_fail(void);
bool fake_threads_have_failed(void);

/* Ends the schedule as failed if a thread was not joined or detached. */
void fake_threads_check(void);

#endif
