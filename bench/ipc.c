/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of about 800 KB, encoded as Arrow IPC: the header and the list of
 * buffers, and the release of both, 64 of them by one call. There is no write
 * to a file or a socket. `window` is the number of columns of integers, `more`
 * of texts with nulls and of dictionaries with 16 values. */
#include <stdlib.h>
#include <string.h>

#include "suite.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

enum { ROWS = 10000, MOST = 16, WORDS = 16, WORD = 12, AT_ONCE = 64 };

/* The data: all columns of a kind share it. */
static int64_t numbers[ROWS];
static int32_t offsets[ROWS + 1];
static char letters[ROWS * WORD];
static uint8_t valid[ROWS / 8];
static int8_t indices[ROWS];

static void data_fill(void)
{
    for (int32_t i = 0; i < ROWS; i++) {
        numbers[i] = i;
        offsets[i + 1] = (i + 1) * WORD;
        indices[i] = (int8_t)(i % WORDS);
    }
    memset(letters, 'x', sizeof(letters));
    memset(valid, 0xf7, sizeof(valid));
}

/* A batch; its structs are used again and again. */
struct ipc_batch {
    struct ArrowSchema schema, fields[MOST], values_schema;
    struct ArrowSchema *field_list[MOST];
    struct ArrowArray columns[MOST], values;
    struct ArrowArray *column_list[MOST];
    const void *buffers[MOST][3];
    const void *none[1];
};

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

/* Adds a column. */
static void ipc_batch_add(struct ipc_batch *batch, const char *format,
                          const void *first, const void *second)
{
    const int64_t i = batch->schema.n_children++;
    const bool texts = *format == 'u';

    batch->fields[i] = (struct ArrowSchema){
        .format = format, .name = "column", .release = release_schema};
    batch->field_list[i] = &batch->fields[i];
    batch->buffers[i][0] = texts ? valid : NULL;
    batch->buffers[i][1] = first;
    batch->buffers[i][2] = second;
    batch->columns[i] = (struct ArrowArray){.length = ROWS,
                                            .null_count = texts ? -1 : 0,
                                            .n_buffers = texts ? 3 : 2,
                                            .buffers = batch->buffers[i],
                                            .release = release_array};
    batch->column_list[i] = &batch->columns[i];
}

/* Makes the last column a column of indices. */
static void ipc_batch_index(struct ipc_batch *batch)
{
    const int64_t i = batch->schema.n_children;

    ipc_batch_add(batch, "c", indices, NULL);
    batch->values_schema = (struct ArrowSchema){
        .format = "u", .name = "", .release = release_schema};
    batch->fields[i].dictionary = &batch->values_schema;
    batch->buffers[MOST - 1][1] = offsets;
    batch->buffers[MOST - 1][2] = letters;
    batch->values = (struct ArrowArray){.length = WORDS,
                                        .n_buffers = 3,
                                        .buffers = batch->buffers[MOST - 1],
                                        .release = release_array};
    batch->columns[i].dictionary = &batch->values;
}

static struct ipc_batch *ipc_batch_new(const struct bench_case *self)
{
    struct ipc_batch *batch = calloc(1, sizeof(*batch));

    bench_check(batch != NULL, "memory");
    data_fill();
    batch->schema = (struct ArrowSchema){.format = "+s",
                                         .children = batch->field_list,
                                         .release = release_schema};
    for (int32_t i = 0; i < self->window; i++)
        ipc_batch_add(batch, "l", numbers, NULL);
    for (int32_t i = 0; i < self->more / 10; i++)
        ipc_batch_add(batch, "u", offsets, letters);
    if (self->more % 10 > 0)
        ipc_batch_index(batch);
    return batch;
}

static void array_make(struct ipc_batch *batch, struct ArrowDeviceArray *out)
{
    *out = (struct ArrowDeviceArray){.device_type = ARROW_DEVICE_CPU,
                                     .device_id = -1};
    out->array = (struct ArrowArray){.length = ROWS,
                                     .n_buffers = 1,
                                     .n_children = batch->schema.n_children,
                                     .buffers = batch->none,
                                     .children = batch->column_list,
                                     .release = release_array};
}

static double run_encode(const struct bench_case *self,
                         const struct bench_how *how)
{
    struct ipc_batch *batch = ipc_batch_new(self);
    struct uva_part part;
    double begun = bench_now_ns(how);

    for (int64_t i = 0; i < how->batches;) {
        struct ArrowDeviceArray arrays[AT_ONCE];
        size_t n = 0;

        for (; n < AT_ONCE && i < how->batches; n++, i++)
            array_make(batch, &arrays[n]);
        bench_check(uva_array_encode(&batch->schema, arrays, n, NULL, &part,
                                     NULL) == 0 &&
                        part.bytes > 700000 * (int64_t)n,
                    "batches");
        uva_part_release(&part);
    }
    begun = bench_now_ns(how) - begun;
    free(batch);
    return begun;
}

static const struct bench_case cases[] = {
    {"ipc/numbers", 100000, run_encode, 10, 0, 0},
    {"ipc/texts", 100000, run_encode, 5, 20, 0},
    {"ipc/dictionary", 100000, run_encode, 10, 1, 0},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
