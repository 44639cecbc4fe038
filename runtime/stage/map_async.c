/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_map_async(): a function that begins with a batch, and a result
 * that is given later, on any thread.
 *
 * Happy path:  task -> extracted, and waits for its turn to begin -> begun, on
 *              the loop thread -> the result is given: inside `begin`, and the
 *              loop sees it when that returns; or later, and the giving thread
 *              posts the stage -> the producer below takes the result.
 *
 * Failures:    begin, or the user gives an error: that follows the results of
 *              the batches before it (unordered: the results at hand), no more
 *              batches are begun, and the stages above are cancelled. An
 *              extraction: the producer above reports why.
 *
 * On stop:     batches and results are released, and the user's cancel is
 *              called for every batch that was begun. Replies are not waited
 *              for, as each counts the stage. */
#include <assert.h>
#include <errno.h>

#include "arrow/layout.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/unreachable.h"
#include "stage/flight.h"
#include "stage/output.h"
#include "stream/stream_impl.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

/* Half of the largest window. */
enum { AT_ONCE_MAX = 1 << 19 };

/* Which thread uses a reply. */
enum reply_state {
    REPLY_WAITING,   /* the loop; later batches of the same memory begin as
                        REPLY_GIVEN */
    REPLY_BEGINNING, /* the user; the loop looks at it when begin returns */
    REPLY_BEGUN, /* the user; it counts the stage, and posts it when given */
    REPLY_GIVEN  /* the loop */
};

struct uva_reply {
    struct uva__flight_batch batch; /* first */
    struct map_async *stage;        /* borrows */
    struct uva__atomic64 state;     /* enum reply_state */
};

struct map_async {
    struct uva__flight flight;    /* first */
    struct uva_async_map options; /* owns its ctx */
    struct uva__output output;    /* the schemas */
};

static struct map_async *map_async_at(struct uva__source *source)
{
    return uva__container_of(source, struct map_async, flight.stage.source);
}

static struct uva_reply *reply_of(struct uva__flight_batch *batch)
{
    return uva__container_of(batch, struct uva_reply, batch);
}

static const struct uva_allocator *allocator_of(const struct map_async *m)
{
    return &m->flight.stage.source.rt->allocator;
}

/* ---- any thread: a reply is given --------------------------------------- */

/* Puts the result in the slot, or the failure in the reply. */
static void reply_fill(struct uva_reply *reply, struct ArrowDeviceArray *out,
                       const struct uva_error *error)
{
    const struct map_async *m = reply->stage;
    const char *name = m->flight.stage.source.ops->name;
    struct uva__failure *failure = &reply->batch.failure;
    struct uva__task *slot = reply->batch.slot;
    struct uva_error detail;

    if (error != NULL)
        uva__failure_set(failure, allocator_of(m),
                         uva__error_positive(error->code), error, NULL);
    else if (out != NULL && !uva_array_is_live(out))
        uva__failure_format(failure, allocator_of(m), EPROTO,
                            "%s: a released array was given", name);
    else if (out != NULL && uva__measure(m->output.measure, out,
                                         &slot->info.bytes, &detail) != 0)
        uva__failure_format(failure, allocator_of(m), EPROTO,
                            "%s: a batch does not fit the schema: %s", name,
                            detail.message);
    if (out == NULL || !uva_array_is_live(out))
        return;
    slot->measured = failure->code == 0;
    if (slot->measured)
        uva_array_move(out, &slot->array);
    else
        uva_array_release(out);
}

/* The exchange publishes the result, and pairs with the load or the
 * compare-and-swap of the loop. */
void uva_reply_give(struct uva_reply *reply, struct ArrowDeviceArray *out,
                    const struct uva_error *error)
{
    struct uva__flight *flight = &reply->stage->flight;

    reply_fill(reply, out, error);
    if (uva__atomic64_exchange(&reply->state, REPLY_GIVEN) == REPLY_BEGINNING)
        return; /* both may be gone */
    uva__flight_finish(flight, &reply->batch);
    uva__stage_release(&flight->stage);
}

/* ---- the loop: a batch is begun ----------------------------------------- */

/* begin has failed: a result that it has given is not wanted. */
static void reply_refuse(struct map_async *m, struct uva_reply *reply, int code)
{
    uva__failure_format(&reply->batch.failure, allocator_of(m), code,
                        "%s: begin failed with %s",
                        m->flight.stage.source.ops->name, uva_error_name(code));
    uva_array_release(&reply->batch.slot->array);
}

/* Returns whether the reply was given inside begin. Otherwise it counts the
 * stage from now on. */
static bool reply_was_given(struct map_async *m, struct uva_reply *reply)
{
    uint64_t state = REPLY_BEGINNING;

    if (uva__atomic64_load(&reply->state) == REPLY_GIVEN)
        return true;
    uva__stage_acquire(&m->flight.stage); /* before another thread may release
                                             it */
    if (uva__atomic64_cas(&reply->state, &state, REPLY_BEGUN))
        return false;
    uva__stage_release(&m->flight.stage);
    return true;
}

static void map_async_begin(struct uva__flight *flight,
                            struct uva__flight_batch *batch)
{
    struct map_async *m = uva__container_of(flight, struct map_async, flight);
    struct uva__source *source = &flight->stage.source;
    const struct uva__batch_info *info = &batch->slot->info;
    struct uva_reply *reply = reply_of(batch);
    struct uva_batch in = {
        .schema = m->output.input,
        .metadata = info->metadata.block,
        .ordinal = info->ordinal,
    };
    uint64_t since_ns;
    int code;

