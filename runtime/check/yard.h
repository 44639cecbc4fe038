/* SPDX-License-Identifier: Apache-2.0 */
/* Where checks rest that are over and have no `keep`: so many of them, the
 * oldest going first, so that calls which come too late find memory of ours and
 * are told. For whoever makes many checks and has a time when all is over; the
 * library has none of its own. Counted: by its maker until close, and by each
 * check. */
#ifndef UVA_CHECK_YARD_H
#define UVA_CHECK_YARD_H

#include "uvarrow/check.h"

struct uva__checked;
struct uva__yard;

/* Makes one with room for `room` checks at rest. 0, or ENOMEM. `allocator` is
 * copied; both functions are there. Thread: any. */
UVA_MUST_CHECK int uva__yard_new(const struct uva_allocator *allocator,
                                 int room, struct uva__yard **out);

/* uva_check_handler() for a check that will rest here. Thread: any. */
UVA_MUST_CHECK int uva__yard_check(
    struct uva__yard *yard, struct ArrowAsyncDeviceStreamHandler *handler,
    const struct uva_check *how, struct ArrowAsyncDeviceStreamHandler **out,
    struct uva_error *error);

/* Frees all that rest; what comes to rest from now on is freed at once. The
 * maker's count stays. Thread: any; locks are not held, as users' functions are
 * called. */
void uva__yard_shut(struct uva__yard *yard);

/* The same, and gives the maker's count back. What is not over yet
 * frees itself when it is. Thread: any; locks are not held, as users' functions
 * are called. */
void uva__yard_close(struct uva__yard *yard);

/* Gives a check (taken) a place to rest; frees the one that has rested longest,
 * or this one after close. Thread: any. */
void uva__yard_rest(struct uva__yard *yard, struct uva__checked *c);

/* Gives a check's count back. Thread: any. */
void uva__yard_release(struct uva__yard *yard);

#endif
