/* SPDX-License-Identifier: Apache-2.0 */
/* Checks schemas and metadata. */
#ifndef UVA_CHECK_SCHEMA_CHECK_H
#define UVA_CHECK_SCHEMA_CHECK_H

#include "check/tree_walk.h"
#include "uvarrow/arrow_abi.h"

/* Reports all faults of the live `schema` (borrowed) and its children.
 * Thread: any.
 * Clauses: DA-20, DA-25, DA-26, MD-02, MD-05, MD-09. */
void uva__schema_check(struct uva__tree_walk *walk,
                       const struct ArrowSchema *schema);

/* Whether two live schemas (borrowed) are equal. False also for cyclic or too
 * deep trees. Thread: any. */
bool uva__schema_equals(const struct ArrowSchema *a,
                        const struct ArrowSchema *b);

#endif
