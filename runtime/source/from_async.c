/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign producer as a source: hands on the tasks of source/pending_tasks,
 * and calls the producer on extra threads.
 *
 * Happy path:  an extra thread calls start, which may last as long as the
 *              stream -> schema, tasks and end, from the events of the handler
 *              -> stopped.
 *
 * Failures:
 * - the producer, or start: reported after the batches before it;
 * - an extraction: reported at once, and the producer is cancelled.
 *
 * On stop:     (extra threads) cancel; interrupt, while start or request is in
 *              progress; tasks that were not handed on are discarded. These are
 *              not waited for, even a start that does not return: each holds a
 *              reference. A close waits a second for producers that have not
 *              released.
 *
 * The window limits the batches that are requested and not handed on. A task
 * that was handed on, extracted or not, is the consumer's responsibility.
 *
 * Clauses: Q-16. */
#include <errno.h>

#include "base/error.h"
#include "source/foreign.h"
#include "stream/check_hop.h"
#include "stream/producer.h"
#include "stream/source_kind.h"
#include "uvarrow/arrow.h"
#include "uvarrow/check.h"

static struct uva__foreign *foreign_of(struct uva__source *source)
{
    return uva__container_of(source, struct uva__foreign, source);
}

/* ---- extra threads ------------------------------------------------------- */

/* A producer that refused its handler will not release it. If it has not called
 * the handler either, the checker in front of it is withdrawn. */
static void
starter_withdraw_checker(struct uva__foreign *f,
                         struct ArrowAsyncDeviceStreamHandler *checked)
{
    bool untouched;

    uva__lock_take(&f->lock);
    untouched = f->locked.peer == UVA__FOREIGN_PEER_SILENT;
    uva__lock_drop(&f->lock);
    if (untouched)
        (void)uva_check_withdraw(checked);
}

/* start may use this thread for as long as the stream lasts: another thread
 * must be there to request and cancel. */
static int starter_call(struct uva__foreign *f, struct uva_error *error)
{
    struct ArrowAsyncDeviceStreamHandler *handler;
    int code = uva__lane_ensure_uncapped(&f->source.rt->jobs);

    if (code != 0)
        return uva_error_set(error, code,
                             "async: no thread to start the producer on");
    handler = uva__check_hop_handler(f->source.label, f->source.name,
                                     &f->handler, f->options.printed_layout);
    if (handler != &f->handler)
        f->options.printed_layout = false;
    code = f->options.start(f->options.ctx, handler, error);
    if (code != 0 && handler != &f->handler)
        starter_withdraw_checker(f, handler);
    return uva__error_positive(code);
}

static void starter_run(struct uva__job *job)
{
    struct uva__foreign *f =
        uva__container_of(job, struct uva__foreign, starter);
    struct uva_error error = {0};
    int code;

    if (uva__foreign_begin_start(f)) {
        code = starter_call(f, &error);
        uva__foreign_started(f, code, &error);
    }
    uva__foreign_end_job(f);
}

/* ---- the loop: as a source ----------------------------------------------- */

static void async_start(struct uva__source *source)
{
    struct uva__foreign *f = foreign_of(source);

    uva__source_acquire(source); /* the producer's reference */
    uva__foreign_submit(f, &f->starter);
}

static void async_absorb(struct uva__foreign *f,
                         struct uva__foreign_events *events)
{
    struct uva__source *source = &f->source;

    if (events->schema.release != NULL) {
        uva_schema_move(&events->schema, &source->schema);
        uva__metadata_move(&events->metadata, &source->metadata);
        source->device_type = events->device_type;
        source->schema_known = true;
    }
    uva__list_append(&f->loop.ready, &events->queue);
    source->ready += events->count;
    source->ended = events->ended;
    if (events->failure.code != 0)
        uva__failure_move(&events->failure, &source->failure,
                          &source->rt->allocator);
}

static void async_pull(struct uva__source *source, int64_t demand)
{
    struct uva__foreign *f = foreign_of(source);
    struct uva__foreign_events events;

    (void)demand; /* the window is always requested in full */
    uva__foreign_poll(f, f->loop.taken, &events);
    f->loop.taken = 0;
    async_absorb(f, &events);
    uva__meter_hold(source->meter, source->ready, 0);
}

