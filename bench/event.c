/* SPDX-License-Identifier: Apache-2.0 */
/* Arming and completing meet in one atomic: the second of the two completes the
 * watch. */
#include "event.h"

#include <errno.h>

#include "suite.h"

/* ---- the table ---------------------------------------------------------- */

static int event_load(void *ctx, const char *path, void **state,
                      struct uva_error *error)
{
    (void)path;
    (void)error;
    *state = ctx;
    return 0;
}

static int event_query(void *state, const struct uva_device_event *of,
                       struct uva_error *error)
{
    struct event_counts *counts = state;
    struct event *event = of->sync_event;

    (void)error;
    if (atomic_load_explicit(&event->is, memory_order_acquire) == event)
        return 0;
    atomic_fetch_add_explicit(&counts->queries, 1, memory_order_relaxed);
    return EAGAIN;
}

static int event_arm(void *state, const struct uva_device_event *of,
                     struct uva_watch *watch, struct uva_error *error)
{
    struct event_counts *counts = state;
    struct event *event = of->sync_event;
    void *pending = NULL;

    (void)error;
    if (!atomic_compare_exchange_strong(&event->is, &pending, watch))
        return 0;
    atomic_fetch_add(&counts->arms, 1);
    return EINPROGRESS;
}

void event_register(struct uva_runtime *runtime, bool by_callback,
                    struct event_counts *counts)
{
    static const struct uva_device_ops polled = {
        .version = UVA_DEVICE_OPS_VERSION,
        .query_on_loop = true,
        .host_readable = true,
        .name = "bench",
        .load = event_load,
        .query = event_query,
    };
    static const struct uva_device_ops reported = {
        .version = UVA_DEVICE_OPS_VERSION,
        .query_on_loop = true,
        .host_readable = true,
        .name = "bench",
        .load = event_load,
        .query = event_query,
        .arm = event_arm,
    };
    struct uva_device_info info;
    struct uva_error error;

    bench_check(uva_device_register(runtime, ARROW_DEVICE_EXT_DEV,
                                    by_callback ? &reported : &polled, counts,
                                    &error) == 0,
                error.message);
    bench_check(uva_device_get_info(runtime, ARROW_DEVICE_EXT_DEV, &info) ==
                        0 &&
                    info.available,
                "the device of the bench");
}

void event_end(struct event *event)
{
    struct uva_watch *watch = atomic_exchange(&event->is, event);

    if (watch != NULL)
        uva_watch_notify(watch, 0, 0, NULL);
}

/* ---- the stream --------------------------------------------------------- */

static int event_get_next(struct ArrowDeviceArrayStream *self,
                          struct ArrowDeviceArray *out)
{
    struct event_input *input = self->private_data;

    if (input->input.next == input->input.count) {
        out->array.release = NULL;
        return 0;
    }
    batch_fill(out, input->input.next);
    out->device_type = ARROW_DEVICE_EXT_DEV;
    out->sync_event = &input->events[input->input.next++ & input->mask];
    return 0;
}

void event_input_init(struct event_input *input, int64_t count,
                      struct event *events, int64_t mask)
{
    input_init(&input->input, count);
    input->input.abi.device_type = ARROW_DEVICE_EXT_DEV;
    input->input.abi.get_next = event_get_next;
    input->events = events;
    input->mask = mask;
}
