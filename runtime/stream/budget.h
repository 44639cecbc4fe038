/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the windows of a runtime may hold together. Each window
 * states its bytes when the loop runs it; a source that asks for batches is
 * given a fair part of the free memory. The batches of one stream have an
 * account, so that each stream may take in one batch while it holds none,
 * however full the budget is. Without a limit there are no accounts, and
 * no bytes are counted.
 *
 * Everything here runs on the loop thread, unless its comment states otherwise.
 */
#ifndef UVA_STREAM_BUDGET_H
#define UVA_STREAM_BUDGET_H

#include "arrow/batch_info.h"
#include "loop/rt.h"
#include "stream/measure.h"
#include "uvarrow/arrow_abi.h"

/* The bytes in the windows of one stream. */
struct uva__account;

/* Batches may keep more alive than their rows: slices of one parent, which
 * lies in memory until the last of them is released. The memory of the oldest
 * batch of a window beyond its counted rows is its *front*. An account counts
 * the largest front of its windows, until they hold no batch: the windows of
 * one stream mostly hold slices of the same parent. For the stream itself the
 * front takes no room, as another slice of that parent adds its rows alone. */

/* The part of one window. All zeroes: without an account. */
struct uva__share {
    struct uva__account *account; /* counts; NULL: not counted */
    int64_t batches;              /* as last stated */
    int64_t bytes;                /* as last stated */
};

/* The facts about the oldest batch. All zeroes: not known. */
struct uva__share_kept {
    int64_t known;  /* of which memory: the number of a parent (arrow/share.h),
                       or of a batch from -1 down; or 0 */
    int64_t memory; /* bytes that it keeps alive; -1: an unknown format */
};

/* Opens an account for a stream of `rt`, if that has a limit and the window has
 * no share so far. 0 or ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__share_open(struct uva__share *share,
                                   struct uva__rt *rt);

/* Gives another window a share of the same account. Thread: any. */
void uva__share_join(struct uva__share *share, const struct uva__share *other);

/* The last use; it may be later than the loop. Thread: any. */
void uva__share_close(struct uva__share *share);

/* States that the window holds, or has asked for, `batches` of `bytes`. */
void uva__share_hold(struct uva__share *share, int64_t batches, int64_t bytes);

/* States the oldest batch of the window, which fits `measure` and is counted as
 * `info` states, after uva__share_hold(). It is looked at once, as is a parent
 * of several batches, if all calls for the window have the same `kept`. */
void uva__share_keep(struct uva__share *share, struct uva__share_kept *kept,
                     const struct uva__measure *measure,
                     const struct ArrowDeviceArray *oldest,
                     const struct uva__batch_info *info);

/* How many of `room` more batches the source may ask for, each of `largest`
 * bytes (negative: not known). If there are no bytes, `wakeup` (borrows, until
 * uva__share_stop()) is posted when there may be some. */
int64_t uva__share_room(struct uva__share *share, struct uva__wakeup *wakeup,
                        int64_t room, int64_t largest);

/* Whether the budget is not full. */
bool uva__share_is_free(const struct uva__share *share);

/* The window of the source is empty, and asks for no more. Its wake-up is not
 * posted after this. */
void uva__share_stop(struct uva__share *share);

/* Whether the budget of a runtime is full. Thread: any. */
static inline bool uva__budget_is_full(const struct uva__rt *rt)
{
    return rt->memory_bytes > 0 &&
           (int64_t)uva__atomic64_peek(&rt->stats.memory_held) >=
               rt->memory_bytes;
}

#endif
