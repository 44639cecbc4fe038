/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps all batches of a stream, and gives them to one callback.
 *
 * Happy path:  (batch -> kept)* -> the callback gets them together.
 *
 * Failures: the stream, or it has too many bytes: the callback gets no batch.
 *
 * On cancel:   the callback gets no batch; on drop it is not called. */
#include <errno.h>
#include <string.h>

#include "arrow/layout.h"
#include "base/memory.h"
#include "sink/consumer.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

enum { COLLECT_FIRST = 16 }; /* room at first */

struct collect_options {
    uva_collected_fn *fn;
    void *ctx;         /* borrows, until the end or a drop */
    int64_t max_bytes; /* 0: no limit */
};

struct collect {
    struct uva__consumer consumer; /* first */
    struct collect_options options;
    int64_t bytes;                   /* in the arrays, if there is a limit */
    int64_t counted;                 /* in the arrays, for the budget */
    struct ArrowDeviceArray *arrays; /* owns, with their live members */
    size_t count, room;              /* arrays; that it has room for */
};

static struct collect *collect_of(struct uva__consumer *consumer)
{
    return uva__container_of(consumer, struct collect, consumer);
}

static const struct uva_allocator *allocator_of(const struct collect *c)
{
    return &c->consumer.stream->rt->allocator;
}

static void arrays_free(struct collect *c)
{
    uva__memory_free(allocator_of(c), c->arrays,
                     c->room * sizeof(c->arrays[0]));
}

/* Returns whether there is room for another array. */
static bool arrays_grow(struct collect *c)
{
    const size_t room = c->room == 0 ? COLLECT_FIRST : c->room * 2;
    struct ArrowDeviceArray *arrays;

    if (c->count < c->room)
        return true;
    arrays = uva__memory_new(allocator_of(c), room * sizeof(arrays[0]));
    if (arrays == NULL)
        return false;
    if (c->count > 0)
        memcpy(arrays, c->arrays, c->count * sizeof(arrays[0]));
    arrays_free(c);
    c->arrays = arrays;
    c->room = room;
    return true;
}

/* Whether the batch fits into the limit; a batch of unknown size does. */
static bool collect_fits(struct collect *c)
{
    const struct uva_batch *batch = &c->consumer.batch;
    int64_t bytes = c->consumer.bytes;
    const bool known = c->consumer.measured && bytes < UVA__WINDOW_SIZE_MAX;

    if (c->options.max_bytes == 0 ||
        (!known &&
         uva__layout_measure(batch->schema, &batch->data, &bytes, NULL) != 0))
        return true;
    if (bytes > c->options.max_bytes - c->bytes)
        return false;
    c->bytes += bytes;
    return true;
}

/* States the bytes that it keeps to the budget of the runtime. As it gives no
 * batch back before the end, it counts as no batches: its stream may always
 * take in another one. */
static void collect_account(struct collect *c)
{
    c->counted += uva__window_size(c->consumer.bytes);
    uva__share_hold(&c->consumer.share, 0, c->counted);
}

static void collect_batch(struct uva__consumer *consumer)
{
    struct collect *c = collect_of(consumer);

    if (!collect_fits(c)) {
        uva__consumer_stop(consumer, UVA_END_REJECTED, EMSGSIZE,
                           "the stream has more bytes than max_bytes");
    } else if (!arrays_grow(c)) {
        uva__consumer_stop(consumer, UVA_END_FAILED, ENOMEM, NULL);
    } else {
        uva__consumer_accept(consumer, consumer->batch.data.array.length);
        uva_array_move(&consumer->batch.data, &c->arrays[c->count++]);
        collect_account(c);
        uva__consumer_request(consumer);
        return;
    }
    uva_array_release(&consumer->batch.data);
}

static void collect_clear(struct collect *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (uva_array_is_live(&c->arrays[i]))
            uva_array_release(&c->arrays[i]);
    c->count = 0;
}

static void collect_done(struct uva__consumer *consumer,
                         const struct uva_outcome *outcome)
{
    struct collect *c = collect_of(consumer);
    uint64_t since_ns;

    if (outcome->end != UVA_END_COMPLETE)
        collect_clear(c);
    since_ns = uva__span_begin(consumer->stream->rt);
    if (!consumer->stream->loop.silent)
        c->options.fn(c->options.ctx, uva_stream_get_info(consumer->stream),
                      c->arrays, c->count, outcome);
    uva__point_span_end(uva__consumer_point(consumer), "on_done", -1, since_ns);
    collect_clear(c);
}

static void collect_free(struct uva__consumer *consumer)
{
    arrays_free(collect_of(consumer));
}

static const struct uva__option_limit limits[] = {
    UVA__LIMIT(collect_options, max_bytes, 0, INT64_MAX),
    {.name = NULL},
};

static const struct uva__consumer_kind collect_kind = {
    .sink = {UVA__CONSUMER_SINK("collect", collect, false),
             .options = {.name = "collect",
                         .size = sizeof(struct collect_options),
                         UVA__OPTIONS_NEED(collect_options, fn),
                         .limits = limits},
             .copy = offsetof(struct collect, options)},
    .batch = collect_batch,
    .done = collect_done,
    .free = collect_free,
};

int uva_stream_collect(struct uva_stream *stream, int64_t max_bytes,
                       uva_collected_fn *fn, void *ctx, struct uva_error *error)
{
    const struct collect_options options = {
        .fn = fn, .ctx = ctx, .max_bytes = max_bytes};

    return uva__sink_start(stream, &collect_kind.sink, &options, error);
}
