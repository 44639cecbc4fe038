/* SPDX-License-Identifier: Apache-2.0 */
/* uva_check_blocking() for those who have a witness already. */
#ifndef UVA_CHECK_BLOCKING_CHECK_H
#define UVA_CHECK_BLOCKING_CHECK_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

struct uva__witness;

/* Puts a check around `stream`, in place, which counts on the witness until the
 * stream is released and is told of later calls as long as somebody else does.
 * 0; EINVAL for a released one or an empty slot, which is reported (AB-17);
 * ENOMEM: `stream` then is untouched. Thread: any. */
UVA_MUST_CHECK int uva__blocking_check(struct uva__witness *witness,
                                       struct ArrowDeviceArrayStream *stream,
                                       struct uva_error *error);

#endif
