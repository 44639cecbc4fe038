/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread this is, and running something on another while this one waits.
 * All that a checked stream knows of threads, so that a simulator can stand in
 * its place. */
#ifndef UVA_CHECK_BOUNCE_H
#define UVA_CHECK_BOUNCE_H

#include <stdbool.h>
#include <stdint.h>

/* A name of the calling thread, never 0. Thread: any. */
uint64_t uva__bounce_self(void);

/* Runs `fn` on a new thread and waits for it; where there is none to be had,
 * right here. Thread: any. */
void uva__bounce_run(void (*fn)(void *arg), void *arg);

/* Nanoseconds of a clock that never goes back: exact with `fine`, otherwise to
 * some ms and much cheaper. Thread: any. */
int64_t uva__bounce_clock_ns(bool fine);

#endif
