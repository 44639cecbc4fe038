/* SPDX-License-Identifier: Apache-2.0 */
/* The output of an encoder: buffers to be written, and the memory that they
 * borrow from. It outlives its encoder, and may have several users: the batch
 * that carries a part, and each copy of that. */
#ifndef UVA_IO_PART_H
#define UVA_IO_PART_H

#include <uv.h>

#include "io/ipc_write_body.h"
#include "uvarrow/arrow_abi.h"
#include "uvarrow/io.h"

/* A part while it is put together; zeroes: empty. The vector of buffers is used
 * again for the next part. */
struct uva__part_draft {
    uv_buf_t *buffers;             /* owns */
    size_t n_buffers;              /* number of them */
    size_t most_buffers;           /* room for them */
    int64_t bytes;                 /* of all buffers */
    struct uva__ipc_block *blocks; /* owns: the memory that buffers borrow
                                      from */
    void *memory;                  /* owns, by malloc(): another such block */
};

/* Adds `size` bytes, which stay valid until the part is released. False without
 * memory. Thread: any one at a time, as for each function here. */
bool uva__part_borrow(struct uva__part_draft *draft, const void *data,
                      int64_t size);

/* Adds a copy of `size` bytes. False without memory. */
bool uva__part_copy(struct uva__part_draft *draft, const void *data,
                    int64_t size);

/* Adds `size` bytes of `memory`, from malloc(), which it takes: once a part.
 * False without memory, and no argument was taken. */
bool uva__part_add(struct uva__part_draft *draft, void *memory, int64_t size);

/* Takes the blocks of `*list`. */
void uva__part_take_blocks(struct uva__part_draft *draft,
                           struct uva__ipc_block **list);

/* Gives the part, and takes `array` (may be NULL) and the blocks; the draft is
 * empty then. Returns 0; ENOMEM, and no argument was taken. */
UVA_MUST_CHECK int uva__part_finish(struct uva__part_draft *draft,
                                    struct ArrowDeviceArray *array,
                                    struct uva_part *out);

/* Gives one part with the bytes and the rows of `count` others, which it takes.
 * Empty parts (zeroes) may be among them. Returns 0; ENOMEM, and no argument
 * was taken. */
UVA_MUST_CHECK int uva__part_join(struct uva_part *parts, size_t count,
                                  struct uva_part *out);

/* Gives the part `array`, which it takes, in place of the array that
 * uva__part_finish() was given, which is not released. */
void uva__part_own(const struct uva_part *part, struct ArrowDeviceArray *array);

/* Gives another user of a part that is not empty, who releases it, too.
 * Thread: any. */
void uva__part_share(const struct uva_part *part, struct uva_part *out);

/* Empties the draft. */
void uva__part_clear(struct uva__part_draft *draft);

/* Frees its content. */
void uva__part_fini(struct uva__part_draft *draft);

#endif
