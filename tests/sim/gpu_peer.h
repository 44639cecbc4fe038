/* SPDX-License-Identifier: Apache-2.0 */
/* The driver libraries of CUDA and HIP for the simulated device: the library's
 * own tables for these vendors (device/gpu.c) find these functions in place of
 * a shared library. Streams and events are in device_peer.h. The functions
 * check that a context is current where it is needed, that they are not called
 * inside a callback, that memory is freed as it was allocated, and that
 * everything is given back. */
#ifndef SIM_GPU_PEER_H
#define SIM_GPU_PEER_H

#include <stdbool.h>

#include "uvarrow/arrow_abi.h"

/* Starts a new schedule. */
void gpu_begin(void);

/* Draws the vendor, and the features of its driver. Returns the type of the
 * batches: memory of the device, managed, or pinned. If the device is `faulty`,
 * all its callbacks have a status: a function without one is never called
 * after a failure, and its waiter is lost by design. */
ArrowDeviceType gpu_draw(bool faulty);

/* The drawn features: whether the host reads the batches where they are, and
 * whether the driver calls back. */
bool gpu_type_is_pinned(void);
bool gpu_calls_back(void);

/* Ends the schedule as failed if something was not given back. */
void gpu_check(void);

#endif
