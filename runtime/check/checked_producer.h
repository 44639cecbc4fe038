/* SPDX-License-Identifier: Apache-2.0 */
/* The producer object that a check gives to the consumer. */
#ifndef UVA_CHECK_CHECKED_PRODUCER_H
#define UVA_CHECK_CHECKED_PRODUCER_H

#include "check/checked_stream.h"

/* Fills the object as far as possible before the producer is known. Thread: any
 * one. */
void uva__checked_producer_init(struct uva__checked *c);

/* Records the fields of the producer (borrowed; not NULL) as on_schema begins,
 * and adds their faults. Thread: the first callback. */
void uva__checked_producer_adopt(struct uva__checked *c,
                                 struct ArrowAsyncProducer *real,
                                 struct uva__findings *seen);

/* Compares the producer with its record: its address; and, if it is known to be
 * `alive`, its fields. From the last callback but release on, it may be freed.
 * Thread: a later callback. */
void uva__checked_producer_compare(struct uva__checked *c,
                                   struct ArrowAsyncProducer *real, bool alive,
                                   struct uva__findings *seen);

/* Makes the calls that came too early, now that the producer is known.
 * Thread: the first callback. */
void uva__checked_producer_catch_up(struct uva__checked *c);

#endif
