/* SPDX-License-Identifier: Apache-2.0 */
/* An array of each type of the Arrow format, with buffers of exactly the
 * required size, for code that copies or measures them. The values are
 * arbitrary, but offsets and lengths are valid. */
#ifndef UVA_SUPPORT_EVERY_TYPE_H
#define UVA_SUPPORT_EVERY_TYPE_H

#include <stdbool.h>

#include "uvarrow/arrow_abi.h"

enum { EVERY_TYPES = 38 };

/* How one array of a type differs from another. */
struct every_variant {
    int64_t length; /* of the root */
    int64_t offset; /* of all nodes */
    bool nulls;     /* the nodes have validity bitmaps */
};

/* Gives an array of type `k` and its schema. The buffers stay valid until
 * every_type_forget(). Thread: any, one at a time. */
void every_type(int k, const struct every_variant *variant,
                struct ArrowSchema *schema, struct ArrowDeviceArray *array);

/* Returns whether two arrays of that schema are equal in every byte. */
bool every_type_equal(const struct ArrowSchema *schema,
                      const struct ArrowArray *a, const struct ArrowArray *b);

/* Returns how many of the array's buffers have at least one byte. */
int every_type_buffers(const struct ArrowSchema *schema,
                       const struct ArrowArray *array);

void every_type_forget(void);

#endif
