/* SPDX-License-Identifier: Apache-2.0 */
/* Columns that a kernel fills, on any OpenCL device. Each batch is passed on
 * with an event, before its kernel has started, and is delivered when that is
 * complete: for a library that knows nothing of events. No thread waits.
 *
 *     $ cc opencl_columns.c opencl.c opencl_column.c integers.c run.c \
 *          $(pkg-config --cflags --libs uvarrow OpenCL)
 *     $ ./a.out
 *     batch 0: 65536 rows are complete, on the device
 *     batch 1: 65536 rows are complete, on the device
 */
#include "opencl.h"

#include <inttypes.h>
#include <stdio.h>

#include "integers.h"
#include "run.h"

enum { BATCHES = 2, ROWS = 65536 };

static const char source[] = "kernel void triple(global long *y)\n"
                             "{\n"
                             "    size_t i = get_global_id(0);\n"
                             "    y[i - get_global_offset(0)] = 3 * (long)i;\n"
                             "}\n";

/* Gives a batch that is filled later: its event is after its kernel. */
static int batch_make(struct uva_runtime *rt, struct opencl *cl, int64_t first,
                      struct ArrowDeviceArray *out, struct uva_error *error)
{
    const struct ArrowArray *columns[] = {&out->array};
    int code = EIO;

    uva_array_clear(out);
    out->device_type = ARROW_DEVICE_OPENCL;
    if (opencl_column(cl, ROWS, &out->array) != 0)
        return uva_error_set(error, ENOMEM, "no memory on the device");
    uva_error_set(error, EIO, "the kernel could not be queued");
    if (opencl_run(cl, cl->queue, first, ROWS, columns, 1) == 0)
        code = uva_array_record(rt, out, cl->queue, error);
    if (code != 0)
        uva_array_release(out);
    return code;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    printf("batch %" PRId64 ": %" PRId64 " rows are complete, on the device\n",
           batch->ordinal, batch->data.array.length);
    return 0;
}

int main(void)
{
    struct ArrowDeviceArray batches[BATCHES];
    struct ArrowSchema schema;
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;
    struct opencl cl;
    int code;

    if (opencl_open(&cl, source, "triple") != 0) {
        fprintf(stderr, "no OpenCL device can be used here\n");
        return 77; /* the exit code of a skipped test */
    }
    code = uva_runtime_open(NULL, NULL, &rt, &error);
    for (int k = 0; k < BATCHES && code == 0; k++)
        code = batch_make(rt, &cl, (int64_t)k * ROWS, &batches[k], &error);
    if (code != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    (void)integers_schema(NULL, &schema, NULL);
    s = uva_stream_from_arrays(rt, &schema, batches, BATCHES);
    uva_stream_ready(s, NULL);
    code = run_to_end(rt, s, &(struct uva_consumer){.on_batch = on_batch});
    opencl_close(&cl);
    return code;
}
