/* SPDX-License-Identifier: Apache-2.0 */
/* The reading thread's half of a ring of tasks: waiting, taking tasks,
 * extracting them. One thread at a time, and never a loop thread. The loop's
 * half is sink/task_ring.c. */
#ifndef UVA_SINK_TASK_RING_READER_H
#define UVA_SINK_TASK_RING_READER_H

#include "sink/task_ring.h"

/* Gives a copy of the schema, when it is known; `out` is released on failure.
 * This and the next two return 0 or a code, which uva__task_ring_reader_text()
 * describes. Thread: reader. */
UVA_MUST_CHECK int
uva__task_ring_reader_schema(struct uva__task_ring *task_ring,
                             struct ArrowSchema *out);

/* Waits for the next batch and gives it; at the end, `out` is cleared, as on
 * failure. Thread: reader. */
UVA_MUST_CHECK int uva__task_ring_reader_next(struct uva__task_ring *task_ring,
                                              struct ArrowDeviceArray *out);

/* Ends the stream, as its reader cannot use a batch. Returns how it ended:
 * `code`, unless it had ended before. Thread: reader. */
int uva__task_ring_reader_refuse(struct uva__task_ring *task_ring, int code,
                                 const char *text);

/* Returns the error text of the last call, or NULL. Borrows, until the next
 * call. Thread: reader. */
const char *uva__task_ring_reader_text(const struct uva__task_ring *task_ring);

#endif
