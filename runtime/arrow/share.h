/* SPDX-License-Identifier: Apache-2.0 */
/* One array's data for two owners, with an allocator of the caller's choice:
 * uva_array_share() for the library itself. */
#ifndef UVA_ARROW_SHARE_H
#define UVA_ARROW_SHARE_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* uva_array_share() with memory of `allocator`, which is copied and must stay
 * usable until both arrays, and all children moved out of them, are released.
 * An array that is shared already keeps the allocator of the first time. 0;
 * ENOMEM; EINVAL if `array` is released or its children are impossible: then
 * `array` is untouched and `out` released. Thread: any. */
UVA_MUST_CHECK int uva__share_array(const struct uva_allocator *allocator,
                                    struct ArrowDeviceArray *array,
                                    struct ArrowDeviceArray *out);

#endif
