/* SPDX-License-Identifier: Apache-2.0 */
/* A stage that encodes batches of int64 and text as CSV, shaped as struct
 * uva_transform. Each batch becomes one text, without a line of names. */
#ifndef EXAMPLES_CSV_ENCODE_H
#define EXAMPLES_CSV_ENCODE_H

#include "columns.h"
#include "uvarrow/uvarrow.h"

/* Gives the schema of the results, for columns that can be encoded; otherwise
 * ENOTSUP. */
int csv_encode_schema(void *ctx, const struct ArrowSchema *in,
                      struct ArrowSchema *out, struct uva_error *error);

/* Encodes a batch. */
int csv_encode_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                     void *emitter, struct uva_error *error);

/* Gives one text as a batch of that schema. Returns 0 or ENOMEM. */
int csv_text(struct text text, struct ArrowDeviceArray *out);

/* Returns the text of such a batch, borrowed from it. */
struct text csv_text_of(const struct ArrowDeviceArray *batch);

#endif
