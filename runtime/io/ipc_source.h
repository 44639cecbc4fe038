/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the sources of Arrow IPC. */
#ifndef UVA_IO_IPC_SOURCE_H
#define UVA_IO_IPC_SOURCE_H

#include "io/ipc_framer.h"
#include "uvarrow/io.h"

/* Returns 0 if the options (may be NULL) are valid; EINVAL, and a text that
 * names the wrong one. Thread: any. */
UVA_MUST_CHECK int uva__ipc_source_check(const struct uva_ipc_source *options,
                                         struct uva_error *error);

/* Notes that there are no more bytes. Returns 0 if the stream may end here,
 * with a line in the log if its end is not marked; or EPROTO. A file marks its
 * end. Thread: any one at a time. */
UVA_MUST_CHECK int uva__ipc_source_end(struct uva_runtime *runtime,
                                       const struct uva__ipc_framer *framer,
                                       bool need_end_mark,
                                       struct uva_error *error);

#endif
