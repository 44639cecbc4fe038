/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas and arrays of any shape, made node by node, with a count of those
 * not yet released. Nothing is checked: they may be as wrong as a test wants
 * them. Thread: any. */
#ifndef UVA_SUPPORT_PLAIN_TREE_H
#define UVA_SUPPORT_PLAIN_TREE_H

#include "uvarrow/arrow_abi.h"

/* Gives `out` a node with room for `n_children`, which are still released: to
 * be made by the same function. `format` and `name` are borrowed. */
void plain_schema(struct ArrowSchema *out, const char *format, const char *name,
                  int n_children);

/* Gives `schema` an empty dictionary node and returns it, still released. */
struct ArrowSchema *plain_schema_dictionary(struct ArrowSchema *schema);

/* Gives `out` a node with `n_buffers` NULL slots and room for `n_children`,
 * still released. What the test puts into the slots is borrowed. */
void plain_array(struct ArrowArray *out, int64_t length, int n_buffers,
                 int n_children);

/* Gives `array` an empty dictionary node and returns it, still released. */
struct ArrowArray *plain_array_dictionary(struct ArrowArray *array);

/* Nodes made and not yet released, of both kinds. */
int plain_live(void);

#endif
