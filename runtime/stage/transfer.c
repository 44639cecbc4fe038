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

/* Moves the array into a copy and begins it. A copy has all of the buffers, of
 * a slice also what lies in front of it, and counts so. If it goes on after its
 * batch was passed on, it is counted until then. */
static void transfer_copy(struct transfer *t, struct uva__pending_batch *wait)
{
    struct uva__ordered_waits *waits = &t->waits;
    struct uva_device_event event;
    struct uva__copy *copy;
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
    uva__pending_batch_work(waits, wait, &event, uva__copy_work(copy));
}

/* Waits for the event of a batch that the host can read without a copy. */
static void transfer_wait(struct transfer *t, struct uva__pending_batch *wait)
{
    const struct uva_device_event event = uva__pending_batch_event(wait);
    struct uva_error error;

    switch (uva__devices_classify(t->waits.devices, event.device_type,
                                  event.sync_event, &error)) {
    case UVA__EVENT_NONE:
        uva__pending_batch_retype(wait, t->target.device_type,
                                  t->target.device_id);
        break;
    case UVA__EVENT_WAIT:
        uva__pending_batch_watch(&t->waits, wait, &event);
        break;
    case UVA__EVENT_UNKNOWN:
        uva__pending_batch_fail(&t->waits, wait, error.code, &error);
        break;
    }
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
            uva__pending_batch_array(wait)->sync_event = NULL;
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

/* Copies the schema first, which the producer below moves out of the source. */
static void transfer_pull(struct uva__source *source, int64_t demand)
{
    struct transfer *t = transfer_of(uva__container_of(
        source, struct uva__ordered_waits, flight.stage.source));

    if (source->schema_known && t->schema.release == NULL &&
        uva__structs_copy_schema(&source->rt->allocator, &source->schema,
                                 &t->schema) != 0)
        uva__failure_format(&source->failure, &source->rt->allocator, ENOMEM,
                            "no memory for a stage of devices");
    else
        uva__ordered_waits_pull(source, demand);
}

/* ---- life --------------------------------------------------------------- */

static void transfer_free(struct uva__stage *stage,
                          const struct uva_allocator *allocator)
{
    struct transfer *t = transfer_of(
        uva__container_of(stage, struct uva__ordered_waits, flight.stage));

    uva__copy_allocator_release(t->target.allocator);
    uva_schema_release(&t->schema);
    uva__ordered_waits_fini(&t->waits, allocator);
    uva__memory_free(allocator, t, sizeof(*t));
}

/* The arguments of transfer_make(). */
struct setup {
    struct uva__copy_destination target; /* counts its allocator */
    struct uva_window window;            /* complete */
    struct uva__devices *devices;        /* borrows */
};

static struct uva__source *transfer_make(struct uva__producer *above,
                                         const void *given)
{
    static const struct uva__ordered_waits_ops ordered_waits_ops = {
        transfer_begin, transfer_over};
    static const struct uva__stage_ops ops = {
        .source = {.name = "transfer",
                   .start = uva__stage_start,
                   .pull = transfer_pull,
                   .take = uva__flight_take,
                   .stop = uva__ordered_waits_stop,
                   .leave = uva__stage_leave,
                   .need = uva__stage_need,
                   .above = uva__stage_above},
        .task = uva__ordered_waits_task,
        .free = transfer_free,
    };
    const struct setup *setup = given;
    struct transfer *t = uva__memory_new(&above->rt->allocator, sizeof(*t));

    if (t == NULL)
        return NULL;
    t->target = setup->target;
    (void)uva__copy_allocator_acquire(t->target.allocator);
    t->waits.flight.stage.output_type = setup->target.device_type;
    uva__ordered_waits_init(&t->waits, &ops, &ordered_waits_ops, above,
                            &setup->window, setup->devices);
    t->waits.flight.stage.source.uses_stream = t->target.device_stream != NULL;
    return &t->waits.flight.stage.source;
}

static int transfer_check(struct uva_stream *stream,
                          const struct uva_transfer *options, struct setup *out)
{
    const struct uva_device_allocator *allocator = options->allocator;

    if (options->device_type < 0 || options->device_type >= UVA__DEVICE_TYPES ||
        uva__window_complete(&options->window, &out->window) != 0)
        return uva__stream_fail(stream, EINVAL,
                                "uva_transfer: an unknown device type, or a "
                                "negative window, or one with a reserved "
                                "member that is not NULL");
    out->target = (struct uva__copy_destination){
        .device_type = options->device_type, .device_id = options->device_id};
    if (options->device_type == 0 || options->device_type == ARROW_DEVICE_CPU)
        out->target = (struct uva__copy_destination){
            .device_type = ARROW_DEVICE_CPU, .device_id = -1};
    out->target.device_stream = options->device_stream;
    if (allocator != NULL &&
        (allocator->alloc == NULL || allocator->free == NULL ||
         uva__device_is_host(out->target.device_type)))
        return uva__stream_fail(stream, EINVAL,
                                "uva_transfer: an allocator needs alloc and "
                                "free, and a target that is not on the host");
    return 0;
}

/* Takes the ctx of the caller's allocator, whether it succeeds or not. */
static int transfer_take_allocator(struct uva_stream *stream,
                                   const struct uva_device_allocator *given,
                                   struct setup *out)
{
    if (given == NULL)
        return 0;
    out->target.allocator = uva__copy_allocator_new(given);
    if (out->target.allocator != NULL)
        return 0;
    return uva__stream_fail(stream, ENOMEM, "no memory for an allocator");
}

static void transfer_refuse(const struct uva_device_allocator *given)
{
    if (given != NULL && given->free_ctx != NULL)
        given->free_ctx(given->ctx);
}

/* Adds a parallel stage if extraction may be expensive. */
static int transfer_add_workers(struct uva_stream *stream,
                                const struct uva_window *window)
{
    if (!stream->tail->expensive)
        return 0;
    return uva_stream_parallel(stream,
                               &(struct uva_parallel){.window = *window});
}

/* A default stream is that of the context which is current here. */
static int transfer_check_stream(struct uva_stream *stream,
                                 const struct setup *setup)
{
    struct uva_error why = {0};
    int code = 0;

    if (setup->target.device_stream != NULL)
        code = uva__devices_check_stream(setup->devices,
                                         setup->target.device_stream, &why);
    return code == 0 ? 0 : uva__stream_fail(stream, code, "%s", why.message);
}

static int transfer_add(struct uva_stream *stream, struct setup *setup)
{
    int code = transfer_add_workers(stream, &setup->window);

    if (code != 0)
        return code;
    code = uva__rt_devices_thread(stream->rt, &setup->devices);
    if (code != 0)
        return uva__stream_fail(stream, code,
                                "transfer: no thread or memory to copy with");
    code = transfer_check_stream(stream, setup);
    if (code == 0)
        code = uva__stream_wrap(stream, transfer_make, setup);
    uva__devices_release(setup->devices);
    if (code == 0)
        stream->device_data = setup->target.device_type != ARROW_DEVICE_CPU;
    return code;
}

int uva_stream_transfer(struct uva_stream *stream,
                        const struct uva_transfer *options)
{
    const struct uva_transfer none = {0};
    struct setup setup = {0};
    int code = uva__stream_building(stream);

    if (options == NULL)
        options = &none;
    if (!uva__memory_is_clear(options->reserved, 2))
        return code != 0 ? code /* no member of it can be trusted */
                         : uva__stream_fail(stream, EINVAL,
                                            "uva_transfer: reserved members "
                                            "must be NULL; clear the struct "
                                            "before filling it in");
    if (code == 0)
        code = transfer_check(stream, options, &setup);
    if (code == 0)
        code = transfer_take_allocator(stream, options->allocator, &setup);
    if (setup.target.allocator == NULL)
        transfer_refuse(options->allocator);
    if (code == 0)
        code = transfer_add(stream, &setup);
    uva__copy_allocator_release(setup.target.allocator);
    return code;
}
