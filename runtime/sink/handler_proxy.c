/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  (loop) put: schema, tasks, end, release -> (extra thread) called
 * at the handler in that order -> the loop is woken for room, and for the
 * release.
 *
 * What can fail:
 * - the handler refuses: queued tasks are discarded, the producer is stopped;
 * - no memory to copy metadata: it is left out.
 *
 * On cancel:   queued tasks are discarded; only release is called. A thread
 * that is stuck in the handler is abandoned, and calls release if the handler
 *              ever returns. */
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
    struct uva__rt *rt;                           /* counts */
    struct uva__atomic64 refs;                    /* of its maker and the extra
                                                 thread */
    struct ArrowAsyncDeviceStreamHandler handler; /* for the producer */
    struct ArrowAsyncDeviceStreamHandler *to;     /* the handler that the extra
                                                     thread calls */
    struct uva__producer *producer; /* loop only; until it releases `handler` */
    struct uva__producer *kept;     /* counts, until `to` is released, which may
                                       use it as long */
    struct uva__driven_handler driven; /* among the handlers in use */
    struct uva__wakeup *wakeup;        /* guarded by the lock */
    struct ArrowSchema schema;         /* owns; written before NEXT_SCHEMA */
    struct uva__failure failure;       /* owns; written before NEXT_ERROR */
    struct uva_job job;                /* the extra thread's */
    bool told; /* the refusal was passed on; loop only */

    struct uva__lock lock;
    struct {
        struct call_args queue[QUEUE]; /* a ring */
        uint32_t head, count;          /* index of the first, number of tasks */
        int next;                      /* NEXT_... */
        int refusal;                   /* the code that the handler returned, or
                                          0 */
        bool discard;                  /* tasks are not wanted any more */
        bool held;                     /* the producer waits for room */
        bool working;                  /* the job was submitted, and runs */
        bool done;                     /* the handler was released */
        bool stuck;                    /* abandoned: it counts as stuck */
        int64_t delivered;             /* tasks that the handler was given */
    } locked;
};

/* ---- the extra thread ---------------------------------------------------- */

/* A call to make, taken out of the lock. */
struct call {
    int next;              /* one of NEXT_..., or 0 for a task */
    bool discard;          /* the task is not wanted */
    struct call_args args; /* owns */
};

static bool call_take_locked(struct uva__handler_proxy *c, struct call *out)
{
    static const int order[] = {NEXT_END, NEXT_ERROR, NEXT_RELEASE};
    size_t i;

    if (c->locked.refusal != 0) /* only release may follow */
        c->locked.next &= NEXT_RELEASE;
    out->discard = c->locked.discard;
    out->next = c->locked.next & NEXT_SCHEMA;
    if (out->next == 0 && c->locked.count > 0) {
        out->args = c->locked.queue[c->locked.head++ % QUEUE];
        c->locked.count--;
        c->locked.delivered += !c->locked.discard;
        return true;
    }
    for (i = 0; out->next == 0 && i < 3; i++)
        out->next = c->locked.next & order[i];
    c->locked.next &= ~out->next;
    return out->next != 0;
}

/* Takes the next call, or ends the job. In `wake`: whether the loop waits for
 * the room that there is now. */
static bool call_take(struct uva__handler_proxy *c, struct call *out,
                      bool *wake)
{
    bool some;

    uva__lock_take(&c->lock);
    some = call_take_locked(c, out);
    if (!some)
        c->locked.working = false;
    *wake = c->locked.held && c->locked.count <= QUEUE / 2;
    uva__lock_drop(&c->lock);
    return some;
}

/* Wakes the loop, unless the proxy was abandoned. */
static void proxy_notify(struct uva__handler_proxy *c)
{
    struct uva__wakeup *wakeup;

    uva__lock_take(&c->lock);
    wakeup = c->wakeup;
    if (wakeup != NULL)
        uva__wakeup_acquire(
            wakeup); /* it must not be freed before it is posted */
    uva__lock_drop(&c->lock);
    if (wakeup == NULL)
        return;
    uva__rt_wake(c->rt, wakeup);
    uva__wakeup_release(wakeup);
}

static void proxy_refused(struct uva__handler_proxy *c, int code)
{
    uva__lock_take(&c->lock);
    c->locked.refusal = code;
    c->locked.discard = true;
    c->locked.next &= NEXT_RELEASE;
    uva__lock_drop(&c->lock);
    proxy_notify(c);
}

