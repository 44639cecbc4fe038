/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for tests/support/flight_server.py, which plays a plan by its name.
 * The driver is written in Go, and its streams come from arrow-go. */
#include <inttypes.h>
#include <stdio.h>

#include "interop/adbc_subject.h"

static int flightsql_write(char *text, size_t size, int32_t plan,
                           int64_t batches)
{
    static const char *const PLANS[] = {
        [UVA_SUBJECT_WHOLE] = "whole",
        [UVA_SUBJECT_ENDLESS] = "endless",
        [UVA_SUBJECT_SLOW] = "slow",
        [UVA_SUBJECT_FAILS] = "fails",
    };

    if (plan < 0 || plan > UVA_SUBJECT_FAILS)
        return UVA_SUBJECT_CANNOT;
    (void)snprintf(text, size, "count %s %" PRId64, PLANS[plan], batches);
    return 0;
}

const struct adbc_peer adbc_peer = {
    .has_uri = true,
    .write = flightsql_write,
};
