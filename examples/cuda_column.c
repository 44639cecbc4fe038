/* SPDX-License-Identifier: Apache-2.0 */
/* Columns in the memory of a CUDA device. */
#include <stdlib.h>

#include "cuda_driver.h"

/* Called on a thread of the library, when the kernels that use it have run. */
static void column_release(struct ArrowArray *column)
{
    void *context;

    if (cuda.cuCtxPushCurrent_v2(cuda.context) == 0) {
        (void)cuda.cuMemFree_v2((uintptr_t)column->buffers[1]);
        (void)cuda.cuCtxPopCurrent_v2(&context);
    }
    free(column->private_data);
    column->release = NULL;
}

int cuda_column(int64_t rows, struct ArrowArray *out)
{
    const void **buffers = calloc(2, sizeof(*buffers)); /* no nulls */
    uintptr_t memory;

    if (buffers == NULL ||
        cuda.cuMemAlloc_v2(&memory, (size_t)rows * sizeof(int64_t)) != 0) {
        free(buffers);
        return ENOMEM;
    }
    buffers[1] = (const void *)memory;
    *out = (struct ArrowArray){.length = rows,
                               .n_buffers = 2,
                               .buffers = buffers,
                               .private_data = buffers,
                               .release = column_release};
    return 0;
}
