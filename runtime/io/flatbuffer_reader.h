/* SPDX-License-Identifier: Apache-2.0 */
/* Reads untrusted FlatBuffers: whatever a table refers to is looked up only if
 * it lies in the buffer. Which tables Arrow has is in ipc_read_header.c and
 * ipc_read_schema.c. */
#ifndef UVA_IO_FLATBUFFER_READER_H
#define UVA_IO_FLATBUFFER_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A table; `at` is 0 for a missing table, which has no members. */
struct uva__table {
    const uint8_t *bytes; /* borrows: the buffer */
    size_t size;          /* of the buffer */
    size_t at;            /* where the table lies in it */
    size_t slots_at;      /* where the offsets of its members lie */
    size_t n_slots;       /* number of these */
};

/* A vector, or a string; without items if it is not there. */
struct uva__vector {
    const uint8_t *items; /* borrows from the buffer; of any alignment */
    size_t at;            /* where they lie in the buffer */
    size_t count;
};

/* Reads a number of 1, 2, 4 or 8 bytes, the lowest byte first: compilers make
 * one load of it. */
static inline uint64_t uva__table_load(const uint8_t *at, int size)
{
    uint64_t value = at[0];

    if (size > 1)
        value |= (uint64_t)at[1] << 8;
    if (size > 2)
        value |= (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24;
    if (size > 4)
        value |= (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 |
                 (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;
    return value;
}

/* Finds the table with which the buffer begins. These return false if the
 * buffer is malformed there. Thread: any. */
bool uva__table_root(const uint8_t *bytes, size_t size, struct uva__table *out);

/* Reads the number in a slot; `*out` stays as it is if that is not there. */
bool uva__table_number(const struct uva__table *table, size_t slot, int size,
                       uint64_t *out);

/* Finds the table that a slot refers to. */
bool uva__table_child(const struct uva__table *table, size_t slot,
                      struct uva__table *out);

/* Finds the vector that a slot refers to, with items of `size` bytes. */
bool uva__table_vector(const struct uva__table *table, size_t slot, size_t size,
                       struct uva__vector *out);

/* Finds the table that item `i` of a vector of `table`'s buffer refers to. */
bool uva__table_item(const struct uva__table *table,
                     const struct uva__vector *vector, size_t i,
                     struct uva__table *out);

#endif
