/* SPDX-License-Identifier: Apache-2.0 */
/* Gives and takes back the memory of tasks and producers. Only the loop thread
 * does so for tasks. Streams are built on any thread, so a lock guards the
 * slots of producers.
 *
 * On close:    the memory stays until the rt is freed. */
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
    struct uva__rt_data data; /* first: how the rt frees it */
    struct uva__slab tasks;   /* loop only */

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

static void slots_free(struct uva__rt *rt, struct uva__rt_data *data)
{
    struct stock *stock = uva__container_of(data, struct stock, data);

    uva__slab_each(&stock->tasks, task_clear, &rt->allocator);
    uva__slab_fini(&stock->tasks);
    uva__slab_fini(&stock->locked.producers);
    uva__memory_free(&rt->allocator, stock, sizeof(*stock));
}

static struct uva__rt_data *slots_new(struct uva__rt *rt)
{
    const struct uva_allocator *allocator = &rt->allocator;
    struct stock *stock = uva__memory_new(allocator, sizeof(*stock));

    if (stock == NULL)
        return NULL;
    stock->data.free = slots_free;
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
    return &stock->data;
}

static struct stock *slots_of(struct uva__rt *rt)
{
    struct uva__rt_data *data =
        uva__rt_get_data(rt, UVA__RT_DATA_SLOTS, slots_new);

    return data != NULL ? uva__container_of(data, struct stock, data) : NULL;
}

/* For the path of every batch: cannot be NULL while a stream exists. */
static struct stock *slots_there(const struct uva__rt *rt)
{
    return uva__container_of(
        uva__atomic_ptr_load(&rt->data[UVA__RT_DATA_SLOTS]), struct stock,
        data);
}

int uva__slots_ensure(struct uva__rt *rt)
{
    return slots_of(rt) != NULL ? 0 : ENOMEM;
}

/* ---- memory ------------------------------------------------------------- */

struct uva__task *uva__slots_take_task(struct uva__rt *rt)
{
    struct uva__slab *slab = &slots_there(rt)->tasks;
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

void uva__slots_put_task(struct uva__rt *rt, struct uva__task *task)
{
    uva__slab_put(&slots_there(rt)->tasks, task);
}

void uva__slots_trim_tasks(struct uva__rt *rt)
{
    uva__slab_trim(&slots_there(rt)->tasks, TASKS_MOST);
}

/* Whether the quarantine has elapsed for late calls to the old producer. */
static bool producer_is_rested(const void *block)
{
    const struct uva__producer *p = block;

    return uva__atomic64_load(&p->wakeup.refs) == 0 &&
           uva__atomic64_load(&p->wakeup.posted) == 0 &&
           uva__clock_ns() - p->retired_ns >= REST_NS;
}

void *uva__slots_take_producer(struct uva__rt *rt)
{
    struct stock *stock = slots_of(rt);
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

void uva__slots_put_producer(struct uva__rt *rt, void *producer)
{
    struct stock *stock = slots_of(rt);
    struct uva__producer *p = producer;

    p->retired_ns = uva__clock_ns();
    uva__lock_take(&stock->lock);
    uva__slab_put(&stock->locked.producers, p);
    uva__lock_drop(&stock->lock);
}
