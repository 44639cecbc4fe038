/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a FlatBuffer, the format of Arrow's message headers. It is written
 * from its end: the targets of a table come before the table, and a place is
 * the number of bytes from there to the end. Which tables Arrow has is in
 * ipc_write_schema.c and ipc_write_header.c. */
#ifndef UVA_IO_FLATBUFFER_WRITER_H
#define UVA_IO_FLATBUFFER_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { UVA__FLATBUFFER_SLOTS = 8 };

/* A buffer that is being written; zeroes: an empty one. The calls below have no
 * effect once memory was missing. */
struct uva__flatbuffer {
    uint8_t *block;                      /* owns; used at its end */
    size_t capacity;                     /* of the block */
    size_t used;                         /* bytes at the end of the block */
    size_t slots[UVA__FLATBUFFER_SLOTS]; /* places of the table's members */
    int n_slots;                         /* of the table */
    size_t table;                        /* place at which the table began */
    bool failed;                         /* memory was missing */
};

/* Empties it, and keeps the block. Thread: any one at a time, as below. */
void uva__flatbuffer_clear(struct uva__flatbuffer *flat);

/* Frees the block. */
void uva__flatbuffer_fini(struct uva__flatbuffer *flat);

/* Writes zeroes, so that `align` divides the place after `size` more bytes. */
void uva__flatbuffer_align(struct uva__flatbuffer *flat, size_t align,
                           size_t size);

/* Returns where `size` more bytes are to be written, in front of the rest; NULL
 * without memory. */
uint8_t *uva__flatbuffer_room(struct uva__flatbuffer *flat, size_t size);

/* Stores a number, the lowest byte first. */
static inline void uva__flatbuffer_store(uint8_t *at, uint64_t value, int size)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(at, &value, (size_t)size);
#else
    for (int i = 0; i < size; i++)
        at[i] = (uint8_t)(value >> (8 * i));
#endif
}

/* Writes a number of 1, 2, 4 or 8 bytes in front of the rest, without
 * aligning it: for the elements of vectors, the last one first. */
void uva__flatbuffer_put(struct uva__flatbuffer *flat, int size,
                         uint64_t value);

/* Writes the distance to a place, for vectors of tables. */
void uva__flatbuffer_put_place(struct uva__flatbuffer *flat, size_t place);

/* Writes the number of elements in front of a vector of them, which began with
 * uva__flatbuffer_align(). Returns the place of the vector. */
size_t uva__flatbuffer_end_vector(struct uva__flatbuffer *flat, size_t count);

/* Writes a string of `size` bytes, or for `size` -1 up to NUL. Returns its
 * place. */
size_t uva__flatbuffer_string(struct uva__flatbuffer *flat, const char *text,
                              int64_t size);

/* Begins a table of `n_slots` members, of which each is set at most once. */
void uva__flatbuffer_begin_table(struct uva__flatbuffer *flat, int n_slots);

/* Sets a member to a number of 1, 2, 4 or 8 bytes. */
void uva__flatbuffer_set(struct uva__flatbuffer *flat, int slot, int size,
                         uint64_t value);

/* Sets a member to the object at a place; 0: leaves it out. */
void uva__flatbuffer_set_place(struct uva__flatbuffer *flat, int slot,
                               size_t place);

/* Ends the table. Returns its place. */
size_t uva__flatbuffer_end_table(struct uva__flatbuffer *flat);

/* Ends the buffer with `root`. Its size is then a multiple of 8. */
void uva__flatbuffer_finish(struct uva__flatbuffer *flat, size_t root);

/* The first of the `used` bytes; borrowed until the next write. */
static inline const uint8_t *
uva__flatbuffer_bytes(const struct uva__flatbuffer *flat)
{
    return flat->block + flat->capacity - flat->used;
}

#endif
