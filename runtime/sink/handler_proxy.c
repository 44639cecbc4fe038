/* SPDX-License-Identifier: Apache-2.0 */
/* The queue between the loop thread and the extra thread that calls a handler.
 *
 * Happy path:  (loop) schema, tasks, end and release are queued -> (extra
 *              thread) the handler is called in that order -> the loop is woken
 *              for room, and for the release.
 *
 * Failures:
 * - the handler refuses: queued tasks are discarded, the producer is stopped;
 * - no memory to copy metadata: it is left out.
 *
 * On cancel:   queued tasks are discarded; only release is called. A thread
 *              that is stuck in the handler is abandoned, and calls release if
 *              the handler ever returns.
 *
 * Clauses: AH-03, G-18, LC-17. */
#include "sink/handler_proxy.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "arrow/metadata.h"
#include "base/memory.h"
#include "base/unreachable.h"
#include "stream/check_hop.h"
#include "stream/failure.h"
#include "uvarrow/arrow.h"

enum { QUEUE = 64 };

/* A queued task. */
struct call_args {
    struct ArrowAsyncTask task;
    struct uva__metadata metadata; /* owns */
};

/* Calls to make, besides those for queued tasks; in this order. */
enum {
    NEXT_SCHEMA = 1, /* before all tasks */
    NEXT_END = 2,    /* after all tasks, as the rest */
    NEXT_ERROR = 4,
    NEXT_RELEASE = 8
};

struct uva__handler_proxy {
    struct uva__inlet inlet;        /* first */
    struct uva_stream *stream;      /* borrows; the extra thread counts it */
    struct uva__producer *producer; /* borrows: the stream's, until freed */
    struct ArrowAsyncDeviceStreamHandler *to; /* the handler, or its check once
                                                 it has begun */
    void (*releasing)(void *ctx); /* called before the release of the handler */
    void *ctx;                    /* borrows */
    struct ArrowSchema schema;    /* owns; written before NEXT_SCHEMA */
    struct uva__job job;          /* the extra thread's */
    bool refusal_reported;        /* the refusal was passed on; loop only */

    struct uva__lock lock;
    struct {
        struct call_args queue[QUEUE]; /* a ring */
        uint32_t head, count;          /* index of the first, number of tasks */
        int next;                      /* NEXT_... */
        int refusal;                   /* the code that the handler returned, or
                                          0 */
        int replaced;                  /* the code in place of a queued end */
        bool discard;                  /* tasks are not wanted any more */
        bool paused;                   /* the producer waits for room */
        bool working;                  /* the job was submitted, and runs */
        bool done;                     /* the handler was released */
        bool stuck;                    /* abandoned: it counts as stuck */
        int64_t delivered;             /* tasks that the handler was given */
    } locked;
};

/* ---- the extra thread ---------------------------------------------------- */

/* A call to make, taken out of the lock. */
struct call {
    int next;              /* some NEXT_..., or 0 for a task */
    int replaced;          /* of an error: the code in place of an end, or 0 */
    bool discard;          /* the task is not wanted */
    struct call_args args; /* owns */
};

/* An error takes the place of a queued end, which would hide that batches are
 * missing: the producer's error, or `code` without one. */
static void proxy_replace_end_locked(struct uva__handler_proxy *proxy, int code)
{
    int *const next = &proxy->locked.next;

    if (!(*next & NEXT_END))
        return;
    *next &= ~NEXT_END;
    if (*next & NEXT_ERROR)
        return;
    proxy->locked.replaced = code;
    *next |= NEXT_ERROR;
}

/* After a failed extraction no task may follow, though some are queued, and the
 * end waits for the error of the producer, or for the release, which comes
 * without one if the producer has not waited for the extraction. After a cancel
 * or a refusal of the handler only the release may follow.
 * Clauses: AT-08, AH-16, AP-18. */
