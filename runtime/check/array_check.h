/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with an array, alone and beside its schema. */
#ifndef UVA_CHECK_ARRAY_CHECK_H
#define UVA_CHECK_ARRAY_CHECK_H

#include "check/tree_walk.h"
#include "uvarrow/arrow_abi.h"

/* Reports all that is wrong with the live `array` and what is below it: DA-03
 * to DA-05, DA-08, DA-20 to DA-27, EV-04, EV-09. `schema` is what it is to fit,
 * itself looked at by uva__schema_check(); NULL: unknown. `misfit`, a static
 * id, is what an array breaks that is of another shape than the schema's; NULL:
 * DA-20 or DA-26, as it may be. Both are borrowed; of data, only offsets in
 * host memory are read. Thread: any. */
void uva__array_check(struct uva__tree_walk *walk,
                      const struct ArrowSchema *schema,
                      const struct ArrowDeviceArray *array, const char *misfit);

#endif
