/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a query as a database explains it, as lines of text. */
#ifndef UVA_TOOLS_PLAN_H
#define UVA_TOOLS_PLAN_H

#include "uvarrow/arrow.h"
#include "uvarrow/base.h"

/* Nodes of a plan that has numbers: SQLite's. */
enum { UVA__PLAN_NODES = 256 };

/* Zeroes: no row. */
struct uva__plan {
    struct {
        long id;
        int depth;
    } nodes[UVA__PLAN_NODES];
    int count; /* of nodes */
};

/* Writes the lines of a batch of `schema`, which it may take, as a text that
 * the caller frees: of each row its last column; rows with a number and that of
 * their parent before that are indented; control characters but line breaks are
 * shown as in a table. 0; or an errno with an error. Thread:
 * any. */
UVA_MUST_CHECK int uva__plan_text(struct uva__plan *plan,
                                  const struct ArrowSchema *schema,
                                  struct ArrowDeviceArray *rows, char **text,
                                  size_t *size, struct uva_error *error);

#endif
