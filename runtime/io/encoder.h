/* SPDX-License-Identifier: Apache-2.0 */
/* An encoder: the order of its calls is checked in encoder.c; their output is
 * up to the format, in ipc_encoder.c and text_encoder.c. */
#ifndef UVA_IO_ENCODER_H
#define UVA_IO_ENCODER_H

#include "uvarrow/io.h"

struct uva__encoder;

/* The functions of a format; see the calls below. Each is called in the right
 * order, and has no effect unless it returns 0. */
struct uva__encoder_ops {
    int (*begin)(struct uva__encoder *encoder, struct uva_part *out);
    int (*batch)(struct uva__encoder *encoder, struct ArrowDeviceArray *batch,
                 struct uva_part *out, struct uva_error *error);
    int (*end)(struct uva__encoder *encoder, struct uva_part *out);
    void (*free)(struct uva__encoder *encoder);
};

/* The steps of an encoder. */
enum uva__encoder_step {
    UVA__ENCODER_NEW = 0,
    UVA__ENCODER_BEGUN,
    UVA__ENCODER_ENDED
};

/* The first member of each kind. */
struct uva__encoder {
    const struct uva__encoder_ops *ops; /* static */
    enum uva__encoder_step step;
};

/* Makes an encoder of batches with the schema `schema`, which is copied.
 * `options` may be NULL. Returns 0 and gives `out`, freed by
 * uva__encoder_free(); EINVAL for an invalid schema or option; ENOTSUP if the
 * format cannot express the schema, or for a codec that is not there; ENOMEM.
 * The text names the field. Thread: any. */
UVA_MUST_CHECK int uva__encoder_new(const struct ArrowSchema *schema,
                                    const struct uva_encode *options,
                                    struct uva__encoder **out,
                                    struct uva_error *error);

/* Gives the beginning: the schema, the line of names, or an empty part. Returns
 * 0 and gives `out`, to be released; ENOMEM; EINVAL if it was called before.
 * Thread: any, one at a time. */
UVA_MUST_CHECK int uva__encoder_begin(struct uva__encoder *encoder,
                                      struct uva_part *out);

/* Gives the messages or the lines of a batch. Takes `batch` if it returns 0; of
 * text it is released at once, and lines of no rows are an empty part. As
 * uva_stream_encode(); a batch that failed leaves no trace: the next one may
 * follow. EINVAL also before uva__encoder_begin() and after uva__encoder_end().
 * Thread: any, one at a time; of text, several at a time between these. */
UVA_MUST_CHECK int uva__encoder_batch(struct uva__encoder *encoder,
                                      struct ArrowDeviceArray *batch,
                                      struct uva_part *out,
                                      struct uva_error *error);

/* Gives the end: the mark of the end of the stream, the footer of the file, or
 * an empty part. Returns 0 and gives `out`, to be released; ENOMEM; EINVAL
 * before uva__encoder_begin() and if it was called before.
 * Thread: any, one at a time. */
UVA_MUST_CHECK int uva__encoder_end(struct uva__encoder *encoder,
                                    struct uva_part *out);

/* Frees the encoder, but not its parts. NULL is allowed. Thread: any, one at a
 * time. */
void uva__encoder_free(struct uva__encoder *encoder);

/* Returns whether a format is text: CSV or JSON lines. Thread: any. */
static inline bool uva__encoder_is_text(enum uva_format format)
{
    return format == UVA_FORMAT_CSV || format == UVA_FORMAT_JSON;
}

/* Checks the `options` of uva__encoder_new(). 0; EINVAL or ENOTSUP, with a
 * text. Thread: any. */
UVA_MUST_CHECK int uva__encoder_check(const struct uva_encode *options,
                                      struct uva_error *error);

#endif
