/* SPDX-License-Identifier: Apache-2.0 */
/* The one clock of the library. A simulator puts its own time in its place. */
#ifndef UVA_BASE_CLOCK_H
#define UVA_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since some moment in the past, on a clock that never goes back
 * and that setting the date does not move. Thread: any. */
uint64_t uva__clock_ns(void);

#endif
