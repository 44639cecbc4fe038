/* SPDX-License-Identifier: Apache-2.0 */
/* A batch is one block of memory, which begins with its list of buffers. */
#include "integers.h"

#include <stdlib.h>

static void array_release(struct ArrowArray *array)
{
    free(array->private_data);
    array->release = NULL;
}

int64_t *integers_new(int64_t length, struct ArrowDeviceArray *out)
{
    const size_t size = (size_t)length * sizeof(int64_t);
    const void **buffers = calloc(1, 2 * sizeof(*buffers) + size);
    struct ArrowArray array = {.length = length,
                               .n_buffers = 2,
                               .buffers = buffers,
                               .private_data = buffers,
                               .release = array_release};

    if (buffers == NULL)
        return NULL;
    buffers[1] = buffers + 2; /* buffers[0] is NULL: no nulls */
    uva_array_from_cpu(&array, out);
    return (int64_t *)(void *)(buffers + 2);
}

const int64_t *integers_of(const struct ArrowDeviceArray *batch)
{
    return (const int64_t *)batch->array.buffers[1] + batch->array.offset;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL; /* no memory to free */
}

int integers_schema(void *ctx, struct ArrowSchema *out, struct uva_error *error)
{
    (void)ctx, (void)error;
    *out = (struct ArrowSchema){
        .format = "l", /* int64 */ .name = "n", .release = schema_release};
    return 0;
}

/* Without memory the last batch is a released one, and the stream fails. */
struct uva_stream *integers_stream(struct uva_runtime *rt, size_t batches,
                                   int64_t rows)
{
    struct ArrowDeviceArray *arrays = calloc(batches, sizeof(*arrays));
    struct uva_stream *s;
    struct ArrowSchema schema;

    (void)integers_schema(NULL, &schema, NULL);
    for (size_t k = 0; arrays != NULL && k < batches; k++) {
        int64_t *values = integers_new(rows, &arrays[k]);
        for (int64_t i = 0; values != NULL && i < rows; i++)
            values[i] = (int64_t)k * rows + i;
    }
    s = uva_stream_from_arrays(rt, &schema, arrays, batches);
    free(arrays);
    return s;
}
