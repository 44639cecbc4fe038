/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the structs and constants of DLPack (AB-03). Compiled, not run, by
 * tests/abi/run, with our copy and with the copy in the pyarrow wheel, in front
 * of ours or alone. */
#include "uvarrow/dlpack_abi.h"

#include <stddef.h>

#ifdef __cplusplus
#define CHECK(what) static_assert(what, #what)
#else
#define CHECK(what) _Static_assert(what, #what)
#endif

#define AT(type, member, offset) CHECK(offsetof(type, member) == (offset))

CHECK(DLPACK_MAJOR_VERSION == 1);
CHECK(DLPACK_FLAG_BITMASK_READ_ONLY == 1);
CHECK(DLPACK_FLAG_BITMASK_IS_COPIED == 2);
CHECK(sizeof(DLDeviceType) == 4);
CHECK(kDLCPU == 1 && kDLCUDA == 2 && kDLCUDAHost == 3 && kDLOpenCL == 4);
CHECK(kDLVulkan == 7 && kDLMetal == 8 && kDLVPI == 9 && kDLROCM == 10);
CHECK(kDLROCMHost == 11 && kDLExtDev == 12 && kDLCUDAManaged == 13);
CHECK(kDLOneAPI == 14 && kDLWebGPU == 15 && kDLHexagon == 16);
CHECK(kDLInt == 0 && kDLUInt == 1 && kDLFloat == 2 && kDLOpaqueHandle == 3);
CHECK(kDLBfloat == 4 && kDLComplex == 5 && kDLBool == 6);

CHECK(sizeof(DLPackVersion) == 8);
AT(DLPackVersion, minor, 4);
CHECK(sizeof(DLDevice) == 8);
AT(DLDevice, device_id, 4);
CHECK(sizeof(DLDataType) == 4);
AT(DLDataType, code, 0);
AT(DLDataType, bits, 1);
AT(DLDataType, lanes, 2);
CHECK(sizeof(DLTensor) == 48);
AT(DLTensor, data, 0);
AT(DLTensor, device, 8);
AT(DLTensor, ndim, 16);
AT(DLTensor, dtype, 20);
AT(DLTensor, shape, 24);
AT(DLTensor, strides, 32);
AT(DLTensor, byte_offset, 40);
CHECK(sizeof(DLManagedTensor) == 64);
AT(DLManagedTensor, dl_tensor, 0);
AT(DLManagedTensor, manager_ctx, 48);
AT(DLManagedTensor, deleter, 56);
CHECK(sizeof(DLManagedTensorVersioned) == 80);
AT(DLManagedTensorVersioned, version, 0);
AT(DLManagedTensorVersioned, manager_ctx, 8);
AT(DLManagedTensorVersioned, deleter, 16);
AT(DLManagedTensorVersioned, flags, 24);
AT(DLManagedTensorVersioned, dl_tensor, 32);
