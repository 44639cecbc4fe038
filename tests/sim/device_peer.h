/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated device of type EXT_DEV. Its events complete in any order, when
 * one of its drivers picks them; they fail, get stuck until the peers are
 * unblocked, report late or report a wrong success. It polls or calls back, and
 * copies, as the schedule draws it. It checks the library strictly: events are
 * queried only while their array lives, and by the device thread alone unless
 * they are fast; nothing is called after `unload`; each armed watch is settled
 * once. */
#ifndef SIM_DEVICE_PEER_H
#define SIM_DEVICE_PEER_H

#include "sim/expectation.h"
#include "uvarrow/device.h"

/* The code of all its faults. */
enum { DEVICE_FAULT = 121 }; /* EREMOTEIO */

struct device_event;

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
void device_event_release(void *event);

/* Returns the state of an event: -1: pending; 0: complete; or its error
 * code. */
int device_event_state(const struct device_event *event);

/* Returns whether a stream of the device waits for the event. */
bool device_event_is_chained(const struct device_event *event);

/* The device's queue, and work in it that reads the array of `event`. */
void *device_queue(void);
void device_read(struct device_event *event);

/* Passed instead of a queue to uva_array_record(): the batch that the event
 * belongs to. */
struct device_place {
    struct expectation *expectation;
    int64_t ordinal;
};

/* Makes the late callbacks. Everything in the library has ended, except what
 * waits for the device. */
void device_end(void);

/* Ends the schedule as failed if any work is left. */
void device_check(void);

#endif
