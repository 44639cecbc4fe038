/* SPDX-License-Identifier: Apache-2.0 */
/* Extraction on compute workers, several batches at once, passed on in order or
 * as they finish.
 *
 * Happy path:  task -> entry -> granted in order, as far as the window of bytes
 *              allows -> a worker claims and extracts it, and posts the stage
 *              -> the producer below takes it.
 *
 * What can fail: an extraction. The entries before it are passed on, then the
 *              error that the producer above reports; those behind it are
 *              discarded.
 *
 * On stop:     entries that are not claimed are taken back; workers discard
 *              what they are extracting. They are not waited for, as they count
 *              the stage. */
#include "stage/parallel.h"

#include <assert.h>
#include <errno.h>

#include "arrow/metadata.h"
#include "base/memory.h"
#include "base/platform.h"
#include "base/slab.h"
#include "base/unreachable.h"
#include "stage/extract_pool.h"
#include "stream/intake.h"
#include "stream/stream_impl.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

enum { WORKERS_MAX = 128, ENTRIES_STEP = 4 };

struct parallel {
    struct uva__stage stage;       /* first */
    bool unordered;                /* batches are passed on as they finish */
    struct uva__extract_pool pool; /* the workers that extract */

    struct {                      /* the loop thread's alone */
        struct uva__slab entries; /* as many as were in use at once */
        struct uva__list order;   /* entries in use that cannot be passed on,
                                     in order; unordered: those that failed */
        struct uva__list waiting; /* of those in use, not granted */
        struct uva__list ready;   /* entries to be passed on */
        struct uva__intake in;    /* the entries; granted ones have begun */
        uint64_t taken;           /* entries passed on, in all */
        int failed_code;          /* of the extraction that failed, or 0 */
        bool lost; /* a batch was lost: none after it is wanted */
    } loop;
};

static struct parallel *parallel_of(struct uva__stage *stage)
{
    return uva__container_of(stage, struct parallel, stage);
}

static struct parallel *parallel_at(struct uva__source *source)
{
    return parallel_of(uva__stage_of(source));
}

static struct uva__extract_entry *entry_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva__extract_entry, link);
}

/* ---- entries ------------------------------------------------------------ */

static void entry_put(struct parallel *p, struct uva__extract_entry *entry)
{
    uva__metadata_fini(&entry->batch.info.metadata,
                       &p->stage.source.rt->allocator, NULL);
    uva__slab_put(&p->loop.entries, entry);
}

static void entry_discard(struct parallel *p, struct uva__extract_entry *entry)
{
    if (entry->batch.code == 0)
        uva_array_release(&entry->batch.array);
    entry_put(p, entry);
}

/* Whether the next entry may be extracted. The window's bytes are reserved in
 * order, before extraction, at the size of the largest batch so far. While the
 * budget of the runtime is full, one at a time is. */
static bool entry_may_start(const struct parallel *p)
{
    const struct uva__intake *in = &p->loop.in;

    return uva__intake_fit(in, 1, in->begun, p->pool.workers) > 0 &&
           (in->begun + in->done == 0 ||
            uva__share_is_free(&p->stage.source.share));
}

static void entries_grant(struct parallel *p)
{
    uint64_t count = 0;
    struct uva__link *wait;

    while (!uva__list_is_empty(&p->loop.waiting) && entry_may_start(p)) {
        wait = uva__list_pop(&p->loop.waiting);
        uva__extract_pool_grant(
            &p->pool, uva__container_of(wait, struct uva__extract_entry, wait));
        p->loop.in.begun++;
        count++;
    }
    if (count > 0)
        uva__extract_pool_publish(&p->pool, count);
}

/* Gives a free entry; NULL without memory. */
static struct uva__extract_entry *entry_get(struct parallel *p)
{
    struct uva__extract_entry *entry = uva__slab_take(&p->loop.entries, NULL);
    struct slab_chunk *chunk;

