/* SPDX-License-Identifier: Apache-2.0 */
/* Slots are reused from the oldest on. One that is held for long steps aside,
 * so that it does not hold up those behind it; no other count of tasks exists.
 */
#include "stream/offered.h"

#include <assert.h>

#include "stream/stock.h"

enum { HEAD_AGE_MAX = 64 };

void uva__offered_put(struct uva__producer *p, struct uva__task *task)
{
    uva__task_clear(task, &p->hub->allocator);
    uva__stock_put_task(p->hub, task);
}

/* Nobody else writes this one, so nothing need be locked for it. */
static void offered_count(struct uva__producer *p, int change)
{
    struct uva__word *held = &p->hub->counts.tasks_held;

    uva__word_store(held, uva__word_peek(held) + (uint64_t)(int64_t)change);
}

/* The loop learns here why an extraction failed. */
static void offered_end(struct uva__producer *p, struct uva__task *task)
{
    if (uva__task_state(task) == UVA__TASK_FAILED && p->loop.urgent.code == 0) {
        uva__failure_set(&p->loop.urgent, &p->hub->allocator, task->failed.code,
                         task->failed.error, NULL);
        uva__producer_note_urgent(&p->loop.state, p->loop.urgent.code);
    }
    p->loop.out_count--;
    p->loop.dropped_count -= task->dropped;
    task->dropped = false;
    offered_count(p, -1);
    uva__offered_put(p, task);
}

static struct uva__task *offered_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva__task, link);
}

static void offered_reap_aside(struct uva__producer *p)
{
    struct uva__list still = {0};
    struct uva__link *link;

    while ((link = uva__list_pop(&p->loop.aside)) != NULL)
        if (uva__task_is_over(offered_of(link)))
            offered_end(p, offered_of(link));
        else
            uva__list_push(&still, link);
    p->loop.aside = still;
}

void uva__offered_reap(struct uva__producer *p)
{
    struct uva__link *head;

    while ((head = p->loop.out.head) != NULL) {
        if (uva__task_is_over(offered_of(head))) {
            (void)uva__list_pop(&p->loop.out);
            offered_end(p, offered_of(head));
        } else if (p->loop.head_age > HEAD_AGE_MAX) {
            (void)uva__list_pop(&p->loop.out);
            uva__list_push(&p->loop.aside, head);
        } else {
            return;
        }
        p->loop.head_age = 0;
    }
}

/* Whoever settles the task will tell us, unless it is settled already. */
static void offered_watch_one(struct uva__producer *p, struct uva__task *task)
{
    uva__producer_acquire(p);
    if (!uva__task_watch(task))
        uva__producer_release(p);
}

void uva__offered_keep(struct uva__producer *p, struct uva__task *task)
{
    uva__list_push(&p->loop.out, &task->link);
    p->loop.out_count++;
    offered_count(p, 1);
    assert(!p->loop.watching); /* that is for the end */
    if (p->loop.head_age++ <= HEAD_AGE_MAX)
        return;
    uva__offered_reap(p);
    offered_reap_aside(p);
}

void uva__offered_drop(struct uva__producer *p, struct uva__task *task)
{
    task->dropped = true;
    p->loop.dropped_count++;
    uva__offered_keep(p, task);
}

int64_t uva__offered_unsettled(const struct uva__producer *p)
{
    return p->lazy ? p->loop.out_count - p->loop.dropped_count : 0;
}

void uva__offered_watch(struct uva__producer *p)
{
    struct uva__link *link;

    if (p->loop.watching)
        return;
    p->loop.watching = true;
    uva__list_append(&p->loop.out, &p->loop.aside);
    for (link = p->loop.out.head; link != NULL; link = link->next)
        offered_watch_one(p, offered_of(link));
}

void uva__offered_reap_all(struct uva__producer *p)
{
    uva__list_append(&p->loop.aside, &p->loop.out);
    offered_reap_aside(p);
}

void uva__offered_reclaim(struct uva__producer *p)
{
    struct uva__link *link;

    for (link = p->loop.out.head; link != NULL; link = link->next)
        uva__task_reclaim(offered_of(link));
    for (link = p->loop.aside.head; link != NULL; link = link->next)
        uva__task_reclaim(offered_of(link));
}

void uva__offered_lapse(struct uva__producer *p)
{
    struct uva__link *link, *next;

    uva__list_append(&p->loop.out, &p->loop.aside);
    for (link = p->loop.out.head; link != NULL; link = next) {
        next = link->next; /* the task may be gone with what follows */
        uva__task_lapse(offered_of(link));
    }
}
