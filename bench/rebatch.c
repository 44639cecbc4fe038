/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of other sizes: 1,048,576 rows are split to 1,024, without a copy,
 * and batches of 1,024 rows are joined to 65,536, which copies once, against
 * memcpy() by hand. `window` is the number of columns, of int64; a figure is
 * for a batch of 1,024 rows. */
#include <errno.h>
#include <stdlib.h>

#include "host.h"

enum {
    ROWS = 1024,         /* of a small batch */
    LARGE = 1024 * ROWS, /* rows of a split batch */
    JOINED = 64 * ROWS,  /* rows of a joined batch */
    COLUMNS = 8,
    KINDS = 16,         /* small batches that differ in their data */
    LARGE_AT_ONCE = 16, /* large batches of one stream */
    AT_ONCE = 4096      /* arrays of one stream */
};

/* ---- data --------------------------------------------------------------- */

static int64_t values[LARGE]; /* of all columns of large batches */
static int64_t parts[COLUMNS][KINDS * ROWS]; /* of small ones */

/* The structs of a batch of shared data; a release frees no memory. */
struct block {
    struct ArrowArray columns[COLUMNS];
    struct ArrowArray *children[COLUMNS];
    const void *buffers[COLUMNS][2];
};

static const void *no_buffers[1];
static struct block large, small[KINDS];

static void keep(struct ArrowArray *array)
{
    array->release = NULL;
}

static void block_give(struct block *block, int32_t columns, int64_t rows,
                       struct ArrowDeviceArray *out)
{
    for (int32_t k = 0; k < columns; k++) {
        block->columns[k] = (struct ArrowArray){.length = rows,
                                                .n_buffers = 2,
                                                .buffers = block->buffers[k],
                                                .release = keep};
        block->children[k] = &block->columns[k];
    }
    *out = (struct ArrowDeviceArray){.array = {.length = rows,
                                               .n_buffers = 1,
                                               .buffers = no_buffers,
                                               .n_children = columns,
                                               .children = block->children,
                                               .release = keep},
                                     .device_id = -1,
                                     .device_type = ARROW_DEVICE_CPU};
}

static void blocks_init(void)
{
    for (int64_t i = 0; i < LARGE; i++)
        values[i] = i;
    for (int k = 0; k < COLUMNS; k++) {
        large.buffers[k][1] = values;
        for (int i = 0; i < KINDS * ROWS; i++)
            parts[k][i] = i * COLUMNS + k;
        for (int j = 0; j < KINDS; j++)
            small[j].buffers[k][1] = parts[k] + j * ROWS;
    }
}

static struct ArrowSchema fields[COLUMNS];
static struct ArrowSchema *field_pointers[COLUMNS];

static void keep_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void schema_give(int32_t columns, struct ArrowSchema *out)
{
    for (int32_t k = 0; k < columns; k++) {
        fields[k] = (struct ArrowSchema){
            .format = "l", .name = "n", .release = keep_schema};
        field_pointers[k] = &fields[k];
    }
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = columns,
                                .children = field_pointers,
                                .release = keep_schema};
}

/* ---- the streams -------------------------------------------------------- */

struct sums {
    struct host host; /* first: host_on_done() casts to it */
    int64_t rows, batches;
    int64_t first; /* sum of the first items of all columns of all batches */
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *array = &batch->data.array;
    struct sums *sums = ctx;

    for (int64_t k = 0; k < array->n_children; k++) {
        const struct ArrowArray *column = array->children[k];
        const int64_t *items = column->buffers[1];

        sums->first += items[column->offset];
    }
    sums->rows += array->length;
    sums->batches++;
    return 0;
}

static int on_rows(void *ctx, struct uva_batch *batch)
{
    struct sums *sums = ctx;

    sums->rows += batch->data.array.length;
    sums->batches++;
    return 0;
}

/* Runs `stream`, and releases it. Returns the time that took. */
static double sums_run(struct sums *sums, struct uva_stream *stream,
                       int (*take)(void *ctx, struct uva_batch *batch))
{
    double begun;

    sums->host.open = 1;
    begun = bench_now_ns(sums->host.how);
    bench_check(uva_stream_for_each(
                    stream,
                    &(struct uva_consumer){
                        .on_batch = take, .on_done = host_on_done, .ctx = sums},
                    NULL) == 0,
                "for_each");
    begun = host_run(&sums->host) - begun;
    uva_stream_release(stream);
    return begun;
}

static double stream_run(struct sums *sums, const struct bench_case *self,
                         struct ArrowDeviceArray *arrays, size_t count,
                         int64_t rows)
{
    const struct uva_rebatch size = {.rows = rows};
    struct ArrowSchema schema;
    struct uva_stream *stream;

    schema_give(self->window, &schema);
    stream = uva_stream_from_arrays(sums->host.runtime, &schema, arrays, count);
    if (rows > 0)
        bench_check(uva_stream_rebatch(stream, &size) == 0, "rebatch");
    return sums_run(sums, stream, on_batch);
}

/* Splits large batches, which share one block of data. */
static double run_split(const struct bench_case *self,
                        const struct bench_how *how)
{
    const int64_t each = LARGE_AT_ONCE * (LARGE / ROWS);
    const int64_t runs = how->batches / each + 1;
    struct ArrowDeviceArray arrays[LARGE_AT_ONCE];
    struct sums sums = {0};
    double took = 0;

    blocks_init();
    host_open(&sums.host, how, 1);
    for (int64_t i = 0; i < runs; i++) {
        for (int k = 0; k < LARGE_AT_ONCE; k++)
            block_give(&large, self->window, LARGE, &arrays[k]);
        took += stream_run(&sums, self, arrays, LARGE_AT_ONCE, ROWS);
    }
    host_close(&sums.host);
    bench_check(sums.batches == runs * each, "number of batches");
    bench_check(sums.rows == sums.batches * ROWS, "number of rows");
    bench_check(sums.first ==
                    (int64_t)(LARGE - ROWS) / 2 * sums.batches * self->window,
                "rows");
    return took * (double)how->batches / (double)sums.batches;
}

