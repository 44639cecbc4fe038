/* SPDX-License-Identifier: Apache-2.0 */
/* uva_array_concat(): the public form of arrow/concat.h. */
#include <assert.h>
#include <errno.h>

#include "arrow/concat.h"
#include "arrow/layout.h"
#include "base/error.h"
#include "base/memory.h"
#include "uvarrow/arrow.h"

/* Checks the arrays before any of their buffers is read. */
static int concat_check(const struct ArrowSchema *schema,
                        const struct ArrowDeviceArray *arrays, size_t count,
                        struct uva_error *error)
{
    int64_t bytes;
    int code = 0;

    if (schema == NULL || schema->release == NULL ||
        (arrays == NULL && count > 0))
        return uva_error_set(error, EINVAL, "uva_array_concat: no %s",
                             arrays == NULL && count > 0 ? "arrays" : "schema");
    for (size_t i = 0; i < count && code == 0; i++) {
        if (arrays[i].device_type != ARROW_DEVICE_CPU ||
            arrays[i].sync_event != NULL)
            return uva_error_set(error, ENOTSUP,
                                 "uva_array_concat: only data of the CPU can "
                                 "be joined");
        code = uva__layout_measure(schema, &arrays[i], &bytes, error);
    }
    return code;
}

static int concat_join(struct uva__concat *concat,
                       const struct ArrowDeviceArray *arrays, size_t count,
                       int64_t max_bytes)
{
    int code = 0;

    uva__concat_reset(concat);
    for (size_t i = 0; i < count && code == 0; i++)
        code = uva__concat_measure(concat, &arrays[i].array, 0,
                                   arrays[i].array.length);
    if (code == 0 && max_bytes > 0 && uva__concat_bytes(concat) > max_bytes)
        code = EMSGSIZE;
    if (code == 0)
        code = uva__concat_begin(concat);
    if (code != 0)
        return code;
    for (int64_t pass = 0; pass < uva__concat_passes(concat); pass++)
        for (size_t i = 0; i < count; i++)
            uva__concat_fill(concat, pass, &arrays[i].array, 0,
                             arrays[i].array.length);
    return 0;
}

int uva_array_concat(const struct ArrowSchema *schema,
                     const struct ArrowDeviceArray *arrays, size_t count,
                     int64_t max_bytes, struct ArrowDeviceArray *out,
                     struct uva_error *error)
{
    struct uva_allocator allocator;
    struct uva__concat *concat = NULL;
    int code = uva__memory_adopt(&(struct uva_allocator){0}, &allocator);

    assert(code == 0);
    uva_array_clear(out);
    code = concat_check(schema, arrays, count, error);
    if (code != 0)
        return code;
    code = uva__concat_new(&allocator, schema, &concat);
    if (code == 0)
        code = concat_join(concat, arrays, count, max_bytes);
    if (code == 0) {
        struct ArrowArray array;

        uva__concat_finish(concat, &array);
        uva_array_from_cpu(&array, out);
    }
    uva__concat_free(concat);
    return code == 0
               ? 0
               : uva_error_set(error, code,
                               "uva_array_concat: cannot join the arrays: "
                               "%s",
                               uva_error_name(code));
}
