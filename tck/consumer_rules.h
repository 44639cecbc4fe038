/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for a consumer: when it may call the producer, and what its handler
 * must look like. Calls nothing foreign. */
#ifndef UVA_TCK_WARDEN_H
#define UVA_TCK_WARDEN_H

#include "tck/scripted_producer.h"

/* The consumer has made its handler: checks that all functions are set, puts
 * the checker in front of it if the run is checked, and sets its producer.
 * Thread: the case's. */
void uva__warden_meet(struct uva__feeder *feeder,
                      struct ArrowAsyncDeviceStreamHandler *handler);

/* A callback begins, by its letter (S T N E R); _leave records its return with
 * `code`. Thread: any, one at a time. */
void uva__warden_enter(struct uva__feeder *feeder, char letter);
void uva__warden_leave(struct uva__feeder *feeder, char letter, int code);

/* A call of the producer object begins; _request returns whether it was made
 * inside a callback. _back ends both. Thread: any. */
bool uva__warden_request(struct uva__feeder *feeder,
                         const struct ArrowAsyncProducer *self, int64_t n);
void uva__warden_cancel(struct uva__feeder *feeder,
                        const struct ArrowAsyncProducer *self);
void uva__warden_back(struct uva__feeder *feeder);

/* Waits for a request and takes one from the demand; with `now`, does not wait
 * and returns false if there is no demand. Thread: the scripted producer's. */
bool uva__warden_may_offer(struct uva__feeder *feeder, bool now);

/* Waits for a while, and fails the case if anything is requested. Thread: the
 * scripted producer's. */
void uva__warden_listen(struct uva__feeder *feeder);

/* For waits; `ctx` is a struct uva__feeder. */
bool uva__warden_is_cancelled(void *ctx);

#endif
