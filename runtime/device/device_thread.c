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

static uint64_t chore_gap(const struct uva__chore *chore, uint64_t now)
{
    const uint64_t gap = (now - chore->begun_ns) / GAP_SHARE;

    if (chore->backed)
        return GAP_BACKED_NS;
    if (gap < GAP_LEAST_NS)
        return GAP_LEAST_NS;
    return gap < GAP_MOST_NS ? gap : GAP_MOST_NS;
}

/* ---- commands ----------------------------------------------------------- */

/* Counts a sender in, as its command may release everything that keeps the
 * struct alive. */
static bool door_enter(struct uva__service *service)
{
    if (!uva__gate_enter(&service->door))
        return false;
    service->begin(service);
    return true;
}

/* Once the counter is closed, the last sender wakes the thread to end. */
static void door_leave(struct uva__service *service)
{
    if (uva__gate_leave(&service->door) == UVA__GATE_OVER)
        uva__sleeper_wake(&service->sleeper);
    service->end(service);
}

bool uva__service_send(struct uva__service *service, struct uva__errand *errand)
{
    if (!door_enter(service))
        return false;
    uva__mpsc_push(&service->sent, &errand->link);
    uva__sleeper_wake(&service->sleeper);
    door_leave(service);
    return true;
}

bool uva__service_leave(struct uva__service *service,
                        struct uva__errand *errand)
{
    if (!door_enter(service))
        return false;
    uva__mpsc_push(&service->sent, &errand->link);
    door_leave(service);
    return true;
}

/* Runs the commands that were sent, the oldest first. */
static void errands_run(struct uva__service *service)
{
    struct uva__link *link, *next;
    struct uva__errand *errand;

    for (link = uva__mpsc_take(&service->sent); link != NULL; link = next) {
        next = link->next;
        errand = uva__container_of(link, struct uva__errand, link);
        errand->run(errand);
    }
}

/* ---- poll items --------------------------------------------------------- */

void uva__service_ask(struct uva__service *service, struct uva__chore *chore)
{
    const uint64_t now = uva__clock_ns();

    chore->due_ns = 0;
    if (chore->listed)
        return;
    chore->listed = true;
    chore->begun_ns = now;
    chore->due_ns = now + chore_gap(chore, now);
    uva__list_push(&service->chores, &chore->link);
}

/* Returns whether the item is done. */
static bool chore_look(struct uva__chore *chore, uint64_t *now)
{
    chore->listed = false;
    if (chore->look(chore, *now - chore->begun_ns))
        return true;
    chore->listed = true;
    *now = uva__clock_ns();
    chore->due_ns = *now + chore_gap(chore, *now);
    return false;
}

static void chores_finish(struct uva__list *over)
{
    struct uva__link *link;
    struct uva__chore *chore;

    while ((link = uva__list_pop(over)) != NULL) {
        chore = uva__container_of(link, struct uva__chore, link);
        chore->finish(chore);
    }
}

/* Polls the items that are due or nearly due, or all. Items that are done are
 * finished in bunches, so that a loop that waits for many is woken once.
 * Returns the time until the next one is due, or -1 if there is none. */
static int64_t chores_look(struct uva__service *service, bool all)
{
    struct uva__list left = service->chores, over = {0};
    uint64_t now = uva__clock_ns(), next = UINT64_MAX, looks = 0;
    struct uva__link *link;
    struct uva__chore *chore;

    service->chores = (struct uva__list){0};
    while ((link = uva__list_pop(&left)) != NULL) {
        chore = uva__container_of(link, struct uva__chore, link);
        if ((all || chore->due_ns <= now + GAP_LEAST_NS / 2) &&
            chore_look(chore, &now)) {
            uva__list_push(&over, link);
        } else {
            next = chore->due_ns < next ? chore->due_ns : next;
            uva__list_push(&service->chores, link);
        }
        if (++looks % BUNCH == 0)
            chores_finish(&over);
    }
    chores_finish(&over);
    if (next == UINT64_MAX)
        return -1;
    return next > now ? (int64_t)(next - now) : 0;
}

/* ---- the thread --------------------------------------------------------- */

bool uva__service_is_ending(struct uva__service *service)
{
    return uva__gate_is_over(&service->door);
}

/* Sleeps until a command was sent, or `gap_ns` has passed. */
static void service_sleep(struct uva__service *service, int64_t gap_ns)
{
    struct uva__sleeper *sleeper = &service->sleeper;
    const uint32_t seen = uva__sleeper_begin(sleeper);

    if (uva__mpsc_is_empty(&service->sent) && !uva__service_is_ending(service))
        (void)uva__signal_wait_ns(&sleeper->wake, seen, gap_ns);
    uva__sleeper_end(sleeper);
}

static void service_settle_in(void)
{
    (void)prctl(PR_SET_TIMERSLACK, 1);
    (void)pthread_setname_np(pthread_self(), "uva-devices");
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

static void *service_main(void *arg)
{
    struct uva__service *service = arg;
    int64_t gap;

    service_settle_in();
    while (!uva__service_is_ending(service)) {
        errands_run(service);
        gap = chores_look(service, false);
        if (gap != 0)
            service_sleep(service, gap);
    }
    errands_run(service);
    (void)chores_look(service, true);
    assert(uva__list_is_empty(&service->chores));
    service->clear(service);
    uva__word_exchange(&service->over, 1);
    uva__signal_raise(&service->gone);
    service->end(service);
    return NULL;
}

static int service_create(pthread_t *thread, struct uva__service *service)
{
    int code;

    service->begin(service);
    code = uva__thread_start(thread, service_main, service);
    if (code != 0)
        service->end(service);
    return code;
}

int uva__service_start(struct uva__service *service)
{
    int code = 0;

    uva__lock_take(&service->locked.lock);
    if (service->locked.ended)
        code = ESHUTDOWN;
    else if (!service->locked.started &&
             service_create(&service->locked.thread, service) != 0)
        code = EAGAIN;
    service->locked.started |= code == 0;
    uva__lock_drop(&service->locked.lock);
    return code;
}

bool uva__service_is_here(struct uva__service *service)
{
    bool here;

    uva__lock_take(&service->locked.lock);
    here = service->locked.started && uva__word_load(&service->over) == 0 &&
           pthread_equal(service->locked.thread, pthread_self());
    uva__lock_drop(&service->locked.lock);
    return here;
}

static bool service_is_home(struct uva__service *service)
{
    uint32_t seen = uva__signal_now(&service->gone);
    bool in_time = true;

    while (in_time && uva__word_load(&service->over) == 0) {
        in_time =
            uva__signal_wait(&service->gone, seen, UVA__LIMIT_DEVICE_THREAD_MS);
        seen = uva__signal_now(&service->gone);
    }
    return uva__word_load(&service->over) != 0;
}

void uva__service_end(struct uva__service *service)
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
    if (uva__gate_shut(&service->door) == UVA__GATE_OVER)
        uva__sleeper_wake(&service->sleeper);
    if (!pthread_equal(thread, pthread_self()) && service_is_home(service))
        (void)pthread_join(thread, NULL);
    else
        (void)pthread_detach(thread);
}
