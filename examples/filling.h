/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of int64 that reads of libuv fill directly. */
#ifndef EXAMPLES_FILLING_H
#define EXAMPLES_FILLING_H

#include <uv.h>

#include "integers.h"

/* Zeroes are an empty one. */
struct filling {
    struct ArrowDeviceArray batch; /* owns, if it is live */
    char *to;                      /* its memory */
    size_t bytes;                  /* in it */
};

/* Returns the rest of its memory; UV_ENOBUFS follows if there is none. */
uv_buf_t filling_room(struct filling *f);

/* Counts bytes that were read into it. Returns whether its batch can be pushed:
 * it is full, or the input has ended. Then it is empty. */
bool filling_add(struct filling *f, ssize_t size);

#endif
