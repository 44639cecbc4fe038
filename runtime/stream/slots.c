/* SPDX-License-Identifier: Apache-2.0 */
/* Only the loop thread takes and puts tasks. Producers are made by builders on
 * any thread, so a lock guards their slots.
 *
 * On close:    the memory stays until the hub is freed. */
#include "stream/slots.h"

#include "base/clock.h"
#include "base/memory.h"
#include "stream/producer.h"

enum {
    TASKS_REST = 256, /* a stale token must not meet its slot in use again */
    TASKS_MOST = 512, /* slots that go round stay in the cache */
    TASKS_STEP = 64,
    PRODUCERS_REST = 4096, /* a late request must not reach another stream */
    PRODUCERS_STEP = 8
};

static const uint64_t REST_NS = 1000000000;

struct stock {
    struct uva__annex annex; /* first: how the hub frees it */
    struct uva__slab tasks;  /* loop only */

    struct uva__lock lock;
    struct {
        struct uva__slab producers;
    } locked;
};

/* ---- life --------------------------------------------------------------- */

/* A task that settled after the loop detached still owns its error. */
static void task_clear(void *block, void *ctx)
{
    uva__task_clear(block, ctx);
}

static void stock_free(struct uva__hub *hub, struct uva__annex *annex)
{
    struct stock *stock = uva__container_of(annex, struct stock, annex);

    uva__slab_each(&stock->tasks, task_clear, &hub->allocator);
    uva__slab_fini(&stock->tasks);
    uva__slab_fini(&stock->locked.producers);
    uva__memory_free(&hub->allocator, stock, sizeof(*stock));
}

static struct uva__annex *stock_new(struct uva__hub *hub)
{
    const struct uva_allocator *allocator = &hub->allocator;
    struct stock *stock = uva__memory_new(allocator, sizeof(*stock));

    if (stock == NULL)
        return NULL;
    stock->annex.free = stock_free;
    stock->tasks = (struct uva__slab){
        .allocator = allocator,
        .size = sizeof(struct uva__task),
        .align = sizeof(struct uva__task),
        .link_offset = offsetof(struct uva__task, link),
        .rest = TASKS_REST,
        .step = TASKS_STEP,
    };
    stock->locked.producers = (struct uva__slab){
        .allocator = allocator,
        .size = (sizeof(struct uva__producer) + 63) / 64 * 64,
        .align = 64,
        .link_offset = offsetof(struct uva__producer, rest),
        .rest = PRODUCERS_REST,
        .step = PRODUCERS_STEP,
    };
    return &stock->annex;
}

static struct stock *stock_of(struct uva__hub *hub)
{
    struct uva__annex *annex = uva__hub_annex(hub, UVA__ANNEX_SLOTS, stock_new);

    return annex != NULL ? uva__container_of(annex, struct stock, annex) : NULL;
}

/* For the path of every batch: cannot be NULL while a stream exists. */
static struct stock *stock_there(const struct uva__hub *hub)
{
    return uva__container_of(uva__shared_load(&hub->annex[UVA__ANNEX_SLOTS]),
                             struct stock, annex);
}

int uva__stock_ensure(struct uva__hub *hub)
{
    return stock_of(hub) != NULL ? 0 : ENOMEM;
}

/* ---- memory ------------------------------------------------------------- */

struct uva__task *uva__stock_take_task(struct uva__hub *hub)
{
    struct uva__slab *slab = &stock_there(hub)->tasks;
    struct uva__task *task = uva__slab_take(slab, NULL);
    struct slab_chunk *chunk;

    if (task != NULL)
        return task;
    chunk = uva__slab_fetch(slab);
    if (chunk == NULL)
        return NULL;
    uva__slab_add(slab, chunk);
    return uva__slab_take(slab, NULL);
}

void uva__stock_put_task(struct uva__hub *hub, struct uva__task *task)
{
    uva__slab_put(&stock_there(hub)->tasks, task);
}

void uva__stock_trim_tasks(struct uva__hub *hub)
{
    uva__slab_trim(&stock_there(hub)->tasks, TASKS_MOST);
}

/* Whether the quarantine has elapsed for late calls to the old producer. */
static bool producer_is_rested(const void *block)
{
    const struct uva__producer *p = block;

    return uva__word_load(&p->node.refs) == 0 &&
           uva__word_load(&p->node.posted) == 0 &&
           uva__clock_ns() - p->retired_ns >= REST_NS;
}

void *uva__stock_take_producer(struct uva__hub *hub)
{
    struct stock *stock = stock_of(hub);
    struct slab_chunk *chunk;
    void *p;

    if (stock == NULL)
        return NULL;
    uva__lock_take(&stock->lock);
    p = uva__slab_take(&stock->locked.producers, producer_is_rested);
    uva__lock_drop(&stock->lock);
    if (p != NULL)
        return p;
    chunk = uva__slab_fetch(&stock->locked.producers);
    if (chunk == NULL)
        return NULL;
    uva__lock_take(&stock->lock);
    uva__slab_add(&stock->locked.producers, chunk);
    p = uva__slab_take(&stock->locked.producers, producer_is_rested);
    uva__lock_drop(&stock->lock);
    return p;
}

void uva__stock_put_producer(struct uva__hub *hub, void *producer)
{
    struct stock *stock = stock_of(hub);
    struct uva__producer *p = producer;

    p->retired_ns = uva__clock_ns();
    uva__lock_take(&stock->lock);
    uva__slab_put(&stock->locked.producers, p);
    uva__lock_drop(&stock->lock);
}
