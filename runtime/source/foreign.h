/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign producer, as its source (source/from_async.c) uses it: calls of
 * its methods, and what the loop collects from it.
 *
 * After a stop the object is an orphan: it discards what the producer still
 * sends, on the producer's thread, and is freed after the producer's release.
 */
#ifndef UVA_SOURCE_FOREIGN_H
#define UVA_SOURCE_FOREIGN_H

#include "source/foreign_state.h"

/* Initialises the handler; `source` and `options` are filled in. The source
 * holds the only reference. Thread: any. */
void uva__foreign_init(struct uva__foreign *foreign);

/* Notes that `taken` pending tasks were handed on, and gives the events since
 * the last call.
 * Returns whether the requester is to be submitted, and in `cancel` whether the
 * canceller is. Thread: loop. */
bool uva__foreign_poll(struct uva__foreign *foreign, int64_t taken,
                       struct uva__foreign_events *events, bool *cancel);

/* Wants no more batches; appends to `queued` the tasks that were queued.
 * Returns whether the canceller is to be submitted, and in `interrupt` whether
 * the interrupter is. Thread: loop. */
bool uva__foreign_stop(struct uva__foreign *foreign, int64_t taken,
                       struct uva__list *queued, bool *interrupt);

/* Notes a loss that ends the stream. Thread: any that holds a reference. */
void uva__foreign_fault(struct uva__foreign *foreign, int code);

/* Returns whether start is to be called: not after a stop, and then the
 * producer is done. Thread: an extra thread. */
bool uva__foreign_may_start(struct uva__foreign *foreign);

/* Notes what start returned. Thread: an extra thread. */
void uva__foreign_started(struct uva__foreign *foreign, int code,
                          const struct uva_error *error);

/* Calls request until a callback can request more. Thread: an extra thread. */
void uva__foreign_request(struct uva__foreign *foreign);

/* Calls cancel, if that may still be called. Thread: an extra thread. */
void uva__foreign_cancel(struct uva__foreign *foreign);

/* Calls interrupt until no call that it is for is running, after a stop.
 * Thread: an extra thread. */
void uva__foreign_interrupt(struct uva__foreign *foreign);

#endif
