/* SPDX-License-Identifier: Apache-2.0 */
/* A test double of a device: the test completes its events. It polls or calls
 * back, on the loop thread or not, according to its mode, and counts calls. */
#ifndef UVA_SUPPORT_SOFT_DEVICE_H
#define UVA_SUPPORT_SOFT_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "support/fake_source.h"
#include "uvarrow/device.h"

enum { SOFT_EVENTS = 4200 };

/* How it reports events. */
enum soft_mode {
    SOFT_POLLS,         /* polled; never arms */
    SOFT_POLLS_ON_LOOP, /* polled, also on the loop thread */
    SOFT_CALLS,         /* calls back, then queried by the device thread */
    SOFT_CALLS_ON_LOOP, /* calls back, then queried on the loop thread */
    SOFT_FORGETS,       /* arms, but never calls back for a failed event */
    SOFT_COPIES /* polled; copies and records; not readable by the host */
};

struct soft_step;

struct soft_event {
    struct soft_device *device;
    atomic_int state;        /* -1 pending, 0 complete, otherwise an errno */
    struct uva_watch *watch; /* the watch it is armed for; or NULL. Locked */
};

struct soft_device {
    enum soft_mode mode;
    ArrowDeviceType device_type; /* type of its batches: EXT_DEV */
    void (*armed)(void *ctx); /* called on the device thread at arm; or NULL */
    void (*asked)(void *ctx); /* called before each query; or NULL */
    void (*settled)(void *ctx);  /* called at each settle; or NULL */
    void (*chaining)(void *ctx); /* called before a program's stream is made to
                                    wait, or copied on; or NULL */
    void *ctx;                   /* borrows: argument of these */
    pthread_mutex_t lock;
    struct soft_event events[SOFT_EVENTS];
    int load_code;           /* load fails with this code; 0: it works */
    int arm_code;            /* arm fails with this code; 0: it works */
    long copy_fails_at;      /* this copy fails, from 1; 0: no failure */
    int copy_code;           /* with this code, and no text; 0: EIO */
    long step_fails_at;      /* the event of this copy fails */
    long alloc_fails_at;     /* this copy gets no memory */
    int record_code;         /* record fails with this code; 0: it works */
    int recorded_code;       /* recorded events end with this code */
    atomic_bool held;        /* steps that were begun do not run */
    struct soft_step *steps; /* steps begun, the oldest first; locked */
    int last_code;           /* code of the last step run; locked */
    atomic_long copies, allocs, events_live;
    atomic_long loads, unloads, queries, arms, settles, chained;
    atomic_bool wrong_thread; /* a call came on the wrong thread */
    pthread_t device_thread;  /* thread of the first load */
};

void soft_device_init(struct soft_device *device, enum soft_mode mode);
void soft_device_fini(struct soft_device *device);

/* Returns the device table for its mode. */
const struct uva_device_ops *soft_device_ops(const struct soft_device *device);

/* Ends an event with a code: 0 is complete. Thread: any. */
void soft_event_end(struct soft_device *device, int index, int code);

/* As soft_event_end(), but callbacks report success, as with some vendors. */
void soft_event_lie(struct soft_device *device, int index, int code);

/* Gives the fake source as a stream of the device's type; batch k carries event
 * k. */
void soft_device_stream(struct soft_device *device, struct fake_source *fake,
                        struct ArrowDeviceArrayStream *out);

/* Gives a single batch k. */
void soft_device_batch(struct soft_device *device, struct fake_source *fake,
                       int k, struct ArrowDeviceArray *out);

#endif
