/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's side of a reader: grants credits, takes filled slots, stops it.
 *
 * Happy path:  started -> (worker) opened, schema -> the loop grants credits
 *              -> the worker fills slots, and wakes the loop for each -> the
 *              loop takes them -> end -> (worker) source closed.
 *
 * Failures:
 * - open, schema or a read: reported after the batches before it;
 * - a batch that does not fit the schema: EPROTO.
 *
 * On stop:     no call is waited for. A call in progress is interrupted, if the
 *              source can do that; when it returns, the worker discards its
 *              batch and closes the source. Its thread is written off if that
 *              takes long. If the worker waits for a thread while all are busy,
 *              an extra thread closes the source. The loop takes the slots back
 *              after that. */

#include "source/reader.h"

#include <errno.h>

#include "base/memory.h"
#include "stream/slots.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

enum { FIRST_BATCHES = 2 };

/* ---- life --------------------------------------------------------------- */

static struct uva__reader *reader_of(struct uva__source *source)
{
    return uva__container_of(source, struct uva__reader, source);
}

static const struct uva__task *task_of(const struct uva__link *link)
{
    return uva__container_of(link, const struct uva__task, link);
}

static void reader_free_permit(struct uva__reader *r, struct uva__rt *rt)
{
    if (r->loop.permit == NULL)
        return;
    uva_permits_release(r->loop.permit->own);
    uva__memory_free(&rt->allocator, r->loop.permit, sizeof(*r->loop.permit));
    r->loop.permit = NULL;
}

static void reader_free(struct uva__source *source,
                        const struct uva_allocator *allocator)
{
    struct uva__reader *r = reader_of(source);

    uva__metadata_fini(&r->worker.metadata, allocator, NULL);
    uva__failure_fini(&r->worker.failure, allocator);
    reader_free_permit(r, source->rt);
    if (r->ops->free != NULL)
        r->ops->free(r);
}

/* ---- the loop: as a source ----------------------------------------------- */

/* Lets the worker read `count` more batches, and starts it if `from` has the
 * source. */
static void reader_grant(struct uva__reader *r, enum uva__reader_owner from,
                         int64_t count)
{
    r->loop.granted += (uint64_t)count;
    if (uva__reader_credit_grant(&r->credit, from, (uint64_t)count))
        uva__reader_worker_start(r);
}

/* How many batches the job that opens the source may read, too: the first, and
 * the end, or the second, behind it. The consumer will request one without
 * asking the program, so that a second job and a turn are saved. */
static int64_t reader_first_room(struct uva__reader *r)
{
    struct uva__producer *p = r->source.producer;

    if (!p->loop->asks || p->loop->limit == 0 || r->on_loop ||
        r->window.batches < FIRST_BATCHES)
        return 0;
    return uva__share_room(&r->source.share, &p->wakeup, FIRST_BATCHES, -1);
}

static void reader_open(void *ctx)
{
    struct uva__reader *r = ctx;
    const int64_t room = reader_first_room(r);

    uva__meter_block(r->source.meter, UVA_WAITING_NONE);
    r->job.priority = r->source.producer->priority;
    if (room > 0) /* the job does not give way before the end, either */
        (void)uva__awaited_want(&r->awaited, (uint64_t)room);
    reader_grant(r, UVA__READER_IDLE, room);
}

/* The worker reports the failure, and closes the source, which it never
 * opens. */
static void reader_on_expiry(void *ctx)
{
    struct uva__reader *r = ctx;

    uva__failure_format(&r->worker.failure, &r->source.rt->allocator, ETIMEDOUT,
                        "%s: got no permit within %lld ms",
                        uva__permits_name(r->loop.permit->own, r->source.name),
                        (long long)uva__permits_wait_ms(r->loop.permit->own));
    r->worker.reading = UVA__READING_OVER;
    reader_open(r);
}

