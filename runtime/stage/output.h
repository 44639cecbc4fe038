/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a stage that measures batches, mostly as a user function makes
 * them: the schema, and the size of each batch. */
#ifndef UVA_STAGE_OUTPUT_H
#define UVA_STAGE_OUTPUT_H

#include "stream/source.h"

/* All zeroes: not known. Does not change once the measure is known. */
struct uva__output {
    struct uva__outline *above;         /* counts: of the input */
    const struct ArrowSchema *input;    /* borrows: its schema */
    const struct uva__measure *measure; /* of the output; borrows: of the
                                           source's outline */
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

/* Releases the outline of the input. Thread: any. */
void uva__output_fini(struct uva__output *output);

#endif
