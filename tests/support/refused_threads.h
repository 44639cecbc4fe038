/* SPDX-License-Identifier: Apache-2.0 */
/* A system that has no more threads, also for libraries that are loaded. */
#ifndef UVA_SUPPORT_REFUSED_THREADS_H
#define UVA_SUPPORT_REFUSED_THREADS_H

#include <stdbool.h>

/* From now on the system refuses to create threads, with EAGAIN, until the
 * process ends. False: it cannot be made to. */
bool refused_threads_begin(void);

#endif
