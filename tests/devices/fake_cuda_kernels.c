/* SPDX-License-Identifier: Apache-2.0 */
/* Further needs of programs with kernels: three kernels, which are known by
 * their names. `spin` takes its first argument as nanoseconds that it runs, and
 * then stores its third one in the word to which the second one points, if any.
 * `boom` fails the device. `square` is the kernel of examples/cuda_kernel.c: it
 * takes the squares of int64 from its first argument and stores them in the
 * second one; the third one is their number. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "devices/fake_control.h"
#include "devices/fake_gpu.h"

enum { TRAP = 719 };

FAKE_API int cuGetErrorName(int code, const char **name);
FAKE_API int cuDeviceGetName(char *name, int size, int device);
FAKE_API int cuDeviceGetAttribute(int *value, int attribute, int device);
FAKE_API int cuCtxSynchronize(void);
FAKE_API int cuEventSynchronize(void *event);
FAKE_API int cuMemHostGetDevicePointer_v2(unsigned long long *out, void *memory,
                                          unsigned flags);
FAKE_API int cuStreamWriteValue32_v2(void *stream, unsigned long long word,
                                     uint32_t value, unsigned flags);
FAKE_API int cuModuleLoadData(void **module, const void *image);
FAKE_API int cuModuleGetFunction(void **function, void *module,
                                 const char *name);
FAKE_API int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y,
                            unsigned grid_z, unsigned block_x, unsigned block_y,
                            unsigned block_z, unsigned shared, void *stream,
                            void **arguments, void **extra);

enum { SPIN, BOOM, SQUARE };

static const char kernels[][7] = {
    [SPIN] = "spin", [BOOM] = "boom", [SQUARE] = "square"};

int cuGetErrorName(int code, const char **name)
{
    static _Thread_local char text[32];

    (void)snprintf(text, sizeof(text), "CUDA_ERROR_%d", code);
    *name = code == 0 ? "CUDA_SUCCESS" : text;
    return 0;
}

int cuDeviceGetName(char *name, int size, int device)
{
    (void)snprintf(name, (size_t)size, "double of device %d", device);
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)attribute;
    (void)device;
    *value = 1;
    return fake_begin(0);
}

int cuCtxSynchronize(void)
{
    FAKE_LOCKED();
    const int code = fake_begin(FAKE_INSIDE | FAKE_UNSAFE | FAKE_REPORTS);

    if (code != 0)
        return code;
    fake_drain();
    return fake_sticky();
}

int cuEventSynchronize(void *event)
{
    FAKE_LOCKED();
    const int code = fake_begin(FAKE_INSIDE | FAKE_UNSAFE | FAKE_REPORTS);

    return code != 0 ? code : fake_event_synchronize(event);
}

int cuMemHostGetDevicePointer_v2(unsigned long long *out, void *memory,
                                 unsigned flags)
{
    (void)flags;
    *out = (uintptr_t)memory;
    return 0;
}

int cuStreamWriteValue32_v2(void *stream, unsigned long long word,
                            uint32_t value, unsigned flags)
{
    FAKE_LOCKED();
    const int code = fake_begin(FAKE_INSIDE);

    (void)flags;
    return code != 0
               ? code
               : fake_stream_store(stream, (void *)(uintptr_t)word, value);
}

int cuModuleLoadData(void **module, const void *image)
{
    (void)image;
    *module = (void *)(uintptr_t)&kernels;
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        if (strcmp(kernels[i], name) == 0) {
            *function = (void *)(uintptr_t)kernels[i];
            return 0;
        }
    return FAKE_INVALID_VALUE;
}

static void square(void *target, const void *source, size_t count)
{
    const int64_t *from = source;
    int64_t *to = target;

    for (size_t i = 0; i < count; i++)
        to[i] = from[i] * from[i];
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y,
                   unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, void *stream,
                   void **arguments, void **extra)
{
    FAKE_LOCKED();
    int code = fake_begin(FAKE_INSIDE);

    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared, (void)extra;
    if (code != 0)
        return code;
    if (function == (const void *)kernels[BOOM])
        return fake_stream_fail(stream, TRAP);
    if (function == (const void *)kernels[SQUARE])
        return fake_stream_compute(stream, square, *(void **)arguments[1],
                                   *(void **)arguments[0],
                                   *(uint32_t *)arguments[2]);
    code = fake_stream_spin(stream, *(uint64_t *)arguments[0]);
    if (code != 0 || *(uint64_t *)arguments[1] == 0)
        return code;
    return fake_stream_store(stream,
                             (void *)(uintptr_t) * (uint64_t *)arguments[1],
                             *(uint32_t *)arguments[2]);
}
