/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of encoders, of whatever format. */
#include "io/encoder.h"

#include "io/ipc_compress.h"
#include "io/ipc_encoder.h"
#include "io/reserved.h"
#include "io/text_encoder.h"
#include "uvarrow/arrow.h"

/* ---- options ------------------------------------------------------------ */

static int encoder_check_text(const struct uva_encode *options,
                              struct uva_error *error)
{
    if (options->compression != 0)
        return uva_error_set(
            error, EINVAL,
            "uva_encode: compression is %d, which is for Arrow "
            "IPC alone",
            (int)options->compression);
    return options->format == UVA_FORMAT_CSV
               ? uva__text_encoder_check(&options->csv, error)
               : 0;
}

int uva__encoder_check(const struct uva_encode *options,
                       struct uva_error *error)
{
    if (options->format != UVA_FORMAT_ARROW &&
        options->format != UVA_FORMAT_ARROW_FILE &&
        !uva__encoder_is_text(options->format))
        return uva_error_set(error, EINVAL, "uva_encode: format is %d",
                             (int)options->format);
    if (uva__reserved_check("uva_encode", options->reserved, 4, error) != 0 ||
        uva__reserved_check("uva_csv", options->csv.reserved, 2, error) != 0)
        return EINVAL;
    return uva__encoder_is_text(options->format)
               ? encoder_check_text(options, error)
               : uva__ipc_compress_check(options->compression, error);
}

/* ---- the calls ---------------------------------------------------------- */

int uva__encoder_new(const struct ArrowSchema *schema,
                     const struct uva_encode *options,
                     struct uva__encoder **out, struct uva_error *error)
{
    static const struct uva_encode plain = {.format = UVA_FORMAT_ARROW};
    const struct uva_encode *o = options == NULL ? &plain : options;
    int code = uva__encoder_check(o, error);

    if (code != 0)
        return code;
    return uva__encoder_is_text(o->format)
               ? uva__text_encoder_new(schema, o, out, error)
               : uva__ipc_encoder_new(schema, o, out, error);
}

int uva__encoder_begin(struct uva__encoder *encoder, struct uva_part *out)
{
    int code;

    if (encoder->step != UVA__ENCODER_NEW)
        return EINVAL;
    code = encoder->ops->begin(encoder, out);
    if (code == 0)
        encoder->step = UVA__ENCODER_BEGUN;
    return code;
}

static int encoder_check_batch(const struct uva__encoder *encoder,
                               const struct ArrowDeviceArray *batch,
                               struct uva_error *error)
{
    if (encoder->step != UVA__ENCODER_BEGUN)
        return uva_error_set(error, EINVAL, "uva__encoder_batch: %s",
                             encoder->step == UVA__ENCODER_NEW
                                 ? "uva__encoder_begin() comes first"
                                 : "uva__encoder_end() was called");
    if (batch == NULL)
        return uva_error_set(error, EINVAL, "uva__encoder_batch: no batch");
    if ((batch->device_type != ARROW_DEVICE_CPU &&
         batch->device_type != ARROW_DEVICE_CUDA_HOST &&
         batch->device_type != ARROW_DEVICE_ROCM_HOST) ||
        batch->sync_event != NULL)
        return uva_error_set(error, ENOTSUP,
                             "uva_encode: the data is %s: add "
                             "uva_stream_transfer() or uva_stream_ready()",
                             batch->sync_event != NULL ? "behind an event"
                                                       : "on a device");
    return 0;
}

int uva__encoder_batch(struct uva__encoder *encoder,
                       struct ArrowDeviceArray *batch, struct uva_part *out,
                       struct uva_error *error)
{
    int code = encoder_check_batch(encoder, batch, error);
    int64_t rows;

    if (code != 0)
        return code;
    rows = batch->array.length;
    code = encoder->ops->batch(encoder, batch, out, error);
    if (code == 0)
        out->rows = rows;
    return code;
}

int uva__encoder_end(struct uva__encoder *encoder, struct uva_part *out)
{
    int code;

    if (encoder->step != UVA__ENCODER_BEGUN)
        return EINVAL;
    code = encoder->ops->end(encoder, out);
    if (code == 0)
        encoder->step = UVA__ENCODER_ENDED;
    return code;
}

void uva__encoder_free(struct uva__encoder *encoder)
{
    if (encoder != NULL)
        encoder->ops->free(encoder);
}
