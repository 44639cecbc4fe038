/* SPDX-License-Identifier: Apache-2.0 */
/* The producer object that the consumer of a checked stream sees. */
#ifndef UVA_CHECK_CHECKED_PRODUCER_H
#define UVA_CHECK_CHECKED_PRODUCER_H

#include "check/checked_stream.h"

/* Fills the object as far as it can be before the producer is known.
 * Thread: any one. */
void uva__checked_producer_init(struct uva__checked *c);

/* Takes over what the producer (borrowed; not NULL) says of itself as on_schema
 * begins, and adds what is wrong with it. Thread: the first callback. */
void uva__checked_producer_adopt(struct uva__checked *c,
                                 struct ArrowAsyncProducer *real,
                                 struct uva__findings *seen);

/* Looks whether it is still the same; and, if it is known to be alive, as it
 * was. From the terminal callback on it may be gone (G-09). Thread: a later
 * callback. */
void uva__checked_producer_compare(struct uva__checked *c,
                                   struct ArrowAsyncProducer *real, bool alive,
                                   struct uva__findings *seen);

/* Makes the calls that came too early, now that they can be made. Thread: the
 * first callback. */
void uva__checked_producer_catch_up(struct uva__checked *c);

#endif
