/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of messages, and the footer of a file. What stands in them of the
 * schema is in ipc_write_schema.h; the body after a header is in
 * ipc_write_body.h. */
#ifndef UVA_IO_IPC_WRITE_HEADER_H
#define UVA_IO_IPC_WRITE_HEADER_H

#include "io/flatbuffer_writer.h"
#include "io/ipc_write_body.h"

/* Where a message lies in a file. */
struct uva__ipc_place {
    int64_t offset;
    int32_t head_size; /* of the header, with the bytes in front of it */
    int64_t body_size;
};

/* The kinds of a message with a body. */
struct uva__ipc_message {
    int64_t dictionary; /* id of the dictionary that it has values of; -1: a
                           batch */
    bool is_delta;      /* values to be added to the dictionary's */
    int32_t codec;      /* see ipc_compress.h */
};

/* Each of these empties `flat` and writes a multiple of 8 bytes; a message
 * header begins with its size. Thread: any one at a time. */

/* The schema. */
void uva__ipc_message_schema(struct uva__flatbuffer *flat,
                             const struct uva__ipc_plan *plan);

/* A batch or values of a dictionary. Returns the size of the body. */
int64_t uva__ipc_message_body(struct uva__flatbuffer *flat,
                              const struct uva__ipc_message *message,
                              const struct uva__ipc_body *body);

/* The footer of a file, which its size and the magic follow. */
void uva__ipc_message_footer(struct uva__flatbuffer *flat,
                             const struct uva__ipc_plan *plan,
                             const struct uva__ipc_place *dictionaries,
                             size_t n_dictionaries,
                             const struct uva__ipc_place *batches,
                             size_t n_batches);

/* How many bytes of zeroes follow `size` bytes of a body. */
static inline int64_t uva__ipc_message_padding(int64_t size)
{
    return (int64_t)(-(uint64_t)size & 7);
}

#endif
