/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of peers with the asynchronous interface: their producer as a
 * blocking stream, and a blocking stream for their handler. */
#include "uvarrow/uvarrow.h"

typedef int async_start_fn(void *ctx,
                           struct ArrowAsyncDeviceStreamHandler *handler,
                           struct uva_error *error);

/* Python calls these by name. */
struct uva_runtime *async_open(void);
int async_from(struct uva_runtime *runtime, async_start_fn *start, void *ctx,
               int window, struct ArrowArrayStream *out);
int async_to(struct uva_runtime *runtime, struct ArrowArrayStream *in,
             struct ArrowAsyncDeviceStreamHandler *handler);
long long async_held(struct uva_runtime *runtime);

struct uva_runtime *async_open(void)
{
    struct uva_runtime *runtime = NULL;

    return uva_runtime_open(NULL, NULL, &runtime, NULL) == 0 ? runtime : NULL;
}

/* Gives what the peer's producer sends; `ctx` lives until then. */
int async_from(struct uva_runtime *runtime, async_start_fn *start, void *ctx,
               int window, struct ArrowArrayStream *out)
{
    const struct uva_async_source source = {
        .start = start, .ctx = ctx, .window.batches = window};
    struct uva_stream *stream = uva_stream_from_async(runtime, &source);
    const int code = uva_stream_to_arrow_stream(stream, NULL, out, NULL);

    uva_stream_release(stream);
    return code;
}

/* Takes `in`; the handler may block, so it is called on a worker. */
int async_to(struct uva_runtime *runtime, struct ArrowArrayStream *in,
             struct ArrowAsyncDeviceStreamHandler *handler)
{
    const struct uva_drive options = {.on_worker = true};
    struct uva_stream *stream = uva_stream_from_arrow_stream(runtime, in, NULL);
    const int code = uva_stream_drive(stream, handler, &options, NULL);

    uva_stream_release(stream);
    return code;
}

/* How many tasks handlers hold. */
long long async_held(struct uva_runtime *runtime)
{
    struct uva_runtime_stats stats;

    uva_runtime_get_stats(runtime, &stats);
    return (long long)stats.tasks_held;
}
