/* SPDX-License-Identifier: Apache-2.0 */
/* A query through an ADBC driver loaded by its path, as a blocking source of
 * uvarrow. No driver manager is needed. */
#ifndef UVA_TOOLS_DRIVER_H
#define UVA_TOOLS_DRIVER_H

#include "options.h"
#include "uvarrow/adapters.h"

/* Gives `source`, which loads the driver, connects and runs the query when it
 * is opened. Borrows `options` until its free_ctx is called. Returns 0 or
 * ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__driver_source(const struct uva__options *options,
                                      struct uva_blocking_source *source);

#endif
