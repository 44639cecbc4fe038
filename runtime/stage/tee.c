/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_tee(): an inlet with several sources, the branches, one for each
 * stream. The stream that the stage is added to is branch 0; a tee that is
 * added right after another tee becomes a branch of that, so that the memory of
 * a batch is counted once for all branches. Each branch has its own queue.
 *
 * Happy path:  the first branch starts, and with it the inlet -> (request to
 *              the producer above, its task, which is extracted -> a slot
 *              of each branch shares its data -> the producer below takes it)*
 *              -> the end, which each branch passes on.
 *
 * Failures:    the producer above: each branch passes the failure on, after its
 *              queued batches. A branch that is too slow, or that gets no
 *              memory for its slot: it alone.
 *
 * On cancel:   of a branch: its batches are released, and the other branches go
 *              on. When the last one is closed, the producer above is
 *              cancelled. A branch that was not started is closed by the thread
 *              that releases its stream, through a wake-up, or by the close of
 *              the runtime.
 *
 *     tee      branches are added, on any thread --first start--> started, and
 *              the inlet runs --its end, or all branches closed--> released
 *
 *     branch   unstarted --start--> started --stop, slow, no memory--> closed
 *                  |                                                     ^
 *                  '-- released unstarted, or the runtime closes --------'
 */

#include <errno.h>

#include "arrow/share.h"
#include "arrow/structs.h"
#include "base/memory.h"
#include "base/unreachable.h"
#include "stage/stage.h"
#include "stream/inlet.h"
#include "stream/options.h"
#include "stream/slots.h"
#include "stream/stream_impl.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

struct tee;

struct branch {
    struct uva__source source; /* first */
    struct tee *tee;           /* counts, until leave */
    struct branch *next;       /* owns: the next one, in order */
    size_t number;             /* from 0; 0 is the first branch */
    enum uva_slow slow;
    struct uva__atomic64 left; /* 1: was released unstarted; any thread */

    /* the loop thread's alone */
    bool closed;           /* it takes no more batches */
    struct uva__intake in; /* requested by the tee, for all branches */
    struct uva__kept kept; /* batches, which share their data */
    int64_t demand;        /* as of the last pull */
};

struct tee {
    struct uva__inlet inlet;     /* first */
    struct uva__wakeup wakeup;   /* posted by a branch that leaves unstarted;
                                    counted by branches, the inlet, posts */
    struct uva__rt *rt;          /* counts */
    struct uva__share share;     /* of the batches that branches hold */
    struct uva__hold_up hold_up; /* held while the inlet is in use */
    struct uva__lock lock;       /* guards these until `started` */
    struct branch *branches;     /* owns: in order */
    size_t count;                /* of branches */
    size_t open;                 /* branches that are not closed */
    bool started;                /* no branch is added any more */

    /* the loop thread's alone */
    struct ArrowSchema schema;   /* owns */
    struct uva__metadata about;  /* owns: metadata of the producer above */
    ArrowDeviceType device_type; /* known with the schema */
    struct uva__intake above;    /* its batches that are requested alone, as
                                    branches hold them */
};

static struct branch *branch_at(struct uva__source *source)
{
    return uva__container_of(source, struct branch, source);
}

static struct tee *tee_at(struct uva__inlet *inlet)
{
    return uva__container_of(inlet, struct tee, inlet);
}

static const struct uva_allocator *allocator_of(const struct tee *t)
{
    return &t->rt->allocator;
}

/* ---- batches ------------------------------------------------------------ */

static struct uva__task *branch_pop(struct branch *b)
{
    struct uva__task *slot = uva__kept_pop(&b->kept);

    if (slot != NULL)
        uva__intake_leave(&b->in, slot->info.bytes);
    return slot;
}

/* Discards the batch of a slot. Any thread, as a branch that was not started
 * may outlive the loop. */
static void slot_drop(struct uva__rt *rt, struct uva__task *slot)
{
    struct uva__list one = {0};

    uva__list_push(&one, &slot->link);
    uva__slots_discard_tasks(rt, &one);
}

