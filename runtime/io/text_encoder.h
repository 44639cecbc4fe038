/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder of CSV and of JSON lines. */
#ifndef UVA_IO_TEXT_ENCODER_H
#define UVA_IO_TEXT_ENCODER_H

#include "uvarrow/io.h"

struct uva__encoder;

/* Checks `options` of CSV. 0, or EINVAL with a text. Thread: any. */
UVA_MUST_CHECK int uva__text_encoder_check(const struct uva_csv *options,
                                           struct uva_error *error);

/* Makes an encoder; as uva__encoder_new(). `options` were checked. Its batches
 * may be encoded by several threads at a time. */
UVA_MUST_CHECK int uva__text_encoder_new(const struct ArrowSchema *schema,
                                         const struct uva_encode *options,
                                         struct uva__encoder **out,
                                         struct uva_error *error);

#endif
