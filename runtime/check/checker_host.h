/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a function on another thread while this one waits, and reads the clock:
 * the only two uses of threads in a checked stream, in one file, so that a
 * simulator can replace it. */
#ifndef UVA_CHECK_CHECKER_HOST_H
#define UVA_CHECK_CHECKER_HOST_H

#include <stdbool.h>
#include <stdint.h>

/* Runs `fn` on a new thread and waits for it; on this thread if no thread can
 * be created. Thread: any. */
void uva__checker_host_run(void (*fn)(void *arg), void *arg);

/* Returns nanoseconds of a monotonic clock: exact with `fine`, otherwise to
 * some ms and much cheaper. Thread: any. */
int64_t uva__checker_host_clock_ns(bool fine);

#endif
