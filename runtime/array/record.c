/* SPDX-License-Identifier: Apache-2.0 */
/* uva_array_record() and uva_array_release_after(): an event is recorded on a
 * stream of the program. It goes with the array, or the array is released once
 * it is complete.
 *
 * Happy path:  record: the event is put into the array -> the array's release
 *              calls the program's, then has the device thread free the event.
 *              release_after: the device thread records, and begins to wait
 *              -> the event is complete: it releases the array and frees the
 *              event. On a default stream, which is another one for each thread
 *              or context, the caller's thread records.
 *
 * Failures:    the recording. Then record leaves the array unchanged;
 *              release_after logs it, and the array is released when the
 *              workers end. Without memory or a device thread release_after
 *              never releases the array, since a device may still read it.
 *
 * The structs are from malloc(), as they may outlive every runtime. */
#include <errno.h>
#include <stdlib.h>

#include "device/driver_gate.h"
#include "loop/loop.h"
#include "stream/runtime_devices.h"
#include "uvarrow/arrow.h"
#include "uvarrow/device.h"

/* Loads the device's library, and records an event on `device_stream`. A
 * table's functions always get a struct for their error. */
static int event_record(struct uva__backend *backend,
                        const struct ArrowDeviceArray *array,
                        void *device_stream, void **event,
                        struct uva_error *error)
{
    const struct uva_device_event device = {array->device_type,
                                            array->device_id, NULL};
    int code;

    if (!uva__driver_gate_enter())
        return uva__driver_gate_refuse(error);
    code = uva__backend_load(backend, error);
    if (code == 0 && backend->ops->record == NULL)
        code = uva_error_set(error, ENOTSUP,
                             "%s: events cannot be recorded; finish the work "
                             "first",
                             backend->ops->name);
    if (code == 0)
        code =
            uva__backend_record(backend, &device, device_stream, event, error);
    uva__driver_gate_leave();
    return code;
}

/* ---- an event that goes with the array ---------------------------------- */

/* The array's private_data. */
struct record {
    struct uva__devices *devices; /* uses */
    struct uva__backend *backend; /* borrows: its row there */
    void *event;                  /* owns, through ops->event_free */
    void (*release)(struct ArrowArray *array); /* the program's */
    void *private_data;                        /* the program's */
    struct uva__device_command command;
};

static void record_free(struct record *record)
{
    struct uva__devices *devices = record->devices;

    free(record);
    uva__devices_quit(devices);
}

/* On the device thread, as vendors' libraries take locks for this. */
static void record_dispose(struct uva__device_command *command)
{
    struct record *record = uva__container_of(command, struct record, command);

    uva__backend_event_free(record->backend, record->event);
    record_free(record);
}

/* On any thread. The struct may have been moved meanwhile. */
static void record_release(struct ArrowArray *array)
{
    struct record *record = array->private_data;

    array->release = record->release;
    array->private_data = record->private_data;
    array->release(array);
    uva__devices_send(record->devices, &record->command);
}

static int record_make(struct record *record, struct ArrowDeviceArray *array,
                       void *device_stream, struct uva_error *error)
{
    /* a type that is unknown here gets its error */
    int code = uva__devices_load(record->devices, array->device_type, error);

    if (code != 0)
        return code;
    record->backend = uva__devices_backend(record->devices, array->device_type);
    return event_record(record->backend, array, device_stream, &record->event,
                        error);
}

static void record_wrap(struct record *record, struct ArrowDeviceArray *array)
{
    record->command.run = record_dispose;
    record->release = array->array.release;
    record->private_data = array->array.private_data;
    array->array.release = record_release;
    array->array.private_data = record;
    array->sync_event = record->event;
}

int uva_array_record(struct uva_runtime *runtime,
                     struct ArrowDeviceArray *array, void *device_stream,
                     struct uva_error *error)
{
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct uva_error why = {0};
    struct record *record;
    int code;

    if (rt == NULL || array == NULL || array->array.release == NULL)
        return uva_error_set(error, EINVAL,
                             "uva_array_record: no runtime, or no live array");
    if (array->sync_event != NULL)
        return uva_error_set(error, EBUSY,
                             "uva_array_record: the array has an event");
    record = calloc(1, sizeof(*record));
    if (record == NULL)
        return uva_error_set(error, ENOMEM, "no memory for an event");
    code = uva__rt_devices_use(rt, &record->devices);
    if (code != 0) {
        free(record);
        return uva_error_set(error, code, "the runtime cannot be used");
    }
    uva__rt_note_device(rt, NULL, array->device_type);
    code = record_make(record, array, device_stream, &why);
    if (code == 0)
        record_wrap(record, array);
    else
        record_free(record);
    if (code != 0 && error != NULL)
        *error = why;
    return code;
}

/* ---- a release after the work ------------------------------------------- */

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
static void after_log(struct uva__rt *rt, const char *why, const char *what)
{
    if (!uva__rt_job_begin(rt))
        return;
    uva__rt_log(rt, UVA_LOG_WARN, NULL, "EV-17",
                "uva_array_release_after: %s; the array is %s", why, what);
    uva__rt_job_end(rt);
}

/* The work cannot be waited for, so the array is released when the workers end.
 */
static void after_defer(struct after *after, const struct uva_error *error)
{
    struct uva__devices *devices = after->devices;
    struct uva__rt *rt = after->rt;

    after_log(rt, error->message, "kept until the workers end");
    uva__deferred_releases_take(&devices->deferred_releases, &after->deferred);
    uva__devices_quit(devices);
    uva__rt_job_end(rt);
}

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

/* Returns whether the stream is another one on the device thread. */
static bool after_is_default(const struct after *after)
{
    const struct uva__backend *backend = after->backend;

    return backend != NULL && backend->vendor_info != NULL &&
           backend->vendor_info->default_streams &&
           uva__stream_is_default(after->device_stream);
}

static int after_record(struct after *after, struct uva_error *error)
{
    return event_record(after->backend, &after->deferred.array,
                        after->device_stream, &after->event, error);
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
        code = after_record(after, error);
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

    uva_array_move(array, &lost);
    if (rt != NULL)
        after_log(rt, "no memory or thread to wait with", "never released");
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
    if (after_is_default(after)) { /* the device thread may be in a call that
                                      blocks */
        after->recorded = true;
        after->why.code = after_record(after, &after->why);
    }
    after_send(after, after_run);
}
