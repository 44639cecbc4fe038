/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of messages as they are read, and the footer of a file: the opposite
 * of ipc_write_header.h. Every number is checked by whatever uses it. */
#ifndef UVA_IO_IPC_READ_HEADER_H
#define UVA_IO_IPC_READ_HEADER_H

#include "io/flatbuffer_reader.h"
#include "io/ipc_write_header.h"

/* The union MessageHeader. */
enum uva__ipc_what {
    UVA__IPC_SCHEMA = 1,
    UVA__IPC_DICTIONARY = 2,
    UVA__IPC_BATCH = 3
};

/* The header of a message. */
struct uva__ipc_head {
    int what;                  /* see above, or another one */
    bool is_old;               /* version 4: all types but null have bitmaps */
    int64_t body_size;         /* not negative */
    struct uva__table header;  /* of the kind `what` */
    struct uva__table message; /* around the header */
    struct uva__vector metadata; /* pairs of the message */
};

/* Items of a body, as a header lists them. */
struct uva__ipc_parts {
    int64_t length;              /* rows; not negative */
    struct uva__vector nodes;    /* of 16 bytes: length and number of nulls */
    struct uva__vector buffers;  /* of 16 bytes: offset and size */
    struct uva__vector variadic; /* of 8 bytes */
    int32_t codec;               /* see ipc_compress.h */
};

/* The tables of a file. */
struct uva__ipc_footer {
    struct uva__table schema;
    struct uva__vector dictionaries; /* of 24 bytes */
    struct uva__vector batches;      /* of 24 bytes */
};

/* Each returns 0; EPROTO if malformed, ENOTSUP for another version of the
 * format. Thread: any. */

UVA_MUST_CHECK int uva__ipc_head_read(const uint8_t *bytes, size_t size,
                                      struct uva__ipc_head *out,
                                      struct uva_error *error);

/* Reads the table RecordBatch. */
UVA_MUST_CHECK int uva__ipc_parts_read(const struct uva__table *batch,
                                       struct uva__ipc_parts *out,
                                       struct uva_error *error);

/* Reads the table DictionaryBatch, which has a RecordBatch. */
UVA_MUST_CHECK int uva__ipc_values_read(const struct uva__table *values,
                                        int64_t *id, bool *is_delta,
                                        struct uva__table *batch,
                                        struct uva_error *error);

UVA_MUST_CHECK int uva__ipc_footer_read(const uint8_t *bytes, size_t size,
                                        struct uva__ipc_footer *out,
                                        struct uva_error *error);

/* Reads item `i` of a vector of places. */
struct uva__ipc_place uva__ipc_place_read(const struct uva__vector *places,
                                          size_t i);

/* Makes a metadata block of a vector of pairs in the buffer of `table`. `*left`
 * is its limit, and is lowered. Gives NULL for no pairs; otherwise a block for
 * free(), and its size. Returns 0; EPROTO, ENOMEM, EMSGSIZE. */
UVA_MUST_CHECK int uva__ipc_metadata_read(const struct uva__table *table,
                                          const struct uva__vector *pairs,
                                          int64_t *left, char **out,
                                          size_t *size,
                                          struct uva_error *error);

#endif
