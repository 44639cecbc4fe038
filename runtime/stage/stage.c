/* SPDX-License-Identifier: Apache-2.0 */
/* The inlet and the source of a stage.
 *
 * Happy path:  start -> the schema is passed on -> (request to the producer
 *              above, its task to the stage)* -> the end -> the inlet is
 *              released, the producer below leaves the source.
 *
 * Failures:    there is no memory for the schema: refused above, and an error
 *              below.
 *
 * On cancel:   passed to the producer above at once; no more tasks come. Where
 *              a stage above uses a device stream of the consumer, the stop
 *              ends when that stage has stopped. */
#include "stage/stage.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "arrow/schema_compare.h"
#include "arrow/structs.h"
#include "base/error.h"
#include "base/unreachable.h"
#include "stage/parallel.h"
#include "stream/runtime_devices.h"
#include "stream/source_kind.h"
#include "stream/stream_impl.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

static struct uva__stage *stage_of(struct uva__inlet *inlet)
{
    return uva__container_of(inlet, struct uva__stage, inlet);
}

struct uva__stage *uva__stage_of(struct uva__source *source)
{
    return uva__container_of(source, struct uva__stage, source);
}

/* ---- the schema of one stream, or of several ----------------------------- */

/* Takes the outline of the source above, too. */
static int source_pass_schema(struct uva__source *source,
                              const struct uva__inlet *inlet,
                              struct ArrowSchema *schema)
{
    if (uva__source_take_schema(source, inlet->handler.producer, schema) != 0)
        return ENOMEM;
    source->outline = uva__inlet_outline(inlet);
    return 0;
}

/* An earlier attempt may have had no memory to pass its schema on. */
static int first_schema_keep(struct uva__first_schema *first,
                             struct uva__source *source,
                             const struct uva__inlet *inlet,
                             struct ArrowSchema *schema)
{
    int code;

    uva_schema_release(&first->schema);
    code = uva__structs_copy_schema(&source->rt->allocator, schema,
                                    &first->schema);
    if (code == 0)
        code = source_pass_schema(source, inlet, schema);
    first->typed = code == 0;
    return code;
}

int uva__first_schema_take(struct uva__first_schema *first,
                           struct uva__source *source,
                           const struct uva__inlet *inlet, int64_t number,
                           struct ArrowSchema *schema, struct uva_error *error)
{
    const struct ArrowAsyncProducer *from = inlet->handler.producer;
    struct uva_error detail = {0};

    if (first->typed && from->device_type != source->device_type)
        (void)uva_error_set(&detail, EINVAL, "its device type is %d, not %d",
                            (int)from->device_type, (int)source->device_type);
    else if (!source->schema_known)
        return first_schema_keep(first, source, inlet, schema);
    else if (uva__schema_compare(&first->schema, schema, &detail) == 0)
        return 0;
    return uva_error_set(error, EINVAL,
                         "%s: %s %lld has another schema than the first one: "
                         "%s",
                         source->name, first->who, (long long)number,
                         detail.message);
}

/* ---- calls of the inlet -------------------------------------------------- */

int uva__stage_pass_schema(struct uva__stage *stage, struct ArrowSchema *schema)
{
    struct uva__source *source = &stage->source;

    if (source_pass_schema(source, &stage->inlet, schema) != 0)
        return ENOMEM;
    if (stage->output_type != 0)
        source->device_type = stage->output_type;
    return 0;
}

static int stage_schema(struct uva__inlet *inlet, struct ArrowSchema *schema,
                        struct uva_error *error)
{
    struct uva__stage *stage = stage_of(inlet);

    return stage->kind->schema != NULL
               ? stage->kind->schema(stage, schema, error)
               : uva__stage_pass_schema(stage, schema);
}

static void stage_task(struct uva__inlet *inlet, struct ArrowAsyncTask *task,
                       const char *metadata)
{
    struct uva__stage *stage = stage_of(inlet);

    assert(!stage->source.stopped);
    stage->kind->task(stage, task, metadata);
}

static void stage_news(struct uva__inlet *inlet)
{
    const struct uva__source *source = &stage_of(inlet)->source;

    if (!source->stopped)
        uva__producer_wake(source->producer);
}

static void stage_released(struct uva__inlet *inlet)
{
    uva__stage_release(stage_of(inlet));
}

static const struct uva__inlet_ops inlet_ops = {stage_schema, stage_task,
                                                stage_news, stage_released};

