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
#include <string.h>

#include "arrow/entry.h"
#include "arrow/fixed_width.h"
#include "arrow/layout.h"
#include "base/memory.h"
#include "sink/auto_stages.h"
#include "sink/consumer.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

/* A batch that waits, was taken last, or will be extracted next. */
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
    struct item *next;      /* owns: the next batch is extracted to it; NULL:
                               there was no memory for it */
    struct item *last;      /* owns: lends its metadata; or NULL */
    struct uva__fixed_width shape; /* of batches, if it is a simple one */
    int64_t count;                 /* batches that wait */
    int64_t bytes;                 /* in these */
    int64_t requested;             /* batches that have not come */
    int64_t largest; /* size of the largest batch; -1: none so far */
    bool known;      /* the schema is known */
    bool mapped;     /* sizes from above are those before maps */
    bool waits;      /* the ready function is due at the next change */
    bool direct;     /* batches may come between two turns ... */
    bool filling;    /* ... and do so now */
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

static const struct uva_allocator *allocator_of(const struct take *t)
{
    return &t->consumer.stream->rt->allocator;
}

/* Frees what an item owns, and keeps its memory, which is in the cache, for the
 * next batch. */
static void item_put(struct take *t, struct item *item)
{
    uva_array_release(&item->batch.array);
    if (item->batch.info.metadata.block != NULL)
        uva__metadata_fini(&item->batch.info.metadata, allocator_of(t), NULL);
    uva__list_push_front(&t->free, &item->link);
}

/* Has the next batch extracted to an item. False without memory. */
static bool item_prepare(struct take *t)
{
    struct item *item = item_pop(&t->free);

    if (item == NULL)
        item = uva__memory_new(allocator_of(t), sizeof(*item));
    t->next = item;
    if (item == NULL)
        return false;
    t->consumer.data = &item->batch.array;
    return true;
}

/* Measures a batch of unknown size; 0 if that cannot be done. Not inline, as
 * the size of most batches is known, or easily found. */
__attribute__((noinline)) static int64_t
batch_measure(const struct take *t, const struct ArrowDeviceArray *array)
{
    int64_t bytes;

    return uva__layout_measure_shaped(&t->shape, t->consumer.batch.schema,
                                      array, &bytes, NULL) == 0
               ? bytes
               : 0;
}

