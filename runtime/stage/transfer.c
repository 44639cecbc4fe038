/* SPDX-License-Identifier: Apache-2.0 */
/* The transfer stage: copies each batch to another device or to the host,
 * several at once, in order. The device thread makes the copies; the stage
 * waits for them as for events: a copy to the host until it is complete, one to
 * a device until it was begun.
 *
 * Clauses: EV-04. */
#include <errno.h>

#include "arrow/layout.h"
#include "arrow/structs.h"
#include "base/memory.h"
#include "device/copy.h"
#include "stage/ordered_waits.h"
#include "stream/stream_impl.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

struct transfer {
    struct uva__ordered_waits waits;     /* first */
    struct uva__copy_destination target; /* the device to copy to; counts its
                                            allocator */
    struct ArrowSchema schema; /* owns: of the batches, once it is known */
};

static struct transfer *transfer_of(struct uva__ordered_waits *waits)
{
    return uva__container_of(waits, struct transfer, waits);
}

/* ---- batches ------------------------------------------------------------ */

/* Moves the array into a copy and begins it. A copy has whole buffers, of a
 * slice also the rows before it, and counts so. If it goes on after its batch
 * was passed on, it is counted until then. */
static void transfer_copy(struct transfer *t, struct uva__pending_batch *wait)
{
    struct uva__ordered_waits *waits = &t->waits;
    struct uva_device_event event;
    struct uva__copy *copy;
    struct uva__work *work;
    struct uva_error error;
    int64_t bytes;
    int code = uva__layout_copied(&t->schema, uva__pending_batch_array(wait),
                                  &bytes, &error);

    if (code == 0)
        code = uva__copy_new(waits->devices, &t->target, &t->schema,
                             uva__pending_batch_array(wait), &copy, &error);
    if (code != 0) {
        uva__pending_batch_fail(waits, wait, code, &error);
        return;
    }
    uva__pending_batch_grow(waits, wait, bytes);
    if (uva__copy_may_be_in_flight(copy) &&
        uva__ordered_waits_begin_work(waits, wait))
        uva__copy_set_client(copy, &(struct uva__copy_tail_client){
                                       uva__ordered_waits_end_work, waits,
                                       wait->batch.slot->info.bytes});
    event = uva__copy_event(copy);
    work = uva__copy_work(copy);
    if (uva__pending_batch_prepare(waits, wait, &event)) {
        wait->watch->work = work;
        uva__event_wait_begin(wait->watch);
    } else {
        work->free(work);
    }
}

/* Waits for the event of a batch that the host can read without a copy. */
static void transfer_wait(struct transfer *t, struct uva__pending_batch *wait)
{
    const struct uva_device_event event = uva__pending_batch_event(wait);
    const enum uva__event_kind kind =
        uva__pending_batch_classify(&t->waits, wait);

    if (kind == UVA__EVENT_NONE)
        uva__pending_batch_retype(wait, t->target.device_type,
                                  t->target.device_id);
    else if (kind == UVA__EVENT_WAIT &&
             uva__pending_batch_prepare(&t->waits, wait, &event))
        uva__event_wait_begin(wait->watch);
}

static void transfer_begin(struct uva__ordered_waits *waits,
                           struct uva__pending_batch *wait)
{
    struct transfer *t = transfer_of(waits);
    struct uva_error error;

    switch (uva__copy_find(waits->devices, &t->target,
                           uva__pending_batch_array(wait), &error)) {
    case UVA__COPY_NONE:
        if (uva__pending_batch_array(wait)->device_type == ARROW_DEVICE_CPU)
            uva__pending_batch_complete(wait);
        break;
    case UVA__COPY_WAIT:
        transfer_wait(t, wait);
        break;
    case UVA__COPY_MOVE:
        transfer_copy(t, wait);
        break;
    case UVA__COPY_LOST:
        uva__pending_batch_fail(waits, wait, error.code, &error);
        break;
    }
}

static void transfer_over(struct uva__ordered_waits *waits,
                          struct uva__pending_batch *wait,
                          const struct uva_error *error)
{
    struct transfer *t = transfer_of(waits);

    if (error->code != 0)
        uva__pending_batch_fail(waits, wait, error->code, error);
    else if (wait->watch->work != NULL)
        uva__copy_give(wait->watch->work, uva__pending_batch_array(wait));
    else
        uva__pending_batch_retype(wait, t->target.device_type,
                                  t->target.device_id);
}

/* The producer below moves the schema out of the source. */
static int transfer_schema(struct uva__stage *stage, struct ArrowSchema *schema,
                           struct uva_error *error)
{
    struct transfer *t = transfer_of(uva__ordered_waits_of(stage));