/* With permits, a source waits for one before it is opened. */
static void reader_start(struct uva__source *source)
{
    struct uva__reader *r = reader_of(source);
    const bool ahead = source->producer->loop->ahead;

    r->loop.phase = UVA__READER_STARTED;
    if (!ahead && r->ops->needed != NULL)
        r->ops->needed(r);
    if (r->loop.permit != NULL)
        r->loop.permit->ahead = ahead;
    if (r->loop.permit == NULL || uva__permits_take(r->loop.permit))
        reader_open(r);
    else
        uva__meter_block(source->meter, UVA_WAITING_PERMIT);
}

/* A call that ends meanwhile may be left out. */
static uint64_t reader_busy_ns(const struct uva__source *source,
                               uint64_t now_ns, bool *is_busy)
{
    const struct uva__reader *r =
        uva__container_of(source, struct uva__reader, source);
    const uint64_t spent_ns = uva__atomic64_load(&r->busy_ns),
                   since_ns = uva__atomic64_load(&r->busy_since);

    *is_busy = since_ns != 0;
    return spent_ns +
           (since_ns != 0 && now_ns > since_ns ? now_ns - since_ns : 0);
}

static bool reader_waits(const struct uva__reader *r)
{
    return r->loop.permit != NULL && r->loop.permit->waits;
}

static void reader_need(struct uva__source *source)
{
    struct uva__reader *r = reader_of(source);

    if (reader_waits(r) && r->ops->needed != NULL)
        r->ops->needed(r);
    if (r->loop.permit != NULL)
        uva__permits_need(r->loop.permit);
}

/* The source is closed: its permit is free for the next one, and this one takes
 * no other. The stream may stay much longer. */
static void reader_end_permit(struct uva__reader *r)
{
    if (r->loop.permit == NULL)
        return;
    uva__permits_end(r->loop.permit);
    reader_free_permit(r, r->source.rt);
}

/* Notes how large the batches are that came last, if the runtime limits its
 * memory. */
static void reader_measure(struct uva__reader *r, const struct uva__link *link)
{
    for (; link != NULL && r->source.share.account != NULL; link = link->next)
        if (task_of(link)->info.bytes > r->loop.largest)
            r->loop.largest = task_of(link)->info.bytes;
}

/* Takes the batches that have come; on the loop thread they are ready once they
 * are read. Reads the facts before them: so with the end, all batches before it
 * are seen. */
static void reader_absorb(struct uva__reader *r)
{
    struct uva__source *source = &r->source;
    struct uva__kept *ready = &r->inbox.ready;
    unsigned facts;

    r->loop.owner = uva__reader_credit_look(&r->credit, &facts);
    reader_measure(r, r->on_loop ? ready->tasks.head
                                 : uva__inbox_absorb(&r->inbox));
    source->ready = ready->count;
    uva__atomic64_store(&r->consumed, r->loop.bytes);
    if ((facts & READER_DESCRIBED) && !source->schema_known) {
        uva__metadata_move(&r->worker.metadata, &source->metadata);
        source->device_type = r->worker.device_type;
        source->schema_known = true;
    }
    if ((facts & READER_ENDED) && !source->ended && source->failure.code == 0) {
        uva__failure_move(&r->worker.failure, &source->failure,
                          &source->rt->allocator);
        source->ended = source->failure.code == 0;
    }
}

/* The batches that are ready, or that the worker may read. */
static int64_t reader_used(const struct uva__reader *r)
{
    return (int64_t)(r->loop.granted - r->loop.taken);
}

/* The memory found in the batch that goes next, if the runtime limits its
 * memory: it lies at the end of the object. */
static struct uva__share_kept *reader_kept(struct uva__reader *r)
{
    return (struct uva__share_kept *)(void *)((char *)r + r->source.size) - 1;
}

/* States the bytes that the window holds, and asked for at the size of the
 * largest batch, if the runtime limits its memory. */
