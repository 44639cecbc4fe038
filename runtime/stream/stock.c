/* SPDX-License-Identifier: Apache-2.0 */
/* Slots are the loop's alone. Producers are made by builders on any thread, so
 * their memory is under a lock.
 *
 * On close:    producers that wait only for others to extract are let go of;
 *              the memory itself goes with the hub. */
#include "stream/stock.h"

#include "check/handler_check.h"
#include "core/memory.h"
#include "stream/producer.h"
#include "uv/turn.h"

enum {
    TASKS_REST = 256, /* R05: a stale token must not hit its slot soon */
    TASKS_MOST = 512, /* what goes round stays in a near cache */
    TASKS_STEP = 64,
    PRODUCERS_REST = 4096, /* R19: nor a late request somebody else's stream */
    PRODUCERS_STEP = 8,
    CHECKS_REST = 256,
    BUCKETS = 128
};

static const uint64_t REST_NS = 1000000000;

struct stock {
    struct uva__annex annex;         /* how the hub frees it */
    struct uva__hub *hub;            /* borrows: whose it is */
    struct uva__quarantine *yard;    /* owns: of checks; or NULL */
    struct uva__slab tasks;          /* loop only */
    struct uva__producer *lingering; /* loop only; borrows */

    struct uva__lock lock;
    struct {
        struct uva__slab producers;
        struct uva__driven *driven[BUCKETS]; /* borrows */
        struct uva__list dust;               /* tasks to be swept */
        bool sweeping;                       /* the job is under way */
    } locked;
    struct uva_job sweep;
};

/* ---- life --------------------------------------------------------------- */

/* Tasks that settled after the loop had let go still have their texts. */
static void task_clear(void *block, void *ctx)
{
    uva__task_clear(block, ctx);
}

static void stock_free(struct uva__hub *hub, struct uva__annex *annex)
{
    struct stock *stock = uva__container_of(annex, struct stock, annex);

    if (stock->yard != NULL) {
        uva__quarantine_close(stock->yard);
        uva__quarantine_release(stock->yard);
    }
    uva__slab_each(&stock->tasks, task_clear, &hub->allocator);
    uva__slab_fini(&stock->tasks);
    uva__slab_fini(&stock->locked.producers);
    uva__memory_free(&hub->allocator, stock, sizeof(*stock));
}

static void stock_detach(struct uva__hub *hub, struct uva__annex *annex)
{
    struct stock *stock = uva__container_of(annex, struct stock, annex);
    struct uva__producer *p = stock->lingering, *next;

    (void)hub;
    if (stock->yard != NULL)
        uva__quarantine_close(stock->yard);
    stock->lingering = NULL;
    for (; p != NULL; p = next) {
        next = p->loop.next;
        uva__producer_let_go(p);
    }
}

static void sweep_run(struct uva_job *job);

static struct uva__annex *stock_new(struct uva__hub *hub)
{
    const struct uva_allocator *allocator = &hub->allocator;
    struct stock *stock = uva__memory_new(allocator, sizeof(*stock));

    if (stock == NULL)
        return NULL;
    if (hub->checked && uva__handler_check_quarantine(allocator, CHECKS_REST,
                                                      &stock->yard) != 0) {
        uva__memory_free(allocator, stock, sizeof(*stock));
        return NULL;
    }
    stock->annex.free = stock_free;
    stock->annex.detach = stock_detach;
    stock->hub = hub;
    stock->sweep.run = sweep_run;
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
    struct uva__annex *annex = uva__hub_annex(hub, stock_new);

    return annex != NULL ? uva__container_of(annex, struct stock, annex) : NULL;
}

/* The same on the way of every batch: it is there, as there is a stream. */
static struct stock *stock_there(const struct uva__hub *hub)
{
    return uva__container_of(uva__shared_load(&hub->annex), struct stock,
                             annex);
}

int uva__stock_ensure(struct uva__hub *hub)
{
    return stock_of(hub) != NULL ? 0 : ENOMEM;
}

