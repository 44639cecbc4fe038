/* SPDX-License-Identifier: Apache-2.0 */
/* Permits are given in order.
 *
 * Happy path:  take -> (wait -> begin) -> end -> the next one begins.
 *
 * Ahead:       take -> (wait -> need -> begin, or begin -> need) -> end.
 *
 * Failures: the wait takes too long: expire. All waits are equally long, so the
 * first in the list expires first, and one timer, which runs while the list is
 * not empty, serves for all.
 *
 * On cancel:   end, which also takes a waiting permit out of the list.
 *
 * Within outer permits: a permit here needs the hold, too, which is one permit
 * of the outer ones. The first permit that is taken takes the hold, and the
 * last reference gives it back. The hold waits as long as a permit waits here,
 * and is needed when a permit here is. */
#include "loop/permits.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "loop/loop.h"

struct uva_permits {
    struct uva__permits permits; /* the loop thread's alone */
    struct uva__timer timer;     /* for the first that waits */
    struct uva__rt *rt;          /* counts */
    struct uva__wakeup wakeup;   /* references: the user, and sources that share
                                    it; posted to resize, and to leave */
    struct uva__atomic64 count;  /* the next limit of `permits` */
    int64_t wait_ms;             /* 0: without a limit */
    char text[96];               /* of errors; "": not set */
    struct uva_permits
        *outer; /* counts; NULL: they are within no other permits */
    struct uva__permit hold; /* of the outer ones */
    bool has_left;           /* the last reference was dropped */
};

/* ---- the limit of time --------------------------------------------------- */

static struct uva__permit *permit_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva__permit, link);
}

/* Holds wait without a limit: the permits inside have one. NULL: no permit
 * waits with a limit. */
static struct uva__permit *permits_first_due(const struct uva_permits *own)
{
    struct uva__link *link = own->permits.waiting.head;

    while (link != NULL && permit_of(link)->own == NULL)
        link = link->next;
    return link != NULL ? permit_of(link) : NULL;
}

/* Sets the timer for the first that waits. */
static void permits_arm(struct uva_permits *own)
{
    const struct uva__permit *first;
    uint64_t now_ns;

    if (own == NULL || own->wait_ms == 0)
        return;
    first = permits_first_due(own);
    if (first == NULL) {
        uva__timer_stop(own->rt, &own->timer);
        return;
    }
    now_ns = uva__clock_ns();
    uva__timer_start(own->rt, &own->timer,
                     first->due_ns > now_ns
                         ? (int64_t)((first->due_ns - now_ns) / 1000000) + 1
                         : 0);
}

/* ---- permits ------------------------------------------------------------- */

/* Whether one more may be taken, ahead or not. */
static bool permits_are_left(const struct uva__permits *permits, bool ahead)
{
    return (permits->hold == NULL || permits->hold->has) &&
           permits->taken < permits->limit &&
           (!ahead || permits->ahead + 1 < permits->limit);
}

static void permit_begin(struct uva__permit *permit)
{
    permit->of->taken++;
    permit->of->ahead += permit->ahead;
    permit->has = true;
}

/* Its time to wait is limited from when it is needed: so the first in the list
 * is still the first to expire. */
static void permit_wait(struct uva__permit *permit)
{
    struct uva__permits *permits = permit->of;
    struct uva_permits *own = permit->own;

    permit->waits = true;
    if (permit->ahead) {
        uva__list_push(&permits->later, &permit->link);
        return;
    }
    if (own != NULL)
        permit->due_ns = uva__clock_ns() + (uint64_t)own->wait_ms * 1000000;
    uva__list_push(&permits->waiting, &permit->link);
    permits_arm(own);
}

/* One more is wanted: takes the hold, or needs it from now on. */
static void permits_want_hold(const struct uva__permits *permits, bool ahead)
{
    struct uva__permit *hold = permits->hold;

    if (hold == NULL)
        return;
    if (!hold->has && !hold->waits) {
        hold->ahead = ahead;
        (void)uva__permits_take(hold);
    } else if (hold->ahead && !ahead) {
        uva__permits_need(hold);
    }
}

