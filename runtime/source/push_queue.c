/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of a pusher. Pushes hold the lock; the loop takes it once for all
 * batches that have come, not for each of them.
 *
 * Happy path:  push -> (no room: wait -> woken) -> fresh -> absorbed: ready ->
 *              taken -> the next absorb subtracts it: room.
 *
 * Failures:    a push, and then the array is still the caller's.
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

/* ---- batches ------------------------------------------------------------ */

/* Gives a slot with a copy of `metadata`; a block without keys is the same as
 * none. */
static int queue_prepare(struct uva__push_queue *q, const char *metadata,
                         struct uva__list *slot)
{
    size_t size = 0;

    if (metadata != NULL && uva_metadata_size(metadata, &size) != 0)
        return EINVAL;
    if (!uva__slots_fetch_tasks(q->rt, slot, 1))
        return ENOMEM;
    if (uva__task_take_metadata(task_of(slot->head), &q->rt->allocator,
                                size > sizeof(int32_t) ? metadata : NULL) == 0)
        return 0;
    uva__slots_return_tasks(q->rt, slot);
    return ENOMEM;
}

/* Takes slots, with or without a batch. */
static void queue_discard(struct uva__push_queue *q, struct uva__list *slots)
{
    struct uva__link *link = slots->head;

    for (; link != NULL; link = link->next) {
        uva_array_release(&task_of(link)->array);
        uva__task_clear(task_of(link), &q->rt->allocator);
    }
    if (!uva__list_is_empty(slots))
        uva__slots_return_tasks(q->rt, slots);
}

/* ---- pushing: room ------------------------------------------------------ */

/* A push in progress. */
struct queue_push {
    int64_t timeout_ms; /* as given by the caller */
    uint64_t until_ns;  /* the deadline, once it has waited; 0: none so far */
    bool admitted;      /* there was room: it comes before later pushes */
    bool first;         /* the loop has to be woken */
};

/* While the budget of the runtime is full, the queue takes one at a time. */
static bool queue_has_room(const struct uva__push_queue *q)
{
    return q->locked.count < q->window.batches &&
           q->locked.bytes < q->window.bytes &&
           (q->locked.count == 0 || !uva__budget_is_full(q->rt));
}

/* Moves the array into the queue, if there is room for it now. */
static int push_enter_locked(struct uva__push_queue *q, struct queue_push *push,
                             struct uva__list *slot,
                             struct ArrowDeviceArray *array)
{
    struct uva__task *task = task_of(slot->head);
    int64_t *bytes = &task->info.bytes;

    if (q->locked.shut || uva__rt_is_closed(q->rt))
        return EPIPE;
    if (!queue_has_room(q) || (q->locked.waiting > 0 && !push->admitted))
        return EAGAIN;
    if (*bytes > INT64_MAX - q->locked.bytes)
        *bytes = INT64_MAX - q->locked.bytes;
    uva_array_move(array, &task->array);
    push->first = uva__list_is_empty(&q->locked.fresh);
    uva__list_append(&q->locked.fresh, slot);
    q->locked.count++;
    q->locked.bytes += *bytes;
    return 0;
}

/* Returns for how many milliseconds the push may still wait; 0: none, negative:
 * for ever. */
static int64_t push_limit(struct queue_push *push)
{
    uint64_t now;

    if (push->timeout_ms <= 0 || push->timeout_ms > INT64_MAX / 2 / NS_PER_MS)
        return push->timeout_ms <= 0 ? push->timeout_ms : UVA_FOREVER;
    now = uva__clock_ns();
    if (push->until_ns == 0)
        push->until_ns = now + (uint64_t)(push->timeout_ms * NS_PER_MS);
    if (now >= push->until_ns)
        return 0;
    return ((int64_t)(push->until_ns - now) + NS_PER_MS - 1) / NS_PER_MS;
}

/* Waits until it is woken, perhaps spuriously. False when its time is up. */
static bool push_wait_locked(struct uva__push_queue *q, struct queue_push *push)
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

static int push_admit(struct uva__push_queue *q, struct queue_push *push,
                      struct uva__list *slot, struct ArrowDeviceArray *array)
{
    int code;

