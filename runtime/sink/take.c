/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a window of batches, from which the loop thread takes one at a time,
 * without a turn and without a callback for each.
 *
 * Happy path:  a window is requested -> (a batch comes, and waits in a slot)*
 * -> (taken; when few are left, more are requested)* -> the end -> the outcome
 * is given after the last batch, any number of times. The ready function is
 * called once after each EAGAIN.
 *
 * Failures: the stream: the outcome follows the batches before it.
 *
 * On cancel:   batches that wait are discarded, and the outcome is given. When
 *              its last reference is released, the stream is cancelled. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/unreachable.h"
#include "sink/consumer.h"
#include "stream/intake.h"
#include "stream/measure.h"
#include "stream/slots.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

struct take_options {
    uva_call_fn *fn; /* NULL: the host takes after each turn */
    void *ctx;       /* borrows, until the end or a drop */
    struct uva_window window;
};

/* For the loop thread alone. */
struct take {
    struct uva__consumer consumer; /* first */
    struct take_options options;
    struct uva__intake intake;
    struct uva__list waiting; /* slots of the batches that wait, in order */
    struct uva__task *last;   /* owns: the slot of the batch taken last, which
                                 lends its metadata; or NULL */
    struct uva__measure measure; /* of batches whose size is not known */
    bool known;                  /* the schema is known */
    bool mapped;                 /* sizes from above are those before maps */
    bool waits;   /* the ready function is due at the next change */
    bool direct;  /* batches may come between two turns ... */
    bool filling; /* ... and do so now */
};

static struct take *take_of(struct uva__consumer *consumer)
{
    return uva__container_of(consumer, struct take, consumer);
}

/* ---- batches that wait -------------------------------------------------- */

/* Gives the slot of the oldest batch, or NULL. */
static struct uva__task *waiting_pop(struct take *t)
{
    struct uva__link *link = uva__list_pop(&t->waiting);
    struct uva__task *slot;

    if (link == NULL)
        return NULL;
    slot = uva__container_of(link, struct uva__task, link);
    uva__intake_leave(&t->intake, slot->info.bytes);
    return slot;
}

/* No token leads to the slot. */
static void slot_put(const struct take *t, struct uva__task *slot)
{
    uva_array_release(&slot->array);
    uva__slots_put_task(t->consumer.stream->rt, slot, false);
}

static int64_t batch_size(struct take *t)
{
    int64_t bytes;

    if (t->consumer.bytes > 0 && !t->mapped)
        return uva__window_size(t->consumer.bytes);
    if (!uva__measure_is_known(&t->measure))
        uva__measure_lend(&t->measure, &t->consumer.stream->rt->allocator,
                          t->consumer.batch.schema);
    (void)uva__measure(&t->measure, &t->consumer.batch.data, &bytes, NULL);
    return bytes;
}

/* States the waiting batches to the budget of the runtime. The rest of a stream
 * that is over does not count. */
static void take_account(struct take *t)
{
    if (!uva__consumer_is_over(&t->consumer))
        uva__share_hold(&t->consumer.share, t->intake.held, t->intake.bytes);
}

/* ---- the loop ----------------------------------------------------------- */

/* How many more batches to request, when few are left. Without a size, the
 * first batch shows one. */
static int64_t take_room(struct take *t)
{
    return uva__consumer_is_open(&t->consumer)
               ? uva__intake_room(&t->intake, 1, 1)
               : 0;
}

/* The schema is known. */
static void take_request(struct take *t)
{
    uva__inlet_request_for(&t->consumer.inlet, &t->intake, take_room(t));
}

/* Requests batches between two turns. Batches that the source has
 * ready come before this returns. */
static void take_fill(struct take *t)
{
    const int64_t n = take_room(t);

    t->filling = true;
    t->intake.requested += n;
    uva__producer_request_direct(t->consumer.stream->tail, n);
    t->filling = false;
}

/* One was taken. Between two turns, without the system calls of a turn, more
 * come when no batch is left; but not while the ready function is due, as it
 * would be called then. */
static void take_go_on(struct take *t)
{
    const struct uva__rt *rt = t->consumer.stream->rt;

    if (t->intake.held > t->intake.window.refill)
        return;
    if (!t->direct || t->waits || uva__rt_in_turn(rt) || !uva__rt_is_alive(rt))
        take_request(t);
    else if (t->intake.held == 0 && uva__consumer_is_open(&t->consumer))
        take_fill(t);
}

/* Without a holder, and after a drop, `ctx` may be gone. */
static bool take_may_notify(const struct take *t)
{
    const struct uva_stream *stream = t->consumer.stream;

    return t->waits && !stream->loop.silent &&
           uva__atomic64_load(&stream->holders) > 0;
}

/* The last act of its caller, as the function may release the stream, which
 * still counts itself. */
static void take_notify(struct take *t)
{
    const struct uva__point *point = uva__consumer_point(&t->consumer);
    uint64_t since_ns;

    if (!take_may_notify(t))
        return;
    t->waits = false;
    since_ns = uva__span_begin(t->consumer.stream->rt);
    t->options.fn(t->options.ctx);
    uva__point_span_end(point, "on_ready", -1, since_ns);
}

/* Calls the ready function once half a window waits, or all batches that come
 * together: not for each of them. */
