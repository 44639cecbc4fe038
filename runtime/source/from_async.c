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

#include "source/foreign.h"
#include "base/memory.h"
#include "base/error.h"
#include "base/unreachable.h"
#include "stream/check_hop.h"
#include "stream/stream_impl.h"
#include "stream/slots.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"
#include "uvarrow/check.h"

static struct uva__inlet *inlet_of(struct uva__feed *feed)
{
    return uva__container_of(feed, struct uva__inlet, feed);
}

/* ---- extra threads ------------------------------------------------------- */

/* Runs a job on an extra thread. The job ends with guest_home(). */
static void guest_send(struct uva__inlet *i, struct uva_job *job)
{
    uva__inlet_acquire(i);
    if (uva__hub_job_begin(i->feed.hub)) {
        uva__guest_run(&i->feed.hub->jobs, job);
        return;
    }
    UVA__UNREACHABLE("a running stage keeps the workers alive");
    uva__inlet_release(i);
}

static void guest_home(struct uva__inlet *i)
{
    struct uva__hub *hub = i->feed.hub;

    uva__inlet_release(i);
    uva__hub_job_end(hub);
}

/* A producer that refused its handler will not release it. If it has not called
 * the handler either, the checker in front of it is withdrawn. */
static void starter_uncheck(struct uva__inlet *i,
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
static int starter_call(struct uva__inlet *i, struct uva_error *error)
{
    struct ArrowAsyncDeviceStreamHandler *handler;
    int code = uva__guest_ensure(&i->feed.hub->jobs);

    if (code != 0)
        return uva_error_set(error, code,
                             "from_async: no thread to start the producer on");
    handler = uva__checked_hop(i->feed.hub, "from_async", &i->handler);
    code = i->how.start(i->how.ctx, handler, error);
    if (code != 0 && handler != &i->handler)
        starter_uncheck(i, handler);
    return uva__status_positive(code);
}

static void starter_run(struct uva_job *job)
{
    struct uva__inlet *i = uva__container_of(job, struct uva__inlet, starter);
    struct uva_error error = {0};
    int code;

    if (uva__inlet_hand_over(i)) {
        code = starter_call(i, &error);
        uva__inlet_started(i, code, &error);
    }
    guest_home(i);
}

static void requester_run(struct uva_job *job)
{
    struct uva__inlet *i = uva__container_of(job, struct uva__inlet, requester);

    uva__inlet_request(i);
    guest_home(i);
}

static void canceller_run(struct uva_job *job)
{
    struct uva__inlet *i = uva__container_of(job, struct uva__inlet, canceller);

    uva__inlet_cancel(i);
    guest_home(i);
}

static struct uva__parcel *parcel_pop(struct uva__list *list)
{
    struct uva__link *link = uva__list_pop(list);

    return link != NULL ? uva__container_of(link, struct uva__parcel, link)
                        : NULL;
}

static void sweeper_run(struct uva_job *job)
{
    struct uva__inlet *i = uva__container_of(job, struct uva__inlet, sweeper);
    struct uva__parcel *parcel;

    while ((parcel = parcel_pop(&i->loop.ready)) != NULL) {
        uva__depot_discard(&i->depot, parcel);
        uva__inlet_extracted(i);
    }
    guest_home(i);
}

/* ---- the loop: as a source ----------------------------------------------- */

static void async_start(struct uva__feed *feed)
{
    struct uva__inlet *i = inlet_of(feed);

    i->loop.started = true;
    uva__inlet_acquire(i); /* the producer's reference */
    guest_send(i, &i->starter);
}

static void async_absorb(struct uva__inlet *i, struct uva__inlet_news *news)
{
    struct uva__feed *feed = &i->feed;

    if (news->schema.release != NULL) {
        uva_schema_move(&news->schema, &feed->schema);
        feed->metadata = news->metadata;
        feed->metadata_size = news->metadata_size;
        feed->device_type = news->device_type;
        feed->schema_known = true;
    }
    uva__list_append(&i->loop.ready, &news->queue);
    feed->ready += news->count;
    feed->ended = news->ended;
    if (news->failure.code != 0)
        uva__failure_move(&news->failure, &feed->failure,
                          &feed->hub->allocator);
}

static void async_pull(struct uva__feed *feed, int64_t demand)
{
    struct uva__inlet *i = inlet_of(feed);
    struct uva__inlet_news news;
    bool request, cancel;

    (void)demand; /* the window is always requested in full */
    request = uva__inlet_look(i, i->loop.taken, &news, &cancel);
    i->loop.taken = 0;
    async_absorb(i, &news);
    if (request)
        guest_send(i, &i->requester);
    if (cancel)
        guest_send(i, &i->canceller);
}

/* A batch that is lost ends the stream; the producer is cancelled. */
static int async_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                         struct uva_error *error)
{
    struct uva__inlet *i = ctx;
    int code = 0;

    if (out == NULL)
        uva__depot_discard(&i->depot, item);
    else
        code = uva__depot_extract(&i->depot, item, out, error);
    uva__inlet_extracted(i);
    if (code != 0)
        uva__inlet_fault(i, code);
    return code;
}

