/* SPDX-License-Identifier: Apache-2.0 */
/* ArrowDeviceArrayStream and ArrowArrayStream as sources: the calls into them,
 * which source/reader makes on a worker of the blocking lane.
 *
 * Happy path:  (open) -> get_schema -> (get_next)* -> release -> free_ctx.
 *
 * What can fail:
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
#include "stream/stream_impl.h"
#include "uvarrow/adapters.h"
#include "uvarrow/arrow.h"

struct blocking {
    struct uva__reader reader;          /* first */
    struct uva_blocking_source options; /* owns its ctx */
    bool plain;                         /* the member `stream.plain` is used */
    bool warned; /* about batches of another device type */
    union {
        struct ArrowDeviceArrayStream device; /* owns */
        struct ArrowArrayStream plain;        /* owns */
    } stream;
};

static struct blocking *blocking_of(struct uva__reader *reader)
{
    return uva__container_of(reader, struct blocking, reader);
}

/* ---- calls into the source, on the worker ------------------------------- */

static bool blocking_is_live(const struct blocking *b)
{
    return b->plain ? b->stream.plain.release != NULL
                    : b->stream.device.release != NULL;
}

/* The source may describe its last failure, in a text that it owns. */
static int blocking_explain(struct blocking *b, int code,
                            struct uva_error *error)
{
    const char *text = b->plain
                           ? b->stream.plain.get_last_error(&b->stream.plain)
                           : b->stream.device.get_last_error(&b->stream.device);

    return uva__error_set_foreign(error, code, text);
}

static int blocking_call_open(struct blocking *b, struct uva_error *error)
{
    int code;

    if (b->plain)
        code = b->options.open(b->options.ctx, &b->stream.plain, error);
    else
        code = b->options.open_device(b->options.ctx, &b->stream.device, error);
    if (code != 0) {
        memset(&b->stream, 0, sizeof(b->stream));
        return uva__error_positive(code);
    }
    return b->plain
               ? uva__structs_check_stream(&b->stream.plain, error)
               : uva__structs_check_device_stream(&b->stream.device, error);
}

static int blocking_open(struct uva__reader *reader, struct ArrowSchema *schema,
                         struct uva_error *error)
{
    struct blocking *b = blocking_of(reader);
    int code = 0;

    if (!blocking_is_live(b))
        code = blocking_call_open(b, error);
    if (code != 0)
        return code;
    if (!b->plain) {
        uva__check_hop_stream(reader->source.label, "from_blocking",
                              &b->stream.device);
        reader->worker.device_type = b->stream.device.device_type;
    }
    code = b->plain ? b->stream.plain.get_schema(&b->stream.plain, schema)
                    : b->stream.device.get_schema(&b->stream.device, schema);
    if (code == 0)
        return 0;
    schema->release = NULL;
    return blocking_explain(b, code, error);
}

static int next_plain(struct blocking *b, struct ArrowDeviceArray *out)
{
    struct ArrowArray array;
    int code;

    memset(&array, 0, sizeof(array));
    code = b->stream.plain.get_next(&b->stream.plain, &array);
    if (code == 0 && array.release != NULL)
        uva_array_from_cpu(&array, out);
    return code;
}

static int next_device(struct blocking *b, struct ArrowDeviceArray *out)
{
    int code = b->stream.device.get_next(&b->stream.device, out);

    if (code == 0 && uva_array_is_live(out) && !b->warned &&
        out->device_type != b->stream.device.device_type) {
        b->warned = true;
        uva__rt_breach(b->reader.source.rt,
                       uva__label_text(b->reader.source.label), "DS-03",
                       "a batch is of another device type than its stream");
    }
    return code;
}

static int blocking_next(struct uva__reader *reader, struct uva__read *out,
                         struct uva_error *error)
{
    struct blocking *b = blocking_of(reader);
    int code =
        b->plain ? next_plain(b, out->array) : next_device(b, out->array);

    if (code == 0)
        return 0;
    out->array->array.release = NULL;
    return blocking_explain(b, code, error);
}

static void blocking_close(struct uva__reader *reader)
{
    struct blocking *b = blocking_of(reader);

    if (b->plain && b->stream.plain.release != NULL)
        b->stream.plain.release(&b->stream.plain);
    else if (!b->plain && b->stream.device.release != NULL)
        b->stream.device.release(&b->stream.device);
    if (b->options.free_ctx != NULL)
        b->options.free_ctx(b->options.ctx);
}

static void blocking_interrupt(struct uva__reader *reader)
{
    struct blocking *b = blocking_of(reader);

    b->options.interrupt(b->options.ctx);
}

