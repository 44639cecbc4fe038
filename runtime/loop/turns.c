/* SPDX-License-Identifier: Apache-2.0 */
/* Turns in order.
 *
 * Happy path:  take -> (wait -> begin) -> end -> the next one begins.
 *
 * Ahead:       take -> (wait -> need -> begin, or begin -> need) -> end.
 *
 * What can fail: the wait takes too long: expire. All wait equally long, so the
 *              first in the list is the first to expire, and one timer serves
 *              for all. It runs while something waits.
 *
 * On cancel:   end, which also takes one that waits out of the list.
 *
 * Within outer turns: what waits here waits for the hold, too, which is one
 * turn of the outer ones. The first that takes a turn takes the hold, and the
 * last reference gives it back; it stops to wait when nothing waits here any
 * more. It is needed when something here is. */
#include "loop/turns.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "loop/loop.h"

struct uva_turns {
    struct uva__turns turns;    /* the loop thread's alone */
    struct uva__timer timer;    /* for the first that waits */
    struct uva__rt *rt;         /* counts */
    struct uva__wakeup wakeup;  /* references: the user, and sources that share
                                   it; posted to resize, and to leave */
    struct uva__atomic64 count; /* the next limit of `turns` */
    int64_t wait_ms;            /* 0: without a limit */
    char text[96];              /* of errors; "": none */
    struct uva_turns *outer; /* counts; NULL: they are within no other turns */
    struct uva__turn hold;   /* of the outer ones */
    bool has_left;           /* the last reference was dropped */
};

/* ---- the limit of time --------------------------------------------------- */

static struct uva__turn *turn_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva__turn, link);
}

/* Holds wait without a limit: what waits inside has one. NULL: there is none
 * that waits with a limit. */
static struct uva__turn *turns_first_due(const struct uva_turns *own)
{
    struct uva__link *link = own->turns.waiting.head;

    while (link != NULL && turn_of(link)->own == NULL)
        link = link->next;
    return link != NULL ? turn_of(link) : NULL;
}

