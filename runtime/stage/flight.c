/* SPDX-License-Identifier: Apache-2.0 */
/* Batches in flight, passed on in order or as their work ends.
 *
 * Failures:    the work of a batch. The batches before it are passed on, then
 *              the failure; no more work is begun. Without memory for a batch
 *              the same happens.
 *
 * On stop:     batches that no other thread has are discarded at once, the
 *              others when their work ends, which is not waited for: their
 *              threads count the stage.
 *
 * Clauses: ER-12. */
#include "stage/flight.h"

#include "stream/slots.h"
#include "uvarrow/arrow.h"

enum { SLAB_STEP = 4 };

static const struct uva_allocator *allocator_of(const struct uva__flight *f)
{
    return &f->stage.source.rt->allocator;
}

static struct uva__flight_batch *batch_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva__flight_batch, link);
}

static struct uva__flight_batch *batch_done(struct uva__link *done)
{
    return uva__container_of(done, struct uva__flight_batch, done);
}

/* ---- a batch comes ------------------------------------------------------ */

/* Gives the batch put back last, which is in the cache; NULL without memory. */
static struct uva__flight_batch *batch_get(struct uva__flight *f)
{
    struct uva__flight_batch *batch = uva__slab_take(&f->loop.slab, NULL);
    struct slab_chunk *chunk;

    if (batch != NULL)
        return batch;
    chunk = uva__slab_fetch(&f->loop.slab);
    if (chunk == NULL)
        return NULL;
    uva__slab_add(&f->loop.slab, chunk);
    return uva__slab_take(&f->loop.slab, NULL);
}

/* It has no slot and no failure any more. */
static void batch_put(struct uva__flight *f, struct uva__flight_batch *batch)
{
    struct uva__list one = {0};

    uva__list_push(&one, &batch->link);
    uva__slab_put_fresh(&f->loop.slab, &one);
}

void uva__flight_discard(struct uva__flight *f, struct uva__flight_batch *batch)
{
    uva_array_release(&batch->slot->array);
    uva__failure_fini(&batch->failure, allocator_of(f));
    uva__slots_put_task(f->stage.source.rt, batch->slot, true);
    batch_put(f, batch);
}

/* Gives a batch with a slot, in which only the metadata is filled in; NULL
 * without memory. */
static struct uva__flight_batch *batch_new(struct uva__flight *f,
                                           const char *metadata)
{
    struct uva__flight_batch *batch = batch_get(f);

    if (batch == NULL)
        return NULL;
    batch->slot = uva__producer_take_task(f->stage.source.producer);
    if (batch->slot == NULL) {
        batch_put(f, batch);
        return NULL;
    }
    batch->slot->array.array.release = NULL;
    batch->over = false;
    if (uva__task_take_metadata(batch->slot, allocator_of(f), metadata) == 0)
        return batch;
    uva__flight_discard(f, batch);
    return NULL;
}

struct uva__flight_batch *uva__flight_admit(struct uva__flight *f,
                                            struct ArrowAsyncTask *task,
                                            const char *metadata)
{
    struct uva__flight_batch *batch = batch_new(f, metadata);

    uva__intake_come(&f->loop.in);
    if (batch != NULL) {
        batch->slot->info.ordinal = uva__task_ordinal(task);
        return batch;
    }
    uva__inlet_lose(&f->stage.inlet);
    uva__task_drop(task);
    return NULL;
}

struct uva__flight_batch *uva__flight_extract(struct uva__flight *f,
                                              struct ArrowAsyncTask *task,
                                              const char *metadata)
{
    struct uva__flight_batch *batch = uva__flight_admit(f, task, metadata);

    if (batch == NULL)
        return NULL;
    if (uva__task_extract_first(task, &batch->slot->array) == 0)
        return batch;
    batch->slot->array.array.release = NULL;
    uva__flight_discard(f, batch);
    return NULL;
}

void uva__flight_wait(struct uva__flight *f, struct uva__flight_batch *batch,
                      int64_t bytes)
{
    batch->before = bytes;
    uva__intake_hold(&f->loop.in, bytes);
    uva__list_push(&f->loop.waiting, &batch->link);
    uva__intake_account(&f->loop.in, &f->stage.source);
}

void uva__flight_put(struct uva__flight *f, struct uva__flight_batch *batch,
                     int64_t bytes)
{
    batch->before = -1;
    batch->over = true;
    batch->slot->info.bytes = bytes;
    uva__intake_put(&f->loop.in, bytes);
    uva__list_push(&f->loop.order, &batch->link);
}

/* ---- work --------------------------------------------------------------- */

/* While the budget of the runtime is full, a batch is begun only if no other
 * one is begun, or done and not taken. */
static bool flight_may_begin(const struct uva__flight *f)
{
    const struct uva__intake *in = &f->loop.in;

    return !f->loop.failed && in->begun < f->at_once &&
           uva__intake_fit(in, 1, in->begun, f->first) > 0 &&
           (in->begun + in->done == 0 ||
            uva__share_is_free(&f->stage.source.share));
}

static uint64_t flight_begin(struct uva__flight *f)
{
    struct uva__link *link;
    uint64_t count = 0;

    while (!uva__list_is_empty(&f->loop.waiting) && flight_may_begin(f)) {
        link = uva__list_pop(&f->loop.waiting);
        if (!f->unordered)
            uva__list_push(&f->loop.order, link);
        f->loop.in.begun++;
        f->ops->begin(f, batch_of(link));
        count++;
    }
    return count;
}

