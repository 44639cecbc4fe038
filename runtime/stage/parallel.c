/* SPDX-License-Identifier: Apache-2.0 */
/* Extraction on compute workers, several batches at once, passed on in order or
 * as they finish.
 *
 * Happy path:  task -> cell -> granted in order, as the budget allows -> a
 * worker claims and extracts it, announces it -> taken by the one below.
 *
 * What can fail: an extraction. Its cell is the end: what stands before it is
 *              passed on, then the error that the one above tells; what stands
 *              behind it is discarded.
 *
 * On stop:     cells not claimed are taken back; workers discard what they are
 *              at. Nobody waits for them: they count the stage. */
#include <assert.h>
#include <errno.h>

#include "base/memory.h"
#include "arrow/metadata.h"
#include "stage/extract_pool.h"
#include "stream/stream_impl.h"
#include "stream/slots.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

enum { WORKERS_MAX = 128 };

struct parallel {
    struct uva__operator op;  /* first */
    struct uva_window window; /* with its defaults filled in */
    bool unordered;           /* pass on as they finish */
    struct uva__team team;    /* who extracts */
    struct uva__cell *cells;  /* owns: as many as the window */

    struct {                      /* the loop thread's alone */
        struct uva__list free;    /* cells */
        struct uva__list order;   /* cells in use, in order of arrival */
        struct uva__list waiting; /* those of them not yet granted */
        int64_t used;             /* cells in use */
        int64_t asked;            /* batches requested above, not here yet */
        int64_t working;          /* granted and not seen done */
        int64_t bytes;            /* in cells seen done */
        int64_t largest;          /* of all batches so far; -1: none yet */
        int failed_code;          /* of the extraction that failed, or 0 */
        bool begun;               /* somebody has asked for a batch */
    } loop;
};

static struct parallel *parallel_of(struct uva__operator *op)
{
    return uva__container_of(op, struct parallel, op);
}

static struct parallel *parallel_at(struct uva__feed *feed)
{
    return parallel_of(uva__operator_of(feed));
}

static struct uva__cell *cell_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva__cell, link);
}

/* ---- cells -------------------------------------------------------------- */

static void cell_put(struct parallel *p, struct uva__cell *cell)
{
    uva__memory_free(&p->op.feed.hub->allocator, cell->metadata,
                     cell->metadata_size);
    cell->metadata = NULL;
    p->loop.used--;
    uva__list_push(&p->loop.free, &cell->link);
}

static void cell_discard(struct parallel *p, struct uva__cell *cell)
{
    if (cell->code == 0)
        uva_array_release(&cell->array);
    cell_put(p, cell);
}

/* The budget is reserved in order, before extraction, at the size of the
 * largest batch so far; the first in line is always let in (R11). */
static bool cell_may_start(const struct parallel *p)
{
    if (p->loop.working == 0 && p->loop.bytes == 0)
        return true;
    if (p->loop.largest < 0)
        return p->loop.working < p->team.workers;
    return p->loop.bytes + (p->loop.working + 1) * p->loop.largest <=
           p->window.bytes;
}

static void cells_grant(struct parallel *p)
{
    uint64_t count = 0;
    struct uva__link *wait;

    while (!uva__list_is_empty(&p->loop.waiting) && cell_may_start(p)) {
        wait = uva__list_pop(&p->loop.waiting);
        uva__team_grant(&p->team,
                        uva__container_of(wait, struct uva__cell, wait));
        p->loop.working++;
        count++;
    }
    if (count > 0)
        uva__team_publish(&p->team, count);
}

/* Without memory for what comes with it a batch is lost, in its place. */
static void cell_lose(struct parallel *p, struct uva__cell *cell)
{
    uva__task_drop(&cell->task);
    cell->code = p->loop.failed_code = ENOMEM;
    cell->seen = true;
    uva__word_store(&cell->done, 1);
    uva__failure_set(&p->op.failure, &p->op.feed.hub->allocator, ENOMEM, NULL,
                     NULL);
}

static void parallel_task(struct uva__operator *op, struct ArrowAsyncTask *task,
                          const char *metadata)
{
    struct parallel *p = parallel_of(op);
    struct uva__link *link = uva__list_pop(&p->loop.free);
    struct uva__cell *cell = cell_of(link);

    p->loop.asked--;
    assert(link != NULL); /* no more was requested than there are cells */
    cell->task = *task;
    cell->ordinal = uva__task_ordinal(task);
    cell->code = 0;
    cell->seen = false;
    cell->metadata_size = 0;
    uva__word_store(&cell->done, 0);
    p->loop.used++;
    uva__list_push(&p->loop.order, &cell->link);
    if (uva__metadata_copy(&op->feed.hub->allocator, metadata, &cell->metadata,
                           &cell->metadata_size) == ENOMEM)
        cell_lose(p, cell);
    else
        uva__list_push(&p->loop.waiting, &cell->wait);
}

