/* SPDX-License-Identifier: Apache-2.0 */
/* Walks a batch by the nodes of the plan of its schema. */
#ifndef UVA_ARROW_PLAN_WALK_H
#define UVA_ARROW_PLAN_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "uvarrow/arrow_abi.h"

/* Whether the array of a batch fits the nodes at `node`, after that of its
 * columns; then `*size` is the size of its rows. `on_host`: offsets can be
 * read. Thread: any. */
bool uva__plan_walk(const uint8_t *node, const struct ArrowSchema *schema,
                    const struct ArrowArray *array, bool on_host,
                    int64_t *size);

#endif
