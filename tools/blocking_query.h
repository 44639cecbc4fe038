/* SPDX-License-Identifier: Apache-2.0 */
/* A query on the calling thread, as a program without uvarrow makes it. */
#ifndef UVA_TOOLS_BLOCKING_QUERY_H
#define UVA_TOOLS_BLOCKING_QUERY_H

#include "options.h"
#include "uvarrow/adbc.h"

/* The objects of a query. All zeroes before it is opened. */
struct uva__blocking_query {
    struct AdbcDriver driver;         /* owns, if it has a release */
    struct AdbcDatabase database;     /* owns, if it has private_data */
    struct AdbcConnection connection; /* owns, if it has private_data */
    struct AdbcStatement statement;   /* owns, if it has private_data */
};

/* Loads the driver, connects and executes the query; these block. Gives `rows`,
 * which the caller releases. Returns 0 or an errno, with an error.
 * uva__blocking_query_close() is called in every case. Thread: any, one at a
 * time. */
UVA_MUST_CHECK int uva__blocking_query_open(struct uva__blocking_query *session,
                                            const struct uva__options *options,
                                            struct ArrowArrayStream *rows,
                                            struct uva_error *error);

/* Releases all objects, after the rows. Thread: any, one at a time. */
void uva__blocking_query_close(struct uva__blocking_query *session);

#endif
