/* SPDX-License-Identifier: Apache-2.0 */
/* The program of the projects in cmake, meson and make: three numbers, as a
 * stream on a loop, added up. It prints "3 rows, their sum is 42". */
#include <stdio.h>

#include "uvarrow/uvarrow.h"

static void keep_schema(struct ArrowSchema *schema)
{
    schema->release = NULL; /* no memory to free */
}

static void keep_array(struct ArrowArray *array)
{
    array->release = NULL;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *array = &batch->data.array;
    const int64_t *values = array->buffers[1];
    int64_t *sum = ctx;

    for (int64_t i = 0; i < array->length; i++)
        *sum += values[array->offset + i];
    printf("%d rows, their sum is %d\n", (int)array->length, (int)*sum);
    return 0;
}

int main(void)
{
    static const int64_t numbers[] = {3, 14, 25};
    static const void *buffers[] = {NULL, numbers};
    struct ArrowSchema schema = {
        .format = "l", .name = "n", .release = keep_schema};
    struct ArrowArray array = {
        .length = 3, .n_buffers = 2, .buffers = buffers, .release = keep_array};
    int64_t sum = 0;
    struct ArrowDeviceArray data;
    struct uva_error error;
    struct uva_runtime *rt;
    struct uva_stream *s;
    int code = uva_runtime_open(NULL, NULL, &rt, &error);

    if (code != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    uva_array_from_cpu(&array, &data);
    s = uva_stream_from_arrays(rt, &schema, &data, 1);
    code = uva_stream_for_each(
        s, &(struct uva_consumer){.on_batch = on_batch, .ctx = &sum}, &error);
    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(s);
    uva_runtime_join(rt, UVA_FOREVER);
    return code != 0;
}
