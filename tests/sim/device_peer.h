/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated device, of the type EXT_DEV: its events are complete in any
 * order, when a driver of its own gets to them; they fail, are stuck until the
 * gate is opened, are told late, or by a driver who lies. It polls or calls
 * back, and copies, as the schedule draws it. To the library it is strict:
 * events are asked after only while their array lives, by the service alone
 * unless they are quick; nothing is called after `unload`; what was armed is
 * settled once. */
#ifndef SIM_DEVICE_PEER_H
#define SIM_DEVICE_PEER_H

#include "sim/story.h"
#include "uvarrow/device.h"

/* What all its faults are told with. */
enum { DEVICE_FAULT = 121 }; /* EREMOTEIO */

struct device_event;

/* Begins anew, and draws its manners. `faulty`: it may be worse than slow. */
void device_begin(bool faulty);

/* Registers it with a runtime. */
void device_register(struct uva_runtime *runtime);

/* What its manners are: whether its data gets to the host, and by a copy;
 * whether its streams can be made to wait, and record; whether it takes the
 * clock to notice what has happened; whether something may go wrong. */
bool device_can_transfer(void);
bool device_can_copy(void);
bool device_can_chain(void);
bool device_can_record(void);
bool device_takes_time(void);
bool device_is_faulty(void);
bool device_is_stuck(void); /* when first used, until the gate is opened */
bool device_fails(void);    /* all of it */

/* An event of batch `ordinal`; has it happen in its time. */
struct device_event *device_event_new(struct story *story, int64_t ordinal);

/* The array that it goes with is released. */
void device_event_let_go(void *event);

/* Where it is by now: -1: pending; 0: complete; or what it failed with. */
int device_event_state(const struct device_event *event);

/* Whether a stream of the device waits for it. */
bool device_event_is_chained(const struct device_event *event);

/* The device's queue, and work in it that reads the array of `event`. */
void *device_queue(void);
void device_read(struct device_event *event);

/* In place of the queue, for uva_array_record(): where the event to be recorded
 * belongs. */
struct device_place {
    struct story *story;
    int64_t ordinal;
};

/* From now on services may end at any time: what is told then need not be
 * settled. */
void device_close(void);

/* Tells those that it has not told of yet. Everything of the library's but
 * what waits for the device is over. */
void device_end(void);

/* Ends the schedule unless nothing is left. */
void device_check(void);

#endif
