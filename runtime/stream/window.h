/* SPDX-License-Identifier: Apache-2.0 */
/* How many batches may be queued in one place, and when to fetch more. Pure. */
#ifndef UVA_STREAM_WINDOW_H
#define UVA_STREAM_WINDOW_H

#include "uvarrow/base.h"
#include "uvarrow/stream.h"

/* The most that one batch counts in a window, whatever size it claims, so that
 * the sum over the batches of a window cannot overflow. */
#define UVA__WINDOW_SIZE_MAX ((int64_t)1 << 40)

/* The size at which a window counts a batch of `bytes`. Thread: any. */
static inline int64_t uva__window_size(int64_t bytes)
{
    return bytes < UVA__WINDOW_SIZE_MAX ? bytes : UVA__WINDOW_SIZE_MAX;
}

/* A window with its defaults in place. */
struct uva__window {
    int32_t batches;
    int32_t refill; /* more are requested when this few are left */
    int64_t bytes;
};

/* In `refill` of a window without its own size: batches are requested as they
 * are requested here, without read-ahead. */
#define UVA__WINDOW_FOLLOWS (-1)

/* Completes a window: 64 batches, 32 MiB, refill at half. EINVAL for a negative
 * member, more than 1 Mi batches, or a reserved member that is not NULL: then
 * `out` is as it was. Thread: any. */
UVA_MUST_CHECK int uva__window_complete(const struct uva_window *given,
                                        struct uva__window *out);

/* The same for a stage without read-ahead by default: without a number of
 * batches the window follows the requests. Thread: any. */
UVA_MUST_CHECK int uva__window_follow(const struct uva_window *given,
                                      struct uva__window *out);

/* The window that is completed to `window`, for the options of a stage that is
 * added for another object. Thread: any. */
struct uva_window uva__window_given(const struct uva__window *window);

/* How many may be in flight while `demand` batches are requested: a window of
 * one never runs ahead, a larger one by all but one, and a following one not at
 * all. Thread: any.
 * Clauses: AP-29. */
int64_t uva__window_allowed(const struct uva__window *window, int64_t demand);

/* How many to fetch when `used` are in flight: 0 until so few are left that
 * fetching is worth it. Thread: any. */
int64_t uva__window_room(const struct uva__window *window, int64_t demand,
                         int64_t used);

/* How many of `room` more batches fit, by their size, into a window that holds
 * `bytes` and in which `asked` more batches are expected: each of them counts
 * as much as the `largest` batch seen; 0: no size is known, and all fit. One
 * batch always fits into an empty window. Thread: any. */
int64_t uva__window_fit(const struct uva__window *window, int64_t room,
                        int64_t bytes, int64_t asked, int64_t largest);

/* The smallest power of two that is not below `n`. Thread: any. */
uint64_t uva__window_ring(int64_t n);

#endif
