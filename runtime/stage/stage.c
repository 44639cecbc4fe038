/* SPDX-License-Identifier: Apache-2.0 */
/* The handler and the source of a stage.
 *
 * Happy path:  start -> on_schema is relayed -> (request to the producer above,
 *              its task to the stage)* -> the end is noted -> the producer
 *              above releases the handler, the producer below leaves the
 *              source.
 *
 * What can fail: there is no memory for the schema: refused above, and an error
 *              below.
 *
 * On cancel:   passed to the producer above at once; tasks that still come are
 *              discarded. Where a stage above uses a device stream of the
 *              consumer's, the stop ends when that one has. */
#include "stage/stage.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "arrow/metadata.h"
#include "base/memory.h"
#include "stream/handler_base.h"
#include "stream/slots.h"
#include "uvarrow/arrow.h"

static struct uva__stage *
stage_at(struct ArrowAsyncDeviceStreamHandler *handler)
{
    return uva__container_of(handler, struct uva__stage, handler);
}

struct uva__stage *uva__stage_of(struct uva__source *source)
{
    return uva__container_of(source, struct uva__stage, source);
}

/* ---- calls from the producer above -------------------------------------- */

static int stage_on_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                           struct ArrowSchema *schema)
{
    struct uva__stage *stage = stage_at(handler);
    struct uva__source *source = &stage->source;
    const struct ArrowAsyncProducer *above = handler->producer;

    assert(!stage->source.stopped); /* or the producer above was cancelled */
    if (uva__metadata_copy(&source->rt->allocator, above->additional_metadata,
                           &source->metadata) == ENOMEM) {
        uva__failure_set(&stage->failure, &source->rt->allocator, ENOMEM, NULL,
                         NULL);
        return ENOMEM;
    }
    uva_schema_move(schema, &source->schema);
    source->device_type =
        stage->output_type != 0 ? stage->output_type : above->device_type;
    source->schema_known = true;
    uva__producer_wake(source->producer);
    return 0;
}

static int stage_on_task(struct ArrowAsyncDeviceStreamHandler *handler,
                         struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__stage *stage = stage_at(handler);

    assert(!stage->source.stopped);
    if (task == NULL)
        stage->ended = true;
    else
        stage->ops->task(stage, task, metadata);
    uva__producer_wake_once(stage->source.producer);
    return 0;
}

static void stage_on_error(struct ArrowAsyncDeviceStreamHandler *handler,
                           int code, const char *message, const char *metadata)
{
    struct uva__stage *stage = stage_at(handler);

    uva__handler_base_keep_error(&stage->failure, stage->above, code, message,
                                 metadata);
    if (!stage->source.stopped)
        uva__producer_wake(stage->source.producer);
}

static void stage_on_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct uva__stage *stage = stage_at(handler);
    struct uva_error error;
    int code;

    uva__handler_base_mark_released(handler);
    stage->above = NULL;
    stage->released = true;
    if (!stage->ended && stage->failure.code == 0) {
        code = uva__handler_base_ended_silently(&error);
        uva__failure_set(&stage->failure, &stage->source.rt->allocator, code,
                         &error, NULL);
    }
    if (!stage->source.stopped)
        uva__producer_wake(stage->source.producer);
    if (stage->stop_waits)
        uva__producer_end_stop(stage->source.producer);
    uva__stage_release(stage);
}

/* ---- calls from the producer below -------------------------------------- */

void uva__stage_start(struct uva__source *source)
{
    struct uva__stage *stage = uva__stage_of(source);

    stage->started = true;
    uva__stage_acquire(stage); /* the handler's */
    uva__producer_begin_above(stage->above, &stage->handler, source->producer,
                              false);
}

void uva__stage_request(struct uva__stage *stage, int64_t n)
{
    struct ArrowAsyncProducer *producer = stage->handler.producer;

    if (!stage->ended && !stage->released && stage->failure.code == 0)
        producer->request(producer, n);
}

void uva__stage_fail_extraction(struct uva__stage *stage, int code)
{
    struct uva__source *source = &stage->source;
    const bool cut_off = uva__handler_base_has_ended_silently(&stage->failure);

    if (stage->failure.code != 0 && !cut_off)
        uva__failure_move(&stage->failure, &source->failure,
                          &source->rt->allocator);
    else if (cut_off || stage->released)
        uva__failure_set(&source->failure, &source->rt->allocator, code, NULL,
                         NULL);
}

void uva__stage_quit(struct uva__stage *stage)
{
    assert(stage->started);
    if (stage->released || stage->quit)
        return;
    stage->quit = true;
    uva__producer_quit(stage->above, stage->handler.producer);
}

/* The producer above releases the handler in a later turn, when no call of a
 * driver's uses the device stream any more. */
void uva__stage_stop(struct uva__source *source)
{
    struct uva__stage *stage = uva__stage_of(source);

    source->ready = 0;
    uva__stage_quit(stage);
    stage->stop_waits =
        stage->above != NULL && uva__source_uses_stream(stage->above->source);
    source->stopping += stage->stop_waits;
}

const struct uva__source *uva__stage_above(const struct uva__source *source)
{
    const struct uva__stage *stage =
        uva__container_of(source, struct uva__stage, source);

    return stage->above != NULL ? stage->above->source : NULL;
}

void uva__stage_need(struct uva__source *source)
{
    const struct uva__stage *stage = uva__stage_of(source);

    if (stage->above != NULL)
        uva__producer_need(stage->above);
}

void uva__stage_leave(struct uva__source *source)
{
    struct uva__stage *stage = uva__stage_of(source);

    if (!stage->started)
        uva__producer_release(stage->above);
    uva__stage_release(stage);
}

void uva__stage_restart(struct uva__stage *stage, struct uva__producer *above)
{
    assert(stage->released && !stage->ended);
    stage->above = above;
    stage->released = stage->quit = false;
    uva__failure_fini(&stage->failure, &stage->source.rt->allocator);
    uva__stage_start(&stage->source);
}

/* ---- batches that are kept ---------------------------------------------- */

static void slot_put(struct uva__stage *stage, struct uva__task *slot)
{
    uva__task_clear(slot, &stage->source.rt->allocator);
    uva__slots_put_task(stage->source.rt, slot);
}

bool uva__stage_keep(struct uva__stage *stage, struct uva__kept *kept,
                     struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__source *source = &stage->source;
    struct uva__task *slot = uva__producer_take_task(source->producer);
    struct uva__entry batch = {.info = {.ordinal = uva__task_ordinal(task),
                                        .bytes = uva__task_bytes(task)}};
    const bool room =
        slot != NULL && uva__metadata_copy(&source->rt->allocator, metadata,
                                           &batch.info.metadata) != ENOMEM;

    if (!room)
        uva__task_drop(task);
    if (room && uva__task_extract_first(task, &batch.array) == 0) {
        uva__task_fill_entry(slot, &batch, NULL);
        uva__kept_push(kept, slot);
        return true;
    }
    uva__metadata_fini(&batch.info.metadata, &source->rt->allocator, NULL);
    if (slot != NULL)
        slot_put(stage, slot);
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
    stage->above = above;
    stage->handler.on_schema = stage_on_schema;
    stage->handler.on_next_task = stage_on_task;
    stage->handler.on_error = stage_on_error;
    stage->handler.release = stage_on_release;
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

    uva__failure_fini(&stage->failure, &rt->allocator);
    uva__source_fini(&stage->source);
    stage->ops->free(stage, &rt->allocator);
    uva__rt_release(rt);
}
