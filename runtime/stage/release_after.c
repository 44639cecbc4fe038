/* SPDX-License-Identifier: Apache-2.0 */
/* uva_array_release_after(): releases an array once the work that reads it is
 * complete.
 *
 * Happy path:  the device thread records an event on the user's stream, and
 *              begins to wait for it -> the event is complete: the device
 *              thread releases the array and frees the event. On a default
 *              stream, which is another one for each thread or context, the
 *              caller's thread records.
 *
 * What can fail: the recording: then the array is released when the workers
 *              end, and this is logged. Without memory or a device thread the
 *              array is never released, since a device may still read it. */
#include <errno.h>
#include <stdlib.h>

#include "device/driver_gate.h"
#include "loop/loop.h"
#include "stream/runtime_devices.h"
#include "uvarrow/arrow.h"
#include "uvarrow/device.h"

struct after {
    struct uva__deferred_release deferred; /* first: the array */
    struct uva__rt *rt; /* its job is counted until the array is released, or
                           kept: a close waits, and the log can be written to */
    struct uva__devices *devices; /* uses */
    struct uva__backend *backend; /* borrows: its row there; NULL: no table */
    void *device_stream;          /* borrows, until recorded */
    bool recorded;                /* the caller's thread has tried to record */
    struct uva_error why;         /* if that has failed, code 0: it has not */
    void *event;                  /* owns, through ops->event_free */
    struct uva_watch *watch;      /* counts */
    struct uva__device_command command; /* records; when over, releases */
};

/* ---- the end of the wait ------------------------------------------------- */

static void after_release(struct uva__device_command *command)
{
    struct after *after = uva__container_of(command, struct after, command);
    struct uva__devices *devices = after->devices;
    struct uva__rt *rt = after->rt;

    uva__event_wait_release(after->watch);
    uva__driver_gate_release(&after->deferred.array);
    uva__backend_event_free(after->backend, after->event);
    free(after);
    uva__rt_job_end(rt);
    uva__devices_quit(devices);
}

static void after_send(struct after *after,
                       void (*run)(struct uva__device_command *command))
{
    after->command.run = run;
    uva__devices_send(after->devices, &after->command);
}

/* The callback of the wait; on any thread, also a vendor's. */
static void after_over(struct uva_watch *watch)
{
    struct after *after = watch->client;

    after_send(after, after_release);
}

/* The job is counted, so that a close waits until this has been logged. */
static void after_log(struct uva__rt *rt, const char *what,
                      const struct uva_error *error)
{
    if (!uva__rt_job_begin(rt))
        return;
    uva__rt_log(rt, UVA_LOG_WARN, NULL, "EV-17",
                "uva_array_release_after: %s; the array is %s", error->message,
                what);
    uva__rt_job_end(rt);
}

/* The work cannot be waited for, so the array is released when the workers end.
 */
static void after_defer(struct after *after, const struct uva_error *error)
{
    struct uva__devices *devices = after->devices;
    struct uva__rt *rt = after->rt;

    after_log(rt, "kept until the workers end", error);
    uva__deferred_releases_take(&devices->deferred_releases, &after->deferred);
    uva__devices_quit(devices);
    uva__rt_job_end(rt);
}

/* ---- the beginning ------------------------------------------------------ */

static int after_watch(struct after *after, struct uva_error *error)
{
    const struct ArrowDeviceArray *array = &after->deferred.array;
    const struct uva_device_event event = {array->device_type, array->device_id,
                                           after->event};

    if (uva__event_wait_new(after->devices, &event, after_over, after,
                            &after->watch) == 0) {
        after->watch->poll_only = true;
        return 0;
    }
    uva__backend_event_free(after->backend, after->event);
    return uva_error_set(error, ENOMEM, "no memory to wait with");
}