/* Joins small batches; without rows in `more`, passes them on. */
static double run_join(const struct bench_case *self,
                       const struct bench_how *how)
{
    static struct ArrowDeviceArray arrays[AT_ONCE];
    struct sums sums = {0};
    double took = 0;
    int64_t runs = how->batches / AT_ONCE + 1;

    blocks_init();
    host_open(&sums.host, how, 1);
    for (int64_t i = 0; i < runs; i++) {
        for (int k = 0; k < AT_ONCE; k++)
            block_give(&small[k % KINDS], self->window, ROWS, &arrays[k]);
        took += stream_run(&sums, self, arrays, AT_ONCE, self->more);
    }
    host_close(&sums.host);
    bench_check(sums.rows == runs * AT_ONCE * ROWS, "number of rows");
    return took * (double)how->batches / (double)(runs * AT_ONCE);
}

/* Copies the same items to fresh memory of the same size, and frees it. */
static double run_memcpy(const struct bench_case *self,
                         const struct bench_how *how)
{
    const int64_t runs = how->batches * ROWS / JOINED + 1;
    const size_t part = ROWS * sizeof(int64_t);
    int64_t wrong = 0;
    double begun;

    blocks_init();
    begun = bench_now_ns(how);
    for (int64_t i = 0; i < runs; i++) {
        char *joined = malloc((size_t)self->window * JOINED / ROWS * part);
        char *to = joined;

        bench_check(joined != NULL, "memory");
        for (int32_t k = 0; k < self->window; k++)
            for (int64_t j = 0; j < JOINED / ROWS; j++, to += part)
                memcpy(to, parts[k] + j % KINDS * ROWS, part);
        wrong |= memcmp(joined + part, parts[0] + ROWS, part);
        free(joined);
    }
    begun = bench_now_ns(how) - begun;
    bench_check(wrong == 0, "memcpy");
    return begun * (double)how->batches / ((double)runs * JOINED / ROWS);
}

/* ---- batches of the shape of the run ------------------------------------ */

/* Passes `count` batches of the shape through a rebatch to `rows`. */
static double shape_run(struct sums *sums, int64_t count, int64_t rows)
{
    static struct ArrowDeviceArray arrays[AT_ONCE];
    const struct uva_rebatch size = {.rows = rows};
    struct ArrowSchema schema;
    struct uva_stream *stream;

    batch_schema(&schema);
    for (int64_t i = 0; i < count; i++)
        batch_fill(&arrays[i], i);
    stream = uva_stream_from_arrays(sums->host.runtime, &schema, arrays,
                                    (size_t)count);
    bench_check(uva_stream_rebatch(stream, &size) == 0, "rebatch");
    return sums_run(sums, stream, on_rows);
}

static double run_shape_split(const struct bench_case *self,
                              const struct bench_how *how)
{
    const int64_t each = LARGE_AT_ONCE * (LARGE / ROWS);
    const int64_t runs = how->batches / each + 1;
    struct sums sums = {0};
    double took = 0;

    (void)self;
    batch_use_rows(LARGE);
    host_open(&sums.host, how, 1);
    for (int64_t i = 0; i < runs; i++)
        took += shape_run(&sums, LARGE_AT_ONCE, ROWS);
    host_close(&sums.host);
    batch_use_rows(ROWS);
    bench_check(sums.batches == runs * each, "number of batches");
    return took * (double)how->batches / (double)sums.batches;
}

/* Batches of the shape that are joined to one: of wide ones fewer. */
static int64_t shape_joined(void)
{
    const int64_t most = JOINED / ROWS * 8 / batch_now.columns;

    return most > JOINED / ROWS ? JOINED / ROWS : most < 2 ? 2 : most;
}

static double run_shape_join(const struct bench_case *self,
                             const struct bench_how *how)
{
    struct sums sums = {0};
    double took = 0;

    (void)self;
    host_open(&sums.host, how, 1);
    for (int64_t left = how->batches; left > 0; left -= AT_ONCE)
        took += shape_run(&sums, left < AT_ONCE ? left : AT_ONCE,
                          shape_joined() * ROWS);
    host_close(&sums.host);
    bench_check(sums.rows == how->batches * ROWS, "number of rows");
    return took;
}

static double run_shape_memcpy(const struct bench_case *self,
                               const struct bench_how *how)
{
    const int64_t joined = shape_joined();
    const int64_t runs = how->batches / joined + 1;
    double begun = bench_now_ns(how);

    (void)self;
    for (int64_t i = 0; i < runs; i++) {
        char *to = malloc((size_t)(joined * batch_bytes()));

        bench_check(to != NULL, "memory");
        batch_copy(to, joined);
        free(to);
    }
    begun = bench_now_ns(how) - begun;
    return begun * (double)how->batches / (double)(runs * joined);
}

static const struct bench_case cases[] = {
    {"rebatch/split/1-column", 1000000, run_split, 1, 0, 0},
    {"rebatch/split/8-columns", 500000, run_split, 8, 0, 0},
    {"rebatch/join/memcpy", 500000, run_memcpy, 8, 0, 0},
    {"rebatch/join/uvarrow", 500000, run_join, 8, JOINED, 0},
    {"rebatch/shape/split", 500000, run_shape_split, 0, 0, 0},
    {"rebatch/shape/memcpy", 500000, run_shape_memcpy, 0, 0, 0},
    {"rebatch/shape/join", 500000, run_shape_join, 0, 0, 0},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
