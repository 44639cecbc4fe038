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
    struct uva_ready options;
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
    const bool chains = r->options.wait == UVA_WAIT_STREAM;
    int code = EAGAIN;

    if (!chains)
        code = uva__event_wait_peek(r->waits.devices, event, &error);
    if (code == 0) {
        uva__pending_batch_complete(wait);
    } else if (code != EAGAIN) {
        uva__pending_batch_fail(&r->waits, wait, code, &error);
    } else if (uva__pending_batch_prepare(&r->waits, wait, event)) {
        wait->watch->chains = chains;
        wait->watch->device_stream = r->options.device_stream;
        uva__event_wait_begin(wait->watch);
    }
}

static void ready_begin(struct uva__ordered_waits *waits,
                        struct uva__pending_batch *wait)
{
    const struct uva_device_event event = uva__pending_batch_event(wait);
    struct ready *r = ready_of(waits);
    enum uva__event_kind kind;

    if (r->options.wait == UVA_WAIT_NONE)
        return;
    kind = uva__pending_batch_classify(waits, wait);
    if (kind == UVA__EVENT_NONE)
        uva__pending_batch_complete(wait);
    else if (kind == UVA__EVENT_WAIT)
        ready_watch(r, wait, &event);
}

static void ready_over(struct uva__ordered_waits *waits,
                       struct uva__pending_batch *wait,
                       const struct uva_error *error)
{
    if (error->code != 0)
        uva__pending_batch_fail(waits, wait, error->code, error);
    else if (ready_of(waits)->options.wait == UVA_WAIT_HOST)
        uva__pending_batch_complete(wait);
}

/* ---- life --------------------------------------------------------------- */

static void ready_init(struct uva__stage *stage,
                       const struct uva__stage_setup *setup)
{
    static const struct uva__ordered_waits_ops ops = {ready_begin, ready_over};
    struct ready *r = ready_of(uva__ordered_waits_of(stage));

    uva__ordered_waits_init(&r->waits, &ops, setup);
    r->waits.timeout_ms = r->options.timeout_ms;
    stage->source.uses_stream = r->options.wait == UVA_WAIT_STREAM;
    setup->stream->device_data = true;
}

/* A default stream belongs to the context which is current here. */
static int ready_check(const struct uva__stage_setup *setup,
                       struct uva_error *error)
{
    const struct uva_ready *options = setup->options;

    if (options->wait == UVA_WAIT_STREAM)
        return uva__devices_check_stream(setup->devices, options->device_stream,
                                         error);
    return options->device_stream == NULL
               ? 0
               : uva_error_set(error, EINVAL,
                               "uva_ready: `device_stream` goes with "
                               "UVA_WAIT_STREAM alone");
}

int uva_stream_ready(struct uva_stream *stream, const struct uva_ready *options)
{
    static const struct uva__option_limit limits[] = {
        UVA__LIMIT(uva_ready, wait, UVA_WAIT_HOST, UVA_WAIT_NONE),
        UVA__LIMIT(uva_ready, timeout_ms, 0, INT64_MAX),
        {0}};
    static const struct uva__stage_kind kind = {
        .options = {UVA__OPTIONS(uva_ready), UVA__OPTIONS_WINDOW(uva_ready),
                    .limits = limits},
        .size = sizeof(struct ready),
        .copy = offsetof(struct ready, options),
        .needs = UVA__STAGE_CHEAP | UVA__STAGE_DEVICES,
        .check = ready_check,
        .init = ready_init,
        .source = {UVA__STAGE_RELAYS(uva__ordered_waits_stop), .name = "ready",
                   .pull = uva__ordered_waits_pull, .take = uva__stage_take},
        .task = uva__ordered_waits_task,
        .clear = uva__ordered_waits_clear,
        .free = uva__ordered_waits_free,
    };

    return uva__stage_add(stream, &kind, options);
}
