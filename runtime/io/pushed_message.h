/* SPDX-License-Identifier: Apache-2.0 */
/* A message as a batch of one row, so that it can be pushed into a stream,
 * which counts its bytes. */
#ifndef UVA_IO_PUSHED_MESSAGE_H
#define UVA_IO_PUSHED_MESSAGE_H

#include "io/ipc_framer.h"

/* Gives the schema of such batches. Returns 0; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__pushed_message_schema(struct ArrowSchema *out);

/* Gives a batch with the message, which it takes if it returns 0; ENOMEM.
 * Thread: any. */
UVA_MUST_CHECK int uva__pushed_message_new(struct uva__message *message,
                                           struct ArrowDeviceArray *out);

/* The message in such a batch; borrows, and may be moved out. Thread: any one
 * at a time. */
struct uva__message *
uva__pushed_message_of(const struct ArrowDeviceArray *batch);

#endif
