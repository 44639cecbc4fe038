/* SPDX-License-Identifier: Apache-2.0 */
/* The time limits of a producer, which uva_stream_timeout() sets. They are part
 * of the producer, as its limit of batches is: it alone knows whether a batch
 * is wanted that its source has not given, and a stream without limits pays no
 * costs. */
#ifndef UVA_STREAM_DEADLINES_H
#define UVA_STREAM_DEADLINES_H

#include "stream/producer.h"

/* The limits of one producer. */
struct uva__deadlines;

/* Sets the limits of a producer, or shortens its present ones. 0 or ENOMEM.
 * Thread: builder. */
UVA_MUST_CHECK int uva__deadlines_add(struct uva__producer *producer,
                                      const struct uva_timeout *limits);

/* Sets how long the calls of the producer's source may take in all; the source
 * measures that. 0 or ENOMEM. Thread: builder. */
UVA_MUST_CHECK int uva__deadlines_add_busy(struct uva__producer *producer,
                                           int64_t busy_ms);

/* The producer begins. Thread: loop. */
void uva__deadlines_begin(struct uva__deadlines *deadlines);

/* The producer has done its work for now: starts the time of a wait, or ends
 * it. Sets `failure` if a limit has passed. Returns whether the producer has to
 * run again, after the wake-ups that are queued. Thread: loop. */
UVA_MUST_CHECK bool uva__deadlines_check(struct uva__deadlines *deadlines,
                                         struct uva__failure *failure);

/* No limit passes any more. Thread: loop. */
void uva__deadlines_stop(struct uva__deadlines *deadlines);

/* Thread: any. */
void uva__deadlines_free(struct uva__deadlines *deadlines);

#endif
