/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps tasks until they are over, and takes their slots back. */
#include "stream/outstanding.h"

#include "stream/producer.h"
#include "stream/slots.h"

enum { AGE_MAX = 64 };

static struct uva__task *task_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva__task, link);
}

/* Takes a slot back that is over, and the error of a failed extraction. */
static void outstanding_end(struct uva__outstanding *o, struct uva__task *task)
{
    const enum uva__task_state state = uva__task_state(task);
    struct uva__rt *rt = task->producer->rt;

    if (state == UVA__TASK_FAILED && o->failure->code == 0)
        uva__failure_set(o->failure, &rt->allocator, task->failed.code,
                         task->failed.error, NULL);
    o->count--;
    o->dropped -= task->dropped;
    task->dropped = false;
    if (state != UVA__TASK_ORPHANED)
        uva__slots_put_task(rt, task, true);
}

/* Takes back all slots at the head with a batch that was extracted: they stay
 * linked, and go back together. */
static void outstanding_reap_extracted(struct uva__outstanding *o)
{
    struct uva__list over = o->tasks;
    struct uva__link *link = over.head;
    size_t count = 0;

    for (; link != NULL && uva__task_state(task_of(link)) == UVA__TASK_DONE;
         link = link->next) {
        assert(!task_of(link)->dropped);
        uva__task_clear(task_of(link), &task_of(link)->producer->rt->allocator);
        over.tail = link;
        count++;
    }
    if (count == 0)
        return;
    o->tasks.head = link;
    over.tail->next = NULL;
    o->count -= (int32_t)count;
    o->age = 0;
    uva__slots_put_tasks(task_of(over.head)->producer->rt, &over, count,
                         !o->reuses_slots);
}

void uva__outstanding_reap(struct uva__outstanding *o)
{
    struct uva__link *head;

    for (;;) {
        outstanding_reap_extracted(o);
        head = o->tasks.head;
        if (head == NULL || !uva__task_is_over(task_of(head)))
            return;
        (void)uva__list_pop(&o->tasks);
        outstanding_end(o, task_of(head));
        o->age = 0;
    }
}

void uva__outstanding_reap_all(struct uva__outstanding *o)
{
    struct uva__list still = {0};
    struct uva__link *link;

    while ((link = uva__list_pop(&o->tasks)) != NULL)
        if (uva__task_is_over(task_of(link)))
            outstanding_end(o, task_of(link));
        else
            uva__list_push(&still, link);
    o->tasks = still;
    o->age = 0;
}

/* Searches all tasks, if enough events have passed. */
static void outstanding_search(struct uva__outstanding *o)
{
    if (o->age++ > AGE_MAX && o->age > o->count / 2)
        uva__outstanding_reap_all(o);
}

void uva__outstanding_reap_after(struct uva__outstanding *o)
{
    uva__outstanding_reap(o);
    outstanding_search(o);
}

void uva__outstanding_keep(struct uva__outstanding *o, struct uva__task *task)
{
    uva__list_push(&o->tasks, &task->link);
    o->count++;
    assert(!o->watched); /* tasks are watched only after the last one */
    outstanding_search(o);
}

void uva__outstanding_keep_dropped(struct uva__outstanding *o,
                                   struct uva__task *task)
{
    task->dropped = true;
    o->dropped++;
    uva__outstanding_keep(o, task);
}

void uva__outstanding_watch(struct uva__outstanding *o,
                            struct uva__wakeup *wakeup)
{
    struct uva__link *link;

    if (o->watched)
        return;
    o->watched = true;
    for (link = o->tasks.head; link != NULL; link = link->next) {
        uva__wakeup_acquire(wakeup);
        if (!uva__task_state_notify(&task_of(link)->state))
            uva__wakeup_release(wakeup);
    }
}

int64_t uva__outstanding_take_back(struct uva__outstanding *o,
                                   bool (*take_back)(struct uva__task *task))
{
    struct uva__link *link, *next;
    int64_t count = 0;

    for (link = o->tasks.head; link != NULL; link = next) {
        next = link->next; /* the task may be gone after the next call */
        count += take_back(task_of(link));
    }
    return count;
}
