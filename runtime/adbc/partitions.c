/* SPDX-License-Identifier: Apache-2.0 */
/* All partitions of a batch: a stream for each, merged. */
#include <stdlib.h>

#include "adbc/execution.h"
#include "adbc/fixed.h"
#include "adbc/handle.h"
#include "adbc/nulls.h"
#include "uvarrow/adbc.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"
#include "uvarrow/stages.h"

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

static struct uva_stream *partition_stream(struct uva_adbc_pool *pool,
                                           const struct ArrowArray *batch,
                                           int64_t row)
{
    const int32_t *offsets = batch_offsets(batch) + row;
    const char *data = batch->children[0]->buffers[2];

    return uva_stream_from_partition(pool, data + offsets[0],
                                     (size_t)(offsets[1] - offsets[0]), NULL);
}

/* A result of no partitions. */
static struct uva_stream *empty_stream(struct uva_runtime *runtime)
{
    const struct uva_arrow_source options = {.on_loop = true};
    struct ArrowArrayStream nothing;

    uva__fixed_nothing(&nothing);
    return uva_stream_from_arrow_stream(runtime, &nothing, &options);
}

struct uva_stream *uva_stream_from_partitions(struct uva_adbc_pool *pool,
                                              const struct ArrowArray *batch)
{
    struct uva_runtime *runtime =
        pool != NULL ? uva__handle(pool)->runtime(pool) : NULL;
    struct uva_stream **others, *stream;

    if (pool == NULL || !batch_is_valid(batch))
        return uva__execution_fail(runtime, EINVAL, "from_partitions",
                                   "there is no pool or no batch of "
                                   "partitions");
    if (batch->length == 0)
        return empty_stream(runtime);
    others = calloc((size_t)batch->length, sizeof(struct uva_stream *));
    if (others == NULL)
        return uva__execution_fail(runtime, ENOMEM, "from_partitions",
                                   "no memory for the streams");
    stream = partition_stream(pool, batch, 0);
    for (int64_t i = 1; i < batch->length; i++)
        others[i - 1] = partition_stream(pool, batch, i);
    if (batch->length > 1)
        (void)uva_stream_merge(
            stream, others, (size_t)batch->length - 1,
            &(struct uva_merge){.open_at_once =
                                    uva__handle(pool)->connections(pool)});
    free(others);
    return stream;
}
