/* SPDX-License-Identifier: Apache-2.0 */
/* Releases an array once the work that reads it is complete.
 *
 * Happy path:  the service records an event on the user's stream, and begins a
 *              watch of it -> over: the service releases the array and frees
 * the event.
 *
 * What can fail: the recording: then the array is kept until the service ends,
 *              and the log says so. Without memory the caller waits. */
#include <errno.h>
#include <stdlib.h>

#include "stream/fence.h"
#include "uv/loop.h"
#include "uvarrow/arrow.h"
#include "uvarrow/device.h"

struct after {
    struct uva__kept kept;        /* first: the array */
    struct uva__devices *devices; /* counts, and uses */
    struct uva__backend *backend; /* borrows: its row there */
    void *device_stream;          /* borrows, until recorded */
    void *event;                  /* owns, through ops->event_free */
    struct uva_watch *watch;      /* counts */
    struct uva__errand errand;    /* records; when over, releases */
    bool waited;                  /* not from malloc(): somebody waits */
    struct uva__signal done;      /* raised for who waits; the last touch */
};

/* ---- the end ------------------------------------------------------------ */

/* The service ends before this returns, if nobody else uses it. */
static void after_forget(struct after *after, bool kept)
{
    struct uva__devices *devices = after->devices;

    if (after->waited)
        uva__signal_raise(&after->done);
    else if (!kept)
        free(after);
    uva__devices_quit(devices);
}

static void after_release(struct uva__errand *errand)
{
    struct after *after = uva__container_of(errand, struct after, errand);
    const struct uva_device_ops *ops = after->backend->ops;

    uva__watch_release(after->watch);
    uva_array_release(&after->kept.array);
    if (ops->event_free != NULL)
        ops->event_free(after->backend->state, after->event);
    after_forget(after, false);
}

/* The service is in use, so it takes errands. */
static void after_send(struct after *after,
                       void (*run)(struct uva__errand *errand))
{
    after->errand.run = run;
    if (!uva__service_send(&after->devices->service, &after->errand))
        abort();
}

/* Any thread, a vendor's too. */
static void after_over(struct uva_watch *watch)
{
    struct after *after = watch->client;

    after_send(after, after_release);
}

/* Nobody can tell when the work is complete. */
static void after_keep(struct after *after)
{
    if (after->waited) {
        uva_array_release(&after->kept.array);
        after_forget(after, false);
        return;
    }
    uva__devices_keep(after->devices, &after->kept);
    after_forget(after, true);
}

/* ---- the beginning ------------------------------------------------------ */

static int after_record(struct after *after, struct uva_error *error)
{
    const struct ArrowDeviceArray *array = &after->kept.array;
    struct uva_device_event event = {array->device_type, array->device_id,
                                     NULL};
    const struct uva_device_ops *ops = after->backend->ops;
    int code = uva__backend_load(after->backend, error);

    if (code != 0)
        return code;
    if (ops->record == NULL)
        return ENOTSUP;
    code = ops->record(after->backend->state, &event, after->device_stream,
                       &after->event, error);
    if (code != 0)
        return code;
    event.sync_event = after->event;
    code = uva__watch_new(after->devices, &event, after_over, after,
                          &after->watch);
    if (code != 0 && ops->event_free != NULL)
        ops->event_free(after->backend->state, after->event);
    return code;
}

static void after_run(struct uva__errand *errand)
{
    struct after *after = uva__container_of(errand, struct after, errand);
    struct uva_error error = {0};

    if (after_record(after, &error) == 0)
        uva__watch_begin(after->watch);
    else
        after_keep(after);
}

/* Whether there is work to wait for, and somebody to ask. */
static bool after_prepare(struct after *after, struct uva__hub *hub,
                          struct ArrowDeviceArray *array, void *device_stream)
{
    const ArrowDeviceType type = array->device_type;

    if (hub == NULL || type == ARROW_DEVICE_CPU ||
        uva__fence_service(hub, &after->devices) != 0)
        return false;
    after->backend = uva__devices_meet(after->devices, type);
    if (after->backend == NULL) {
        uva__devices_release(after->devices);
        return false;
    }
    uva__devices_use(after->devices);
    uva__devices_release(after->devices);
    if (after->backend->ops->record == NULL)
        uva__hub_log(hub, UVA_LOG_WARN, NULL, "EV-17",
                     "uva_array_release_after: this device type cannot record "
                     "events; the array is kept until the workers end");
    after->device_stream = device_stream;
    uva_array_move(array, &after->kept.array);
    return true;
}

static void after_wait(struct uva__hub *hub, struct ArrowDeviceArray *array,
                       void *device_stream)
{
    struct after here = {.waited = true};
    const uint32_t seen = uva__signal_now(&here.done);

    if (!after_prepare(&here, hub, array, device_stream)) {
        uva_array_release(array);
        return;
    }
    after_send(&here, after_run);
    while (uva__signal_now(&here.done) == seen)
        (void)uva__signal_wait(&here.done, seen, -1);
}

void uva_array_release_after(struct uva_runtime *runtime,
                             struct ArrowDeviceArray *array,
                             void *device_stream)
{
    struct uva__hub *hub = uva__loop_hub(runtime);
    struct after *after;

    if (array == NULL || array->array.release == NULL)
        return;
    after = calloc(1, sizeof(*after));
    if (after == NULL) {
        after_wait(hub, array, device_stream);
    } else if (after_prepare(after, hub, array, device_stream)) {
        after_send(after, after_run);
    } else {
        uva_array_release(array);
        free(after);
    }
}
