/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder as a transform; as a map for text, where no batch depends on one
 * before it: a map runs on several workers at once. A part travels where
 * an array has its bitmap, which nothing reads of an array without rows: not in
 * private_data, because sharing an array replaces that. Text also is the
 * array's one column, so that windows count its bytes.
 *
 * Happy path:  schema -> batch (the schema's part goes with the first; the line
 *              of names is the name of the schema) -> finish.
 *
 * What can fail: the encoder. Its code and text end the stream FAILED. */
#include "io/parcel.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "io/encoder.h"
#include "io/part.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

/* Batches that wait between stage and consumer; their bytes are not counted
 * there, but by the consumer. */
enum { PARCELS_AHEAD = 2 };

/* The stage. */
struct parcel_stage {
    struct uva_write options;
    struct uva_encoder *encoder; /* owns; NULL: there is no schema */
    bool has_begun;              /* the schema's part was emitted */
    char null_text[];            /* what options.csv.null_text is */
};

/* What carries a part; borrowed by the array's struct. */
struct parcel {
    struct uva_encoder_part part; /* owns */
    bool is_batch;                /* of a batch: not what comes first or last */
    const void *buffers[1];       /* the parcel itself */
    const void *column_buffers[2];  /* of text: its bytes */
    struct ArrowArray column;       /* released with the root */
    struct ArrowArray *children[1]; /* the column */
};

/* The schema of text parcels, in one allocation. */
struct parcel_shape {
    struct ArrowSchema column;       /* gone with the root: nothing moves it */
    struct ArrowSchema *children[1]; /* the column */
    char first[];                    /* what comes first, and a NUL */
};

static void parcel_release(struct ArrowArray *array)
{
    struct parcel *parcel = array->private_data;

    if (parcel->column.release != NULL)
        parcel->column.release(&parcel->column);
    uva_encoder_part_release(&parcel->part);
    free(parcel);
    array->release = NULL;
}

static void parcel_release_column(struct ArrowArray *array)
{
    array->release = NULL;
}

const struct uva_encoder_part *
uva__parcel_part(const struct ArrowDeviceArray *array)
{
    const struct parcel *parcel = array->array.buffers[0];

    return &parcel->part;
}

bool uva__parcel_is_batch(const struct ArrowDeviceArray *array)
{
    const struct parcel *parcel = array->array.buffers[0];

    return parcel->is_batch;
}

/* ---- making ------------------------------------------------------------- */

static int parcel_no_memory(struct uva_error *error)
{
    return uva_error_set(error, ENOMEM, "out of memory");
}

/* Makes an array that carries `part`, which it takes in every case. */
static struct parcel *parcel_make(struct uva_encoder_part *part, bool is_batch,
                                  struct ArrowDeviceArray *out)
{
    struct parcel *parcel = calloc(1, sizeof(*parcel));

    if (parcel == NULL) {
        uva_encoder_part_release(part);
        return NULL;
    }
    parcel->part = *part;
    parcel->is_batch = is_batch;
    parcel->buffers[0] = parcel;
    uva_array_clear(out);
    out->device_type = ARROW_DEVICE_CPU;
    out->device_id = -1;
    out->array = (struct ArrowArray){.n_buffers = 1,
                                     .buffers = parcel->buffers,
                                     .release = parcel_release,
                                     .private_data = parcel};
    return parcel;
}

/* Gives the array of a parcel the bytes of its part, at most one buffer, as a
 * column. */
static void parcel_add_column(struct parcel *parcel, struct ArrowArray *array)
{
    const struct uva_encoder_part *part = &parcel->part;

    assert(part->count <= 1);
    parcel->column_buffers[1] = part->count == 0 ? NULL : part->buffers[0].base;
    parcel->column = (struct ArrowArray){.length = part->bytes,
                                         .n_buffers = 2,
                                         .buffers = parcel->column_buffers,
                                         .release = parcel_release_column};
    parcel->children[0] = &parcel->column;
    array->n_children = 1;
    array->children = parcel->children;
}

/* Passes on a part, which it takes. Returns as the emitter does. */
static int parcel_emit(struct uva_encoder_part *part, bool is_batch,
                       uva_emit_fn *emit, void *emitter,
                       struct uva_error *error)
{
    struct uva_batch out = {0};

    return parcel_make(part, is_batch, &out.data) == NULL
               ? parcel_no_memory(error)
               : emit(emitter, &out);
}

/* ---- Arrow IPC ---------------------------------------------------------- */

/* Emits what comes first, once. */
static int parcel_begin(struct parcel_stage *stage, uva_emit_fn *emit,
                        void *emitter, struct uva_error *error)
{
    struct uva_encoder_part part;

    if (stage->has_begun)
        return 0;
    if (uva_encoder_begin(stage->encoder, &part) != 0)
        return parcel_no_memory(error);
    stage->has_begun = true;
    return parcel_emit(&part, false, emit, emitter, error);
}

static void parcel_release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static int parcel_schema(void *ctx, const struct ArrowSchema *in,
                         struct ArrowSchema *out, struct uva_error *error)
{
    struct parcel_stage *stage = ctx;

    *out = (struct ArrowSchema){
        .format = "+s", .name = "", .release = parcel_release_schema};
    return uva_encoder_new(in, &stage->options, &stage->encoder, error);
}

