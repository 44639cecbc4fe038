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
#include "source/reader.h"
#include "stream/check_hop.h"
#include "stream/deadlines.h"
#include "stream/source_kind.h"
#include "stream/stream_impl.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"

/* The source of the user, and how it is called. */
struct given {
    struct uva_arrow_source options; /* owns its ctx */
    bool is_plain;                   /* it gives `plain`, not a device stream */
    bool has_source;                 /* it was given, and is not opened */
    struct ArrowArrayStream plain;   /* owns; or not used */
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

    if (g->options.needed != NULL)
        g->options.needed(g->options.ctx);
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
    const int code =
        g->is_plain ? g->options.open(g->options.ctx, &g->plain, error)
                    : g->options.open_device(g->options.ctx, &g->stream, error);

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
        uva__check_hop_stream(reader->source.label, reader->source.name,
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

static void given_end(void *given)
{
    struct given *g = given;

    if (g->stream.release != NULL)
        g->stream.release(&g->stream);
}

static bool blocking_end(struct uva__reader *reader)
{
    given_end(given_of(reader));
    return given_of(reader)->options.frees_late;
}

static void blocking_close(struct uva__reader *reader)
{
    struct given *g = given_of(reader);

    given_end(g);
    if (g->options.free_ctx != NULL)
        g->options.free_ctx(g->options.ctx);
}

static void blocking_interrupt(struct uva__reader *reader)
{
    struct given *g = given_of(reader);

    g->options.interrupt(g->options.ctx);
}

static const char *blocking_metadata(struct uva__reader *reader, int code)
{
    struct given *g = given_of(reader);

    return g->options.metadata != NULL
               ? g->options.metadata(g->options.ctx, code)
               : NULL;
}

static void blocking_expect(struct uva__reader *reader, int64_t *rows,
                            int64_t *bytes)
{
    struct given *g = given_of(reader);

    if (g->options.expect != NULL)
        g->options.expect(g->options.ctx, rows, bytes);
}

static const struct uva__reader_ops blocking_ops = {
    .call = "get_next",
    .needed = blocking_needed,
    .open = blocking_open,
    .next = blocking_next,
    .metadata = blocking_metadata,
    .expect = blocking_expect,
    .end = blocking_end,
    .close = blocking_close,
    .interrupt = blocking_interrupt,
};

/* ---- making one --------------------------------------------------------- */

static int blocking_check(struct uva__source_setup *setup,
                          struct uva_error *error)
{
    const struct uva_arrow_source *options = setup->options;
    const struct given *g = setup->given;
    const bool open =
        g->is_plain ? options->open != NULL : options->open_device != NULL;

    uva__reader_require(setup, options->on_loop, options->interrupt != NULL);
    if (options->permits != NULL &&
        !uva__permits_are_of(options->permits, setup->rt))
        return uva_error_set(error, EINVAL,
                             "uva_arrow_source: `permits` are those of "
                             "another runtime");
    if (g->has_source && open)
        return uva_error_set(error, EINVAL,
                             "uva_arrow_source: give a source or an open "
                             "hook, not both");
    if (!g->has_source && !open)
        return uva_error_set(error, EINVAL,
                             "uva_arrow_source: there is neither a source nor "
                             "a hook that opens one (options->%s)",
                             g->is_plain ? "open" : "open_device");
    return g->has_source ? given_check_stream(g, error) : 0;
}

static int blocking_init(struct uva__source *source,
                         const struct uva__source_setup *setup,
                         struct uva_error *error)
{
    const struct uva_arrow_source *options = setup->options;
    struct blocking *b =
        blocking_of(uva__container_of(source, struct uva__reader, source));
    int code;

    (void)error;
    b->given = *(const struct given *)setup->given;
    b->given.options = *options;
    b->reader.is_timed = options->busy_ms > 0;
    if (options->device_type != 0)
        source->device_type = options->device_type;
    if (b->given.has_source)
        source->device_type = b->given.stream.device_type;
    code = uva__reader_init(&b->reader, &blocking_ops, setup, options->on_loop,
                            options->interrupt != NULL, options->permits);
    if (code != 0)
        blocking_close(&b->reader);
    return code;
}

static const struct uva__option_limit blocking_limits[] = {
    UVA__LIMIT(uva_arrow_source, busy_ms, 0, INT64_MAX), {.name = NULL}};

#define BLOCKING_KIND(NAME)                                                    \
    {                                                                          \
        .options = {UVA__OPTIONS(uva_arrow_source),                            \
                    UVA__OPTIONS_CTX(uva_arrow_source),                        \
                    UVA__OPTIONS_WINDOW(uva_arrow_source),                     \
                    .limits = blocking_limits},                                \
        .size = sizeof(struct blocking), .needs = UVA__READER_NEEDS,           \
        .name_at = offsetof(struct uva_arrow_source, name),                    \
        .check = blocking_check, .init = blocking_init, .drop = given_end,     \
        .source = {.name = (NAME), .sized = true},                             \
    }

static const struct uva__source_kind plain_kind = BLOCKING_KIND("arrow_stream");
static const struct uva__source_kind device_kind =
    BLOCKING_KIND("device_stream");

/* Makes the stream, with a limit on the calls of the source. */
static struct uva_stream *blocking_make(struct uva_runtime *runtime,
                                        struct given *g,
                                        const struct uva_arrow_source *options)
{
    struct uva_stream *stream = uva__source_add(
        runtime, g->is_plain ? &plain_kind : &device_kind, options, g);

    if (options != NULL && options->busy_ms > 0 &&
        uva_stream_status(stream, NULL) == 0 &&
        uva__deadlines_add_busy(stream->tail, options->busy_ms) != 0)
        (void)uva__stream_fail(stream, ENOMEM, "no memory for a time limit");
    return stream;
}

struct uva_stream *
uva_stream_from_device_stream(struct uva_runtime *runtime,
                              struct ArrowDeviceArrayStream *source,
                              const struct uva_arrow_source *options)
{
    struct given given = {.has_source = source != NULL};

    if (source != NULL) {
        given.stream = *source;
        source->release = NULL;
    }
    return blocking_make(runtime, &given, options);
}

struct uva_stream *
uva_stream_from_arrow_stream(struct uva_runtime *runtime,
                             struct ArrowArrayStream *source,
                             const struct uva_arrow_source *options)
{
    struct given given = {.is_plain = true, .has_source = source != NULL};

    if (source != NULL) {
        given.plain = *source;
        source->release = NULL;
    }
    given_adapt(&given);
    return blocking_make(runtime, &given, options);
}
