/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes one buffer of an array needs, by the layout of its format. */
#ifndef UVA_ARROW_BUFFER_H
#define UVA_ARROW_BUFFER_H

#include <assert.h>
#include <string.h>

#include "arrow/device_traits.h"
#include "arrow/format.h"
#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* Item `i` of integers of `width` bytes (2, 4 or 8), at any address.
 * Thread: any. */
static inline int64_t uva__buffer_integer(const void *buffer, int32_t width,
                                          int64_t i)
{
    const char *at = (const char *)buffer + i * width;
    int16_t narrow;
    int32_t middle;
    int64_t wide;

    if (width == sizeof(middle)) {
        memcpy(&middle, at, sizeof(middle));
        return middle;
    }
    if (width == sizeof(wide)) {
        memcpy(&wide, at, sizeof(wide));
        return wide;
    }
    assert(width == sizeof(narrow));
    memcpy(&narrow, at, sizeof(narrow));
    return narrow;
}

/* Sets item `i` of such integers to `value`, which they hold. Thread: any one
 * at a time. */
static inline void uva__buffer_put_integer(void *buffer, int32_t width,
                                           int64_t i, int64_t value)
{
    char *at = (char *)buffer + i * width;
    const int16_t narrow = (int16_t)value;
    const int32_t middle = (int32_t)value;

    assert(width == sizeof(narrow) || width == sizeof(middle) ||
           width == sizeof(value));
    if (width == sizeof(middle))
        memcpy(at, &middle, sizeof(middle));
    else if (width == sizeof(value))
        memcpy(at, &value, sizeof(value));
    else
        memcpy(at, &narrow, sizeof(narrow));
}

/* Whether rows of `array` may be null. Relies on a format with a validity
 * bitmap: others may have no first buffer. Thread: any. */
static inline bool uva__buffer_may_have_nulls(const struct ArrowArray *array)
{
    return array->null_count != 0 && array->buffers[0] != NULL;
}

/* Whether the host can read the buffers of `array` now, without waiting for an
 * event or fetching pages. Thread: any. */
bool uva__buffer_on_host(const struct ArrowDeviceArray *array);

/* Whether a host program may read the data now: as above, and also in managed
 * memory: its pages move to the host on access. Thread: any. */
static inline bool uva__buffer_is_readable(const struct ArrowDeviceArray *array)
{
    if (array->device_type == ARROW_DEVICE_CPU) /* for most batches */
        return true;
    /* all others that are readable have events */
    return uva__device_is_readable(array->device_type) &&
           array->sync_event == NULL;
}

/* The number of bytes that buffer `i` of `array` must have, for `offset` +
 * `length` items, whether the buffer is NULL or not; 0 if the array is empty.
 * `layout` belongs to its format. With `on_host`, offsets and lengths are read;
 * without, the variable part counts 0. Relies on a valid length, offset and
 * number of buffers, and on an offsets buffer that is large enough. 0; EINVAL
 * for an impossible size, or for invalid offsets. Thread: any. */
UVA_MUST_CHECK int uva__buffer_needed(const struct uva__layout *layout,
                                      const struct ArrowArray *array, int64_t i,
                                      bool on_host, int64_t *size);

/* Where the data of the first item begins in buffer `i`, which has data and is
 * not empty. Relies on the same as uva__buffer_needed(), and on a host that
 * reads offsets. Thread: any. */
int64_t uva__buffer_data_begin(const struct uva__layout *layout,
                               const struct ArrowArray *array, int64_t i);

/* As uva__buffer_needed(), but a buffer that is NULL has 0 bytes.
 * Thread: any. */
UVA_MUST_CHECK int uva__buffer_size(const struct uva__layout *layout,
                                    const struct ArrowArray *array, int64_t i,
                                    bool on_host, int64_t *size);

#endif
