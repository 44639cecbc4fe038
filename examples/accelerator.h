/* SPDX-License-Identifier: Apache-2.0 */
/* An accelerator that Arrow does not know: its driver reports by a descriptor,
 * an eventfd, that the data of an array is complete. */
#ifndef EXAMPLES_ACCELERATOR_H
#define EXAMPLES_ACCELERATOR_H

#include "uvarrow/device.h"

/* The back end for ARROW_DEVICE_EXT_DEV: the sync_event of an array points to
 * the descriptor. The host can read the memory. */
extern const struct uva_device_ops accelerator_ops;

#endif