static void call_with_args(struct uva__handler_proxy *c, struct call *call)
{
    struct call_args *args = &call->args;
    struct ArrowAsyncTask task = args->task;
    int code;

    if (call->discard) {
        uva__task_drop(&task);
    } else {
        code = c->to->on_next_task(c->to, &task, args->metadata.block);
        if (code != 0) {
            uva__task_drop(&args->task); /* unless it was extracted (G-18) */
            proxy_refused(c, code);
        }
    }
    uva__metadata_fini(&args->metadata, &c->rt->allocator, NULL);
}

static void carry_schema(struct uva__handler_proxy *c)
{
    int code = c->to->on_schema(c->to, &c->schema);

    uva_schema_release(&c->schema); /* LC-17 */
    if (code != 0)
        proxy_refused(c, code);
}

static void carry_release(struct uva__handler_proxy *c)
{
    bool stuck;

    /* the handler may be used again inside its release */
    uva__driven_handlers_remove(c->rt, &c->driven);
    c->to->release(c->to);
    uva__producer_release(c->kept);
    uva__lock_take(&c->lock);
    c->locked.done = true;
    stuck = c->locked.stuck;
    uva__lock_drop(&c->lock);
    if (stuck)
        uva__atomic64_sub(&c->rt->stats.calls_stuck, 1);
    proxy_notify(c);
}

static void call_run(struct uva__handler_proxy *c, struct call *call)
{
    switch (call->next) {
    case 0:
        call_with_args(c, call);
        break;
    case NEXT_SCHEMA:
        carry_schema(c);
        break;
    case NEXT_END:
        (void)c->to->on_next_task(c->to, NULL, NULL);
        break;
    case NEXT_ERROR:
        c->to->on_error(c->to, c->failure.code,
                        uva__failure_message(&c->failure),
                        uva__failure_metadata(&c->failure));
        break;
    default:
        carry_release(c);
    }
}

static void proxy_run(struct uva_job *job)
{
    struct uva__handler_proxy *c =
        uva__container_of(job, struct uva__handler_proxy, job);
    struct uva__rt *rt = c->rt;
    struct call call;
    bool wake;

    while (call_take(c, &call, &wake)) {
        if (wake)
            proxy_notify(c);
        call_run(c, &call);
    }
    uva__handler_proxy_release(c);
    uva__rt_job_end(rt);
}

/* ---- the loop ----------------------------------------------------------- */

static struct uva__handler_proxy *
proxy_of(struct ArrowAsyncDeviceStreamHandler *handler)
{
    return uva__container_of(handler, struct uva__handler_proxy, handler);
}

/* Starts the job unless it is running. */
static void proxy_put(struct uva__handler_proxy *c, int next)
{
    bool begin;

    uva__lock_take(&c->lock);
    c->locked.next |= next;
    begin = !c->locked.working;
    c->locked.working = true;
    uva__lock_drop(&c->lock);
    if (!begin)
        return;
    uva__atomic64_add(&c->refs, 1);
    if (uva__rt_job_begin(c->rt)) {
        uva__lane_run_uncapped(&c->rt->jobs, &c->job);
        return;
    }
    UVA__UNREACHABLE("a running stream keeps the workers alive");
    uva__handler_proxy_release(c);
}

static int proxy_on_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                           struct ArrowSchema *schema)
{
    struct uva__handler_proxy *c = proxy_of(handler);

    uva_schema_move(schema, &c->schema);
    proxy_put(c, NEXT_SCHEMA);
    return 0;
}

static void proxy_queue(struct uva__handler_proxy *c,
                        const struct call_args *args)
{
    bool full;

    uva__lock_take(&c->lock);
    c->locked.queue[(c->locked.head + c->locked.count++) % QUEUE] = *args;
    full = c->locked.count == QUEUE;
    if (full)
        c->locked.held = true;
    uva__lock_drop(&c->lock);
    if (full)
        uva__producer_hold(c->producer, true);
    proxy_put(c, 0);
}

