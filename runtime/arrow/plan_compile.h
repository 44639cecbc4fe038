/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a schema to the nodes of its plan. */
#ifndef UVA_ARROW_PLAN_COMPILE_H
#define UVA_ARROW_PLAN_COMPILE_H

#include <stdbool.h>
#include <stdint.h>

#include "uvarrow/arrow_abi.h"

/* What was compiled. */
struct uva__plan_compiled {
    int32_t size; /* bytes of the nodes, also beyond the room */
    bool reads;   /* as in struct uva__plan */
};

/* Writes as many bytes of the nodes of `schema`, which has columns, to `nodes`
 * as there is `room` for, 1 at least. False if no batch can fit the schema.
 * Thread: any. */
bool uva__plan_compile(const struct ArrowSchema *schema, uint8_t *nodes,
                       int32_t room, struct uva__plan_compiled *out);

#endif
