/* SPDX-License-Identifier: Apache-2.0 */
/* ArrowDeviceArrayStream and ArrowArrayStream as sources: the calls into them,
 * which source/reader makes on a worker of the blocking lane.
 *
 * Happy path:  (open) -> get_schema -> (get_next)* -> release -> free_ctx.
 *
 * Failures:
 * - any of the first three: the code, with the text of get_last_error;
 * - a hook that returns success without a usable stream: EINVAL.
 *
 * On stop:     interrupt, while a call is in progress; then release.
 *
 * Clauses: DS-19. */
#include <errno.h>
#include <string.h>

#include "arrow/structs.h"
#include "base/error.h"
#include "base/memory.h"
#include "source/reader.h"
#include "stream/check_hop.h"
#include "stream/deadlines.h"
#include "stream/stream_impl.h"
#include "uvarrow/adapters.h"
#include "uvarrow/arrow.h"

/* The options of the user that are used while the stream is read. */
struct given {
    union { /* by `is_plain` */
        int (*open)(void *ctx, struct ArrowArrayStream *out,
                    struct uva_error *error);
        int (*open_device)(void *ctx, struct ArrowDeviceArrayStream *out,
                           struct uva_error *error);
    };
    void (*interrupt)(void *ctx);
    const char *(*metadata)(void *ctx, int code);
    void (*needed)(void *ctx);
    void (*free_ctx)(void *ctx);
    void *ctx;                     /* owns, through free_ctx */
    bool frees_late;               /* as in struct uva_blocking_source */
    bool is_plain;                 /* it gives `plain`, not a device stream */
    struct ArrowArrayStream plain; /* owns; or not used */
    struct ArrowDeviceArrayStream stream; /* owns: the source, or the adapter
                                             of `plain` */
};

struct blocking {
    struct uva__reader reader; /* first */
    struct given given;
};

static struct blocking *blocking_of(struct uva__reader *reader)
{
    return uva__container_of(reader, struct blocking, reader);
}

static struct given *given_of(struct uva__reader *reader)
{
    return &blocking_of(reader)->given;
}

/* ---- a plain stream, as a device stream ---------------------------------- */

static struct ArrowArrayStream *plain_of(struct ArrowDeviceArrayStream *self)
{
    return &uva__container_of(self, struct given, stream)->plain;
}

static int plain_get_schema(struct ArrowDeviceArrayStream *self,
                            struct ArrowSchema *out)
{
    struct ArrowArrayStream *plain = plain_of(self);

    return plain->get_schema(plain, out);
}

static int plain_get_next(struct ArrowDeviceArrayStream *self,
                          struct ArrowDeviceArray *out)
{
    struct ArrowArrayStream *plain = plain_of(self);
    struct ArrowArray array;
    int code;

    memset(&array, 0, sizeof(array));
    code = plain->get_next(plain, &array);
    if (code == 0 && array.release != NULL)
        uva_array_from_cpu(&array, out);
    return code;
}

static const char *plain_get_last_error(struct ArrowDeviceArrayStream *self)
{
    struct ArrowArrayStream *plain = plain_of(self);

    return plain->get_last_error(plain);
}

static void plain_release(struct ArrowDeviceArrayStream *self)
{
    struct ArrowArrayStream *plain = plain_of(self);

    self->release = NULL;
    plain->release(plain);
}

/* Puts the adapter of a plain stream in place, if there is one to release. */
static void given_adapt(struct given *g)
{
    if (g->is_plain && g->plain.release != NULL)
        g->stream = (struct ArrowDeviceArrayStream){
            .device_type = ARROW_DEVICE_CPU,
            .get_schema = plain_get_schema,
            .get_next = plain_get_next,
            .get_last_error = plain_get_last_error,
            .release = plain_release,
        };
}

/* ---- the call into the source on the loop -------------------------------- */

static void blocking_needed(struct uva__reader *reader)
{
    const struct given *g = given_of(reader);

    if (g->needed != NULL)
        g->needed(g->ctx);
}

/* ---- calls into the source, on the worker ------------------------------- */

