/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a window of batches, from which the loop thread takes one at a time,
 * without a turn and without a callback for each.
 *
 * Happy path:  a window is requested -> (a batch arrives, and is queued)* ->
 *              (taken; when few are left, more are requested)* -> the end ->
 *              the outcome is given behind the last batch, any number of times.
 *              The ready function is called once after each EAGAIN.
 *
 * What can fail: the stream: the outcome follows the batches before it.
 *
 * On cancel:   batches that wait are discarded, and the outcome is given. When
 *              its last reference is released, the stream is cancelled. */
#include <errno.h>

#include "arrow/entry.h"
#include "arrow/layout.h"
#include "base/memory.h"
#include "sink/auto_stages.h"
#include "sink/consumer.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

/* A batch that waits, or was taken last. */
struct item {
    struct uva__link link;
    struct uva__entry batch;
};

/* All of it is the loop thread's alone. */
struct take {
    struct uva__consumer consumer; /* first */
    struct uva_window window;      /* with its defaults filled in */
    uva_ready_fn *fn;
    void *ctx;              /* borrows, until the end or a drop */
    struct uva__list items; /* batches that wait, in order */
    struct uva__list free;  /* items that are not in use */
    struct item *last;      /* owns: lends its metadata; or NULL */
    int64_t count;          /* batches that wait */
    int64_t bytes;          /* in these */
    int64_t requested;      /* batches that have not come */
    bool known;             /* the schema is known */
    bool waits;             /* the ready function is due at the next change */
};

static struct take *take_of(struct uva__consumer *consumer)
{
    return uva__container_of(consumer, struct take, consumer);
}

static struct take *take_at(struct uva_stream *stream)
{
    return uva__container_of(stream->sink, struct take, consumer.sink);
}

/* ---- items -------------------------------------------------------------- */

static struct item *item_pop(struct uva__list *list)
{
    struct uva__link *link = uva__list_pop(list);

    return link != NULL ? uva__container_of(link, struct item, link) : NULL;
}

/* Frees what an item owns, and keeps its memory for the next batch. */
static void item_put(struct take *t, struct item *item)
{
    if (uva_array_is_live(&item->batch.array))
        uva_array_release(&item->batch.array);
    uva__metadata_fini(&item->batch.info.metadata,
                       &t->consumer.stream->rt->allocator, NULL);
    uva__list_push(&t->free, &item->link);
}

static struct item *item_new(struct take *t, const struct uva_batch *batch)
{
    const struct uva_allocator *allocator = &t->consumer.stream->rt->allocator;
    struct item *item = item_pop(&t->free);

    if (item == NULL)
        item = uva__memory_new(allocator, sizeof(*item));
    if (item == NULL)
        return NULL;
    item->batch.array.array.release = NULL;
    if (uva__metadata_copy(allocator, batch->metadata,
                           &item->batch.info.metadata) == ENOMEM) {
        item_put(t, item);
        return NULL;
    }
    item->batch.info.ordinal = batch->ordinal;
    if (uva__layout_measure(batch->schema, &batch->data,
                            &item->batch.info.bytes, NULL) != 0)
        item->batch.info.bytes = 0; /* the size is not known */
    return item;
}

/* States what waits, for the budget of the runtime. What is left when the
 * stream is over does not count. */
static void take_account(struct take *t)
{
    if (!t->consumer.over)
        uva__share_hold(&t->consumer.share, t->count, t->bytes);
}

static void take_clear(struct take *t)
{
    struct item *item;

    while ((item = item_pop(&t->items)) != NULL)
        item_put(t, item);
    t->count = t->bytes = 0;
}

/* ---- the loop ----------------------------------------------------------- */

/* Requests more batches when few are left; the schema is known. With nothing
 * queued, one may always come, however large it is. */
static void take_request(struct take *t)
{
    struct ArrowAsyncProducer *producer = t->consumer.handler.producer;
    const int64_t used = t->count + t->requested;
    const int64_t n = uva__window_room(&t->window, 1, used);

    if (t->consumer.decided || n == 0 ||
        (used > 0 && t->bytes >= t->window.bytes))
        return;
    t->requested += n;
    producer->request(producer, n);
}

/* The last act of what calls it, as the function may release the stream, which
 * still counts itself. */
static void take_notify(struct take *t)
{
    const struct uva__point *point = uva__consumer_point(&t->consumer);
    uint64_t since_ns;

    if (!t->waits || t->consumer.stream->loop.silent)
        return;
    t->waits = false;
    since_ns = uva__span_begin(t->consumer.stream->rt);
    t->fn(t->ctx);
    uva__point_span_end(point, "on_ready", -1, since_ns);
}

static int take_schema(struct uva__consumer *consumer)
{
    struct take *t = take_of(consumer);

    t->known = true;
    take_request(t);
    take_notify(t);
    return 0;
}

