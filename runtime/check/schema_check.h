/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a schema, and with metadata. */
#ifndef UVA_CHECK_SCHEMA_CHECK_H
#define UVA_CHECK_SCHEMA_CHECK_H

#include "check/tree_walk.h"
#include "uvarrow/arrow_abi.h"

/* Reports all that is wrong with the live `schema` (borrowed) and what is below
 * it: DA-20, DA-25, DA-26, MD-02, MD-05, MD-09. Thread: any. */
void uva__schema_check(struct uva__tree_walk *walk,
                       const struct ArrowSchema *schema);

/* Reports what is wrong with a block of metadata (borrowed; or NULL), `what` it
 * is being said: MD-02, MD-05, MD-09. False if it must not be read.
 * Thread: any. */
bool uva__metadata_check(struct uva__tree_walk *walk, const char *block,
                         const char *what);

/* Whether two live schemas (borrowed) say the same. False for trees without an
 * end, too. Thread: any. */
bool uva__schema_equals(const struct ArrowSchema *a,
                        const struct ArrowSchema *b);

#endif
