/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of about 800 KB, encoded as Arrow IPC: the header and the list of
 * buffers, and the release of both, 64 of them by one call. There is no write
 * to a file or a socket. `window` is the number of columns of integers, `more`
 * of texts with nulls and of dictionaries with 16 values.
 *
 * Batches of 1,024 rows like the flights', 14 columns of integers and 5 of
 * texts, read from a file in the cache of the machine, which has 64 of them and
 * is read again and again: as a stream, as a file, and mapped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "host.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

enum { ROWS = 10000, MOST = 20, WORDS = 16, WORD = 12, AT_ONCE = 64 };
enum { FLIGHTS = 1024 };

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
    int64_t rows;
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
    batch->columns[i] = (struct ArrowArray){.length = batch->rows,
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

static struct ipc_batch *ipc_batch_new(const struct bench_case *self,
                                       int64_t rows)
{
    struct ipc_batch *batch = calloc(1, sizeof(*batch));

    bench_check(batch != NULL, "memory");
    data_fill();
    batch->rows = rows;
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
    out->array = (struct ArrowArray){.length = batch->rows,
                                     .n_buffers = 1,
                                     .n_children = batch->schema.n_children,
                                     .buffers = batch->none,
                                     .children = batch->column_list,
                                     .release = release_array};
}

static double run_encode(const struct bench_case *self,
                         const struct bench_how *how)
{
    struct ipc_batch *batch = ipc_batch_new(self, ROWS);
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

/* ---- reading ------------------------------------------------------------ */

/* Writes AT_ONCE batches to a file without a name. Its descriptor is the
 * caller's. */
static int file_new(const struct bench_case *self, enum uva_format format)
{
    const struct uva_encode options = {.format = format};
    struct ipc_batch *batch = ipc_batch_new(self, FLIGHTS);
    struct ArrowDeviceArray arrays[AT_ONCE];
    FILE *file = tmpfile();
    struct uva_part part;
    int fd;

    bench_check(file != NULL, "file");
    for (int i = 0; i < AT_ONCE; i++)
        array_make(batch, &arrays[i]);
    bench_check(uva_array_encode(&batch->schema, arrays, AT_ONCE, &options,
                                 &part, NULL) == 0,
                "batches");
    for (size_t i = 0; i < part.count; i++)
        bench_check(
            fwrite(part.buffers[i].base, part.buffers[i].len, 1, file) == 1,
            "write");
    uva_part_release(&part);
    free(batch);
    bench_check(fflush(file) == 0, "flush");
    fd = dup(fileno(file));
    (void)fclose(file);
    return fd;
}

struct reader {
    struct host host;
    int64_t batches;
};

static int reader_on_batch(void *ctx, struct uva_batch *batch)
{
    struct reader *reader = ctx;

    bench_check(batch->data.array.length == FLIGHTS, "rows");
    reader->batches++;
    return 0;
}

static void reader_on_done(void *ctx, const struct uva_outcome *outcome)
{
    host_on_done(&((struct reader *)ctx)->host, outcome);
}

/* Reads the file once. */
static void reader_run(struct reader *reader,
                       const struct uva_ipc_source *source)
{
    const struct uva_consumer consumer = {
        .on_batch = reader_on_batch, .on_done = reader_on_done, .ctx = reader};
    struct uva_stream *stream;

    bench_check(lseek(source->fd, 0, SEEK_SET) == 0, "seek");
    stream = uva_stream_from_file(reader->host.runtime, NULL, source);
    bench_check(uva_stream_for_each(stream, &consumer, NULL) == 0, "start");
    reader->host.open++;
    uva_stream_release(stream);
    (void)host_run(&reader->host);
}

enum read_way { READ_STREAM, READ_FILE, READ_MAPPED };

static double run_read(const struct bench_case *self,
                       const struct bench_how *how, enum read_way way)
{
    const int fd = file_new(self, way == READ_STREAM ? UVA_FORMAT_ARROW
                                                     : UVA_FORMAT_ARROW_FILE);
    const struct uva_ipc_source source = {.fd = fd, .mmap = way == READ_MAPPED};
    struct reader reader = {.batches = 0};
    int64_t files = (how->batches + AT_ONCE - 1) / AT_ONCE;
    double begun;

    host_open(&reader.host, how, 0);
    begun = bench_now_ns(how);
    for (int64_t i = 0; i < files; i++)
        reader_run(&reader, &source);
    begun = bench_now_ns(how) - begun;
    host_close(&reader.host);
    (void)close(fd);
    bench_check(reader.batches == files * AT_ONCE, "batches");
    return begun * (double)how->batches / (double)reader.batches;
}

static double run_read_stream(const struct bench_case *self,
                              const struct bench_how *how)
{
    return run_read(self, how, READ_STREAM);
}

static double run_read_file(const struct bench_case *self,
                            const struct bench_how *how)
{
    return run_read(self, how, READ_FILE);
}

static double run_read_mapped(const struct bench_case *self,
                              const struct bench_how *how)
{
    return run_read(self, how, READ_MAPPED);
}

static const struct bench_case cases[] = {
    {"ipc/numbers", 100000, run_encode, 10, 0, 0},
    {"ipc/texts", 100000, run_encode, 5, 20, 0},
    {"ipc/dictionary", 100000, run_encode, 10, 1, 0},
    {"ipc/read/stream", 6400, run_read_stream, 14, 50, 0},
    {"ipc/read/file", 6400, run_read_file, 14, 50, 0},
    {"ipc/read/mmap", 6400, run_read_mapped, 14, 50, 0},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
