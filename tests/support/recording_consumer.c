/* SPDX-License-Identifier: Apache-2.0 */
/* The transcript is one line of words, so that a test compares it as a whole.
 */
#include "support/recording_consumer.h"

#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/plain_tree.h"
#include "support/soft_memory.h"
#include "uvarrow/arrow.h"

static char zeroes[BATCH_MAX]; /* never written; const, it is in the file */

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

void recording_init(struct recording_consumer *c)
{
    memset(c, 0, sizeof(*c));
    c->appetite = -1;
    c->in_order = true;
}

void recording_add(struct recording_consumer *c, const char *format, ...)
{
    size_t left;
    va_list args;
    int n;

    if (c->transcript_size > 0)
        c->transcript[c->transcript_size++] = ' ';
    left = sizeof(c->transcript) - c->transcript_size;
    va_start(args, format);
    n = vsnprintf(c->transcript + c->transcript_size, left, format, args);
    va_end(args);
    ck_assert_int_ge(n, 0);
    ck_assert_uint_lt((size_t)n, left - 1);
    c->transcript_size += (size_t)n;
}

static void keep_metadata(struct recording_consumer *c, const char *metadata)
{
    ck_assert_int_eq(uva_metadata_size(metadata, &c->metadata_size), 0);
    ck_assert_uint_le(c->metadata_size, sizeof(c->metadata));
    if (c->metadata_size > 0)
        memcpy(c->metadata, metadata, c->metadata_size);
}

/* No callback may follow on_done. */
static void note_callback(struct recording_consumer *c)
{
    ck_assert(!c->silent);
    ck_assert_int_eq(atomic_load(&c->done), 0);
    c->thread = pthread_self();
}

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    struct recording_consumer *c = ctx;

    note_callback(c);
    ck_assert_ptr_nonnull(info->schema);
    if (c->appetite == 0)
        uva_stream_pause(info->stream);
    atomic_fetch_add(&c->schemas, 1);
    if (c->transcribes) {
        ck_assert_str_eq(info->schema->format, "c");
        recording_add(c, "schema");
    }
    return c->schema_code;
}

static int batch_code(struct recording_consumer *c, long call)
{
    if (c->batch_code != 0 && call >= c->batch_from &&
        (c->batch_to == 0 || call < c->batch_to))
        return c->batch_code;
    return c->appetite > 0 && --c->appetite == 0 ? EAGAIN : 0;
}

/* Returns whether the batch comes from a fake source: its column "n" has the
 * format "l", in memory that the host can read. */
static bool has_values(const struct uva_batch *batch)
{
    const struct ArrowSchema *schema = batch->schema;

    if (batch->data.device_type != ARROW_DEVICE_CPU &&
        batch->data.device_type != ARROW_DEVICE_EXT_DEV &&
        batch->data.device_type != ARROW_DEVICE_CUDA_HOST &&
        batch->data.device_type != ARROW_DEVICE_CUDA_MANAGED &&
        batch->data.device_type != ARROW_DEVICE_ROCM_HOST)
        return false;
    return schema->n_children == 1 && schema->children[0]->name != NULL &&
           strcmp(schema->children[0]->name, "n") == 0 &&
           strcmp(schema->children[0]->format, "l") == 0;
}

