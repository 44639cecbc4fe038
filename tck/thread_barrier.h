/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that call the same function at the same time. */
#ifndef UVA_TCK_THREAD_BARRIER_H
#define UVA_TCK_THREAD_BARRIER_H

#include "tck/case_run.h"

/* Calls `fn` on `threads` new threads, which start together, and waits until
 * all have returned. A call that never returns fails the case. Thread: any. */
void uva__thread_barrier_run(struct uva__case_run *run, int threads,
                             void (*fn)(void *), void *ctx);

#endif
