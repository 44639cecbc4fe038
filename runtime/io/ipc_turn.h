/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the other byte order, turned into this machine's. */
#ifndef UVA_IO_IPC_TURN_H
#define UVA_IO_IPC_TURN_H

#include "io/ipc_plan.h"

/* The buffers without numbers of one size. */
enum uva__ipc_turn {
    UVA__IPC_TURN_VIEWS = -1,    /* views of binary */
    UVA__IPC_TURN_INTERVALS = -2 /* months and days of 4 bytes, nanoseconds */
};

/* Returns the unit of the items of a field of fixed size: so many bytes a
 * number, 1 for bytes; or one of the above. Thread: any. */
int32_t uva__ipc_turn_unit(const struct uva__ipc_field *field);

/* Copies `size` bytes of such items, turned; a rest of an item as it is.
 * Thread: any. */
void uva__ipc_turn(uint8_t *to, const uint8_t *from, int64_t size,
                   int32_t unit);

#endif