/* Drops the oldest batch; false: the branch holds no batch. */
static bool branch_drop(struct branch *b)
{
    struct uva__task *slot = branch_pop(b);

    if (slot == NULL)
        return false;
    slot_drop(b->source.rt, slot);
    return true;
}

/* States the batches that the stream holds, and their bytes: while the memory
 * of the runtime is used up, its source gets no further batch unless the number
 * of batches is 0.
 * - The number is the longest queue of a branch of UVA_SLOW_WAIT, as a branch
 *   that may lose batches does not hold up the others. Without a branch of
 *   UVA_SLOW_WAIT it is the shortest queue, so that no empty branch is held up.
 * - The bytes are the largest queue, as every open branch holds the latest
 *   batches; the bytes of closed branches are added. */
static void tee_account(struct tee *t)
{
    int64_t most = 0, least = INT64_MAX, bytes = 0, apart = 0;
    const struct branch *b;
    bool waits = false;

    if (t->share.account == NULL)
        return;
    for (b = t->branches; b != NULL; b = b->next) {
        if (b->closed) {
            apart += b->in.bytes;
            continue;
        }
        bytes = b->in.bytes > bytes ? b->in.bytes : bytes;
        least = b->in.held < least ? b->in.held : least;
        if (b->slow != UVA_SLOW_WAIT)
            continue;
        waits = true;
        most = b->in.held > most ? b->in.held : most;
    }
    if (!waits && least != INT64_MAX)
        most = least;
    uva__share_hold(&t->share, most, bytes + apart);
}

/* ---- branches ----------------------------------------------------------- */

/* The branch takes no more batches. */
static void branch_close(struct branch *b)
{
    if (b->closed)
        return;
    b->closed = true;
    if (--b->tee->open == 0)
        uva__inlet_quit(&b->tee->inlet);
}

/* The failure follows the batches that are queued. */
static void branch_fail(struct branch *b, int code, const char *text)
{
    uva__failure_format(&b->source.failure, allocator_of(b->tee), code,
                        "tee: %s", text);
    branch_close(b);
}

/* Whether another batch fits; an empty branch has room for any batch. */
static bool branch_has_room(const struct branch *b)
{
    const struct uva__intake *in = &b->in;

    return in->held == 0 ||
           (in->held < in->window.batches && in->bytes < in->window.bytes);
}

/* Makes room by dropping the batches that waited longest. */
static void branch_drop_old(struct branch *b)
{
    while (!branch_has_room(b)) {
        (void)branch_drop(b);
        uva__meter_drop(b->source.meter, 1);
    }
}

/* Whether the branch takes the next batch. A branch of UVA_SLOW_WAIT has room
 * for every requested batch. */
static bool branch_admits(struct branch *b)
{
    if (b->closed)
        return false;
    if (b->slow == UVA_SLOW_WAIT || branch_has_room(b))
        return true;
    switch (b->slow) {
    case UVA_SLOW_DROP_OLD:
        branch_drop_old(b);
        return true;
    case UVA_SLOW_DROP_NEW:
        uva__meter_drop(b->source.meter, 1);
        return false;
    default:
        branch_fail(b, EOVERFLOW, "the branch is too slow: its window is full");
        return false;
    }
}

/* How much more the branch takes: while it has requested something, as much as
 * is worth a request; or, with `all`, as much as there is room for. One batch
 * is requested first, to know a size. */
static int64_t branch_room(const struct branch *b, bool all)
{
    const struct uva__intake *in = &b->in;
    const int64_t requested = b->tee->above.requested;
    const int64_t used = in->held + requested;
    int64_t room = uva__window_room(&in->window, b->demand, used);

    if (all)
        room = uva__window_allowed(&in->window, b->demand) - used;
    else if (!in->started)
        return 0;
    return uva__intake_fit(in, room, requested, 1);
}

/* Requests the batches of the fastest branch, as far as the branches of
 * UVA_SLOW_WAIT have room for them. */
