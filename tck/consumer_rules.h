/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for a consumer: when it may call the producer, and how its handler
 * must look. Makes no foreign call. */
#ifndef UVA_TCK_CONSUMER_RULES_H
#define UVA_TCK_CONSUMER_RULES_H

#include "tck/scripted_producer.h"

/* The consumer has made its handler: checks that all functions are set, puts
 * the checker in front of it if the run is checked, and sets its producer.
 * Thread: the case's. */
void uva__consumer_rules_set_handler(
    struct uva__scripted_producer *producer,
    struct ArrowAsyncDeviceStreamHandler *handler);

/* A callback begins, by its letter (S T N E R); _leave records its return with
 * `code`. Thread: any, one at a time. */
void uva__consumer_rules_enter(struct uva__scripted_producer *producer,
                               char letter);
void uva__consumer_rules_leave(struct uva__scripted_producer *producer,
                               char letter, int code);

/* A call of the producer object begins; _request returns whether it was made
 * inside a callback, _cancel whether on_error is to be called inside it. _back
 * ends both; _count_cancel counts a cancel, for waits. Thread: any. */
bool uva__consumer_rules_request(struct uva__scripted_producer *producer,
                                 const struct ArrowAsyncProducer *self,
                                 int64_t n);
bool uva__consumer_rules_cancel(struct uva__scripted_producer *producer,
                                const struct ArrowAsyncProducer *self);
void uva__consumer_rules_count_cancel(struct uva__scripted_producer *producer);
void uva__consumer_rules_back(struct uva__scripted_producer *producer);

/* Waits for a request and takes one from the demand; with `now`, does not wait
 * and returns false if there is no demand. Thread: the scripted producer's. */
bool uva__consumer_rules_may_offer(struct uva__scripted_producer *producer,
                                   bool now);

/* Waits for a request, a refusal or a cancel; returns whether the stream goes
 * on. Thread: the scripted producer's. */
bool uva__consumer_rules_goes_on(struct uva__scripted_producer *producer);

/* Waits for a while, and fails the case if anything is requested. Thread: the
 * scripted producer's. */
void uva__consumer_rules_listen(struct uva__scripted_producer *producer);

/* Has the next cancel call on_error, unless it comes in a callback. The second
 * function waits for a cancel and ends that; it returns whether a cancel has
 * called on_error, which has then returned. Thread: the scripted producer's. */
void uva__consumer_rules_fail_cancel(struct uva__scripted_producer *producer);
bool uva__consumer_rules_has_failed_cancel(
    struct uva__scripted_producer *producer);

/* For waits; `ctx` is a struct uva__scripted_producer. */
bool uva__consumer_rules_is_cancelled(void *ctx);

#endif
