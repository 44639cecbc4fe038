/* SPDX-License-Identifier: Apache-2.0 */
/* How many batches may be queued in one place, and when to fetch more. Pure. */
#ifndef UVA_STREAM_WINDOW_H
#define UVA_STREAM_WINDOW_H

#include "uvarrow/base.h"
#include "uvarrow/stream.h"

/* A window with its defaults in place: 64 batches, 32 MiB, refill at half.
 * EINVAL for a negative member, more than 1 Mi batches, or a reserved member
 * that is not NULL. Thread: any. */
UVA_MUST_CHECK int uva__window_complete(const struct uva_window *given,
                                        struct uva_window *out);

/* How many may be in flight while `demand` batches are requested: a window of
 * one never runs ahead, a larger one by all but one. Thread: any.
 * Clauses: AP-29. */
int64_t uva__window_allowed(const struct uva_window *window, int64_t demand);

/* How many to fetch when `used` are in flight: 0 until so few are left that
 * fetching is worth it. Thread: any. */
int64_t uva__window_room(const struct uva_window *window, int64_t demand,
                         int64_t used);

/* The smallest power of two that is not below `n`. Thread: any. */
uint64_t uva__window_ring(int64_t n);

#endif
