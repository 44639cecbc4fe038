/* SPDX-License-Identifier: Apache-2.0 */
/* The handler that a foreign producer calls, on any thread, in any order, and
 * perhaps against the rules. */
#ifndef UVA_ADAPTERS_PEER_SIDE_H
#define UVA_ADAPTERS_PEER_SIDE_H

#include "source/foreign_state.h"

/* Fills in inlet->handler, which was not given to the producer so far.
 * Thread: any. */
void uva__peer_side_init(struct uva__inlet *inlet);

#endif
