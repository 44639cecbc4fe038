/* SPDX-License-Identifier: Apache-2.0 */
/* A source of one's own: records of eight bytes, read by a thread that may
 * block, decoded by several, with a name, a total for the progress, and an
 * interrupt. The program has no loop: the runtime brings its thread.
 *
 *     $ head -c 8000000 /dev/zero >zeroes
 *     $ ./01_own_source <zeroes 2>&1 | tr '\r' '\n' | tail -n 1
 *     records: 1000000 of 1000000 rows
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"

#define ROWS 4096

struct records {
    int fd;
    int64_t bytes;      /* of the file; 0: unknown */
    atomic_bool is_cut; /* interrupted */
};

/* The item that next finds and extract decodes. */
struct block {
    int64_t rows;
    int64_t values[ROWS];
};

static int records_schema(void *ctx, struct ArrowSchema *out,
                          struct uva_error *error)
{
    (void)ctx;
    return data_schema(8, out) == 0
               ? 0
               : uva_error_set(error, ENOMEM, "no memory for a schema");
}

static int records_next(void *ctx, void **item, const char **metadata,
                        struct uva_error *error)
{
    struct records *records = ctx;
    struct block *block = malloc(sizeof(*block));
    ssize_t size = 0;

    (void)metadata;
    if (block == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a block");
    if (!atomic_load(&records->is_cut))
        size = read(records->fd, block->values, sizeof(block->values));
    if (size < 8) {
        free(block);
        return size < 0
                   ? uva_error_set(error, errno, "read: %s", strerror(errno))
                   : 0; /* no item: the end */
    }
    block->rows = size / 8;
    *item = block;
    return 0;
}

static int records_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                           struct uva_error *error)
{
    struct block *block = item;
    int code = 0;

    (void)ctx;
    if (out != NULL) /* otherwise the data is not wanted */
        code = data_make(8, block->values[0], block->rows, out);
    free(block);
    return code == 0 ? 0 : uva_error_set(error, code, "no memory for a batch");
}

static void records_interrupt(void *ctx)
{
    atomic_store(&((struct records *)ctx)->is_cut, true);
}

static void records_expect(void *ctx, int64_t *rows, int64_t *bytes)
{
    *bytes = ((struct records *)ctx)->bytes;
    *rows = *bytes / 8;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct uva_stage_stats source;
    size_t count = 1;

    if (uva_stream_get_stats(batch->stream, &source, &count) == 0)
        fprintf(stderr, "\r%s: %" PRId64 " of %" PRId64 " rows", source.name,
                *(int64_t *)ctx += batch->data.array.length,
                source.rows_expected);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    fprintf(stderr, "%s\n",
            outcome->error.code != 0 ? outcome->error.message : "");
}

int main(void)
{
    static struct records records = {.fd = STDIN_FILENO};
    int64_t rows = 0;
    struct stat stat;
    struct uva_error error;
    struct uva_runtime *rt;
    struct uva_stream *s;
    int code = uva_runtime_open(NULL, NULL, &rt, &error);

    if (code != 0)
        return 1;
    if (fstat(records.fd, &stat) == 0)
        records.bytes = stat.st_size;
    s = uva_stream_from_tasks(
        rt, &(struct uva_task_source){.schema = records_schema,
                                      .next = records_next,
                                      .extract = records_extract,
                                      .interrupt = records_interrupt,
                                      .expect = records_expect,
                                      .ctx = &records,
                                      .name = "records"});
    uva_stream_parallel(s, NULL);
    code = uva_stream_for_each(s,
                               &(struct uva_consumer){.on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = &rows},
                               &error);
    uva_stream_release(s);
    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    return uva_runtime_join(rt, UVA_FOREVER) != 0 || code != 0;
}