/* Sets the timer for the first that waits. */
static void turns_arm(struct uva_turns *own)
{
    const struct uva__turn *first;
    uint64_t now_ns;

    if (own == NULL || own->wait_ms == 0)
        return;
    first = turns_first_due(own);
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

/* ---- turns ----------------------------------------------------------------
 */

/* Whether one more may be taken, ahead or not. */
static bool turns_are_left(const struct uva__turns *turns, bool ahead)
{
    return (turns->hold == NULL || turns->hold->has) &&
           turns->taken < turns->limit &&
           (!ahead || turns->ahead + 1 < turns->limit);
}

static void turn_begin(struct uva__turn *turn)
{
    turn->of->taken++;
    turn->of->ahead += turn->ahead;
    turn->has = true;
}

/* Its time to wait is limited from when it is needed: so the first in the list
 * is still the first to expire. */
static void turn_wait(struct uva__turn *turn)
{
    struct uva__turns *turns = turn->of;
    struct uva_turns *own = turn->own;

    turn->waits = true;
    if (turn->ahead) {
        uva__list_push(&turns->later, &turn->link);
        return;
    }
    if (own != NULL)
        turn->due_ns = uva__clock_ns() + (uint64_t)own->wait_ms * 1000000;
    uva__list_push(&turns->waiting, &turn->link);
    turns_arm(own);
}

/* One more is wanted: takes the hold, or needs it from now on. */
static void turns_want_hold(const struct uva__turns *turns, bool ahead)
{
    struct uva__turn *hold = turns->hold;

    if (hold == NULL)
        return;
    if (!hold->has && !hold->waits) {
        hold->ahead = ahead;
        (void)uva__turns_take(hold);
    } else if (hold->ahead && !ahead) {
        uva__turns_need(hold);
    }
}

bool uva__turns_take(struct uva__turn *turn)
{
    bool begins;

    turns_want_hold(turn->of, turn->ahead);
    begins = turns_are_left(turn->of, turn->ahead);
    if (begins)
        turn_begin(turn);
    else
        turn_wait(turn);
    return begins;
}

static void turn_unwait(struct uva__turn *turn)
{
    struct uva__turns *turns = turn->of;

    turn->waits = false;
    uva__list_remove(turn->ahead ? &turns->later : &turns->waiting,
                     &turn->link);
    turns_arm(turn->own);
}

/* One does not wait any more: the hold waits as long as another turn does. */
static void turns_unwant_hold(const struct uva__turns *turns)
{
    struct uva__turn *hold = turns->hold;
    const bool only_ahead = !uva__list_is_empty(&turns->later);

    if (hold == NULL || !hold->waits || !uva__list_is_empty(&turns->waiting) ||
        (hold->ahead && only_ahead))
        return;
    uva__turns_end(hold);
    if (only_ahead)
        turns_want_hold(turns, true);
}

/* The one that is served next; NULL: none can be. */
static struct uva__turn *turns_next(const struct uva__turns *turns)
{
    if (turns->waiting.head != NULL && turns_are_left(turns, false))
        return turn_of(turns->waiting.head);
    if (turns->later.head != NULL && turns_are_left(turns, true))
        return turn_of(turns->later.head);
    return NULL;
}

static void turns_serve(const struct uva__turns *turns)
{
    struct uva__turn *turn;

    while ((turn = turns_next(turns)) != NULL) {
        turn_unwait(turn);
        turn_begin(turn);
        turn->begin(turn->ctx);
    }
}

void uva__turns_need(struct uva__turn *turn)
{
    const bool waits = turn->waits;

    if (waits)
        turn_unwait(turn);
    turn->ahead = false;
    turn->of->ahead -= turn->has;
    if (waits)
        turn_wait(turn);
    if (waits || turn->has)
        turns_want_hold(turn->of, false);
    turns_serve(turn->of);
}

void uva__turns_end(struct uva__turn *turn)
{
    if (turn->waits) {
        turn_unwait(turn);
        turns_unwant_hold(turn->of);
        return;
    }
    if (!turn->has)
        return;
    turn->has = false;
    turn->of->taken--;
    turn->of->ahead -= turn->ahead;
    turns_serve(turn->of);
}

static void turns_on_timer(struct uva__timer *timer)
{
    struct uva_turns *own = uva__container_of(timer, struct uva_turns, timer);
    const uint64_t now_ns = uva__clock_ns();
    struct uva__turn *first;

    uva__turns_acquire(own); /* what expires may drop the last one */
    while ((first = turns_first_due(own)) != NULL && first->due_ns <= now_ns) {
        uva__list_remove(&own->turns.waiting, &first->link);
        first->waits = false;
        first->expire(first->ctx);
    }
    turns_unwant_hold(&own->turns);
    turns_arm(own);
    uva_turns_release(own);
}

/* ---- the user's -----------------------------------------------------------
 */

struct uva_turns *uva__turns_acquire(struct uva_turns *turns)
{
    uva__wakeup_acquire(&turns->wakeup);
    return turns;
}

bool uva__turns_are_of(const struct uva_turns *turns, const struct uva__rt *rt)
{
    return turns->rt == rt;
}

struct uva__turns *uva__turns_of(struct uva_turns *turns)
{
    return &turns->turns;
}

void uva_turns_explain(struct uva_turns *turns, const char *text)
{
    if (turns != NULL)
        (void)snprintf(turns->text, sizeof(turns->text), "%s", text);
}

const char *uva__turns_name(const struct uva_turns *turns, const char *name)
{
    if (turns->hold.waits)
        return uva__turns_name(turns->outer, name);
    return turns->text[0] != '\0' ? turns->text : name;
}

int64_t uva__turns_wait_ms(const struct uva_turns *turns)
{
    return turns->wait_ms;
}

/* The longest limit: 34 years. Nanoseconds cannot overflow below it. */
#define WAIT_MAX_MS ((int64_t)1 << 40)

static bool turns_on_wakeup(struct uva__wakeup *wakeup)
{
    struct uva_turns *own = uva__container_of(wakeup, struct uva_turns, wakeup);

    own->turns.limit = (int32_t)uva__atomic64_load(&own->count);
    if (own->has_left)
        uva__turns_end(&own->hold);
    turns_serve(&own->turns);
    return false;
}

/* The last reference was dropped. The hold is given back on the loop thread,
 * with a reference of the wake-up's. */
static void turns_free(struct uva__wakeup *wakeup)
{
    struct uva_turns *own = uva__container_of(wakeup, struct uva_turns, wakeup);
    struct uva__rt *rt = own->rt;

    if (own->outer != NULL && !own->has_left && uva__rt_is_alive(rt)) {
        own->has_left = true;
        uva__rt_wake(rt, wakeup);
        return;
    }
    uva_turns_release(own->outer);
    uva__memory_free(&rt->allocator, own, sizeof(*own));
    uva__rt_release(rt);
}

static const struct uva__wakeup_ops turns_wakeup_ops = {turns_on_wakeup,
                                                        turns_free};

/* Its runtime and `out` are not NULL. */
static int turns_make(struct uva__rt *rt, int32_t count, int64_t wait_ms,
                      struct uva_turns **out, struct uva_error *error)
{
    struct uva_turns *turns;

    if (count < 1 || wait_ms < 0)
        return uva_error_set(error, EINVAL, "turns: %s",
                             count < 1 ? "count must be positive"
                                       : "wait_ms must not be negative");
    if (!uva__rt_is_alive(rt))
        return uva_error_set(error, EPERM,
                             "a forked child cannot use its parent's runtime");
    turns = uva__memory_new(&rt->allocator, sizeof(*turns));
    if (turns == NULL)
        return uva_error_set(error, ENOMEM, "no memory for turns");
    turns->turns.limit = count;
    uva__atomic64_store(&turns->count, (uint64_t)count);
    turns->timer.fire = turns_on_timer;
    turns->rt = uva__rt_acquire(rt);
    turns->wait_ms = wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS;
    uva__wakeup_init(&turns->wakeup, &turns_wakeup_ops, 1);
    *out = turns;
    return 0;
}

int uva_turns_new(struct uva_runtime *runtime, int32_t count, int64_t wait_ms,
                  struct uva_turns **out, struct uva_error *error)
{
    struct uva__rt *rt = uva__loop_rt(runtime);

    if (rt == NULL || out == NULL)
        return uva_error_set(error, EINVAL, "turns: the %s is NULL",
                             rt == NULL ? "runtime" : "result");
    return turns_make(rt, count, wait_ms, out, error);
}

static void turns_on_hold(void *ctx)
{
    struct uva_turns *own = uva__turns_acquire(ctx);

    turns_serve(&own->turns);
    uva_turns_release(own);
}

int uva_turns_within(struct uva_turns *outer, int32_t count, int64_t wait_ms,
                     struct uva_turns **out, struct uva_error *error)
{
    struct uva_turns *turns = NULL;
    int code;

    if (outer == NULL || out == NULL)
        return uva_error_set(error, EINVAL, "turns: the %s is NULL",
                             outer == NULL ? "outer" : "result");
    code = turns_make(outer->rt, count, wait_ms, &turns, error);
    if (code != 0)
        return code;
    turns->outer = uva__turns_acquire(outer);
    turns->hold.of = &outer->turns;
    turns->hold.begin = turns_on_hold;
    turns->hold.ctx = turns;
    turns->turns.hold = &turns->hold;
    *out = turns;
    return 0;
}

int uva_turns_resize(struct uva_turns *turns, int32_t count)
{
    if (turns == NULL || count < 0)
        return EINVAL;
    uva__atomic64_store(&turns->count, (uint64_t)count);
    uva__rt_wake(turns->rt, &turns->wakeup);
    return 0;
}

void uva_turns_release(struct uva_turns *turns)
{
    if (turns != NULL)
        uva__wakeup_release(&turns->wakeup);
}