static int after_record(struct after *after, struct uva_error *error)
{
    const struct ArrowDeviceArray *array = &after->deferred.array;
    const struct uva_device_event device = {array->device_type,
                                            array->device_id, NULL};
    const struct uva__backend *backend = after->backend;

    if (backend->ops->record == NULL)
        return uva_error_set(error, ENOTSUP, "%s: events cannot be recorded",
                             backend->ops->name);
    return uva__backend_record(backend, &device, after->device_stream,
                               &after->event, error);
}

/* Returns whether the stream is another one on the device thread. */
static bool after_is_default(const struct after *after)
{
    const struct uva__backend *backend = after->backend;

    return backend != NULL && backend->vendor_info != NULL &&
           backend->vendor_info->default_streams &&
           uva__stream_is_default(after->device_stream);
}

static int after_load_and_record(struct after *after, struct uva_error *error)
{
    int code;

    if (!uva__driver_gate_enter())
        return uva__driver_gate_refuse(error);
    code = uva__backend_load(after->backend, error);
    if (code == 0)
        code = after_record(after, error);
    uva__driver_gate_leave();
    return code;
}

/* On the caller's thread: the device thread may be in a call that blocks. */
static void after_record_now(struct after *after)
{
    after->recorded = true;
    after->why.code = after_load_and_record(after, &after->why);
}

/* Does the same on the device thread, unless it was done. */
static int after_begin(struct after *after, struct uva_error *error)
{
    int code;

    if (after->backend == NULL)
        return uva_error_set(error, ENOTSUP,
                             "nothing is known here of device type %d",
                             (int)after->deferred.array.device_type);
    if (after->recorded) {
        *error = after->why;
        code = error->code;
    } else {
        code = after_load_and_record(after, error);
    }
    return code == 0 ? after_watch(after, error) : code;
}

static void after_run(struct uva__device_command *command)
{
    struct after *after = uva__container_of(command, struct after, command);
    struct uva_error error = {0};

    if (after_begin(after, &error) != 0) {
        after_defer(after, &error);
        return;
    }
    uva__event_wait_begin(after->watch);
}

/* Takes a use of the devices and starts the device thread, and begins a job. */
static int after_prepare(struct after *after, struct uva__rt *rt)
{
    int code = uva__rt_devices_use(rt, &after->devices);

    if (code != 0)
        return code;
    code = uva__device_thread_start(&after->devices->device_thread);
    if (code == 0 && !uva__rt_job_begin(rt))
        code = ESHUTDOWN;
    if (code != 0)
        uva__devices_quit(after->devices);
    after->rt = rt;
    return code;
}

static struct after *after_new(struct uva__rt *rt)
{
    struct after *after = rt != NULL ? calloc(1, sizeof(*after)) : NULL;

    if (after != NULL && after_prepare(after, rt) == 0)
        return after;
    free(after);
    return NULL;
}

/* Takes the array and never releases it. */
static void array_abandon(struct uva__rt *rt, struct ArrowDeviceArray *array)
{
    struct ArrowDeviceArray lost;
    struct uva_error error;

    (void)uva_error_set(&error, ENOMEM, "no memory or thread to wait with");
    uva_array_move(array, &lost);
    if (rt != NULL)
        after_log(rt, "never released", &error);
}

void uva_array_release_after(struct uva_runtime *runtime,
                             struct ArrowDeviceArray *array,
                             void *device_stream)
{
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct after *after;

    if (array == NULL || array->array.release == NULL)
        return;
    if (array->device_type == ARROW_DEVICE_CPU) {
        uva_array_release(array);
        return;
    }
    after = after_new(rt);
    if (after == NULL) {
        array_abandon(rt, array);
        return;
    }
    uva__rt_note_device(rt, NULL, array->device_type);
    after->backend = uva__devices_first_use(after->devices, array->device_type);
    after->device_stream = device_stream;
    uva_array_move(array, &after->deferred.array);
    if (after_is_default(after))
        after_record_now(after);
    after_send(after, after_run);
}
