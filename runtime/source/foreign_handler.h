/* SPDX-License-Identifier: Apache-2.0 */
/* The handler that a foreign producer calls, on any thread, in any order, and
 * perhaps against the rules. */
#ifndef UVA_SOURCE_FOREIGN_HANDLER_H
#define UVA_SOURCE_FOREIGN_HANDLER_H

#include "source/foreign_state.h"

/* Fills in foreign->handler, before it is given to the producer. Thread: any.
 */
void uva__foreign_handler_init(struct uva__foreign *foreign);

#endif
