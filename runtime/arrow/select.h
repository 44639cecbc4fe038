/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a batch that a mask selects: uva_array_select() for the library
 * itself. */
#ifndef UVA_ARROW_SELECT_H
#define UVA_ARROW_SELECT_H

#include "arrow/mask.h"
#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* Gives `out` the selected rows, with memory of `allocator`, which is copied
 * and must stay usable until they are released. `array` fits `schema`. Returns
 * as uva_array_select(). Thread: any one at a time. */
UVA_MUST_CHECK int uva__select_rows(const struct uva_allocator *allocator,
                                    const struct ArrowSchema *schema,
                                    struct ArrowDeviceArray *array,
                                    const struct uva__mask *mask,
                                    struct ArrowDeviceArray *out);

/* Fills in `error` (may be NULL), which begins with the name of the function or
 * stage, for a code of uva__select_rows(). Returns the code. Thread: any. */
int uva__select_fail(const char *name, int code, struct uva_error *error);

#endif
