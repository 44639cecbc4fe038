/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an array fits its schema, and how many bytes it has. Reads sizes and
 * pointers, and of arrays in host memory offsets, views and the like, but no
 * values. Format strings are left to format.h, single buffers to buffer.h, the
 * parts of buffers that rows take to row_size.h. */
#ifndef UVA_ARROW_LAYOUT_H
#define UVA_ARROW_LAYOUT_H

#include <stdbool.h>

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* Checks that `array` and all its children have the shape that `schema` gives
 * them, and measures its rows, as uva_array_size() describes it. Does not
 * allocate. 0 with `size_bytes`; EINVAL, with the path and the fault in `error`
 * (may be NULL); ENOTSUP, with the path, if the only fault is an unknown
 * format, and so the buffers of a column were not looked at. Both are borrowed.
 * Foreign structs may be passed unchecked, as long as their pointers are NULL
 * or valid. Thread: any.
 *
 * Clauses: DA-20, DA-21, DA-22, DA-25, DA-26. */
UVA_MUST_CHECK int uva__layout_measure(const struct ArrowSchema *schema,
                                       const struct ArrowDeviceArray *array,
                                       int64_t *size_bytes,
                                       struct uva_error *error);

/* Checks as above, and measures the buffers: each from its first byte to the
 * last item, and once, if the array has it several times. `whole` is set if the
 * array is a part of an array that this library has shared: then the memory of
 * the whole counts. Thread: any. */
UVA_MUST_CHECK int uva__layout_memory(const struct ArrowSchema *schema,
                                      const struct ArrowDeviceArray *array,
                                      int64_t *size_bytes, bool *whole);

/* Checks as above, and measures copies of all buffers: as there, but each time
 * that the array has one, and of this array alone. Thread: any. */
UVA_MUST_CHECK int uva__layout_copied(const struct ArrowSchema *schema,
                                      const struct ArrowDeviceArray *array,
                                      int64_t *size_bytes,
                                      struct uva_error *error);

/* Checks one column in that way, of known formats, which must have `rows` items
 * at least; its memory is on the host, if `on_host`. With 0 gives the bytes of
 * all its buffers. Thread: any. */
UVA_MUST_CHECK int uva__layout_check_column(const struct ArrowSchema *schema,
                                            const struct ArrowArray *array,
                                            int64_t rows, bool on_host,
                                            int64_t *size_bytes);

#endif
