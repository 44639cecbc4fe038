/* SPDX-License-Identifier: Apache-2.0 */
/* The data that subjects of the test suite give, as uvarrow/tck.h requires it,
 * with counts of made and unfreed objects. */
#ifndef UVA_TCK_SUBJECT_DATA_H
#define UVA_TCK_SUBJECT_DATA_H

#include <stdatomic.h>
#include <stddef.h>

#include "uvarrow/tck.h"

/* Counts; initially all zeroes. */
struct subject_books {
    atomic_llong live; /* schemas and batches not freed so far */
    atomic_llong made; /* batches made */
};

/* Give the schema, and batch `ordinal`. Thread: any. */
void subject_schema(struct subject_books *books, struct ArrowSchema *out);
void subject_batch(struct subject_books *books, int64_t ordinal,
                   struct ArrowDeviceArray *out);

/* Writes metadata with one pair, "tck" and that value, to `to`, which has 64
 * bytes; returns it. Thread: any. */
const char *subject_tag(char *to, const char *value, size_t size);

/* Writes the tag of batch `ordinal`. Thread: any. */
const char *subject_number(char *to, int64_t ordinal);

#endif
