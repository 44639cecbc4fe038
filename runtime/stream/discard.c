/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  add -> a job begins, unless it runs -> each item is run, without
 *              the lock -> the queue is empty: the job ends.
 *
 * What can fail: the worker threads were released: the items are run by the
 *              thread that adds them.
 *
 * On close:    the job counts the hub, so the queue outlives it. */
#include "stream/discard.h"

#include <errno.h>

#include "base/memory.h"

struct discards {
    struct uva__annex annex; /* first: how the hub frees it */
    struct uva__hub *hub;    /* borrows: the one that owns it */
    struct uva_job job;

    struct uva__lock lock;
    struct {
        struct uva__list queue;
        bool running; /* the job is in flight */
    } locked;
};

static struct discards *discards_of(const struct uva__hub *hub)
{
    return uva__container_of(uva__shared_load(&hub->annex[UVA__ANNEX_DISCARDS]),
                             struct discards, annex);
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
    struct uva__hub *hub = d->hub;

    discards_run_all(d);
    uva__hub_job_end(hub);
}

void uva__discard_add(struct uva__hub *hub, struct uva__discard *item)
{
    struct discards *d = discards_of(hub);
    bool begin;

    uva__lock_take(&d->lock);
    uva__list_push(&d->locked.queue, &item->link);
    begin = !d->locked.running;
    d->locked.running = true;
    uva__lock_drop(&d->lock);
    if (!begin)
        return;
    if (uva__hub_job_begin(hub))
        uva__guest_run(&hub->jobs, &d->job);
    else
        discards_run_all(d);
}

/* ---- life --------------------------------------------------------------- */

static void discards_free(struct uva__hub *hub, struct uva__annex *annex)
{
    struct discards *d = uva__container_of(annex, struct discards, annex);

    uva__memory_free(&hub->allocator, d, sizeof(*d));
}

static struct uva__annex *discards_new(struct uva__hub *hub)
{
    struct discards *d = uva__memory_new(&hub->allocator, sizeof(*d));

    if (d == NULL)
        return NULL;
    d->annex.free = discards_free;
    d->hub = hub;
    d->job.run = discards_run;
    return &d->annex;
}

int uva__discard_ensure(struct uva__hub *hub)
{
    return uva__hub_annex(hub, UVA__ANNEX_DISCARDS, discards_new) != NULL
               ? 0
               : ENOMEM;
}
