/* SPDX-License-Identifier: Apache-2.0 */
/* Gives and takes back the memory of tasks, producers and handlers. Any thread
 * takes slots, under a lock. The loop thread has its own slots of tasks,
 * without a lock: slots in quarantine, which it uses in turn, and slots that
 * need no quarantine, of which it uses the latest first. All tasks come back to
 * it, and surplus slots go to the other threads.
 *
 * On close:    the memory stays until the rt is freed. */
#include "stream/slots.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stream/producer.h"
#include "uvarrow/arrow.h"

enum {
    TASKS_QUARANTINE = 256, /* before a stale token meets its slot in use */
    TASKS_STEP = 64,
    EMPTY_STEP = 4,              /* slots that another thread takes at once */
    PRODUCERS_QUARANTINE = 4096, /* as a consumer may request late */
    PRODUCERS_STEP = 8,
    HANDLERS_QUARANTINE = 1024, /* as a producer may call late */
    HANDLERS_STEP = 4
};

static const uint64_t QUARANTINE_NS = 1000000000;

struct slots {
    struct uva__rt_data data; /* first: how the rt frees it */
    struct uva__slab tasks; /* loop only; the chunks belong to the one below */
    struct uva__list reusable; /* loop only: tasks without a quarantine, the
                                  latest first */
    size_t reusable_count;     /* in that */

    struct uva__lock lock;
    struct {
        struct uva__slab tasks; /* for all threads */
        struct uva__slab producers;
        struct uva__slab loops;    /* the rest of producers that are not over */
        struct uva__slab handlers; /* of the size of the first one taken */
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
    struct slots *slots = uva__container_of(data, struct slots, data);

    uva__slab_each(&slots->locked.tasks, task_clear, &rt->allocator);
    uva__slab_fini(&slots->locked.tasks);
    uva__slab_fini(&slots->locked.producers);
    uva__slab_fini(&slots->locked.loops);
    uva__slab_fini(&slots->locked.handlers);
    uva__memory_free(&rt->allocator, slots, sizeof(*slots));
}

static struct uva__rt_data *slots_new(struct uva__rt *rt)
{
    const struct uva_allocator *allocator = &rt->allocator;
    struct slots *slots = uva__memory_new(allocator, sizeof(*slots));

    if (slots == NULL)
        return NULL;
    slots->data.free = slots_free;
    slots->tasks = (struct uva__slab){
        .allocator = allocator,
        .size = sizeof(struct uva__task),
        .align = sizeof(struct uva__task),
        .link_offset = offsetof(struct uva__task, link),
        .rest = TASKS_QUARANTINE,
        .step = TASKS_STEP,
    };
    slots->locked.tasks = slots->tasks;
    slots->locked.producers = (struct uva__slab){
        .allocator = allocator,
        .size = (sizeof(struct uva__producer) + 63) / 64 * 64,
        .align = 64,
        .link_offset = offsetof(struct uva__producer, in_quarantine),
        .rest = PRODUCERS_QUARANTINE,
        .step = PRODUCERS_STEP,
    };
    slots->locked.loops = (struct uva__slab){
        .allocator = allocator,
        .size = sizeof(struct uva__producer_loop),
        .align = _Alignof(struct uva__producer_loop),
        .link_offset = offsetof(struct uva__producer_loop, link),
        .step = PRODUCERS_STEP,
    };
    slots->locked.handlers = (struct uva__slab){
        .allocator = allocator,
        .align = 64,
        .link_offset = offsetof(struct uva__handler_slot, in_quarantine),
        .rest = HANDLERS_QUARANTINE,
        .step = HANDLERS_STEP,
    };
    return &slots->data;
}

static struct slots *slots_of(struct uva__rt *rt)
{
    struct uva__rt_data *data =
        uva__rt_get_data(rt, UVA__RT_DATA_SLOTS, slots_new);

