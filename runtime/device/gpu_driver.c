/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA and HIP give their errors the same numbers, so that one table of codes
 * serves both. */
#include "device/gpu_driver.h"

#include <errno.h>

int uva__gpu_open(struct uva__gpu *gpu, const struct uva__gpu_vendor *vendor,
                  const char *path, void *own, struct uva_error *error)
{
    void *handle;
    int code = uva__shared_library_open(&vendor->library, path, &handle, error);

    gpu->vendor = vendor;
    if (code == 0)
        code =
            uva__shared_library_resolve(&vendor->library, handle, vendor->calls,
                                        vendor->n_calls, &gpu->calls, error);
    if (code == 0)
        code = uva__shared_library_resolve(
            &vendor->library, handle, vendor->own, vendor->n_own, own, error);
    return code;
}

static int errno_of(int code)
{
    switch (code) {
    case UVA__GPU_OUT_OF_MEMORY:
        return ENOMEM;
    case UVA__GPU_STUB_LIBRARY:
        return ENOTSUP;
    case UVA__GPU_OLD_DRIVER:
    case UVA__GPU_DRIVER_MISMATCH:
        return ENOSYS;
    case UVA__GPU_NOT_INITIALIZED:
    case UVA__GPU_NO_DEVICE:
    case UVA__GPU_INVALID_DEVICE:
    case UVA__GPU_INVALID_CONTEXT:
    case UVA__GPU_CONTEXT_DESTROYED:
        return ENODEV;
    default:
        return EIO;
    }
}

int uva__gpu_failed(struct uva__gpu *gpu, const char *call, int code,
                    struct uva_error *error)
{
    if (gpu->vendor->forget != NULL)
        gpu->vendor->forget(gpu);
    return uva__shared_library_failed(error, errno_of(code),
                                      gpu->vendor->library.vendor, call, code);
}

int uva__gpu_result(struct uva__gpu *gpu, size_t call, int code,
                    struct uva_error *error)
{
    const struct uva__symbol *symbol = gpu->vendor->calls;

    if (code == 0)
        return 0;
    while (symbol->offset != call)
        symbol++;
    return uva__gpu_failed(gpu, symbol->name, code, error);
}
