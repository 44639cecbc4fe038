/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the library out of drivers once the process has begun to exit: their
 * exit handlers unmap memory and end threads, while other threads still run. A
 * call that has begun is waited for, up to a limit. Every use of a driver, or
 * of memory that a driver has mapped, stands between enter and leave, which
 * nest; threads that do no other work have one pair around each piece of work.
 */
#ifndef UVA_DEVICE_DRIVER_GATE_H
#define UVA_DEVICE_DRIVER_GATE_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* Enters. False: the process exits, and no driver may be used; do not call
 * leave. Thread: any. */
UVA_MUST_CHECK bool uva__driver_gate_enter(void);
void uva__driver_gate_leave(void);

/* Fills `error` with why the caller may not enter, and returns its code.
 * Thread: any. */
int uva__driver_gate_refuse(struct uva_error *error);

/* Closes the gate before exit handlers that exist now. To be called once a
 * driver is loaded, and again once there is an event of it, which needs a
 * context, and once it has given memory, as it may register its own handler in
 * each; only the first call for each `use` of a device type has an effect.
 * Thread: any. */
enum uva__driver_use {
    UVA__DRIVER_LOADED,
    UVA__DRIVER_HAS_EVENT,
    UVA__DRIVER_GAVE_MEMORY, /* of a device */
    UVA__DRIVER_GAVE_PINNED, /* of the host */
    UVA__DRIVER_USES
};
void uva__driver_gate_watch(ArrowDeviceType device_type,
                            enum uva__driver_use use);

/* Closes the gate, and waits for calls that have begun, at most
 * UVA__LIMIT_EXIT_MS; the caller's own do not count. Thread: the exiting one.
 */
void uva__driver_gate_close(void);

/* Releases a live array of the program, which may call a driver; an array is
 * left as it is if the process exits. Thread: any. */
void uva__driver_gate_release(struct ArrowDeviceArray *array);

#endif
