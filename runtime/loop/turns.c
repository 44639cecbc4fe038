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
 * On cancel:   end, which also takes one that waits out of the list. */
#include "loop/turns.h"

#include <errno.h>

#include "base/clock.h"
#include "base/memory.h"
#include "loop/loop.h"

struct uva_turns {
    struct uva__turns turns;   /* the loop thread's alone */
    struct uva__timer timer;   /* for the first that waits */
    struct uva__rt *rt;        /* counts */
    struct uva__atomic64 refs; /* the user, and sources that share it */
    int64_t wait_ms;           /* 0: without a limit */
};

/* ---- the limit of time --------------------------------------------------- */

static struct uva__turn *turn_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva__turn, link);
}

/* Sets the timer for the first that waits. */
static void turns_arm(struct uva_turns *own)
{
    const struct uva__turn *first;
    uint64_t now_ns;

    if (own == NULL || own->wait_ms == 0)
        return;
    if (uva__list_is_empty(&own->turns.waiting)) {
        uva__timer_stop(own->rt, &own->timer);
        return;
    }
    first = turn_of(own->turns.waiting.head);
    now_ns = uva__clock_ns();
    uva__timer_start(own->rt, &own->timer,
                     first->due_ns > now_ns
                         ? (int64_t)((first->due_ns - now_ns) / 1000000) + 1
                         : 0);
}

static void turns_on_timer(struct uva__timer *timer)
{
    struct uva_turns *own = uva__container_of(timer, struct uva_turns, timer);
    const uint64_t now_ns = uva__clock_ns();
    struct uva__turn *first;

    uva__atomic64_add(&own->refs, 1); /* what expires may drop the last one */
    while (!uva__list_is_empty(&own->turns.waiting)) {
        first = turn_of(own->turns.waiting.head);
        if (first->due_ns > now_ns)
            break;
        (void)uva__list_pop(&own->turns.waiting);
        first->waits = false;
        first->expire(first->ctx);
    }
    turns_arm(own);
    uva_turns_release(own);
}

/* ---- turns ----------------------------------------------------------------
 */

/* Whether one more may be taken, ahead or not. */
static bool turns_are_left(const struct uva__turns *turns, bool ahead)
{
    return turns->taken < turns->limit &&
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

bool uva__turns_take(struct uva__turn *turn)
{
    const bool begins = turns_are_left(turn->of, turn->ahead);

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
    turns_serve(turn->of);
}

void uva__turns_end(struct uva__turn *turn)
{
    if (turn->waits) {
        turn_unwait(turn);
        return;
    }
    if (!turn->has)
        return;
    turn->has = false;
    turn->of->taken--;
    turn->of->ahead -= turn->ahead;
    turns_serve(turn->of);
}

/* ---- the user's -----------------------------------------------------------
 */

struct uva_turns *uva__turns_acquire(struct uva_turns *turns)
{
    uva__atomic64_add(&turns->refs, 1);
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

int64_t uva__turns_wait_ms(const struct uva_turns *turns)
{
    return turns->wait_ms;
}

/* The longest limit: 34 years. Nanoseconds cannot overflow below it. */
#define WAIT_MAX_MS ((int64_t)1 << 40)

int uva_turns_new(struct uva_runtime *runtime, int32_t count, int64_t wait_ms,
                  struct uva_turns **out, struct uva_error *error)
{
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct uva_turns *turns;

    if (rt == NULL || out == NULL)
        return uva_error_set(error, EINVAL, "turns: the %s is NULL",
                             rt == NULL ? "runtime" : "result");
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
    turns->timer.fire = turns_on_timer;
    turns->rt = uva__rt_acquire(rt);
    turns->wait_ms = wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS;
    uva__atomic64_store(&turns->refs, 1);
    *out = turns;
    return 0;
}

void uva_turns_release(struct uva_turns *turns)
{
    struct uva__rt *rt;

    if (turns == NULL || uva__atomic64_sub(&turns->refs, 1) > 1)
        return;
    rt = turns->rt;
    uva__memory_free(&rt->allocator, turns, sizeof(*turns));
    uva__rt_release(rt);
}
