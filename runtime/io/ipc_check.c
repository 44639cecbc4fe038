/* SPDX-License-Identifier: Apache-2.0 */
/* One function for each kind. Loops over offsets have no exit, so that
 * compilers make vectors of them. A null item may have any content only where
 * the format allows that: indices and views. */
#include "io/ipc_check.h"

#include <stdlib.h>
#include <string.h>

#include "io/ipc_write_body.h"

enum { VIEW_SIZE = 16, VIEW_INLINE = 12 };

typedef const char *ipc_check_fn(const struct uva__ipc_field *field,
                                 const struct ArrowArray *array,
                                 int64_t data_size);

static bool check_is_null(const struct ArrowArray *array, int64_t i)
{
    return array->buffers[0] != NULL && !uva__ipc_bit(array->buffers[0], i);
}

/* ---- offsets ------------------------------------------------------------ */

/* Whether offsets grow, from 0 or more to `end` at most: no sign bit is set in
 * one of them, nor in the difference of two, which cannot overflow then. */
static bool check_offsets(const void *buffer, int32_t width, int64_t n,
                          int64_t end)
{
    const uint32_t *narrow = buffer;
    const uint64_t *wide = buffer;
    uint64_t signs = 0;

    if (width == 4) {
        uint32_t narrow_signs = narrow[0];

        for (int64_t i = 0; i < n; i++)
            narrow_signs |= narrow[i + 1] | (narrow[i + 1] - narrow[i]);
        return narrow_signs >> 31 == 0 && (int64_t)narrow[n] <= end;
    }
    signs = wide[0];
    for (int64_t i = 0; i < n; i++)
        signs |= wide[i + 1] | (wide[i + 1] - wide[i]);
    return signs >> 63 == 0 && (int64_t)wide[n] <= end;
}

static const char *check_binary(const struct uva__ipc_field *field,
                                const struct ArrowArray *array,
                                int64_t data_size)
{
    return check_offsets(array->buffers[1], field->width, array->length,
                         data_size)
               ? NULL
               : "offsets fall, or point behind the data";
}

/* The entries of a map are never null, and their keys are not. */
static bool check_entries(const struct ArrowArray *entries)
{
    return entries->null_count == 0 && entries->children[0]->null_count == 0;
}

static const char *check_list(const struct uva__ipc_field *field,
                              const struct ArrowArray *array, int64_t data_size)
{
    (void)data_size;
    if (!check_offsets(array->buffers[1], field->width, array->length,
                       array->children[0]->length))
        return "offsets fall, or point behind the child";
    return field->schema->format[1] != 'm' || check_entries(array->children[0])
               ? NULL
               : "an entry or a key of a map is null";
}

static const char *check_list_view(const struct uva__ipc_field *field,
                                   const struct ArrowArray *array,
                                   int64_t data_size)
{
    const int64_t most = array->children[0]->length;

    (void)data_size;
    for (int64_t i = 0; i < array->length; i++) {
        const int64_t from =
            uva__ipc_integer(array->buffers[1], field->width, i);
        const int64_t size =
            uva__ipc_integer(array->buffers[2], field->width, i);

        if (from < 0 || size < 0 || from > most || size > most - from)
            return "an item lies outside of the child";
    }
    return NULL;
}

static const char *check_fixed_list(const struct uva__ipc_field *field,
                                    const struct ArrowArray *array,
                                    int64_t data_size)
{
    (void)data_size;
    if (field->width > 0 &&
        array->length > array->children[0]->length / field->width)
        return "its child is too short";
    return NULL;
}

/* ---- views -------------------------------------------------------------- */

/* Whether a view is right: the long ones refer to their data, of which they
 * have the first bytes; the short ones end with zeroes, since readers compare
 * all 16 bytes. */
static bool check_view(const struct ArrowArray *array, const char *view)
{
    static const char zeroes[VIEW_INLINE];
    const int64_t n_data = array->n_buffers - 3;
    const int64_t *sizes = array->buffers[array->n_buffers - 1];
    int32_t size, buffer, offset;

    memcpy(&size, view, sizeof(size));
    if (size <= VIEW_INLINE)
        return size >= 0 && memcmp(view + 4 + size, zeroes,
                                   (size_t)(VIEW_INLINE - size)) == 0;
    memcpy(&buffer, view + 8, sizeof(buffer));
    memcpy(&offset, view + 12, sizeof(offset));
    if (buffer < 0 || buffer >= n_data || offset < 0 ||
        offset > sizes[buffer] || size > sizes[buffer] - offset)
        return false;
    return memcmp((const char *)array->buffers[2 + buffer] + offset, view + 4,
                  4) == 0;
}

static const char *check_views(const struct uva__ipc_field *field,
                               const struct ArrowArray *array,
                               int64_t data_size)
{
    const char *views = array->buffers[1];

    (void)field;
    (void)data_size;
    for (int64_t i = 0; i < array->length; i++)
        if (!check_is_null(array, i) &&
            !check_view(array, views + i * VIEW_SIZE))
            return "a view does not fit the data";
    return NULL;
}

/* ---- children beside each other ----------------------------------------- */

