/* SPDX-License-Identifier: Apache-2.0 */
/* The table `Schema` as it is read: the opposite of ipc_write_schema.h. */
#ifndef UVA_IO_IPC_READ_SCHEMA_H
#define UVA_IO_IPC_READ_SCHEMA_H

#include "io/flatbuffer_reader.h"
#include "io/ipc_plan.h"

/* Reads the schema, and makes the plan of it. `*ids` has the id of each
 * dictionary of the plan, for free(). `most` is the limit of its memory.
 * `*is_turned`: see struct uva__ipc_input. Returns 0; EPROTO if malformed;
 * ENOTSUP for an unknown type; EMSGSIZE for a limit; ENOMEM; the text names the
 * field. Thread: any. */
UVA_MUST_CHECK int uva__ipc_schema_read(const struct uva__table *table,
                                        int64_t most,
                                        struct uva__ipc_plan *plan,
                                        int64_t **ids, bool *is_turned,
                                        struct uva_error *error);

#endif
