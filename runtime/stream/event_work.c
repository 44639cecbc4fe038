/* SPDX-License-Identifier: Apache-2.0 */
/* The life of work that was queued on a device.
 *
 * Happy path:  new -> an event is recorded after the work, and may go with an
 *              array -> the event is complete: the device thread releases the
 *              kept array -> the consumer has released the array with the
 *              event: the device thread frees the event.
 *
 * Failures:    the recording: then both arrays are kept until the workers end.
 *              The event: its failure ends the wait as well.
 *
 * On cancel:   the work goes on. An array that is released early lasts until
 *              the event is complete. */
#include "stream/event_work.h"

#include <errno.h>
#include <stdlib.h>

#include "device/driver_gate.h"
#include "uvarrow/arrow.h"

/* ---- the end ------------------------------------------------------------ */

/* On the device thread, as a release may block, and vendors' libraries take
 * locks to free an event. */
static void event_work_end(struct uva__device_command *command)
{
    struct uva__event_work *work =
        uva__container_of(command, struct uva__event_work, end);
    struct uva__devices *devices = work->devices;

    uva__driver_gate_release(&work->result);
    uva__backend_event_free(work->backend, work->event);
    free(work);
    uva__devices_quit(devices);
}

static void event_work_drop(struct uva__event_work *work)
{
    if (uva__atomic64_sub(&work->refs, 1) == 1)
        uva__devices_send(work->devices, &work->end);
}

/* On the device thread: the event is complete. */
static void event_work_over_run(struct uva__device_command *command)
{
    struct uva__event_work *work =
        uva__container_of(command, struct uva__event_work, command);
    struct uva__rt *rt = work->rt;

    uva__event_wait_release(work->watch);
    uva__driver_gate_release(&work->kept);
    event_work_drop(work); /* its end is another command, after the job's */
    uva__rt_job_end(rt);
}

/* The callback of the wait; on any thread, also a vendor's. */
static void event_work_over(struct uva_watch *watch)
{
    struct uva__event_work *work = watch->client;

    work->command.run = event_work_over_run;
    uva__devices_send(work->devices, &work->command);
}

/* The release of the event's owner; on any thread. The struct may have been
 * moved meanwhile. */
static void owner_release(struct ArrowArray *array)
{
    struct uva__event_work *work = array->private_data;

    array->release = work->release;
    array->private_data = work->private_data;
    if (work->watch == NULL) {
        array->release(array);
    } else {
        work->result.array = *array;
        array->release = NULL;
    }
    event_work_drop(work);
}

/* ---- the beginning ------------------------------------------------------ */

int uva__event_work_new(struct uva__rt *rt, struct uva__devices *devices,
                        const struct ArrowDeviceArray *array,
                        struct uva__event_work **out, struct uva_error *error)
{
    struct uva__event_work *work = calloc(1, sizeof(*work));

    if (work == NULL) {
        uva__devices_quit(devices);
        return uva_error_set(error, ENOMEM, "no memory for an event");
    }
    work->rt = rt;
    work->devices = devices;
    work->backend = uva__devices_first_use(devices, array->device_type);
    work->device.device_type = array->device_type;
    work->device.device_id = array->device_id;
    work->end.run = event_work_end;
    *out = work;
    return 0;
}

void uva__event_work_free(struct uva__event_work *work)
{
    struct uva__devices *devices = work->devices;

    if (work->watch != NULL)
        uva__event_wait_release(work->watch);
    free(work);
    uva__devices_quit(devices);
}

int uva__event_work_prepare(struct uva__event_work *work,
                            struct uva_error *error)
{
    if (work->backend == NULL)
        return uva_error_set(error, ENOTSUP,
                             "nothing is known here of device type %d",
                             (int)work->device.device_type);
    if (uva__event_wait_new(work->devices, &work->device, event_work_over, work,
                            &work->watch) != 0)
        return uva_error_set(error, ENOMEM, "no memory to wait with");
    work->watch->poll_only = true;
    return 0;
}

static int event_work_record(struct uva__event_work *work, void *device_stream,
                             struct uva_error *error)
{
    int code = uva__backend_load(work->backend, error);

    if (code != 0)
        return code;
    if (work->backend->ops->record == NULL)
        return uva_error_set(error, ENOTSUP,
                             "%s: events cannot be recorded; finish the work "
                             "first",
                             work->backend->ops->name);
    return uva__backend_record(work->backend, &work->device, device_stream,
                               &work->event, error);
}

int uva__event_work_record(struct uva__event_work *work, void *device_stream,
                           struct uva_error *error)
{
    int code;

    if (!uva__driver_gate_enter())
        return uva__driver_gate_refuse(error);
    code = event_work_record(work, device_stream, error);
    uva__driver_gate_leave();
    return code;
}

void uva__event_work_give(struct uva__event_work *work,
                          struct ArrowDeviceArray *array)
{
    uva__atomic64_add(&work->refs, 1);
    work->release = array->array.release;
    work->private_data = array->array.private_data;
    array->array.release = owner_release;
    array->array.private_data = work;
    array->sync_event = work->event;
}

void uva__event_work_await(struct uva__event_work *work)
{
    uva__atomic64_add(&work->refs, 1);
    work->watch->event.sync_event = work->event;
    uva__event_wait_begin(work->watch);
}

/* ---- without an event --------------------------------------------------- */

/* The workers are gone. The caller frees the work. */
static void kept_release(struct ArrowArray *array)
{
    struct uva__event_work *work = array->private_data;

    array->release = NULL;
    uva__driver_gate_release(&work->kept);
    uva__driver_gate_release(&work->result);
}

static void event_work_keep_run(struct uva__device_command *command)
{
    struct uva__event_work *work =
        uva__container_of(command, struct uva__event_work, command);
    struct uva__devices *devices = work->devices;
    struct uva__rt *rt = work->rt;

    uva__deferred_releases_take(&devices->deferred_releases, &work->deferred);
    uva__devices_quit(devices);
    uva__rt_job_end(rt);
}

/* The job keeps the workers until then. */
void uva__event_work_keep(struct uva__event_work *work,
                          struct ArrowDeviceArray *array)
{
    if (array != NULL) {
        work->result.array = array->array;
        array->array.release = NULL;
    }
    if (work->watch != NULL)
        uva__event_wait_release(work->watch);
    work->deferred.array.array.release = kept_release;
    work->deferred.array.array.private_data = work;
    work->command.run = event_work_keep_run;
    uva__devices_send(work->devices, &work->command);
}
