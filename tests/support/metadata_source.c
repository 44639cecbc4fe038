/* SPDX-License-Identifier: Apache-2.0 */
/* The source is uvarrow's own uva_stream_drive(), which gives its producer the
 * metadata. */
#include "support/metadata_source.h"

#include <check.h>

#include "uvarrow/arrow.h"
#include "uvarrow/uvarrow.h"

/* Encodes the metadata; returns its size. */
static size_t about_encode(char about[32])
{
    const struct uva_pair pair[] = {{.key = "who", .value = "me"}, {0}};
    size_t size = 32;

    ck_assert_int_eq(uva_metadata_encode(pair, about, &size), 0);
    return size;
}

static int source_start(void *ctx,
                        struct ArrowAsyncDeviceStreamHandler *handler,
                        struct uva_error *error)
{
    char about[32];
    const struct uva_drive with = {.metadata = about};

    (void)about_encode(about);
    return uva_stream_drive(ctx, handler, &with, error);
}

static void source_free(void *ctx)
{
    uva_stream_release(ctx);
}

struct uva_stream *metadata_source(struct uva_runtime *runtime,
                                   struct uva_stream *stream)
{
    return uva_stream_from_async(
        runtime, &(struct uva_async_source){.start = source_start,
                                            .free_ctx = source_free,
                                            .ctx = stream,
                                            .on_loop = true});
}

void metadata_source_seen(struct recording_consumer *c, struct uva_batch *batch)
{
    const struct uva_stream_info *info = uva_stream_get_info(batch->stream);
    char about[32];
    size_t size;

    (void)c;
    ck_assert_int_eq(uva_metadata_size(info->metadata, &size), 0);
    ck_assert_uint_eq(size, about_encode(about));
    ck_assert_mem_eq(info->metadata, about, size);
}
