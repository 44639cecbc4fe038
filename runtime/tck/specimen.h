/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the suite: as it comes from producers and streams, checked. See
 * uvarrow/tck.h for what it is. */
#ifndef UVA_TCK_SPECIMEN_H
#define UVA_TCK_SPECIMEN_H

#include "tck/trial.h"

/* What memory that is to be written looks like before. */
#define UVA__SPECIMEN_FILL 0xA5

/* Fills what a subject is about to write. Thread: any. */
void uva__specimen_fill(void *memory, size_t size);

/* Whether it was left as it was. Thread: any. */
bool uva__specimen_is_filled(const void *memory, size_t size);

/* Checks a schema, reporting breaches; `clause` is the one broken by data of
 * another kind. Thread: any. */
void uva__specimen_check_schema(struct uva__trial *trial,
                                const struct ArrowSchema *schema,
                                const char *clause);

/* Checks an array that was just given: batch `ordinal`. False if it cannot be
 * read. `order` and `shape` are the clauses for values of another batch and for
 * data that does not fit the schema. Thread: any. */
bool uva__specimen_check_array(struct uva__trial *trial,
                               const struct ArrowDeviceArray *array,
                               int64_t ordinal, const char *order,
                               const char *shape);

/* Checks the values once more, then releases, and checks that. Thread: any. */
void uva__specimen_release_array(struct uva__trial *trial,
                                 struct ArrowDeviceArray *array,
                                 int64_t ordinal);

/* Whether the values are those of batch `ordinal`. Thread: any. */
bool uva__specimen_is(const struct ArrowArray *array, int64_t ordinal);

/* Checks a metadata block; gives the value of key "tck" (`size` -1: none) in
 * at most 64 bytes. `clause` is the one of its place. Thread: any. */
void uva__specimen_check_metadata(struct uva__trial *trial, const char *block,
                                  const char *clause, char tag[64],
                                  int64_t *size);

#endif