/* The source may describe its last failure, in a text that it owns. */
static int given_explain(struct given *g, int code, struct uva_error *error)
{
    return uva__error_set_foreign(error, code,
                                  g->stream.get_last_error(&g->stream));
}

static int given_check_stream(const struct given *g, struct uva_error *error)
{
    return g->is_plain ? uva__structs_check_stream(&g->plain, error)
                       : uva__structs_check_device_stream(&g->stream, error);
}

static int given_open(struct given *g, struct uva_error *error)
{
    const int code = g->is_plain ? g->open(g->ctx, &g->plain, error)
                                 : g->open_device(g->ctx, &g->stream, error);

    if (code != 0) {
        g->stream.release = NULL;
        return uva__error_positive(code);
    }
    given_adapt(g);
    return given_check_stream(g, error);
}

static int blocking_open(struct uva__reader *reader, struct ArrowSchema *schema,
                         struct uva_error *error)
{
    struct given *g = given_of(reader);
    int code = 0;

    if (g->stream.release == NULL)
        code = given_open(g, error);
    if (code != 0)
        return code;
    if (!g->is_plain)
        uva__check_hop_stream(reader->source.label, "from_blocking",
                              &g->stream);
    reader->worker.device_type = g->stream.device_type;
    code = g->stream.get_schema(&g->stream, schema);
    if (code == 0)
        return 0;
    schema->release = NULL;
    return given_explain(g, code, error);
}

static int blocking_next(struct uva__reader *reader, struct uva__read *out,
                         struct uva_error *error)
{
    struct given *g = given_of(reader);
    const int code = g->stream.get_next(&g->stream, out->array);

    return code == 0 ? 0 : given_explain(g, code, error);
}

static void given_end(struct given *g)
{
    if (g->stream.release != NULL)
        g->stream.release(&g->stream);
}

static bool blocking_end(struct uva__reader *reader)
{
    given_end(given_of(reader));
    return given_of(reader)->frees_late;
}

static void given_close(struct given *g)
{
    given_end(g);
    if (g->free_ctx != NULL)
        g->free_ctx(g->ctx);
}

static void blocking_close(struct uva__reader *reader)
{
    given_close(given_of(reader));
}

static void blocking_interrupt(struct uva__reader *reader)
{
    struct given *g = given_of(reader);

    g->interrupt(g->ctx);
}

static const char *blocking_metadata(struct uva__reader *reader, int code)
{
    struct given *g = given_of(reader);

    return g->metadata != NULL ? g->metadata(g->ctx, code) : NULL;
}

static const struct uva__reader_ops blocking_ops = {
    .name = "from_blocking",
    .call = "get_next",
    .size = sizeof(struct blocking),
    .sized = true,
    .needed = blocking_needed,
    .open = blocking_open,
    .next = blocking_next,
    .metadata = blocking_metadata,
    .end = blocking_end,
    .close = blocking_close,
    .interrupt = blocking_interrupt,
};

/* ---- making one --------------------------------------------------------- */

/* The source is taken on failure too: it is released here. */
static struct uva_stream *blocking_fail(struct uva_runtime *runtime,
                                        struct given *g,
                                        const struct uva_error *error)
{
    given_close(g);
    return uva__stream_failed(runtime, error);
}

/* Options that were not cleared cannot be trusted at all. */
static void given_fill(struct given *g,
                       const struct uva_blocking_source *options)
{
    if (!uva__memory_is_clear(options->reserved, 1))
        return;
    if (g->is_plain)
        g->open = options->open;
    else
        g->open_device = options->open_device;
    g->interrupt = options->interrupt;
    g->metadata = options->metadata;
    g->needed = options->needed;
    g->free_ctx = options->free_ctx;
    g->ctx = options->ctx;
    g->frees_late = options->frees_late;
}

static int given_check(const struct given *g,
                       const struct uva_blocking_source *options,
                       bool has_source, const struct uva__rt *rt,
                       struct uva_error *error)
{
    const bool open =
        g->is_plain ? options->open != NULL : options->open_device != NULL;