static int proxy_on_task(struct ArrowAsyncDeviceStreamHandler *handler,
                         struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__handler_proxy *c = proxy_of(handler);
    struct call_args args;
    int left_out;

    if (task == NULL) {
        proxy_put(c, NEXT_END);
        return 0;
    }
    args.task = *task;
    left_out = uva__metadata_copy(&c->rt->allocator, metadata, &args.metadata);
    (void)left_out; /* there is no metadata then */
    proxy_queue(c, &args);
    return 0;
}

static void proxy_on_error(struct ArrowAsyncDeviceStreamHandler *handler,
                           int code, const char *message, const char *metadata)
{
    struct uva__handler_proxy *c = proxy_of(handler);
    struct uva_error error;

    (void)uva_error_set(&error, code, "%s", message);
    uva__failure_set(&c->failure, &c->rt->allocator, code, &error, metadata);
    proxy_put(c, NEXT_ERROR);
}

/* After a release without end or error, queued tasks are not wanted. */
static void proxy_on_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct uva__handler_proxy *c = proxy_of(handler);
    const struct uva__producer_state *state = &c->producer->loop.state;

    if (!state->end_delivered && !state->error_delivered) {
        uva__lock_take(&c->lock);
        c->locked.discard = true;
        uva__lock_drop(&c->lock);
    }
    c->producer = NULL;
    proxy_put(c, NEXT_RELEASE);
}

bool uva__handler_proxy_poll(struct uva__handler_proxy *c)
{
    int refusal;
    bool room, done;

    uva__lock_take(&c->lock);
    refusal = c->locked.refusal;
    done = c->locked.done;
    room = c->locked.held && c->locked.count <= QUEUE / 2;
    if (room)
        c->locked.held = false;
    uva__lock_drop(&c->lock);
    if (room && c->producer != NULL)
        uva__producer_hold(c->producer, false);
    if (refusal != 0 && !c->told && c->producer != NULL) {
        c->told = true;
        uva__producer_refuse(c->producer, refusal);
    }
    return done;
}

int64_t uva__handler_proxy_abandon(struct uva__handler_proxy *c, int *refusal)
{
    int64_t delivered;

    uva__lock_take(&c->lock);
    c->wakeup = NULL;
    c->locked.stuck = !c->locked.done;
    if (c->locked.stuck)
        uva__atomic64_add(&c->rt->stats.calls_stuck, 1);
    delivered = c->locked.delivered;
    *refusal = c->locked.refusal;
    uva__lock_drop(&c->lock);
    return delivered;
}

/* ---- life --------------------------------------------------------------- */

int uva__handler_proxy_new(struct uva__rt *rt,
                           struct ArrowAsyncDeviceStreamHandler *to,
                           struct uva__handler_proxy **out)
{
    struct uva__handler_proxy *c;
    int code = uva__rt_ensure_uncapped(rt);

    if (code != 0)
        return code;
    c = uva__memory_new(&rt->allocator, sizeof(*c));
    if (c == NULL)
        return ENOMEM;
    c->rt = uva__rt_acquire(rt);
    uva__atomic64_store(&c->refs, 1);
    c->to = c->driven.handler = to;
    c->handler.on_schema = proxy_on_schema;
    c->handler.on_next_task = proxy_on_task;
    c->handler.on_error = proxy_on_error;
    c->handler.release = proxy_on_release;
    c->job.run = proxy_run;
    *out = c;
    return 0;
}

struct uva__driven_handler *
uva__handler_proxy_driven(struct uva__handler_proxy *c)
{
    return &c->driven;
}

struct ArrowAsyncDeviceStreamHandler *
uva__handler_proxy_begin(struct uva__handler_proxy *c,
                         struct uva__producer *producer,
                         struct uva__wakeup *wakeup)
{
    uva__producer_acquire(producer);
    c->producer = c->kept = producer;
    c->wakeup = wakeup;
    c->to = uva__check_hop_handler(c->rt, "drive", c->to);
    c->to->producer = &producer->abi; /* AH-03; before the job starts */
    return &c->handler;
}

/* The job holds a reference: after the last release none is running. */
void uva__handler_proxy_release(struct uva__handler_proxy *c)
{
    struct uva__rt *rt = c->rt;

    if (uva__atomic64_sub(&c->refs, 1) != 1)
        return;
    assert(c->locked.count == 0);
    uva_schema_release(&c->schema);
    uva__failure_fini(&c->failure, &rt->allocator);
    uva__memory_free(&rt->allocator, c, sizeof(*c));
    uva__rt_release(rt);
}
