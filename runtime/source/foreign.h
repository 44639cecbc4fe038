/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign producer, as its source (source/from_async.c) uses it: calls of
 * its methods, and what the loop collects from it.
 *
 * After a stop the object is an orphan: it discards what the producer still
 * sends, on the producer's thread, and is freed after the producer's release.
 */
#ifndef UVA_ADAPTERS_INLET_H
#define UVA_ADAPTERS_INLET_H

#include "source/foreign_state.h"

/* Sets up the handler; `feed` and `how` are filled in. The source holds the
 * only reference. Thread: any. */
void uva__inlet_init(struct uva__inlet *inlet);

/* Notes that `taken` pending tasks were handed on, and gives what is new.
 * Returns whether the requester is to be submitted, and in `cancel` whether the
 * canceller is. Thread: loop. */
bool uva__inlet_look(struct uva__inlet *inlet, int64_t taken,
                     struct uva__inlet_news *news, bool *cancel);

/* Wants no more batches; appends to `rest` what was queued. Returns whether the
 * canceller is to be submitted. Thread: loop. */
bool uva__inlet_stop(struct uva__inlet *inlet, int64_t taken,
                     struct uva__list *rest);

/* Notes a loss that ends the stream. Thread: any that holds a reference. */
void uva__inlet_fault(struct uva__inlet *inlet, int code);

/* Returns whether start is to be called: not after a stop, and then the
 * producer is done. Thread: an extra thread. */
bool uva__inlet_hand_over(struct uva__inlet *inlet);

/* Notes what start returned. Thread: an extra thread. */
void uva__inlet_started(struct uva__inlet *inlet, int code,
                        const struct uva_error *error);

/* Calls request until a callback can go on with that. Thread: an extra thread.
 */
void uva__inlet_request(struct uva__inlet *inlet);

/* Calls cancel, if that may still be called. Thread: an extra thread. */
void uva__inlet_cancel(struct uva__inlet *inlet);

#endif
