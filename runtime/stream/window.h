/* SPDX-License-Identifier: Apache-2.0 */
/* How much may wait in one place, and when to fetch more. Pure. */
#ifndef UVA_STREAM_WINDOW_H
#define UVA_STREAM_WINDOW_H

#include "uvarrow/base.h"
#include "uvarrow/stream.h"

/* A window with its defaults in place: 64 batches, 32 MiB, refill at half.
 * EINVAL for a negative member or more than 1 Mi batches. Thread: any. */
UVA_MUST_CHECK int uva__window_complete(const struct uva_window *given,
                                        struct uva_window *out);

/* How many may be under way while `demand` batches are asked for: a window of
 * one never runs ahead (AP-29), others by all but one. Thread: any. */
int64_t uva__window_allowed(const struct uva_window *window, int64_t demand);

/* How many to fetch when `used` are under way: 0 until few enough are left, so
 * that fetching is worth it. Thread: any. */
int64_t uva__window_room(const struct uva_window *window, int64_t demand,
                         int64_t used);

/* Smallest power of two that is not below `n`. Thread: any. */
uint64_t uva__window_ring(int64_t n);

#endif
