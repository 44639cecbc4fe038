/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_encode(): the encoder as a transform. Lines of text do not depend
 * on the batches before them, so text is encoded by a map on several workers,
 * and the transform puts the line of names before them.
 *
 * A part travels where an array has its bitmap, which nothing reads of an array
 * without rows: not in private_data, because sharing an array replaces that.
 * Between the map and the transform, text also is the one column of the array,
 * so that windows count its bytes.
 *
 * Happy path:  schema -> batch (the begin of the output and the first batch are
 *              one part; the line of names is the name of the schema) ->
 *              finish.
 *
 * What can fail: the encoder. Its code and text end the stream FAILED. */
#include "io/encode_stage.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/encoder.h"
#include "io/part.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

/* Batches that wait between stage and consumer; their bytes are not counted
 * there, but by the consumer. */
enum { PARTS_AHEAD = 2 };

/* The stage. */
struct encode_stage {
    struct uva_encode options;
    struct uva__encoder *encoder; /* owns; NULL: there is no schema */
    struct uva_part begin;        /* owns: the begin of Arrow IPC, until it is
                                     emitted */
    bool has_begun;               /* the begin of the output was emitted */
    char null_text[];             /* options.csv.null_text */
};

/* The carrier of a part; borrowed by the array's struct. */
struct encoded_part {
    struct uva_part part;           /* counts */
    bool is_batch;                  /* it is one of a batch */
    const void *buffers[1];         /* this struct */
    const void *column_buffers[2];  /* of text: its bytes */
    struct ArrowArray column;       /* released with the root */
    struct ArrowArray *children[1]; /* the column */
};

/* The stage that puts the line of names before the lines. */
struct encode_names {
    char *line;     /* owns; "": none. NULL: there is no schema */
    bool has_begun; /* the line was emitted, or there is none */
};

/* The schema of encoded text, in one allocation. */
struct encode_shape {
    struct ArrowSchema column;       /* gone with the root: nothing moves it */
    struct ArrowSchema *children[1]; /* the column */
    char first[];                    /* the line of names, and a NUL */
};

static void encode_release(struct ArrowArray *array)
{
    struct encoded_part *encoded = array->private_data;

    if (encoded->column.release != NULL)
        encoded->column.release(&encoded->column);
    uva_part_release(&encoded->part);
    free(encoded);
    array->release = NULL;
}

static void encode_release_column(struct ArrowArray *array)
{
    array->release = NULL;
}

/* ---- the carrier --------------------------------------------------------- */

/* What the array carries; NULL: it is another one. Looks into no foreign memory
 * but the list of buffers. */
static const struct encoded_part *encode_carried(const struct ArrowArray *array)
{
    const struct encoded_part *encoded;

    if (array->release == NULL || array->length != 0 || array->n_buffers != 1 ||
        array->buffers[0] == NULL)
        return NULL;
    encoded = array->buffers[0];
    return (const void *)array->buffers == (const void *)&encoded->buffers
               ? encoded
               : NULL;
}

/* ---- making ------------------------------------------------------------- */

static int encode_no_memory(struct uva_error *error)
{
    return uva_error_set(error, ENOMEM, "out of memory");
}

/* Makes an array that carries `part`, which it takes in every case. */
static struct encoded_part *encode_make(struct uva_part *part,
                                        struct ArrowDeviceArray *out)
{
    struct encoded_part *encoded = calloc(1, sizeof(*encoded));

    if (encoded == NULL) {
        uva_part_release(part);
        return NULL;
    }
    encoded->part = *part;
    encoded->buffers[0] = encoded;
    uva_array_clear(out);
    out->device_type = ARROW_DEVICE_CPU;
    out->device_id = -1;
    out->array = (struct ArrowArray){.n_buffers = 1,
                                     .buffers = encoded->buffers,
                                     .release = encode_release,
                                     .private_data = encoded};
    return encoded;
}

/* Gives the array of an encoded part the bytes of its part, at most one buffer,
 * as a column. */
static void encode_add_column(struct encoded_part *encoded,
                              struct ArrowArray *array)
{
    const struct uva_part *part = &encoded->part;

    assert(part->count <= 1);
    encoded->column_buffers[1] =
        part->count == 0 ? NULL : part->buffers[0].base;
    encoded->column = (struct ArrowArray){.length = part->bytes,
                                          .n_buffers = 2,
                                          .buffers = encoded->column_buffers,
                                          .release = encode_release_column};
    encoded->children[0] = &encoded->column;
    array->n_children = 1;
    array->children = encoded->children;
}

/* Passes on a part, which it takes. Returns as a function of a transform. */
static int encode_emit(struct uva_part *part, bool is_batch, uva_emit_fn *emit,
                       void *emitter, struct uva_error *error)
{
    struct uva_batch out = {0};
    struct encoded_part *encoded = encode_make(part, &out.data);
    int code;

    if (encoded == NULL)
        return encode_no_memory(error);
    encoded->is_batch = is_batch;
    code = emit(emitter, &out);
    return code == EAGAIN ? 0 : code;
}

/* ---- Arrow IPC ---------------------------------------------------------- */

