/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that are bound to a query, as its driver gets them. */
#ifndef UVA_ADBC_BOUND_H
#define UVA_ADBC_BOUND_H

#include <stdatomic.h>
#include <stdbool.h>

#include "adbc/failure.h"

/* The first failure of rows that a driver has read: some take that for their
 * end, and report success. All zeroes: none. */
struct uva__bound_fault {
    atomic_int code; /* is set when `text` is */
    char text[256];
};

/* Wraps `rows`, which it takes and gives, also on failure: batches without rows
 * are left out, unless it `keeps_empty`; batches with an offset are given with
 * that of their columns; null rows, and what does not fit the schema, are
 * refused. `fault` is borrowed until the rows are released. Returns 0; EINVAL
 * for what is no struct; ENOMEM; or the code of the rows, with the failure.
 * Thread: a worker. */
UVA_MUST_CHECK int uva__bound_wrap(struct ArrowArrayStream *rows,
                                   bool keeps_empty,
                                   struct uva__bound_fault *fault,
                                   struct uva__adbc_failure *failure);

/* Gives the columns of wrapped `rows` the driver's names of the parameters,
 * which are those of the columns of `names`: "a" becomes ":a" if there is such
 * a one. Other columns keep theirs. `names` is borrowed for the call, and may
 * be released: the driver gives none. Returns 0; EINVAL for two columns of one
 * name, or names that are no schema; or ENOMEM, with the failure. Thread: a
 * worker. */
UVA_MUST_CHECK int uva__bound_name(struct ArrowArrayStream *rows,
                                   const struct ArrowSchema *names,
                                   struct uva__adbc_failure *failure);

/* Reads wrapped `rows` up to the first one, which they still give afterwards,
 * and gives whether there is one. Returns 0, or the code of the rows, with the
 * failure. Thread: a worker. */
UVA_MUST_CHECK int uva__bound_read(struct ArrowArrayStream *rows,
                                   bool *has_rows,
                                   struct uva__adbc_failure *failure);

#endif
