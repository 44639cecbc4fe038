/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks that a producer has handed out and that are not settled, as far as
 * the loop has looked. All of it on the loop thread. */
#ifndef UVA_STREAM_OFFERED_H
#define UVA_STREAM_OFFERED_H

#include "stream/producer.h"

/* Keeps a task that was offered, or is being swept, until it is over. */
void uva__offered_keep(struct uva__producer *p, struct uva__task *task);

/* Keeps one that was never offered, while what it promised is discarded. */
void uva__offered_drop(struct uva__producer *p, struct uva__task *task);

/* How many others have that may yet fail. */
int64_t uva__offered_unsettled(const struct uva__producer *p);

/* Gives a slot that is over back, for others to use. */
void uva__offered_put(struct uva__producer *p, struct uva__task *task);

/* Gives those back that are over, from the oldest on; or all of them, wherever
 * they stand. Why an extraction failed is learnt here. */
void uva__offered_reap(struct uva__producer *p);
void uva__offered_reap_all(struct uva__producer *p);

/* From now on whoever settles a task tells the producer. */
void uva__offered_watch(struct uva__producer *p);

/* Takes back what nobody has claimed (G-16): to be reused; or for good, as the
 * loop lets go of what is watched. */
void uva__offered_reclaim(struct uva__producer *p);
void uva__offered_lapse(struct uva__producer *p);

#endif
