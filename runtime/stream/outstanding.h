/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a producer that were offered, or are being discarded, and are
 * not over. Their slots are taken back from the oldest on. A task that is held
 * for long holds up others: so all are searched, but only once as many events
 * as half of them have passed since the last search. However many are held, the
 * searches take a few steps for each task, and at most half of the slots wait.
 *
 * Everything here runs on the loop thread. */
#ifndef UVA_STREAM_OUTSTANDING_H
#define UVA_STREAM_OUTSTANDING_H

#include <assert.h>

#include "stream/failure.h"
#include "stream/task.h"

struct uva__outstanding {
    struct uva__failure *failure; /* borrows: of the producer; gets the error of
                                     the first extraction that fails */
    struct uva__list tasks;       /* in order */
    int32_t count;                /* of tasks */
    int32_t dropped;              /* of these, never offered */
    int32_t age;                  /* events since the oldest one went, or all
                                     were searched */
    bool watched;      /* the thread that settles a task posts the producer */
    bool reuses_slots; /* no token of an extracted task is used any more */
};

/* Takes slots back that are over: from the oldest on; wherever they stand. */
void uva__outstanding_reap(struct uva__outstanding *out);
void uva__outstanding_reap_all(struct uva__outstanding *out);

/* The former, after an event: a task was kept, or some were settled; and the
 * latter if enough events have passed. No task is left if all are over. */
void uva__outstanding_reap_after(struct uva__outstanding *out);

/* Keeps a task that was offered. */
void uva__outstanding_keep(struct uva__outstanding *out,
                           struct uva__task *task);

/* Keeps a task that was not offered, until its data is discarded. */
void uva__outstanding_keep_dropped(struct uva__outstanding *out,
                                   struct uva__task *task);

/* From now on the thread that settles a task posts `wakeup`, of which each task
 * counts a reference. */
void uva__outstanding_watch(struct uva__outstanding *out,
                            struct uva__wakeup *wakeup);

/* Takes back all unclaimed tasks by `take_back`, and counts the tasks that a
 * foreign handler had. Clauses: G-16. */
int64_t uva__outstanding_take_back(struct uva__outstanding *out,
                                   bool (*take_back)(struct uva__task *task));

#endif