static const char *check_struct(const struct uva__ipc_field *field,
                                const struct ArrowArray *array,
                                int64_t data_size)
{
    (void)field;
    (void)data_size;
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->length < array->length)
            return "a child is too short";
    return NULL;
}

/* For each code, the child; -1: no child has it. */
static void check_codes(const struct uva__ipc_field *field, int16_t *children)
{
    struct uva__ipc_type type;
    const char *text;
    int16_t child = 0;
    int32_t code;

    for (int i = 0; i < UVA__IPC_MOST_CODES; i++)
        children[i] = -1;
    (void)uva__ipc_type_read(field->schema->format, &type); /* as before */
    text = type.text;
    while (uva__ipc_type_next_code(&text, &code))
        children[code] = child++;
}

/* The items of a child may come in any order: the format wants theirs, but
 * readers go by the offsets, and find the same values. */
static const char *check_dense_union(const struct uva__ipc_field *field,
                                     const struct ArrowArray *array,
                                     int64_t data_size)
{
    const int8_t *codes = array->buffers[0];
    const int32_t *offsets = array->buffers[1];
    int16_t children[UVA__IPC_MOST_CODES];

    (void)data_size;
    check_codes(field, children);
    for (int64_t i = 0; i < array->length; i++) {
        const int child = codes[i] < 0 ? -1 : children[codes[i]];

        if (child < 0)
            return "a code that no child has";
        if (offsets[i] < 0 || offsets[i] >= array->children[child]->length)
            return "an offset points outside of a child";
    }
    return NULL;
}

static const char *check_sparse_union(const struct uva__ipc_field *field,
                                      const struct ArrowArray *array,
                                      int64_t data_size)
{
    const int8_t *codes = array->buffers[0];
    int16_t children[UVA__IPC_MOST_CODES];

    check_codes(field, children);
    for (int64_t i = 0; i < array->length; i++)
        if (codes[i] < 0 || children[codes[i]] < 0)
            return "a code that no child has";
    return check_struct(field, array, data_size);
}

/* ---- run ends, indices -------------------------------------------------- */

/* The field of run ends follows its parent. */
static const char *check_runs(const struct uva__ipc_field *field,
                              const struct ArrowArray *array, int64_t data_size)
{
    const struct ArrowArray *ends = array->children[0];
    const int32_t width = field[1].width;
    int64_t last = 0;

    (void)data_size;
    for (int64_t i = 0; i < ends->length; i++) {
        const int64_t end = uva__ipc_integer(ends->buffers[1], width, i);

        if (end <= last || ends->null_count != 0)
            return "run ends do not grow, or are null";
        last = end;
    }
    if (last < array->length)
        return "the last run ends too early";
    return array->children[1]->length < ends->length ? "too few values" : NULL;
}

/* Whether index `i` is below `most`. */
static bool check_index(const void *buffer, char format, int64_t i,
                        int64_t most)
{
    switch (format) {
    case 'c':
        return ((const int8_t *)buffer)[i] >= 0 &&
               ((const int8_t *)buffer)[i] < most;
    case 'C':
        return ((const uint8_t *)buffer)[i] < most;
    case 's':
        return ((const int16_t *)buffer)[i] >= 0 &&
               ((const int16_t *)buffer)[i] < most;
    case 'S':
        return ((const uint16_t *)buffer)[i] < most;
    case 'i':
        return ((const int32_t *)buffer)[i] >= 0 &&
               ((const int32_t *)buffer)[i] < most;
    case 'I':
        return ((const uint32_t *)buffer)[i] < most;
    default: /* l and L: the largest of L are negative here */
        return ((const int64_t *)buffer)[i] >= 0 &&
               ((const int64_t *)buffer)[i] < most;
    }
}

static const char *check_fixed(const struct uva__ipc_field *field,
                               const struct ArrowArray *array,
                               int64_t data_size)
{
    (void)data_size;
    if (array->dictionary == NULL)
        return NULL;
    for (int64_t i = 0; i < array->length; i++)
        if (!check_is_null(array, i) &&
            !check_index(array->buffers[1], field->schema->format[0], i,
                         array->dictionary->length))
            return "an index points behind the dictionary";
    return NULL;
}

const char *uva__ipc_check(const struct uva__ipc_field *field,
                           const struct ArrowArray *array, int64_t data_size)
{
    static ipc_check_fn *const checks[] = {
        [UVA__IPC_FIXED] = check_fixed,
        [UVA__IPC_BINARY] = check_binary,
        [UVA__IPC_VIEW] = check_views,
        [UVA__IPC_LIST] = check_list,
        [UVA__IPC_LIST_VIEW] = check_list_view,
        [UVA__IPC_FIXED_LIST] = check_fixed_list,
        [UVA__IPC_STRUCT] = check_struct,
        [UVA__IPC_SPARSE_UNION] = check_sparse_union,
        [UVA__IPC_DENSE_UNION] = check_dense_union,
        [UVA__IPC_RUN_END] = check_runs,
    };

    return checks[field->kind] == NULL
               ? NULL
               : checks[field->kind](field, array, data_size);
}
