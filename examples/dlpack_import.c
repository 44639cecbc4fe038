/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a tensor of a library, by DLPack and without a copy, as a column: the
 * two rows of a tensor of 2 x 3 are lists of three numbers.
 *
 *     $ cc dlpack_import.c run.c $(pkg-config --cflags --libs uvarrow)
 *     $ ./a.out
 *     a column of +w:3
 *     1 2 3
 *     4 5 6
 *     the tensor is deleted
 */
#include <stdio.h>

#include "run.h"
#include "uvarrow/dlpack.h"

/* ---- the library -------------------------------------------------------- */

static void tensor_delete(DLManagedTensorVersioned *self)
{
    (void)self; /* its memory is static */
    printf("the tensor is deleted\n");
}

static DLManagedTensorVersioned *library_tensor(void)
{
    static float values[] = {1, 2, 3, 4, 5, 6};
    static int64_t shape[] = {2, 3};
    static DLManagedTensorVersioned tensor = {
        .version = {1, 0},
        .deleter = tensor_delete,
        .dl_tensor = {.data = values,
                      .device = {.device_type = kDLCPU},
                      .ndim = 2,
                      .dtype = {.code = kDLFloat, .bits = 32, .lanes = 1},
                      .shape = shape}};

    return &tensor;
}

/* ---- the program -------------------------------------------------------- */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *lists = &batch->data.array;
    const float *values = lists->children[0]->buffers[1];

    (void)ctx;
    printf("a column of %s\n", batch->schema->format);
    for (int64_t i = 0; i < lists->length; i++)
        printf("%g %g %g\n", (double)values[3 * i], (double)values[3 * i + 1],
               (double)values[3 * i + 2]);
    return 0;
}

int main(void)
{
    const struct uva_consumer to = {.on_batch = on_batch};
    DLManagedTensorVersioned *tensor = library_tensor();
    struct ArrowDeviceArray column;
    struct ArrowSchema schema;
    struct uva_runtime *rt;
    struct uva_error error;

    if (uva_array_from_dlpack(NULL, tensor, UVA_DLPACK_NO_SYNC, &schema,
                              &column, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        tensor->deleter(tensor); /* it is still ours */
        return 1;
    }
    if (uva_runtime_open(NULL, NULL, &rt, NULL) != 0)
        return 1;
    return run_to_end(rt, uva_stream_from_arrays(rt, &schema, &column, 1), &to);
}