static int parcel_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                        void *emitter, struct uva_error *error)
{
    struct parcel_stage *stage = ctx;
    struct uva_encoder_part part;
    int code = parcel_begin(stage, emit, emitter, error);

    if (code != 0) /* EAGAIN too: this is called again with the batch */
        return code;
    code = uva_encoder_batch(stage->encoder, &in->data, &part, error);
    if (code == 0)
        code = parcel_emit(&part, true, emit, emitter, error);
    return code == EAGAIN ? 0 : code;
}

static int parcel_finish(void *ctx, uva_emit_fn *emit, void *emitter,
                         struct uva_error *error)
{
    struct parcel_stage *stage = ctx;
    struct uva_encoder_part part;
    int code = parcel_begin(stage, emit, emitter, error);

    if (code != 0)
        return code;
    if (uva_encoder_end(stage->encoder, &part) != 0)
        return parcel_no_memory(error);
    code = parcel_emit(&part, false, emit, emitter, error);
    return code == EAGAIN ? 0 : code;
}

/* ---- text --------------------------------------------------------------- */

static void parcel_release_shape(struct ArrowSchema *schema)
{
    free(schema->private_data);
    schema->release = NULL;
}

/* Makes the schema of text parcels, with the bytes of `first`. */
static int parcel_make_shape(const struct uva_encoder_part *first,
                             struct ArrowSchema *out)
{
    const size_t size = (size_t)first->bytes;
    struct parcel_shape *shape = calloc(1, sizeof(*shape) + size + 1);

    if (shape == NULL)
        return ENOMEM;
    if (size > 0)
        memcpy(shape->first, first->buffers[0].base, size);
    shape->column = (struct ArrowSchema){
        .format = "C", .name = "", .release = parcel_release_schema};
    shape->children[0] = &shape->column;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = shape->first,
                                .n_children = 1,
                                .children = shape->children,
                                .release = parcel_release_shape,
                                .private_data = shape};
    return 0;
}

static int parcel_text_schema(void *ctx, const struct ArrowSchema *in,
                              struct ArrowSchema *out, struct uva_error *error)
{
    struct parcel_stage *stage = ctx;
    struct uva_encoder_part first = {0};
    int code = uva_encoder_new(in, &stage->options, &stage->encoder, error);

    if (code != 0)
        return code;
    code = uva_encoder_begin(stage->encoder, &first);
    if (code == 0)
        code = parcel_make_shape(&first, out);
    uva_encoder_part_release(&first);
    return code == 0 ? 0 : parcel_no_memory(error);
}

static int parcel_text_batch(void *ctx, struct uva_batch *in,
                             struct ArrowDeviceArray *out,
                             struct uva_error *error)
{
    struct parcel_stage *stage = ctx;
    struct uva_encoder_part part;
    struct parcel *parcel;
    int code = uva_encoder_batch(stage->encoder, &in->data, &part, error);

    if (code != 0)
        return code;
    parcel = parcel_make(&part, true, out);
    if (parcel == NULL)
        return parcel_no_memory(error);
    parcel_add_column(parcel, &out->array);
    return 0;
}

int uva__parcel_first(const struct ArrowSchema *schema,
                      struct ArrowDeviceArray *out)
{
    const size_t size = strlen(schema->name);
    struct uva__part_draft draft = {0};
    struct uva_encoder_part part;
    int code = 0;

    uva_array_clear(out);
    if (size == 0)
        return 0;
    if (!uva__part_copy(&draft, schema->name, (int64_t)size) ||
        uva__part_finish(&draft, NULL, &part) != 0 ||
        parcel_make(&part, false, out) == NULL)
        code = ENOMEM;
    uva__part_fini(&draft);
    return code;
}

/* ---- the stage ---------------------------------------------------------- */

static void parcel_free(void *ctx)
{
    struct parcel_stage *stage = ctx;

    uva_encoder_free(stage->encoder);
    free(stage);
}

/* Makes the stage, with a copy of the options. */
static struct parcel_stage *parcel_stage_new(const struct uva_write *options)
{
    const char *null_text = options->csv.null_text;
    const size_t size = null_text == NULL ? 0 : strlen(null_text);
    struct parcel_stage *stage = calloc(1, sizeof(*stage) + size + 1);

    if (stage == NULL)
        return NULL;
    stage->options = *options;
    if (size > 0)
        memcpy(stage->null_text, null_text, size);
    stage->options.csv.null_text = stage->null_text;
    return stage;
}

int uva__parcel_stage(struct uva_stream *stream,
                      const struct uva_write *options)
{
    struct parcel_stage *stage = parcel_stage_new(options);
    const struct uva_transform transform = {.batch = parcel_batch,
                                            .finish = parcel_finish,
                                            .schema = parcel_schema,
                                            .free_ctx = parcel_free,
                                            .ctx = stage,
                                            .on_loop =
                                                options->compression == 0,
                                            .window.batches = PARCELS_AHEAD};
    const struct uva_map map = {.batch = parcel_text_batch,
                                .schema = parcel_text_schema,
                                .free_ctx = parcel_free,
                                .ctx = stage};

    if (stage == NULL)
        return ENOMEM;
    return uva__encoder_is_text(options->format)
               ? uva_stream_map(stream, &map)
               : uva_stream_transform(stream, &transform);
}