/* A batch that is lost ends the stream; the producer is cancelled. */
static int async_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                         struct uva_error *error)
{
    struct uva__foreign *f = ctx;
    int code = 0;

    if (out == NULL)
        uva__pending_task_discard(item);
    else
        code = uva__pending_task_extract(item, out, error);
    uva__foreign_extracted(f);
    if (code != 0)
        uva__foreign_note_lost(f, code);
    return code;
}

static struct uva__task *async_take(struct uva__source *source)
{
    struct uva__foreign *f = foreign_of(source);
    struct uva__task *task = uva__producer_take_task(source->producer);
    struct uva__pending_task *pending_task =
        uva__pending_task_of(f->loop.ready.head);
    const struct uva__lazy lazy = {async_extract, f, pending_task};

    if (task == NULL)
        return NULL;
    if (uva__task_fill_lazy(task, &source->rt->allocator, &lazy,
                            pending_task->metadata.block) != 0) {
        uva__slots_put_task(source->rt, task, true);
        return NULL;
    }
    (void)uva__list_pop(&f->loop.ready);
    task->info.ordinal = f->loop.ordinal++;
    source->ready--;
    f->loop.taken++;
    return task;
}

static void async_stop(struct uva__source *source)
{
    struct uva__foreign *f = foreign_of(source);

    if (uva__atomic64_load(&f->ctx_freed) == 0)
        uva__rt_hold_up(source->rt, &f->loop.hold_up, NULL);
    source->ready = 0;
    uva__foreign_stop(f, f->loop.taken, &f->loop.ready);
}

static void async_posted(struct uva__source *source)
{
    struct uva__foreign *f = foreign_of(source);

    if (uva__atomic64_load(&f->ctx_freed) != 0)
        uva__rt_drop_hold_up(source->rt, &f->loop.hold_up);
}

static void async_leave(struct uva__source *source)
{
    struct uva__foreign *f = foreign_of(source);

    if (!source->started)
        uva__foreign_free_ctx(f);
    uva__source_release(source);
}

/* ---- making one --------------------------------------------------------- */

static const struct uva__source_kind async_kind;

static struct uva__source *async_make(const struct uva__source_setup *setup)
{
    struct uva__foreign *f = uva__foreign_alloc(setup->rt);

    if (f == NULL)
        return NULL;
    uva__source_init_counted(&f->source, &async_kind.source, setup->rt, 0);
    return &f->source;
}

static int async_init(struct uva__source *source,
                      const struct uva__source_setup *setup,
                      struct uva_error *error)
{
    struct uva__foreign *f = foreign_of(source);

    (void)error;
    f->options = *(const struct uva_async_source *)setup->options;
    f->options.window = uva__window_given(&setup->window);
    source->extraction =
        f->options.on_loop ? UVA__EXTRACTION_MAKES : UVA__EXTRACTION_EXPENSIVE;
    if (f->options.device_type != 0)
        source->device_type = f->options.device_type;
    f->starter.run = starter_run;
    uva__foreign_init(f);
    uva__foreign_handler_init(f);
    return 0;
}

static const struct uva__source_kind async_kind = {
    .options = {UVA__OPTIONS(uva_async_source),
                UVA__OPTIONS_CTX(uva_async_source),
                UVA__OPTIONS_WINDOW(uva_async_source),
                UVA__OPTIONS_NEED(uva_async_source, start)},
    .needs = UVA__SOURCE_SLOTS | UVA__SOURCE_DISCARD | UVA__SOURCE_UNCAPPED,
    .always_frees = true,
    .make = async_make,
    .init = async_init,
    .source = {.name = "async",
               .start = async_start,
               .pull = async_pull,
               .take = async_take,
               .stop = async_stop,
               .leave = async_leave,
               .free = uva__foreign_free,
               .posted = async_posted},
};

struct uva_stream *uva_stream_from_async(struct uva_runtime *runtime,
                                         const struct uva_async_source *options)
{
    return uva__source_add(runtime, &async_kind, options, NULL);
}
