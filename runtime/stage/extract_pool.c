/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  granted, published -> a worker is launched, or one at work goes
 *              on -> claimed -> extracted -> done, the stage is told.
 *
 * What can fail: an extraction; its code is in the cell.
 *
 * On stop:     what nobody has claimed is taken back; what is being extracted
 *              is discarded by its worker, for which nobody waits. */
#include "stage/extract_pool.h"

#include <assert.h>
#include <errno.h>

#include "arrow/layout.h"
#include "base/memory.h"
#include "arrow/structs.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

enum { WORK_SHIFT = 8, WORK_WORKERS = 255 };

static const int64_t BYTES_MAX = (int64_t)1 << 40;

struct uva__worker {
    struct uva__link link;  /* among those that are not queued */
    struct uva_job job;     /* submitted when there is work */
    struct uva__team *team; /* borrows: its stage is counted meanwhile */
};

void uva__team_grant(struct uva__team *team, struct uva__cell *cell)
{
    uva__shared_store(&team->granted[team->put++ & (team->ring - 1)], cell);
}

/* The entry is read before it is claimed: once it is, and the cell done, the
 * loop may grant another in its place. */
static struct uva__cell *team_take(struct uva__team *team)
{
    uint64_t claimed = uva__word_load(&team->claimed);
    struct uva__cell *cell;

    do
        cell = uva__shared_load(&team->granted[claimed & (team->ring - 1)]);
    while (!uva__word_cas(&team->claimed, &claimed, claimed + 1));
    return cell;
}

/* Claims the next cell. NULL when there is none: then the caller no longer
 * counts as at work. */
static struct uva__cell *team_claim(struct uva__team *team)
{
    uint64_t work = uva__word_load(&team->work);
    bool some;

    do
        some = work >> WORK_SHIFT != 0;
    while (!uva__word_cas(&team->work, &work,
                          some ? work - (1 << WORK_SHIFT) : work - 1));
    return some ? team_take(team) : NULL;
}

static void team_extract(struct uva__team *team, struct uva__cell *cell)
{
    cell->code = uva_task_extract(&cell->task, &cell->array);
    if (cell->code != 0)
        return;
    if (uva__word_load(&team->stopped) != 0)
        uva_array_release(&cell->array);
    else if (uva__layout_measure(&team->schema, &cell->array, &cell->bytes,
                                 NULL) != 0)
        cell->bytes = 0; /* of a format unknown here */
    else if (cell->bytes > BYTES_MAX)
        cell->bytes = BYTES_MAX; /* as it claims; sums must not overflow */
}

static void team_run(struct uva_job *job)
{
    struct uva__worker *worker =
        uva__container_of(job, struct uva__worker, job);
    struct uva__team *team = worker->team;
    struct uva__hub *hub = team->op->feed.hub;
    struct uva__cell *cell;

    uva__lock_take(&team->lock); /* the job is not queued any more */
    uva__list_push(&team->locked.idle, &worker->link);
    uva__lock_drop(&team->lock);
    while ((cell = team_claim(team)) != NULL) {
        team_extract(team, cell);
        uva__word_store(&cell->done, 1);
        uva__hub_post(hub, team->node);
    }
    uva__operator_release(team->op);
    uva__hub_job_end(hub);
}

static void team_launch(struct uva__team *team)
{
    struct uva__hub *hub = team->op->feed.hub;
    struct uva__worker *worker;

    uva__lock_take(&team->lock);
    worker = uva__container_of(uva__list_pop(&team->locked.idle),
                               struct uva__worker, link);
    uva__lock_drop(&team->lock);
    uva__operator_acquire(team->op);
    if (uva__hub_job_begin(hub))
        uva__lane_submit(&hub->jobs, UVA_LANE_COMPUTE, &worker->job);
    else
        assert(!"a stage runs, so the workers are there");
}

/* Publishes `count` more granted cells, with a worker for each as far as there
 * may be more. */
void uva__team_publish(struct uva__team *team, uint64_t count)
{
    uint64_t work = uva__word_add(&team->work, count << WORK_SHIFT);
    uint64_t most = (work & WORK_WORKERS) + (work >> WORK_SHIFT) + count;

    if (most > (uint64_t)team->workers)
        most = (uint64_t)team->workers;
    work = uva__word_load(&team->work);
    while ((work & WORK_WORKERS) < most && work >> WORK_SHIFT != 0) {
        if (!uva__word_cas(&team->work, &work, work + 1))
            continue;
        team_launch(team);
        work = uva__word_load(&team->work);
    }
}

uint64_t uva__team_stop(struct uva__team *team)
{
    uva__word_exchange(&team->stopped, 1);
    return uva__word_and(&team->work, WORK_WORKERS) >> WORK_SHIFT;
}

struct uva__cell *uva__team_ungrant(struct uva__team *team)
{
    return uva__shared_load(&team->granted[--team->put & (team->ring - 1)]);
}

/* ---- room --------------------------------------------------------------- */

void uva__team_fini(struct uva__team *team)
{
    const struct uva_allocator *allocator = &team->op->feed.hub->allocator;

    uva_schema_release(&team->schema);
    uva__memory_free(allocator, team->granted,
                     sizeof(*team->granted) * team->ring);
    uva__memory_free(allocator, team->members,
                     sizeof(*team->members) * (size_t)team->workers);
    team->granted = NULL;
    team->members = NULL;
}

int uva__team_prepare(struct uva__team *team, int64_t cells,
                      const struct ArrowSchema *schema)
{
    const struct uva_allocator *allocator = &team->op->feed.hub->allocator;
    int32_t i;

    team->ring = uva__window_ring(cells);
    team->granted =
        uva__memory_new(allocator, sizeof(*team->granted) * team->ring);
    team->members = uva__memory_new(allocator, sizeof(*team->members) *
                                                   (size_t)team->workers);
    if (team->granted == NULL || team->members == NULL ||
        uva__structs_copy_schema(allocator, schema, &team->schema) != 0) {
        uva__team_fini(team);
        return ENOMEM;
    }
    for (i = 0; i < team->workers; i++) {
        team->members[i].job.run = team_run;
        team->members[i].team = team;
        uva__list_push(&team->locked.idle, &team->members[i].link);
    }
    return 0;
}
