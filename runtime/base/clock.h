/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of the library. The simulator in tests/sim replaces clock.c. */
#ifndef UVA_BASE_CLOCK_H
#define UVA_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since some moment in the past, on a clock that never goes back
 * and that setting the date does not move. Thread: any. */
uint64_t uva__clock_ns(void);

/* Nanoseconds of CPU time that the calling thread has used. A system call,
 * unlike uva__clock_ns(). Thread: any. */
uint64_t uva__clock_thread_cpu_ns(void);

#endif
