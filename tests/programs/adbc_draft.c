/* SPDX-License-Identifier: Apache-2.0 */
/* A program that has the asynchronous structs from the draft of ADBC 1.2, with
 * a producer object of 48 bytes: its metadata arrives, with a checker and
 * without, although the program does not state the layout. */
#include "adbc_draft.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "support/world.h"
#include "uvarrow/uvarrow.h"

static const char KEY_VALUE[] = "\1\0\0\0\1\0\0\0k\1\0\0\0v";

enum { KEY_VALUE_SIZE = sizeof(KEY_VALUE) - 1 };

/* ---- the driver --------------------------------------------------------- */

static void on_request(struct ArrowAsyncProducer *self, int64_t n)
{
    (void)self;
    (void)n;
}

static void on_cancel(struct ArrowAsyncProducer *self)
{
    (void)self;
}

static void on_release(struct ArrowAsyncProducer *self)
{
    (void)self;
    assert(!"no handler may call this");
}

static struct ArrowAsyncProducer producer = {
    .device_type = ARROW_DEVICE_CPU,
    .request = on_request,
    .cancel = on_cancel,
    .release = on_release,
    .additional_metadata = KEY_VALUE,
};

/* Gives an empty result. */
static void execute(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct ArrowSchema schema;
    int code;

    handler->producer = &producer;
    code = column_schema(&schema);
    assert(code == 0);
    code = handler->on_schema(handler, &schema);
    assert(code == 0);
    code = handler->on_next_task(handler, NULL, NULL);
    assert(code == 0);
    handler->release(handler);
}

static int start(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                 struct uva_error *error)
{
    (void)ctx;
    (void)error;
    execute(handler);
    return 0;
}

/* ---- in a stream -------------------------------------------------------- */

static bool schema_seen, done;

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    (void)ctx;
    assert(info->metadata != NULL);
    assert(memcmp(info->metadata, KEY_VALUE, KEY_VALUE_SIZE) == 0);
    assert(info->device_type == ARROW_DEVICE_CPU);
    schema_seen = true;
    return 0;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    assert(outcome->end == UVA_END_COMPLETE);
    done = true;
}

static void in_a_stream(bool check)
{
    struct uva_runtime_options options = {.check = check};
    struct uva_runtime_stats stats;
    struct uva_runtime *runtime;
    struct uva_stream *stream;
    uv_loop_t loop;
    int code = uv_loop_init(&loop);

    assert(code == 0);
    code = uva_runtime_open(&loop, &options, &runtime, NULL);
    assert(code == 0);
    schema_seen = done = false;
    stream = uva_stream_from_async(
        runtime,
        &(struct uva_async_source){.start = start, .window = {.batches = 2}});
    code = uva_stream_for_each(stream,
                               &(struct uva_consumer){.on_schema = on_schema,
                                                      .on_batch = on_batch,
                                                      .on_done = on_done},
                               NULL);
    assert(code == 0);
    uva_stream_release(stream);
    while (!done)
        (void)uv_run(&loop, UV_RUN_ONCE);
    uva_runtime_get_stats(runtime, &stats);
    assert(schema_seen && stats.peer_breaches == 0);
    code = uva_runtime_close(runtime, 0, NULL, NULL);
    assert(code == 0);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    code = uv_loop_close(&loop);
    assert(code == 0);
}

static void sources_may_be_missing(void)
{
    struct uva_stream *stream = uva_stream_from_async(NULL, NULL);

    assert(uva_stream_status(stream, NULL) == EINVAL);
    uva_stream_release(stream);
}

/* ---- checked by hand ---------------------------------------------------- */

static bool metadata_seen;

/* This handler reads the metadata where the draft has it. */
static int handler_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                             struct ArrowSchema *schema)
{
    const char *metadata = self->producer->additional_metadata;

    assert(memcmp(metadata, KEY_VALUE, KEY_VALUE_SIZE) == 0);
    metadata_seen = true;
    schema->release(schema);
    return 0;
}

static int handler_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                                struct ArrowAsyncTask *task,
                                const char *metadata)
{
    (void)self;
    (void)metadata;
    assert(task == NULL);
    return 0;
}

static void handler_on_error(struct ArrowAsyncDeviceStreamHandler *self,
                             int code, const char *message,
                             const char *metadata)
{
    (void)self;
    (void)code;
    (void)message;
    (void)metadata;
    assert(!"no error is expected");
}

static void handler_on_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    self->release = NULL;
}

static void on_breach(void *ctx, const struct uva_breach *breach)
{
    (void)ctx;
    fprintf(stderr, "%s: %s\n", breach->clause, breach->message);
    abort();
}

static void by_hand(const struct uva_check *options)
{
    struct ArrowAsyncDeviceStreamHandler handler = {
        .on_schema = handler_on_schema,
        .on_next_task = handler_on_next_task,
        .on_error = handler_on_error,
        .release = handler_on_release};
    struct ArrowAsyncDeviceStreamHandler *checked;
    const int code = uva_check_handler(&handler, options, &checked, NULL);

    assert(code == 0);
    metadata_seen = false;
    execute(checked);
    assert(metadata_seen && handler.release == NULL);
}

int main(void)
{
    const struct uva_check check = {.report = on_breach};
    const int code = setenv("UVA_CHECK", "0", 1); /* the option decides */

    assert(code == 0);
    in_a_stream(false);
    in_a_stream(true);
    sources_may_be_missing();
    by_hand(&check);
    by_hand(NULL);
    return 0;
}
