/* SPDX-License-Identifier: Apache-2.0 */
/* Results that are known at once. */
#ifndef UVA_ADBC_FIXED_H
#define UVA_ADBC_FIXED_H

#include "uvarrow/adbc_abi.h"

/* Gives a stream without columns and rows. */
void uva__fixed_nothing(struct ArrowArrayStream *out);

/* Gives a stream of at most one batch: takes `schema`, and `array`, which may
 * be NULL, also on failure. 0 or ENOMEM. */
int uva__fixed_new(struct ArrowSchema *schema, struct ArrowArray *array,
                   struct ArrowArrayStream *out);

/* Gives an array of structs with one binary column, a copy of `texts`, and its
 * schema, which calls the column `name`, a static text. 0, ENOMEM, or EOVERFLOW
 * if there are 2 GiB or more. */
int uva__fixed_binary(const char *name, const uint8_t *const *texts,
                      const size_t *sizes, size_t count,
                      struct ArrowSchema *schema, struct ArrowArray *array);

#endif
