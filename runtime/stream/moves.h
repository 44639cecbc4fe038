/* SPDX-License-Identifier: Apache-2.0 */
/* What a producer does to its handler, once core/producer_state has decided it.
 * All of it on the loop thread. */
#ifndef UVA_STREAM_MOVES_H
#define UVA_STREAM_MOVES_H

#include "stream/producer.h"

/* Makes `move`, which the rules have just decided. */
void uva__moves_make(struct uva__producer *p, enum uva__producer_move move);

/* Tells the feed, once, that nothing of it is told any more. */
void uva__moves_stop_feed(struct uva__producer *p);

#endif
