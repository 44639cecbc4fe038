/* SPDX-License-Identifier: Apache-2.0 */
/* The life of work that was queued on a device.
 *
 * Happy path:  new -> the user's function queues the work -> an event is
 *              recorded after it, and goes with the output -> the event is
 *              complete: the device thread releases the input -> the consumer
 *              has released the output: the device thread calls the user's
 *              release, and frees the event.
 *
 * Failures:    the recording. Then it is not known when the device is done with
 *              the arrays, and both are kept until the workers end. The event:
 *              it ends the wait as well.
 *
 * On cancel:   the work goes on. The output is released early, and its memory
 *              lasts until the event is complete. */
#include "stage/queued_work.h"

#include <errno.h>
#include <stdlib.h>

#include "base/unreachable.h"
#include "device/driver_gate.h"
#include "uvarrow/arrow.h"

/* From malloc(), as it may outlive every runtime. */
struct uva__queued_work {
    struct uva__deferred_release deferred; /* first: if it cannot be recorded */
    struct uva__rt *rt; /* its job is counted until the event is complete, or
                           the arrays are kept: a close waits */
    struct uva__devices *devices;  /* uses */
    struct uva__backend *backend;  /* borrows: its row there */
    struct uva_watch *watch;       /* counts: the wait for the event */
    void *event;                   /* owns, through ops->event_free */
    struct uva__atomic64 refs;     /* of the wait, and of the output */
    struct ArrowDeviceArray input; /* owns, until the event is complete */
    struct ArrowArray output; /* owns: the array that the consumer has released,
                                 or that cannot be waited for */
    void (*release)(struct ArrowArray *array); /* of the output: the user's */
    void *private_data;                        /* so, too */
    struct uva__device_command command; /* of the wait; or keeps the arrays */
    struct uva__device_command end;     /* frees it */
};

/* ---- the end ------------------------------------------------------------ */

/* Releases a user's array, unless the process exits. */
static void array_release(struct ArrowArray *array)
{
    if (array->release == NULL || !uva__driver_gate_enter())
        return;
    array->release(array);
    uva__driver_gate_leave();
}

/* On the device thread: the user's release may block. */
static void queued_work_end(struct uva__device_command *command)
{
    struct uva__queued_work *work =
        uva__container_of(command, struct uva__queued_work, end);
    struct uva__devices *devices = work->devices;

    array_release(&work->output);
    uva__backend_event_free(work->backend, work->event);
    free(work);
    uva__devices_quit(devices);
}

static void queued_work_drop(struct uva__queued_work *work)
{
    if (uva__atomic64_sub(&work->refs, 1) == 1)
        uva__devices_send(work->devices, &work->end);
}

/* On the device thread: the work is complete. */
static void queued_work_over_run(struct uva__device_command *command)
{
    struct uva__queued_work *work =
        uva__container_of(command, struct uva__queued_work, command);

    struct uva__rt *rt = work->rt;

    uva__event_wait_release(work->watch);
    uva__driver_gate_release(&work->input);
    queued_work_drop(work);
    uva__rt_job_end(rt);
}

/* The callback of the wait; on any thread, also a vendor's. */
static void queued_work_over(struct uva_watch *watch)
{
    struct uva__queued_work *work = watch->client;

    uva__devices_send(work->devices, &work->command);
}

/* The release of the output; on any thread. The struct may have been moved
 * meanwhile. */
static void output_release(struct ArrowArray *array)
{
    struct uva__queued_work *work = array->private_data;

    work->output = *array;
    work->output.release = work->release;
    work->output.private_data = work->private_data;
    array->release = NULL;
    queued_work_drop(work);
}

/* ---- without an event --------------------------------------------------- */

/* Releases the kept arrays: the workers are gone. It is freed by its caller. */
static void kept_release(struct ArrowArray *array)
{
    struct uva__queued_work *work = array->private_data;

    array->release = NULL;
    uva__driver_gate_release(&work->input);
    array_release(&work->output);
}

static void queued_work_keep_run(struct uva__device_command *command)
{
    struct uva__queued_work *work =
        uva__container_of(command, struct uva__queued_work, command);
    struct uva__devices *devices = work->devices;
    struct uva__rt *rt = work->rt;

    uva__deferred_releases_take(&devices->deferred_releases, &work->deferred);
    uva__devices_quit(devices);
    uva__rt_job_end(rt);
}

/* The job keeps the workers until then. */
static void queued_work_keep(struct uva__queued_work *work,
                             struct ArrowDeviceArray *output)
{
    work->output = output->array;
    output->array.release = NULL;
    uva__event_wait_release(work->watch);
    work->deferred.array.array.release = kept_release;
    work->deferred.array.array.private_data = work;
    work->command.run = queued_work_keep_run;
    uva__devices_send(work->devices, &work->command);
}

/* ---- the beginning ------------------------------------------------------ */

int uva__queued_work_new(struct uva__rt *rt, struct uva__devices *devices,
                         const struct uva_device_event *device,
                         struct uva__queued_work **out, struct uva_error *error)
{
    struct uva__queued_work *work = calloc(1, sizeof(*work));

    if (work == NULL || uva__event_wait_new(devices, device, queued_work_over,
                                            work, &work->watch) != 0) {
        free(work);
        return uva_error_set(error, ENOMEM, "no memory for queued work");
    }
    uva__devices_use(devices);
    work->rt = rt;
    work->devices = devices;
    work->backend = work->watch->backend;
    work->watch->poll_only = true;
    work->command.run = queued_work_over_run;
    work->end.run = queued_work_end;
    *out = work;
    return 0;
}

void uva__queued_work_free(struct uva__queued_work *work)
{
    struct uva__devices *devices = work->devices;

    uva__event_wait_release(work->watch);
    free(work);
    uva__devices_quit(devices);
}

static void output_wrap(struct uva__queued_work *work,
                        struct ArrowDeviceArray *output)
{
    work->release = output->array.release;
    work->private_data = output->array.private_data;
    output->array.release = output_release;
    output->array.private_data = work;
    output->sync_event = work->event;
}

static int queued_work_record(struct uva__queued_work *work,
                              void *device_stream, struct uva_error *error)
{
    const struct uva_device_event device = {work->watch->event.device_type,
                                            work->watch->event.device_id, NULL};

    return uva__backend_record(work->backend, &device, device_stream,
                               &work->event, error);
}

int uva__queued_work_begin(struct uva__queued_work *work, void *device_stream,
                           struct ArrowDeviceArray *input,
                           struct ArrowDeviceArray *output,
                           struct uva_error *error)
{
    const int code = queued_work_record(work, device_stream, error);
    const bool gives = output->array.release != NULL;

    if (!uva__rt_job_begin(work->rt))
        UVA__UNREACHABLE("the batch is extracted in a job");
    if (input->array.release != NULL)
        uva_array_move(input, &work->input);
    if (code != 0) {
        queued_work_keep(work, output);
        return code;
    }
    uva__atomic64_store(&work->refs, gives ? 2 : 1);
    if (gives)
        output_wrap(work, output);
    work->watch->event.sync_event = work->event;
    uva__event_wait_begin(work->watch);
    return 0;
}
