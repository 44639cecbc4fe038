/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of a pusher.
 *
 * Happy path:  push -> (no room: wait -> woken) -> absorbed -> taken -> the
 * next absorb counts it no more: room. A push that does not wait goes in in any
 * case, and learns whether the window is full then.
 *
 * Failures:    a push, and then the array is where it was: pusher_push releases
 *              it.
 *
 * On close:    shut makes all pushes return EPIPE. A queue that was not started
 *              is not shut when its runtime closes, so pushes that wait in it
 *              check for that every POLL_MS. */
#include "source/push_queue.h"

#include <errno.h>

#include "base/clock.h"
#include "exec/lane.h"
#include "stream/slots.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

/* Between two checks whether the runtime is open. Not a limit: the push goes on
 * waiting. It bounds how long a push may block after its runtime has closed. */
enum { POLL_MS = 100 };

static const int64_t NS_PER_MS = 1000000;

static struct uva__task *task_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva__task, link);
}

/* ---- pushing ------------------------------------------------------------ */

/* A push in progress. */
struct push {
    struct uva__list slot; /* owns: with the size of the batch */
    int64_t timeout_ms;    /* as given by the caller */
    uint64_t until_ns; /* the deadline, once it has waited; 0: none so far */
    bool admitted;     /* there was room: it comes before later pushes */
    bool first;        /* the loop has to be woken */
};

/* While the budget of the runtime is full, the inbox takes one at a time. */
static bool queue_has_room_locked(const struct uva__push_queue *q)
{
    const int64_t count = q->locked.count;

    return count < q->window.batches && q->locked.bytes < q->window.bytes &&
           (count == 0 || !uva__budget_is_full(q->rt));
}

/* Whether a push may go in: with room, and behind the pushes that wait. */
static bool queue_admits_locked(const struct uva__push_queue *q, bool admitted)
{
    return queue_has_room_locked(q) && (q->locked.waiting == 0 || admitted);
}

/* Moves the array into the inbox. EAGAIN: the push has to wait first. */
static int push_enter_locked(struct uva__push_queue *q, struct push *push,
                             struct ArrowDeviceArray *array)
{
    struct uva__task *task = task_of(push->slot.head);
    const int64_t left = INT64_MAX - q->locked.bytes;

    if (q->locked.shut || uva__rt_is_closed(q->rt))
        return EPIPE;
    if (push->timeout_ms != 0 && !queue_admits_locked(q, push->admitted))
        return EAGAIN;
    task->measured = task->info.bytes <= left;
    if (!task->measured)
        task->info.bytes = left;
    uva_array_move(array, &task->array);
    q->locked.count++;
    q->locked.bytes += task->info.bytes;
    push->first = uva__inbox_put(&q->inbox, task);
    return 0;
}

/* Returns for how many milliseconds the push may still wait; 0: none, negative:
 * for ever. */
static int64_t push_limit(struct push *push)
{
    uint64_t now;

    if (push->timeout_ms == 0 || push->timeout_ms > INT64_MAX / 2 / NS_PER_MS)
        return push->timeout_ms == 0 ? 0 : -1;
    now = uva__clock_ns();
    if (push->until_ns == 0)
        push->until_ns = now + (uint64_t)(push->timeout_ms * NS_PER_MS);
    if (now >= push->until_ns)
        return 0;
    return ((int64_t)(push->until_ns - now) + NS_PER_MS - 1) / NS_PER_MS;
}

/* Waits until it is woken, perhaps spuriously. False when its time is up. */
static bool push_wait_locked(struct uva__push_queue *q, struct push *push)
{
    const uint64_t admissions = q->locked.admissions;
    const uint32_t seen = uva__futex_now(&q->admitted);
    int64_t limit_ms = push_limit(push);

    if (limit_ms == 0)
        return false;
    if (!q->locked.running && (limit_ms < 0 || limit_ms > POLL_MS))
        limit_ms = POLL_MS;
    q->locked.waiting++;
    uva__lock_drop(&q->lock);
    uva__lane_wait_begin();
    (void)uva__futex_wait(&q->admitted, seen, limit_ms);
    uva__lane_wait_end();
    uva__lock_take(&q->lock);
    push->admitted = q->locked.admissions != admissions;
    if (!push->admitted)
        q->locked.waiting--;
    return true;
}