static void reader_account(struct uva__reader *r)
{
    const struct uva__task *oldest;
    int64_t bytes = r->inbox.ready.bytes;

    if (r->source.share.account == NULL)
        return;
    if (r->loop.largest > 0)
        bytes += (reader_used(r) - r->source.ready) * r->loop.largest;
    uva__share_hold(&r->source.share, reader_used(r), bytes);
    if (r->source.ready == 0)
        return;
    oldest = uva__kept_first(&r->inbox.ready);
    if (!oldest->is_lazy)
        uva__share_keep(&r->source.share, reader_kept(r), r->worker.measure,
                        &oldest->array, &oldest->info);
}

/* The consumer waits for batch number `count`, or for the source to be closed:
 * a job that is queued to read ahead goes before others now. */
static void reader_want(struct uva__reader *r, uint64_t count)
{
    if (uva__awaited_want(&r->awaited, count))
        uva__lane_raise(&r->source.rt->jobs, UVA_LANE_BLOCKING, &r->job);
}

/* A worker that has paused goes on when half of its bytes were consumed. */
static void reader_unpause(struct uva__reader *r)
{
    if (r->loop.owner == UVA__READER_PAUSED &&
        (r->inbox.ready.bytes <= r->window.bytes / 2 || r->source.ready == 0))
        reader_grant(r, UVA__READER_PAUSED, 0);
}

/* Returns how many more batches the worker may read. A source on the loop
 * thread is read only when batches are requested, and only as many as one run
 * of its wake-up may deliver. */
static int64_t reader_room(const struct uva__reader *r, int64_t demand)
{
    const int64_t used = reader_used(r);
    int64_t quantum = r->source.rt->loop.quantum;

    if (!r->on_loop)
        return uva__window_room(&r->window, demand, used);
    if (quantum > r->window.batches)
        quantum = r->window.batches;
    if (demand == 0)
        return 0;
    return quantum > used ? quantum - used : 0;
}

static void reader_pull(struct uva__source *source, int64_t demand)
{
    struct uva__reader *r = reader_of(source);
    int64_t wanted, room;

    if (reader_waits(r))
        return;
    reader_absorb(r);
    uva__meter_hold(source->meter, source->ready, r->inbox.ready.bytes);
    reader_account(r);
    if (source->ended || source->failure.code != 0)
        return;
    if (demand > 0)
        r->loop.phase = UVA__READER_REQUESTED;
    if (r->loop.phase != UVA__READER_REQUESTED)
        return;
    if (demand > 0 && source->ready == 0)
        reader_want(r, r->loop.taken + 1);
    reader_unpause(r);
    wanted = reader_room(r, demand);
    room = uva__share_room(&source->share, &source->producer->wakeup, wanted,
                           r->loop.largest);
    if (source->share.account != NULL)
        uva__meter_block(source->meter, wanted > 0 && room == 0
                                            ? UVA_WAITING_MEMORY
                                            : UVA_WAITING_NONE);
    if (room > 0)
        reader_grant(r, UVA__READER_IDLE, room);
    if (r->on_loop)
        reader_absorb(r); /* the batches were made meanwhile */
    reader_account(r);
}

static struct uva__task *reader_take(struct uva__source *source)
{
    struct uva__reader *r = reader_of(source);
    struct uva__task *task = uva__kept_pop(&r->inbox.ready);

    source->ready--;
    r->loop.phase = UVA__READER_REQUESTED;
    r->loop.taken++;
    r->loop.bytes += (uint64_t)task->info.bytes;
    return task;
}

/* ---- the loop: stopping ------------------------------------------------- */

static void reader_stop(struct uva__source *source)
{
    struct uva__reader *r = reader_of(source);
    enum uva__reader_owner owner;

    owner = uva__reader_credit_cancel(&r->credit);
    (void)uva__inbox_absorb(&r->inbox);
    uva__kept_drop(&r->inbox.ready, source);
    source->ready = 0;
    uva__share_stop(&source->share);
    uva__meter_hold(source->meter, 0, 0);
    reader_want(r, UVA__AWAITED_ALL);
    if (reader_waits(r))
        uva__permits_end(r->loop.permit);
    if (owner == UVA__READER_CLOSED) {
        reader_end_permit(r);
        return;
    }
    if (!uva__reader_worker_cancel(r))
        uva__rt_hold_up(source->rt, &r->loop.hold_up, NULL);
    if (owner != UVA__READER_RUNNING)
        reader_grant(r, owner, 0);
    uva__reader_worker_give_up(r);
}

