/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated device of type EXT_DEV, or a vendor's: the driver's functions are
 * in gpu_peer.c. Its events complete in any order, when a driver fiber picks
 * them; they fail, get stuck until the peers are unblocked, report late or
 * report a wrong success. It polls or calls back, and copies, as the schedule
 * draws it. It checks the library strictly: events are queried only while their
 * array lives, and by the device thread alone unless they are fast; no function
 * is called after `unload`; each armed watch is settled once. */
#ifndef SIM_DEVICE_PEER_H
#define SIM_DEVICE_PEER_H

#include "sim/expectation.h"
#include "uvarrow/device.h"

struct device_event;

/* The type of the device, and the code of all its faults. */
ArrowDeviceType device_own_type(void);
int device_fault(void);

/* Starts a new schedule and draws the device's behaviour. `faulty`: it may do
 * worse than being slow. */
void device_begin(bool faulty);

/* Registers the device with a runtime. */
void device_register(struct uva_runtime *runtime);

/* The behaviour drawn: whether its data can be moved to the host, and by a
 * copy; whether its streams can be made to wait, and record; whether it takes
 * clock time to notice events; whether anything may go wrong. */
bool device_can_transfer(void);
bool device_can_copy(void);
bool device_can_chain(void);
bool device_can_record(void);
bool device_takes_time(void);
bool device_is_faulty(void);
bool device_is_stuck(
    void);               /* stuck on first use, until the peers are unblocked */
bool device_fails(void); /* every call fails */

/* Makes an event for batch `ordinal`, which a driver will complete. */
struct device_event *device_event_new(struct expectation *expectation,
                                      int64_t ordinal);

/* The array that the event belongs to is released. */
void device_event_release(void *sync_event);

/* Returns the state of an event: -1: pending; 0: complete; or its error
 * code. */
int device_event_state(const void *sync_event);

/* Returns whether a stream of the device waits for the event. */
bool device_event_is_chained(const void *sync_event);

/* The device's queue, and work in it that reads the array of an event. */
void *device_queue(void);
void device_read(const void *sync_event);

/* Passed instead of a queue to uva_array_record(): the batch that the event
 * belongs to. */
struct device_place {
    bool is_place; /* true, and the first member, as of a device_stream */
    int64_t ordinal;
    struct expectation *expectation;
};

/* ---- streams, for a vendor's driver ------------------------------------- */

/* A stream, of which the work is done in order. */
struct device_stream {
    bool is_place; /* false */
    bool busy;     /* a driver does its work */
    bool gone;     /* it is destroyed; freed when no work is left */
    int left;      /* work that is not done */
    int code;      /* the code that a wait in it has found */
    struct device_event
        *read; /* borrows: the event of the array that is read; or NULL */
};

struct device_stream *device_stream_new(void);
void device_stream_end(struct device_stream *stream);

/* Waits until no work is left. */
void device_stream_await(struct device_stream *stream);

/* Work for a stream: record an event, or wait for one; copy; call a function,
 * with 0 or a code. */
typedef void device_call_fn(void *arg, int code);
void device_stream_record(struct device_stream *stream,
                          struct device_event *event);
void device_stream_wait(struct device_stream *stream,
                        struct device_event *event);
void device_stream_copy(struct device_stream *stream, void *target,
                        const void *source, size_t size_bytes);
void device_stream_call(struct device_stream *stream, device_call_fn *call,
                        void *arg);

/* Waits for as long as the load of the device is stuck. */
void device_load_await(void);

/* An event that was never recorded, and so counts as complete. */
struct device_event *device_event_blank(void);
int device_event_query(struct device_event *event);
void device_event_destroy(struct device_event *event);

/* Makes the late callbacks. The library has ended, except for waits for the
 * device. */
void device_end(void);

/* Ends the schedule as failed if any work is left. */
void device_check(void);

#endif
