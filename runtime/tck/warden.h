/* SPDX-License-Identifier: Apache-2.0 */
/* What a feeder thinks of its consumer: when it may be called, and whether the
 * handler is as it should be. Calls nothing foreign. */
#ifndef UVA_TCK_WARDEN_H
#define UVA_TCK_WARDEN_H

#include "tck/feeder.h"

/* The handler is there, with all its functions; puts the checker before it if
 * the trial is checked, and the producer into it. Thread: the case's. */
void uva__warden_meet(struct uva__feeder *feeder,
                      struct ArrowAsyncDeviceStreamHandler *handler);

/* A callback begins, by its letter (S T N E R); it is back with `code`.
 * Thread: any, one at a time. */
void uva__warden_enter(struct uva__feeder *feeder, char letter);
void uva__warden_leave(struct uva__feeder *feeder, char letter, int code);

/* A call of the producer object; a request tells whether it was made inside a
 * callback. Both end with _back. Thread: any. */
bool uva__warden_request(struct uva__feeder *feeder,
                         const struct ArrowAsyncProducer *self, int64_t n);
void uva__warden_cancel(struct uva__feeder *feeder,
                        const struct ArrowAsyncProducer *self);
void uva__warden_back(struct uva__feeder *feeder);

/* Waits for a request and spends it; `now`: does not wait, and says false if
 * there is none. Thread: the feeder's. */
bool uva__warden_may_offer(struct uva__feeder *feeder, bool now);

/* Listens for a while: fails the case if anything is requested. Thread: the
 * feeder's. */
void uva__warden_listen(struct uva__feeder *feeder);

/* For waits; `ctx` is a feeder. */
bool uva__warden_is_cancelled(void *ctx);

#endif