    if (entry != NULL)
        return entry;
    chunk = uva__slab_fetch(&p->loop.entries);
    if (chunk == NULL)
        return NULL;
    uva__slab_add(&p->loop.entries, chunk);
    return uva__slab_take(&p->loop.entries, NULL);
}

/* Gives an entry with the task and a copy of its metadata; NULL without memory.
 */
static struct uva__extract_entry *entry_fill(struct parallel *p,
                                             const struct ArrowAsyncTask *task,
                                             const char *metadata)
{
    struct uva__extract_entry *entry = entry_get(p);

    if (entry == NULL)
        return NULL;
    if (uva__metadata_copy(&p->stage.source.rt->allocator, metadata,
                           &entry->batch.info.metadata) == ENOMEM) {
        entry_put(p, entry);
        return NULL;
    }
    entry->task = *task;
    entry->batch.info.ordinal = uva__task_ordinal(task);
    entry->batch.code = 0;
    entry->seen = false;
    return entry;
}

/* Without memory for a batch it is lost, and the error takes its place. */
static void parallel_task(struct uva__stage *stage, struct ArrowAsyncTask *task,
                          const char *metadata)
{
    struct parallel *p = parallel_of(stage);
    struct uva__extract_entry *entry = NULL;

    uva__intake_come(&p->loop.in); /* the ring of the pool has no more room */
    if (!p->loop.lost)
        entry = entry_fill(p, task, metadata);
    if (entry == NULL) {
        p->loop.lost = true;
        uva__failure_set(&stage->failure, &stage->source.rt->allocator, ENOMEM,
                         NULL, NULL);
        uva__task_drop(task);
        return;
    }
    entry->before = uva__task_bytes(task);
    uva__intake_hold(&p->loop.in, entry->before);
    if (!p->unordered)
        uva__list_push(&p->loop.order, &entry->link);
    uva__list_push(&p->loop.waiting, &entry->wait);
    uva__intake_account(&p->loop.in, &p->stage.source);
}

/* ---- the loop: as a source ---------------------------------------------- */

static void entry_note_done(struct parallel *p,
                            struct uva__extract_entry *entry)
{
    entry->seen = true;
    uva__intake_end(&p->loop.in, entry->before,
                    entry->batch.code == 0 ? entry->batch.info.bytes : 0);
    if (entry->batch.code != 0)
        p->loop.failed_code = entry->batch.code;
    if (!p->unordered)
        return;
    if (entry->batch.code != 0)
        uva__list_push(&p->loop.order, &entry->link);
    else
        uva__list_push(&p->loop.ready, &entry->link);
    p->stage.source.ready += entry->batch.code == 0;
}

/* Gives the entries that workers have left since the last call: the first one,
 * which leads to the rest. */
static struct uva__link *entries_take_done(struct parallel *p)
{
    return uva__mpsc_is_empty(&p->pool.done) ? NULL
                                             : uva__mpsc_take(&p->pool.done);
}

/* Counts the entries that are done and those that can be passed on. Returns
 * whether one that failed stands behind these. */
static bool entries_poll(struct parallel *p)
{
    struct uva__link *link = entries_take_done(p), *next;

    for (; link != NULL; link = next) {
        next = link->next;
        entry_note_done(
            p, uva__container_of(link, struct uva__extract_entry, wait));
    }
    while ((link = p->loop.order.head) != NULL && entry_of(link)->seen &&
           entry_of(link)->batch.code == 0) {
        uva__list_push(&p->loop.ready, uva__list_pop(&p->loop.order));
        p->stage.source.ready++;
    }
    return link != NULL && entry_of(link)->seen;
}

/* The end or error of the producer above follows when all batches before it
 * have been passed on. A release without either is an error. */
static void parallel_conclude(struct parallel *p, bool failed)
{
    struct uva__stage *stage = &p->stage;
    struct uva__source *source = &stage->source;

    if (source->failure.code != 0 || source->ended)
        return;
    if (failed)
        uva__stage_fail_extraction(stage, p->loop.failed_code);
    else if (stage->failure.code != 0 && p->loop.in.held == source->ready)
        uva__failure_move(&stage->failure, &source->failure,
                          &source->rt->allocator);
    else if (stage->ended && p->loop.in.held == source->ready)
        source->ended = true;
}

