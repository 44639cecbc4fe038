/* SPDX-License-Identifier: Apache-2.0 */
/* Checks an array, by itself and against its schema. */
#ifndef UVA_CHECK_ARRAY_CHECK_H
#define UVA_CHECK_ARRAY_CHECK_H

#include "check/tree_walk.h"
#include "uvarrow/arrow_abi.h"

/* Reports all faults of the live `array` and its children. `schema` is its
 * expected schema, which uva__schema_check() has checked itself; NULL: unknown.
 * `misfit`, a static id, is the clause that an array with a shape other than
 * the schema's breaks; NULL: the clause of the fault itself. Both are borrowed.
 * Of the data, only offsets in host memory are read. Thread: any.
 * Clauses: DA-03, DA-04, DA-05, DA-08, DA-20 to DA-27, EV-04, EV-09. */
void uva__array_check(struct uva__tree_walk *walk,
                      const struct ArrowSchema *schema,
                      const struct ArrowDeviceArray *array, const char *misfit);

#endif
