/* SPDX-License-Identifier: Apache-2.0 */
/* What other files need of the encoder, beside its public calls. */
#ifndef UVA_IO_ENCODER_H
#define UVA_IO_ENCODER_H

#include "uvarrow/io.h"

/* Checks what uva_encoder_new() uses of `options`. 0; EINVAL or ENOTSUP, with a
 * text. Thread: any. */
UVA_MUST_CHECK int uva__encoder_check(const struct uva_write *options,
                                      struct uva_error *error);

#endif