    return data != NULL ? uva__container_of(data, struct slots, data) : NULL;
}

/* For the path of every batch: cannot be NULL while a stream exists. */
static struct slots *slots_existing(const struct uva__rt *rt)
{
    return uva__container_of(
        uva__atomic_ptr_load(&rt->data[UVA__RT_DATA_SLOTS]), struct slots,
        data);
}

int uva__slots_ensure(struct uva__rt *rt)
{
    return slots_of(rt) != NULL ? 0 : ENOMEM;
}

/* ---- memory ------------------------------------------------------------- */

/* Not inline, as most slots are taken without it. */
__attribute__((noinline)) bool
uva__slots_fetch_tasks(struct uva__rt *rt, struct uva__list *out, size_t count)
{
    struct slots *slots = slots_existing(rt);
    struct slab_chunk *chunk = NULL;

    do {
        uva__lock_take(&slots->lock);
        if (chunk != NULL)
            uva__slab_add(&slots->locked.tasks, chunk);
        uva__slab_take_fresh(&slots->locked.tasks, out, count);
        uva__lock_drop(&slots->lock);
        if (!uva__list_is_empty(out))
            return true;
        chunk = uva__slab_fetch(&slots->locked.tasks);
    } while (chunk != NULL);
    return false;
}

struct uva__task *uva__slots_take_task(struct uva__rt *rt)
{
    struct slots *slots = slots_existing(rt);
    struct uva__link *link = uva__list_pop(&slots->reusable);
    struct uva__task *task;

    if (link != NULL) {
        slots->reusable_count--;
        return uva__container_of(link, struct uva__task, link);
    }
    task = uva__slab_take(&slots->tasks, NULL);
    if (task == NULL &&
        uva__slots_fetch_tasks(rt, &slots->tasks.fresh, TASKS_STEP / 2))
        task = uva__slab_take(&slots->tasks, NULL);
    return task;
}

void uva__slots_put_task(struct uva__rt *rt, struct uva__task *task, bool rests)
{
    struct slots *slots = slots_existing(rt);

    uva__task_clear(task, &rt->allocator);
    if (rests) {
        uva__slab_put(&slots->tasks, task);
        return;
    }
    uva__list_push_front(&slots->reusable, &task->link);
    slots->reusable_count++;
}

void uva__slots_put_tasks(struct uva__rt *rt, struct uva__list *tasks,
                          size_t count, bool rests)
{
    struct slots *slots = slots_existing(rt);

    if (rests) {
        uva__slab_put_list(&slots->tasks, tasks, count);
        return;
    }
    uva__list_prepend(&slots->reusable, tasks);
    slots->reusable_count += count;
}

void uva__slots_end_task(struct uva__rt *rt, struct uva__list *empty,
                         struct uva__task *task)
{
    if (empty == NULL) {
        uva__slots_put_task(rt, task, false);
        return;
    }
    uva__task_clear(task, &rt->allocator);
    uva__list_push_front(empty, &task->link);
}

struct uva__task *uva__slots_new_task(struct uva__rt *rt,
                                      struct uva__list *empty,
                                      const char *metadata)
{
    struct uva__task *task = NULL;

    if (empty == NULL)
        task = uva__slots_take_task(rt);
    else if (!uva__list_is_empty(empty) ||
             uva__slots_fetch_tasks(rt, empty, EMPTY_STEP))
        task = uva__container_of(uva__list_pop(empty), struct uva__task, link);
    if (task == NULL ||
        uva__task_take_metadata(task, &rt->allocator, metadata) == 0)
        return task;
    uva__slots_end_task(rt, empty, task);
    return NULL;
}

void uva__slots_return_tasks(struct uva__rt *rt, struct uva__list *tasks)
{
    struct slots *slots = slots_existing(rt);

    uva__lock_take(&slots->lock);
    uva__slab_put_fresh(&slots->locked.tasks, tasks);
    uva__lock_drop(&slots->lock);
}

void uva__slots_discard_tasks(struct uva__rt *rt, struct uva__list *tasks)
{
    struct uva__link *link = tasks->head;
    struct uva__task *task;

    for (; link != NULL; link = link->next) {
        task = uva__container_of(link, struct uva__task, link);
        uva_array_release(&task->array);
        uva__task_clear(task, &rt->allocator);
    }
    if (!uva__list_is_empty(tasks))
        uva__slots_return_tasks(rt, tasks);
}

void uva__slots_trim_tasks(struct uva__rt *rt)
{
    struct slots *slots = slots_existing(rt);
    const bool spills = uva__slab_has_surplus(&slots->tasks),
               gives = slots->reusable_count >= TASKS_STEP;

    if (!spills && !gives)
        return;
    uva__lock_take(&slots->lock);
    if (spills)
        uva__slab_move_surplus(&slots->tasks, &slots->locked.tasks);
    if (gives)
        uva__slab_put_fresh(&slots->locked.tasks, &slots->reusable);
    uva__lock_drop(&slots->lock);
    if (gives)
        slots->reusable_count = 0;
}

/* Whether the quarantine has elapsed for late calls to the old producer. */
static bool producer_is_reusable(const void *block)
{
    const struct uva__producer *p = block;

    return uva__atomic64_load(&p->wakeup.refs) == 0 &&
           uva__atomic64_load(&p->wakeup.posted) == 0 &&
           uva__clock_ns() - p->retired_ns >= QUARANTINE_NS;
}

static bool handler_is_reusable(const void *block)
{
    const struct uva__handler_slot *handler = block;

    return uva__clock_ns() - handler->retired_ns >= QUARANTINE_NS;
}

static void *slots_take(struct slots *slots, struct uva__slab *slab,
                        bool (*reusable)(const void *block))
{
    struct slab_chunk *chunk = NULL;
    void *block;

    do {
        uva__lock_take(&slots->lock);
        if (chunk != NULL)
            uva__slab_add(slab, chunk);
        block = uva__slab_take(slab, reusable);
        uva__lock_drop(&slots->lock);
        if (block != NULL)
            return block;
        chunk = uva__slab_fetch(slab);
    } while (chunk != NULL);
    return NULL;
}

static void slots_put(struct slots *slots, struct uva__slab *slab, void *block)
{
    uva__lock_take(&slots->lock);
    uva__slab_put(slab, block);
    uva__lock_drop(&slots->lock);
}

struct uva__producer *uva__slots_take_producer(struct uva__rt *rt)
{
    struct slots *slots = slots_of(rt);
    struct uva__producer_loop *loop;
    struct uva__producer *p;

