/* SPDX-License-Identifier: Apache-2.0 */
/* The device thread: runs commands and polls events.
 *
 * Happy path:  started at first need -> (runs commands, then polls the items
 *              that are due, then sleeps until the next one is due)* -> ended
 *              and joined.
 *
 * Failures: thread creation; no other call allocates or waits.
 *
 * On the end:  commands that were sent still run, and each item is polled once
 *              more; then reports are refused, and those taken are run. If the
 *              thread is stuck in a driver, it detaches itself when it comes
 *              back. */
#include "device/device_thread.h"

#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/platform.h"
#include "base/thread.h"
#include "base/time_limits.h"
#include "device/driver_gate.h"

enum {
    GAP_LEAST_NS = 30000, /* before the first poll; also how early one may be */
    GAP_MOST_NS = 5000000, /* at most, for old items */
    GAP_SHARE = 8,         /* a share of the item's age: how late we notice */
    GAP_BACKED_NS = 20000000, /* where a callback reports the end anyway */
    BUNCH = 256               /* polls, which take tens of microseconds */
};

/* ---- time --------------------------------------------------------------- */

static uint64_t item_gap(const struct uva__poll_item *item, uint64_t now)
{
    const uint64_t gap = (now - item->begun_ns) / GAP_SHARE;

    if (item->has_callback)
        return GAP_BACKED_NS;
    if (gap < GAP_LEAST_NS)
        return GAP_LEAST_NS;
    return gap < GAP_MOST_NS ? gap : GAP_MOST_NS;
}

/* ---- commands ----------------------------------------------------------- */

/* Counts a sender in, as its command may release everything that keeps the
 * struct alive. */
static bool senders_enter(struct uva__device_thread *device_thread)
{
    if (!uva__inflight_enter(&device_thread->senders))
        return false;
    device_thread->begin(device_thread);
    return true;
}

/* Once the counter is closed, the last sender wakes the thread to end. */
static void senders_leave(struct uva__device_thread *device_thread)
{
    if (uva__inflight_leave(&device_thread->senders) == UVA__INFLIGHT_DRAINED)
        uva__parker_unpark(&device_thread->parker);
    device_thread->end(device_thread);
}

bool uva__device_thread_send(struct uva__device_thread *device_thread,
                             struct uva__device_command *command)
{
    if (!senders_enter(device_thread))
        return false;
    uva__mpsc_push(&device_thread->sent, &command->link);
    uva__parker_unpark(&device_thread->parker);
    senders_leave(device_thread);
    return true;
}

bool uva__device_thread_report(struct uva__device_thread *device_thread,
                               struct uva__device_command *command, bool wakes)
{
    if (!uva__inflight_enter(&device_thread->reports))
        return false;
    device_thread->begin(device_thread);
    uva__mpsc_push(&device_thread->sent, &command->link);
    if (uva__inflight_leave(&device_thread->reports) == UVA__INFLIGHT_DRAINED ||
        wakes)
        uva__parker_unpark(&device_thread->parker);
    device_thread->end(device_thread);
    return true;
}

/* Runs the commands that were sent, the oldest first; also if the process
 * exits, as they end waits: they then use no driver. */
static void commands_run(struct uva__device_thread *device_thread)
{
    struct uva__link *link, *next;
    struct uva__device_command *command;
    bool inside;

    for (link = uva__mpsc_take(&device_thread->sent); link != NULL;
         link = next) {
        next = link->next;
        command = uva__container_of(link, struct uva__device_command, link);
        inside = uva__driver_gate_enter();
        command->run(command);
        if (inside)
            uva__driver_gate_leave();
    }
}

/* ---- poll items --------------------------------------------------------- */

void uva__device_thread_poll(struct uva__device_thread *device_thread,
                             struct uva__poll_item *item)
{
    const uint64_t now = uva__clock_ns();

    item->due_ns = 0;
    if (item->listed)
        return;
    item->listed = true;
    item->begun_ns = now;
    item->due_ns = now + item_gap(item, now);
    uva__list_push(&device_thread->items, &item->link);
}

/* Returns whether the item is done. */
static bool item_poll(struct uva__poll_item *item, uint64_t *now)
{
    item->listed = false;
    if (item->poll(item, *now - item->begun_ns))
        return true;
    item->listed = true;
    *now = uva__clock_ns();
    item->due_ns = *now + item_gap(item, *now);
    return false;
}

static void items_finish(struct uva__list *over)
{
    struct uva__link *link;
    struct uva__poll_item *item;

    while ((link = uva__list_pop(over)) != NULL) {
        item = uva__container_of(link, struct uva__poll_item, link);
        item->finish(item);
    }
}

