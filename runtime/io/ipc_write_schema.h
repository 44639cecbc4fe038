/* SPDX-License-Identifier: Apache-2.0 */
/* The table `Schema` of Arrow's IPC format, for the first message and for the
 * footer of a file. */
#ifndef UVA_IO_IPC_WRITE_SCHEMA_H
#define UVA_IO_IPC_WRITE_SCHEMA_H

#include "io/flatbuffer_writer.h"
#include "io/ipc_plan.h"

/* Writes `schema`, for which a plan was made (ipc_plan.h). Dictionaries have
 * the numbers that the plan gives them. Returns the place of the table.
 * Thread: any one at a time. */
size_t uva__ipc_schema_write(struct uva__flatbuffer *flat,
                             const struct uva__ipc_plan *plan);

#endif