static void tee_request(struct tee *t)
{
    int64_t wanted = 0, most = INT64_MAX, room;
    struct branch *b;

    if (!uva__inlet_is_open(&t->inlet))
        return;
    for (b = t->branches; b != NULL; b = b->next) {
        if (b->closed)
            continue;
        room = branch_room(b, false);
        wanted = room > wanted ? room : wanted;
        room = branch_room(b, true);
        if (b->slow == UVA_SLOW_WAIT && room < most)
            most = room;
    }
    wanted = wanted < most ? wanted : most;
    uva__inlet_request_for(&t->inlet, &t->above, wanted > 0 ? wanted : 0);
}

static void branch_close_and_drop(struct branch *b)
{
    while (branch_drop(b))
        ;
    branch_close(b);
}

/* Ends the branches that were released without a start; with `all`, every
 * unstarted one. */
static void tee_end_unstarted(struct tee *t, bool all)
{
    struct branch *b;

    for (b = t->branches; b != NULL; b = b->next)
        if (!b->source.started && (all || uva__atomic64_load(&b->left) != 0))
            branch_close_and_drop(b);
    tee_account(t);
    tee_request(t);
}

/* ---- calls from the producer above -------------------------------------- */

static int tee_schema(struct uva__inlet *inlet, struct ArrowSchema *schema,
                      struct uva_error *error)
{
    const struct ArrowAsyncProducer *above = inlet->handler.producer;
    struct tee *t = tee_at(inlet);

    (void)error;
    if (uva__metadata_copy(allocator_of(t), above->additional_metadata,
                           &t->about) == ENOMEM)
        return ENOMEM;
    uva_schema_move(schema, &t->schema);
    t->device_type = above->device_type;
    return 0;
}

/* Gives the branch the batch, in a slot that it takes. */
static void branch_put(struct branch *b, struct uva__task *slot)
{
    uva__intake_put(&b->in, slot->info.bytes);
    uva__kept_push(&b->kept, slot);
}

/* Gives the branch a batch that shares the data of `from` with up to `others`.
 */
static void branch_share(struct branch *b, struct uva__task *from,
                         struct uva__array_share_room *room, int64_t others)
{
    struct uva__rt *rt = b->tee->rt;
    struct uva__task *slot =
        uva__slots_new_task(rt, NULL, from->info.metadata.block);
    int code = ENOMEM;

    if (slot != NULL)
        code = uva__array_share_more(&rt->allocator, room, &from->array, others,
                                     &slot->array);
    if (code != 0) {
        if (slot != NULL)
            uva__slots_end_task(rt, NULL, slot);
        branch_fail(b, code, "a batch cannot be shared");
        return;
    }
    slot->info.ordinal = from->info.ordinal;
    slot->info.bytes = from->info.bytes;
    slot->measured = from->measured;
    branch_put(b, slot);
}

/* Shares the batch in `slot` (takes it) between the branches that admit it.
 * Each gets its part when the next branch is found, so that the last branch
 * gets the slot itself. */
static void tee_share(struct tee *t, struct uva__task *slot)
{
    const int64_t others = (int64_t)t->open - 1;
    struct uva__array_share_room room = {0};
    struct branch *before = NULL, *b;

    for (b = t->branches; b != NULL; b = b->next) {
        if (!branch_admits(b))
            continue;
        if (before != NULL)
            branch_share(before, slot, &room, others);
        before = b;
    }
    if (before != NULL)
        branch_put(before, slot);
    else
        slot_drop(t->rt, slot);
    uva__array_share_give_up(&room);
}

static void tee_task(struct uva__inlet *inlet, struct ArrowAsyncTask *task,
                     const char *metadata)
{
    struct tee *t = tee_at(inlet);
    struct uva__task *slot =
        uva__kept_take_in(inlet, NULL, task, metadata, UVA__KEPT_BATCH);
    struct branch *b;

    uva__intake_come(&t->above);
    for (b = t->branches; slot != NULL && b != NULL; b = b->next)
        uva__intake_note_size(&b->in, slot->info.bytes);
    if (slot != NULL)
        tee_share(t, slot);
    tee_account(t);
}

