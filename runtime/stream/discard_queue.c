/* SPDX-License-Identifier: Apache-2.0 */
/* Discards on extra threads the data that the loop thread must not discard.
 *
 * Happy path:  add -> a runner comes, unless one is coming -> it takes each
 *              item and runs it, without the lock -> the queue is empty: it
 *              ends.
 *
 * Failures:
 * - an item takes long: while others wait, one more runner comes, which starts
 *   after UVA__LIMIT_DISCARD_MS unless the queue is empty before. Items of an
 *   owner that has one running stand aside until that one has returned;
 * - the worker threads were released: the items are run by the thread that adds
 *   them.
 *
 * On close:    each runner holds a reference to the rt, which owns the queue.
 */
#include "stream/discard_queue.h"

#include <errno.h>

#include "base/memory.h"
#include "base/time_limits.h"

struct discards {
    struct uva__rt_data data; /* first: how the rt frees it */
    struct uva__rt *rt;       /* borrows: its owner */
    struct uva__job job;      /* of the runner that is coming */
    struct uva__futex over;   /* raised, locked, when a runner ends */

    struct uva__lock lock;
    struct {
        struct uva__list queue;
        struct uva__list running; /* struct discarding */
        int32_t runners;          /* that take items */
        bool coming;              /* `job` was submitted; it takes no items so
                                     far */
    } locked;
};

/* An item that is being run; on the stack of its runner. */
struct discarding {
    struct uva__link link;
    const void *owner;
    struct uva__list behind; /* other items of the owner */
};

static struct discards *discards_of(const struct uva__rt *rt)
{
    return uva__container_of(
        uva__atomic_ptr_load(&rt->data[UVA__RT_DATA_DISCARDS]), struct discards,
        data);
}

/* ---- one item ----------------------------------------------------------- */

static struct discarding *discards_find_locked(const struct discards *d,
                                               const void *owner)
{
    struct uva__link *link = d->locked.running.head;
    struct discarding *now;

    for (; link != NULL; link = link->next) {
        now = uva__container_of(link, struct discarding, link);
        if (now->owner == owner)
            return now;
    }
    return NULL;
}

/* Takes the first item of an owner that has none running, and puts the items
 * before it aside. NULL without one. */
static struct uva__discard *discards_take_locked(struct discards *d,
                                                 struct discarding *now)
{
    struct uva__discard *item;
    struct discarding *before;
    struct uva__link *link;

    while ((link = uva__list_pop(&d->locked.queue)) != NULL) {
        item = uva__container_of(link, struct uva__discard, link);
        before = discards_find_locked(d, item->owner);
        if (before == NULL) {
            *now = (struct discarding){.owner = item->owner};
            uva__list_push(&d->locked.running, &now->link);
            return item;
        }
        uva__list_push(&before->behind, link);
    }
    return NULL;
}

/* The item has been run; its memory may be gone. */
static void discards_end_locked(struct discards *d, struct discarding *now)
{
    uva__list_remove(&d->locked.running, &now->link);
    uva__list_append(&now->behind, &d->locked.queue);
    d->locked.queue = now->behind;
}

/* ---- runners ------------------------------------------------------------ */

/* Whether one more runner must come: then the caller submits the job, which is
 * counted. False also if the worker threads were released. */
static bool discards_call_locked(struct discards *d)
{
    if (d->locked.coming || uva__list_is_empty(&d->locked.queue) ||
        d->locked.runners > d->rt->jobs.stuck_threads)
        return false;
    d->locked.coming = uva__rt_job_begin(d->rt);
    return d->locked.coming;
}

static void discards_run_all(struct discards *d)
{
    struct uva__discard *item;
    struct discarding now;
    bool call;

    uva__lock_take(&d->lock);
    d->locked.coming = false;
    d->locked.runners++;
    while ((item = discards_take_locked(d, &now)) != NULL) {
        call = discards_call_locked(d);
        uva__lock_drop(&d->lock);
        if (call)
            uva__lane_run_uncapped(&d->rt->jobs, &d->job);
        item->run(item);
        uva__lock_take(&d->lock);
        discards_end_locked(d, &now);
    }
    d->locked.runners--;
    uva__futex_raise(&d->over);
    uva__lock_drop(&d->lock);
}

/* Waits until a runner is needed: no other one is there, or items have waited
 * for long. Returns early when the queue is empty. */
static void discards_await(struct discards *d)
{
    bool in_time = true;
    uint32_t seen;

    uva__lock_take(&d->lock);
    while (in_time && d->locked.runners > 0 &&
           !uva__list_is_empty(&d->locked.queue)) {
        seen = uva__futex_now(&d->over);
        uva__lock_drop(&d->lock);
        in_time = uva__futex_wait(&d->over, seen, UVA__LIMIT_DISCARD_MS);
        uva__lock_take(&d->lock);
    }
    uva__lock_drop(&d->lock);
}

static void discards_run(struct uva__job *job)
{
    struct discards *d = uva__container_of(job, struct discards, job);
    struct uva__rt *rt = d->rt;

    discards_await(d);
    discards_run_all(d);
    uva__rt_job_end(rt);
}

void uva__discard_add(struct uva__rt *rt, struct uva__discard *item)
{
    struct discards *d = discards_of(rt);
    bool call, alone;

    uva__lock_take(&d->lock);
    uva__list_push(&d->locked.queue, &item->link);
    call = discards_call_locked(d);
    alone = !d->locked.coming && d->locked.runners == 0;
    uva__lock_drop(&d->lock);
    if (call)
        uva__lane_run_uncapped(&rt->jobs, &d->job);
    else if (alone)
        discards_run_all(d);
}

/* ---- life --------------------------------------------------------------- */

static void discards_free(struct uva__rt *rt, struct uva__rt_data *data)
{
    struct discards *d = uva__container_of(data, struct discards, data);

    uva__memory_free(&rt->allocator, d, sizeof(*d));
}

static struct uva__rt_data *discards_new(struct uva__rt *rt)
{
    struct discards *d = uva__memory_new(&rt->allocator, sizeof(*d));

    if (d == NULL)
        return NULL;
    d->data.free = discards_free;
    d->rt = rt;
    d->job.run = discards_run;
    return &d->data;
}

int uva__discard_ensure(struct uva__rt *rt)
{
    return uva__rt_get_data(rt, UVA__RT_DATA_DISCARDS, discards_new) != NULL
               ? 0
               : ENOMEM;
}
