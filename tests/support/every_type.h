/* SPDX-License-Identifier: Apache-2.0 */
/* An array of each type of the Arrow format, with buffers exactly as large as
 * they have to be, for what copies or measures them. The values make no sense;
 * offsets and lengths do. */
#ifndef UVA_SUPPORT_EVERY_TYPE_H
#define UVA_SUPPORT_EVERY_TYPE_H

#include <stdbool.h>

#include "uvarrow/arrow_abi.h"

enum { EVERY_TYPES = 38 };

/* How an array is told from others of its type. */
struct every_variant {
    int64_t length; /* of the root */
    int64_t offset; /* of all nodes */
    bool nulls;     /* there are validity bitmaps */
};

/* Gives an array of type `k` and its schema. The buffers stay until
 * every_type_forget(). Thread: any one at a time. */
void every_type(int k, const struct every_variant *variant,
                struct ArrowSchema *schema, struct ArrowDeviceArray *array);

/* Whether two arrays of that schema are the same in every byte. */
bool every_type_equal(const struct ArrowSchema *schema,
                      const struct ArrowArray *a, const struct ArrowArray *b);

/* How many of its buffers have bytes in them. */
int every_type_buffers(const struct ArrowSchema *schema,
                       const struct ArrowArray *array);

void every_type_forget(void);

#endif
