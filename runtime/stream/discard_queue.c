/* SPDX-License-Identifier: Apache-2.0 */
/* Discards on an extra thread the data that the loop thread must not discard.
 *
 * Happy path:  add -> a job begins, unless it runs -> each item is run, without
 *              the lock -> the queue is empty: the job ends.
 *
 * What can fail: the worker threads were released: the items are run by the
 *              thread that adds them.
 *
 * On close:    the job holds a reference to the rt, which owns the queue. */
#include "stream/discard_queue.h"

#include <errno.h>

#include "base/memory.h"

struct discards {
    struct uva__rt_data data; /* first: how the rt frees it */
    struct uva__rt *rt;       /* borrows: the one that owns it */
    struct uva_job job;

    struct uva__lock lock;
    struct {
        struct uva__list queue;
        bool running; /* the job is in flight */
    } locked;
};

static struct discards *discards_of(const struct uva__rt *rt)
{
    return uva__container_of(
        uva__atomic_ptr_load(&rt->data[UVA__RT_DATA_DISCARDS]), struct discards,
        data);
}

/* ---- the job ------------------------------------------------------------ */

static struct uva__discard *discards_pop(struct discards *d)
{
    struct uva__link *link;

    uva__lock_take(&d->lock);
    link = uva__list_pop(&d->locked.queue);
    if (link == NULL)
        d->locked.running = false;
    uva__lock_drop(&d->lock);
    return link != NULL ? uva__container_of(link, struct uva__discard, link)
                        : NULL;
}

static void discards_run_all(struct discards *d)
{
    struct uva__discard *item;

    while ((item = discards_pop(d)) != NULL)
        item->run(item);
}

static void discards_run(struct uva_job *job)
{
    struct discards *d = uva__container_of(job, struct discards, job);
    struct uva__rt *rt = d->rt;

    discards_run_all(d);
    uva__rt_job_end(rt);
}

void uva__discard_add(struct uva__rt *rt, struct uva__discard *item)
{
    struct discards *d = discards_of(rt);
    bool begin;

    uva__lock_take(&d->lock);
    uva__list_push(&d->locked.queue, &item->link);
    begin = !d->locked.running;
    d->locked.running = true;
    uva__lock_drop(&d->lock);
    if (!begin)
        return;
    if (uva__rt_job_begin(rt))
        uva__lane_run_uncapped(&rt->jobs, &d->job);
    else
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