    (void)error;
    return uva__structs_copy_schema(&stage->source.rt->allocator, schema,
                                    &t->schema) == 0
               ? uva__stage_pass_schema(stage, schema)
               : ENOMEM;
}

/* ---- life --------------------------------------------------------------- */

/* The options of transfer_kind, and more. */
struct setup {
    struct uva_transfer options;           /* first */
    struct uva__copy_allocator *allocator; /* counts; NULL: the driver's */
};

static struct uva__copy_destination
target_of(const struct uva_transfer *options)
{
    struct uva__copy_destination target = {.device_type = options->device_type,
                                           .device_id = options->device_id};

    if (target.device_type == 0 || target.device_type == ARROW_DEVICE_CPU)
        target = (struct uva__copy_destination){.device_type = ARROW_DEVICE_CPU,
                                                .device_id = -1};
    target.device_stream = options->device_stream;
    return target;
}

static void transfer_init(struct uva__stage *stage,
                          const struct uva__stage_setup *setup)
{
    static const struct uva__ordered_waits_ops ops = {transfer_begin,
                                                      transfer_over};
    const struct setup *given = setup->options;
    struct transfer *t = transfer_of(uva__ordered_waits_of(stage));

    t->target = target_of(&given->options);
    t->target.allocator = uva__copy_allocator_acquire(given->allocator);
    uva__ordered_waits_init(&t->waits, &ops, setup);
    stage->output_type = t->target.device_type;
    stage->source.device_type = t->target.device_type;
    stage->source.uses_stream = t->target.device_stream != NULL;
    setup->stream->device_data = t->target.device_type != ARROW_DEVICE_CPU;
}

static void transfer_free(struct uva__stage *stage,
                          const struct uva_allocator *allocator)
{
    struct transfer *t = transfer_of(uva__ordered_waits_of(stage));

    uva__copy_allocator_release(t->target.allocator);
    uva_schema_release(&t->schema);
    uva__ordered_waits_free(stage, allocator);
}

/* A default stream belongs to the context which is current here. */
static int transfer_check(const struct uva__stage_setup *setup,
                          struct uva_error *error)
{
    const struct uva_transfer *options = setup->options;
    const struct uva_device_allocator *allocator = options->allocator;

    if (allocator != NULL &&
        (allocator->alloc == NULL || allocator->free == NULL ||
         uva__device_is_host(target_of(options).device_type)))
        return uva_error_set(error, EINVAL,
                             "uva_transfer: an allocator needs alloc and free, "
                             "and a target that is not on the host");
    return options->device_stream == NULL
               ? 0
               : uva__devices_check_stream(setup->devices,
                                           options->device_stream, error);
}

static const struct uva__option_limit limits[] = {
    UVA__LIMIT(uva_transfer, device_type, 0, UVA__DEVICE_TYPES - 1), {0}};

static const struct uva__stage_kind transfer_kind = {
    .options = {UVA__OPTIONS(uva_transfer), UVA__OPTIONS_WINDOW(uva_transfer),
                .limits = limits},
    .size = sizeof(struct transfer),
    .needs = UVA__STAGE_CHEAP | UVA__STAGE_DEVICES,
    .check = transfer_check,
    .init = transfer_init,
    .source = {UVA__STAGE_RELAYS(uva__ordered_waits_stop), .name = "transfer",
               .pull = uva__ordered_waits_pull, .take = uva__stage_take},
    .schema = transfer_schema,
    .task = uva__ordered_waits_task,
    .clear = uva__ordered_waits_clear,
    .free = transfer_free,
};

/* Takes the ctx of the caller's allocator, whether it succeeds or not. */
static int allocator_take(struct uva_stream *stream,
                          const struct uva_device_allocator *given,
                          struct uva__copy_allocator **out)
{
    int code;

    *out = uva__copy_allocator_new(given);
    if (*out != NULL)
        return 0;
    if (given->free_ctx != NULL)
        given->free_ctx(given->ctx);
    code = uva__stream_building(stream);
    return code != 0
               ? code
               : uva__stream_fail(stream, ENOMEM, "no memory for an allocator");
}

int uva_stream_transfer(struct uva_stream *stream,
                        const struct uva_transfer *options)
{
    struct setup setup = {0};
    int code = 0;

    if (options != NULL)
        setup.options = *options;
    if (setup.options.allocator != NULL &&
        uva__options_are_clear(&transfer_kind.options, options))
        code = allocator_take(stream, options->allocator, &setup.allocator);
    if (code == 0)
        code = uva__stage_add(stream, &transfer_kind, &setup.options);
    uva__copy_allocator_release(setup.allocator);
    return code;
}
