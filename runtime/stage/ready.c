/* SPDX-License-Identifier: Apache-2.0 */
/* The ready stage: waits for each batch's event, in order, without blocking the
 * loop or any other thread; or has a device stream of the consumer wait for it.
 *
 * Clauses: EV-01, EV-04. */
#include <errno.h>

#include "base/memory.h"
#include "stage/ordered_waits.h"
#include "stream/stream_impl.h"
#include "stream/window.h"
#include "uvarrow/stages.h"

struct ready {
    struct uva__ordered_waits waits; /* first */
    struct uva_ready options;        /* with the window's defaults filled in */
};

static struct ready *ready_of(struct uva__ordered_waits *waits)
{
    return uva__container_of(waits, struct ready, waits);
}

/* ---- batches ------------------------------------------------------------ */

/* With a fast device the event is often complete already. */
static void ready_watch(struct ready *r, struct uva__pending_batch *wait,
                        const struct uva_device_event *event)
{
    struct uva_error error;
    int code;

    if (r->options.wait == UVA_WAIT_STREAM) {
        uva__pending_batch_chain(&r->waits, wait, event,
                                 r->options.device_stream);
        return;
    }
    code = uva__event_wait_peek(r->waits.devices, event, &error);
    if (code == EAGAIN)
        uva__pending_batch_watch(&r->waits, wait, event);
    else if (code == 0)
        uva__pending_batch_array(wait)->sync_event = NULL;
    else
        uva__pending_batch_fail(&r->waits, wait, code, &error);
}

static void ready_begin(struct uva__ordered_waits *waits,
                        struct uva__pending_batch *wait)
{
    const struct uva_device_event event = uva__pending_batch_event(wait);
    struct ready *r = ready_of(waits);
    struct uva_error error;

    if (r->options.wait == UVA_WAIT_NONE)
        return;
    switch (uva__devices_classify(waits->devices, event.device_type,
                                  event.sync_event, &error)) {
    case UVA__EVENT_NONE:
        uva__pending_batch_array(wait)->sync_event = NULL;
        break;
    case UVA__EVENT_WAIT:
        ready_watch(r, wait, &event);
        break;
    case UVA__EVENT_UNKNOWN:
        uva__pending_batch_fail(waits, wait, error.code, &error);
        break;
    }
}

static void ready_over(struct uva__ordered_waits *waits,
                       struct uva__pending_batch *wait,
                       const struct uva_error *error)
{
    if (error->code != 0)
        uva__pending_batch_fail(waits, wait, error->code, error);
    else if (ready_of(waits)->options.wait == UVA_WAIT_HOST)
        uva__pending_batch_array(wait)->sync_event = NULL;
}

/* ---- life --------------------------------------------------------------- */

static void ready_free(struct uva__stage *stage,
                       const struct uva_allocator *allocator)
{
    struct ready *r = ready_of(
        uva__container_of(stage, struct uva__ordered_waits, flight.stage));

    uva__ordered_waits_fini(&r->waits, allocator);
    uva__memory_free(allocator, r, sizeof(*r));
}

/* The arguments of ready_make(). */
struct setup {
    struct uva_ready options;     /* complete */
    struct uva__devices *devices; /* borrows */
};

static struct uva__source *ready_make(struct uva__producer *above,
                                      const void *given)
{
    static const struct uva__ordered_waits_ops ordered_waits_ops = {ready_begin,
                                                                    ready_over};
    static const struct uva__stage_ops ops = {
        .source = {.name = "ready",
                   .start = uva__stage_start,
                   .pull = uva__ordered_waits_pull,
                   .take = uva__flight_take,
                   .stop = uva__ordered_waits_stop,
                   .leave = uva__stage_leave,
                   .need = uva__stage_need,
                   .above = uva__stage_above},
        .task = uva__ordered_waits_task,
        .free = ready_free,
    };
    const struct setup *setup = given;
    struct ready *r = uva__memory_new(&above->rt->allocator, sizeof(*r));

    if (r == NULL)
        return NULL;
    r->options = setup->options;
    r->waits.timeout_ms = setup->options.timeout_ms;
    uva__ordered_waits_init(&r->waits, &ops, &ordered_waits_ops, above,
                            &setup->options.window, setup->devices);
    r->waits.flight.stage.source.uses_stream =
        r->options.wait == UVA_WAIT_STREAM;
    return &r->waits.flight.stage.source;
}

static int ready_check(struct uva_stream *stream,
                       const struct uva_ready *options, struct uva_ready *out)
{
    *out = *options;
    if (!uva__memory_is_clear(options->reserved, 4))
        return uva__stream_fail(
            stream, EINVAL,
            "uva_ready: reserved members must be NULL; clear "
            "the struct before filling it in");
    if (options->wait < UVA_WAIT_HOST || options->wait > UVA_WAIT_NONE ||
        options->timeout_ms < 0 ||
        uva__window_complete(&options->window, &out->window) != 0)
        return uva__stream_fail(stream, EINVAL,
                                "uva_ready: an unknown `wait`, or a negative "
                                "timeout or window, or a reserved member of "
                                "the window that is not NULL");
    if (options->wait != UVA_WAIT_STREAM && options->device_stream != NULL)
        return uva__stream_fail(stream, EINVAL,
                                "uva_ready: `device_stream` goes with "
                                "UVA_WAIT_STREAM alone");
    return 0;
}

/* Adds a parallel stage if extraction may be expensive. */
static int ready_add_workers(struct uva_stream *stream,
                             const struct uva_ready *options)
{
    if (!stream->tail->expensive)
        return 0;
    return uva_stream_parallel(
        stream, &(struct uva_parallel){.window = options->window});
}

/* A default stream is that of the context which is current here. */
static int ready_check_stream(struct uva_stream *stream,
                              const struct setup *setup)
{
    struct uva_error why = {0};
    int code = 0;

    if (setup->options.wait == UVA_WAIT_STREAM)
        code = uva__devices_check_stream(setup->devices,
                                         setup->options.device_stream, &why);
    return code == 0 ? 0 : uva__stream_fail(stream, code, "%s", why.message);
}

int uva_stream_ready(struct uva_stream *stream, const struct uva_ready *options)
{
    const struct uva_ready none = {0};
    struct setup setup;
    int code = uva__stream_building(stream);

    if (code == 0)
        code = ready_check(stream, options != NULL ? options : &none,
                           &setup.options);
    if (code == 0)
        code = ready_add_workers(stream, &setup.options);
    if (code != 0)
        return code;
    code = uva__rt_devices_thread(stream->rt, &setup.devices);
    if (code != 0)
        return uva__stream_fail(stream, code,
                                "ready: no thread or memory to wait with");
    code = ready_check_stream(stream, &setup);
    if (code == 0)
        code = uva__stream_wrap(stream, ready_make, &setup);
    stream->device_data = code == 0;
    uva__devices_release(setup.devices);
    return code;
}
