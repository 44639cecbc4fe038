/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes one buffer of an array needs, by the layout of its format. */
#ifndef UVA_CORE_BUFFER_H
#define UVA_CORE_BUFFER_H

#include "core/format.h"
#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* Whether the host can read the buffers of `array` now, without an event to
 * wait for or pages to fetch. Thread: any. */
bool uva__buffer_on_host(const struct ArrowDeviceArray *array);

/* Whether a host program may read the data now: the above, and managed memory,
 * which moves there when it does. Thread: any. */
bool uva__buffer_is_readable(const struct ArrowDeviceArray *array);

/* Bytes that buffer `i` of `array` has to hold, for `offset` + `length` items,
 * whether it is there or not; 0 if the array is empty. `layout` is that of its
 * format. With `on_host`, offsets and lengths are read; without, the variable
 * part counts 0. Rests on a sound length, offset and number of buffers, and on
 * an offsets buffer as large as it has to be. 0; EINVAL for a size that cannot
 * be, or that the offsets do not tell. Thread: any. */
UVA_MUST_CHECK int uva__buffer_needed(const struct uva__layout *layout,
                                      const struct ArrowArray *array, int64_t i,
                                      bool on_host, int64_t *size);

/* The same for a buffer that may be NULL, and then has 0 bytes.
 * Thread: any. */
UVA_MUST_CHECK int uva__buffer_size(const struct uva__layout *layout,
                                    const struct ArrowArray *array, int64_t i,
                                    bool on_host, int64_t *size);

#endif