static int calls_allowed_locked(struct uva__handler_proxy *proxy,
                                uint64_t demand)
{
    const int next = proxy->locked.next;

    if ((demand & UVA__DEMAND_FAILED) && (next & (NEXT_ERROR | NEXT_RELEASE)))
        proxy_replace_end_locked(proxy, EIO);
    if (proxy->locked.refusal != 0 || (demand & UVA__DEMAND_CANCEL)) {
        proxy_replace_end_locked(proxy, ECANCELED);
        proxy->locked.next &= NEXT_SCHEMA | NEXT_RELEASE;
    }
    return demand & UVA__DEMAND_FAILED ? proxy->locked.next & ~NEXT_END
                                       : proxy->locked.next;
}

/* The producer is there as long as something is queued. */
static bool call_take_locked(struct uva__handler_proxy *proxy, struct call *out)
{
    static const int order[] = {NEXT_END, NEXT_ERROR, NEXT_RELEASE};
    uint64_t demand;
    int allowed;

    if (proxy->locked.next == 0 && proxy->locked.count == 0)
        return false;
    demand = uva__atomic64_load(&proxy->producer->demand);
    allowed = calls_allowed_locked(proxy, demand);
    out->next = allowed & NEXT_SCHEMA;
    if (out->next == 0 && proxy->locked.count > 0) {
        out->args = proxy->locked.queue[proxy->locked.head++ % QUEUE];
        proxy->locked.count--;
        out->discard = proxy->locked.discard ||
                       (demand & (UVA__DEMAND_FAILED | UVA__DEMAND_CANCEL));
        proxy->locked.delivered += !out->discard;
        return true;
    }
    for (size_t i = 0; out->next == 0 && i < 3; i++)
        out->next = allowed & order[i];
    proxy->locked.next &= ~out->next;
    out->replaced = proxy->locked.replaced;
    return out->next != 0;
}

/* Takes the next call, or ends the job. In `wake`: whether the loop waits for
 * room and there is room now. */
static bool call_take(struct uva__handler_proxy *proxy, struct call *out,
                      bool *wake)
{
    bool some;

    uva__lock_take(&proxy->lock);
    some = call_take_locked(proxy, out);
    if (!some)
        proxy->locked.working = false;
    *wake = proxy->locked.paused && proxy->locked.count <= QUEUE / 2;
    uva__lock_drop(&proxy->lock);
    return some;
}

static void proxy_notify(struct uva__handler_proxy *proxy)
{
    uva__rt_wake(proxy->stream->rt, &proxy->stream->wakeup);
}

static void proxy_refused(struct uva__handler_proxy *proxy, int code)
{
    uva__lock_take(&proxy->lock);
    proxy->locked.refusal = code;
    proxy->locked.discard = true;
    proxy->locked.next &= NEXT_RELEASE;
    uva__lock_drop(&proxy->lock);
    proxy_notify(proxy);
}

static void call_task(struct uva__handler_proxy *proxy, struct call *call)
{
    struct call_args *args = &call->args;
    struct ArrowAsyncTask task = args->task;
    int code;

    if (call->discard) {
        uva__task_drop(&task);
    } else {
        uva__task_give(proxy->stream->rt, &task);
        code = proxy->to->on_next_task(proxy->to, &task, args->metadata.block);
        if (code != 0) {
            uva__task_drop(&args->task); /* unless it was extracted */
            proxy_refused(proxy, code);
        }
    }
    uva__metadata_fini(&args->metadata, &proxy->stream->rt->allocator, NULL);
}

static void call_schema(struct uva__handler_proxy *proxy)
{
    int code = proxy->to->on_schema(proxy->to, &proxy->schema);

    uva_schema_release(&proxy->schema);
    if (code != 0)
        proxy_refused(proxy, code);
}

static void call_error(struct uva__handler_proxy *proxy,
                       const struct call *call)
{
    const struct uva__failure replaced = {.code = call->replaced};
    const struct uva__failure *failure =
        replaced.code != 0 ? &replaced : &proxy->inlet.failure;

    proxy->to->on_error(proxy->to, failure->code, uva__failure_message(failure),
                        uva__failure_metadata(failure));
}

static void call_release(struct uva__handler_proxy *proxy)
{
    bool stuck;

    /* the handler may be used again inside its release */
    proxy->releasing(proxy->ctx);
    proxy->to->release(proxy->to);
    uva__lock_take(&proxy->lock);
    proxy->locked.done = true;
    stuck = proxy->locked.stuck;
    uva__lock_drop(&proxy->lock);
    if (stuck)
        uva__atomic64_sub(&proxy->stream->rt->stats.calls_stuck, 1);
    proxy_notify(proxy);
}