struct uva__quarantine *uva__stock_yard(struct uva__hub *hub)
{
    return stock_of(hub)->yard;
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

/* Whether nobody can mean the stream that it was before. */
static bool producer_is_rested(const void *block)
{
    const struct uva__producer *p = block;

    /* not covered: no test runs for as long as they rest */
    return uva__word_load(&p->refs) == 0 &&
           uva__word_load(&p->node.posted) == 0 &&
           uva__turn_now() - p->retired_ns >= REST_NS;
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

    p->retired_ns = uva__turn_now();
    uva__lock_take(&stock->lock);
    uva__slab_put(&stock->locked.producers, p);
    uva__lock_drop(&stock->lock);
}

/* ---- the sweeper -------------------------------------------------------- */

static struct uva__task *dust_pop(struct stock *stock)
{
    struct uva__link *link;

    uva__lock_take(&stock->lock);
    link = uva__list_pop(&stock->locked.dust);
    if (link == NULL)
        stock->locked.sweeping = false;
    uva__lock_drop(&stock->lock);
    return link != NULL ? uva__container_of(link, struct uva__task, dust)
                        : NULL;
}

/* Runs on a guest thread: what is discarded is a stranger's. */
static void sweep_all(struct stock *stock)
{
    struct uva__task *task;
    struct uva__lazy lazy;

    while ((task = dust_pop(stock)) != NULL) {
        lazy = task->lazy;
        (void)lazy.extract(lazy.ctx, lazy.item, NULL, NULL);
        uva__task_swept(task);
    }
}

static void sweep_run(struct uva_job *job)
{
    struct stock *stock = uva__container_of(job, struct stock, sweep);
    struct uva__hub *hub = stock->hub;

    sweep_all(stock);
    uva__hub_job_end(hub);
}

void uva__stock_sweep(struct uva__hub *hub, struct uva__task *task)
{
    struct stock *stock = stock_of(hub);
    bool begin;

    uva__lock_take(&stock->lock);
    uva__list_push(&stock->locked.dust, &task->dust);
    begin = !stock->locked.sweeping;
    stock->locked.sweeping = true;
    uva__lock_drop(&stock->lock);
    if (!begin)
        return;
    if (uva__hub_job_begin(hub)) /* not covered: the same, see below */
        uva__guest_run(&hub->jobs, &stock->sweep);
    else /* not covered: the workers have gone, and a consumer still has it */
        sweep_all(stock);
}

/* ---- handlers ----------------------------------------------------------- */

static struct uva__driven **bucket_of(struct stock *stock, const void *handler)
{
    return &stock->locked.driven[((uintptr_t)handler >> 4) % BUCKETS];
}

bool uva__stock_drive(struct uva__hub *hub, struct uva__driven *driven)
{
    struct stock *stock = stock_of(hub);
    struct uva__driven **bucket = bucket_of(stock, driven->handler), *other;

    uva__lock_take(&stock->lock);
    for (other = *bucket; other != NULL; other = other->next)
        if (other->handler == driven->handler)
            break;
    if (other == NULL) {
        driven->next = *bucket;
        *bucket = driven;
    }
    uva__lock_drop(&stock->lock);
    return other == NULL;
}

void uva__stock_undrive(struct uva__hub *hub, struct uva__driven *driven)
{
    struct stock *stock = stock_of(hub);
    struct uva__driven **at = bucket_of(stock, driven->handler);

    uva__lock_take(&stock->lock);
    while (*at != driven)
        at = &(*at)->next;
    *at = driven->next;
    uva__lock_drop(&stock->lock);
}

/* ---- those that linger -------------------------------------------------- */

void uva__stock_linger(struct uva__hub *hub, struct uva__producer *p)
{
    struct stock *stock = stock_of(hub);

    p->loop.before = NULL;
    p->loop.next = stock->lingering;
    if (stock->lingering != NULL)
        stock->lingering->loop.before = p;
    stock->lingering = p;
}

void uva__stock_unlinger(struct uva__hub *hub, struct uva__producer *p)
{
    if (p->loop.before != NULL)
        p->loop.before->loop.next = p->loop.next;
    else
        stock_of(hub)->lingering = p->loop.next;
    if (p->loop.next != NULL)
        p->loop.next->loop.before = p->loop.before;
}
