/* SPDX-License-Identifier: Apache-2.0 */
/* A handler in front of another one, which replaces the metadata by the
 * metadata of the plans TAGGED and TAGGED_FAILS: for producers that cannot send
 * it. */
#ifndef UVA_TCK_TAGGING_H
#define UVA_TCK_TAGGING_H

#include <stdbool.h>

#include "uvarrow/arrow_abi.h"

/* Returns a handler in front of `behind` (borrows), which frees itself when it
 * is released. `wrong`: the metadata is wrong on purpose. */
struct ArrowAsyncDeviceStreamHandler *
tagging_front(struct ArrowAsyncDeviceStreamHandler *behind, bool wrong);

#endif
