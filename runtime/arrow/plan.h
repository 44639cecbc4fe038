/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a schema: what there is to check and to add up in each column of
 * its batches, found once, so that a batch costs a few comparisons a column.
 *
 * It accepts only what layout.h accepts, and measures the same size. A batch
 * that it does not accept is walked in full there, which knows more and reports
 * the fault. */
#ifndef UVA_ARROW_PLAN_H
#define UVA_ARROW_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

enum { UVA__PLAN_NEAR = 24 };

/* All zeroes: there is no plan, and no batch is accepted. */
struct uva__plan {
    const struct uva_allocator *allocator; /* borrows; of `far` */
    uint8_t *far; /* owns: the nodes, if they are many; or NULL */
    int32_t size; /* bytes of the nodes; 0: no plan */
    bool reads;   /* offsets and the like, so the host must be able to */
    bool is_flat; /* all columns are of simple types, and in one node */
    uint8_t near[UVA__PLAN_NEAR]; /* the nodes, if they are few */
};

/* Makes the plan of `schema`, which has columns. If no batch can fit it, or
 * without memory, there is no plan. `allocator` is borrowed as long as the
 * plan. Thread: any. */
void uva__plan_init(struct uva__plan *plan,
                    const struct uva_allocator *allocator,
                    const struct ArrowSchema *schema);

/* Thread: any. */
void uva__plan_fini(struct uva__plan *plan);

/* Whether `batch` fits `schema`, of which the plan was made; then `*size` is
 * the size of its rows, as uva_array_size() describes it. False means only that
 * the plan cannot tell. Thread: any.
 *
 * Clauses: DA-20, DA-21, DA-22, DA-25, DA-26. */
bool uva__plan_measure(const struct uva__plan *plan,
                       const struct ArrowSchema *schema,
                       const struct ArrowDeviceArray *batch, int64_t *size);

/* Whether a batch that fits keeps no more memory than its size, as its rows
 * take all of its buffers: so uva__layout_memory() of the batch alone gives at
 * most that size. False means only that the plan cannot tell. Thread: any. */
bool uva__plan_is_whole(const struct uva__plan *plan,
                        const struct ArrowDeviceArray *batch);

#endif
