/* SPDX-License-Identifier: Apache-2.0 */
/* uva_array_record() and uva_array_release_after(): an event is recorded on a
 * stream of the program. It goes with the array, or the array is released once
 * it is complete. stream/event_work.c has the rest.
 *
 * Happy path:  record: the event is put into the array -> the array's release
 *              calls the program's, then has the device thread free the event.
 *              release_after: the device thread records, and begins to wait
 *              -> the event is complete: it releases the array and frees the
 *              event. A default stream depends on the thread or context: there
 *              the caller's thread records.
 *
 * Failures:    the recording. Then record leaves the array unchanged;
 *              release_after logs it, and the array is released when the
 *              workers end. Without memory or a device thread release_after
 *              never releases the array, since a device may still read it. */
#include <errno.h>

#include "loop/loop.h"
#include "stream/event_work.h"
#include "uvarrow/arrow.h"
#include "uvarrow/device.h"

/* ---- an event that goes with the array ---------------------------------- */

/* Takes the use of the devices. A table's functions always get a struct for
 * their error. */
static int array_record(struct uva__devices *devices,
                        struct ArrowDeviceArray *array, void *device_stream,
                        struct uva_error *error)
{
    struct uva__event_work *work;
    /* a type that is unknown here gets its error */
    int code = uva__devices_load(devices, array->device_type, error);

    if (code != 0) {
        uva__devices_quit(devices);
        return code;
    }
    code = uva__event_work_new(NULL, devices, array, &work, error);
    if (code != 0)
        return code;
    code = uva__event_work_record(work, device_stream, error);
    if (code == 0)
        uva__event_work_give(work, array);
    else
        uva__event_work_free(work);
    return code;
}

int uva_array_record(struct uva_runtime *runtime,
                     struct ArrowDeviceArray *array, void *device_stream,
                     struct uva_error *error)
{
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct uva__devices *devices;
    struct uva_error why = {0};
    int code;

    if (rt == NULL || array == NULL || array->array.release == NULL)
        return uva_error_set(error, EINVAL,
                             "uva_array_record: no runtime, or no live array");
    if (array->sync_event != NULL)
        return uva_error_set(error, EBUSY,
                             "uva_array_record: the array has an event");
    code = uva__rt_devices_use(rt, &devices);
    if (code != 0)
        return uva_error_set(error, code, "the runtime cannot be used");
    uva__rt_note_device(rt, NULL, array->device_type);
    code = array_record(devices, array, device_stream, &why);
    if (code != 0 && error != NULL)
        *error = why;
    return code;
}

/* ---- a release after the work ------------------------------------------- */

static void after_log(struct uva__rt *rt, const char *why, const char *what)
{
    uva__rt_log(rt, UVA_LOG_WARN, NULL, "EV-17",
                "uva_array_release_after: %s; the array is %s", why, what);
}

/* On the thread that records. */
static void after_run(struct uva__device_command *command)
{
    struct uva__event_work *work =
        uva__container_of(command, struct uva__event_work, command);
    struct uva_error error = {0};
    int code = uva__event_work_prepare(work, &error);

    if (code == 0)
        code = uva__event_work_record(work, work->device_stream, &error);
    if (code == 0) {
        uva__event_work_await(work);
        return;
    }
    after_log(work->rt, error.message, "kept until the workers end");
    uva__event_work_keep(work, NULL);
}

/* Returns whether the stream differs on the device thread, which may also be in
 * a call that blocks. */
static bool after_is_default(const struct uva__event_work *work)
{
    const struct uva__backend *backend = work->backend;

    return backend != NULL && backend->vendor_info != NULL &&
           backend->vendor_info->default_streams &&
           uva__stream_is_default(work->device_stream);
}

/* Begins a job and starts the device thread. */
static int after_new(struct uva__rt *rt, const struct ArrowDeviceArray *array,
                     struct uva__event_work **out)
{
    struct uva__devices *devices;
    int code;

    if (!uva__rt_job_begin(rt))
        return ESHUTDOWN;
    code = uva__rt_devices_use(rt, &devices);
    if (code == 0) {
        code = uva__device_thread_start(&devices->device_thread);
        if (code == 0)
            code = uva__event_work_new(rt, devices, array, out, NULL);
        else
            uva__devices_quit(devices);
    }
    if (code != 0) {
        after_log(rt, "no memory or thread to wait with", "never released");
        uva__rt_job_end(rt);
    }
    return code;
}

void uva_array_release_after(struct uva_runtime *runtime,
                             struct ArrowDeviceArray *array,
                             void *device_stream)
{
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct uva__event_work *work;
    struct ArrowDeviceArray taken;

    if (array == NULL || array->array.release == NULL)
        return;
    if (array->device_type == ARROW_DEVICE_CPU) {
        uva_array_release(array);
        return;
    }
    uva_array_move(array, &taken);
    if (rt == NULL || after_new(rt, &taken, &work) != 0)
        return; /* the array is lost */
    uva__rt_note_device(rt, NULL, taken.device_type);
    uva_array_move(&taken, &work->kept);
    work->device_stream = device_stream;
    work->command.run = after_run;
    if (after_is_default(work))
        after_run(&work->command);
    else
        uva__devices_send(work->devices, &work->command);
}
