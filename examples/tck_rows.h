/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a subject of the test suite, which never varies (tck.h): a struct
 * with a column "n" of int64, which counts up through the whole stream. */
#ifndef EXAMPLES_TCK_ROWS_H
#define EXAMPLES_TCK_ROWS_H

#include <stdatomic.h>

#include "uvarrow/uvarrow.h"

extern atomic_llong tck_live; /* batches and schemas that are not freed */

/* Gives the schema. Returns 0 or ENOMEM. */
int tck_schema(struct ArrowSchema *out);

/* Gives batch number `ordinal`, from 0. Returns 0 or ENOMEM. */
int tck_batch(int64_t ordinal, struct ArrowDeviceArray *out);

/* Returns a stream that follows `plan`, an enum uva_subject_plan; NULL if that
 * is not supported here. */
struct uva_stream *tck_stream(int32_t plan, int64_t batches, int64_t at);

#endif
