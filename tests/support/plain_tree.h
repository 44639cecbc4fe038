/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas and arrays of any shape, made node by node, with a count of those not
 * yet released. They are not checked, so that a test may make invalid ones.
 * Thread: any. */
#ifndef UVA_SUPPORT_PLAIN_TREE_H
#define UVA_SUPPORT_PLAIN_TREE_H

#include "uvarrow/arrow_abi.h"

/* Gives `out` a node with room for `n_children` children. They are released
 * structs, to be made by the same function. `format` and `name` are borrowed.
 */
void plain_schema(struct ArrowSchema *out, const char *format, const char *name,
                  int n_children);

/* Gives `schema` a dictionary node, a released struct, and returns it. */
struct ArrowSchema *plain_schema_dictionary(struct ArrowSchema *schema);

/* Gives `out` a node with `n_buffers` NULL slots and room for `n_children`
 * children, which are released structs. The slots borrow the buffers that the
 * test puts there. */
void plain_array(struct ArrowArray *out, int64_t length, int n_buffers,
                 int n_children);

/* Gives `array` a dictionary node, a released struct, and returns it. */
struct ArrowArray *plain_array_dictionary(struct ArrowArray *array);

/* Returns the number of nodes, of schemas and arrays, not yet released. */
int plain_live(void);

#endif
