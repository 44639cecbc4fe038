/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the bytes in the windows of streams, against the limit of a runtime.
 */
#include "stream/budget.h"

#include <assert.h>
#include <errno.h>

#include "arrow/layout.h"
#include "arrow/share.h"
#include "base/memory.h"
#include "stream/window.h"

struct uva__account {
    struct uva__rt *rt;          /* counts */
    struct uva__atomic64 refs;   /* shares */
    int64_t batches;             /* held by all windows; loop only */
    struct uva__wakeup *waiting; /* borrows: of the source, while it waits for
                                    room, or NULL; loop only */
    int64_t wanted;              /* bytes that it waits for; loop only */
    int64_t front;               /* the largest of its windows; loop only */
    const struct uva__share
        *front_of; /* the window that has it; compared only */
};

/* ---- life --------------------------------------------------------------- */

int uva__share_open(struct uva__share *share, struct uva__rt *rt)
{
    struct uva__account *account;

    if (rt->memory_bytes == 0 || share->account != NULL)
        return 0;
    account = uva__memory_new(&rt->allocator, sizeof(*account));
    if (account == NULL)
        return ENOMEM;
    account->rt = uva__rt_acquire(rt);
    uva__atomic64_store(&account->refs, 1);
    share->account = account;
    return 0;
}

void uva__share_join(struct uva__share *share, const struct uva__share *other)
{
    if (other->account == NULL)
        return;
    uva__atomic64_add(&other->account->refs, 1);
    share->account = other->account;
}

void uva__share_close(struct uva__share *share)
{
    struct uva__account *account = share->account;
    struct uva__rt *rt;

    share->account = NULL;
    if (account == NULL || uva__atomic64_sub(&account->refs, 1) != 1)
        return;
    rt = account->rt;
    uva__memory_free(&rt->allocator, account, sizeof(*account));
    uva__rt_release(rt);
}

/* ---- counting ----------------------------------------------------------- */

static int64_t budget_free(const struct uva__rt *rt)
{
    return rt->memory_bytes -
           (int64_t)uva__atomic64_peek(&rt->stats.memory_held);
}

/* The loop alone writes these counters. */
static void budget_add(struct uva__rt *rt, int64_t bytes)
{
    struct uva__atomic64 *held = &rt->stats.memory_held;
    struct uva__atomic64 *excess = &rt->stats.memory_excess;

    uva__atomic64_store(held, uva__atomic64_peek(held) + (uint64_t)bytes);
    if (-budget_free(rt) > (int64_t)uva__atomic64_peek(excess))
        uva__atomic64_store(excess, (uint64_t)-budget_free(rt));
}

/* The bytes that the stream may still use. */
static int64_t account_free(const struct uva__account *account)
{
    return budget_free(account->rt) + account->front;
}

/* Whether the stream may take in a batch of `bytes` (0 or less: not known). */
static bool account_admits(const struct uva__account *account, int64_t bytes)
{
    return account->batches == 0 ||
           (bytes > 0 && account_free(account) >= bytes);
}

static void account_set_front(struct uva__account *account,
                              const struct uva__share *of, int64_t bytes)
{
    budget_add(account->rt, bytes - account->front);
    account->front = bytes;
    account->front_of = of;
}

void uva__share_hold(struct uva__share *share, int64_t batches, int64_t bytes)
{
    struct uva__account *account = share->account;
    struct uva__wakeup *waiting;

    if (account == NULL)
        return;
    account->batches += batches - share->batches;
    budget_add(account->rt, bytes - share->bytes);
    share->batches = batches;
    share->bytes = bytes;
    if (account->batches == 0 && account->front > 0)
        account_set_front(account, NULL, 0);
    waiting = account->waiting;
    if (waiting == NULL || !account_admits(account, account->wanted))
        return;
    account->waiting = NULL;
    uva__rt_wake(account->rt, waiting);
}

/* Measures the memory that a batch keeps alive, unless that is known: of the
 * batch, or of the parent as a whole. Where the plan of the schema says that a
 * batch has no more than its rows, nothing is added up. */
static void kept_measure(struct uva__share_kept *kept,
                         const struct uva__measure *measure,
                         const struct ArrowDeviceArray *array,
                         const struct uva__batch_info *info)
{
    const int64_t parent = uva__array_share_number(&array->array);
    bool whole = false;

    assert(info->ordinal >= 0);
    if (kept->known != 0 &&
        (kept->known == parent || kept->known == -1 - info->ordinal))
        return;
    if (parent == 0 && uva__plan_is_whole(&measure->plan, array))
        kept->memory = info->bytes;
    else if (uva__layout_memory(&measure->schema, array, &kept->memory,
                                &whole) != 0)
        kept->memory = -1;
    kept->known = whole ? parent : -1 - info->ordinal;
}

/* Where the parent is known as a whole, the rows that the window counts are
 * taken for its own; otherwise the rows before the batch are. */
void uva__share_keep(struct uva__share *share, struct uva__share_kept *kept,
                     const struct uva__measure *measure,
                     const struct ArrowDeviceArray *oldest,
                     const struct uva__batch_info *info)
{
    struct uva__account *account = share->account;
    int64_t front;

    if (account == NULL)
        return;
    kept_measure(kept, measure, oldest, info);
    if (kept->memory < 0)
        return;
    front = uva__window_size(kept->memory) -
            (kept->known > 0 ? share->bytes : info->bytes);
    if (front < 0)
        front = 0;
    if (account->front_of == share || front > account->front)
        account_set_front(account, share, front);
}

/* A part of the free memory, so that no stream takes the whole; at least one
 * batch if that fits, or if the stream holds none. */
int64_t uva__share_room(struct uva__share *share, struct uva__wakeup *wakeup,
                        int64_t room, int64_t largest)
{
    struct uva__account *account = share->account;
    int64_t streams, fits = largest == 0 ? room : 0;

    if (account == NULL || room <= 0)
        return room;
    streams = uva__inflight_count(&account->rt->streams);
    if (largest > 0)
        fits = account_free(account) / (streams > 0 ? streams : 1) / largest;
    if (fits < 1)
        fits = account_admits(account, largest);
    account->waiting = fits < 1 ? wakeup : NULL;
    account->wanted = largest;
    return fits < room ? fits : room;
}

bool uva__share_is_free(const struct uva__share *share)
{
    return share->account == NULL || account_free(share->account) > 0;
}

void uva__share_stop(struct uva__share *share)
{
    if (share->account != NULL)
        share->account->waiting = NULL;
    uva__share_hold(share, 0, 0);
}