/* Polls the items that are due or nearly due, or all. Items that are done are
 * finished in bunches, so that a loop that waits for many is woken once.
 * Returns the time until the next one is due, or -1 without one. */
static int64_t items_poll(struct uva__device_thread *device_thread, bool all)
{
    struct uva__list left = device_thread->items, over = {0};
    uint64_t now = uva__clock_ns(), next = UINT64_MAX, looks = 0;
    struct uva__link *link;
    struct uva__poll_item *item;

    device_thread->items = (struct uva__list){0};
    while ((link = uva__list_pop(&left)) != NULL) {
        item = uva__container_of(link, struct uva__poll_item, link);
        if ((all || item->due_ns <= now + GAP_LEAST_NS / 2) &&
            item_poll(item, &now)) {
            uva__list_push(&over, link);
        } else {
            next = item->due_ns < next ? item->due_ns : next;
            uva__list_push(&device_thread->items, link);
        }
        if (++looks % BUNCH == 0)
            items_finish(&over);
    }
    items_finish(&over);
    if (next == UINT64_MAX)
        return -1;
    return next > now ? (int64_t)(next - now) : 0;
}

/* Does the same as one use of drivers. */
static int64_t items_poll_inside(struct uva__device_thread *device_thread,
                                 bool all)
{
    const bool inside = uva__driver_gate_enter();
    const int64_t gap = items_poll(device_thread, all);

    if (inside)
        uva__driver_gate_leave();
    return gap;
}

/* ---- the thread --------------------------------------------------------- */

bool uva__device_thread_is_ending(struct uva__device_thread *device_thread)
{
    return uva__inflight_is_drained(&device_thread->senders);
}

static void device_thread_note_settled(struct uva__device_thread *device_thread)
{
    if (uva__atomic64_load(&device_thread->settling) == 0)
        return;
    uva__atomic64_store(&device_thread->settling, 0);
    uva__futex_raise(&device_thread->changed);
}

/* Sleeps until a command was sent, or `gap_ns` has passed. */
static void device_thread_sleep(struct uva__device_thread *device_thread,
                                int64_t gap_ns)
{
    struct uva__parker *parker = &device_thread->parker;
    const uint32_t seen = uva__parker_prepare(parker);

    if (uva__mpsc_is_empty(&device_thread->sent) &&
        !uva__device_thread_is_ending(device_thread)) {
        device_thread_note_settled(device_thread);
        (void)uva__futex_wait_ns(&parker->wake, seen, gap_ns);
    }
    uva__parker_finish(parker);
}

