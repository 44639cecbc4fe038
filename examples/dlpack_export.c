/* SPDX-License-Identifier: Apache-2.0 */
/* Hands a column to a library of tensors, by DLPack and without a copy: here to
 * a function that computes a mean, elsewhere to PyTorch, JAX or CuPy.
 *
 *     $ cc dlpack_export.c column.c run.c \
 *         $(pkg-config --cflags --libs uvarrow-io)
 *     $ ./a.out flights.arrow | tail -1
 *     36776 flights of 1046 miles
 */
#include <inttypes.h>
#include <stdio.h>

#include "column.h"
#include "run.h"
#include "uvarrow/dlpack.h"
#include "uvarrow/io.h"

/* The library: it takes the tensor, whose deleter releases the column. */
static int64_t library_mean(DLManagedTensorVersioned *tensor)
{
    const DLTensor *t = &tensor->dl_tensor;
    const int64_t *values =
        (const void *)((const char *)t->data + t->byte_offset);
    int64_t sum = 0, mean;

    for (int64_t i = 0; i < t->shape[0]; i++)
        sum += values[i];
    mean = t->shape[0] > 0 ? sum / t->shape[0] : 0;
    tensor->deleter(tensor);
    return mean;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const int place = column_find(batch->schema, "distance");
    DLManagedTensorVersioned *tensor;
    struct ArrowDeviceArray column;
    struct uva_error error;
    int code;

    (void)ctx;
    if (place < 0)
        return ENOENT;
    uva_array_from_cpu(batch->data.array.children[place], &column); /* moved */
    column.array.offset += batch->data.array.offset;
    column.array.length = batch->data.array.length;
    code = uva_array_to_dlpack(NULL, batch->schema->children[place], &column,
                               UVA_DLPACK_NO_SYNC, &tensor, &error);
    if (code != 0) { /* nulls, or a type that no tensor has */
        fprintf(stderr, "%s\n", error.message);
        uva_array_release(&column);
        return code;
    }
    printf("%" PRId64 " flights of %" PRId64 " miles\n",
           batch->data.array.length, library_mean(tensor));
    return 0;
}

int main(int argc, char **argv)
{
    const struct uva_consumer to = {.on_batch = on_batch};
    struct uva_runtime *rt;

    if (argc != 2 || uva_runtime_open(NULL, NULL, &rt, NULL) != 0)
        return 2;
    return run_to_end(rt, uva_stream_from_file(rt, argv[1], NULL), &to);
}
