/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of our handlers: how they keep an error that they receive,
 * and how they read a release before the end. */
#ifndef UVA_STREAM_HANDLER_BASE_H
#define UVA_STREAM_HANDLER_BASE_H

#include "stream/producer.h"

/* For on_error: keeps the error in `failure`, unless it holds one. `driver` is
 * our producer that drives the handler; it knows more of a vendor's error than
 * the arguments can carry. Thread: loop. */
void uva__handler_base_keep_error(struct uva__failure *failure,
                                  const struct uva__producer *driver, int code,
                                  const char *message, const char *metadata);

/* For release: marks the handler as released. Thread: the producer's. */
static inline void
uva__handler_base_mark_released(struct ArrowAsyncDeviceStreamHandler *handler)
{
    handler->release = NULL;
    handler->producer = NULL;
}

/* For release before an end or an error: fills in `error`. Returns its code.
 * Thread: any. Clauses: ER-13. */
int uva__handler_base_ended_silently(struct uva_error *error);

/* Whether a failure is that error. It may have come through on_error, which
 * carries a code and a text: a producer may report the same code for another
 * reason, so the text decides. Thread: any. */
bool uva__handler_base_has_ended_silently(const struct uva__failure *failure);

#endif
