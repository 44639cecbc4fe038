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

#include "base/memory.h"
#include "arrow/metadata.h"
#include "base/unreachable.h"
#include "stream/check_hop.h"
#include "stream/failure.h"
#include "uvarrow/arrow.h"

enum { QUEUE = 64 };

/* A queued task. */
struct parcel {
    struct ArrowAsyncTask task;
    char *metadata; /* owns; or NULL */
    size_t metadata_size;
};

/* Calls to make, besides those for queued tasks; in this order. */
enum {
    NEXT_SCHEMA = 1, /* before all tasks */
    NEXT_END = 2,    /* after all tasks, as the rest */
    NEXT_ERROR = 4,
    NEXT_RELEASE = 8
};

struct uva__courier {
    struct uva__hub *hub;                         /* counts */
    struct uva__word refs;                        /* of its maker and the extra
                                                     thread */
    struct ArrowAsyncDeviceStreamHandler handler; /* for the producer */
    struct ArrowAsyncDeviceStreamHandler *to;     /* the handler that the extra
                                                     thread calls */
    struct uva__producer *producer; /* loop only; until it releases `handler` */
    struct uva__producer *kept;     /* counts, until `to` is released, which may
                                       use it as long */
    struct uva__driven driven;      /* among the handlers in use */
    struct uva__node *node;         /* guarded by the lock */
    struct ArrowSchema schema;      /* owns; written before NEXT_SCHEMA */
    struct uva__failure failure;    /* owns; written before NEXT_ERROR */
    struct uva_job job;             /* the extra thread's */
    bool told;                      /* the refusal was passed on; loop only */

    struct uva__lock lock;
    struct {
        struct parcel queue[QUEUE]; /* a ring */
        uint32_t head, count;       /* index of the first, number of tasks */
        int next;                   /* NEXT_... */
        int refusal;                /* the code that the handler returned, or
                                       0 */
        bool discard;               /* tasks are not wanted any more */
        bool held;                  /* the producer waits for room */
        bool working;               /* the job was submitted, and runs */
        bool done;                  /* the handler was released */
        bool stuck;                 /* abandoned: it counts as stuck */
        int64_t delivered;          /* tasks that the handler was given */
    } locked;
};

/* ---- the extra thread ---------------------------------------------------- */

/* A call to make, taken out of the lock. */
struct errand {
    int next;             /* one of NEXT_..., or 0 for a task */
    bool discard;         /* the task is not wanted */
    struct parcel parcel; /* owns */
};