/* Passes on what follows the begin of the output, which it takes, together with
 * that if it is the first. */
static int encode_emit_next(struct encode_stage *stage, struct uva_part *next,
                            bool is_batch, uva_emit_fn *emit, void *emitter,
                            struct uva_error *error)
{
    if (!stage->has_begun &&
        uva__part_join((struct uva_part[]){stage->begin, *next}, 2, next) !=
            0) {
        uva_part_release(next);
        return encode_no_memory(error);
    }
    if (!stage->has_begun)
        stage->begin = (struct uva_part){0};
    stage->has_begun = true;
    return encode_emit(next, is_batch, emit, emitter, error);
}

static void encode_release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

/* The schema of what follows the stage. */
static void encode_no_columns(struct ArrowSchema *out)
{
    *out = (struct ArrowSchema){
        .format = "+s", .name = "", .release = encode_release_schema};
}

static int encode_schema(void *ctx, const struct ArrowSchema *in,
                         struct ArrowSchema *out, struct uva_error *error)
{
    struct encode_stage *stage = ctx;

    int code = uva__encoder_new(in, &stage->options, &stage->encoder, error);

    if (code != 0)
        return code;
    encode_no_columns(out);
    return uva__encoder_begin(stage->encoder, &stage->begin) == 0
               ? 0
               : encode_no_memory(error);
}

static int encode_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                        void *emitter, struct uva_error *error)
{
    struct encode_stage *stage = ctx;
    struct uva_part part;
    const int code =
        uva__encoder_batch(stage->encoder, &in->data, &part, error);

    return code == 0
               ? encode_emit_next(stage, &part, true, emit, emitter, error)
               : code;
}

static int encode_finish(void *ctx, uva_emit_fn *emit, void *emitter,
                         struct uva_error *error)
{
    struct encode_stage *stage = ctx;
    struct uva_part part;

    if (uva__encoder_end(stage->encoder, &part) != 0)
        return encode_no_memory(error);
    return encode_emit_next(stage, &part, false, emit, emitter, error);
}

/* ---- text --------------------------------------------------------------- */

static void encode_release_shape(struct ArrowSchema *schema)
{
    free(schema->private_data);
    schema->release = NULL;
}

/* Makes the schema of encoded text, with the bytes of `first`. */
static int encode_make_shape(const struct uva_part *first,
                             struct ArrowSchema *out)
{
    const size_t size = (size_t)first->bytes;
    struct encode_shape *shape = calloc(1, sizeof(*shape) + size + 1);

    if (shape == NULL)
        return ENOMEM;
    if (size > 0)
        memcpy(shape->first, first->buffers[0].base, size);
    shape->column = (struct ArrowSchema){
        .format = "C", .name = "", .release = encode_release_schema};
    shape->children[0] = &shape->column;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = shape->first,
                                .n_children = 1,
                                .children = shape->children,
                                .release = encode_release_shape,
                                .private_data = shape};
    return 0;
}

static int encode_text_schema(void *ctx, const struct ArrowSchema *in,
                              struct ArrowSchema *out, struct uva_error *error)
{
    struct encode_stage *stage = ctx;
    struct uva_part first = {0};
    int code = uva__encoder_new(in, &stage->options, &stage->encoder, error);

    if (code != 0)
        return code;
    code = uva__encoder_begin(stage->encoder, &first);
    if (code == 0)
        code = encode_make_shape(&first, out);
    uva_part_release(&first);
    return code == 0 ? 0 : encode_no_memory(error);
}

static int encode_text_batch(void *ctx, struct uva_batch *in,
                             struct ArrowDeviceArray *out,
                             struct uva_error *error)
{
    struct encode_stage *stage = ctx;
    struct uva_part part;
    struct encoded_part *encoded;
    int code = uva__encoder_batch(stage->encoder, &in->data, &part, error);

    if (code != 0)
        return code;
    encoded = encode_make(&part, out);
    if (encoded == NULL)
        return encode_no_memory(error);
    encoded->is_batch = true;
    encode_add_column(encoded, &out->array);
    return 0;
}

/* ---- the line of names -------------------------------------------------- */

static int names_schema(void *ctx, const struct ArrowSchema *in,
                        struct ArrowSchema *out, struct uva_error *error)
{
    struct encode_names *names = ctx;

    names->line = strdup(in->name);
    if (names->line == NULL)
        return encode_no_memory(error);
    names->has_begun = names->line[0] == '\0';
    encode_no_columns(out);
    return 0;
}

/* Gives the line as a part. */
static int names_part(const struct encode_names *names, struct uva_part *out)
{
    struct uva__part_draft draft = {0};
    int code = ENOMEM;

    if (uva__part_copy(&draft, names->line, (int64_t)strlen(names->line)))
        code = uva__part_finish(&draft, NULL, out);
    uva__part_fini(&draft);
    return code;
}

/* Puts the line of names before the first lines. */
static int names_begin(struct encode_names *names, struct uva_part *lines)
{
    struct uva_part part = {0};

    if (names_part(names, &part) != 0)
        return ENOMEM;
    if (uva__part_join((struct uva_part[]){part, *lines}, 2, lines) != 0) {
        uva_part_release(&part);
        return ENOMEM;
    }
    names->has_begun = true;
    return 0;
}