/* ---- the loop: as a feed ------------------------------------------------ */

static void cell_see(struct parallel *p, struct uva__cell *cell)
{
    cell->seen = true;
    p->loop.working--;
    if (cell->code != 0) {
        p->loop.failed_code = cell->code;
        return;
    }
    p->loop.bytes += cell->bytes;
    if (cell->bytes > p->loop.largest)
        p->loop.largest = cell->bytes;
}

/* Counts what is done; finds how many can be passed on, and whether a failed
 * cell stands behind them. */
static bool cells_look(struct parallel *p)
{
    struct uva__link *link;
    struct uva__cell *cell;
    int64_t ready = 0;
    bool gap = false, failed = false;

    for (link = p->loop.order.head; link != NULL; link = link->next) {
        cell = cell_of(link);
        if (uva__word_load(&cell->done) == 0) {
            gap = true;
            continue;
        }
        if (!cell->seen)
            cell_see(p, cell);
        if (cell->code != 0 && (p->unordered || !gap))
            failed = true;
        else if (!failed && cell->code == 0 && (p->unordered || !gap))
            ready++;
    }
    p->op.feed.ready = ready;
    return failed;
}

/* What the one above said last comes when all before it has been passed on. */
static void parallel_conclude(struct parallel *p, bool failed)
{
    struct uva__operator *op = &p->op;
    struct uva__feed *feed = &op->feed;

    if (feed->failure.code != 0 || feed->ended)
        return;
    if (op->failure.code != 0 && (failed || p->loop.used == feed->ready))
        uva__failure_move(&op->failure, &feed->failure, &feed->hub->allocator);
    else if (failed && op->released) /* it never said why (ER-12) */
        uva__failure_set(&feed->failure, &feed->hub->allocator,
                         p->loop.failed_code, NULL, NULL);
    else if (op->ended && p->loop.used == feed->ready)
        feed->ended = true;
}

static void parallel_ask(struct parallel *p, int64_t demand)
{
    int64_t room =
        uva__window_room(&p->window, demand, p->loop.used + p->loop.asked);

    p->loop.begun = p->loop.begun || demand > 0;
    if (!p->loop.begun || room == 0)
        return;
    p->loop.asked += room;
    uva__operator_request(&p->op, room);
}

static bool parallel_prepare(struct parallel *p);

static void parallel_pull(struct uva__feed *feed, int64_t demand)
{
    struct parallel *p = parallel_at(feed);

    if (!feed->schema_known && p->op.failure.code == 0)
        return;
    if (p->team.members == NULL && feed->schema_known && !parallel_prepare(p)) {
        uva__failure_say(&feed->failure, &feed->hub->allocator, ENOMEM,
                         "no memory for a parallel stage");
        return;
    }
    parallel_conclude(p, cells_look(p));
    cells_grant(p);
    parallel_ask(p, demand);
}

static struct uva__cell *cell_next(struct parallel *p)
{
    struct uva__link *link = p->loop.order.head;

    while (p->unordered &&
           !cell_of(link)->seen) /* done since the look, or not */
        link = link->next;
    assert(cell_of(link)->code == 0);
    (void)uva__list_remove(&p->loop.order, link);
    return cell_of(link);
}

static struct uva__task *parallel_take(struct uva__feed *feed)
{
    struct parallel *p = parallel_at(feed);
    struct uva__task *task = uva__producer_take_task(feed->producer);
    struct uva__cell *cell;

    if (task == NULL)
        return NULL;
    cell = cell_next(p);
    feed->ready--;
    p->loop.bytes -= cell->bytes;
    if (uva__task_fill(task, &feed->hub->allocator, &cell->array,
                       cell->metadata) != 0) {
        uva__stock_put_task(feed->hub, task);
        task = NULL;
    } else {
        task->ordinal = cell->ordinal;
        task->bytes = cell->bytes;
    }
    cell_discard(p, cell);
    return task;
}

/* ---- the loop: stopping ------------------------------------------------- */

/* Workers have left these: nobody wants what is in them. */
static void cells_clear(struct parallel *p)
{
    struct uva__list still = {0};
    struct uva__link *link;

    while ((link = uva__list_pop(&p->loop.order)) != NULL)
        if (uva__word_load(&cell_of(link)->done) != 0)
            cell_discard(p, cell_of(link));
        else
            uva__list_push(&still, link);
    p->loop.order = still;
}

