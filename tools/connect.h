/* SPDX-License-Identifier: Apache-2.0 */
/* The database of a command line, and queries of it as streams. */
#ifndef UVA_TOOLS_CONNECT_H
#define UVA_TOOLS_CONNECT_H

#include "options.h"
#include "uvarrow/adbc.h"
#include "uvarrow/stream.h"

/* Creates a stream of the query in `options`, which has failed if that is not
 * possible. Returns it, never NULL, with one reference for the caller.
 * Thread: any. */
UVA_MUST_CHECK struct uva_stream *
uva__connect(struct uva_runtime *runtime, const struct uva__options *options);

/* Opens the database of the options, for one query, or, with `is_session`, for
 * several on one connection, each of which is a transaction unless SQL begins
 * one. 0 and `out`, to be released by uva_adbc_pool_release(); or an errno with
 * an error. Thread: any. */
UVA_MUST_CHECK int uva__connect_open(struct uva_runtime *runtime,
                                     const struct uva__options *options,
                                     bool is_session,
                                     struct uva_adbc_pool **out,
                                     struct uva_error *error);

/* Creates a stream of a query, with the settings of the options; it has failed
 * if that is not possible. With `for_changes` its rows are not of interest. It
 * gives partitions, not rows, if the options ask for them.
 * Returns it, never NULL, with one reference for the caller. Thread: any. */
UVA_MUST_CHECK struct uva_stream *
uva__connect_ask(struct uva_adbc_pool *pool, const struct uva__options *options,
                 const char *sql, bool for_changes);

#endif