/* A batch without lines is left out: its part would be empty. Its array is not
 * passed on, since the column was for windows alone. */
static int names_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                       void *emitter, struct uva_error *error)
{
    struct encode_names *names = ctx;
    const struct encoded_part *encoded = encode_carried(&in->data.array);
    struct uva_part part;

    if (encoded->part.bytes == 0)
        return 0;
    uva__part_share(&encoded->part, &part);
    if (!names->has_begun && names_begin(names, &part) != 0) {
        uva_part_release(&part);
        return encode_no_memory(error);
    }
    return encode_emit(&part, true, emit, emitter, error);
}

static int names_finish(void *ctx, uva_emit_fn *emit, void *emitter,
                        struct uva_error *error)
{
    struct encode_names *names = ctx;
    struct uva_part part;

    if (names->has_begun)
        return 0;
    names->has_begun = true;
    return names_part(names, &part) == 0
               ? encode_emit(&part, false, emit, emitter, error)
               : encode_no_memory(error);
}

static void names_free(void *ctx)
{
    struct encode_names *names = ctx;

    free(names->line);
    free(names);
}

/* ---- the stage ---------------------------------------------------------- */

static void encode_free(void *ctx)
{
    struct encode_stage *stage = ctx;

    uva_part_release(&stage->begin);
    uva__encoder_free(stage->encoder);
    free(stage);
}

/* Makes the stage, with a copy of the options. */
static struct encode_stage *encode_stage_new(const struct uva_encode *options)
{
    const char *null_text = options->csv.null_text;
    const size_t size = null_text == NULL ? 0 : strlen(null_text);
    struct encode_stage *stage = calloc(1, sizeof(*stage) + size + 1);

    if (stage == NULL)
        return NULL;
    stage->options = *options;
    if (size > 0)
        memcpy(stage->null_text, null_text, size);
    stage->options.csv.null_text = stage->null_text;
    return stage;
}

/* Without memory for the stage, one that needs none fails the stream. */
static int encode_refuse_schema(void *ctx, const struct ArrowSchema *in,
                                struct ArrowSchema *out,
                                struct uva_error *error)
{
    (void)ctx;
    (void)in;
    (void)out;
    return encode_no_memory(error);
}

static int encode_add_refusal(struct uva_stream *stream)
{
    const int code = uva_stream_transform(
        stream, &(struct uva_transform){.batch = encode_batch,
                                        .schema = encode_refuse_schema,
                                        .on_loop = true});

    return code == 0 ? ENOMEM : code;
}

/* Adds the two stages of text, and takes `stage`. */
static int encode_add_text(struct uva_stream *stream,
                           struct encode_stage *stage)
{
    struct encode_names *names = calloc(1, sizeof(*names));
    const struct uva_map map = {.batch = encode_text_batch,
                                .schema = encode_text_schema,
                                .free_ctx = encode_free,
                                .ctx = stage};
    const struct uva_transform line = {.batch = names_batch,
                                       .finish = names_finish,
                                       .schema = names_schema,
                                       .free_ctx = names_free,
                                       .ctx = names,
                                       .on_loop = true,
                                       .window.batches = PARTS_AHEAD};

    if (names == NULL) {
        encode_free(stage);
        return encode_add_refusal(stream);
    }
    (void)uva_stream_map(stream, &map);
    (void)uva_stream_parallel(stream, NULL);
    return uva_stream_transform(stream, &line);
}

int uva_stream_encode(struct uva_stream *stream,
                      const struct uva_encode *options)
{
    static const struct uva_encode plain = {.format = UVA_FORMAT_ARROW};
    const struct uva_encode *o = options != NULL ? options : &plain;
    struct encode_stage *stage = encode_stage_new(o);
    int code;

    if (stage == NULL)
        return encode_add_refusal(stream);
    if (uva__encoder_is_text(o->format))
        code = encode_add_text(stream, stage);
    else
        code = uva_stream_transform(
            stream, &(struct uva_transform){.batch = encode_batch,
                                            .finish = encode_finish,
                                            .schema = encode_schema,
                                            .free_ctx = encode_free,
                                            .ctx = stage,
                                            .on_loop = o->compression ==
                                                       UVA_COMPRESSION_NONE,
                                            .window.batches = PARTS_AHEAD});
    return code == 0 ? uva__encoder_check(o, NULL) : code;
}

/* ---- the parts ----------------------------------------------------------- */

bool uva__part_is_batch(const struct ArrowDeviceArray *array)
{
    const struct encoded_part *encoded = encode_carried(&array->array);

    return encoded != NULL && encoded->is_batch;
}

int uva_part_take(struct ArrowDeviceArray *array, struct uva_part *out)
{
    const struct encoded_part *encoded = encode_carried(&array->array);

    if (encoded == NULL)
        return EINVAL;
    uva__part_share(&encoded->part, out);
    uva_array_release(array);
    return 0;
}
