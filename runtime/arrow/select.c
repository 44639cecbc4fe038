/* SPDX-License-Identifier: Apache-2.0 */
/* Selected rows are moved or sliced where they lie side by side, and otherwise
 * copied by arrow/concat.h. */
#include "arrow/select.h"

#include <assert.h>
#include <errno.h>

#include "arrow/concat.h"
#include "arrow/layout.h"
#include "arrow/slice.h"
#include "base/error.h"
#include "base/memory.h"
#include "uvarrow/arrow.h"

static int select_slice(const struct uva_allocator *allocator,
                        const struct ArrowSchema *schema,
                        struct ArrowDeviceArray *array,
                        const struct uva__mask *mask,
                        struct ArrowDeviceArray *out)
{
    const int code = uva__slice_array(allocator, schema, array, mask->first,
                                      mask->selected, out);

    if (code == 0)
        uva_array_release(array);
    return code;
}

static int select_fill(struct uva__concat *concat,
                       const struct ArrowArray *array,
                       const struct uva__mask *mask)
{
    int code;

    uva__concat_reset(concat);
    code = uva__concat_measure_mask(concat, array, mask);
    if (code == 0)
        code = uva__concat_begin(concat);
    if (code == 0)
        uva__concat_fill_mask(concat, array, mask);
    return code;
}

static int select_copy(const struct uva_allocator *allocator,
                       const struct ArrowSchema *schema,
                       struct ArrowDeviceArray *array,
                       const struct uva__mask *mask,
                       struct ArrowDeviceArray *out)
{
    struct uva__concat *concat = NULL;
    struct ArrowArray copy;
    int code;

    if (array->device_type != ARROW_DEVICE_CPU || array->sync_event != NULL)
        return ENOTSUP;
    code = uva__concat_new(allocator, schema, &concat);
    if (code == 0)
        code = select_fill(concat, &array->array, mask);
    if (code == 0) {
        uva__concat_finish(concat, &copy);
        uva_array_from_cpu(&copy, out);
        uva_array_release(array);
    }
    uva__concat_free(concat);
    return code;
}

int uva__select_rows(const struct uva_allocator *allocator,
                     const struct ArrowSchema *schema,
                     struct ArrowDeviceArray *array,
                     const struct uva__mask *mask, struct ArrowDeviceArray *out)
{
    uva_array_clear(out);
    if (mask->selected == mask->rows) {
        uva_array_move(array, out);
        return 0;
    }
    return uva__mask_is_run(mask)
               ? select_slice(allocator, schema, array, mask, out)
               : select_copy(allocator, schema, array, mask, out);
}

int uva__select_fail(const char *name, int code, struct uva_error *error)
{
    return uva_error_set(error, code, "%s: cannot copy the rows: %s", name,
                         code == ENOTSUP
                             ? "they are not on the CPU, or have an event"
                             : uva_error_name(code));
}

/* Checks the array before any of its buffers is read. */
static int select_check(const struct ArrowSchema *schema,
                        const struct ArrowDeviceArray *array,
                        const uint8_t *bits, struct uva_error *error)
{
    int64_t bytes;

    if (schema == NULL || schema->release == NULL || array == NULL ||
        bits == NULL)
        return uva_error_set(error, EINVAL, "uva_array_select: no %s",
                             bits == NULL    ? "bits"
                             : array == NULL ? "array"
                                             : "schema");
    return uva__layout_copied(schema, array, &bytes, error);
}

int uva_array_select(const struct ArrowSchema *schema,
                     struct ArrowDeviceArray *array, const uint8_t *bits,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct uva_allocator allocator;
    struct uva__mask mask;
    int code = uva__memory_adopt(&(struct uva_allocator){0}, &allocator);

    assert(code == 0);
    uva_array_clear(out);
    code = select_check(schema, array, bits, error);
    if (code != 0)
        return code;
    uva__mask_read(&mask, bits, array->array.length);
    code = uva__select_rows(&allocator, schema, array, &mask, out);
    return code == 0 ? 0 : uva__select_fail("uva_array_select", code, error);
}
