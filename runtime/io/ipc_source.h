/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources of Arrow IPC have in common as streams. */
#ifndef UVA_IO_IPC_SOURCE_H
#define UVA_IO_IPC_SOURCE_H

#include "uvarrow/io.h"

/* Returns 0 if the options (may be NULL) are valid; EINVAL, and a text that
 * names the wrong one. Thread: any. */
UVA_MUST_CHECK int uva__ipc_source_check(const struct uva_ipc_source *options,
                                         struct uva_error *error);

#endif
