/* SPDX-License-Identifier: Apache-2.0 */
/* Every device type of the document has its row; 5 and 6 are not in it. */
#include "devices/builtin.h"

const struct uva__builtin uva__builtins[UVA__DEVICE_TYPES] = {
    [ARROW_DEVICE_CPU] = {"CPU", NULL, NULL},
    [ARROW_DEVICE_CUDA] = {"CUDA", "CUDA", &uva__cuda_ops},
    [ARROW_DEVICE_CUDA_HOST] = {"CUDA_HOST", "CUDA", &uva__cuda_host_ops},
    [ARROW_DEVICE_OPENCL] = {"OPENCL", "OPENCL", &uva__opencl_ops},
    [ARROW_DEVICE_VULKAN] = {"VULKAN", NULL, &uva__vulkan_ops},
    [ARROW_DEVICE_METAL] = {"METAL", NULL, NULL},
    [ARROW_DEVICE_VPI] = {"VPI", NULL, NULL},
    [ARROW_DEVICE_ROCM] = {"ROCM", "HIP", &uva__hip_ops},
    [ARROW_DEVICE_ROCM_HOST] = {"ROCM_HOST", "HIP", &uva__hip_host_ops},
    [ARROW_DEVICE_EXT_DEV] = {"EXT_DEV", NULL, NULL},
    [ARROW_DEVICE_CUDA_MANAGED] = {"CUDA_MANAGED", "CUDA",
                                   &uva__cuda_managed_ops},
    [ARROW_DEVICE_ONEAPI] = {"ONEAPI", "SYCL", NULL},
    [ARROW_DEVICE_WEBGPU] = {"WEBGPU", NULL, NULL},
    [ARROW_DEVICE_HEXAGON] = {"HEXAGON", NULL, NULL},
};
