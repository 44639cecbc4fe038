/* SPDX-License-Identifier: Apache-2.0 */
/* The size of one buffer.
 *
 * Buffers are measured from item 0, as `offset` is the number of items before
 * the first. An empty array needs no buffers. Offsets and lengths lie at any
 * address, and their values may be wrong. Clauses: DA-23, DA-24. */
#include "arrow/buffer.h"

#include <assert.h>

#include "arrow/bits.h"
#include "arrow/device_traits.h"

static bool buffer_is_ready(const struct ArrowDeviceArray *array)
{
    return array->sync_event == NULL ||
           !uva__device_has_events(array->device_type);
}

bool uva__buffer_on_host(const struct ArrowDeviceArray *array)
{
    return uva__device_is_host(array->device_type) && buffer_is_ready(array);
}

/* `items` of `width` bytes each; EINVAL if no memory is that large. */
static int buffer_multiply(int64_t items, int32_t width, int64_t *size)
{
    if (items > INT32_MAX && width != 0 && items > PTRDIFF_MAX / width)
        return EINVAL;
    *size = items * width;
    return 0;
}

/* The size of the data that the offsets in `buffer` point to. */
static int buffer_data_size(const struct ArrowArray *array, const void *buffer,
                            int32_t width, int64_t *size)
{
    const int64_t end = array->offset + array->length;
    int64_t first, last;

    if (buffer == NULL)
        return EINVAL;
    first = uva__buffer_integer(buffer, width, array->offset);
    last = uva__buffer_integer(buffer, width, end);
    *size = last;
    return first < 0 || last < first ? EINVAL : 0;
}

/* Buffers after the fixed ones: data buffers, and last the one with their
 * lengths. */
static int buffer_variadic_size(const struct uva__layout *layout,
                                const struct ArrowArray *array, int64_t i,
                                bool on_host, int64_t *size)
{
    const int64_t last = array->n_buffers - 1;
    const void *lengths = array->buffers[last];

    if (i == last)
        return buffer_multiply(last - layout->n_buffers, 8, size);
    if (!on_host)
        return 0;
    if (lengths == NULL)
        return EINVAL;
    *size = uva__buffer_integer(lengths, 8, i - layout->n_buffers);
    return *size < 0 ? EINVAL : 0;
}

int uva__buffer_needed(const struct uva__layout *layout,
                       const struct ArrowArray *array, int64_t i, bool on_host,
                       int64_t *size)
{
    const int64_t items = array->offset + array->length;

    assert(i >= 0 && i < array->n_buffers);
    *size = 0;
    if (array->length == 0)
        return 0;
    if (i >= layout->n_buffers)
        return buffer_variadic_size(layout, array, i, on_host, size);
    switch (layout->buffers[i].kind) {
    case UVA__BUFFER_FIXED:
        return buffer_multiply(items, layout->buffers[i].width, size);
    case UVA__BUFFER_OFFSETS:
        return items == INT64_MAX
                   ? EINVAL
                   : buffer_multiply(items + 1, layout->buffers[i].width, size);
    case UVA__BUFFER_DATA:
        return on_host ? buffer_data_size(array, array->buffers[i - 1],
                                          layout->buffers[i - 1].width, size)
                       : 0;
    default: /* bits */
        *size = uva__bits_bytes(items);
        return 0;
    }
}

int64_t uva__buffer_data_begin(const struct uva__layout *layout,
                               const struct ArrowArray *array, int64_t i)
{
    return uva__buffer_integer(array->buffers[i - 1],
                               layout->buffers[i - 1].width, array->offset);
}

int uva__buffer_size(const struct uva__layout *layout,
                     const struct ArrowArray *array, int64_t i, bool on_host,
                     int64_t *size)
{
    *size = 0;
    if (array->buffers[i] == NULL)
        return 0;
    return uva__buffer_needed(layout, array, i, on_host, size);
}