static void call_run(struct uva__handler_proxy *proxy, struct call *call)
{
    switch (call->next) {
    case 0:
        call_task(proxy, call);
        break;
    case NEXT_SCHEMA:
        call_schema(proxy);
        break;
    case NEXT_END:
        (void)proxy->to->on_next_task(proxy->to, NULL, NULL);
        break;
    case NEXT_ERROR:
        call_error(proxy, call);
        break;
    default:
        call_release(proxy);
    }
}

static void proxy_run(struct uva__job *job)
{
    struct uva__handler_proxy *proxy =
        uva__container_of(job, struct uva__handler_proxy, job);
    struct uva_stream *stream = proxy->stream;
    struct uva__rt *rt = stream->rt;
    struct call call;
    bool wake;

    while (call_take(proxy, &call, &wake)) {
        if (wake)
            proxy_notify(proxy);
        call_run(proxy, &call);
    }
    uva__wakeup_release(&stream->wakeup);
    uva__rt_job_end(rt);
}

/* ---- the loop ----------------------------------------------------------- */

static struct uva__handler_proxy *proxy_of(struct uva__inlet *inlet)
{
    return uva__container_of(inlet, struct uva__handler_proxy, inlet);
}

/* Queues a call, or only the tasks, and starts the job unless it is running. An
 * extraction may fail after the end. If that was replaced, the handler gets the
 * error in its place, or has got it, and no other one. */
static void proxy_put(struct uva__handler_proxy *proxy, int next)
{
    struct uva_stream *stream = proxy->stream;
    bool begin;

    uva__lock_take(&proxy->lock);
    if (proxy->locked.replaced != 0)
        next &= ~NEXT_ERROR;
    proxy->locked.next |= next;
    begin = !proxy->locked.working;
    proxy->locked.working = true;
    uva__lock_drop(&proxy->lock);
    if (!begin)
        return;
    uva__wakeup_acquire(&stream->wakeup); /* the extra thread's */
    if (uva__rt_job_begin(stream->rt)) {
        uva__lane_run_uncapped(&stream->rt->jobs, &proxy->job);
        return;
    }
    UVA__UNREACHABLE("a running stream keeps the workers alive");
    uva__wakeup_release(&stream->wakeup);
}

static int proxy_schema(struct uva__inlet *inlet, struct ArrowSchema *schema,
                        struct uva_error *error)
{
    struct uva__handler_proxy *proxy = proxy_of(inlet);

    (void)error;
    uva_schema_move(schema, &proxy->schema);
    proxy_put(proxy, NEXT_SCHEMA);
    return 0;
}

static void proxy_task(struct uva__inlet *inlet, struct ArrowAsyncTask *task,
                       const char *metadata)
{
    struct uva__handler_proxy *proxy = proxy_of(inlet);
    struct call_args args = {.task = *task};
    const int left_out = uva__metadata_copy(&proxy->stream->rt->allocator,
                                            metadata, &args.metadata);
    bool full;

    (void)left_out; /* there is no metadata then */
    uva__lock_take(&proxy->lock);
    proxy->locked.queue[(proxy->locked.head + proxy->locked.count++) % QUEUE] =
        args;
    full = proxy->locked.count == QUEUE;
    if (full)
        proxy->locked.paused = true;
    uva__lock_drop(&proxy->lock);
    if (full)
        uva__producer_pause(proxy->producer, true);
    proxy_put(proxy, 0);
}

static void proxy_news(struct uva__inlet *inlet)
{
    if (inlet->above == NULL)
        return;
    if (inlet->failure.code != 0)
        proxy_put(proxy_of(inlet), NEXT_ERROR);
    else if (inlet->state == UVA__INLET_ENDED)
        proxy_put(proxy_of(inlet), NEXT_END);
}

