/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of data that may not be discarded on the loop thread, as foreign code
 * discards it and may block. A runtime has one, which extra threads work off:
 * one at first, and one more each time that items have waited for
 * UVA__LIMIT_DISCARD_MS. The items of one owner are run one after the other, in
 * the order in which they were added: an item that hangs holds up one thread,
 * and no other owner. */
#ifndef UVA_STREAM_DISCARD_QUEUE_H
#define UVA_STREAM_DISCARD_QUEUE_H

#include "base/list.h"
#include "loop/rt.h"

/* An item: a member of the discarded object. */
struct uva__discard {
    struct uva__link link;
    const void *owner; /* only compared: the stream that the item is of */
    /* discards it; the memory of the item may be gone when this returns */
    void (*run)(struct uva__discard *item);
};

/* Makes the runtime's queue, unless it exists. 0 or ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__discard_ensure(struct uva__rt *rt);

/* Adds `item`, after uva__discard_ensure() has succeeded. Its `run` is called
 * on an extra thread; once the worker threads were released, on this one.
 * Thread: any. */
void uva__discard_add(struct uva__rt *rt, struct uva__discard *item);

#endif