static void tee_news(struct uva__inlet *inlet)
{
    struct branch *b;

    for (b = tee_at(inlet)->branches; b != NULL; b = b->next)
        if (b->source.started && !b->source.stopped)
            uva__producer_wake(b->source.producer);
}

static void tee_released(struct uva__inlet *inlet)
{
    struct tee *t = tee_at(inlet);

    uva__rt_drop_hold_up(t->rt, &t->hold_up);
    uva__wakeup_release(&t->wakeup);
}

static const struct uva__inlet_ops inlet_ops = {tee_schema, tee_task, tee_news,
                                                tee_released};

/* ---- as sources --------------------------------------------------------- */

/* The close of the runtime has ended all streams: branches that were not
 * started never will be. */
static void tee_end_all_unstarted(struct uva__hold_up *hold_up)
{
    tee_end_unstarted(uva__container_of(hold_up, struct tee, hold_up), true);
}

static const struct uva__hold_up_ops hold_up_ops = {tee_end_all_unstarted,
                                                    NULL};

/* Starts the producer above, with the priority of the branch that starts first.
 */
static void tee_start(struct tee *t, const struct uva__producer *below)
{
    uva__lock_take(&t->lock);
    t->started = true;
    uva__lock_drop(&t->lock);
    uva__rt_hold_up(t->rt, &t->hold_up, &hold_up_ops);
    uva__wakeup_acquire(&t->wakeup); /* the inlet's */
    uva__inlet_begin(&t->inlet, below, false);
    tee_end_unstarted(t, false);
}

/* The producer above is needed if one branch is. */
static void branch_need(struct uva__source *source)
{
    uva__inlet_need(&branch_at(source)->tee->inlet);
}

static void branch_start(struct uva__source *source)
{
    struct branch *b = branch_at(source);

    if (!b->tee->started)
        tee_start(b->tee, source->producer);
    else if (!source->producer->loop->ahead)
        branch_need(source);
}

/* Passes on a copy of the schema of the tee. */
static void branch_take_schema(struct branch *b)
{
    struct uva__source *source = &b->source;
    struct tee *t = b->tee;

    if (source->schema_known || !t->inlet.known)
        return;
    if (uva__structs_copy_schema(allocator_of(t), &t->schema,
                                 &source->schema) != 0 ||
        uva__metadata_copy(allocator_of(t), t->about.block,
                           &source->metadata) == ENOMEM) {
        uva_schema_release(&source->schema);
        branch_fail(b, ENOMEM, "no memory for the schema");
        return;
    }
    source->device_type = t->device_type;
    source->schema_known = true;
}

static void branch_conclude(struct branch *b)
{
    struct uva__source *source = &b->source;
    struct tee *t = b->tee;
    const struct uva__failure *why = &t->inlet.failure;

    if (source->failure.code != 0 || source->ended)
        return;
    if (why->code != 0)
        uva__failure_set(&source->failure, allocator_of(t), why->code,
                         uva__failure_error(why), uva__failure_metadata(why));
    else
        source->ended = t->inlet.state == UVA__INLET_ENDED;
}

static void branch_pull(struct uva__source *source, int64_t demand)
{
    struct branch *b = branch_at(source);

    b->demand = demand;
    (void)uva__intake_start(&b->in, demand);
    branch_take_schema(b);
    branch_conclude(b);
    source->ready = b->in.held;
    uva__meter_hold(source->meter, b->in.held, b->in.bytes);
    tee_account(b->tee);
    tee_request(b->tee);
}

static struct uva__task *branch_take(struct uva__source *source)
{
    struct uva__task *slot = branch_pop(branch_at(source));

    slot->producer = source->producer;
    source->ready--;
    return slot;
}

/* The stop of the last branch waits if a stage above uses the consumer's device
 * stream. */
static void branch_stop(struct uva__source *source)
{
    struct branch *b = branch_at(source);
    struct tee *t = b->tee;

    source->ready = 0;
    branch_close_and_drop(b);
    if (t->inlet.state == UVA__INLET_QUIT)
        uva__inlet_await(&t->inlet, source);
    tee_account(b->tee);
    tee_request(b->tee);
}