bool uva__permits_take(struct uva__permit *permit)
{
    bool begins;

    permits_want_hold(permit->of, permit->ahead);
    begins = permits_are_left(permit->of, permit->ahead);
    if (begins)
        permit_begin(permit);
    else
        permit_wait(permit);
    return begins;
}

static void permit_unwait(struct uva__permit *permit)
{
    struct uva__permits *permits = permit->of;

    permit->waits = false;
    uva__list_remove(permit->ahead ? &permits->later : &permits->waiting,
                     &permit->link);
    permits_arm(permit->own);
}

/* One does not wait any more: the hold waits as long as another permit does. */
static void permits_unwant_hold(const struct uva__permits *permits)
{
    struct uva__permit *hold = permits->hold;
    const bool only_ahead = !uva__list_is_empty(&permits->later);

    if (hold == NULL || !hold->waits ||
        !uva__list_is_empty(&permits->waiting) || (hold->ahead && only_ahead))
        return;
    uva__permits_end(hold);
    if (only_ahead)
        permits_want_hold(permits, true);
}

/* The permit that is served next; NULL: no permit can be. */
static struct uva__permit *permits_next(const struct uva__permits *permits)
{
    if (permits->waiting.head != NULL && permits_are_left(permits, false))
        return permit_of(permits->waiting.head);
    if (permits->later.head != NULL && permits_are_left(permits, true))
        return permit_of(permits->later.head);
    return NULL;
}

static void permits_serve(const struct uva__permits *permits)
{
    struct uva__permit *permit;

    while ((permit = permits_next(permits)) != NULL) {
        permit_unwait(permit);
        permit_begin(permit);
        permit->begin(permit->ctx);
    }
}

void uva__permits_need(struct uva__permit *permit)
{
    const bool waits = permit->waits;

    if (waits)
        permit_unwait(permit);
    permit->ahead = false;
    permit->of->ahead -= permit->has;
    if (waits)
        permit_wait(permit);
    if (waits || permit->has)
        permits_want_hold(permit->of, false);
    permits_serve(permit->of);
}

void uva__permits_end(struct uva__permit *permit)
{
    if (permit->waits) {
        permit_unwait(permit);
        permits_unwant_hold(permit->of);
        return;
    }
    if (!permit->has)
        return;
    permit->has = false;
    permit->of->taken--;
    permit->of->ahead -= permit->ahead;
    permits_serve(permit->of);
}

static void permits_on_timer(struct uva__timer *timer)
{
    struct uva_permits *own =
        uva__container_of(timer, struct uva_permits, timer);
    const uint64_t now_ns = uva__clock_ns();
    struct uva__permit *first;

    uva__permits_acquire(own); /* an expired permit may drop the last one */
    while ((first = permits_first_due(own)) != NULL &&
           first->due_ns <= now_ns) {
        uva__list_remove(&own->permits.waiting, &first->link);
        first->waits = false;
        first->expire(first->ctx);
    }
    permits_unwant_hold(&own->permits);
    permits_arm(own);
    uva_permits_release(own);
}

/* ---- the user's ---------------------------------------------------------- */

struct uva_permits *uva__permits_acquire(struct uva_permits *permits)
{
    uva__wakeup_acquire(&permits->wakeup);
    return permits;
}

bool uva__permits_are_of(const struct uva_permits *permits,
                         const struct uva__rt *rt)
{
    return permits->rt == rt;
}

struct uva__permits *uva__permits_of(struct uva_permits *permits)
{
    return &permits->permits;
}

void uva_permits_explain(struct uva_permits *permits, const char *text)
{
    if (permits != NULL)
        (void)snprintf(permits->text, sizeof(permits->text), "%s", text);
}

const char *uva__permits_name(const struct uva_permits *permits,
                              const char *name)
{
    if (permits->hold.waits)
        return uva__permits_name(permits->outer, name);
    return permits->text[0] != '\0' ? permits->text : name;
}

int64_t uva__permits_wait_ms(const struct uva_permits *permits)
{
    return permits->wait_ms;
}

/* The longest limit: 34 years. Nanoseconds cannot overflow below it. */
#define WAIT_MAX_MS ((int64_t)1 << 40)

