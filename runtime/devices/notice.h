/* SPDX-License-Identifier: Apache-2.0 */
/* What the client of a watch is told where neither a call nor the event itself
 * has failed: each fills `error`, and gives its code. */
#ifndef UVA_DEVICES_NOTICE_H
#define UVA_DEVICES_NOTICE_H

#include "devices/watch.h"

/* It takes longer than `timeout_ms`: ETIMEDOUT, with the call that asks and
 * what it has said last. Thread: any that holds a count. */
int uva__notice_late(const struct uva_watch *watch, int64_t timeout_ms,
                     struct uva_error *error);

/* Its vendor has called back to say that it has failed, which the event itself
 * does not say. Thread: service, behind `said`. */
int uva__notice_told(const struct uva_watch *watch, struct uva_error *error);

/* Its client wants no more: ECANCELED. Thread: any. */
int uva__notice_cancelled(struct uva_error *error);

#endif