static bool errand_take_locked(struct uva__courier *c, struct errand *out)
{
    static const int order[] = {NEXT_END, NEXT_ERROR, NEXT_RELEASE};
    size_t i;

    if (c->locked.refusal != 0) /* only release may follow */
        c->locked.next &= NEXT_RELEASE;
    out->discard = c->locked.discard;
    out->next = c->locked.next & NEXT_SCHEMA;
    if (out->next == 0 && c->locked.count > 0) {
        out->parcel = c->locked.queue[c->locked.head++ % QUEUE];
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
static bool errand_take(struct uva__courier *c, struct errand *out, bool *wake)
{
    bool some;

    uva__lock_take(&c->lock);
    some = errand_take_locked(c, out);
    if (!some)
        c->locked.working = false;
    *wake = c->locked.held && c->locked.count <= QUEUE / 2;
    uva__lock_drop(&c->lock);
    return some;
}

/* Wakes the loop, unless the proxy was abandoned. */
static void courier_tell(struct uva__courier *c)
{
    struct uva__node *node;

    uva__lock_take(&c->lock);
    node = c->node;
    if (node != NULL)
        uva__node_acquire(node); /* it must not be freed before it is posted */
    uva__lock_drop(&c->lock);
    if (node == NULL)
        return;
    uva__hub_post(c->hub, node);
    uva__node_release(node);
}

static void courier_refused(struct uva__courier *c, int code)
{
    uva__lock_take(&c->lock);
    c->locked.refusal = code;
    c->locked.discard = true;
    c->locked.next &= NEXT_RELEASE;
    uva__lock_drop(&c->lock);
    courier_tell(c);
}

static void parcel_free(struct uva__courier *c, struct parcel *parcel)
{
    uva__memory_free(&c->hub->allocator, parcel->metadata,
                     parcel->metadata_size);
}

static void carry_parcel(struct uva__courier *c, struct errand *errand)
{
    struct parcel *parcel = &errand->parcel;
    struct ArrowAsyncTask task = parcel->task;
    int code;

    if (errand->discard) {
        uva__task_drop(&task);
    } else {
        code = c->to->on_next_task(c->to, &task, parcel->metadata);
        if (code != 0) {
            uva__task_drop(&parcel->task); /* unless it was extracted (G-18) */
            courier_refused(c, code);
        }
    }
    parcel_free(c, parcel);
}

static void carry_schema(struct uva__courier *c)
{
    int code = c->to->on_schema(c->to, &c->schema);

    uva_schema_release(&c->schema); /* LC-17 */
    if (code != 0)
        courier_refused(c, code);
}

static void carry_release(struct uva__courier *c)
{
    bool stuck;

    /* the handler may be used again inside its release */
    uva__driven_handlers_remove(c->hub, &c->driven);
    c->to->release(c->to);
    uva__producer_release(c->kept);
    uva__lock_take(&c->lock);
    c->locked.done = true;
    stuck = c->locked.stuck;
    uva__lock_drop(&c->lock);
    if (stuck)
        uva__word_sub(&c->hub->counts.calls_stuck, 1);
    courier_tell(c);
}

static void errand_run(struct uva__courier *c, struct errand *errand)
{
    switch (errand->next) {
    case 0:
        carry_parcel(c, errand);
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

static void courier_run(struct uva_job *job)
{
    struct uva__courier *c = uva__container_of(job, struct uva__courier, job);
    struct uva__hub *hub = c->hub;
    struct errand errand;
    bool wake;

    while (errand_take(c, &errand, &wake)) {
        if (wake)
            courier_tell(c);
        errand_run(c, &errand);
    }
    uva__courier_release(c);
    uva__hub_job_end(hub);
}

/* ---- the loop ----------------------------------------------------------- */

static struct uva__courier *
courier_of(struct ArrowAsyncDeviceStreamHandler *handler)
{
    return uva__container_of(handler, struct uva__courier, handler);
}

/* Starts the job unless it is running. */
static void courier_put(struct uva__courier *c, int next)
{
    bool begin;

    uva__lock_take(&c->lock);
    c->locked.next |= next;
    begin = !c->locked.working;
    c->locked.working = true;
    uva__lock_drop(&c->lock);
    if (!begin)
        return;
    uva__word_add(&c->refs, 1);
    if (uva__hub_job_begin(c->hub)) {
        uva__guest_run(&c->hub->jobs, &c->job);
        return;
    }
    UVA__UNREACHABLE("a running stream keeps the workers alive");
    uva__courier_release(c);
}

static int courier_on_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                             struct ArrowSchema *schema)
{
    struct uva__courier *c = courier_of(handler);

    uva_schema_move(schema, &c->schema);
    courier_put(c, NEXT_SCHEMA);
    return 0;
}

static void courier_queue(struct uva__courier *c, const struct parcel *parcel)
{
    bool full;

    uva__lock_take(&c->lock);
    c->locked.queue[(c->locked.head + c->locked.count++) % QUEUE] = *parcel;
    full = c->locked.count == QUEUE;
    if (full)
        c->locked.held = true;
    uva__lock_drop(&c->lock);
    if (full)
        uva__producer_hold(c->producer, true);
    courier_put(c, 0);
}

static int courier_on_task(struct ArrowAsyncDeviceStreamHandler *handler,
                           struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__courier *c = courier_of(handler);
    struct parcel parcel = {0};

    if (task == NULL) {
        courier_put(c, NEXT_END);
        return 0;
    }
    parcel.task = *task;
    if (uva__metadata_copy(&c->hub->allocator, metadata, &parcel.metadata,
                           &parcel.metadata_size) != 0)
        parcel.metadata = NULL;
    courier_queue(c, &parcel);
    return 0;
}

static void courier_on_error(struct ArrowAsyncDeviceStreamHandler *handler,
                             int code, const char *message,
                             const char *metadata)
{
    struct uva__courier *c = courier_of(handler);
    struct uva_error error;

    (void)uva_error_set(&error, code, "%s", message);
    uva__failure_set(&c->failure, &c->hub->allocator, code, &error, metadata);
    courier_put(c, NEXT_ERROR);
}

/* After a release without end or error, queued tasks are not wanted. */
static void courier_on_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct uva__courier *c = courier_of(handler);
    const struct uva__producer_state *state = &c->producer->loop.state;

    if (!state->end_told && !state->error_told) {
        uva__lock_take(&c->lock);
        c->locked.discard = true;
        uva__lock_drop(&c->lock);
    }
    c->producer = NULL;
    courier_put(c, NEXT_RELEASE);
}

bool uva__courier_heed(struct uva__courier *c)
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

int64_t uva__courier_forget(struct uva__courier *c, int *refusal)
{
    int64_t delivered;

    uva__lock_take(&c->lock);
    c->node = NULL;
    c->locked.stuck = !c->locked.done;
    if (c->locked.stuck)
        uva__word_add(&c->hub->counts.calls_stuck, 1);
    delivered = c->locked.delivered;
    *refusal = c->locked.refusal;
    uva__lock_drop(&c->lock);
    return delivered;
}

/* ---- life --------------------------------------------------------------- */

int uva__courier_new(struct uva__hub *hub,
                     struct ArrowAsyncDeviceStreamHandler *to,
                     struct uva__courier **out)
{
    struct uva__courier *c;
    int code = uva__hub_ensure_guest(hub);

    if (code != 0)
        return code;
    c = uva__memory_new(&hub->allocator, sizeof(*c));
    if (c == NULL)
        return ENOMEM;
    c->hub = uva__hub_acquire(hub);
    uva__word_store(&c->refs, 1);
    c->to = c->driven.handler = to;
    c->handler.on_schema = courier_on_schema;
    c->handler.on_next_task = courier_on_task;
    c->handler.on_error = courier_on_error;
    c->handler.release = courier_on_release;
    c->job.run = courier_run;
    *out = c;
    return 0;
}

struct uva__driven *uva__courier_driven(struct uva__courier *c)
{
    return &c->driven;
}

struct ArrowAsyncDeviceStreamHandler *
uva__courier_begin(struct uva__courier *c, struct uva__producer *producer,
                   struct uva__node *node)
{
    uva__producer_acquire(producer);
    c->producer = c->kept = producer;
    c->node = node;
    c->to = uva__checked_hop(c->hub, "drive", c->to);
    c->to->producer = &producer->abi; /* AH-03; before the job starts */
    return &c->handler;
}

/* The job holds a reference: after the last release none is running. */
void uva__courier_release(struct uva__courier *c)
{
    struct uva__hub *hub = c->hub;

    if (uva__word_sub(&c->refs, 1) != 1)
        return;
    assert(c->locked.count == 0);
    uva_schema_release(&c->schema);
    uva__failure_fini(&c->failure, &hub->allocator);
    uva__memory_free(&hub->allocator, c, sizeof(*c));
    uva__hub_release(hub);
}
