/* SPDX-License-Identifier: Apache-2.0 */
/* uva_check_device_stream() with a reporter that exists already. */
#ifndef UVA_CHECK_DEVICE_STREAM_CHECK_H
#define UVA_CHECK_DEVICE_STREAM_CHECK_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

struct uva__reporter;

/* Puts a check around `stream`, in place. It holds a reference to the reporter
 * until the stream is released; later calls are reported as long as another
 * reference exists. Returns 0; EINVAL for a released stream or a NULL function,
 * which is reported; ENOMEM: `stream` then is untouched. Thread: any.
 * Clauses: AB-17. */
UVA_MUST_CHECK int
uva__device_stream_check(struct uva__reporter *reporter,
                         struct ArrowDeviceArrayStream *stream,
                         struct uva_error *error);

#endif
