/* SPDX-License-Identifier: Apache-2.0 */
/* uva_check_handler() with a quarantine, for the stream layer, which makes many
 * checks and knows when they are over; and with other limits of time. */
#ifndef UVA_CHECK_HANDLER_CHECK_H
#define UVA_CHECK_HANDLER_CHECK_H

#include "check/check_times.h"
#include "check/quarantine.h"
#include "uvarrow/check.h"

/* Makes a quarantine with one reference for `capacity` checks. Returns 0, or
 * ENOMEM. Thread: any. */
UVA_MUST_CHECK int
uva__handler_check_quarantine(const struct uva_allocator *allocator,
                              size_t capacity, struct uva__quarantine **out);

/* uva_check_handler() for a check without `keep` that goes to `quarantine` when
 * it is over, and holds a reference to that until it is freed. Thread: any. */
UVA_MUST_CHECK int
uva__handler_check(struct uva__quarantine *quarantine,
                   struct ArrowAsyncDeviceStreamHandler *handler,
                   const struct uva_check *options,
                   struct ArrowAsyncDeviceStreamHandler **out,
                   struct uva_error *error);

/* uva_check_handler() with limits of time (borrowed for the call). Thread: any.
 */
UVA_MUST_CHECK int
uva__handler_check_within(const struct uva__check_times *times,
                          struct ArrowAsyncDeviceStreamHandler *handler,
                          const struct uva_check *options,
                          struct ArrowAsyncDeviceStreamHandler **out,
                          struct uva_error *error);

#endif
