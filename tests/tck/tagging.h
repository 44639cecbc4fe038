/* SPDX-License-Identifier: Apache-2.0 */
/* A handler that stands before another one and puts the metadata of the plans
 * TAGGED and TAGGED_FAILS in the place of what comes: for producers that cannot
 * do so. */
#ifndef UVA_TCK_TAGGING_H
#define UVA_TCK_TAGGING_H

#include <stdbool.h>

#include "uvarrow/arrow_abi.h"

/* Gives a handler in front of `behind` (borrows), which frees itself when it is
 * released. `wrong`: the metadata is not what it should be. */
struct ArrowAsyncDeviceStreamHandler *
tagging_front(struct ArrowAsyncDeviceStreamHandler *behind, bool wrong);

#endif
