/* SPDX-License-Identifier: Apache-2.0 */
/* Every device type of the document has its row; 5 and 6 are not in it. */
#include "devices/builtin.h"

/* The document knows no event of these (EV-09). */
static const char EVENTLESS[] = "events of this type are NULL (EV-09)";

static const char BY_HAND[] = "uva_device_register() makes it known";

const struct uva__builtin uva__builtins[UVA__DEVICE_TYPES] = {
    [ARROW_DEVICE_CPU] = {"CPU", NULL, NULL, NULL, NULL},
    [ARROW_DEVICE_CUDA] = {"CUDA", "CUDA", &uva__cuda_ops, NULL,
                           &uva__cuda_dialect},
    [ARROW_DEVICE_CUDA_HOST] = {"CUDA_HOST", "CUDA", &uva__cuda_host_ops, NULL,
                                &uva__cuda_dialect},
    [ARROW_DEVICE_OPENCL] = {"OPENCL", "OPENCL", &uva__opencl_ops, NULL,
                             &uva__opencl_dialect},
    [ARROW_DEVICE_VULKAN] = {"VULKAN", NULL, &uva__vulkan_ops, NULL,
                             &uva__vulkan_dialect},
    [ARROW_DEVICE_METAL] = {"METAL", NULL, NULL,
                            "there is no Metal on this system; "
                            "uva_device_register() makes something else known",
                            NULL},
    [ARROW_DEVICE_VPI] = {"VPI", NULL, NULL, EVENTLESS, NULL},
    [ARROW_DEVICE_ROCM] = {"ROCM", "HIP", &uva__hip_ops, NULL,
                           &uva__hip_dialect},
    [ARROW_DEVICE_ROCM_HOST] = {"ROCM_HOST", "HIP", &uva__hip_host_ops, NULL,
                                &uva__hip_dialect},
    [ARROW_DEVICE_EXT_DEV] = {"EXT_DEV", NULL, NULL, BY_HAND, NULL},
    [ARROW_DEVICE_CUDA_MANAGED] = {"CUDA_MANAGED", "CUDA",
                                   &uva__cuda_managed_ops, NULL,
                                   &uva__cuda_dialect},
    [ARROW_DEVICE_ONEAPI] = {"ONEAPI", "ONEAPI", &uva__oneapi_ops, NULL, NULL},
    [ARROW_DEVICE_WEBGPU] = {"WEBGPU", NULL, NULL, EVENTLESS, NULL},
    [ARROW_DEVICE_HEXAGON] = {"HEXAGON", NULL, NULL, EVENTLESS, NULL},
};