/* Before the tee starts, `left` is enough, as tee_start() looks
 * at it: a wake-up would hold the tee if the loop never ran again. */
static void branch_leave(struct uva__source *source)
{
    struct branch *b = branch_at(source);
    struct tee *t = b->tee;
    bool wakes;

    if (!b->source.started) {
        uva__lock_take(&t->lock);
        uva__atomic64_store(&b->left, 1);
        wakes = t->started;
        uva__lock_drop(&t->lock);
        if (wakes)
            (void)uva__rt_wake(t->rt, &t->wakeup);
    }
    uva__wakeup_release(&t->wakeup);
}

static const struct uva__source *branch_above(const struct uva__source *source)
{
    return uva__inlet_source(
        &uva__container_of(source, struct branch, source)->tee->inlet);
}

static const struct uva__source_ops branch_ops = {
    .name = "tee",
    .start = branch_start,
    .pull = branch_pull,
    .take = branch_take,
    .stop = branch_stop,
    .leave = branch_leave,
    .need = branch_need,
    .above = branch_above,
};

/* ---- life --------------------------------------------------------------- */

static bool tee_on_wakeup(struct uva__wakeup *wakeup)
{
    struct tee *t = uva__container_of(wakeup, struct tee, wakeup);

    tee_end_unstarted(t, false);
    return false;
}

static void branch_free(struct branch *b, const struct uva_allocator *allocator)
{
    while (branch_drop(b)) /* it was not started before the runtime closed */
        ;
    uva__source_fini(&b->source);
    uva__memory_free(allocator, b, sizeof(*b));
}

static void tee_free(struct uva__wakeup *wakeup)
{
    struct tee *t = uva__container_of(wakeup, struct tee, wakeup);
    struct uva__rt *rt = t->rt;
    struct branch *b;

    uva__inlet_close(&t->inlet);
    while ((b = t->branches) != NULL) {
        t->branches = b->next;
        branch_free(b, &rt->allocator);
    }
    uva__inlet_fini(&t->inlet);
    uva__metadata_fini(&t->about, &rt->allocator, NULL);
    uva_schema_release(&t->schema);
    uva__share_close(&t->share);
    uva__memory_free(&rt->allocator, t, sizeof(*t));
    uva__rt_release(rt);
}

/* ---- making one --------------------------------------------------------- */

/* Makes a branch that belongs to no tee so far; NULL without memory. */
static struct branch *branch_new(const struct uva__source *like,
                                 enum uva_slow slow,
                                 const struct uva__window *window)
{
    struct branch *b = uva__memory_new(&like->rt->allocator, sizeof(*b));

    if (b == NULL)
        return NULL;
    uva__source_init(&b->source, &branch_ops, like->rt);
    uva__share_join(&b->source.share, &like->share);
    b->source.device_type = like->device_type;
    b->slow = slow;
    uva__intake_init(&b->in, window);
    return b;
}

/* Adds a branch (takes it) to a tee that has not started; otherwise without
 * effect. */
static bool tee_add(struct tee *t, struct branch *b)
{
    struct branch **end = &t->branches;
    bool added;

    uva__lock_take(&t->lock);
    added = !t->started;
    if (added) {
        while (*end != NULL)
            end = &(*end)->next;
        *end = b;
        b->tee = t;
        b->number = t->count++;
        t->open++;
        uva__wakeup_acquire(&t->wakeup);
    }
    uva__lock_drop(&t->lock);
    return added;
}