/* After a release without end or error, queued tasks are not wanted. */
static void proxy_released(struct uva__inlet *inlet)
{
    struct uva__handler_proxy *proxy = proxy_of(inlet);

    if (inlet->state != UVA__INLET_ENDED &&
        proxy->producer->loop->state.phase != UVA__PHASE_FAILED) {
        uva__lock_take(&proxy->lock);
        proxy->locked.discard = true;
        uva__lock_drop(&proxy->lock);
    }
    proxy_put(proxy, NEXT_RELEASE);
}

bool uva__handler_proxy_poll(struct uva__handler_proxy *proxy)
{
    int refusal;
    bool room, done;

    uva__lock_take(&proxy->lock);
    refusal = proxy->locked.refusal;
    done = proxy->locked.done;
    room = proxy->locked.paused && proxy->locked.count <= QUEUE / 2;
    if (room)
        proxy->locked.paused = false;
    uva__lock_drop(&proxy->lock);
    if (proxy->inlet.above == NULL)
        return done;
    if (room)
        uva__producer_pause(proxy->producer, false);
    if (refusal != 0 && !proxy->refusal_reported) {
        proxy->refusal_reported = true;
        uva__producer_refuse(proxy->producer, refusal);
    }
    return done;
}

static void proxy_cut_locked(struct uva__handler_proxy *proxy)
{
    proxy->locked.discard = true;
    proxy_replace_end_locked(proxy, ECANCELED);
}

/* A task that was taken out of the queue before may still be passed on. */
void uva__handler_proxy_cut(struct uva__handler_proxy *proxy)
{
    uva__lock_take(&proxy->lock);
    proxy_cut_locked(proxy);
    uva__lock_drop(&proxy->lock);
}

int64_t uva__handler_proxy_abandon(struct uva__handler_proxy *proxy,
                                   int *refusal, int *replaced)
{
    int64_t delivered;

    uva__lock_take(&proxy->lock);
    proxy->locked.stuck = !proxy->locked.done;
    if (proxy->locked.stuck) {
        uva__atomic64_add(&proxy->stream->rt->stats.calls_stuck, 1);
        proxy_cut_locked(proxy);
    }
    delivered = proxy->locked.delivered;
    *refusal = proxy->locked.refusal;
    *replaced = proxy->locked.replaced;
    uva__lock_drop(&proxy->lock);
    return delivered;
}

/* ---- life --------------------------------------------------------------- */

static const struct uva__inlet_ops inlet_ops = {
    .schema = proxy_schema,
    .task = proxy_task,
    .news = proxy_news,
    .released = proxy_released,
};

int uva__handler_proxy_new(struct uva_stream *stream,
                           struct ArrowAsyncDeviceStreamHandler *handler,
                           void (*releasing)(void *ctx), void *ctx,
                           struct uva__handler_proxy **out)
{
    struct uva__handler_proxy *proxy;
    int code = uva__rt_ensure_uncapped(stream->rt);

    if (code != 0)
        return code;
    proxy = uva__memory_new(&stream->rt->allocator, sizeof(*proxy));
    if (proxy == NULL)
        return ENOMEM;
    uva__inlet_init(&proxy->inlet, &inlet_ops, stream->tail);
    proxy->stream = stream;
    proxy->producer = stream->tail;
    proxy->to = handler;
    proxy->releasing = releasing;
    proxy->ctx = ctx;
    proxy->job.run = proxy_run;
    *out = proxy;
    return 0;
}

void uva__handler_proxy_begin(struct uva__handler_proxy *proxy,
                              const struct uva__producer_hooks *hooks)
{
    struct uva__producer *producer = proxy->producer;

    proxy->to = uva__check_hop_handler(producer->source->label, "drive",
                                       proxy->to, false);
    proxy->to->producer = &producer->abi; /* before the job starts */
    uva__inlet_begin_last(&proxy->inlet, hooks, proxy->ctx);
}

void uva__handler_proxy_free(struct uva__handler_proxy *proxy)
{
    if (proxy == NULL)
        return;
    assert(proxy->locked.count == 0);
    uva_schema_release(&proxy->schema);
    uva__inlet_fini(&proxy->inlet);
    uva__memory_free(&proxy->stream->rt->allocator, proxy, sizeof(*proxy));
}
