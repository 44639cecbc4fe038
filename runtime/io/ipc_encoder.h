/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder of Arrow IPC, as a stream and as a file. */
#ifndef UVA_IO_IPC_ENCODER_H
#define UVA_IO_IPC_ENCODER_H

#include "uvarrow/io.h"

struct uva__encoder;

/* Makes an encoder; as uva__encoder_new(). `options` were checked. */
UVA_MUST_CHECK int uva__ipc_encoder_new(const struct ArrowSchema *schema,
                                        const struct uva_encode *options,
                                        struct uva__encoder **out,
                                        struct uva_error *error);

#endif
