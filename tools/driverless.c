/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces driver.c where adbc.h is missing: every query fails with an error
 * that gives the reason. The test suite needs neither file. */
#include "driver.h"

static int driverless_open(void *ctx, struct ArrowArrayStream *out,
                           struct uva_error *error)
{
    (void)ctx;
    (void)out;
    return uva_error_set(error, ENOTSUP,
                         "this uvarrow was built without adbc.h, so it cannot "
                         "ask a database: run scripts/bootstrap, then cmake");
}

static void driverless_nothing(void *ctx)
{
    (void)ctx;
}

int uva__driver_source(const struct uva__options *options,
                       struct uva_blocking_source *source)
{
    (void)options;
    *source = (struct uva_blocking_source){.open = driverless_open,
                                           .interrupt = driverless_nothing,
                                           .free_ctx = driverless_nothing};
    return 0;
}
