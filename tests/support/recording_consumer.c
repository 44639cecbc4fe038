/* SPDX-License-Identifier: Apache-2.0 */
/* The transcript is a line of words, so that a test can compare all of it at
 * once. */
#include "support/recording_consumer.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static const char zeroes[BATCH_MAX];

void batch_schema(struct ArrowSchema *out)
{
    plain_schema(out, "c", "", 0);
}

void batch_make(struct ArrowDeviceArray *out, int64_t length)
{
    struct ArrowArray array;

    ck_assert_int_le(length, BATCH_MAX);
    plain_array(&array, length, 2, 0);
    array.buffers[1] = zeroes;
    uva_array_from_cpu(&array, out);
}

void recording_tell(struct recording_consumer *c, const char *format, ...)
{
    size_t left;
    va_list args;
    int n;

    if (c->told > 0)
        c->story[c->told++] = ' ';
    left = sizeof(c->story) - c->told;
    va_start(args, format);
    n = vsnprintf(c->story + c->told, left, format, args);
    va_end(args);
    ck_assert_int_ge(n, 0);
    ck_assert_uint_lt((size_t)n, left - 1);
    c->told += (size_t)n;
}

static void keep_metadata(struct recording_consumer *c, const char *metadata)
{
    ck_assert_int_eq(uva_metadata_size(metadata, &c->metadata_size), 0);
    ck_assert_uint_le(c->metadata_size, sizeof(c->metadata));
    if (c->metadata_size > 0)
        memcpy(c->metadata, metadata, c->metadata_size);
}

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    ck_assert_str_eq(info->schema->format, "c");
    recording_tell(ctx, "schema");
    return 0;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct recording_consumer *c = ctx;

    if (c->hook != NULL)
        c->hook(c->ctx, batch);
    if (c->verdict != 0)
        return c->verdict;
    if (c->appetite == 0)
        return EAGAIN;
    c->appetite -= c->appetite > 0;
    c->batches++;
    c->ordinal = batch->ordinal;
    keep_metadata(c, batch->metadata);
    if (!c->quiet)
        recording_tell(c, "%lld", (long long)batch->data.array.length);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    static const char *const ends[] = {"complete", "failed", "cancelled",
                                       "rejected"};
    struct recording_consumer *c = ctx;

    ck_assert(!c->done);
    c->done = true;
    c->outcome = *outcome;
    if (outcome->end != UVA_END_COMPLETE)
        keep_metadata(c, outcome->metadata);
    recording_tell(c, "%s", ends[outcome->end]);
}

struct uva_consumer recording_table(struct recording_consumer *c)
{
    return (struct uva_consumer){.on_schema = on_schema,
                                 .on_batch = on_batch,
                                 .on_done = on_done,
                                 .ctx = c};
}

void recording_start(struct recording_consumer *c, struct uva_stream *stream)
{
    const struct uva_consumer table = recording_table(c);
    struct uva_error error = {0};
    int code = uva_stream_for_each(stream, &table, &error);

    ck_assert_msg(code == 0, "start: %d %s", code, error.message);
    c->stream = stream;
}

void recording_feed(struct recording_consumer *c, int64_t n)
{
    c->appetite += n;
    uva_stream_resume(c->stream);
}

static bool is_done(void *ctx)
{
    return ((struct recording_consumer *)ctx)->done;
}

void recording_await_done(struct recording_consumer *c, struct loop_rig *rig)
{
    loop_rig_until(rig, is_done, c);
}

struct wanted {
    struct recording_consumer *consumer;
    int64_t batches;
};

static bool is_there(void *ctx)
{
    struct wanted *wanted = ctx;

    return wanted->consumer->batches >= wanted->batches;
}

void recording_await(struct recording_consumer *c, struct loop_rig *rig,
                     int64_t n)
{
    struct wanted wanted = {c, n};

    loop_rig_until(rig, is_there, &wanted);
}
