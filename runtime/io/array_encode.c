/* SPDX-License-Identifier: Apache-2.0 */
/* uva_array_encode(): arrays as one part. The encoder is given borrowed copies
 * of the arrays' structs, and the part takes the arrays when nothing can fail
 * any more. */
#include <stdlib.h>

#include "io/encoder.h"
#include "io/part.h"
#include "uvarrow/arrow.h"

/* The parts in work: the begin, one of each array, the end. */
struct array_parts {
    struct uva_part *parts;  /* owns */
    struct uva_part *joined; /* copies of these, behind them */
    size_t count;            /* of parts */
};

static void array_release_borrowed(struct ArrowArray *array)
{
    array->release = NULL;
}

static int array_no_memory(struct uva_error *error)
{
    return uva_error_set(error, ENOMEM, "out of memory");
}

/* Encodes array `i`, which stays the caller's. */
static int array_encode_one(struct uva__encoder *encoder,
                            const struct ArrowDeviceArray *array, size_t i,
                            struct uva_part *out, struct uva_error *error)
{
    struct ArrowDeviceArray borrowed = *array;

    if (!uva_array_is_live(array))
        return uva_error_set(error, EINVAL,
                             "uva_array_encode: array %zu is released", i);
    borrowed.array.release = array_release_borrowed;
    return uva__encoder_batch(encoder, &borrowed, out, error);
}

static int array_encode_all(struct uva__encoder *encoder,
                            const struct ArrowDeviceArray *arrays, size_t count,
                            struct uva_part *parts, struct uva_error *error)
{
    int code = uva__encoder_begin(encoder, &parts[0]);

    if (code != 0)
        return array_no_memory(error);
    for (size_t i = 0; i < count && code == 0; i++)
        code = array_encode_one(encoder, &arrays[i], i, &parts[i + 1], error);
    if (code != 0)
        return code;
    return uva__encoder_end(encoder, &parts[count + 1]) == 0
               ? 0
               : array_no_memory(error);
}

/* Joins the parts, and takes the arrays if that returns 0. */
static int array_join(struct array_parts *parts,
                      struct ArrowDeviceArray *arrays, bool is_text,
                      struct uva_part *out)
{
    for (size_t i = 0; i < parts->count; i++)
        parts->joined[i] = parts->parts[i];
    if (uva__part_join(parts->joined, parts->count, out) != 0)
        return ENOMEM;
    for (size_t i = 0; i + 2 < parts->count; i++) {
        if (is_text)
            uva_array_release(&arrays[i]);
        else
            uva__part_own(&parts->parts[i + 1], &arrays[i]);
    }
    return 0;
}

static int array_encode_parts(struct uva__encoder *encoder,
                              struct ArrowDeviceArray *arrays, size_t count,
                              bool is_text, struct uva_part *out,
                              struct uva_error *error)
{
    struct array_parts parts = {.count = count + 2};
    int code;

    parts.parts = calloc(2 * parts.count, sizeof(*parts.parts));
    if (parts.parts == NULL)
        return array_no_memory(error);
    parts.joined = parts.parts + parts.count;
    code = array_encode_all(encoder, arrays, count, parts.parts, error);
    if (code == 0 && array_join(&parts, arrays, is_text, out) != 0)
        code = array_no_memory(error);
    for (size_t i = 0; i < parts.count && code != 0; i++)
        uva_part_release(&parts.parts[i]);
    free(parts.parts);
    return code;
}

int uva_array_encode(const struct ArrowSchema *schema,
                     struct ArrowDeviceArray *arrays, size_t count,
                     const struct uva_encode *options, struct uva_part *out,
                     struct uva_error *error)
{
    const bool is_text =
        options != NULL && uva__encoder_is_text(options->format);
    struct uva__encoder *encoder = NULL;
    int code;

    *out = (struct uva_part){0};
    if (arrays == NULL && count > 0)
        return uva_error_set(error, EINVAL, "uva_array_encode: no arrays");
    code = uva__encoder_new(schema, options, &encoder, error);
    if (code != 0)
        return code;
    code = array_encode_parts(encoder, arrays, count, is_text, out, error);
    uva__encoder_free(encoder);
    return code;
}
