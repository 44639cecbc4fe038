/* SPDX-License-Identifier: Apache-2.0 */
/* Extraction on compute workers, several batches at once, passed on in order or
 * as they finish.
 *
 * Happy path:  task -> waits -> granted (begun) in order, as far as the window
 *              of bytes allows -> a worker claims and extracts it, and posts
 *              the stage -> the producer below takes it. A batch that comes
 *              with its data is over when it is granted.
 *
 * Failures:    an extraction. The batches before it are passed on, then the
 *              error that the producer above reports: it is not cancelled, as
 *              it would report no reason after that.
 *
 * On stop:     tasks that are not claimed are taken back; workers discard the
 *              batches that they are extracting. They are not waited for, as
 *              they count the stage. */
#include "stage/parallel.h"

#include <errno.h>

#include "base/platform.h"
#include "stage/extract_pool.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

enum { WORKERS_MAX = 128 };

struct parallel {
    struct uva__extract_pool pool; /* first: the workers that extract */
    uint64_t taken;                /* batches passed on, in all; loop */
};

static struct parallel *parallel_at(struct uva__source *source)
{
    return uva__container_of(source, struct parallel, pool.flight.stage.source);
}

/* ---- the loop ----------------------------------------------------------- */

static void parallel_task(struct uva__stage *stage, struct ArrowAsyncTask *task,
                          const char *metadata)
{
    struct uva__flight *flight = uva__flight_of(stage);
    struct uva__flight_batch *batch = uva__flight_admit(
        flight, task, metadata,
        uva__task_is_made(task) ? UVA__KEPT_BATCH : UVA__KEPT_PROMISE);

    if (batch != NULL)
        uva__flight_wait(flight, batch, batch->slot->info.bytes);
}

static void parallel_grant(struct uva__flight *flight,
                           struct uva__flight_batch *batch)
{
    if (uva_array_is_live(&batch->slot->array))
        uva__flight_end(flight, batch);
    else
        uva__extract_pool_grant(&parallel_at(&flight->stage.source)->pool,
                                batch);
}

static int parallel_prepare(struct parallel *p)
{
    struct uva__source *source = &p->pool.flight.stage.source;
    const int code = uva__source_outline(source);

    return code == 0 ? uva__extract_pool_prepare(
                           &p->pool, uva__outline_measure(source->outline))
                     : code;
}

static void parallel_pull(struct uva__source *source, int64_t demand)
{
    struct parallel *p = parallel_at(source);
    struct uva__flight *flight = &p->pool.flight;

    if (p->pool.extractors == NULL && source->schema_known &&
        parallel_prepare(p) != 0) {
        uva__failure_format(&source->failure, &source->rt->allocator, ENOMEM,
                            "no memory for a parallel stage");
        return;
    }
    uva__flight_advance(flight);
    if (demand > 0 && source->ready == 0)
        uva__extract_pool_want(&p->pool, p->taken + 1);
    if (!uva__list_is_empty(&p->pool.fresh))
        uva__extract_pool_publish(&p->pool);
    uva__meter_block(source->meter, uva__list_is_empty(&flight->loop.waiting) ||
                                            uva__share_is_free(&source->share)
                                        ? UVA_WAITING_NONE
                                        : UVA_WAITING_MEMORY);
    uva__stage_request(&flight->stage, demand, flight->unsized_max);
}

static struct uva__task *parallel_take(struct uva__source *source)
{
    parallel_at(source)->taken++;
    return uva__stage_take(source);
}

/* The batch was not extracted by a worker. */
static void batch_drop(struct parallel *p, struct uva__flight_batch *batch)
{
    if (!uva_array_is_live(&batch->slot->array))
        uva__task_drop(&batch->slot->promise);
    uva__flight_discard(&p->pool.flight, batch);
}

/* A batch that is not over waits, or was granted, or a worker has it. The first
 * two may have a promise, which has to be dropped before uva__flight_stop(). */
static void parallel_stop(struct uva__source *source)
{
    struct parallel *p = parallel_at(source);
    struct uva__flight *flight = &p->pool.flight;
    struct uva__list unclaimed = {0};
    struct uva__link *link;

    uva__extract_pool_stop(&p->pool, &unclaimed);
    while ((link = uva__list_pop(&flight->loop.waiting)) != NULL)
        batch_drop(p, uva__container_of(link, struct uva__flight_batch, link));
    uva__flight_stop(source);
    while ((link = uva__list_pop(&unclaimed)) != NULL)
        batch_drop(
            p, uva__container_of(link, struct uva__flight_batch, work_link));
    uva__flight_clear(&flight->stage);
}

/* ---- life --------------------------------------------------------------- */

static void parallel_init(struct uva__stage *stage,
                          const struct uva__stage_setup *setup)
{
    static const struct uva__flight_ops ops = {
        .size = sizeof(struct uva__flight_batch),
        .begin = parallel_grant,
        .extracts = true,
    };
    const struct uva_parallel *options = setup->options;
    const int32_t cores = uva__platform_cores();
    struct parallel *p = parallel_at(&stage->source);

    uva__flight_init(&p->pool.flight, &ops);
    p->pool.workers = cores < WORKERS_MAX ? cores : WORKERS_MAX;
    if (options->workers != 0)
        p->pool.workers = options->workers;
    p->pool.flight.unsized_max = p->pool.workers;
    p->pool.flight.at_once = INT64_MAX;
    p->pool.flight.unordered = options->unordered;
}

static void parallel_free(struct uva__stage *stage,
                          const struct uva_allocator *allocator)
{
    struct parallel *p = parallel_at(&stage->source);

    uva__flight_free(stage, allocator);
    uva__extract_pool_fini(&p->pool);
}

static const struct uva__option_limit limits[] = {
    UVA__LIMIT(uva_parallel, workers, 0, WORKERS_MAX), {0}};

const struct uva__stage_kind uva__parallel_kind = {
    .options = {UVA__OPTIONS(uva_parallel), UVA__OPTIONS_WINDOW(uva_parallel),
                .limits = limits},
    .size = sizeof(struct parallel),
    .needs = UVA__STAGE_WORKERS,
    .init = parallel_init,
    .source = {UVA__STAGE_RELAYS(parallel_stop), .name = "parallel",
               .sized = true, .pull = parallel_pull, .take = parallel_take},
    .task = parallel_task,
    .clear = uva__flight_clear,
    .free = parallel_free,
};

int uva_stream_parallel(struct uva_stream *stream,
                        const struct uva_parallel *options)
{
    return uva__stage_add(stream, &uva__parallel_kind, options);
}
