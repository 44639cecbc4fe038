/* SPDX-License-Identifier: Apache-2.0 */
/* uva_array_record(): gives an array of the user an event of ours.
 *
 * Happy path:  the event is recorded on the user's stream and put into the
 *              array -> the array's release calls the user's, then has the
 *              device thread free the event.
 *
 * What can fail: the recording; then the array is unchanged. */
#include <errno.h>
#include <stdlib.h>

#include "device/driver_gate.h"
#include "loop/loop.h"
#include "stream/runtime_devices.h"
#include "uvarrow/device.h"

/* The array's private_data. It is from malloc(), as it may outlive every
 * runtime. */
struct record {
    struct uva__devices *devices; /* uses */
    struct uva__backend *backend; /* borrows: its row there */
    void *event;                  /* owns, through ops->event_free */
    void (*release)(struct ArrowArray *array); /* the user's */
    void *private_data;                        /* the user's */
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

static int record_inside(struct record *record, struct ArrowDeviceArray *array,
                         void *device_stream, struct uva_error *error)
{
    const struct uva_device_event device = {array->device_type,
                                            array->device_id, NULL};
    int code = uva__devices_load(record->devices, array->device_type, error);

    if (code != 0)
        return code;
    record->backend = uva__devices_backend(record->devices, array->device_type);
    if (record->backend->ops->record == NULL)
        return uva_error_set(error, ENOTSUP,
                             "%s: events cannot be recorded; finish the work, "
                             "and leave sync_event NULL",
                             record->backend->ops->name);
    return uva__backend_record(record->backend, &device, device_stream,
                               &record->event, error);
}

static int record_make(struct record *record, struct ArrowDeviceArray *array,
                       void *device_stream, struct uva_error *error)
{
    int code;

    if (!uva__driver_gate_enter())
        return uva__driver_gate_refuse(error);
    code = record_inside(record, array, device_stream, error);
    uva__driver_gate_leave();
    return code;
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

/* A table's functions always get a struct for their error. */
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
