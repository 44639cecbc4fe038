/* SPDX-License-Identifier: Apache-2.0 */
/* Every device type of the Arrow document has its row; 5 and 6 are not in it.
 */
#include "arrow/device_traits.h"

#include <stddef.h>

const struct uva__device_traits uva__device_types[UVA__DEVICE_TYPES] = {
    [0] = {NULL, UVA__MEMORY_DEVICE, UVA__EVENTS_UNKNOWN, 0},
    [ARROW_DEVICE_CPU] = {"CPU", UVA__MEMORY_PLAIN, UVA__EVENTS_NONE, 0},
    [ARROW_DEVICE_CUDA] = {"CUDA", UVA__MEMORY_DEVICE, UVA__EVENTS_CUDA,
                           ARROW_DEVICE_CUDA_HOST},
    [ARROW_DEVICE_CUDA_HOST] = {"CUDA_HOST", UVA__MEMORY_PINNED,
                                UVA__EVENTS_CUDA, 0},
    [ARROW_DEVICE_OPENCL] = {"OPENCL", UVA__MEMORY_DEVICE, UVA__EVENTS_OPENCL,
                             0},
    [ARROW_DEVICE_VULKAN] = {"VULKAN", UVA__MEMORY_DEVICE, UVA__EVENTS_VULKAN,
                             0},
    [ARROW_DEVICE_METAL] = {"METAL", UVA__MEMORY_DEVICE, UVA__EVENTS_METAL, 0},
    [ARROW_DEVICE_VPI] = {"VPI", UVA__MEMORY_DEVICE, UVA__EVENTS_NONE, 0},
    [ARROW_DEVICE_ROCM] = {"ROCM", UVA__MEMORY_DEVICE, UVA__EVENTS_HIP,
                           ARROW_DEVICE_ROCM_HOST},
    [ARROW_DEVICE_ROCM_HOST] = {"ROCM_HOST", UVA__MEMORY_PINNED,
                                UVA__EVENTS_HIP, 0},
    [ARROW_DEVICE_EXT_DEV] = {"EXT_DEV", UVA__MEMORY_DEVICE,
                              UVA__EVENTS_UNKNOWN, 0},
    [ARROW_DEVICE_CUDA_MANAGED] = {"CUDA_MANAGED", UVA__MEMORY_MANAGED,
                                   UVA__EVENTS_CUDA, ARROW_DEVICE_CUDA_HOST},
    [ARROW_DEVICE_ONEAPI] = {"ONEAPI", UVA__MEMORY_DEVICE, UVA__EVENTS_ONEAPI,
                             0},
    [ARROW_DEVICE_WEBGPU] = {"WEBGPU", UVA__MEMORY_DEVICE, UVA__EVENTS_NONE, 0},
    [ARROW_DEVICE_HEXAGON] = {"HEXAGON", UVA__MEMORY_DEVICE, UVA__EVENTS_NONE,
                              0},
};
