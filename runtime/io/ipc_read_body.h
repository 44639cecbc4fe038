/* SPDX-License-Identifier: Apache-2.0 */
/* Makes arrays of the body of a message: the opposite of ipc_write_body.h.
 * Their buffers are the body's, unless it is compressed. */
#ifndef UVA_IO_IPC_READ_BODY_H
#define UVA_IO_IPC_READ_BODY_H

#include "io/ipc_read_header.h"
#include "io/shared_bytes.h"

/* The source of an array. */
struct uva__ipc_input {
    const struct uva__ipc_plan *plan;
    const struct uva__ipc_parts *parts; /* NULL: an array without rows */
    struct uva__shared_bytes *body;     /* borrows; NULL: an empty one */
    bool is_old;                        /* see struct uva__ipc_head */
    bool is_turned; /* its numbers are of the other byte order */
    int64_t most;   /* bytes that decompressed buffers may have */
    /* arrays with the values of the plan's dictionaries; each field's is moved
     * into the array; NULL: of an array without rows */
    struct ArrowDeviceArray *values;
};

/* Makes an array of the type of field `at`; for 0, of a batch. It is checked
 * completely: no buffer is too small, and its content does not refer out of
 * range. Returns 0; EPROTO, and a text that names the field; ENOTSUP, EMSGSIZE,
 * ENOMEM. Thread: any one at a time for the values. */
UVA_MUST_CHECK int uva__ipc_array_read(const struct uva__ipc_input *source,
                                       int32_t at, struct ArrowArray *out,
                                       struct uva_error *error);

#endif