    uva__lock_take(&q->lock);
    while ((code = push_enter_locked(q, push, slot, array)) == EAGAIN)
        if (!push_wait_locked(q, push))
            break;
    if (code == EAGAIN && push->timeout_ms == 0)
        q->locked.room_wanted = true;
    uva__lock_drop(&q->lock);
    return code == EAGAIN && push->timeout_ms != 0 ? ETIMEDOUT : code;
}

int uva__push_queue_push(struct uva__push_queue *q, struct uva__meter *meter,
                         struct ArrowDeviceArray *array, int64_t bytes,
                         const char *metadata, int64_t timeout_ms)
{
    struct queue_push push = {.timeout_ms = timeout_ms};
    struct uva__list slot = {0};
    int code = queue_prepare(q, metadata, &slot);

    if (code != 0)
        return code;
    task_of(slot.head)->array.array.release = NULL;
    task_of(slot.head)->info.bytes = bytes;
    code = push_admit(q, &push, &slot, array);
    if (code != 0)
        queue_discard(q, &slot);
    else if (push.first)
        uva__meter_wake(meter, q->wakeup);
    return code;
}

/* ---- taking ------------------------------------------------------------- */

void uva__push_queue_start(struct uva__push_queue *q)
{
    uva__lock_take(&q->lock);
    q->locked.running = true;
    uva__lock_drop(&q->lock);
}

/* Admits all pushes that wait, once the queue has run down and the budget lets
 * it take one in. Returns whether any do. */
static bool queue_admit_locked(struct uva__push_queue *q)
{
    bool some = q->locked.waiting > 0;

    if (q->locked.count > q->window.refill ||
        q->locked.bytes > q->window.bytes / 2 || !queue_has_room(q))
        return false;
    if (q->locked.room_wanted)
        q->loop.room_due = true;
    q->locked.room_wanted = false;
    q->locked.waiting = 0;
    q->locked.admissions++;
    return some;
}

int64_t uva__push_queue_absorb(struct uva__push_queue *q,
                               struct uva__source *source)
{
    int64_t ready, bytes;
    bool call;

    uva__lock_take(&q->lock);
    q->locked.count -= q->loop.taken_count;
    q->locked.bytes -= q->loop.taken_bytes;
    uva__list_append(&q->loop.ready, &q->locked.fresh);
    call = queue_admit_locked(q);
    ready = q->locked.count;
    bytes = q->locked.bytes;
    uva__lock_drop(&q->lock);
    uva__source_hold(source, ready, uva__window_size(bytes));
    q->loop.taken_count = q->loop.taken_bytes = 0;
    if (call)
        uva__futex_raise(&q->admitted);
    if (q->loop.room_due)
        uva__rt_wake(q->rt, q->wakeup);
    return ready;
}

struct uva__task *uva__push_queue_take(struct uva__push_queue *q)
{
    struct uva__task *task = task_of(uva__list_pop(&q->loop.ready));

    q->loop.taken_count++;
    q->loop.taken_bytes += task->info.bytes;
    return task;
}

/* Another thread may have used the room up: then the report is still due. */
bool uva__push_queue_has_room(struct uva__push_queue *q)
{
    bool room;

    if (!q->loop.room_due)
        return false;
    q->loop.room_due = false;
    uva__lock_take(&q->lock);
    room = queue_has_room(q);
    q->locked.room_wanted = q->locked.room_wanted || !room;
    uva__lock_drop(&q->lock);
    return room;
}

/* ---- the end ------------------------------------------------------------ */

void uva__push_queue_shut(struct uva__push_queue *q)
{
    struct uva__list left;

    uva__lock_take(&q->lock);
    q->locked.shut = true;
    q->locked.waiting = 0;
    q->locked.admissions++;
    left = q->locked.fresh;
    q->locked.fresh = (struct uva__list){0};
    uva__lock_drop(&q->lock);
    uva__futex_raise(&q->admitted);
    queue_discard(q, &q->loop.ready);
    queue_discard(q, &left);
}

int uva__push_queue_init(struct uva__push_queue *q, struct uva__rt *rt,
                         struct uva__wakeup *wakeup,
                         const struct uva_window *window)
{
    q->rt = rt;
    q->wakeup = wakeup;
    return uva__window_complete(window, &q->window) != 0
               ? EINVAL
               : uva__slots_ensure(rt);
}

void uva__push_queue_fini(struct uva__push_queue *q)
{
    queue_discard(q, &q->loop.ready);
    queue_discard(q, &q->locked.fresh);
}
