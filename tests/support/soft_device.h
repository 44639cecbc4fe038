/* SPDX-License-Identifier: Apache-2.0 */
/* A test double of a device: its events are complete when the test says so. It
 * polls or calls back, quick or not, as its table says, and counts. */
#ifndef UVA_SUPPORT_SOFT_DEVICE_H
#define UVA_SUPPORT_SOFT_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "support/fake_source.h"
#include "uvarrow/device.h"

enum { SOFT_EVENTS = 4200 };

/* How it tells of events. */
enum soft_mode {
    SOFT_POLLS,       /* it never arms */
    SOFT_POLLS_QUICK, /* likewise, and the loop may ask */
    SOFT_CALLS,       /* by callback, then asked by the service */
    SOFT_CALLS_QUICK, /* by callback, then asked by the loop */
    SOFT_FORGETS,     /* arms, but never calls back for a failed event */
    SOFT_COPIES       /* it polls, copies, records; the host cannot read it */
};

struct soft_step;

struct soft_event {
    struct soft_device *device;
    atomic_int state;        /* -1 pending, 0 complete, otherwise an errno */
    struct uva_watch *watch; /* armed for; or NULL. Locked */
};

struct soft_device {
    enum soft_mode mode;
    ArrowDeviceType device_type; /* of its batches: EXT_DEV */
    void (*armed)(void *ctx);    /* told of each arm, on the service; or NULL */
    void (*asked)(void *ctx);    /* told of each query, before it; or NULL */
    void (*settled)(void *ctx);  /* told of each settle; or NULL */
    void *ctx;                   /* borrows, for those */
    pthread_mutex_t lock;
    struct soft_event events[SOFT_EVENTS];
    int load_code;           /* load fails with that; 0: not */
    int arm_code;            /* arm fails with that; 0: not */
    long copy_fails_at;      /* this call does, from 1; 0: none */
    int copy_code;           /* with that, and no text; 0: EIO */
    long step_fails_at;      /* the event of that one does */
    long alloc_fails_at;     /* no memory for that one */
    int record_code;         /* record fails with that; 0: not */
    int recorded_code;       /* recorded events end with that */
    atomic_bool held;        /* what was begun does not go on */
    struct soft_step *steps; /* begun, the oldest first; locked */
    int last_code;           /* of the step that ran last; locked */
    atomic_long copies, allocs, events_live;
    atomic_long loads, unloads, queries, arms, settles, chained;
    atomic_bool wrong_thread; /* something ran where it must not */
    pthread_t service;        /* of the first load */
};

void soft_device_init(struct soft_device *device, enum soft_mode mode);
void soft_device_fini(struct soft_device *device);

/* The table that goes with its mode. */
const struct uva_device_ops *soft_device_ops(const struct soft_device *device);

/* An event comes to its end, with a code: 0 is complete. Thread: any. */
void soft_event_end(struct soft_device *device, int index, int code);

/* The same, but whoever is called back is told that all is well, as some
 * vendors do. */
void soft_event_lie(struct soft_device *device, int index, int code);

/* Gives the fake source as a stream of the device's type, whose batch k carries
 * event k. */
void soft_device_stream(struct soft_device *device, struct fake_source *fake,
                        struct ArrowDeviceArrayStream *out);

/* Gives batch k alone. */
void soft_device_batch(struct soft_device *device, struct fake_source *fake,
                       int k, struct ArrowDeviceArray *out);

#endif