    uva_array_move(&batch->slot->array, &in.data);
    reply->stage = m;
    uva__atomic64_store(&reply->state, REPLY_BEGINNING);
    since_ns = uva__span_begin(source->rt);
    code = uva__error_positive(m->options.begin(m->options.ctx, &in, reply));
    uva__span_end(source->meter, source->ops->name, in.ordinal, since_ns);
    uva_array_release(&in.data);
    if (code != 0)
        reply_refuse(m, reply, code);
    if (code != 0 || reply_was_given(m, reply))
        uva__flight_end(flight, batch);
}

/* ---- the loop: as a handler --------------------------------------------- */

/* Results are expected to be as large as the batches. The first batch is
 * measured if its size is not known. */
static void map_async_task(struct uva__stage *stage,
                           struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__flight *flight = uva__flight_of(stage);
    struct map_async *m = map_async_at(&stage->source);
    struct uva__flight_batch *batch =
        uva__flight_admit(flight, task, metadata, UVA__KEPT_BATCH);
    int64_t bytes;

    if (batch == NULL)
        return;
    bytes = batch->slot->info.bytes;
    if (bytes == 0 && flight->stage.in.largest < 0 &&
        uva__layout_measure(m->output.input, &batch->slot->array, &bytes,
                            NULL) != 0)
        bytes = 0;
    uva__flight_wait(flight, batch, uva__window_size(bytes));
}

/* ---- the loop: as a source ---------------------------------------------- */

static void map_async_pull(struct uva__source *source, int64_t demand)
{
    struct map_async *m = map_async_at(source);
    struct uva__flight *flight = &m->flight;

    (void)uva__output_prepare(&m->output, source, m->options.schema,
                              m->options.ctx);
    uva__flight_advance(flight);
    if (flight->loop.failed)
        uva__inlet_quit(&flight->stage.inlet);
    else
        uva__stage_request(&flight->stage, demand, flight->unsized_max);
}

/* A batch that was begun waits for the user's answer, which is its source. */
static const struct uva__source *
map_async_above(const struct uva__source *source)
{
    const struct map_async *m =
        uva__container_of(source, struct map_async, flight.stage.source);

    return m->flight.stage.in.begun > 0 ? NULL : uva__stage_above(source);
}

/* Another thread may give the reply while the user's cancel is called for it:
 * its memory is used for no other batch, as the stage has stopped. */
static void reply_cancel(void *block, void *ctx)
{
    struct uva_reply *reply = block;
    const struct uva_async_map *options = ctx;

    if (uva__atomic64_load(&reply->state) == REPLY_BEGUN)
        options->cancel(options->ctx, reply);
}

static void map_async_stop(struct uva__source *source)
{
    struct map_async *m = map_async_at(source);

    uva__flight_stop(source);
    if (m->options.cancel != NULL)
        uva__slab_each(&m->flight.loop.slab, reply_cancel, &m->options);
    uva__flight_clear(&m->flight.stage);
}

/* ---- life --------------------------------------------------------------- */

/* More batches are requested when half of the window is left, so the default is
 * at least twice as many as may be under way. */
static void map_async_widen(const struct uva_async_map *options,
                            struct uva__window *window)
{
    struct uva_window wider = options->window;

    wider.batches = 2 * options->at_once;
    if (options->window.batches == 0 && wider.batches > window->batches &&
        uva__window_complete(&wider, window) != 0)
        UVA__UNREACHABLE("it was checked, and at_once is small");
}

static void map_async_init(struct uva__stage *stage,
                           const struct uva__stage_setup *setup)
{
    static const struct uva__flight_ops ops = {.size = sizeof(struct uva_reply),
                                               .begin = map_async_begin};
    struct map_async *m = map_async_at(&stage->source);

    (void)setup;
    map_async_widen(&m->options, &stage->in.window);
    uva__flight_init(&m->flight, &ops);
    m->flight.at_once = m->options.at_once != 0 ? m->options.at_once : 1;
    m->flight.unsized_max = m->flight.at_once;
    m->flight.unordered = m->options.unordered;
}

static void map_async_free(struct uva__stage *stage,
                           const struct uva_allocator *allocator)
{
    uva__flight_free(stage, allocator);
    uva__output_fini(&map_async_at(&stage->source)->output);
}

int uva_stream_map_async(struct uva_stream *stream,
                         const struct uva_async_map *options)
{
    static const struct uva__option_limit limits[] = {
        UVA__LIMIT(uva_async_map, at_once, 0, AT_ONCE_MAX), {0}};
    static const struct uva__stage_kind kind = {
        .options = {UVA__OPTIONS(uva_async_map),
                    UVA__OPTIONS_CTX(uva_async_map),
                    UVA__OPTIONS_WINDOW(uva_async_map),
                    UVA__OPTIONS_NEED(uva_async_map, begin), .limits = limits},
        .size = sizeof(struct map_async),
        .copy = offsetof(struct map_async, options),
        .needs = UVA__STAGE_CHEAP,
        .init = map_async_init,
        .source = {.name = "map_async",
                   .sized = true,
                   .start = uva__stage_start,
                   .pull = map_async_pull,
                   .take = uva__stage_take,
                   .stop = map_async_stop,
                   .leave = uva__stage_leave,
                   .free = uva__stage_free,
                   .posted = uva__stage_posted,
                   .need = uva__stage_need,
                   .above = map_async_above},
        .task = map_async_task,
        .clear = uva__flight_clear,
        .free = map_async_free,
    };

    return uva__stage_add(stream, &kind, options);
}
