/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for a producer: each callback is checked as it begins, given the
 * earlier ones. Makes no foreign call. */
#ifndef UVA_TCK_PRODUCER_RULES_H
#define UVA_TCK_PRODUCER_RULES_H

#include "tck/recording_consumer.h"

/* Records the fields of the handler. Thread: any. */
void uva__producer_rules_init(struct uva__recording_consumer *consumer);

/* A callback begins: `letter` as in the trace, `code` for an error. _leave ends
 * it, perhaps with a refusal. Thread: any. */
void uva__producer_rules_enter(struct uva__recording_consumer *consumer,
                               const struct ArrowAsyncDeviceStreamHandler *self,
                               char letter, int code);
void uva__producer_rules_leave(struct uva__recording_consumer *consumer,
                               bool refused);

/* Called when the producer object is first seen. Thread: any. */
void uva__producer_rules_set_producer(struct uva__recording_consumer *consumer,
                                      struct ArrowAsyncProducer *producer);

/* Metadata came with a callback. `clause` covers this kind of callback. Thread:
 * any. */
void uva__producer_rules_tag(struct uva__recording_consumer *consumer,
                             const char *metadata, const char *clause);
void uva__producer_rules_error(struct uva__recording_consumer *consumer,
                               int code, const char *message);

/* A call into the producer begins, with argument `n`; returns a number to pass
 * to _back when the call returns. Negative: the stream has ended, and the call
 * must not be made; extractions are always allowed. Thread: any. */
int uva__producer_rules_call(struct uva__recording_consumer *consumer,
                             enum uva__recording_consumer_call what, int64_t n);
void uva__producer_rules_back(struct uva__recording_consumer *consumer,
                              int slot);

/* Returns whether no other thread is in a request or cancel; `ctx` is a
 * recording consumer. For waits. Thread: any. */
bool uva__producer_rules_is_idle(void *ctx);

/* An extraction returned `code`. Thread: any. */
void uva__producer_rules_extracted(struct uva__recording_consumer *consumer,
                                   int code);

/* Another thread has one call more (1) or less (-1) to make. Thread: any. */
void uva__producer_rules_count_job(struct uva__recording_consumer *consumer,
                                   int more);

#endif
