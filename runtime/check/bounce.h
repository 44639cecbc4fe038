/* SPDX-License-Identifier: Apache-2.0 */
/* Runs something on another thread while this one waits, and looks at the
 * clock. */
#ifndef UVA_CHECK_BOUNCE_H
#define UVA_CHECK_BOUNCE_H

#include <stdbool.h>
#include <stdint.h>

/* Runs `fn` on a new thread and waits for it; where there is none to be had,
 * right here. Thread: any. */
void uva__bounce_run(void (*fn)(void *arg), void *arg);

/* Nanoseconds of a clock that never goes back: exact with `fine`, otherwise to
 * some ms and much cheaper. Thread: any. */
int64_t uva__bounce_clock_ns(bool fine);

#endif
