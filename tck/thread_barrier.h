/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that call the same function at the same time. */
#ifndef UVA_TCK_CROWD_H
#define UVA_TCK_CROWD_H

#include "tck/case_run.h"

/* Calls `fn` on `threads` new threads, which start together, and waits until
 * all have returned. A call that never returns fails the case. Thread: any. */
void uva__crowd_run(struct uva__trial *trial, int threads, void (*fn)(void *),
                    void *ctx);

#endif
