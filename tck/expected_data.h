/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the suite's expected data in the output of producers and streams.
 * uvarrow/tck.h describes that data. */
#ifndef UVA_TCK_EXPECTED_DATA_H
#define UVA_TCK_EXPECTED_DATA_H

#include "tck/case_run.h"

/* Fills memory that a subject is about to write. */
#define UVA__EXPECTED_DATA_FILL 0xA5

/* Fills memory that a subject is about to write. Thread: any. */
void uva__expected_data_fill(void *memory, size_t size);

/* Returns whether the memory still holds the fill. Thread: any. */
bool uva__expected_data_is_filled(const void *memory, size_t size);

/* Checks a schema and reports breaches; `clause` is the clause that data of
 * another type breaks. Thread: any. */
void uva__expected_data_check_schema(struct uva__case_run *run,
                                     const struct ArrowSchema *schema,
                                     const char *clause);

/* Checks an array that was just given: batch `ordinal`. Returns false if it
 * cannot be read. `order` and `shape` are the clauses for values of another
 * batch and for data that does not fit the schema. Thread: any. */
bool uva__expected_data_check_array(struct uva__case_run *run,
                                    const struct ArrowDeviceArray *array,
                                    int64_t ordinal, const char *order,
                                    const char *shape);

/* Checks the values once more, then releases the array and checks that. Thread:
 * any. */
void uva__expected_data_release_array(struct uva__case_run *run,
                                      struct ArrowDeviceArray *array,
                                      int64_t ordinal);

/* Returns whether the values belong to batch `ordinal`. Thread: any. */
bool uva__expected_data_is(const struct ArrowArray *array, int64_t ordinal);

/* Checks a metadata block; gives the value of key "tck" (`size` -1: no such
 * key) in at most 64 bytes. `clause` covers the call that passed it. Thread:
 * any. */
void uva__expected_data_check_metadata(struct uva__case_run *run,
                                       const char *block, const char *clause,
                                       char tag[64], int64_t *size);

#endif
