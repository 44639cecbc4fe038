/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a message: the buffers of an array in the order of the IPC
 * format, and their list in its header. Buffers are borrowed from the array
 * wherever their bytes can be sent as they are; copied are bitmaps that do not
 * begin at a byte, offsets that do not begin at 0, and run ends of slices. */
#ifndef UVA_IO_IPC_WRITE_BODY_H
#define UVA_IO_IPC_WRITE_BODY_H

#include "io/ipc_plan.h"

/* A block of memory, in a list: the part of a message that no array owns. */
struct uva__ipc_block {
    struct uva__ipc_block *next;
    size_t size;
    /* the bytes follow, aligned to 16 */
};

/* Adds a block of `size` bytes to `list`. Returns its bytes; NULL without
 * memory. Thread: any one at a time. */
void *uva__ipc_block_new(struct uva__ipc_block **list, size_t size);

/* Frees all blocks of a list. Thread: any one at a time. */
void uva__ipc_blocks_free(struct uva__ipc_block *list);

/* A field of the array, as the header lists it. */
struct uva__ipc_node {
    int64_t length;
    int64_t null_count;
};

/* A buffer of the body. */
struct uva__ipc_buffer {
    const void *data;   /* borrows */
    int64_t size;       /* bytes of data */
    const void *prefix; /* 8 bytes in front of the data; borrows; may be NULL */
};

/* A field with a dictionary, and the array of its values. */
struct uva__ipc_use {
    int32_t dictionary;
    const struct ArrowArray *values; /* borrows */
};

/* The body, in vectors that are used again for the next batch; zeroes: an
 * empty one. */
struct uva__ipc_body {
    struct uva__ipc_node *nodes;     /* owns */
    struct uva__ipc_buffer *buffers; /* owns */
    int64_t *variadic; /* owns: number of data buffers of each field of views */
    struct uva__ipc_use *uses; /* owns: dictionaries that the fields need */
    size_t n_nodes, n_buffers, n_variadic, n_uses;
    size_t most_nodes, most_buffers, most_variadic, most_uses;
    struct uva__ipc_block *blocks; /* owns: copied buffers */
    int64_t length;                /* number of rows */
    int64_t size;                  /* bytes of all buffers */
};

/* Makes room for `more` items in a vector of `count` with room for `*most`.
 * False without memory, and the vector is as before. */
bool uva__ipc_grow(void **items, size_t count, size_t *most, size_t more,
                   size_t size);

/* Fills the body with `count` items of `array`, from item `from` on, which has
 * the type of field `at`; for a batch, the field 0, with its children alone.
 * Everything but the contents of buffers is checked, and of these the ends of
 * offsets. Returns 0; EINVAL if the array does not fit; ENOTSUP; ENOMEM. The
 * body borrows the array's buffers. Thread: any one at a time. */
UVA_MUST_CHECK int
uva__ipc_body_fill(struct uva__ipc_body *body, const struct uva__ipc_plan *plan,
                   int32_t at, const struct ArrowArray *array, int64_t from,
                   int64_t count, struct uva_error *error);

/* Empties it: frees the copied buffers. */
void uva__ipc_body_clear(struct uva__ipc_body *body);

/* Frees its content. */
void uva__ipc_body_fini(struct uva__ipc_body *body);

/* Whether bit `i` is set. */
static inline bool uva__ipc_bit(const uint8_t *bits, int64_t i)
{
    return (bits[i / 8] >> (i % 8)) & 1;
}

/* Reads the integer `i` of a buffer of integers of `width` bytes: 2, 4 or 8. */
int64_t uva__ipc_integer(const void *buffer, int32_t width, int64_t i);

#endif
