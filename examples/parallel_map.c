/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes a file on four workers, converts its distances from miles to
 * kilometres there too, and still receives them in order.
 *
 *     $ cc parallel_map.c integers.c column.c run.c \
 *         $(pkg-config --cflags --libs uvarrow-io)
 *     $ ./a.out flights.arrow | tail -2
 *     batch 5: 50000 flights, the first over 1718 km
 *     batch 6: 36776 flights, the first over 366 km
 */
#include <stdio.h>

#include "column.h"
#include "integers.h"
#include "run.h"
#include "uvarrow/io.h"

/* On the loop thread, before the first batch. */
static int find(void *ctx, const struct ArrowSchema *in,
                struct ArrowSchema *out, struct uva_error *error)
{
    int *column = ctx;

    *column = column_find(in, "distance");
    if (*column < 0)
        return uva_error_set(error, ENOENT, "no column of distances");
    return integers_schema(NULL, out, NULL);
}

/* On a worker, right after decoding; several calls at once. */
static int to_kilometres(void *ctx, struct uva_batch *in,
                         struct ArrowDeviceArray *out, struct uva_error *error)
{
    const struct ArrowArray *rows = &in->data.array;
    const struct ArrowArray *miles = rows->children[*(const int *)ctx];
    const int64_t *from = miles->buffers[1];
    int64_t *to = integers_new(rows->length, out);

    if (to == NULL)
        return uva_error_set(error, ENOMEM, "no memory for kilometres");
    from += rows->offset + miles->offset;
    for (int64_t i = 0; i < rows->length; i++)
        to[i] = from[i] * 1609 / 1000;
    return 0;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    printf("batch %lld: %lld flights, the first over %lld km\n",
           (long long)batch->ordinal, (long long)batch->data.array.length,
           (long long)*integers_of(&batch->data));
    return 0;
}

int main(int argc, char **argv)
{
    const struct uva_consumer to = {.on_batch = on_batch};
    struct uva_map kilometres = {.batch = to_kilometres, .schema = find};
    struct uva_runtime *rt;
    struct uva_stream *s;
    int column;

    if (uva_runtime_open(NULL, NULL, &rt, NULL) != 0)
        return 1;
    kilometres.ctx = &column;
    s = uva_stream_from_file(rt, argc > 1 ? argv[1] : NULL, NULL);
    uva_stream_map(s, &kilometres);
    uva_stream_parallel(s, &(struct uva_parallel){.workers = 4});
    return run_to_end(rt, s, &to);
}