/* The data is read before the test's hook, which may move it out. */
static void note_data(struct recording_consumer *c,
                      const struct uva_batch *batch)
{
    const struct ArrowArray *array = &batch->data.array;
    const int64_t *values;

    c->in_order = c->in_order && batch->ordinal == c->taken;
    c->device_type = batch->data.device_type;
    c->sync_event = batch->data.sync_event;
    if (array->length == 0 || !has_values(batch))
        return;
    values = soft_memory_at(array->children[0]->buffers[1],
                            (size_t)array->length * sizeof(*values));
    for (int64_t i = 0; i < array->length; i++)
        c->wrong += values[i] != batch->ordinal * 10 + i;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct recording_consumer *c = ctx;
    const long call = atomic_fetch_add(&c->batches, 1);
    const int64_t length = batch->data.array.length;
    int code;

    note_callback(c);
    ck_assert(uva_array_is_live(&batch->data));
    note_data(c, batch);
    c->answer = 0;
    if (c->on_batch != NULL)
        c->on_batch(c, batch);
    code = c->answer != 0 ? c->answer : batch_code(c, call);
    if (code != 0 && code != EAGAIN && uva_array_is_live(&batch->data))
        return code;
    c->taken++;
    c->ordinal = batch->ordinal;
    c->sum += batch->ordinal;
    if (c->transcribes)
        keep_metadata(c, batch->metadata);
    if (c->transcribes && !c->quiet)
        recording_add(c, "%lld", (long long)length);
    if (code != 0 && code != EAGAIN)
        return code;
    atomic_fetch_add(&c->rows, (long)length);
    atomic_fetch_add(&c->tagged, batch->metadata != NULL);
    return code;
}

void recording_on_done(void *ctx, const struct uva_outcome *outcome)
{
    static const char *const ends[] = {"complete", "failed", "cancelled",
                                       "rejected"};
    struct recording_consumer *c = ctx;

    note_callback(c);
    ck_assert_int_eq((outcome->error.code == 0),
                     (outcome->end == UVA_END_COMPLETE));
    c->outcome = *outcome;
    c->outcome.metadata = NULL; /* borrowed for this call */
    if (c->transcribes) {
        if (outcome->end != UVA_END_COMPLETE)
            keep_metadata(c, outcome->metadata);
        recording_add(c, "%s", ends[outcome->end]);
    }
    if (c->on_done != NULL)
        c->on_done(c, outcome);
    atomic_fetch_add(&c->done, 1);
}

struct uva_consumer recording_table(struct recording_consumer *c)
{
    return (struct uva_consumer){.on_schema = on_schema,
                                 .on_batch = on_batch,
                                 .on_done = recording_on_done,
                                 .ctx = c};
}

void recording_start(struct recording_consumer *c, struct uva_stream *stream)
{
    const struct uva_consumer table = recording_table(c);
    struct uva_error error = {0};
    int code;

    c->stream = stream;
    code = uva_stream_for_each(stream, &table, &error);
    ck_assert_msg(code == 0, "start: %d %s", code, error.message);
}

void recording_consume(struct recording_consumer *c, struct uva_stream *stream)
{
    recording_start(c, stream);
    uva_stream_release(stream);
}

void recording_feed(struct recording_consumer *c, int64_t n)
{
    c->appetite += n;
    uva_stream_resume(c->stream);
}

static bool is_done(void *ctx)
{
    return atomic_load(&((struct recording_consumer *)ctx)->done) != 0;
}

void recording_await_done(struct recording_consumer *c,
                          struct loop_fixture *loop)
{
    loop_until(loop, is_done, c);
}

struct wanted {
    struct recording_consumer *consumer;
    int64_t batches;
};

static bool has_taken(void *ctx)
{
    struct wanted *wanted = ctx;

    return wanted->consumer->taken >= wanted->batches;
}

void recording_await(struct recording_consumer *c, struct loop_fixture *loop,
                     int64_t n)
{
    struct wanted wanted = {c, n};

    loop_until(loop, has_taken, &wanted);
}

void recording_join(struct recording_consumer *c)
{
    while (!is_done(c))
        (void)sched_yield();
}

void await_count(atomic_long *counter, long n)
{
    while (atomic_load(counter) < n)
        (void)sched_yield();
}

void text_contains(const char *message, const char *text)
{
    ck_assert_msg(message[0] != '\0' && strstr(message, text) != NULL,
                  "\"%s\" does not contain \"%s\"", message, text);
}

void recording_ended(const struct recording_consumer *c, enum uva_end end,
                     int code, const char *text)
{
    ck_assert_int_eq(atomic_load(&c->done), 1);
    ck_assert_int_eq(c->outcome.end, end);
    ck_assert_int_eq(c->outcome.error.code, code);
    if (code != 0)
        text_contains(c->outcome.error.message, text);
}
