/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol checker, put between a subject and the suite: what it reports of
 * the subject is a breach of the case. */
#ifndef UVA_TCK_CHECKER_H
#define UVA_TCK_CHECKER_H

#include "tck/trial.h"

/* The handler to hand out in place of `handler`: itself, unless the trial is
 * checked. Thread: any. */
struct ArrowAsyncDeviceStreamHandler *
uva__checker_front(struct uva__trial *trial,
                   struct ArrowAsyncDeviceStreamHandler *handler);

#endif