static bool permits_on_wakeup(struct uva__wakeup *wakeup)
{
    struct uva_permits *own =
        uva__container_of(wakeup, struct uva_permits, wakeup);

    own->permits.limit = (int32_t)uva__atomic64_load(&own->count);
    if (own->has_left)
        uva__permits_end(&own->hold);
    permits_serve(&own->permits);
    return false;
}

/* The last reference was dropped. The hold is given back on the loop thread,
 * with a reference of the wake-up's. */
static void permits_free(struct uva__wakeup *wakeup)
{
    struct uva_permits *own =
        uva__container_of(wakeup, struct uva_permits, wakeup);
    struct uva__rt *rt = own->rt;

    if (own->outer != NULL && !own->has_left && uva__rt_is_alive(rt)) {
        own->has_left = true;
        uva__rt_wake(rt, wakeup);
        return;
    }
    uva_permits_release(own->outer);
    uva__memory_free(&rt->allocator, own, sizeof(*own));
    uva__rt_release(rt);
}

static const struct uva__wakeup_ops permits_wakeup_ops = {permits_on_wakeup,
                                                          permits_free};

/* Its runtime and `out` are not NULL. */
static int permits_make(struct uva__rt *rt, int32_t count, int64_t wait_ms,
                        struct uva_permits **out, struct uva_error *error)
{
    struct uva_permits *permits;

    if (count < 1 || wait_ms < 0)
        return uva_error_set(error, EINVAL, "permits: %s",
                             count < 1 ? "count must be positive"
                                       : "wait_ms must not be negative");
    if (!uva__rt_is_alive(rt))
        return uva_error_set(error, EPERM,
                             "a forked child cannot use its parent's runtime");
    permits = uva__memory_new(&rt->allocator, sizeof(*permits));
    if (permits == NULL)
        return uva_error_set(error, ENOMEM, "no memory for permits");
    permits->permits.limit = count;
    uva__atomic64_store(&permits->count, (uint64_t)count);
    permits->timer.fire = permits_on_timer;
    permits->rt = uva__rt_acquire(rt);
    permits->wait_ms = wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS;
    uva__wakeup_init(&permits->wakeup, &permits_wakeup_ops, 1);
    *out = permits;
    return 0;
}

int uva_permits_new(struct uva_runtime *runtime, int32_t count, int64_t wait_ms,
                    struct uva_permits **out, struct uva_error *error)
{
    struct uva__rt *rt = uva__loop_rt(runtime);

    if (rt == NULL || out == NULL)
        return uva_error_set(error, EINVAL, "permits: the %s is NULL",
                             rt == NULL ? "runtime" : "result");
    return permits_make(rt, count, wait_ms, out, error);
}

static void permits_on_hold(void *ctx)
{
    struct uva_permits *own = uva__permits_acquire(ctx);

    permits_serve(&own->permits);
    uva_permits_release(own);
}

int uva_permits_within(struct uva_permits *outer, int32_t count,
                       int64_t wait_ms, struct uva_permits **out,
                       struct uva_error *error)
{
    struct uva_permits *permits = NULL;
    int code;

    if (outer == NULL || out == NULL)
        return uva_error_set(error, EINVAL, "permits: the %s is NULL",
                             outer == NULL ? "outer" : "result");
    code = permits_make(outer->rt, count, wait_ms, &permits, error);
    if (code != 0)
        return code;
    permits->outer = uva__permits_acquire(outer);
    permits->hold.of = &outer->permits;
    permits->hold.begin = permits_on_hold;
    permits->hold.ctx = permits;
    permits->permits.hold = &permits->hold;
    *out = permits;
    return 0;
}

int uva_permits_resize(struct uva_permits *permits, int32_t count)
{
    if (permits == NULL || count < 0)
        return EINVAL;
    uva__atomic64_store(&permits->count, (uint64_t)count);
    uva__rt_wake(permits->rt, &permits->wakeup);
    return 0;
}

void uva_permits_release(struct uva_permits *permits)
{
    if (permits != NULL)
        uva__wakeup_release(&permits->wakeup);
}
