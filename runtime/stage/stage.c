/* SPDX-License-Identifier: Apache-2.0 */
/* The inlet and the source of a stage.
 *
 * Happy path:  start -> the schema is passed on -> (request to the producer
 *              above, its task to the stage)* -> the end -> the inlet is
 *              released, the producer below leaves the source.
 *
 * What can fail: there is no memory for the schema: refused above, and an error
 *              below.
 *
 * On cancel:   passed to the producer above at once; no more tasks come. Where
 *              a stage above uses a device stream of the consumer, the stop
 *              ends when that stage has stopped. */
#include "stage/stage.h"

#include <assert.h>
#include <errno.h>

#include "arrow/metadata.h"
#include "base/memory.h"
#include "stream/slots.h"
#include "uvarrow/arrow.h"

static struct uva__stage *stage_of(struct uva__inlet *inlet)
{
    return uva__container_of(inlet, struct uva__stage, inlet);
}

struct uva__stage *uva__stage_of(struct uva__source *source)
{
    return uva__container_of(source, struct uva__stage, source);
}

/* ---- calls of the inlet -------------------------------------------------- */

int uva__stage_pass_schema(struct uva__stage *stage, struct ArrowSchema *schema)
{
    struct uva__source *source = &stage->source;

    if (uva__source_take_schema(source, stage->inlet.handler.producer,
                                schema) != 0)
        return ENOMEM;
    if (stage->output_type != 0)
        source->device_type = stage->output_type;
    return 0;
}

static int stage_schema(struct uva__inlet *inlet, struct ArrowSchema *schema,
                        struct uva_error *error)
{
    struct uva__stage *stage = stage_of(inlet);

    return stage->ops->schema != NULL ? stage->ops->schema(stage, schema, error)
                                      : uva__stage_pass_schema(stage, schema);
}

static void stage_task(struct uva__inlet *inlet, struct ArrowAsyncTask *task,
                       const char *metadata)
{
    struct uva__stage *stage = stage_of(inlet);

    assert(!stage->source.stopped);
    stage->ops->task(stage, task, metadata);
}

static void stage_news(struct uva__inlet *inlet)
{
    const struct uva__source *source = &stage_of(inlet)->source;

    if (!source->stopped)
        uva__producer_wake_once(source->producer);
}

static void stage_released(struct uva__inlet *inlet)
{
    uva__stage_release(stage_of(inlet));
}

static const struct uva__inlet_ops inlet_ops = {stage_schema, stage_task,
                                                stage_news, stage_released};

/* ---- calls from the producer below -------------------------------------- */

void uva__stage_start(struct uva__source *source)
{
    struct uva__stage *stage = uva__stage_of(source);

    uva__stage_acquire(stage); /* the inlet's */
    uva__inlet_begin(&stage->inlet, source->producer, false);
}

void uva__stage_stop(struct uva__source *source)
{
    struct uva__inlet *inlet = &uva__stage_of(source)->inlet;

    source->ready = 0;
    uva__inlet_quit(inlet);
    uva__inlet_await(inlet, source);
}

const struct uva__source *uva__stage_above(const struct uva__source *source)
{
    return uva__inlet_source(
        &uva__container_of(source, struct uva__stage, source)->inlet);
}

void uva__stage_need(struct uva__source *source)
{
    uva__inlet_need(&uva__stage_of(source)->inlet);
}

void uva__stage_leave(struct uva__source *source)
{
    struct uva__stage *stage = uva__stage_of(source);

    uva__inlet_close(&stage->inlet);
    uva__stage_release(stage);
}

/* ---- batches that are kept ---------------------------------------------- */

bool uva__stage_keep(struct uva__stage *stage, struct uva__kept *kept,
                     struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__source *source = &stage->source;
    struct uva__task *slot = uva__producer_take_task(source->producer);
    struct uva__loose_batch batch = {
        .info = {.ordinal = uva__task_ordinal(task),
                 .bytes = uva__task_bytes(task)}};
    const bool room =
        slot != NULL && uva__metadata_copy(&source->rt->allocator, metadata,
                                           &batch.info.metadata) != ENOMEM;

    if (!room)
        uva__task_drop(task);
    if (room && uva__task_extract_first(task, &batch.array) == 0) {
        uva__task_fill_loose(slot, &batch, NULL);
        uva__kept_push(kept, slot);
        return true;
    }
    uva__metadata_fini(&batch.info.metadata, &source->rt->allocator, NULL);
    if (slot != NULL)
        uva__slots_put_task(source->rt, slot, true);
    return room;
}

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

/* ---- life --------------------------------------------------------------- */

void uva__stage_init(struct uva__stage *stage, const struct uva__stage_ops *ops,
                     const struct uva__wakeup_ops *wakeup_ops,
                     struct uva__producer *above)
{
    uva__source_init(&stage->source, &ops->source, above->rt);
    stage->source.label = uva__label_acquire(above->source->label);
    uva__share_join(&stage->source.share, &above->source->share);
    stage->ops = ops;
    uva__inlet_init(&stage->inlet, &inlet_ops, above);
    stage->source.device_type = stage->output_type != 0
                                    ? stage->output_type
                                    : above->source->device_type;
    uva__wakeup_init(&stage->wakeup, wakeup_ops, 1);
}

void uva__stage_acquire(struct uva__stage *stage)
{
    uva__wakeup_acquire(&stage->wakeup);
}

void uva__stage_release(struct uva__stage *stage)
{
    uva__wakeup_release(&stage->wakeup);
}

void uva__stage_free(struct uva__wakeup *wakeup)
{
    struct uva__stage *stage =
        uva__container_of(wakeup, struct uva__stage, wakeup);
    struct uva__rt *rt = uva__rt_acquire(stage->source.rt);

    uva__inlet_fini(&stage->inlet);
    uva__source_fini(&stage->source);
    stage->ops->free(stage, &rt->allocator);
    uva__rt_release(rt);
}
