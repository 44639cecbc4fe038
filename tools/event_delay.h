/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the delay from a device event to the callback on the loop. */
#ifndef UVA_TOOLS_EVENT_DELAY_H
#define UVA_TOOLS_EVENT_DELAY_H

#include <stdint.h>

#include "uvarrow/runtime.h"

/* The result. */
struct uva__event_delay {
    int64_t samples; /* events waited for */
    uint64_t p50_ns; /* median delay */
    uint64_t p99_ns; /* 99th percentile */
};

/* Measures with user events of the first OpenCL device, which another thread
 * completes. Returns 0; ENOTSUP with an error that names the missing part.
 * `runtime` must have its own thread. Blocks for about a second. Thread: any
 * but the loop. */
UVA_MUST_CHECK int uva__event_delay_opencl(struct uva_runtime *runtime,
                                           struct uva__event_delay *out,
                                           struct uva_error *error);

#endif
