/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of buffers that were read: whether every offset, view, index,
 * code and run end of an array refers to something that is there. Buffers are
 * as large as the array needs, and children are checked before. */
#ifndef UVA_IO_IPC_CHECK_H
#define UVA_IO_IPC_CHECK_H

#include "io/ipc_plan.h"

/* Checks an array of `field`, with offset 0 and its children. `data_size` is
 * that of the data after offsets. Returns NULL, or the fault, which is static.
 * Thread: any. */
const char *uva__ipc_check(const struct uva__ipc_field *field,
                           const struct ArrowArray *array, int64_t data_size);

#endif
