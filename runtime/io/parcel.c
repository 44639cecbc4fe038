/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder as a transform. A part travels where an array has its bitmap,
 * which nothing reads of an array without rows: not in private_data, because
 * sharing an array replaces that.
 *
 * Happy path:  schema -> batch (the schema's part goes with the first) ->
 *              finish.
 *
 * What can fail: the encoder. Its code and text end the stream FAILED. */
#include "io/parcel.h"

#include <stdlib.h>

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
};

/* What carries a part; borrowed by the array's struct. */
struct parcel {
    struct uva_encoder_part part; /* owns */
    const void *buffers[1];       /* the parcel itself */
};

static void parcel_release(struct ArrowArray *array)
{
    struct parcel *parcel = array->private_data;

    uva_encoder_part_release(&parcel->part);
    free(parcel);
    array->release = NULL;
}

const struct uva_encoder_part *
uva__parcel_part(const struct ArrowDeviceArray *array)
{
    const struct parcel *parcel = array->array.buffers[0];

    return &parcel->part;
}

/* ---- emitting ----------------------------------------------------------- */

static int parcel_no_memory(struct uva_error *error)
{
    return uva_error_set(error, ENOMEM, "out of memory");
}

/* Passes on a part, which it takes. Returns as the emitter does. */
static int parcel_emit(struct uva_encoder_part *part, uva_emit_fn *emit,
                       void *emitter, struct uva_error *error)
{
    struct parcel *parcel = calloc(1, sizeof(*parcel));
    struct uva_batch out = {0};

    if (parcel == NULL) {
        uva_encoder_part_release(part);
        return parcel_no_memory(error);
    }
    parcel->part = *part;
    parcel->buffers[0] = parcel;
    out.data.device_type = ARROW_DEVICE_CPU;
    out.data.device_id = -1;
    out.data.array = (struct ArrowArray){.n_buffers = 1,
                                         .buffers = parcel->buffers,
                                         .release = parcel_release,
                                         .private_data = parcel};
    return emit(emitter, &out);
}

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
    return parcel_emit(&part, emit, emitter, error);
}

/* ---- the stage ---------------------------------------------------------- */

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
        code = parcel_emit(&part, emit, emitter, error);
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
    code = parcel_emit(&part, emit, emitter, error);
    return code == EAGAIN ? 0 : code;
}

static void parcel_free(void *ctx)
{
    struct parcel_stage *stage = ctx;

    uva_encoder_free(stage->encoder);
    free(stage);
}

int uva__parcel_stage(struct uva_stream *stream,
                      const struct uva_write *options)
{
    struct parcel_stage *stage = calloc(1, sizeof(*stage));
    struct uva_transform transform = {.batch = parcel_batch,
                                      .finish = parcel_finish,
                                      .schema = parcel_schema,
                                      .free_ctx = parcel_free,
                                      .on_loop = options->compression == 0,
                                      .window.batches = PARCELS_AHEAD};

    if (stage == NULL)
        return ENOMEM;
    stage->options = *options;
    transform.ctx = stage;
    return uva_stream_transform(stream, &transform);
}
