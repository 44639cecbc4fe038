/* SPDX-License-Identifier: Apache-2.0 */
/* A sample of a file: the first of each so many rows of a batch, whatever its
 * columns are, as CSV. A map selects the rows by a mask, on several workers at
 * once.
 *
 *     $ cc sample_rows.c print.c $(pkg-config --cflags --libs uvarrow-io libuv)
 *     $ ./a.out flights.arrow 40000 | cut -d, -f 1-4,10-12 | tail -3
 *     2013,6,30,1505,UA,1077,N77296
 *     2013,8,11,1617,EV,4352,N12201
 *     2013,8,21,,EV,5714,N836AS
 */
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "print.h"

static int sample(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                  struct uva_error *error)
{
    const int64_t rows = in->data.array.length, step = *(int64_t *)ctx;
    uint8_t *bits = calloc((size_t)rows / 8 + 1, 1);
    int code;

    if (bits == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a mask");
    for (int64_t row = 0; row < rows; row += step)
        bits[row / 8] |= (uint8_t)(1 << row % 8);
    code = uva_array_select(in->schema, &in->data, bits, out, error);
    free(bits);
    return code;
}

int main(int argc, char **argv)
{
    int64_t step = argc == 3 ? atoll(argv[2]) : 0;
    struct uva_runtime *rt;
    struct uva_stream *s;

    if (step <= 0 || uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s FILE STEP\n", argv[0]), 2;
    s = uva_stream_from_file(rt, argv[1], NULL);
    uva_stream_map(s, &(struct uva_map){.batch = sample, .ctx = &step});
    uva_stream_parallel(s, NULL);
    return print_to_end(rt, s, UVA_FORMAT_CSV);
}
