/* SPDX-License-Identifier: Apache-2.0 */
/* Read-only queries, whatever their text is: ADBC's option of a connection for
 * that, which the pool does itself where a driver cannot. */
#ifndef UVA_ADBC_READ_ONLY_H
#define UVA_ADBC_READ_ONLY_H

#include <stdbool.h>

#include "adbc/connection.h"

/* Takes the option out of the connections' options. Returns 0 and whether it is
 * on, or EINVAL for an invalid value. Thread: any. */
UVA_MUST_CHECK int uva__read_only_take(char **options, bool *out);

/* Prepares a connection for one query. 0 or an errno, with the failure: then
 * the connection must be closed. Thread: a worker. */
UVA_MUST_CHECK int uva__read_only_begin(struct uva__connection *connection,
                                        struct uva__adbc_failure *failure);

/* Undoes the query. Returns whether the connection may be used again. Thread: a
 * worker. */
UVA_MUST_CHECK bool uva__read_only_end(struct uva__connection *connection);

#endif