static void parallel_pull(struct uva__source *source, int64_t demand)
{
    struct parallel *p = parallel_at(source);
    int64_t n;

    if (!source->schema_known && p->stage.failure.code == 0)
        return;
    p->pool.priority = source->producer->priority;
    if (p->pool.extractors == NULL && source->schema_known &&
        uva__extract_pool_prepare(&p->pool, p->loop.in.window.batches,
                                  &source->schema) != 0) {
        uva__failure_format(&source->failure, &source->rt->allocator, ENOMEM,
                            "no memory for a parallel stage");
        return;
    }
    parallel_conclude(p, entries_poll(p));
    if (demand > 0 && source->ready == 0)
        uva__extract_pool_want(&p->pool, p->loop.taken + 1);
    entries_grant(p);
    uva__meter_block(source->meter, uva__list_is_empty(&p->loop.waiting) ||
                                            uva__share_is_free(&source->share)
                                        ? UVA_WAITING_NONE
                                        : UVA_WAITING_MEMORY);
    uva__intake_account(&p->loop.in, &p->stage.source);
    n = uva__intake_request(&p->loop.in, demand, p->pool.workers);
    if (n > 0)
        uva__stage_request(&p->stage, n);
}

static struct uva__task *parallel_take(struct uva__source *source)
{
    struct parallel *p = parallel_at(source);
    struct uva__task *task = uva__producer_take_task(source->producer);
    struct uva__extract_entry *entry;

    if (task == NULL)
        return NULL;
    entry = entry_of(p->loop.ready.head);
    uva__list_remove_first(&p->loop.ready, &entry->link);
    p->loop.taken++;
    assert(entry->batch.code == 0);
    source->ready--;
    uva__intake_leave(&p->loop.in, entry->batch.info.bytes);
    uva__task_fill_entry(task, &entry->batch, NULL);
    entry_put(p, entry);
    return task;
}

/* ---- the loop: stopping ------------------------------------------------- */

/* Discards the batches that workers leave after a stop. */
static void entries_clear(struct parallel *p)
{
    struct uva__link *link = entries_take_done(p), *next;

    for (; link != NULL; link = next) {
        next = link->next;
        entry_discard(p,
                      uva__container_of(link, struct uva__extract_entry, wait));
    }
}

/* An entry that is not done stands in `waiting`, or a worker has it. */
static void parallel_stop(struct uva__source *source)
{
    struct parallel *p = parallel_at(source);
    struct uva__link *link;
    struct uva__extract_entry *entry;
    uint64_t unclaimed;

    uva__stage_stop(source);
    uva__source_hold(source, 0, 0);
    for (unclaimed = uva__extract_pool_stop(&p->pool); unclaimed > 0;
         unclaimed--)
        uva__list_push(&p->loop.waiting,
                       &uva__extract_pool_ungrant(&p->pool)->wait);
    while ((link = uva__list_pop(&p->loop.order)) != NULL)
        if (entry_of(link)->seen)
            uva__list_push(&p->loop.ready, link);
    while ((link = uva__list_pop(&p->loop.ready)) != NULL)
        entry_discard(p, entry_of(link));
    while ((link = uva__list_pop(&p->loop.waiting)) != NULL) {
        entry = uva__container_of(link, struct uva__extract_entry, wait);
        uva__task_drop(&entry->task);
        entry_put(p, entry);
    }
    entries_clear(p);
}

static bool parallel_on_wakeup(struct uva__wakeup *wakeup)
{
    struct parallel *p =
        uva__container_of(wakeup, struct parallel, stage.wakeup);

    if (p->stage.source.stopped)
        entries_clear(p);
    else
        uva__producer_run(p->stage.source.producer);
    return false;
}

/* ---- life --------------------------------------------------------------- */

