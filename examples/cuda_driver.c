/* SPDX-License-Identifier: Apache-2.0 */
/* The device and its kernel; cuda_column.c makes the columns. */
#include "cuda_driver.h"

#include <dlfcn.h>
#include <stdlib.h>

enum { BLOCK = 256, NON_BLOCKING = 1 };

struct cuda cuda;

static int driver_open(void)
{
    const char *path = getenv("UVA_CUDA_LIBRARY");
    void *library =
        dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    bool has_all = library != NULL;

#define RESOLVE(name, types)                                                   \
    if (has_all) {                                                             \
        void *found = dlsym(library, #name);                                   \
        memcpy(&cuda.name, &found, sizeof(found));                             \
        has_all = found != NULL;                                               \
    }
    CUDA_FUNCTIONS(RESOLVE)
    return has_all ? 0 : ENODEV;
}

int cuda_open(const char *ptx, const char *kernel)
{
    void *module;
    int device;

    if (driver_open() != 0 || cuda.cuInit(0) != 0 ||
        cuda.cuDeviceGet(&device, 0) != 0)
        return ENODEV;
    if (cuda.cuDevicePrimaryCtxRetain(&cuda.context, device) != 0 ||
        cuda.cuCtxSetCurrent(cuda.context) != 0 ||
        cuda.cuStreamCreate(&cuda.stream, NON_BLOCKING) != 0 ||
        cuda.cuModuleLoadData(&module, ptx) != 0 ||
        cuda.cuModuleGetFunction(&cuda.kernel, module, kernel) != 0)
        return EIO;
    return 0;
}

int cuda_run(void *stream, const struct ArrowArray *from,
             const struct ArrowArray *to)
{
    const void *x = from->buffers[1], *y = to->buffers[1];
    unsigned rows = (unsigned)from->length;
    void *arguments[] = {(void *)&x, (void *)&y, &rows};

    if (cuda.cuLaunchKernel(cuda.kernel, (rows + BLOCK - 1) / BLOCK, 1, 1,
                            BLOCK, 1, 1, 0, stream, arguments, NULL) != 0)
        return EIO;
    return 0;
}
