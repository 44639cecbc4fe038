/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a stage that measures batches, mostly as a user function makes
 * them: the schema, and the size of each batch. */
#ifndef UVA_STAGE_OUTPUT_H
#define UVA_STAGE_OUTPUT_H

#include "arrow/fixed_width.h"
#include "stream/source.h"
#include "stream/window.h"

/* All zeroes: not known. Does not change once it is `known`. */
struct uva__output {
    struct ArrowSchema input;      /* owns: the schema of the input */
    struct ArrowSchema schema;     /* owns: of the output, to measure with */
    struct uva__fixed_width shape; /* of that, if it is a simple one */
    bool known;                    /* the two schemas are */
};

/* A user's function that makes the schema; as in struct uva_map. */
typedef int uva__output_schema_fn(void *ctx, const struct ArrowSchema *in,
                                  struct ArrowSchema *out,
                                  struct uva_error *error);

/* Has `make` (NULL: the schema does not change) make the schema of the source,
 * once the schema of the input is there. Returns whether it is known; if it
 * cannot be made, the source has failed. Thread: loop. */
bool uva__output_prepare(struct uva__output *output, struct uva__source *source,
                         uva__output_schema_fn *make, void *ctx);

/* Gives the size of a batch, as windows count it; 0 for an unknown format.
 * Returns 0; EPROTO for a batch that does not fit the schema, with an `error`
 * that begins with `name`. Thread: any, once it is known. */
UVA_MUST_CHECK int uva__output_measure(const struct uva__output *output,
                                       const char *name,
                                       const struct ArrowDeviceArray *batch,
                                       int64_t *bytes, struct uva_error *error);

/* The same for most batches, without a look at the schema; false for every
 * other batch, also for one that does not fit. Thread: any, once it is known.
 */
static inline bool
uva__output_measure_simple(const struct uva__output *output,
                           const struct ArrowDeviceArray *batch, int64_t *bytes)
{
    if (!uva__fixed_width_measure(&output->shape, &batch->array, bytes))
        return false;
    *bytes = uva__window_size(*bytes);
    return true;
}

/* Releases the schemas. Thread: any. */
void uva__output_fini(struct uva__output *output);

#endif
