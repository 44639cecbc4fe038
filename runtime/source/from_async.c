/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign producer as a source: hands on the tasks of source/foreign_state,
 * and calls the producer on extra threads.
 *
 * Happy path:  started: (extra thread) start, which may last as long as the
 * stream
 *              -> schema, tasks, end, from the events of the handler ->
 * stopped.
 *
 * What can fail:
 * - the producer, or start: reported behind the batches before it;
 * - an extraction: reported at once, and the producer is cancelled.
 *
 * On stop:     (extra threads) cancel; tasks that were not handed on are
 * discarded. Neither is waited for, nor a start that does not return: each of
 *              them holds a reference. A close waits a second for producers
 * that have not released.
 *
 * The window limits what is requested and not handed on. A task that was handed
 * on, extracted or not, is the consumer's responsibility. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/unreachable.h"
#include "source/foreign.h"
#include "stream/check_hop.h"
#include "stream/slots.h"
#include "stream/stream_impl.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"
#include "uvarrow/check.h"

static struct uva__foreign *foreign_of(struct uva__source *source)
{
    return uva__container_of(source, struct uva__foreign, source);
}

/* ---- extra threads ------------------------------------------------------- */

/* Runs a job on an extra thread. The job ends with guest_home(). */
static void uncapped_send(struct uva__foreign *i, struct uva_job *job)
{
    uva__foreign_acquire(i);
    if (uva__rt_job_begin(i->source.rt)) {
        uva__lane_run_uncapped(&i->source.rt->jobs, job);
        return;
    }
    UVA__UNREACHABLE("a running stage keeps the workers alive");
    uva__foreign_release(i);
}

static void uncapped_home(struct uva__foreign *i)
{
    struct uva__rt *rt = i->source.rt;

    uva__foreign_release(i);
    uva__rt_job_end(rt);
}

/* A producer that refused its handler will not release it. If it has not called
 * the handler either, the checker in front of it is withdrawn. */
static void starter_uncheck(struct uva__foreign *i,
                            struct ArrowAsyncDeviceStreamHandler *checked)
{
    bool untouched;

    uva__lock_take(&i->lock);
    untouched = !i->locked.touched;
    uva__lock_drop(&i->lock);
    if (untouched)
        (void)uva_check_withdraw(checked);
}

/* start may use this thread for as long as the stream lasts: there must be
 * another one that can request and cancel. */
static int starter_call(struct uva__foreign *i, struct uva_error *error)
{
    struct ArrowAsyncDeviceStreamHandler *handler;
    int code = uva__lane_ensure_uncapped(&i->source.rt->jobs);

    if (code != 0)
        return uva_error_set(error, code,
                             "from_async: no thread to start the producer on");
    handler = uva__check_hop_handler(i->source.rt, "from_async", &i->handler);
    code = i->options.start(i->options.ctx, handler, error);
    if (code != 0 && handler != &i->handler)
        starter_uncheck(i, handler);
    return uva__error_positive(code);
}

static void starter_run(struct uva_job *job)
{
    struct uva__foreign *i =
        uva__container_of(job, struct uva__foreign, starter);
    struct uva_error error = {0};
    int code;

    if (uva__foreign_may_start(i)) {
        code = starter_call(i, &error);
        uva__foreign_started(i, code, &error);
    }
    uncapped_home(i);
}

static void requester_run(struct uva_job *job)
{
    struct uva__foreign *i =
        uva__container_of(job, struct uva__foreign, requester);

    uva__foreign_request(i);
    uncapped_home(i);
}

static void canceller_run(struct uva_job *job)
{
    struct uva__foreign *i =
        uva__container_of(job, struct uva__foreign, canceller);

    uva__foreign_cancel(i);
    uncapped_home(i);
}

static struct uva__pending_task *pending_task_pop(struct uva__list *list)
{
    struct uva__link *link = uva__list_pop(list);

    return link != NULL
               ? uva__container_of(link, struct uva__pending_task, link)
               : NULL;
}

static void sweeper_run(struct uva_job *job)
{
    struct uva__foreign *i =
        uva__container_of(job, struct uva__foreign, discarder);
    struct uva__pending_task *pending_task;

    while ((pending_task = pending_task_pop(&i->loop.ready)) != NULL) {
        uva__pending_tasks_discard(&i->pending_tasks, pending_task);
        uva__foreign_extracted(i);
    }
    uncapped_home(i);
}

/* ---- the loop: as a source ----------------------------------------------- */

static void async_start(struct uva__source *source)
{
    struct uva__foreign *i = foreign_of(source);

    i->loop.started = true;
    uva__foreign_acquire(i); /* the producer's reference */
    uncapped_send(i, &i->starter);
}

static void async_absorb(struct uva__foreign *i,
                         struct uva__foreign_events *events)
{
    struct uva__source *source = &i->source;

    if (events->schema.release != NULL) {
        uva_schema_move(&events->schema, &source->schema);
        uva__metadata_move(&events->metadata, &source->metadata);
        source->device_type = events->device_type;
        source->schema_known = true;
    }
    uva__list_append(&i->loop.ready, &events->queue);
    source->ready += events->count;
    source->ended = events->ended;
    if (events->failure.code != 0)
        uva__failure_move(&events->failure, &source->failure,
                          &source->rt->allocator);
}

