/* SPDX-License-Identifier: Apache-2.0 */
/* How long it takes from an event of a device to a callback on the loop. */
#ifndef UVA_TOOLS_GAUGE_H
#define UVA_TOOLS_GAUGE_H

#include <stdint.h>

#include "uvarrow/runtime.h"

/* What came out. */
struct uva__gauge {
    int64_t samples; /* events waited for */
    uint64_t p50_ns; /* half of them were told of within that */
    uint64_t p99_ns; /* nearly all of them */
};

/* Measures with user events of the first OpenCL device, which another thread
 * completes. 0; ENOTSUP, with what is missing. `runtime` has a thread of its
 * own. Blocks for about a second. Thread: any but the loop. */
UVA_MUST_CHECK int uva__gauge_opencl(struct uva_runtime *runtime,
                                     struct uva__gauge *out,
                                     struct uva_error *error);

#endif