static struct uva__task *async_take(struct uva__feed *feed)
{
    struct uva__inlet *i = inlet_of(feed);
    struct uva__task *task = uva__producer_take_task(feed->producer);
    struct uva__parcel *parcel =
        uva__container_of(i->loop.ready.head, struct uva__parcel, link);
    const struct uva__lazy lazy = {async_extract, i, parcel};

    if (task == NULL)
        return NULL;
    if (uva__task_fill_lazy(task, &feed->hub->allocator, &lazy,
                            parcel->metadata) != 0) {
        uva__stock_put_task(feed->hub, task);
        return NULL;
    }
    (void)uva__list_pop(&i->loop.ready);
    task->ordinal = i->loop.ordinal++;
    feed->ready--;
    i->loop.taken++;
    return task;
}

static void async_stop(struct uva__feed *feed)
{
    struct uva__inlet *i = inlet_of(feed);
    bool cancel;

    i->loop.stopped = true;
    if (uva__word_load(&i->home) == 0) {
        i->loop.homing = true;
        feed->hub->loop.homing++;
    }
    feed->ready = 0;
    cancel = uva__inlet_stop(i, i->loop.taken, &i->loop.ready);
    if (cancel)
        guest_send(i, &i->canceller);
    if (!uva__list_is_empty(&i->loop.ready))
        guest_send(i, &i->sweeper);
}

static void async_leave(struct uva__feed *feed)
{
    struct uva__inlet *i = inlet_of(feed);

    if (!i->loop.started)
        uva__inlet_farewell_elsewhere(i);
    uva__inlet_release(i);
}

static const struct uva__feed_ops async_ops = {
    .name = "from_async",
    .start = async_start,
    .pull = async_pull,
    .take = async_take,
    .stop = async_stop,
    .leave = async_leave,
};

/* ---- making one --------------------------------------------------------- */

static int async_check(const struct uva_async_source *how,
                       struct uva_error *error)
{
    struct uva_window window;

    if (how->start == NULL)
        return uva_error_set(error, EINVAL,
                             "uva_async_source: start is mandatory");
    if (!uva__memory_is_clear(how->reserved, 4))
        return uva_error_set(error, EINVAL,
                             "uva_async_source: reserved members must be "
                             "NULL; clear the struct before filling it in");
    if (uva__window_complete(&how->window, &window) != 0)
        return uva_error_set(error, EINVAL,
                             "from_async: a window must not be negative, nor "
                             "larger than 1048576 batches");
    return 0;
}

static struct uva__inlet *async_new(struct uva__hub *hub,
                                    const struct uva_async_source *how)
{
    struct uva__inlet *i = uva__memory_new(&hub->allocator, sizeof(*i));

    if (i == NULL)
        return NULL;
    uva__feed_init(&i->feed, &async_ops, hub);
    i->feed.dear = !how->cheap;
    i->feed.lazy = true;
    if (how->device_type != 0)
        i->feed.device_type = how->device_type;
    i->how = *how;
    if (uva__window_complete(&how->window, &i->how.window) != 0)
        UVA__UNREACHABLE("the window was checked before");
    i->starter.run = starter_run;
    i->requester.run = requester_run;
    i->canceller.run = canceller_run;
    i->sweeper.run = sweeper_run;
    uva__inlet_init(i);
    return i;
}

/* The ctx is taken on failure too. */
static struct uva_stream *async_fail(struct uva_runtime *runtime,
                                     const struct uva_async_source *how,
                                     const struct uva_error *error)
{
    if (how->free_ctx != NULL)
        how->free_ctx(how->ctx);
    return uva__flow_failed(runtime, error);
}

struct uva_stream *uva_stream_from_async(struct uva_runtime *runtime,
                                         const struct uva_async_source *source)
{
    const struct uva_async_source none = {.start = NULL};
    const struct uva_async_source *how = source != NULL ? source : &none;
    struct uva__hub *hub = uva__loop_hub(runtime);
    struct uva__inlet *i = NULL;
    struct uva_error error = {0};
    int code = async_check(how, &error);

    if (code != 0 || hub == NULL || !uva__hub_is_alive(hub))
        return async_fail(runtime, how, &error);
    code = uva__stock_ensure(hub);
    if (code == 0)
        code = uva__hub_ensure_guest(hub);
    if (code == 0)
        i = async_new(hub, how);
    if (i != NULL)
        return uva__flow_new(&i->feed);
    (void)uva_error_set(&error, code != 0 ? code : ENOMEM, "from_async: %s",
                        code == EAGAIN      ? "no thread for the stream"
                        : code == ESHUTDOWN ? "the runtime is closing"
                                            : "no memory for the stream");
    return async_fail(runtime, how, &error);
}