static const struct uva__wakeup_ops parallel_wakeup_ops = {parallel_on_wakeup,
                                                           uva__stage_free};

static void parallel_free(struct uva__stage *stage,
                          const struct uva_allocator *allocator)
{
    struct parallel *p = parallel_of(stage);

    entries_clear(p);
    uva__slab_fini(&p->loop.entries);
    uva__extract_pool_fini(&p->pool);
    uva__memory_free(allocator, p, sizeof(*p));
}

static const struct uva__stage_ops parallel_ops = {
    .source = {.name = "parallel",
               .sized = true,
               .start = uva__stage_start,
               .pull = parallel_pull,
               .take = parallel_take,
               .stop = parallel_stop,
               .leave = uva__stage_leave,
               .need = uva__stage_need,
               .above = uva__stage_above},
    .task = parallel_task,
    .free = parallel_free,
};

static int32_t parallel_cores(void)
{
    int32_t cores = uva__platform_cores();

    return cores < WORKERS_MAX ? cores : WORKERS_MAX;
}

/* The arguments of parallel_make(). */
struct setup {
    int32_t workers;          /* 0: the number of cores */
    bool unordered;           /* as in uva_parallel */
    struct uva_window window; /* complete */
};

static struct uva__source *parallel_make(struct uva__producer *above,
                                         const void *given)
{
    const struct setup *setup = given;
    struct parallel *p = uva__memory_new(&above->rt->allocator, sizeof(*p));

    if (p == NULL)
        return NULL;
    p->pool.workers = setup->workers != 0 ? setup->workers : parallel_cores();
    p->unordered = setup->unordered;
    p->loop.entries = (struct uva__slab){
        .allocator = &above->rt->allocator,
        .size = sizeof(struct uva__extract_entry),
        .align = _Alignof(struct uva__extract_entry),
        .link_offset = offsetof(struct uva__extract_entry, link),
        .step = ENTRIES_STEP,
    };
    uva__intake_init(&p->loop.in, &setup->window);
    p->pool.stage = &p->stage;
    p->pool.wakeup = &p->stage.wakeup;
    uva__stage_init(&p->stage, &parallel_ops, &parallel_wakeup_ops, above);
    return &p->stage.source;
}

static int parallel_add(struct uva_stream *stream, const struct setup *setup)
{
    const int code = uva__rt_ensure_lane(stream->rt, UVA_LANE_COMPUTE);

    if (code != 0)
        return uva__stream_fail(stream, code,
                                "parallel: the system gives no thread");
    return uva__stream_wrap(stream, parallel_make, setup);
}

int uva__parallel_ensure(struct uva_stream *stream,
                         const struct uva_window *window)
{
    const struct uva_window none = {0};
    struct setup setup = {0};

    if (!stream->tail->expensive)
        return 0;
    if (window != NULL)
        setup.window = *window;
    else if (uva__window_follow(&none, &setup.window) != 0)
        UVA__UNREACHABLE("the default window is valid");
    return parallel_add(stream, &setup);
}

int uva_stream_parallel(struct uva_stream *stream,
                        const struct uva_parallel *options)
{
    const struct uva_parallel none = {0};
    struct setup setup;
    const int code = uva__stream_building(stream);

    if (code != 0)
        return code;
    options = options != NULL ? options : &none;
    if (!uva__memory_is_clear(options->reserved, 4))
        return uva__stream_fail(stream, EINVAL,
                                "uva_parallel: reserved members must be NULL; "
                                "clear the struct before filling it in");
    if (options->workers < 0 || options->workers > WORKERS_MAX ||
        uva__window_complete(&options->window, &setup.window) != 0)
        return uva__stream_fail(stream, EINVAL,
                                "uva_parallel: from 0 to %d workers, and no "
                                "negative window, whose reserved members "
                                "must be NULL",
                                WORKERS_MAX);
    setup.workers = options->workers;
    setup.unordered = options->unordered;
    return parallel_add(stream, &setup);
}
