/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by a mask, inside of a map, and all buffers of the result with their
 * sizes, as a binding needs them to make typed arrays.
 *
 *     $ ./11_select
 *     334 rows, 3 buffers, 2672 bytes
 */
#include <inttypes.h>
#include <stdio.h>

#include "data.h"

static int every_third(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    const int64_t rows = in->data.array.length;
    const int64_t *values = data_values(&in->data.array, 8);
    uint8_t *bits = calloc((size_t)rows / 8 + 1, 1);
    int code;

    (void)ctx;
    if (bits == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a mask");
    for (int64_t row = 0; row < rows; row++)
        if (values[row] % 3 == 0)
            bits[row / 8] |= (uint8_t)(1 << row % 8);
    code = uva_array_select(in->schema, &in->data, bits, out, error);
    free(bits);
    return code;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct uva_buffer buffers[8];
    int64_t bytes = 0;
    size_t count = 8;
    const int code =
        uva_array_buffers(batch->schema, &batch->data, buffers, &count);

    (void)ctx;
    if (code != 0 || count > 8)
        return code != 0 ? code : EMSGSIZE;
    for (size_t i = 0; i < count; i++)
        bytes += buffers[i].size_bytes;
    printf("%" PRId64 " rows, %zu buffers, %" PRId64 " bytes\n",
           batch->data.array.length, count, bytes);
    return 0;
}

int main(void)
{
    struct uva_error error;
    struct uva_runtime *rt;
    struct uva_stream *s;
    int code = uva_runtime_open(NULL, NULL, &rt, &error);

    if (code != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    s = data_stream(rt, 8, 1, 1000);
    uva_stream_map(s, &(struct uva_map){.batch = every_third});
    code = uva_stream_for_each(s, &(struct uva_consumer){.on_batch = on_batch},
                               &error);
    uva_stream_release(s);
    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    return uva_runtime_join(rt, UVA_FOREVER) != 0 || code != 0;
}