static void parallel_stop(struct uva__feed *feed)
{
    struct parallel *p = parallel_at(feed);
    struct uva__link *wait;
    struct uva__cell *cell;
    uint64_t unclaimed;

    uva__operator_stop(feed);
    for (unclaimed = uva__team_stop(&p->team); unclaimed > 0; unclaimed--)
        uva__list_push(&p->loop.waiting, &uva__team_ungrant(&p->team)->wait);
    while ((wait = uva__list_pop(&p->loop.waiting)) != NULL) {
        cell = uva__container_of(wait, struct uva__cell, wait);
        uva__task_drop(&cell->task);
        cell->code = ECANCELED;
        uva__word_store(&cell->done, 1);
    }
    cells_clear(p);
}

static bool parallel_visit(struct uva__node *node)
{
    struct parallel *p = uva__container_of(node, struct parallel, op.node);

    if (p->op.stopped)
        cells_clear(p);
    else
        uva__producer_wake(p->op.feed.producer);
    return false;
}

/* ---- life --------------------------------------------------------------- */

static const struct uva__node_ops parallel_node_ops = {parallel_visit,
                                                       uva__operator_free};

static void parallel_free(struct uva__operator *op,
                          const struct uva_allocator *allocator)
{
    struct parallel *p = parallel_of(op);
    struct uva__link *link;

    while ((link = uva__list_pop(&p->loop.order)) != NULL) {
        if (cell_of(link)->code == 0)
            uva_array_release(&cell_of(link)->array);
        uva__memory_free(allocator, cell_of(link)->metadata,
                         cell_of(link)->metadata_size);
    }
    uva__team_fini(&p->team);
    uva__memory_free(allocator, p->cells,
                     sizeof(*p->cells) * (size_t)p->window.batches);
    uva__memory_free(allocator, p, sizeof(*p));
}

/* Room for a window's batches, once it is known that any will come. */
static bool parallel_prepare(struct parallel *p)
{
    int64_t count = p->window.batches, i;

    assert(p->cells == NULL);
    p->cells = uva__memory_new(&p->op.feed.hub->allocator,
                               sizeof(*p->cells) * (size_t)count);
    if (p->cells == NULL ||
        uva__team_prepare(&p->team, count, &p->op.feed.schema) != 0)
        return false;
    for (i = 0; i < count; i++)
        uva__list_push(&p->loop.free, &p->cells[i].link);
    return true;
}

static const struct uva__operator_ops parallel_ops = {
    .feed = {.name = "parallel",
             .start = uva__operator_start,
             .pull = parallel_pull,
             .take = parallel_take,
             .stop = parallel_stop,
             .leave = uva__operator_leave},
    .task = parallel_task,
    .free = parallel_free,
};

static int32_t parallel_cores(void)
{
    int32_t cores = uva__lane_cores();

    return cores < WORKERS_MAX ? cores : WORKERS_MAX;
}

static struct uva__feed *parallel_make(struct uva__producer *above,
                                       const void *given)
{
    const struct uva_parallel *how = given;
    struct parallel *p = uva__memory_new(&above->hub->allocator, sizeof(*p));

    if (p == NULL)
        return NULL;
    if (uva__window_complete(&how->window, &p->window) != 0)
        assert(!"checked before");
    p->team.workers = how->workers != 0 ? how->workers : parallel_cores();
    p->unordered = how->unordered;
    p->loop.largest = -1;
    p->team.op = &p->op;
    p->team.node = &p->op.node;
    uva__operator_init(&p->op, &parallel_ops, &parallel_node_ops, above);
    return &p->op.feed;
}

int uva_stream_parallel(struct uva_stream *stream,
                        const struct uva_parallel *how)
{
    const struct uva_parallel none = {0};
    struct uva_window window;
    int code = uva__flow_building(stream);

    if (code != 0)
        return code;
    how = how != NULL ? how : &none;
    if (!uva__memory_is_clear(how->reserved, 4))
        return uva__flow_fail(stream, EINVAL,
                              "uva_parallel: reserved members must be NULL; "
                              "clear the struct before filling it in");
    if (how->workers < 0 || how->workers > WORKERS_MAX ||
        uva__window_complete(&how->window, &window) != 0)
        return uva__flow_fail(stream, EINVAL,
                              "uva_parallel: from 0 to %d workers, and no "
                              "negative window",
                              WORKERS_MAX);
    code = uva__hub_ensure_lane(stream->hub, UVA_LANE_COMPUTE);
    if (code != 0)
        return uva__flow_fail(stream, code,
                              "parallel: the system gives no thread");
    return uva__flow_wrap(stream, parallel_make, how);
}