static void take_notify_soon(struct take *t)
{
    struct uva_stream *stream = t->consumer.stream;

    if (t->intake.held > t->intake.window.refill)
        take_notify(t);
    else if (t->waits && !stream->wakeup.queued)
        uva__rt_wake(stream->rt, &stream->wakeup);
}

static int take_schema(struct uva__consumer *consumer)
{
    struct take *t = take_of(consumer);
    struct uva__window window;

    if (uva__window_complete(&t->options.window, &window) != 0)
        UVA__UNREACHABLE("it was checked");
    uva__intake_init(&t->intake, &window);
    t->known = true;
    t->mapped = consumer->stream->tail->maps != NULL;
    t->direct =
        consumer->inlet.handler.producer == &consumer->stream->tail->abi &&
        uva__producer_is_direct(consumer->stream->tail);
    take_request(t);
    take_notify(t);
    return 0;
}

static void take_batch(struct uva__consumer *consumer)
{
    struct take *t = take_of(consumer);
    struct uva__task *slot = uva__slots_new_task(consumer->stream->rt, NULL,
                                                 consumer->batch.metadata);

    uva__intake_come(&t->intake);
    if (slot == NULL) {
        uva_array_release(&consumer->batch.data);
        uva__consumer_stop(consumer, UVA_END_FAILED, ENOMEM, NULL);
        return;
    }
    slot->info.ordinal = consumer->batch.ordinal;
    slot->info.bytes = batch_size(t);
    uva_array_move(&consumer->batch.data, &slot->array);
    uva__list_push(&t->waiting, &slot->link);
    uva__intake_put(&t->intake, slot->info.bytes);
    take_account(t);
    if (t->filling)
        return;
    take_request(t);
    take_notify_soon(t);
}

static void take_clear(struct take *t)
{
    struct uva__task *slot;

    while ((slot = waiting_pop(t)) != NULL)
        slot_put(t, slot);
}

static void take_done(struct uva__consumer *consumer,
                      const struct uva_outcome *outcome)
{
    struct take *t = take_of(consumer);

    if (outcome->end == UVA_END_CANCELLED)
        take_clear(t);
    take_notify(t);
}

static void take_posted(struct uva__consumer *consumer)
{
    struct take *t = take_of(consumer);

    if (t->intake.held > 0)
        take_notify(t);
}

static void take_free(struct uva__consumer *consumer)
{
    struct take *t = take_of(consumer);

    if (t->last != NULL)
        uva__list_push(&t->waiting, &t->last->link);
    uva__slots_discard_tasks(consumer->stream->rt, &t->waiting);
    uva__measure_fini(&t->measure);
}

static const struct uva__consumer_kind take_kind = {
    .sink = {UVA__CONSUMER_SINK("take", take, true),
             .options = {.name = "start_take",
                         .size = sizeof(struct take_options),
                         UVA__OPTIONS_WINDOW(take_options)},
             .copy = offsetof(struct take, options)},
    .schema = take_schema,
    .batch = take_batch,
    .done = take_done,
    .posted = take_posted,
    .free = take_free,
};

/* ---- calls of the user -------------------------------------------------- */

int uva_stream_start_take(struct uva_stream *stream,
                          const struct uva_window *window, uva_call_fn *fn,
                          void *ctx, struct uva_error *error)
{
    struct take_options options = {.fn = fn, .ctx = ctx};

    if (window != NULL)
        options.window = *window;
    return uva__sink_start(stream, &take_kind.sink, &options, error);
}

/* Gives the outcome, if no batch comes before it; otherwise notes that the
 * caller waits. */
static int take_nothing(struct take *t, struct uva_outcome *outcome)
{
    if (!uva__consumer_is_over(&t->consumer)) {
        t->waits = t->options.fn != NULL;
        return EAGAIN;
    }
    if (outcome != NULL)
        uva__consumer_outcome(&t->consumer, outcome);
    return ENOENT;
}

static int take_next(struct take *t, struct uva_batch *batch,
                     struct uva_outcome *outcome)
{
    struct uva__task *slot = waiting_pop(t);

    if (t->last != NULL)
        slot_put(t, t->last);
    t->last = slot;
    if (slot == NULL)
        return take_nothing(t, outcome);
    take_account(t);
    uva__consumer_accept(&t->consumer, slot->array.array.length);
    batch->schema = t->consumer.batch.schema;
    batch->metadata = slot->info.metadata.block;
    batch->ordinal = slot->info.ordinal;
    batch->stream = t->consumer.stream;
    memset(batch->reserved, 0, sizeof(batch->reserved));
    uva_array_move(&slot->array, &batch->data);
    take_go_on(t);
    return 0;
}

/* Once the runtime is closed, no loop thread has to be the one. */
static bool take_may_be_called(const struct uva__rt *rt)
{
    return uva__rt_on_loop(rt) ||
           (uva__rt_is_closed(rt) && uva__rt_is_alive(rt));
}

int uva_stream_take(struct uva_stream *stream, struct uva_batch *batch,
                    struct uva_outcome *outcome)
{
    struct take *t;

    if (stream == NULL || stream->rt == NULL ||
        uva__atomic64_load(&stream->state) < UVA__STREAM_STARTED ||
        stream->sink->ops != &take_kind.sink.ops)
        return EINVAL;
    if (!take_may_be_called(stream->rt))
        return EPERM;
    t = uva__container_of(stream->sink, struct take, consumer.sink);
    if (batch != NULL)
        return take_next(t, batch, outcome);
    return t->known ? 0 : take_nothing(t, outcome);
}
