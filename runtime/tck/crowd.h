/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that do the same thing at the same time. */
#ifndef UVA_TCK_CROWD_H
#define UVA_TCK_CROWD_H

#include "tck/trial.h"

/* Calls `fn` on `threads` new threads, which begin together, and waits until
 * all are back. A call that never comes back fails the case. Thread: any. */
void uva__crowd_run(struct uva__trial *trial, int threads, void (*fn)(void *),
                    void *ctx);

#endif
