/* SPDX-License-Identifier: Apache-2.0 */
/* The device types of arrow/device_traits for which there is a back end, or of
 * which there is something to report. */
#include "device/builtin.h"

/* The document defines no event for these. Clauses: EV-09. */
static const char EVENTLESS[] = "events of this type are NULL (EV-09)";

static const char BY_HAND[] = "uva_device_register() makes it known";

const struct uva__builtin uva__builtins[UVA__DEVICE_TYPES] = {
    [ARROW_DEVICE_CUDA] = {.library = "CUDA",
                           .ops = &uva__cuda_ops,
                           .vendor_info = &uva__cuda_info},
    [ARROW_DEVICE_CUDA_HOST] = {.library = "CUDA",
                                .ops = &uva__cuda_host_ops,
                                .vendor_info = &uva__cuda_info},
    [ARROW_DEVICE_OPENCL] = {.library = "OPENCL",
                             .ops = &uva__opencl_ops,
                             .vendor_info = &uva__opencl_info},
    [ARROW_DEVICE_VULKAN] = {.ops = &uva__vulkan_ops,
                             .vendor_info = &uva__vulkan_info},
    [ARROW_DEVICE_METAL] = {.why = "there is no Metal on this system; "
                                   "uva_device_register() makes something "
                                   "else known"},
    [ARROW_DEVICE_VPI] = {.why = EVENTLESS},
    [ARROW_DEVICE_ROCM] = {.library = "HIP",
                           .ops = &uva__hip_ops,
                           .vendor_info = &uva__hip_info},
    [ARROW_DEVICE_ROCM_HOST] = {.library = "HIP",
                                .ops = &uva__hip_host_ops,
                                .vendor_info = &uva__hip_info},
    [ARROW_DEVICE_EXT_DEV] = {.why = BY_HAND},
    [ARROW_DEVICE_CUDA_MANAGED] = {.library = "CUDA",
                                   .ops = &uva__cuda_managed_ops,
                                   .vendor_info = &uva__cuda_info},
    [ARROW_DEVICE_ONEAPI] = {.library = "ONEAPI", .ops = &uva__oneapi_ops},
    [ARROW_DEVICE_WEBGPU] = {.why = EVENTLESS},
    [ARROW_DEVICE_HEXAGON] = {.why = EVENTLESS},
};