    if (!uva__memory_is_clear(options->reserved, 1))
        return uva_error_set(error, EINVAL,
                             "uva_blocking_source: reserved members must be "
                             "NULL; clear the struct before filling it in");
    if (options->turns != NULL && !uva__permits_are_of(options->turns, rt))
        return uva_error_set(error, EINVAL,
                             "uva_blocking_source: `turns` are those of "
                             "another runtime");
    if (options->busy_ms < 0)
        return uva_error_set(error, EINVAL,
                             "uva_blocking_source: busy_ms must not be "
                             "negative");
    if (has_source && open)
        return uva_error_set(error, EINVAL,
                             "uva_blocking_source: give a source or an open "
                             "hook, not both");
    if (!has_source && !open)
        return uva_error_set(error, EINVAL,
                             "from_blocking: there is neither a source nor a "
                             "hook that opens one (options->%s)",
                             g->is_plain ? "open" : "open_device");
    if (!has_source)
        return 0;
    return given_check_stream(g, error);
}

static const char *blocking_why(int code)
{
    if (code == EINVAL)
        return "a window must not be negative, and its reserved members must "
               "be NULL";
    return code == EAGAIN ? "the system gives no thread" : strerror(code);
}

/* Gives no reader if it fails: then no argument was taken. */
static int blocking_new(struct uva__rt *rt, const struct given *g,
                        const struct uva_blocking_source *options,
                        struct blocking **out, struct uva_error *error)
{
    struct uva__reader *reader;
    const int code = uva__reader_new(
        &reader, &blocking_ops, rt, &options->window, options->on_loop,
        options->interrupt != NULL, options->turns);

    if (code == 0) {
        *out = blocking_of(reader);
        (*out)->given = *g;
        return 0;
    }
    return uva_error_set(error, code, "from_blocking: %s", blocking_why(code));
}

/* Sets the limit on the calls of the source, if the stream was made. */
static struct uva_stream *blocking_limit(struct uva_stream *stream,
                                         struct blocking *b, int64_t busy_ms)
{
    if (uva_stream_status(stream, NULL) != 0 || busy_ms == 0)
        return stream;
    b->reader.is_timed = true;
    if (uva__deadlines_add_busy(stream->tail, busy_ms) != 0)
        (void)uva__stream_fail(stream, ENOMEM, "no memory for a time limit");
    return stream;
}

static struct uva_stream *
blocking_make(struct uva_runtime *runtime, struct given *g, bool has_source,
              const struct uva_blocking_source *given_options)
{
    static const struct uva_blocking_source none;
    const struct uva_blocking_source *options =
        given_options != NULL ? given_options : &none;
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct uva_error error;
    struct blocking *b = NULL;
    int code;

    uva__error_begin(&error);
    given_fill(g, options);
    code = given_check(g, options, has_source, rt, &error);
    if (code == 0 && rt != NULL && uva__rt_is_alive(rt))
        code = blocking_new(rt, g, options, &b, &error);
    if (b == NULL)
        return blocking_fail(runtime, g, &error);
    if (options->device_type != 0)
        b->reader.source.device_type = options->device_type;
    if (has_source)
        b->reader.source.device_type = g->stream.device_type;
    return blocking_limit(uva__stream_new(&b->reader.source), b,
                          options->busy_ms);
}

struct uva_stream *
uva_stream_from_blocking(struct uva_runtime *runtime,
                         struct ArrowDeviceArrayStream *source,
                         const struct uva_blocking_source *options)
{
    struct given given = {0};

    if (source != NULL) {
        given.stream = *source;
        source->release = NULL;
    }
    return blocking_make(runtime, &given, source != NULL, options);
}

struct uva_stream *
uva_stream_from_blocking_cpu(struct uva_runtime *runtime,
                             struct ArrowArrayStream *source,
                             const struct uva_blocking_source *options)
{
    struct given given = {.is_plain = true};

    if (source != NULL) {
        given.plain = *source;
        source->release = NULL;
    }
    given_adapt(&given);
    return blocking_make(runtime, &given, source != NULL, options);
}