static void device_thread_set_up(void)
{
    uva__platform_sleep_exactly();
    uva__platform_name_thread("uva-devices");
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

/* Refuses further reports, and waits for reports that are being made. */
static void reports_close(struct uva__device_thread *device_thread)
{
    struct uva__parker *parker = &device_thread->parker;
    uint32_t seen;

    (void)uva__inflight_close(&device_thread->reports);
    for (;;) {
        seen = uva__parker_prepare(parker);
        if (uva__inflight_is_drained(&device_thread->reports))
            break;
        uva__parker_park(parker, seen);
    }
    uva__parker_finish(parker);
}

/* The thread detaches itself unless another one joins it. */
static void device_thread_note_over(struct uva__device_thread *device_thread)
{
    bool awaited;

    uva__lock_take(&device_thread->locked.lock);
    uva__atomic64_exchange(&device_thread->over, 1);
    awaited = device_thread->locked.awaited;
    uva__lock_drop(&device_thread->locked.lock);
    if (!awaited)
        (void)pthread_detach(pthread_self());
    uva__futex_raise(&device_thread->changed);
}

static void *device_thread_main(void *arg)
{
    struct uva__device_thread *device_thread = arg;
    int64_t gap;

    device_thread_set_up();
    while (!uva__device_thread_is_ending(device_thread)) {
        commands_run(device_thread);
        gap = items_poll_inside(device_thread, false);
        if (gap != 0)
            device_thread_sleep(device_thread, gap);
    }
    commands_run(device_thread);
    (void)items_poll_inside(device_thread, true);
    assert(uva__list_is_empty(&device_thread->items));
    reports_close(device_thread);
    commands_run(device_thread);
    device_thread->clear(device_thread);
    device_thread_note_over(device_thread);
    device_thread->end(device_thread);
    return NULL;
}

static int device_thread_create(pthread_t *thread,
                                struct uva__device_thread *device_thread)
{
    int code;

    device_thread->begin(device_thread);
    code =
        uva__platform_start_thread(thread, device_thread_main, device_thread);
    if (code != 0)
        device_thread->end(device_thread);
    return code;
}

int uva__device_thread_start(struct uva__device_thread *device_thread)
{
    int code = 0;

    uva__lock_take(&device_thread->locked.lock);
    if (device_thread->locked.ended)
        code = ESHUTDOWN;
    else if (!device_thread->locked.started &&
             device_thread_create(&device_thread->locked.thread,
                                  device_thread) != 0)
        code = ENOMEM;
    device_thread->locked.started |= code == 0;
    uva__lock_drop(&device_thread->locked.lock);
    return code;
}

static bool device_thread_is_over(struct uva__device_thread *device_thread)
{
    return uva__atomic64_load(&device_thread->over) != 0;
}

bool uva__device_thread_is_current(struct uva__device_thread *device_thread)
{
    bool here;

    uva__lock_take(&device_thread->locked.lock);
    here = device_thread->locked.started &&
           !device_thread_is_over(device_thread) &&
           pthread_equal(device_thread->locked.thread, pthread_self());
    uva__lock_drop(&device_thread->locked.lock);
    return here;
}

void uva__device_thread_await(struct uva__device_thread *device_thread)
{
    uint32_t seen = uva__futex_now(&device_thread->changed);
    bool started;

    uva__lock_take(&device_thread->locked.lock);
    started = device_thread->locked.started;
    uva__lock_drop(&device_thread->locked.lock);
    while (started && !device_thread_is_over(device_thread)) {
        (void)uva__futex_wait(&device_thread->changed, seen, -1);
        seen = uva__futex_now(&device_thread->changed);
    }
}

/* Makes the caller the thread that joins this one. False: there is no need, or
 * another thread will. */
static bool device_thread_claim_locked(struct uva__device_thread *device_thread)
{
    if (!device_thread->locked.started || device_thread->locked.awaited ||
        device_thread_is_over(device_thread) ||
        pthread_equal(device_thread->locked.thread, pthread_self()))
        return false;
    device_thread->locked.awaited = true;
    return true;
}

uint64_t uva__device_thread_limit_ns(void)
{
    return uva__clock_ns() + (uint64_t)UVA__LIMIT_DEVICE_THREAD_MS * 1000000;
}

/* Returns early if the thread changes. False: the time has passed. */
static bool device_thread_wait(struct uva__device_thread *device_thread,
                               uint32_t seen, uint64_t until_ns)
{
    const uint64_t now = uva__clock_ns();

    return now < until_ns && uva__futex_wait_ns(&device_thread->changed, seen,
                                                (int64_t)(until_ns - now));
}

/* Joins the thread, which the caller has claimed, if it is over in time; or
 * returns early when a thread that settles sleeps. */
static void device_thread_join(struct uva__device_thread *device_thread,
                               bool settles, uint64_t until_ns)
{
    uint32_t seen = uva__futex_now(&device_thread->changed);
    bool in_time = true, over;

    while (in_time && !device_thread_is_over(device_thread) &&
           !(settles && uva__atomic64_load(&device_thread->settling) == 0)) {
        in_time = device_thread_wait(device_thread, seen, until_ns);
        seen = uva__futex_now(&device_thread->changed);
    }
    uva__lock_take(&device_thread->locked.lock);
    over = device_thread_is_over(device_thread);
    device_thread->locked.awaited = over;
    uva__lock_drop(&device_thread->locked.lock);
    if (over)
        (void)pthread_join(device_thread->locked.thread, NULL);
}

void uva__device_thread_settle(struct uva__device_thread *device_thread,
                               uint64_t until_ns)
{
    bool claimed;

    uva__lock_take(&device_thread->locked.lock);
    claimed = device_thread_claim_locked(device_thread);
    uva__lock_drop(&device_thread->locked.lock);
    if (!claimed)
        return;
    uva__atomic64_exchange(&device_thread->settling, 1);
    uva__parker_unpark(&device_thread->parker);
    device_thread_join(device_thread, true, until_ns);
}

void uva__device_thread_end(struct uva__device_thread *device_thread,
                            uint64_t until_ns)
{
    bool started, claimed;

    uva__lock_take(&device_thread->locked.lock);
    assert(!device_thread->locked.ended);
    device_thread->locked.ended = true;
    started = device_thread->locked.started;
    claimed = device_thread_claim_locked(device_thread);
    uva__lock_drop(&device_thread->locked.lock);
    if (started &&
        uva__inflight_close(&device_thread->senders) == UVA__INFLIGHT_DRAINED)
        uva__parker_unpark(&device_thread->parker);
    if (claimed)
        device_thread_join(device_thread, false, until_ns);
}