/* After EAGAIN the array is in the inbox, which is full. */
static int push_admit(struct uva__push_queue *q, struct push *push,
                      struct ArrowDeviceArray *array)
{
    int code;

    uva__lock_take(&q->lock);
    while ((code = push_enter_locked(q, push, array)) == EAGAIN) {
        if (!push_wait_locked(q, push)) {
            code = ETIMEDOUT;
            break;
        }
    }
    if (code == 0 && push->timeout_ms == 0 && !queue_admits_locked(q, false)) {
        q->locked.room_wanted = true;
        code = EAGAIN;
    }
    uva__lock_drop(&q->lock);
    return code;
}

/* Gives a slot with a copy of `metadata`; a block without keys is the same as
 * no block. */
static int push_prepare(struct uva__rt *rt, const char *metadata,
                        struct uva__list *slot)
{
    size_t size = 0;

    if (metadata != NULL && uva_metadata_size(metadata, &size) != 0)
        return EINVAL;
    if (!uva__slots_fetch_tasks(rt, slot, 1))
        return ENOMEM;
    task_of(slot->head)->array.array.release = NULL;
    if (uva__task_take_metadata(task_of(slot->head), &rt->allocator,
                                size > sizeof(int32_t) ? metadata : NULL) == 0)
        return 0;
    uva__slots_return_tasks(rt, slot);
    return ENOMEM;
}

int uva__push_queue_push(struct uva__push_queue *q,
                         struct ArrowDeviceArray *array, int64_t bytes,
                         const char *metadata, int64_t timeout_ms, bool *first)
{
    struct push push = {.timeout_ms = timeout_ms};
    int code = push_prepare(q->rt, metadata, &push.slot);

    if (code != 0)
        return code;
    task_of(push.slot.head)->info.bytes = bytes;
    code = push_admit(q, &push, array);
    if (code != 0 && code != EAGAIN)
        uva__slots_discard_tasks(q->rt, &push.slot);
    *first = push.first;
    return code;
}

/* ---- the loop ----------------------------------------------------------- */

void uva__push_queue_start(struct uva__push_queue *q)
{
    uva__lock_take(&q->lock);
    q->locked.running = true;
    uva__lock_drop(&q->lock);
}

/* Admits all pushes that wait, once the inbox has run down and the budget lets
 * it take one in. Returns whether there are any. */
static bool queue_admit_locked(struct uva__push_queue *q)
{
    const bool some = q->locked.waiting > 0;

    if (q->inbox.ready.count > q->window.refill ||
        q->inbox.ready.bytes > q->window.bytes / 2 || !queue_has_room_locked(q))
        return false;
    if (q->locked.room_wanted)
        q->room_due = true;
    q->locked.room_wanted = false;
    q->locked.waiting = 0;
    q->locked.admissions++;
    return some;
}

void uva__push_queue_absorb(struct uva__push_queue *q)
{
    bool some;

    uva__lock_take(&q->lock);
    (void)uva__inbox_absorb(&q->inbox);
    q->locked.count = q->inbox.ready.count;
    q->locked.bytes = q->inbox.ready.bytes;
    some = queue_admit_locked(q);
    uva__lock_drop(&q->lock);
    if (some)
        uva__futex_raise(&q->admitted);
}

/* Another thread may have used the room up: then the report is still due. */
bool uva__push_queue_has_room(struct uva__push_queue *q)
{
    bool room;

    if (!q->room_due)
        return false;
    q->room_due = false;
    uva__lock_take(&q->lock);
    room = queue_has_room_locked(q);
    q->locked.room_wanted = q->locked.room_wanted || !room;
    uva__lock_drop(&q->lock);
    return room;
}

void uva__push_queue_shut(struct uva__push_queue *q)
{
    uva__lock_take(&q->lock);
    (void)uva__inbox_absorb(&q->inbox);
    q->locked.shut = true;
    q->locked.waiting = 0;
    q->locked.admissions++;
    uva__lock_drop(&q->lock);
    uva__futex_raise(&q->admitted);
    uva__slots_discard_tasks(q->rt, &q->inbox.ready.tasks);
    q->inbox.ready = (struct uva__kept){0};
}
