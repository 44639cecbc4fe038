/* SPDX-License-Identifier: Apache-2.0 */
/* The measure of the batches of one schema: whether a batch fits it, and how
 * many bytes it counts in a window. */
#ifndef UVA_STREAM_MEASURE_H
#define UVA_STREAM_MEASURE_H

#include "arrow/fixed_width.h"
#include "stream/window.h"

/* All zeroes: there is no schema yet. */
struct uva__measure {
    struct ArrowSchema schema;     /* owns, or is lent */
    struct uva__fixed_width shape; /* of the schema, if it is a simple one */
};

/* Begins to measure with a copy of `schema`. 0, or an errno of
 * uva__structs_copy_schema(): then there is no schema. Thread: any. */
UVA_MUST_CHECK int uva__measure_init(struct uva__measure *measure,
                                     const struct uva_allocator *allocator,
                                     const struct ArrowSchema *schema);

/* The same with `schema` itself, which the caller keeps in place.
 * Thread: any. */
void uva__measure_lend(struct uva__measure *measure,
                       const struct ArrowSchema *schema);

/* Thread: any. */
void uva__measure_fini(struct uva__measure *measure);

/* Thread: any. */
static inline bool uva__measure_is_known(const struct uva__measure *measure)
{
    return measure->schema.release != NULL;
}

/* Measures any batch. 0; ENOTSUP for an unknown format, of which the size is
 * not known; EINVAL with an error (may be NULL) if the batch does not fit the
 * schema. Sets `bytes` in every case. */
int uva__measure_columns(const struct uva__measure *measure,
                         const struct ArrowDeviceArray *batch, int64_t *bytes,
                         struct uva_error *error);

/* Gives the bytes of a batch, if its size can be known. Thread: any. */
static inline bool uva__measure_size(const struct uva__measure *measure,
                                     const struct ArrowDeviceArray *batch,
                                     int64_t *bytes)
{
    int64_t size;

    if (!uva__fixed_width_measure(&measure->shape, &batch->array, &size) &&
        uva__measure_columns(measure, batch, &size, NULL) != 0)
        return false;
    *bytes = uva__window_size(size);
    return true;
}

/* Gives the bytes of a batch; 0 for an unknown format. EINVAL with the place
 * and the fault in `error` (may be NULL) for a batch that does not fit.
 * Thread: any. */
UVA_MUST_CHECK static inline int
uva__measure(const struct uva__measure *measure,
             const struct ArrowDeviceArray *batch, int64_t *bytes,
             struct uva_error *error)
{
    int code = 0;

    if (!uva__fixed_width_measure(&measure->shape, &batch->array, bytes))
        code = uva__measure_columns(measure, batch, bytes, error);
    *bytes = uva__window_size(*bytes);
    return code == EINVAL ? code : 0;
}

#endif
