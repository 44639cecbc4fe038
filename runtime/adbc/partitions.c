/* SPDX-License-Identifier: Apache-2.0 */
/* All partitions of a batch: a stream for each, merged. One that fails may be
 * read again, from the next of its places, behind the rows that came. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adbc/execution.h"
#include "adbc/fixed.h"
#include "adbc/handle.h"
#include "adbc/nulls.h"
#include "adbc/replicas.h"
#include "uvarrow/adbc.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"
#include "uvarrow/stages.h"

enum { HOSTS_ROOM = 256 };

/* A live schema has a release. */
static void schema_keep(struct ArrowSchema *schema)
{
    (void)schema; /* it is on the stack */
}

/* Whether it has the shape of one column of texts. */
static bool batch_fits(const struct ArrowArray *batch)
{
    struct ArrowSchema column = {.format = "z", .release = schema_keep};
    struct ArrowSchema *columns[] = {&column};
    const struct ArrowSchema schema = {.format = "+s",
                                       .n_children = 1,
                                       .children = columns,
                                       .release = schema_keep};
    const struct ArrowDeviceArray whole = {
        .array = *batch, .device_id = -1, .device_type = ARROW_DEVICE_CPU};
    int64_t size;

    return uva_array_size(&schema, &whole, &size) == 0;
}

/* Whether each row has a partition: it is not null, and its text is not. */
static bool rows_have_values(const struct ArrowArray *batch)
{
    const struct ArrowArray *column = batch->children[0];

    return uva__null_find(batch, batch->offset, batch->length) < 0 &&
           uva__null_find(column, batch->offset + column->offset,
                          batch->length) < 0;
}

/* Gives the first offset of the texts of a batch that fits. */
static const int32_t *batch_offsets(const struct ArrowArray *batch)
{
    const struct ArrowArray *column = batch->children[0];

    return (const int32_t *)column->buffers[1] + batch->offset + column->offset;
}

/* A batch may have come from anywhere: the texts must lie in order. */
static bool texts_are_valid(const struct ArrowArray *batch)
{
    const int32_t *offsets;

    if (batch->length == 0)
        return true;
    if (batch->children[0]->buffers[2] == NULL)
        return false;
    offsets = batch_offsets(batch);
    for (int64_t i = 0; i < batch->length; i++)
        if (offsets[i] < 0 || offsets[i] > offsets[i + 1])
            return false;
    return true;
}

/* Whether it may be a batch of partitions. */
static bool batch_is_valid(const struct ArrowArray *batch)
{
    return batch != NULL && batch_fits(batch) && rows_have_values(batch) &&
           texts_are_valid(batch);
}

/* ---- one of them --------------------------------------------------------- */

/* A partition that is read again. */
struct part {
    struct uva_adbc_pool *pool; /* counts */
    struct uva_adbc_partitions options;
    size_t size;
    char bytes[]; /* the partition, and room for a copy of it */
};

static void part_free(void *ctx)
{
    struct part *part = ctx;

    uva__handle(part->pool)->unref(part->pool);
    free(part);
}

/* Drops the rows that came before. */
static int rows_skip(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                     struct uva_error *error)
{
    int64_t *left = ctx;
    const int64_t rows = batch->data.array.length,
                  skipped = *left < rows ? *left : rows;

    (void)error;
    *left -= skipped;
    for (int64_t row = skipped; row < rows; row++)
        bits[row / 8] |= (uint8_t)(1 << row % 8);
    return 0;
}

/* Has a stream begin behind so many rows. */
static void stream_skip(struct uva_stream *stream, int64_t rows)
{
    int64_t *left = malloc(sizeof(*left));

    if (left == NULL) {
        uva_stream_cancel(stream, ENOMEM, "no memory for a partition");
        return;
    }
    *left = rows;
    (void)uva_stream_filter(stream, &(struct uva_filter){.keep = rows_skip,
                                                         .free_ctx = free,
                                                         .ctx = left,
                                                         .on_loop = true});
}

/* Reads a partition behind so many rows. */
static struct uva_stream *
attempt_stream(struct uva_adbc_pool *pool,
               const struct uva_adbc_partitions *options, const void *partition,
               size_t size, int64_t rows)
{
    static const struct uva_timeout no_limits;
    struct uva_stream *stream =
        uva_stream_from_partition(pool, partition, size, &options->window);

    if (memcmp(&options->timeout, &no_limits, sizeof(no_limits)) != 0)
        (void)uva_stream_timeout(stream, &options->timeout);
    if (rows > 0)
        stream_skip(stream, rows);
    return stream;
}

/* Another attempt begins with the next place that has the partition. */
static struct uva_stream *part_again(void *ctx,
                                     const struct uva_outcome *failed,
                                     int32_t attempt, int64_t passed,
                                     int64_t rows)
{
    struct part *part = ctx;
    char *copy = part->bytes + part->size;
    struct uva_stream *stream;
    char hosts[HOSTS_ROOM];

    (void)failed;
    (void)passed;
    uva__replicas_rotate(part->bytes, part->size, (size_t)attempt, copy);
    stream = attempt_stream(part->pool, &part->options, copy, part->size, rows);
    uva__replicas_hosts(copy, part->size, hosts, sizeof(hosts));
    hosts[strcspn(hosts, " ")] = '\0'; /* the first one */
    if (hosts[0] != '\0')
        (void)uva_stream_set_name(stream, hosts);
    return stream;
}

