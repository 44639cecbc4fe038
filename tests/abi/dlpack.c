/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that device types have the numbers of DLPack (AB-03). Compiled, not
 * run, by tests/abi/run, with the copy of DLPack's header in the pyarrow wheel.
 */
#include <arrow/c/dlpack_abi.h>

#include "uvarrow/arrow_abi.h"

#ifdef __cplusplus
#define SAME(ours, theirs) static_assert(ours == (int)(theirs), #ours)
#else
#define SAME(ours, theirs) _Static_assert(ours == (int)(theirs), #ours)
#endif

SAME(ARROW_DEVICE_CPU, kDLCPU);
SAME(ARROW_DEVICE_CUDA, kDLCUDA);
SAME(ARROW_DEVICE_CUDA_HOST, kDLCUDAHost);
SAME(ARROW_DEVICE_OPENCL, kDLOpenCL);
SAME(ARROW_DEVICE_VULKAN, kDLVulkan);
SAME(ARROW_DEVICE_METAL, kDLMetal);
SAME(ARROW_DEVICE_VPI, kDLVPI);
SAME(ARROW_DEVICE_ROCM, kDLROCM);
SAME(ARROW_DEVICE_ROCM_HOST, kDLROCMHost);
SAME(ARROW_DEVICE_EXT_DEV, kDLExtDev);
SAME(ARROW_DEVICE_CUDA_MANAGED, kDLCUDAManaged);
SAME(ARROW_DEVICE_ONEAPI, kDLOneAPI);
SAME(ARROW_DEVICE_WEBGPU, kDLWebGPU);
SAME(ARROW_DEVICE_HEXAGON, kDLHexagon);
