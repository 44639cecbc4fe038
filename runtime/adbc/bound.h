/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that are bound to a query, as its driver gets them. */
#ifndef UVA_ADBC_BOUND_H
#define UVA_ADBC_BOUND_H

#include <stdbool.h>

#include "adbc/failure.h"
#include "uvarrow/runtime.h"

/* Rows while a driver reads them. The query counts it, and so do their streams.
 */
struct uva__bound;

/* Wraps `rows`, which it takes and gives: batches without rows are left out,
 * unless it `keeps_empty`; batches with an offset are given with the offset in
 * their columns; null rows, and rows that do not fit the schema, are refused.
 * They are read only after uva__bound_open(). Returns it, to be released by the
 * query; NULL without memory: then `rows` stay as they are. Thread: any. */
UVA_MUST_CHECK struct uva__bound *uva__bound_new(struct ArrowArrayStream *rows,
                                                 bool keeps_empty);

/* Reads the schema. Returns 0; EINVAL for a type that is no struct; ENOMEM; or
 * the code of the rows, with the failure. Thread: a worker. */
UVA_MUST_CHECK int uva__bound_open(struct uva__bound *bound,
                                   struct uva__adbc_failure *failure);

/* Gives the columns the driver's names of the parameters, which are the names
 * of the columns of `names`: "a" becomes ":a" if there is such a name. Other
 * columns keep theirs. `names` is borrowed for the call, and may be released:
 * the driver gives no names. Returns 0; EINVAL for two columns of one name, or
 * names that are no schema; or ENOMEM, with the failure. Thread: a worker. */
UVA_MUST_CHECK int uva__bound_name(struct uva__bound *bound,
                                   const struct ArrowSchema *names,
                                   struct uva__adbc_failure *failure);

/* How many rows there are. */
enum uva__bound_rows { UVA__BOUND_NONE, UVA__BOUND_ONE, UVA__BOUND_MANY };

/* Reads as many of the wrapped `rows` as it takes to know that; they still give
 * them. Returns 0, or their code, with the failure. Thread: a worker. */
UVA_MUST_CHECK int uva__bound_count(struct ArrowArrayStream *rows,
                                    enum uva__bound_rows *out,
                                    struct uva__adbc_failure *failure);

/* Has wrapped `rows` read by a separate worker, so that a cancel need not wait
 * for them; rows that can be cancelled by themselves, or have been read, stay
 * as they are. Takes and gives `rows`, also on failure. Returns 0; ENOMEM, or
 * EAGAIN without a thread for it, with the failure. Thread: a worker. */
UVA_MUST_CHECK int uva__bound_detach(struct uva__bound *bound,
                                     struct uva_runtime *runtime,
                                     struct ArrowArrayStream *rows,
                                     struct uva__adbc_failure *failure);

/* Ends the rows: the stream fails with ECANCELED from now on, also a call of it
 * that waits, but still has its schema, and the caller's rows are released as
 * soon as no call of theirs runs. Thread: any. */
void uva__bound_cancel(struct uva__bound *bound);

/* Returns the code of the first failure of the rows, with the failure, since
 * some drivers take that for their end, and report success; 0: no failure.
 * Thread: any. */
int uva__bound_check(const struct uva__bound *bound,
                     struct uva__adbc_failure *failure);

/* Drops the query's reference, when it cancels no more. NULL is allowed.
 * Thread: any. */
void uva__bound_release(struct uva__bound *bound);

#endif