static int64_t batch_size(const struct take *t)
{
    return t->consumer.bytes > 0 && !t->mapped
               ? t->consumer.bytes
               : batch_measure(t, t->consumer.data);
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

/* How many of `room` more batches the window's bytes allow. The first batch
 * shows a size. With nothing queued, one may always come, however large it
 * is. */
static int64_t take_fit(const struct take *t, int64_t room)
{
    if (t->largest < 0)
        return t->requested == 0;
    return uva__window_fit(&t->window, room, t->bytes, t->requested,
                           t->largest);
}

/* Requests more batches when few are left; the schema is known. */
static void take_request(struct take *t)
{
    struct ArrowAsyncProducer *producer = t->consumer.handler.producer;
    const int64_t used = t->count + t->requested;
    int64_t n;

    if (used > t->window.refill || t->consumer.decided)
        return;
    n = uva__window_room(&t->window, 1, used);
    if (n > 0)
        n = take_fit(t, n);
    if (n == 0)
        return;
    t->requested += n;
    producer->request(producer, n);
}

/* Requests a whole window between two turns. What the source has ready comes
 * before this returns. */
static void take_fill(struct take *t)
{
    const int64_t n = take_fit(t, t->window.batches - t->requested);

    t->requested += n;
    t->filling = true;
    uva__producer_request_direct(t->consumer.stream->tail, n);
    t->filling = false;
}

/* One was taken. Between two turns, without the system calls of a turn, more
 * come when none is left; but not while the ready function is due, as it would
 * be called then. */
static void take_go_on(struct take *t)
{
    const struct uva__rt *rt = t->consumer.stream->rt;

    if (t->count > t->window.refill)
        return;
    if (!t->direct || t->waits || uva__rt_in_turn(rt) || !uva__rt_is_alive(rt))
        take_request(t);
    else if (t->count == 0 && !t->consumer.decided)
        take_fill(t);
}

/* Without a holder, and after a drop, `ctx` may be gone. */
static bool take_may_notify(const struct take *t)
{
    const struct uva_stream *stream = t->consumer.stream;

    return t->waits && !stream->loop.silent &&
           uva__atomic64_load(&stream->holders) > 0;
}

/* The last act of what calls it, as the function may release the stream, which
 * still counts itself. */
static void take_notify(struct take *t)
{
    const struct uva__point *point = uva__consumer_point(&t->consumer);
    uint64_t since_ns;

    if (!take_may_notify(t))
        return;
    t->waits = false;
    since_ns = uva__span_begin(t->consumer.stream->rt);
    t->fn(t->ctx);
    uva__point_span_end(point, "on_ready", -1, since_ns);
}

/* Calls the ready function once half a window waits, or all batches that come
 * together: not for each of them. */
static void take_notify_soon(struct take *t)
{
    struct uva_stream *stream = t->consumer.stream;

    if (t->count > t->window.refill)
        take_notify(t);
    else if (t->waits && !stream->wakeup.queued)
        uva__rt_wake(stream->rt, &stream->wakeup);
}

static int take_schema(struct uva__consumer *consumer)
{
    struct take *t = take_of(consumer);

    t->known = true;
    t->direct = consumer->handler.producer == &consumer->stream->tail->abi &&
                uva__producer_is_direct(consumer->stream->tail);
    uva__fixed_width_read(&t->shape, consumer->batch.schema);
    take_request(t);
    take_notify(t);
    return 0;
}

static void take_batch(struct uva__consumer *consumer)
{
    struct take *t = take_of(consumer);
    struct item *item = t->next;

    t->requested--;
    if (consumer->batch.metadata != NULL &&
        uva__metadata_copy(allocator_of(t), consumer->batch.metadata,
                           &item->batch.info.metadata) == ENOMEM) {
        uva_array_release(&item->batch.array);
        uva__consumer_stop(consumer, UVA_END_FAILED, ENOMEM, NULL);
        return;
    }
    item->batch.info.ordinal = consumer->batch.ordinal;
    item->batch.info.bytes = uva__window_size(batch_size(t));
    uva__list_push(&t->items, &item->link);
    t->count++;
    t->bytes += item->batch.info.bytes;
    if (item->batch.info.bytes > t->largest)
        t->largest = item->batch.info.bytes;
    take_account(t);
    if (!item_prepare(t))
        uva__consumer_stop(consumer, UVA_END_FAILED, ENOMEM, NULL);
    if (t->filling)
        return;
    take_request(t);
    take_notify_soon(t);
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
    struct take *t = take_at(stream);

    uva__consumer_handle_cancel(&t->consumer);
    if (t->count > 0)
        take_notify(t);
}

static void take_free(struct uva_stream *stream)
{
    struct take *t = take_at(stream);
    struct item *item;

    take_clear(t);
    if (t->last != NULL)
        item_put(t, t->last);
    if (t->next != NULL)
        item_put(t, t->next);
    while ((item = item_pop(&t->free)) != NULL)
        uva__memory_free(&stream->rt->allocator, item, sizeof(*item));
    uva__consumer_fini(&t->consumer);
    uva__memory_free(&stream->rt->allocator, t, sizeof(*t));
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

static struct take *take_new(struct uva_stream *stream)
{
    struct take *t = uva__memory_new(&stream->rt->allocator, sizeof(*t));

    if (t == NULL)
        return NULL;
    uva__consumer_init(&t->consumer, &take_ops, stream);
    t->mapped = stream->tail->maps != NULL;
    if (item_prepare(t))
        return t;
    uva__memory_free(&stream->rt->allocator, t, sizeof(*t));
    return NULL;
}

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
    code = uva__auto_stages_add(stream, &complete, error);
    if (code != 0)
        return code;
    t = take_new(stream);
    if (t == NULL)
        return uva_error_set(error, ENOMEM, "no memory to start the stream");
    t->window = complete;
    t->largest = -1;
    t->fn = fn;
    t->ctx = ctx;
    code = uva__stream_start(stream, &t->consumer.sink, error);
    if (code != 0) {
        uva__memory_free(&stream->rt->allocator, t->next, sizeof(*t->next));
        uva__memory_free(&stream->rt->allocator, t, sizeof(*t));
    }
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
    batch->schema = t->consumer.batch.schema;
    batch->metadata = item->batch.info.metadata.block;
    batch->ordinal = item->batch.info.ordinal;
    batch->stream = t->consumer.stream;
    memset(batch->reserved, 0, sizeof(batch->reserved));
    uva_array_move(&item->batch.array, &batch->data);
    take_go_on(t);
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