    if (slots == NULL)
        return NULL;
    loop = slots_take(slots, &slots->locked.loops, NULL);
    if (loop == NULL)
        return NULL;
    p = slots_take(slots, &slots->locked.producers, producer_is_reusable);
    if (p == NULL) {
        slots_put(slots, &slots->locked.loops, loop);
        return NULL;
    }
    memset(loop, 0, sizeof(*loop));
    loop->producer = p;
    p->loop = loop;
    return p;
}

struct uva__handler_slot *uva__slots_take_handler(struct uva__rt *rt,
                                                  size_t size)
{
    struct slots *slots = slots_existing(rt);
    struct uva__slab *slab = &slots->locked.handlers;

    uva__lock_take(&slots->lock);
    if (slab->size == 0)
        slab->size = (size + slab->align - 1) / slab->align * slab->align;
    uva__lock_drop(&slots->lock);
    return slots_take(slots, slab, handler_is_reusable);
}

void uva__slots_put_producer(struct uva__rt *rt, struct uva__producer *p)
{
    struct slots *slots = slots_existing(rt);
    struct uva__producer_loop *loop = p->loop;

    p->loop = NULL;
    p->retired_ns = uva__clock_ns();
    slots_put(slots, &slots->locked.loops, loop);
    slots_put(slots, &slots->locked.producers, p);
}

void uva__slots_put_handler(struct uva__rt *rt,
                            struct uva__handler_slot *handler)
{
    struct slots *slots = slots_existing(rt);

    handler->retired_ns = uva__clock_ns();
    slots_put(slots, &slots->locked.handlers, handler);
}
