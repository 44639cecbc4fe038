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
#include <assert.h>
#include <errno.h>

#include "arrow/metadata.h"
#include "base/memory.h"
#include "base/unreachable.h"
#include "stage/extract_pool.h"
#include "stream/stream_impl.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

enum { WORKERS_MAX = 128 };

struct parallel {
    struct uva__stage stage;       /* first */
    struct uva_window window;      /* with its defaults filled in */
    bool unordered;                /* batches are passed on as they finish */
    struct uva__extract_pool pool; /* the workers that extract */
    struct uva__extract_entry *entries; /* owns: as many as the window */

    struct {                      /* the loop thread's alone */
        struct uva__list free;    /* entries */
        struct uva__list order;   /* entries in use, in order of arrival */
        struct uva__list waiting; /* of these, not granted */
        int64_t used;             /* number of entries in use */
        uint64_t taken;           /* entries passed on, in all */
        int64_t requested; /* batches requested above that have not come */
        int64_t working;   /* entries granted and not counted as done */
        int64_t bytes;     /* in entries that were counted as done */
        int64_t largest;   /* size of the largest batch; -1: none so far */
        int failed_code;   /* of the extraction that failed, or 0 */
        bool started;      /* a batch has been requested */
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
    p->loop.used--;
    uva__list_push(&p->loop.free, &entry->link);
}

static void entry_discard(struct parallel *p, struct uva__extract_entry *entry)
{
    if (entry->batch.code == 0)
        uva_array_release(&entry->batch.array);
    entry_put(p, entry);
}

/* The window's bytes are reserved in order, before extraction, at the size of
 * the largest batch so far. With none in use, the first entry may always start,
 * or a batch larger than the window would never be extracted. */
static bool entry_may_start(const struct parallel *p)
{
    if (p->loop.working == 0 && p->loop.bytes == 0)
        return true;
    if (p->loop.largest < 0)
        return p->loop.working < p->pool.workers;
    return p->loop.bytes + (p->loop.working + 1) * p->loop.largest <=
           p->window.bytes;
}

static void entries_grant(struct parallel *p)
{
    uint64_t count = 0;
    struct uva__link *wait;

    while (!uva__list_is_empty(&p->loop.waiting) && entry_may_start(p)) {
        wait = uva__list_pop(&p->loop.waiting);
        uva__extract_pool_grant(
            &p->pool, uva__container_of(wait, struct uva__extract_entry, wait));
        p->loop.working++;
        count++;
    }
    if (count > 0)
        uva__extract_pool_publish(&p->pool, count);
}

/* There is no memory for the metadata of the batch: the batch is lost, and the
 * error takes its place. */
static void entry_fail(struct parallel *p, struct uva__extract_entry *entry)
{
    uva__task_drop(&entry->task);
    entry->batch.code = p->loop.failed_code = ENOMEM;
    entry->seen = true;
    uva__atomic64_store(&entry->done, 1);
    uva__failure_set(&p->stage.failure, &p->stage.source.rt->allocator, ENOMEM,
                     NULL, NULL);
}

static void parallel_task(struct uva__stage *stage, struct ArrowAsyncTask *task,
                          const char *metadata)
{
    struct parallel *p = parallel_of(stage);
    struct uva__link *link = uva__list_pop(&p->loop.free);
    struct uva__extract_entry *entry = entry_of(link);

    p->loop.requested--;
    assert(link != NULL); /* no more was requested than there are entries */
    entry->task = *task;
    entry->batch.info.ordinal = uva__task_ordinal(task);
    entry->batch.code = 0;
    entry->seen = false;
    uva__atomic64_store(&entry->done, 0);
    p->loop.used++;
    uva__list_push(&p->loop.order, &entry->link);
    if (uva__metadata_copy(&stage->source.rt->allocator, metadata,
                           &entry->batch.info.metadata) == ENOMEM)
        entry_fail(p, entry);
    else
        uva__list_push(&p->loop.waiting, &entry->wait);
}

/* ---- the loop: as a source ---------------------------------------------- */

static void entry_note_done(struct parallel *p,
                            struct uva__extract_entry *entry)
{
    entry->seen = true;
    p->loop.working--;
    if (entry->batch.code != 0) {
        p->loop.failed_code = entry->batch.code;
        return;
    }
    p->loop.bytes += entry->batch.info.bytes;
    if (entry->batch.info.bytes > p->loop.largest)
        p->loop.largest = entry->batch.info.bytes;
}

/* Counts the entries that are done and those that can be passed on. Returns
 * whether one that failed stands behind these. */
static bool entries_poll(struct parallel *p)
{
    struct uva__link *link;
    struct uva__extract_entry *entry;
    int64_t ready = 0;
    bool gap = false, failed = false;

    for (link = p->loop.order.head; link != NULL; link = link->next) {
        entry = entry_of(link);
        if (uva__atomic64_load(&entry->done) == 0) {
            gap = true;
            continue;
        }
        if (!entry->seen)
            entry_note_done(p, entry);
        if (entry->batch.code != 0 && (p->unordered || !gap))
            failed = true;
        else if (!failed && entry->batch.code == 0 && (p->unordered || !gap))
            ready++;
    }
    p->stage.source.ready = ready;
    return failed;
}

/* The end or error of the producer above follows when all batches before it
 * have been passed on. A release without either is an error. */
static void parallel_conclude(struct parallel *p, bool failed)
{
    struct uva__stage *stage = &p->stage;
    struct uva__source *source = &stage->source;

    if (source->failure.code != 0 || source->ended)
        return;
    if (stage->failure.code != 0 && (failed || p->loop.used == source->ready))
        uva__failure_move(&stage->failure, &source->failure,
                          &source->rt->allocator);
    else if (failed && stage->released) /* without a reason */
        uva__failure_set(&source->failure, &source->rt->allocator,
                         p->loop.failed_code, NULL, NULL);
    else if (stage->ended && p->loop.used == source->ready)
        source->ended = true;
}

static void parallel_request(struct parallel *p, int64_t demand)
{
    int64_t room =
        uva__window_room(&p->window, demand, p->loop.used + p->loop.requested);

    p->loop.started = p->loop.started || demand > 0;
    if (!p->loop.started || room == 0)
        return;
    p->loop.requested += room;
    uva__stage_request(&p->stage, room);
}

static bool parallel_prepare(struct parallel *p);

static void parallel_pull(struct uva__source *source, int64_t demand)
{
    struct parallel *p = parallel_at(source);

    if (!source->schema_known && p->stage.failure.code == 0)
        return;
    if (p->pool.extractors == NULL && source->schema_known &&
        !parallel_prepare(p)) {
        uva__failure_format(&source->failure, &source->rt->allocator, ENOMEM,
                            "no memory for a parallel stage");
        return;
    }
    parallel_conclude(p, entries_poll(p));
    if (demand > 0 && source->ready == 0)
        uva__extract_pool_want(&p->pool, p->loop.taken + 1);
    entries_grant(p);
    parallel_request(p, demand);
}

static struct uva__extract_entry *entry_next(struct parallel *p)
{
    struct uva__link *link = p->loop.order.head;