static const char *blocking_metadata(struct uva__reader *reader, int code)
{
    struct blocking *b = blocking_of(reader);

    return b->options.metadata != NULL
               ? b->options.metadata(b->options.ctx, code)
               : NULL;
}

static void blocking_free(struct uva__reader *reader,
                          const struct uva_allocator *allocator)
{
    uva__memory_free(allocator, blocking_of(reader), sizeof(struct blocking));
}

static const struct uva__reader_ops blocking_ops = {
    .name = "from_blocking",
    .call = "get_next",
    .sized = true,
    .open = blocking_open,
    .next = blocking_next,
    .metadata = blocking_metadata,
    .close = blocking_close,
    .interrupt = blocking_interrupt,
    .free = blocking_free,
};

/* ---- making one --------------------------------------------------------- */

/* The source is taken on failure too: it is released here. */
static struct uva_stream *blocking_fail(struct uva_runtime *runtime,
                                        struct blocking *b,
                                        const struct uva_error *error)
{
    if (!uva__memory_is_clear(b->options.reserved, 2))
        b->options.free_ctx = NULL; /* its members cannot be trusted */
    blocking_close(&b->reader);
    return uva__stream_failed(runtime, error);
}

static int blocking_check(const struct blocking *b, bool given,
                          const struct uva__rt *rt, struct uva_error *error)
{
    const struct uva_blocking_source *options = &b->options;
    bool open = b->plain ? options->open != NULL : options->open_device != NULL;

    if (!uva__memory_is_clear(options->reserved, 2))
        return uva_error_set(error, EINVAL,
                             "uva_blocking_source: reserved members must be "
                             "NULL; clear the struct before filling it in");
    if (options->turns != NULL && !uva__turns_are_of(options->turns, rt))
        return uva_error_set(error, EINVAL,
                             "uva_blocking_source: `turns` are those of "
                             "another runtime");
    if (given && open)
        return uva_error_set(error, EINVAL,
                             "uva_blocking_source: give a source or an open "
                             "hook, not both");
    if (!given && !open)
        return uva_error_set(error, EINVAL,
                             "from_blocking: there is neither a source nor a "
                             "hook that opens one (options->%s)",
                             b->plain ? "open" : "open_device");
    if (!given)
        return 0;
    return b->plain
               ? uva__structs_check_stream(&b->stream.plain, error)
               : uva__structs_check_device_stream(&b->stream.device, error);
}

static struct uva_stream *blocking_make(struct uva_runtime *runtime,
                                        struct blocking *given, bool has_source)
{
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct uva_error error = {0};
    struct blocking *b;
    int code = blocking_check(given, has_source, rt, &error);

    if (code != 0 || rt == NULL || !uva__rt_is_alive(rt))
        return blocking_fail(runtime, given, &error);
    b = uva__memory_new(&rt->allocator, sizeof(*b));
    if (b == NULL) {
        (void)uva_error_set(&error, ENOMEM, "no memory for the stream");
        return blocking_fail(runtime, given, &error);
    }
    *b = *given;
    code = uva__reader_init(&b->reader, &blocking_ops, rt, &b->options.window,
                            b->options.on_loop, b->options.interrupt != NULL,
                            b->options.turns);
    if (code != 0) {
        uva__memory_free(&rt->allocator, b, sizeof(*b));
        (void)uva_error_set(&error, code, "from_blocking: %s",
                            code == EINVAL
                                ? "a window must not be negative, and its "
                                  "reserved members must be NULL"
                                : strerror(code));
        return blocking_fail(runtime, given, &error);
    }
    if (b->options.device_type != 0)
        b->reader.source.device_type = b->options.device_type;
    if (!b->plain && has_source)
        b->reader.source.device_type = b->stream.device.device_type;
    return uva__stream_new(&b->reader.source);
}

struct uva_stream *
uva_stream_from_blocking(struct uva_runtime *runtime,
                         struct ArrowDeviceArrayStream *source,
                         const struct uva_blocking_source *options)
{
    struct blocking given = {0};

    if (options != NULL)
        given.options = *options;
    if (source != NULL) {
        given.stream.device = *source;
        source->release = NULL;
    }
    return blocking_make(runtime, &given, source != NULL);
}

struct uva_stream *
uva_stream_from_blocking_cpu(struct uva_runtime *runtime,
                             struct ArrowArrayStream *source,
                             const struct uva_blocking_source *options)
{
    struct blocking given = {.plain = true};

    if (options != NULL)
        given.options = *options;
    if (source != NULL) {
        given.stream.plain = *source;
        source->release = NULL;
    }
    return blocking_make(runtime, &given, source != NULL);
}
