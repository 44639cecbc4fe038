/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the tasks, the producers and the handlers of one runtime:
 * type-stable slots that are attached to the rt, so that a late call finds a
 * slot of the same kind. Handlers are the objects that foreign producers call.
 */
#ifndef UVA_STREAM_SLOTS_H
#define UVA_STREAM_SLOTS_H

#include "base/slab.h"
#include "loop/rt.h"
#include "stream/task.h"

struct uva__producer;

/* The first member of an object with a handler for foreign producers. */
struct uva__handler_slot {
    struct uva__link in_quarantine; /* or in the free list */
    uint64_t retired_ns;            /* when it was put back */
};

/* Makes the slots of the runtime, unless they exist. 0 or ENOMEM.
 * Thread: any. */
UVA_MUST_CHECK int uva__slots_ensure(struct uva__rt *rt);

/* Gives a free slot for a task; NULL without memory. Thread: loop. */
struct uva__task *uva__slots_take_task(struct uva__rt *rt);

/* Gives 1 to `count` free slots, by their `link`, to the empty list `out`;
 * false without memory. Thread: any. */
UVA_MUST_CHECK bool uva__slots_fetch_tasks(struct uva__rt *rt,
                                           struct uva__list *out, size_t count);

/* Clears a slot that is over, or was not offered, and takes it back. It `rests`
 * if a token may still lead to it. Slots that need no rest are taken again
 * first, the latest before the others, as they are still in the cache.
 * Thread: loop. */
void uva__slots_put_task(struct uva__rt *rt, struct uva__task *task,
                         bool rests);

/* Takes `count` cleared slots back, in a list of their links, which is empty
 * afterwards. Thread: loop. */
void uva__slots_put_tasks(struct uva__rt *rt, struct uva__list *tasks,
                          size_t count, bool rests);

/* Takes back cleared slots, a list of their links, that have held batches and
 * were never offered: they need no quarantine. The list is empty afterwards.
 * Thread: any. */
void uva__slots_return_tasks(struct uva__rt *rt, struct uva__list *tasks);

/* The same for slots that are not cleared: discards a batch that is in one.
 * Thread: any. */
void uva__slots_discard_tasks(struct uva__rt *rt, struct uva__list *tasks);

/* Gives an empty slot with a copy of `metadata` (uva__task_take_metadata());
 * NULL without memory. The slot is of the loop thread, or, on another thread,
 * from its list of `empty` slots, which is filled up a few at a time.
 * Thread: loop, if `empty` is NULL; otherwise the owner of the list. */
struct uva__task *uva__slots_new_task(struct uva__rt *rt,
                                      struct uva__list *empty,
                                      const char *metadata);

/* Takes such a slot back, which was not offered. Thread: as above. */
void uva__slots_end_task(struct uva__rt *rt, struct uva__list *empty,
                         struct uva__task *task);

/* Called after slots were put back: gives the surplus of quarantined slots to
 * other threads, and all others once there are many. So few slots circulate,
 * and these stay in the cache. Thread: loop. */
void uva__slots_trim_tasks(struct uva__rt *rt);

/* Gives the memory of a producer, an old one's or cleared, with a cleared
 * `loop`; NULL without memory. Thread: any. */
struct uva__producer *uva__slots_take_producer(struct uva__rt *rt);

/* Takes it back into a long quarantine: a consumer may still call the old
 * producer. No late call reaches its `loop`, so that is reused at once.
 * Thread: any. */
void uva__slots_put_producer(struct uva__rt *rt,
                             struct uva__producer *producer);

/* As for producers, for an object with a handler, always of the same `size`: a
 * foreign producer may still call the old one. Thread: any, after
 * uva__slots_ensure() has succeeded. */
struct uva__handler_slot *uva__slots_take_handler(struct uva__rt *rt,
                                                  size_t size);
void uva__slots_put_handler(struct uva__rt *rt,
                            struct uva__handler_slot *handler);

#endif
