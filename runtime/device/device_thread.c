/* SPDX-License-Identifier: Apache-2.0 */
/* The device thread: runs commands and polls events.
 *
 * Happy path:  started at first need -> (runs commands, then polls the items
 *              that are due, then sleeps until the next one is due)* -> ended
 *              and joined.
 *
 * What can fail: thread creation; nothing else allocates or waits.
 *
 * On the end:  commands that were sent still run, and each item is polled once
 *              more. A thread that is stuck in a driver is detached. */
#define _GNU_SOURCE
#include "device/device_thread.h"

#include <assert.h>
#include <errno.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/time_limits.h"

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
static bool senders_enter(struct uva__device_thread *service)
{
    if (!uva__inflight_enter(&service->senders))
        return false;
    service->begin(service);
    return true;
}

/* Once the counter is closed, the last sender wakes the thread to end. */
static void senders_leave(struct uva__device_thread *service)
{
    if (uva__inflight_leave(&service->senders) == UVA__INFLIGHT_DRAINED)
        uva__parker_unpark(&service->parker);
    service->end(service);
}

bool uva__device_thread_send(struct uva__device_thread *service,
                             struct uva__device_command *command)
{
    if (!senders_enter(service))
        return false;
    uva__mpsc_push(&service->sent, &command->link);
    uva__parker_unpark(&service->parker);
    senders_leave(service);
    return true;
}

bool uva__device_thread_send_quietly(struct uva__device_thread *service,
                                     struct uva__device_command *command)
{
    if (!senders_enter(service))
        return false;
    uva__mpsc_push(&service->sent, &command->link);
    senders_leave(service);
    return true;
}

/* Runs the commands that were sent, the oldest first. */
static void commands_run(struct uva__device_thread *service)
{
    struct uva__link *link, *next;
    struct uva__device_command *command;

    for (link = uva__mpsc_take(&service->sent); link != NULL; link = next) {
        next = link->next;
        command = uva__container_of(link, struct uva__device_command, link);
        command->run(command);
    }
}

/* ---- poll items --------------------------------------------------------- */

void uva__device_thread_poll(struct uva__device_thread *service,
                             struct uva__poll_item *item)
{
    const uint64_t now = uva__clock_ns();

    item->due_ns = 0;
    if (item->listed)
        return;
    item->listed = true;
    item->begun_ns = now;
    item->due_ns = now + item_gap(item, now);
    uva__list_push(&service->items, &item->link);
}

/* Returns whether the item is done. */
static bool item_poll(struct uva__poll_item *item, uint64_t *now)
{
    item->listed = false;
    if (item->look(item, *now - item->begun_ns))
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
 * Returns the time until the next one is due, or -1 if there is none. */
static int64_t items_poll(struct uva__device_thread *service, bool all)
{
    struct uva__list left = service->items, over = {0};
    uint64_t now = uva__clock_ns(), next = UINT64_MAX, looks = 0;
    struct uva__link *link;
    struct uva__poll_item *item;

    service->items = (struct uva__list){0};
    while ((link = uva__list_pop(&left)) != NULL) {
        item = uva__container_of(link, struct uva__poll_item, link);
        if ((all || item->due_ns <= now + GAP_LEAST_NS / 2) &&
            item_poll(item, &now)) {
            uva__list_push(&over, link);
        } else {
            next = item->due_ns < next ? item->due_ns : next;
            uva__list_push(&service->items, link);
        }
        if (++looks % BUNCH == 0)
            items_finish(&over);
    }
    items_finish(&over);
    if (next == UINT64_MAX)
        return -1;
    return next > now ? (int64_t)(next - now) : 0;
}

/* ---- the thread --------------------------------------------------------- */

bool uva__device_thread_is_ending(struct uva__device_thread *service)
{
    return uva__inflight_is_drained(&service->senders);
}

/* Sleeps until a command was sent, or `gap_ns` has passed. */
static void device_thread_sleep(struct uva__device_thread *service,
                                int64_t gap_ns)
{
    struct uva__parker *parker = &service->parker;
    const uint32_t seen = uva__parker_prepare(parker);

    if (uva__mpsc_is_empty(&service->sent) &&
        !uva__device_thread_is_ending(service))
        (void)uva__futex_wait_ns(&parker->wake, seen, gap_ns);
    uva__parker_finish(parker);
}

static void device_thread_settle_in(void)
{
    (void)prctl(PR_SET_TIMERSLACK, 1);
    (void)pthread_setname_np(pthread_self(), "uva-devices");
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

static void *device_thread_main(void *arg)
{
    struct uva__device_thread *service = arg;
    int64_t gap;

    device_thread_settle_in();
    while (!uva__device_thread_is_ending(service)) {
        commands_run(service);
        gap = items_poll(service, false);
        if (gap != 0)
            device_thread_sleep(service, gap);
    }
    commands_run(service);
    (void)items_poll(service, true);
    assert(uva__list_is_empty(&service->items));
    service->clear(service);
    uva__atomic64_exchange(&service->over, 1);
    uva__futex_raise(&service->gone);
    service->end(service);
    return NULL;
}

static int device_thread_create(pthread_t *thread,
                                struct uva__device_thread *service)
{
    int code;

    service->begin(service);
    code = uva__thread_start(thread, device_thread_main, service);
    if (code != 0)
        service->end(service);
    return code;
}

int uva__device_thread_start(struct uva__device_thread *service)
{
    int code = 0;

    uva__lock_take(&service->locked.lock);
    if (service->locked.ended)
        code = ESHUTDOWN;
    else if (!service->locked.started &&
             device_thread_create(&service->locked.thread, service) != 0)
        code = EAGAIN;
    service->locked.started |= code == 0;
    uva__lock_drop(&service->locked.lock);
    return code;
}

bool uva__device_thread_is_current(struct uva__device_thread *service)
{
    bool here;

    uva__lock_take(&service->locked.lock);
    here = service->locked.started && uva__atomic64_load(&service->over) == 0 &&
           pthread_equal(service->locked.thread, pthread_self());
    uva__lock_drop(&service->locked.lock);
    return here;
}

static bool device_thread_is_home(struct uva__device_thread *service)
{
    uint32_t seen = uva__futex_now(&service->gone);
    bool in_time = true;

    while (in_time && uva__atomic64_load(&service->over) == 0) {
        in_time =
            uva__futex_wait(&service->gone, seen, UVA__LIMIT_DEVICE_THREAD_MS);
        seen = uva__futex_now(&service->gone);
    }
    return uva__atomic64_load(&service->over) != 0;
}

void uva__device_thread_end(struct uva__device_thread *service)
{
    pthread_t thread;
    bool started;

    uva__lock_take(&service->locked.lock);
    assert(!service->locked.ended);
    service->locked.ended = true;
    started = service->locked.started;
    thread = service->locked.thread;
    uva__lock_drop(&service->locked.lock);
    if (!started)
        return;
    if (uva__inflight_close(&service->senders) == UVA__INFLIGHT_DRAINED)
        uva__parker_unpark(&service->parker);
    if (!pthread_equal(thread, pthread_self()) &&
        device_thread_is_home(service))
        (void)pthread_join(thread, NULL);
    else
        (void)pthread_detach(thread);
}