    while (p->unordered && !entry_of(link)->seen) /* not counted as done */
        link = link->next;
    assert(entry_of(link)->batch.code == 0);
    (void)uva__list_remove(&p->loop.order, link);
    return entry_of(link);
}

static struct uva__task *parallel_take(struct uva__source *source)
{
    struct parallel *p = parallel_at(source);
    struct uva__task *task = uva__producer_take_task(source->producer);
    struct uva__extract_entry *entry;

    if (task == NULL)
        return NULL;
    entry = entry_next(p);
    p->loop.taken++;
    source->ready--;
    p->loop.bytes -= entry->batch.info.bytes;
    uva__task_fill_entry(task, &entry->batch, NULL);
    entry_put(p, entry);
    return task;
}

/* ---- the loop: stopping ------------------------------------------------- */

/* Discards the batches that workers have left after a stop. */
static void entries_clear(struct parallel *p)
{
    struct uva__list still = {0};
    struct uva__link *link;

    while ((link = uva__list_pop(&p->loop.order)) != NULL)
        if (uva__atomic64_load(&entry_of(link)->done) != 0)
            entry_discard(p, entry_of(link));
        else
            uva__list_push(&still, link);
    p->loop.order = still;
}

static void parallel_stop(struct uva__source *source)
{
    struct parallel *p = parallel_at(source);
    struct uva__link *wait;
    struct uva__extract_entry *entry;
    uint64_t unclaimed;

    uva__stage_stop(source);
    for (unclaimed = uva__extract_pool_stop(&p->pool); unclaimed > 0;
         unclaimed--)
        uva__list_push(&p->loop.waiting,
                       &uva__extract_pool_ungrant(&p->pool)->wait);
    while ((wait = uva__list_pop(&p->loop.waiting)) != NULL) {
        entry = uva__container_of(wait, struct uva__extract_entry, wait);
        uva__task_drop(&entry->task);
        entry->batch.code = ECANCELED;
        uva__atomic64_store(&entry->done, 1);
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
    struct uva__link *link;

    while ((link = uva__list_pop(&p->loop.order)) != NULL) {
        if (entry_of(link)->batch.code == 0)
            uva_array_release(&entry_of(link)->batch.array);
        uva__metadata_fini(&entry_of(link)->batch.info.metadata, allocator,
                           NULL);
    }
    uva__extract_pool_fini(&p->pool);
    uva__memory_free(allocator, p->entries,
                     sizeof(*p->entries) * (size_t)p->window.batches);
    uva__memory_free(allocator, p, sizeof(*p));
}

/* Makes room for a window's batches, once it is known that any will come. */
static bool parallel_prepare(struct parallel *p)
{
    int64_t count = p->window.batches, i;

    assert(p->entries == NULL);
    p->pool.priority = p->stage.source.producer->priority;
    p->entries = uva__memory_new(&p->stage.source.rt->allocator,
                                 sizeof(*p->entries) * (size_t)count);
    if (p->entries == NULL ||
        uva__extract_pool_prepare(&p->pool, count, &p->stage.source.schema) !=
            0)
        return false;
    for (i = 0; i < count; i++)
        uva__list_push(&p->loop.free, &p->entries[i].link);
    return true;
}

static const struct uva__stage_ops parallel_ops = {
    .source = {.name = "parallel",
               .start = uva__stage_start,
               .pull = parallel_pull,
               .take = parallel_take,
               .stop = parallel_stop,
               .leave = uva__stage_leave},
    .task = parallel_task,
    .free = parallel_free,
};

static int32_t parallel_cores(void)
{
    int32_t cores = uva__lane_cores();

    return cores < WORKERS_MAX ? cores : WORKERS_MAX;
}

static struct uva__source *parallel_make(struct uva__producer *above,
                                         const void *given)
{
    const struct uva_parallel *options = given;
    struct parallel *p = uva__memory_new(&above->rt->allocator, sizeof(*p));

    if (p == NULL)
        return NULL;
    if (uva__window_complete(&options->window, &p->window) != 0)
        UVA__UNREACHABLE("the window was checked before");
    p->pool.workers =
        options->workers != 0 ? options->workers : parallel_cores();
    p->unordered = options->unordered;
    p->loop.largest = -1;
    p->pool.stage = &p->stage;
    p->pool.wakeup = &p->stage.wakeup;
    uva__stage_init(&p->stage, &parallel_ops, &parallel_wakeup_ops, above);
    return &p->stage.source;
}

int uva_stream_parallel(struct uva_stream *stream,
                        const struct uva_parallel *options)
{
    const struct uva_parallel none = {0};
    struct uva_window window;
    int code = uva__stream_building(stream);

    if (code != 0)
        return code;
    options = options != NULL ? options : &none;
    if (!uva__memory_is_clear(options->reserved, 4))
        return uva__stream_fail(stream, EINVAL,
                                "uva_parallel: reserved members must be NULL; "
                                "clear the struct before filling it in");
    if (options->workers < 0 || options->workers > WORKERS_MAX ||
        uva__window_complete(&options->window, &window) != 0)
        return uva__stream_fail(stream, EINVAL,
                                "uva_parallel: from 0 to %d workers, and no "
                                "negative window, whose reserved members "
                                "must be NULL",
                                WORKERS_MAX);
    code = uva__rt_ensure_lane(stream->rt, UVA_LANE_COMPUTE);
    if (code != 0)
        return uva__stream_fail(stream, code,
                                "parallel: the system gives no thread");
    return uva__stream_wrap(stream, parallel_make, options);
}
