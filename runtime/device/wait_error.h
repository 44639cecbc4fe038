/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of a wait where no call failed, and the event did not: each function
 * fills `error`, and returns its code. */
#ifndef UVA_DEVICE_WAIT_ERROR_H
#define UVA_DEVICE_WAIT_ERROR_H

#include "device/event_wait.h"

/* The wait takes longer than `timeout_ms`: ETIMEDOUT, with the query call and
 * the last code of it. Thread: any that holds a reference. */
int uva__wait_error_timeout(const struct uva_watch *watch, int64_t timeout_ms,
                            struct uva_error *error);

/* The vendor's callback has reported a failure, which a query of the event does
 * not show. Thread: the device thread, after `notified`. */
int uva__wait_error_notified(const struct uva_watch *watch,
                             struct uva_error *error);

/* The client has cancelled the wait: ECANCELED. Thread: any. */
int uva__wait_error_cancelled(struct uva_error *error);

#endif