static void async_pull(struct uva__source *source, int64_t demand)
{
    struct uva__foreign *i = foreign_of(source);
    struct uva__foreign_events events;
    bool request, cancel;

    (void)demand; /* the window is always requested in full */
    request = uva__foreign_poll(i, i->loop.taken, &events, &cancel);
    i->loop.taken = 0;
    async_absorb(i, &events);
    if (request)
        uncapped_send(i, &i->requester);
    if (cancel)
        uncapped_send(i, &i->canceller);
}

/* A batch that is lost ends the stream; the producer is cancelled. */
static int async_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                         struct uva_error *error)
{
    struct uva__foreign *i = ctx;
    int code = 0;

    if (out == NULL)
        uva__pending_tasks_discard(&i->pending_tasks, item);
    else
        code = uva__pending_tasks_extract(&i->pending_tasks, item, out, error);
    uva__foreign_extracted(i);
    if (code != 0)
        uva__foreign_fault(i, code);
    return code;
}

static struct uva__task *async_take(struct uva__source *source)
{
    struct uva__foreign *i = foreign_of(source);
    struct uva__task *task = uva__producer_take_task(source->producer);
    struct uva__pending_task *pending_task =
        uva__container_of(i->loop.ready.head, struct uva__pending_task, link);
    const struct uva__lazy lazy = {async_extract, i, pending_task};

    if (task == NULL)
        return NULL;
    if (uva__task_fill_lazy(task, &source->rt->allocator, &lazy,
                            pending_task->metadata.block) != 0) {
        uva__slots_put_task(source->rt, task);
        return NULL;
    }
    (void)uva__list_pop(&i->loop.ready);
    task->info.ordinal = i->loop.ordinal++;
    source->ready--;
    i->loop.taken++;
    return task;
}

static void async_stop(struct uva__source *source)
{
    struct uva__foreign *i = foreign_of(source);
    bool cancel;

    i->loop.stopped = true;
    if (uva__atomic64_load(&i->closed) == 0) {
        i->loop.draining = true;
        source->rt->loop.draining++;
    }
    source->ready = 0;
    cancel = uva__foreign_stop(i, i->loop.taken, &i->loop.ready);
    if (cancel)
        uncapped_send(i, &i->canceller);
    if (!uva__list_is_empty(&i->loop.ready))
        uncapped_send(i, &i->discarder);
}

static void async_leave(struct uva__source *source)
{
    struct uva__foreign *i = foreign_of(source);

    if (!i->loop.started)
        uva__foreign_free_ctx_async(i);
    uva__foreign_release(i);
}

static const struct uva__source_ops async_ops = {
    .name = "from_async",
    .start = async_start,
    .pull = async_pull,
    .take = async_take,
    .stop = async_stop,
    .leave = async_leave,
};

/* ---- making one --------------------------------------------------------- */

static int async_check(const struct uva_async_source *options,
                       struct uva_error *error)
{
    struct uva_window window;

    if (options->start == NULL)
        return uva_error_set(error, EINVAL,
                             "uva_async_source: start is mandatory");
    if (!uva__memory_is_clear(options->reserved, 4))
        return uva_error_set(error, EINVAL,
                             "uva_async_source: reserved members must be "
                             "NULL; clear the struct before filling it in");
    if (uva__window_complete(&options->window, &window) != 0)
        return uva_error_set(error, EINVAL,
                             "from_async: a window must not be negative, nor "
                             "larger than 1048576 batches");
    return 0;
}

static struct uva__foreign *async_new(struct uva__rt *rt,
                                      const struct uva_async_source *options)
{
    struct uva__foreign *i = uva__memory_new(&rt->allocator, sizeof(*i));

    if (i == NULL)
        return NULL;
    uva__source_init(&i->source, &async_ops, rt);
    i->source.expensive = !options->on_loop;
    i->source.lazy = true;
    if (options->device_type != 0)
        i->source.device_type = options->device_type;
    i->options = *options;
    if (uva__window_complete(&options->window, &i->options.window) != 0)
        UVA__UNREACHABLE("the window was checked before");
    i->starter.run = starter_run;
    i->requester.run = requester_run;
    i->canceller.run = canceller_run;
    i->discarder.run = sweeper_run;
    uva__foreign_init(i);
    return i;
}

/* The ctx is taken on failure too. */
static struct uva_stream *async_fail(struct uva_runtime *runtime,
                                     const struct uva_async_source *options,
                                     const struct uva_error *error)
{
    if (options->free_ctx != NULL)
        options->free_ctx(options->ctx);
    return uva__stream_failed(runtime, error);
}

struct uva_stream *uva_stream_from_async(struct uva_runtime *runtime,
                                         const struct uva_async_source *source)
{
    const struct uva_async_source none = {.start = NULL};
    const struct uva_async_source *options = source != NULL ? source : &none;
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct uva__foreign *i = NULL;
    struct uva_error error = {0};
    int code = async_check(options, &error);

    if (code != 0 || rt == NULL || !uva__rt_is_alive(rt))
        return async_fail(runtime, options, &error);
    code = uva__slots_ensure(rt);
    if (code == 0)
        code = uva__rt_ensure_uncapped(rt);
    if (code == 0)
        i = async_new(rt, options);
    if (i != NULL)
        return uva__stream_new(&i->source);
    (void)uva_error_set(&error, code != 0 ? code : ENOMEM, "from_async: %s",
                        code == EAGAIN      ? "no thread for the stream"
                        : code == ESHUTDOWN ? "the runtime is closing"
                                            : "no memory for the stream");
    return async_fail(runtime, options, &error);
}
