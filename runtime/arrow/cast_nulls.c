/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of nulls, of any type: bits and offsets of 0. The null of a union is
 * that of its first member. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/cast_kinds.h"
#include "arrow/format.h"

/* The size of buffer `i`, for items without values. */
static int64_t nulls_size(const struct uva__layout *layout, int64_t i,
                          int64_t count)
{
    if (i >= layout->n_buffers) /* of views: the lengths of no buffers */
        return 0;
    switch (layout->buffers[i].kind) {
    case UVA__BUFFER_FIXED:
        return uva__new_array_size(count, layout->buffers[i].width);
    case UVA__BUFFER_OFFSETS:
        return (count + 1) * layout->buffers[i].width;
    case UVA__BUFFER_DATA:
        return 0;
    default:
        return uva__bits_bytes(count);
    }
}

/* The first type id of "+us:3,5". */
static void nulls_fill_ids(const char *format, int64_t count,
                           struct ArrowArray *out)
{
    const int id = (int)strtol(strchr(format, ':') + 1, NULL, 10);

    memset(uva__new_array_buffer(out, 0), id, (size_t)count);
}

/* How many nulls child `i` has; -1: too many. */
static int64_t nulls_below(const char *format, int64_t i, int64_t count)
{
    int64_t size;

    if (strcmp(format, "+s") == 0 || strncmp(format, "+us", 3) == 0)
        return count;
    if (strncmp(format, "+ud", 3) == 0) /* all rows have its one item */
        return i == 0 && count > 0;
    if (strcmp(format, "+r") == 0)
        return count > 0;
    if (strncmp(format, "+w:", 3) != 0)
        return 0;
    size = strtol(format + 3, NULL, 10);
    return size > 0 && count > PTRDIFF_MAX / 64 / size ? -1 : count * size;
}

/* One run for all. */
static int nulls_fill_ends(const struct ArrowSchema *schema, int64_t count,
                           struct ArrowArray *out)
{
    static const int64_t most[] = {INT16_MAX, INT32_MAX, INT64_MAX};
    const int kind = (int)(strchr("sil", schema->children[0]->format[0]) -
                           "sil"); /* in the order of widths */
    void *const end = uva__new_array_buffer(out->children[0], 1);

    if (count > most[kind])
        return EOVERFLOW;
    if (count == 0)
        return 0;
    out->children[0]->null_count = 0;
    memset(uva__new_array_buffer(out->children[0], 0), 1, 1);
    memcpy(end,
           kind == 0   ? (const void *)&(int16_t){(int16_t)count}
           : kind == 1 ? (const void *)&(int32_t){(int32_t)count}
                       : (const void *)&count,
           (size_t)2 << kind);
    return 0;
}

static int nulls_fill(const struct uva_allocator *allocator,
                      const struct ArrowSchema *schema, int64_t count,
                      struct ArrowArray *out)
{
    int code = 0;

    for (int64_t i = 0; i < schema->n_children && code == 0; i++) {
        const int64_t below = nulls_below(schema->format, i, count);

        code = below < 0 ? EOVERFLOW
                         : uva__nulls_new(allocator, schema->children[i], below,
                                          out->children[i]);
    }
    if (code == 0 && schema->dictionary != NULL)
        code =
            uva__nulls_new(allocator, schema->dictionary, 0, out->dictionary);
    if (code == 0 && strcmp(schema->format, "+r") == 0)
        code = nulls_fill_ends(schema, count, out);
    return code;
}

int uva__nulls_new(const struct uva_allocator *allocator,
                   const struct ArrowSchema *schema, int64_t count,
                   struct ArrowArray *out)
{
    struct uva__layout layout;
    struct uva__new_array shape = {.length = count,
                                   .n_children = schema->n_children,
                                   .dictionary = schema->dictionary != NULL};
    int64_t sizes[UVA__LAYOUT_MAX_BUFFERS + 1];
    int code = uva__format_read(schema->format, &layout);

    assert(code == 0 && count <= PTRDIFF_MAX / 64);
    shape.sizes = sizes;
    shape.n_buffers = layout.n_buffers + layout.variadic;
    for (int64_t i = 0; i < shape.n_buffers; i++)
        sizes[i] = nulls_size(&layout, i, count);
    code = uva__new_array(allocator, &shape, out);
    if (code != 0)
        return code;
    for (int64_t i = 0; i < shape.n_buffers; i++)
        memset(uva__new_array_buffer(out, i), 0, (size_t)sizes[i]);
    if (strncmp(schema->format, "+u", 2) == 0)
        nulls_fill_ids(schema->format, count, out);
    else if (strcmp(schema->format, "+r") != 0)
        out->null_count = count;
    return nulls_fill(allocator, schema, count, out);
}
