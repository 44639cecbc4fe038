/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  start -> on_schema relayed -> (request above, task to the
 * stage)*
 *              -> end noted -> released by the one above; left by the one
 * below.
 *
 * What can fail: no memory for the schema: refused above, failed below.
 *
 * On cancel:   passed up at once; tasks still under way are discarded. */
#include "stage/stage.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "arrow/metadata.h"
#include "stream/handler_base.h"
#include "uvarrow/arrow.h"

static struct uva__operator *
operator_at(struct ArrowAsyncDeviceStreamHandler *handler)
{
    return uva__container_of(handler, struct uva__operator, handler);
}

struct uva__operator *uva__operator_of(struct uva__feed *feed)
{
    return uva__container_of(feed, struct uva__operator, feed);
}

/* ---- what comes from above ---------------------------------------------- */

static int operator_on_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                              struct ArrowSchema *schema)
{
    struct uva__operator *op = operator_at(handler);
    struct uva__feed *feed = &op->feed;
    const struct ArrowAsyncProducer *above = handler->producer;

    assert(!op->stopped); /* the one above was told to quit */
    if (uva__metadata_copy(&feed->hub->allocator, above->additional_metadata,
                           &feed->metadata, &feed->metadata_size) == ENOMEM) {
        uva__failure_set(&op->failure, &feed->hub->allocator, ENOMEM, NULL,
                         NULL);
        return ENOMEM;
    }
    uva_schema_move(schema, &feed->schema);
    feed->device_type = op->becomes != 0 ? op->becomes : above->device_type;
    feed->schema_known = true;
    uva__producer_wake(feed->producer);
    return 0;
}

static int operator_on_task(struct ArrowAsyncDeviceStreamHandler *handler,
                            struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__operator *op = operator_at(handler);

    assert(!op->stopped);
    if (task == NULL)
        op->ended = true;
    else
        op->ops->task(op, task, metadata);
    uva__producer_wake(op->feed.producer);
    return 0;
}

static void operator_on_error(struct ArrowAsyncDeviceStreamHandler *handler,
                              int code, const char *message,
                              const char *metadata)
{
    struct uva__operator *op = operator_at(handler);

    uva__handler_base_keep_error(&op->failure, op->above, code, message,
                                 metadata);
    if (!op->stopped)
        uva__producer_wake(op->feed.producer);
}

static void operator_on_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct uva__operator *op = operator_at(handler);
    struct uva_error error;
    int code;

    uva__handler_base_mark_released(handler);
    op->above = NULL;
    op->released = true;
    if (!op->ended && op->failure.code == 0) {
        code = uva__handler_base_cut_off(&error);
        uva__failure_set(&op->failure, &op->feed.hub->allocator, code, &error,
                         NULL);
    }
    if (!op->stopped)
        uva__producer_wake(op->feed.producer);
    uva__operator_release(op);
}

/* ---- what comes from below ---------------------------------------------- */

void uva__operator_start(struct uva__feed *feed)
{
    struct uva__operator *op = uva__operator_of(feed);
    const struct uva__producer_hooks hooks = {0};

    op->started = true;
    uva__operator_acquire(op); /* the handler's */
    uva__producer_begin_driving(op->above, &op->handler, &hooks);
}

void uva__operator_request(struct uva__operator *op, int64_t n)
{
    struct ArrowAsyncProducer *producer = op->handler.producer;

    if (!op->ended && !op->released && op->failure.code == 0)
        producer->request(producer, n);
}

void uva__operator_stop(struct uva__feed *feed)
{
    struct uva__operator *op = uva__operator_of(feed);

    op->stopped = true;
    feed->ready = 0;
    assert(op->started);
    if (!op->released)
        uva__producer_quit(op->above, op->handler.producer);
}

void uva__operator_leave(struct uva__feed *feed)
{
    struct uva__operator *op = uva__operator_of(feed);

    if (!op->started)
        uva__producer_release(op->above);
    uva__operator_release(op);
}

/* ---- life --------------------------------------------------------------- */

void uva__operator_init(struct uva__operator *op,
                        const struct uva__operator_ops *ops,
                        const struct uva__node_ops *node_ops,
                        struct uva__producer *above)
{
    uva__feed_init(&op->feed, &ops->feed, above->hub);
    op->ops = ops;
    op->above = above;
    op->handler.on_schema = operator_on_schema;
    op->handler.on_next_task = operator_on_task;
    op->handler.on_error = operator_on_error;
    op->handler.release = operator_on_release;
    op->feed.device_type =
        op->becomes != 0 ? op->becomes : above->feed->device_type;
    uva__node_init(&op->node, node_ops, 1);
}

void uva__operator_acquire(struct uva__operator *op)
{
    uva__node_acquire(&op->node);
}

void uva__operator_release(struct uva__operator *op)
{
    uva__node_release(&op->node);
}

void uva__operator_free(struct uva__node *node)
{
    struct uva__operator *op =
        uva__container_of(node, struct uva__operator, node);
    struct uva__hub *hub = uva__hub_acquire(op->feed.hub);

    uva__failure_fini(&op->failure, &hub->allocator);
    uva__feed_fini(&op->feed);
    op->ops->free(op, &hub->allocator);
    uva__hub_release(hub);
}