static void take_batch(struct uva__consumer *consumer)
{
    struct take *t = take_of(consumer);
    struct item *item = item_new(t, &consumer->batch);

    t->requested--;
    if (item == NULL) {
        uva_array_release(&consumer->batch.data);
        uva__consumer_stop(consumer, UVA_END_FAILED, ENOMEM, NULL);
        return;
    }
    uva_array_move(&consumer->batch.data, &item->batch.array);
    uva__list_push(&t->items, &item->link);
    t->count++;
    t->bytes += item->batch.info.bytes;
    take_account(t);
    take_notify(t);
}

static void take_done(struct uva__consumer *consumer,
                      const struct uva_outcome *outcome)
{
    struct take *t = take_of(consumer);

    if (outcome->end == UVA_END_CANCELLED)
        take_clear(t);
    take_notify(t);
}

static void take_on_wakeup(struct uva_stream *stream)
{
    uva__consumer_handle_cancel(&take_at(stream)->consumer);
}

static void take_free(struct uva_stream *stream)
{
    struct take *t = take_at(stream);
    const struct uva_allocator *allocator = &stream->rt->allocator;
    struct item *item;

    take_clear(t);
    if (t->last != NULL)
        item_put(t, t->last);
    while ((item = item_pop(&t->free)) != NULL)
        uva__memory_free(allocator, item, sizeof(*item));
    uva__consumer_fini(&t->consumer);
    uva__memory_free(allocator, t, sizeof(*t));
}

static const struct uva__consumer_ops take_ops = {
    .sink = {.name = "take",
             .begin = uva__consumer_begin,
             .on_wakeup = take_on_wakeup,
             .free = take_free,
             .cancel_without_holder = true},
    .schema = take_schema,
    .batch = take_batch,
    .done = take_done,
};

/* ---- calls of the user -------------------------------------------------- */

int uva_stream_start_take(struct uva_stream *stream,
                          const struct uva_window *window, uva_ready_fn *fn,
                          void *ctx, struct uva_error *error)
{
    const struct uva_window none = {0};
    struct take *t;
    struct uva_window complete;
    int code = uva__stream_may_start(stream, error);

    if (code != 0)
        return code;
    if (fn == NULL)
        return uva_error_set(error, EINVAL, "start_take: fn is mandatory");
    if (uva__window_complete(window != NULL ? window : &none, &complete) != 0)
        return uva_error_set(error, EINVAL,
                             "start_take: no negative window, whose reserved "
                             "members must be NULL");
    code = uva__auto_stages_add(stream, error);
    if (code != 0)
        return code;
    t = uva__memory_new(&stream->rt->allocator, sizeof(*t));
    if (t == NULL)
        return uva_error_set(error, ENOMEM, "no memory to start the stream");
    uva__consumer_init(&t->consumer, &take_ops, stream);
    t->window = complete;
    t->fn = fn;
    t->ctx = ctx;
    code = uva__stream_start(stream, &t->consumer.sink, error);
    if (code != 0)
        uva__memory_free(&stream->rt->allocator, t, sizeof(*t));
    return code;
}

/* Gives the outcome, if nothing comes before it; otherwise notes that the
 * caller waits. */
static int take_nothing(struct take *t, struct uva_outcome *outcome)
{
    if (!t->consumer.over) {
        t->waits = true;
        return EAGAIN;
    }
    if (outcome != NULL)
        uva__consumer_outcome(&t->consumer, outcome);
    return ENOENT;
}

static int take_next(struct take *t, struct uva_batch *batch,
                     struct uva_outcome *outcome)
{
    struct item *item = item_pop(&t->items);

    if (t->last != NULL)
        item_put(t, t->last);
    t->last = item;
    if (item == NULL)
        return take_nothing(t, outcome);
    t->count--;
    t->bytes -= item->batch.info.bytes;
    take_account(t);
    t->consumer.delivered++;
    *batch = (struct uva_batch){
        .schema = t->consumer.stream->loop.info.schema,
        .metadata = item->batch.info.metadata.block,
        .ordinal = item->batch.info.ordinal,
        .stream = t->consumer.stream,
    };
    uva_array_move(&item->batch.array, &batch->data);
    take_request(t);
    return 0;
}

int uva_stream_take(struct uva_stream *stream, struct uva_batch *batch,
                    struct uva_outcome *outcome)
{
    struct take *t;

    if (stream == NULL || stream->rt == NULL ||
        uva__atomic64_load(&stream->state) < UVA__STREAM_STARTED ||
        stream->sink->ops != &take_ops.sink)
        return EINVAL;
    if (!uva__rt_on_loop(stream->rt))
        return EPERM;
    t = take_at(stream);
    if (batch != NULL)
        return take_next(t, batch, outcome);
    return t->known ? 0 : take_nothing(t, outcome);
}
