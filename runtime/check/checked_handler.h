/* SPDX-License-Identifier: Apache-2.0 */
/* The handler that a check gives to the producer. */
#ifndef UVA_CHECK_CHECKED_HANDLER_H
#define UVA_CHECK_CHECKED_HANDLER_H

#include "check/checked_stream.h"

/* Puts the stream's handler in front of `real`, which is taken. Thread: any
 * one. */
void uva__checked_handler_init(struct uva__checked *c,
                               struct ArrowAsyncDeviceStreamHandler *real);

/* Returns the stream of a handler. Thread: any. */
struct uva__checked *
uva__checked_handler_stream(struct ArrowAsyncDeviceStreamHandler *handler);

#endif
