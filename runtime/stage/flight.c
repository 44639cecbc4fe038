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

/* ---- a batch comes ------------------------------------------------------ */

/* Gives the batch put back last, which is in the cache; NULL without memory. */
static struct uva__flight_batch *batch_get(struct uva__flight *f)
{
    struct uva__slab *slab = &f->loop.slab;
    struct uva__flight_batch *batch = uva__slab_take(slab, NULL);
    struct slab_chunk *chunk;

    if (batch != NULL || (chunk = uva__slab_fetch(slab)) == NULL)
        return batch;
    uva__slab_add(slab, chunk);
    return uva__slab_take(slab, NULL);
}

/* Puts a batch without a slot and a failure back in the slab. */
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
    uva__slots_end_task(f->stage.source.rt, NULL, batch->slot);
    batch_put(f, batch);
}

struct uva__flight_batch *uva__flight_admit(struct uva__flight *f,
                                            struct ArrowAsyncTask *task,
                                            const char *metadata,
                                            enum uva__kept_content content)
{
    struct uva__inlet *inlet = &f->stage.inlet;
    struct uva__flight_batch *batch = batch_get(f);

    uva__intake_come(&f->stage.in);
    if (batch == NULL) {
        uva__task_drop(task);
        uva__inlet_lose(inlet);
        return NULL;
    }
    batch->over = false;
    batch->slot = uva__kept_take_in(inlet, f->stage.source.producer, task,
                                    metadata, content);
    if (batch->slot == NULL) {
        batch_put(f, batch);
        return NULL;
    }
    if (content == UVA__KEPT_PROMISE)
        batch->slot->array.array.release = NULL;
    return batch;
}

void uva__flight_wait(struct uva__flight *f, struct uva__flight_batch *batch,
                      int64_t bytes)
{
    batch->before = bytes;
    uva__intake_hold(&f->stage.in, bytes);
    uva__list_push(&f->loop.waiting, &batch->link);
    uva__intake_account(&f->stage.in, &f->stage.source);
}

void uva__flight_put(struct uva__flight *f, struct uva__flight_batch *batch)
{
    batch->before = -1;
    batch->over = true;
    uva__intake_put(&f->stage.in, batch->slot->info.bytes);
    uva__list_push(&f->loop.order, &batch->link);
}

/* ---- work --------------------------------------------------------------- */

/* While the budget of the runtime is full, a batch is begun only if no batch is
 * begun, or done and not taken. */
static bool flight_may_begin(const struct uva__flight *f)
{
    const struct uva__intake *in = &f->stage.in;

    return !f->loop.failed && in->begun < f->at_once &&
           uva__intake_fit(in, 1, in->begun, f->unsized_max) > 0 &&
           (in->begun + in->done == 0 ||
            uva__share_is_free(&f->stage.source.share));
}

static void flight_begin(struct uva__flight *f)
{
    struct uva__link *link;

    while (!uva__list_is_empty(&f->loop.waiting) && flight_may_begin(f)) {
        link = uva__list_pop(&f->loop.waiting);
        if (!f->unordered)
            uva__list_push(&f->loop.order, link);
        f->stage.in.begun++;
        f->ops->begin(f, batch_of(link));
    }
}

/* The turn of a batch that has not failed has come. */
static void batch_settle(struct uva__flight *f, struct uva__flight_batch *batch)
{
    if (!uva_array_is_live(&batch->slot->array)) {
        uva__intake_leave(&f->stage.in, 0);
        uva__flight_discard(f, batch);
        return;
    }
    uva__kept_push(&f->stage.ready, batch->slot);
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
        uva__intake_end(&f->stage.in, batch->before,
                        uva_array_is_live(&batch->slot->array)
                            ? batch->slot->info.bytes
                            : 0);
    if (f->unordered && failed)
        uva__list_push(&f->loop.order, &batch->link);
    else if (f->unordered)
        batch_settle(f, batch);
}

void uva__flight_each_done(struct uva__flight *f,
                           void (*fn)(struct uva__flight *flight,
                                      struct uva__flight_batch *batch))
{
    struct uva__link *link =
        uva__mpsc_is_empty(&f->done) ? NULL : uva__mpsc_take(&f->done);
    struct uva__link *next;

    for (; link != NULL; link = next) {
        next = link->next;
        fn(f, uva__container_of(link, struct uva__flight_batch, work_link));
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
    else if (f->stage.in.held == source->ready)
        uva__inlet_conclude(&f->stage.inlet, source);
}

void uva__flight_advance(struct uva__flight *f)
{
    uva__flight_each_done(f, uva__flight_end);
    flight_begin(f);
    flight_conclude(f, flight_settle(f));
    uva__intake_account(&f->stage.in, &f->stage.source);
}

/* ---- stop --------------------------------------------------------------- */

void uva__flight_stop(struct uva__source *source)
{
    struct uva__flight *f = uva__flight_of(uva__stage_of(source));
    struct uva__link *link;

    uva__stage_stop(source);
    while ((link = uva__list_pop(&f->loop.waiting)) != NULL)
        uva__flight_discard(f, batch_of(link));
    while ((link = uva__list_pop(&f->loop.order)) != NULL)
        if (batch_of(link)->over)
            uva__flight_discard(f, batch_of(link));
}

void uva__flight_clear(struct uva__stage *stage)
{
    uva__flight_each_done(uva__flight_of(stage), uva__flight_discard);
}

/* ---- life --------------------------------------------------------------- */

void uva__flight_init(struct uva__flight *f, const struct uva__flight_ops *ops)
{
    f->ops = ops;
    f->loop.slab = (struct uva__slab){
        .allocator = allocator_of(f),
        .size = ops->size,
        .align = _Alignof(struct uva__flight_batch),
        .link_offset = offsetof(struct uva__flight_batch, link),
        .step = SLAB_STEP,
    };
}

/* A batch that has ended after the close of the runtime keeps its slot, which
 * goes with the runtime. */
static void batch_clear(struct uva__flight *f, struct uva__flight_batch *batch)
{
    uva_array_release(&batch->slot->array);
    uva__failure_fini(&batch->failure, allocator_of(f));
    uva__task_clear(batch->slot, allocator_of(f));
}

void uva__flight_free(struct uva__stage *stage,
                      const struct uva_allocator *allocator)
{
    struct uva__flight *f = uva__flight_of(stage);

    (void)allocator;
    uva__flight_each_done(f, batch_clear);
    uva__slab_fini(&f->loop.slab);
}
