/* SPDX-License-Identifier: Apache-2.0 */
/* The outline of a schema: a copy of it, and its plan. A stage takes that of
 * the source above it, if it passes the schema on. A runtime keeps those of
 * its last streams, and the next stream shares one, if its schema has the same
 * contents. */
#ifndef UVA_STREAM_OUTLINE_H
#define UVA_STREAM_OUTLINE_H

#include "loop/rt.h"
#include "stream/measure.h"

struct uva__outline;

/* Gives the outline of `schema` for a stream of `rt`, with a count for the
 * caller, who keeps the rt. 0, or an errno of uva__measure_init(), and `out` is
 * NULL. Thread: any. */
UVA_MUST_CHECK int uva__outline_acquire(struct uva__rt *rt,
                                        const struct ArrowSchema *schema,
                                        struct uva__outline **out);

/* Counts it once more for the caller, who gets it back; NULL is allowed.
 * Thread: any that holds a count. */
struct uva__outline *uva__outline_share(struct uva__outline *outline);

/* Releases the count; NULL is allowed. Thread: any. */
void uva__outline_release(struct uva__outline *outline);

/* The measure of the batches of that schema. Thread: any that holds a count. */
const struct uva__measure *
uva__outline_measure(const struct uva__outline *outline);

#endif
