/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps batches in slots, and puts them there as they come. */
#include "stream/kept.h"

#include "stream/slots.h"

struct uva__task *uva__kept_pop(struct uva__kept *kept)
{
    struct uva__link *link = uva__list_pop(&kept->tasks);
    struct uva__task *task;

    if (link == NULL)
        return NULL;
    task = uva__container_of(link, struct uva__task, link);
    kept->count--;
    kept->bytes -= task->info.bytes;
    return task;
}

void uva__kept_push(struct uva__kept *kept, struct uva__task *task)
{
    uva__list_push(&kept->tasks, &task->link);
    kept->count++;
    kept->bytes += task->info.bytes;
}

void uva__kept_drop(struct uva__kept *kept, struct uva__source *source)
{
    struct uva__task *task;

    while ((task = uva__kept_pop(kept)) != NULL)
        uva__producer_drop_task(source->producer, task);
}

struct uva__task *uva__kept_take_in(struct uva__inlet *inlet,
                                    struct uva__producer *producer,
                                    struct ArrowAsyncTask *task,
                                    const char *metadata,
                                    enum uva__kept_content content)
{
    struct uva__task *slot = uva__slots_new_task(inlet->rt, NULL, metadata);

    if (slot == NULL) {
        uva__task_drop(task);
        uva__inlet_lose(inlet);
        return NULL;
    }
    slot->producer = producer;
    slot->info.ordinal = uva__task_ordinal(task);
    slot->info.bytes = uva__task_bytes(task);
    slot->measured = uva__task_is_measured(task);
    if (content == UVA__KEPT_PROMISE) {
        slot->promise = *task;
        return slot;
    }
    if (uva__task_extract_first(task, &slot->array) == 0)
        return slot;
    uva__slots_end_task(inlet->rt, NULL, slot);
    return NULL;
}
