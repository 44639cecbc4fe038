/* SPDX-License-Identifier: Apache-2.0 */
/* An encoder: the order of its calls is checked in encoder.c; their output is
 * up to the format, in ipc_encoder.c and text_encoder.c. */
#ifndef UVA_IO_ENCODER_H
#define UVA_IO_ENCODER_H

#include "uvarrow/io.h"

/* The functions of a format; see the public calls. Each is called in the right
 * order, and has no effect unless it returns 0. */
struct uva__encoder_ops {
    int (*begin)(struct uva_encoder *encoder, struct uva_part *out);
    int (*batch)(struct uva_encoder *encoder, struct ArrowDeviceArray *batch,
                 struct uva_part *out, struct uva_error *error);
    int (*end)(struct uva_encoder *encoder, struct uva_part *out);
    void (*free)(struct uva_encoder *encoder);
};

/* The steps of an encoder. */
enum uva__encoder_step {
    UVA__ENCODER_NEW = 0,
    UVA__ENCODER_BEGUN,
    UVA__ENCODER_ENDED
};

/* The first member of each kind. */
struct uva_encoder {
    const struct uva__encoder_ops *ops; /* static */
    enum uva__encoder_step step;
};

/* Returns whether a format is text: CSV or JSON lines. Thread: any. */
static inline bool uva__encoder_is_text(enum uva_format format)
{
    return format == UVA_FORMAT_CSV || format == UVA_FORMAT_JSON;
}

/* Checks the `options` of uva_encoder_new(). 0; EINVAL or ENOTSUP, with a text.
 * Thread: any. */
UVA_MUST_CHECK int uva__encoder_check(const struct uva_encode *options,
                                      struct uva_error *error);

#endif