/* ---- calls from the producer below -------------------------------------- */

void uva__stage_start(struct uva__source *source)
{
    struct uva__stage *stage = uva__stage_of(source);

    uva__stage_acquire(stage); /* the inlet's */
    uva__inlet_begin(&stage->inlet, source->producer, false);
}

void uva__stage_stop(struct uva__source *source)
{
    struct uva__stage *stage = uva__stage_of(source);

    uva__timer_stop(source->rt, &stage->timer);
    source->ready = 0;
    uva__kept_drop(&stage->ready, source);
    uva__source_hold(source, 0, 0);
    uva__inlet_quit(&stage->inlet);
    uva__inlet_await(&stage->inlet, source);
}

const struct uva__source *uva__stage_above(const struct uva__source *source)
{
    return uva__inlet_source(
        &uva__container_of(source, struct uva__stage, source)->inlet);
}

void uva__stage_need(struct uva__source *source)
{
    uva__inlet_need(&uva__stage_of(source)->inlet);
}

void uva__stage_leave(struct uva__source *source)
{
    struct uva__stage *stage = uva__stage_of(source);

    uva__inlet_close(&stage->inlet);
    uva__stage_release(stage);
}

/* ---- batches that are kept ---------------------------------------------- */

struct uva__task *uva__stage_extract(struct uva__stage *stage,
                                     struct ArrowAsyncTask *task,
                                     const char *metadata)
{
    uva__intake_come(&stage->in);
    return uva__kept_take_in(&stage->inlet, stage->source.producer, task,
                             metadata, UVA__KEPT_BATCH);
}

void uva__stage_keep(struct uva__stage *stage, struct ArrowAsyncTask *task,
                     const char *metadata)
{
    struct uva__task *slot = uva__stage_extract(stage, task, metadata);

    if (slot == NULL)
        return;
    uva__intake_put(&stage->in, slot->info.bytes);
    uva__kept_push(&stage->ready, slot);
    stage->source.ready++;
}

void uva__stage_request(struct uva__stage *stage, int64_t demand, int64_t first)
{
    if (stage->source.failure.code == 0 && uva__inlet_is_open(&stage->inlet))
        uva__inlet_request_for(&stage->inlet, &stage->in,
                               uva__intake_room(&stage->in, demand, first));
}

void uva__stage_pull(struct uva__source *source, int64_t demand)
{
    struct uva__stage *stage = uva__stage_of(source);

    uva__intake_account(&stage->in, source);
    if (stage->in.held == source->ready)
        uva__inlet_conclude(&stage->inlet, source);
    uva__stage_request(stage, demand, INT64_MAX);
}

struct uva__task *uva__stage_take(struct uva__source *source)
{
    struct uva__stage *stage = uva__stage_of(source);
    struct uva__task *slot = uva__kept_pop(&stage->ready);

    source->ready--;
    uva__intake_leave(&stage->in, slot->info.bytes);
    return slot;
}

/* ---- life --------------------------------------------------------------- */

void uva__stage_acquire(struct uva__stage *stage)
{
    uva__source_acquire(&stage->source);
}

void uva__stage_release(struct uva__stage *stage)
{
    uva__source_release(&stage->source);
}

void uva__stage_posted(struct uva__source *source)
{
    struct uva__stage *stage = uva__stage_of(source);

    if (source->stopped && stage->kind->clear != NULL)
        stage->kind->clear(stage);
}

void uva__stage_free(struct uva__source *source,
                     const struct uva_allocator *allocator)
{
    struct uva__stage *stage = uva__stage_of(source);
    const struct uva__stage_kind *kind = stage->kind;

    if (kind->free != NULL)
        kind->free(stage, allocator);
    if (kind->copy != 0)
        uva__options_free_ctx(&kind->options, (char *)stage + kind->copy);
    uva__inlet_fini(&stage->inlet);
}

/* ---- making one --------------------------------------------------------- */

static void stage_expire(struct uva__timer *timer)
{
    struct uva__stage *stage =
        uva__container_of(timer, struct uva__stage, timer);

    uva__producer_wake(stage->source.producer);
}

/* The arguments of stage_wrap(). */
struct setup {
    const struct uva__stage_kind *kind;
    const struct uva__stage_setup *stage;
    bool *taken; /* a copy of the options owns their ctx */
};

