/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_encode(): the encoder as a transform. Lines of text do not depend
 * on the batches before them, so text is encoded by a map on several workers,
 * and the transform puts the line of names before them.
 *
 * A part travels where an array has its bitmap, which nothing reads of an array
 * without rows: not in private_data, because sharing an array replaces that.
 * Text also is the one column of the array, so that windows count its bytes.
 *
 * Happy path:  schema -> batch (the schema's part goes with the first; the line
 *              of names is the name of the schema) -> finish.
 *
 * What can fail: the encoder. Its code and text end the stream FAILED. */
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
    struct uva_write options;
    struct uva_encoder *encoder; /* owns; NULL: there is no schema */
    bool has_begun;              /* the schema's part was emitted */
    char null_text[];            /* options.csv.null_text */
};

/* The carrier of a part; borrowed by the array's struct. */
struct encoded_part {
    struct uva_part part;           /* owns */
    const void *buffers[1];         /* this struct */
    const void *column_buffers[2];  /* of text: its bytes */
    struct ArrowArray column;       /* released with the root */
    struct ArrowArray *children[1]; /* the column */
};

/* The stage that puts the line of names before the lines. */
struct encode_names {
    char *line;     /* owns; "": none. NULL: there is no schema */
    bool has_begun; /* the line was emitted */
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

/* Passes on a part, which it takes. Returns as the emitter does. */
static int encode_emit(struct uva_part *part, uva_emit_fn *emit, void *emitter,
                       struct uva_error *error)
{
    struct uva_batch out = {0};

    return encode_make(part, &out.data) == NULL ? encode_no_memory(error)
                                                : emit(emitter, &out);
}

/* ---- Arrow IPC ---------------------------------------------------------- */

/* Emits the begin of the output, once. */
static int encode_begin(struct encode_stage *stage, uva_emit_fn *emit,
                        void *emitter, struct uva_error *error)
{
    struct uva_part part;

    if (stage->has_begun)
        return 0;
    if (uva_encoder_begin(stage->encoder, &part) != 0)
        return encode_no_memory(error);
    stage->has_begun = true;
    return encode_emit(&part, emit, emitter, error);
}

static void encode_release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static int encode_schema(void *ctx, const struct ArrowSchema *in,
                         struct ArrowSchema *out, struct uva_error *error)
{
    struct encode_stage *stage = ctx;

    *out = (struct ArrowSchema){
        .format = "+s", .name = "", .release = encode_release_schema};
    return uva_encoder_new(in, &stage->options, &stage->encoder, error);
}

static int encode_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                        void *emitter, struct uva_error *error)
{
    struct encode_stage *stage = ctx;
    struct uva_part part;
    int code = encode_begin(stage, emit, emitter, error);

    if (code != 0) /* EAGAIN too: this is called again with the batch */
        return code;
    code = uva_encoder_batch(stage->encoder, &in->data, &part, error);
    if (code == 0)
        code = encode_emit(&part, emit, emitter, error);
    return code == EAGAIN ? 0 : code;
}

static int encode_finish(void *ctx, uva_emit_fn *emit, void *emitter,
                         struct uva_error *error)
{
    struct encode_stage *stage = ctx;
    struct uva_part part;
    int code = encode_begin(stage, emit, emitter, error);

    if (code != 0)
        return code;
    if (uva_encoder_end(stage->encoder, &part) != 0)
        return encode_no_memory(error);
    code = encode_emit(&part, emit, emitter, error);
    return code == EAGAIN ? 0 : code;
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
    int code = uva_encoder_new(in, &stage->options, &stage->encoder, error);

    if (code != 0)
        return code;
    code = uva_encoder_begin(stage->encoder, &first);
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
    int code = uva_encoder_batch(stage->encoder, &in->data, &part, error);

    if (code != 0)
        return code;
    encoded = encode_make(&part, out);
    if (encoded == NULL)
        return encode_no_memory(error);
    encode_add_column(encoded, &out->array);
    return 0;
}

/* ---- the line of names -------------------------------------------------- */

static int names_schema(void *ctx, const struct ArrowSchema *in,
                        struct ArrowSchema *out, struct uva_error *error)
{
    struct encode_names *names = ctx;
    int code = uva_schema_copy(in, out);

    if (code == 0) {
        names->line = strdup(in->name);
        code = names->line != NULL ? 0 : ENOMEM;
    }
    return code == 0 ? 0 : encode_no_memory(error);
}

/* Makes an array that carries the line. */
static int names_make(const char *line, struct ArrowDeviceArray *out)
{
    struct uva__part_draft draft = {0};
    struct uva_part part;
    struct encoded_part *encoded = NULL;

    if (uva__part_copy(&draft, line, (int64_t)strlen(line)) &&
        uva__part_finish(&draft, NULL, &part) == 0) {
        part.rows = -1;
        encoded = encode_make(&part, out);
    }
    uva__part_fini(&draft);
    if (encoded == NULL)
        return ENOMEM;
    encode_add_column(encoded, &out->array);
    return 0;
}

/* Emits the line, once. */
static int names_begin(struct encode_names *names, uva_emit_fn *emit,
                       void *emitter, struct uva_error *error)
{
    struct uva_batch out = {0};

    if (names->has_begun || names->line[0] == '\0')
        return 0;
    if (names_make(names->line, &out.data) != 0)
        return encode_no_memory(error);
    names->has_begun = true;
    return emit(emitter, &out);
}

static int names_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                       void *emitter, struct uva_error *error)
{
    int code = names_begin(ctx, emit, emitter, error);

    if (code == 0) /* after EAGAIN this is called again with the batch */
        code = uva_array_is_live(&in->data) ? emit(emitter, in) : 0;
    else
        return code;
    return code == EAGAIN ? 0 : code;
}

static int names_finish(void *ctx, uva_emit_fn *emit, void *emitter,
                        struct uva_error *error)
{
    const int code = names_begin(ctx, emit, emitter, error);

    return code == EAGAIN ? 0 : code;
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

    uva_encoder_free(stage->encoder);
    free(stage);
}

/* Makes the stage, with a copy of the options. */
static struct encode_stage *encode_stage_new(const struct uva_write *options)
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
        return ENOMEM;
    }
    (void)uva_stream_map(stream, &map);
    (void)uva_stream_parallel(stream, NULL);
    return uva_stream_transform(stream, &line);
}

int uva_stream_encode(struct uva_stream *stream,
                      const struct uva_write *options)
{
    static const struct uva_write plain = {.format = UVA_FORMAT_ARROW};
    const struct uva_write *o = options != NULL ? options : &plain;
    struct encode_stage *stage = encode_stage_new(o);

    if (stage == NULL)
        return ENOMEM;
    if (uva__encoder_is_text(o->format))
        return encode_add_text(stream, stage);
    return uva_stream_transform(
        stream, &(struct uva_transform){.batch = encode_batch,
                                        .finish = encode_finish,
                                        .schema = encode_schema,
                                        .free_ctx = encode_free,
                                        .ctx = stage,
                                        .on_loop = o->compression == 0,
                                        .window.batches = PARTS_AHEAD});
}

/* ---- the parts ----------------------------------------------------------- */

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

int uva_part_take(struct ArrowDeviceArray *array, struct uva_part *out)
{
    const struct encoded_part *encoded = encode_carried(&array->array);
    struct uva__part_draft none = {0};
    void *owner;

    if (encoded == NULL)
        return EINVAL;
    if (uva__part_finish(&none, array, out) != 0)
        return ENOMEM;
    owner = out->owner;
    *out = encoded->part;
    out->owner = owner;
    return 0;
}