static void reader_posted(struct uva__source *source)
{
    struct uva__reader *r = reader_of(source);
    unsigned facts;

    if (uva__reader_credit_look(&r->credit, &facts) != UVA__READER_CLOSED)
        return;
    reader_end_permit(r);
    uva__rt_drop_hold_up(source->rt, &r->loop.hold_up);
}

/* A source that was never started still has to be closed, by a worker. A source
 * that may run on the loop thread is closed here, if this is that thread or no
 * worker can be started. */
static void reader_leave(struct uva__source *source)
{
    struct uva__reader *r = reader_of(source);

    if (r->loop.phase == UVA__READER_NEW) {
        source->stopped = true;
        r->worker.reading = UVA__READING_OVER;
        r->on_loop =
            r->on_loop && (uva__rt_on_loop(source->rt) ||
                           uva__rt_ensure_lane(source->rt, UVA_LANE_BLOCKING));
        uva__reader_worker_start(r);
        uva__reader_worker_give_up(r);
    }
    uva__source_release(source);
}

/* ---- making one --------------------------------------------------------- */

/* Makes the permit of a source with a limit. 0 or ENOMEM. */
static int reader_limit(struct uva__reader *r, struct uva__rt *rt, bool on_loop,
                        struct uva_permits *permits)
{
    struct uva__permit *permit;

    if (on_loop || permits == NULL)
        return 0;
    permit = uva__memory_new(&rt->allocator, sizeof(*permit));
    if (permit == NULL)
        return ENOMEM;
    permit->of = uva__permits_of(permits);
    permit->own = uva__permits_acquire(permits);
    permit->begin = reader_open;
    permit->expire = reader_on_expiry;
    permit->ctx = r;
    r->loop.permit = permit;
    return 0;
}

#define READER_OPS                                                             \
    .start = reader_start, .pull = reader_pull, .take = reader_take,           \
    .stop = reader_stop, .leave = reader_leave, .free = reader_free,           \
    .posted = reader_posted, .need = reader_need, .busy_ns = reader_busy_ns

/* The worker, or the budget, wakes the first; the second makes its batches in
 * its pull. */
static const struct uva__source_ops worker_ops = {READER_OPS, .direct = true};
static const struct uva__source_ops inline_ops = {READER_OPS,
                                                  .pulls_inline = true};

void uva__reader_require(struct uva__source_setup *setup, bool on_loop,
                         bool can_interrupt)
{
    if (!on_loop)
        setup->needs |= UVA__SOURCE_BLOCKING;
    if (can_interrupt)
        setup->needs |= UVA__SOURCE_UNCAPPED;
    if (setup->rt->memory_bytes > 0)
        setup->more += sizeof(struct uva__share_kept);
}

int uva__reader_init(struct uva__reader *r, const struct uva__reader_ops *ops,
                     const struct uva__source_setup *setup, bool on_loop,
                     bool can_interrupt, struct uva_permits *permits)
{
    int code;

    r->source.ops = on_loop ? &inline_ops : &worker_ops;
    r->ops = ops;
    r->on_loop = on_loop;
    r->can_interrupt = can_interrupt;
    r->window = setup->window;
    r->loop.largest = -1;
    r->job.run = uva__reader_worker_run;
    r->job.awaited = &r->awaited;
    r->interrupter.run = uva__reader_worker_interrupt;
    (void)uva__awaited_want(&r->awaited, 1); /* for the schema */
    code = reader_limit(r, setup->rt, on_loop, permits);
    if (code == 0)
        uva__source_acquire(&r->source); /* the worker's */
    return code;
}