/* `first` is the window of the first branch. */
static struct uva__source *tee_make(struct uva__producer *above,
                                    const void *first)
{
    static const struct uva__wakeup_ops wakeup_ops = {tee_on_wakeup, tee_free};
    const struct uva_allocator *allocator = &above->rt->allocator;
    struct branch *b = branch_new(above->source, UVA_SLOW_WAIT, first);
    struct tee *t = uva__memory_new(allocator, sizeof(*t));

    if (b == NULL || t == NULL) {
        uva__memory_free(allocator, t, sizeof(*t));
        if (b != NULL)
            branch_free(b, allocator);
        return NULL;
    }
    uva__inlet_init(&t->inlet, &inlet_ops, above);
    t->rt = uva__rt_acquire(above->rt);
    uva__share_join(&t->share, &above->source->share);
    b->source.label = uva__label_acquire(above->source->label);
    b->source.label->shared = true;
    uva__wakeup_init(&t->wakeup, &wakeup_ops, 0);
    if (!tee_add(t, b))
        UVA__UNREACHABLE("it has not started");
    return &b->source;
}

/* The tee that has the stream as its first branch, if no stage follows that. */
static struct tee *tee_of(const struct uva_stream *stream)
{
    const struct uva__producer *tail = stream->tail;
    struct branch *b;

    if (tail->source->ops != &branch_ops || tail->maps != NULL ||
        tail->loop->limit >= 0)
        return NULL;
    b = branch_at(tail->source);
    return b->number == 0 ? b->tee : NULL;
}

/* The arguments of a new branch, and the window of the first one. */
struct setup {
    enum uva_slow slow;
    struct uva__window window, first;
};

/* The larger of two windows, for what serves both. */
static struct uva__window window_larger(const struct uva__window *a,
                                        const struct uva__window *b)
{
    struct uva__window larger = a->batches > b->batches ? *a : *b;

    larger.bytes = a->bytes > b->bytes ? a->bytes : b->bytes;
    return larger;
}

static int tee_check(struct uva_stream *stream, const struct uva_tee *options,
                     struct setup *setup)
{
    static const struct uva__option_limit limits[] = {
        UVA__LIMIT(uva_tee, slow, UVA_SLOW_WAIT, UVA_SLOW_FAIL), {0}};
    static const struct uva__options_kind kind = {
        UVA__OPTIONS(uva_tee), UVA__OPTIONS_WINDOW(uva_tee), .limits = limits};
    static const struct uva__options_kind first = {
        .name = "uva_tee.first", .window = offsetof(struct uva_tee, first)};
    struct uva_error error;
    struct uva__window larger;
    int code = uva__options_accept(&kind, stream, options, &setup->window);

    if (code != 0)
        return code;
    code = uva__options_check_all(&first, options, &setup->first, &error);
    if (code != 0)
        return uva__stream_fail(stream, code, "%s", error.message);
    if (options != NULL)
        setup->slow = options->slow;
    larger = window_larger(&setup->window, &setup->first);
    return uva__stage_make_cheap(stream, &larger);
}

/* Makes a branch of the tee that the stream ends with, or of a new one. Gives
 * its source; NULL without memory. */
static struct uva__source *tee_branch(struct uva_stream *stream,
                                      const struct setup *setup)
{
    struct branch *b =
        branch_new(stream->tail->source, setup->slow, &setup->window);
    struct tee *t = tee_of(stream);

    if (b == NULL) {
        (void)uva__stream_fail(stream, ENOMEM, "no memory for a branch");
        return NULL;
    }
    if (t != NULL && tee_add(t, b))
        return &b->source;
    if (uva__stream_wrap(stream, tee_make, &setup->first) != 0) {
        branch_free(b, &stream->rt->allocator);
        return NULL;
    }
    if (!tee_add(tee_of(stream), b))
        UVA__UNREACHABLE("no branch of it was started");
    return &b->source;
}

struct uva_stream *uva_stream_tee(struct uva_stream *stream,
                                  const struct uva_tee *options)
{
    struct setup setup = {.slow = UVA_SLOW_WAIT};
    struct uva__source *source = NULL;
    struct uva_stream *branch;

    if (tee_check(stream, options, &setup) == 0)
        source = tee_branch(stream, &setup);
    if (source == NULL)
        return uva__stream_failed_like(stream);
    branch = uva__stream_new(source, NULL);
    if (branch->rt != NULL)
        branch->device_data = stream->device_data;
    return branch;
}
