/* SPDX-License-Identifier: Apache-2.0 */
/* Work that a program has queued on a stream of a device, and the event that is
 * recorded after it. The work may keep an array until the event is complete,
 * and an array may own the event. The runtime may end before either does. */
#ifndef UVA_STREAM_EVENT_WORK_H
#define UVA_STREAM_EVENT_WORK_H

#include "stream/runtime_devices.h"

/* From malloc(), as it may outlive every runtime. */
struct uva__event_work {
    struct uva__deferred_release deferred; /* first: of uva__event_work_keep()
                                            */
    struct uva__rt *rt;             /* of the job of _await() and _keep() */
    struct uva__devices *devices;   /* uses */
    struct uva__backend *backend;   /* borrows: its row there, or NULL */
    struct uva_device_event device; /* without an event: to record with */
    void *device_stream;            /* borrows: the caller's, until recorded */
    void *event;                    /* owns, through ops->event_free */
    struct uva_watch *watch;        /* counts, until the event is complete;
                                       NULL: the work keeps no array */
    struct uva__atomic64 refs;      /* of the wait, and of the event's owner */
    struct ArrowDeviceArray kept;   /* owns, until the event is complete */
    struct ArrowDeviceArray result; /* owns: the event's owner, after a release
                                       by its consumer; its array alone */
    void (*release)(struct ArrowArray *array); /* of the event's owner */
    void *private_data;                        /* of the event's owner */
    struct uva__device_command command; /* the caller's; then of the wait */
    struct uva__device_command end;     /* frees it */
};

/* Makes one, for work on the device of `array`. Takes a use of `devices`, if
 * that fails, too. 0; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__event_work_new(struct uva__rt *rt,
                                       struct uva__devices *devices,
                                       const struct ArrowDeviceArray *array,
                                       struct uva__event_work **out,
                                       struct uva_error *error);

/* Frees it: no event was recorded. Thread: any. */
void uva__event_work_free(struct uva__event_work *work);

/* Makes the wait for the event; the device thread runs. 0; ENOMEM; ENOTSUP for
 * a type without a table. Thread: any. */
UVA_MUST_CHECK int uva__event_work_prepare(struct uva__event_work *work,
                                           struct uva_error *error);

/* Loads the table, unless it was loaded, and records the event on
 * `device_stream`. 0, or why there is none. Thread: any. */
UVA_MUST_CHECK int uva__event_work_record(struct uva__event_work *work,
                                          void *device_stream,
                                          struct uva_error *error);

/* Gives the event to a live array. Its own release is called by its consumer;
 * with a wait, by the device thread, after the event. Thread: as the record. */
void uva__event_work_give(struct uva__event_work *work,
                          struct ArrowDeviceArray *array);

/* Begins the wait, after which `kept` is released. Takes `work` and a job of
 * the runtime: a close waits for this. Thread: as the record. */
void uva__event_work_await(struct uva__event_work *work);

/* Without an event nobody can tell when the device is done: keeps `kept` and
 * `array` (takes it, if live; may be NULL) until the workers end. Takes `work`
 * and a job of the runtime. Thread: any. */
void uva__event_work_keep(struct uva__event_work *work,
                          struct ArrowDeviceArray *array);

#endif
