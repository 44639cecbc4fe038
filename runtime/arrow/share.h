/* SPDX-License-Identifier: Apache-2.0 */
/* One array's data for two owners, with an allocator of the caller's choice:
 * uva_array_share() for the library itself. */
#ifndef UVA_ARROW_SHARE_H
#define UVA_ARROW_SHARE_H

#include <stddef.h>
#include <stdint.h>

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* uva_array_share() with memory of `allocator`, which is copied and must stay
 * usable until both arrays, and all children moved out of them, are released.
 * An array that is shared already keeps the allocator of the first time. 0;
 * ENOMEM; EINVAL if `array` is released or its children are impossible: then
 * `array` is untouched and `out` released. Thread: any. */
UVA_MUST_CHECK int uva__array_share(const struct uva_allocator *allocator,
                                    struct ArrowDeviceArray *array,
                                    struct ArrowDeviceArray *out);

/* The vector of buffers of a struct without its bitmap, which was left out, as
 * no row is null and the rows begin elsewhere: one NULL, which is never
 * written. */
extern const void *const uva__array_share_no_bitmap[1];

/* Gives the array that `array` shares as a whole, whatever part of it `array`
 * has: the memory that a release of `array` may free. Borrowed, as long as
 * `array` is not released. NULL for any other array, and for a child of a
 * shared one.
 * Thread: any. */
const struct ArrowArray *uva__array_share_whole(const struct ArrowArray *array);

/* A number above 0 that this array has and no other one gets, as its address
 * may serve another one later. 0 for any other array. Thread: any. */
int64_t uva__array_share_number(const struct ArrowArray *array);

/* Room for more copies of a shared array, which need no memory of their own.
 * All zeroes: not shared. */
struct uva__array_share_room {
    struct share_block
        *block;    /* counted by the copies that are not made, too */
    void *next;    /* where the next copy goes */
    size_t nodes;  /* structs of each, below its root */
    uint64_t live; /* nodes of each that are not released */
    uint64_t left; /* copies that may be made */
};

/* As uva__array_share(), for a series of calls: with this one `copies` of them
 * may follow; in between the array may be reduced. `room` has the memory
 * for the next ones. Thread: any one at a time. */
UVA_MUST_CHECK int uva__array_share_more(const struct uva_allocator *allocator,
                                         struct uva__array_share_room *room,
                                         struct ArrowDeviceArray *array,
                                         int64_t copies,
                                         struct ArrowDeviceArray *out);

/* No more copies are made. Thread: any one at a time. */
void uva__array_share_give_up(struct uva__array_share_room *room);

#endif