/* Has a partition that fails read again. */
static void stream_retry(struct uva_stream *stream, struct uva_adbc_pool *pool,
                         const struct uva_adbc_partitions *options,
                         const void *partition, size_t size)
{
    struct uva_retry retry = {.again = part_again,
                              .free_ctx = part_free,
                              .times = options->retries,
                              .resume = true};
    struct part *part = malloc(sizeof(*part) + 2 * size);

    if (part == NULL) {
        uva_stream_cancel(stream, ENOMEM, "no memory for a partition");
        return;
    }
    uva__handle(pool)->acquire(pool);
    part->pool = pool;
    part->options = *options;
    part->size = size;
    memcpy(part->bytes, partition, size);
    retry.ctx = part;
    (void)uva_stream_retry(stream, &retry);
}

static struct uva_stream *
partition_stream(struct uva_adbc_pool *pool, const struct ArrowArray *batch,
                 int64_t row, const struct uva_adbc_partitions *options)
{
    const int32_t *offsets = batch_offsets(batch) + row;
    const char *data = batch->children[0]->buffers[2];
    const void *partition = data + offsets[0];
    const size_t size = (size_t)(offsets[1] - offsets[0]);
    struct uva_stream *stream =
        attempt_stream(pool, options, partition, size, 0);
    char hosts[HOSTS_ROOM], name[HOSTS_ROOM + 64];

    uva__replicas_hosts(partition, size, hosts, sizeof(hosts));
    (void)snprintf(name, sizeof(name), "partition %lld of %lld%s%s%s",
                   (long long)row + 1, (long long)batch->length,
                   hosts[0] != '\0' ? " (" : "", hosts,
                   hosts[0] != '\0' ? ")" : "");
    (void)uva_stream_set_name(stream, name);
    if (options->retries > 0)
        stream_retry(stream, pool, options, partition, size);
    return stream;
}

/* ---- all of them --------------------------------------------------------- */

/* A result of no partitions. */
static struct uva_stream *empty_stream(struct uva_runtime *runtime)
{
    const struct uva_arrow_source options = {.on_loop = true};
    struct ArrowArrayStream nothing;

    uva__fixed_nothing(&nothing);
    return uva_stream_from_arrow_stream(runtime, &nothing, &options);
}

static const char *options_fault(const struct uva_adbc_partitions *o)
{
    for (size_t i = 0; i < sizeof(o->reserved) / sizeof(o->reserved[0]); i++)
        if (o->reserved[i] != NULL)
            return "reserved members must be NULL; clear the struct before "
                   "setting its members";
    if (o->open_at_once < 0)
        return "`open_at_once` must not be negative";
    return o->retries < 0 ? "`retries` must not be negative" : NULL;
}

/* How many are read at one time: one that has no connection only waits. */
static int32_t count_open(struct uva_adbc_pool *pool,
                          const struct uva_adbc_partitions *options)
{
    const int32_t connections = uva__handle(pool)->connections(pool),
                  wanted = options->open_at_once;

    return wanted > 0 && wanted < connections ? wanted : connections;
}

/* Merges them; the reference on `streams`, of `count`, 1 or more, are taken. */
static struct uva_stream *
streams_merge(struct uva_adbc_pool *pool, struct uva_stream **streams,
              int64_t count, const struct uva_adbc_partitions *options)
{
    const struct uva_merge merge = {.open_at_once = count_open(pool, options),
                                    .window = options->window,
                                    .keep_going = options->keep_going};

    if (count > 1)
        (void)uva_stream_merge(streams[0], streams + 1, (size_t)count - 1,
                               &merge);
    return streams[0];
}

struct uva_stream *
uva_stream_from_partitions(struct uva_adbc_pool *pool,
                           const struct ArrowArray *batch,
                           const struct uva_adbc_partitions *options)
{
    static const struct uva_adbc_partitions defaults;
    static const char name[] = "from_partitions";
    struct uva_runtime *runtime =
        pool != NULL ? uva__handle(pool)->runtime(pool) : NULL;
    struct uva_stream **streams, *stream;
    const char *fault;

    options = options != NULL ? options : &defaults;
    if (pool == NULL || !batch_is_valid(batch))
        return uva__execution_fail(runtime, EINVAL, name,
                                   "there is no pool or no batch of "
                                   "partitions");
    fault = options_fault(options);
    if (fault != NULL)
        return uva__execution_fail(runtime, EINVAL, name, fault);
    if (batch->length == 0)
        return empty_stream(runtime);
    streams = calloc((size_t)batch->length, sizeof(struct uva_stream *));
    if (streams == NULL)
        return uva__execution_fail(runtime, ENOMEM, name,
                                   "no memory for the streams");
    for (int64_t i = 0; i < batch->length; i++)
        streams[i] = partition_stream(pool, batch, i, options);
    stream = streams_merge(pool, streams, batch->length, options);
    free(streams);
    return stream;
}
