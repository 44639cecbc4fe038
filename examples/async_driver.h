/* SPDX-License-Identifier: Apache-2.0 */
/* A driver with an asynchronous call, whose users need not know uvarrow: they
 * pass a handler of Arrow's asynchronous interface. */
#ifndef EXAMPLES_ASYNC_DRIVER_H
#define EXAMPLES_ASYNC_DRIVER_H

#include "uvarrow/arrow_abi.h"

struct async_driver;

/* Returns a driver, or NULL. */
struct async_driver *async_driver_open(void);

/* Sends the batches of a file to `handler`. Returns 0: the driver has taken the
 * handler, and will release it. After an error, a code of errno, it is
 * unchanged. Thread: any. */
int async_driver_read(struct async_driver *driver, const char *path,
                      struct ArrowAsyncDeviceStreamHandler *handler);

/* Waits until every handler was released, and frees the driver. */
void async_driver_close(struct async_driver *driver);

#endif