/* The turn of a batch that has not failed has come. */
static void batch_settle(struct uva__flight *f, struct uva__flight_batch *batch)
{
    if (!uva_array_is_live(&batch->slot->array)) {
        uva__intake_leave(&f->loop.in, 0);
        uva__flight_discard(f, batch);
        return;
    }
    uva__kept_push(&f->loop.ready, batch->slot);
    f->stage.source.ready++;
    batch_put(f, batch);
}

void uva__flight_end(struct uva__flight *f, struct uva__flight_batch *batch)
{
    const bool failed = batch->failure.code != 0;

    assert(!failed || !uva_array_is_live(&batch->slot->array));
    batch->over = true;
    f->loop.failed = f->loop.failed || failed;
    if (batch->before >= 0)
        uva__intake_end(&f->loop.in, batch->before,
                        uva_array_is_live(&batch->slot->array)
                            ? batch->slot->info.bytes
                            : 0);
    if (f->unordered && failed)
        uva__list_push(&f->loop.order, &batch->link);
    else if (f->unordered)
        batch_settle(f, batch);
}

static void flight_collect(struct uva__flight *f)
{
    struct uva__link *link = uva__flight_take_done(f), *next;

    for (; link != NULL; link = next) {
        next = link->next;
        uva__flight_end(f, batch_done(link));
    }
}

/* Returns the batch that has failed, of which the turn has come; or NULL. */
static struct uva__flight_batch *flight_settle(struct uva__flight *f)
{
    struct uva__flight_batch *batch;

    while (!uva__list_is_empty(&f->loop.order)) {
        batch = batch_of(f->loop.order.head);
        if (!batch->over || f->stage.source.failure.code != 0)
            return NULL;
        if (batch->failure.code == 0 && f->ops->complete != NULL)
            f->ops->complete(f, batch);
        if (batch->failure.code != 0)
            return batch;
        (void)uva__list_pop(&f->loop.order);
        batch_settle(f, batch);
    }
    return NULL;
}

/* The end or error of the producer above follows when all batches before it
 * have been passed on. A release without either is an error. */
static void flight_conclude(struct uva__flight *f,
                            struct uva__flight_batch *failed)
{
    struct uva__source *source = &f->stage.source;

    if (source->failure.code != 0 || source->ended)
        return;
    if (failed != NULL && f->ops->extracts)
        uva__inlet_fail_extraction(&f->stage.inlet, failed->failure.code,
                                   source);
    else if (failed != NULL)
        uva__failure_move(&failed->failure, &source->failure, allocator_of(f));
    else if (f->loop.in.held == source->ready)
        uva__inlet_conclude(&f->stage.inlet, source);
}

uint64_t uva__flight_advance(struct uva__flight *f)
{
    uint64_t begun;

    flight_collect(f);
    begun = flight_begin(f);
    flight_conclude(f, flight_settle(f));
    uva__intake_account(&f->loop.in, &f->stage.source);
    return begun;
}

void uva__flight_request(struct uva__flight *f, int64_t demand)
{
    const int64_t n = uva__intake_request(&f->loop.in, demand, f->first);

    if (n > 0)
        uva__inlet_request(&f->stage.inlet, n);
}

struct uva__task *uva__flight_take(struct uva__source *source)
{
    struct uva__flight *f = uva__flight_at(source);
    struct uva__task *slot = uva__kept_pop(&f->loop.ready);

    source->ready--;
    uva__intake_leave(&f->loop.in, slot->info.bytes);
    return slot;
}

/* ---- stop --------------------------------------------------------------- */

void uva__flight_stop(struct uva__source *source)
{
    struct uva__flight *f = uva__flight_at(source);
    struct uva__link *link;

    uva__stage_stop(source);
    uva__source_hold(source, 0, 0);
    uva__kept_drop(&f->loop.ready, source);
    while ((link = uva__list_pop(&f->loop.waiting)) != NULL)
        uva__flight_discard(f, batch_of(link));
    while ((link = uva__list_pop(&f->loop.order)) != NULL)
        if (batch_of(link)->over)
            uva__flight_discard(f, batch_of(link));
}

void uva__flight_clear(struct uva__stage *stage)
{
    struct uva__flight *f = uva__flight_of(stage);
    struct uva__link *link = uva__flight_take_done(f), *next;

    for (; link != NULL; link = next) {
        next = link->next;
        uva__flight_discard(f, batch_done(link));
    }
}

/* ---- life --------------------------------------------------------------- */

void uva__flight_init(struct uva__flight *f, const struct uva__flight_ops *ops,
                      const struct uva_window *window)
{
    f->ops = ops;
    f->loop.slab = (struct uva__slab){
        .allocator = allocator_of(f),
        .size = ops->size,
        .align = _Alignof(struct uva__flight_batch),
        .link_offset = offsetof(struct uva__flight_batch, link),
        .step = SLAB_STEP,
    };
    uva__intake_init(&f->loop.in, window);
}

/* A batch that has ended after the close of the runtime keeps its slot, which
 * goes with the runtime. */
void uva__flight_fini(struct uva__flight *f,
                      const struct uva_allocator *allocator)
{
    struct uva__link *link = uva__flight_take_done(f);
    struct uva__flight_batch *batch;

    for (; link != NULL; link = link->next) {
        batch = batch_done(link);
        uva_array_release(&batch->slot->array);
        uva__failure_fini(&batch->failure, allocator);
        uva__task_clear(batch->slot, allocator);
    }
    uva__slab_fini(&f->loop.slab);
}
