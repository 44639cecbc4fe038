/* SPDX-License-Identifier: Apache-2.0 */
/* The measure of the batches of one schema: whether a batch fits it, and how
 * many bytes it counts in a window. */
#ifndef UVA_STREAM_MEASURE_H
#define UVA_STREAM_MEASURE_H

#include "arrow/plan.h"
#include "stream/window.h"

/* All zeroes: there is no schema yet. */
struct uva__measure {
    struct ArrowSchema schema; /* owns, or is lent */
    struct uva__plan plan;     /* of the schema */
};

/* Begins to measure with a copy of `schema`. 0, or an errno of
 * uva__structs_copy_schema(): then there is no schema. Thread: any. */
UVA_MUST_CHECK int uva__measure_init(struct uva__measure *measure,
                                     const struct uva_allocator *allocator,
                                     const struct ArrowSchema *schema);

/* The same with `schema` itself, which the caller keeps in place.
 * Thread: any. */
void uva__measure_lend(struct uva__measure *measure,
                       const struct uva_allocator *allocator,
                       const struct ArrowSchema *schema);

/* Thread: any. */
void uva__measure_fini(struct uva__measure *measure);

/* Thread: any. */
static inline bool uva__measure_is_known(const struct uva__measure *measure)
{
    return measure->schema.release != NULL;
}

/* Gives the bytes of a batch; 0 for an unknown format, and after an error.
 * EINVAL with the place and the fault in `error` (may be NULL) for a batch that
 * does not fit. Thread: any. */
int uva__measure_exactly(const struct uva__measure *measure,
                         const struct ArrowDeviceArray *batch, int64_t *bytes,
                         struct uva_error *error);

/* The same, and at most what a window counts. Thread: any. */
int uva__measure(const struct uva__measure *measure,
                 const struct ArrowDeviceArray *batch, int64_t *bytes,
                 struct uva_error *error);

#endif