/* On failure the stream keeps `above`. */
static struct uva__source *stage_wrap(struct uva__producer *above,
                                      const void *given)
{
    static const struct uva__window follows = {.batches = INT32_MAX,
                                               .bytes = INT64_MAX,
                                               .refill = UVA__WINDOW_FOLLOWS};
    const struct setup *setup = given;
    const struct uva__stage_kind *kind = setup->kind;
    struct uva__source *source = uva__source_new(
        &kind->source, above->rt, kind->size + setup->stage->more);
    struct uva__stage *stage;

    if (source == NULL)
        return NULL;
    stage = uva__stage_of(source);
    source->label = uva__label_acquire(above->source->label);
    uva__share_join(&source->share, &above->source->share);
    source->device_type = above->source->device_type;
    stage->kind = kind;
    uva__inlet_init(&stage->inlet, &inlet_ops, above);
    uva__intake_init(&stage->in, kind->options.window != 0
                                     ? &setup->stage->window
                                     : &follows);
    stage->timer.fire = stage_expire;
    *setup->taken = kind->copy != 0;
    if (kind->copy != 0)
        memcpy((char *)stage + kind->copy, setup->stage->options,
               kind->options.size);
    if (kind->init != NULL)
        kind->init(stage, setup->stage);
    return source;
}

static int stage_find_devices(const struct uva__stage_kind *kind,
                              struct uva__stage_setup *setup)
{
    int code;

    if (!(kind->needs & UVA__STAGE_DEVICES))
        return 0;
    code = uva__rt_devices_thread(setup->stream->rt, &setup->devices);
    if (code != 0)
        setup->devices = NULL; /* of which there is no reference */
    return code == 0 ? 0
                     : uva__stream_fail(setup->stream, code,
                                        "%s: no thread or memory for devices",
                                        kind->source.name);
}

static int stage_check(const struct uva__stage_kind *kind,
                       const struct uva__stage_setup *setup)
{
    struct uva_error error;
    int code = 0;

    uva__error_begin(&error);
    if (kind->check != NULL)
        code = kind->check(setup, &error);
    return code == 0
               ? 0
               : uva__stream_fail(setup->stream, code, "%s", error.message);
}

static int stage_add_workers(const struct uva__stage_kind *kind,
                             const struct uva__stage_setup *setup)
{
    const int needs = kind->needs | setup->needs;
    int code;

    if (needs & UVA__STAGE_CHEAP)
        return uva__stage_make_cheap(
            setup->stream, kind->options.window != 0 ? &setup->window : NULL);
    assert(needs & UVA__STAGE_WORKERS);
    code = uva__rt_ensure_lane(setup->stream->rt, UVA_LANE_COMPUTE);
    return code == 0 ? 0
                     : uva__stream_fail(setup->stream, code,
                                        "%s: no memory or no thread",
                                        kind->source.name);
}

int uva__stage_make(const struct uva__stage_kind *kind,
                    struct uva__stage_setup *setup)
{
    bool taken = false;
    const struct setup whole = {kind, setup, &taken};
    int code = stage_find_devices(kind, setup);

    if (code == 0)
        code = stage_check(kind, setup);
    if (code == 0)
        code = stage_add_workers(kind, setup);
    if (code == 0)
        code = uva__stream_wrap(setup->stream, stage_wrap, &whole);
    if (setup->devices != NULL)
        uva__devices_release(setup->devices);
    if (!taken)
        uva__options_free_ctx(&kind->options, setup->options);
    return code;
}

int uva__stage_make_cheap(struct uva_stream *stream,
                          const struct uva__window *window)
{
    const struct uva_window none = {0};
    struct uva__stage_setup setup = {.stream = stream,
                                     .options = uva__options_or_zeroes(NULL)};

    if (!stream->tail->expensive)
        return 0;
    if (window != NULL)
        setup.window = *window;
    else if (uva__window_follow(&none, &setup.window) != 0)
        UVA__UNREACHABLE("the default window is valid");
    return uva__stage_make(&uva__parallel_kind, &setup);
}

int uva__stage_add(struct uva_stream *stream,
                   const struct uva__stage_kind *kind, const void *options)
{
    struct uva__stage_setup setup = {
        .stream = stream, .options = uva__options_or_zeroes(options)};
    const int code = kind->options.name != NULL
                         ? uva__options_accept(&kind->options, stream, options,
                                               &setup.window)
                         : uva__stream_building(stream);

    return code == 0 ? uva__stage_make(kind, &setup) : code;
}
