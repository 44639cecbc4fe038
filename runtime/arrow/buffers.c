/* SPDX-License-Identifier: Apache-2.0 */
/* uva_array_buffers(): a walk down an array whose shape was checked. */
#include <assert.h>
#include <errno.h>

#include "arrow/buffer.h"
#include "arrow/format.h"
#include "arrow/layout.h"
#include "uvarrow/arrow.h"

struct buffers_walk {
    struct uva_buffer *out; /* borrows */
    size_t room;            /* in `out` */
    size_t count;           /* buffers seen so far */
    bool on_host;           /* offsets can be read */
};

/* Whether only the memory of the array states how large a buffer is. */
static bool buffers_is_counted(const struct uva__layout *layout,
                               const struct ArrowArray *array, int64_t i)
{
    return i < layout->n_buffers ? layout->buffers[i].kind == UVA__BUFFER_DATA
                                 : i < array->n_buffers - 1;
}

static struct uva_buffer buffers_read(const struct buffers_walk *walk,
                                      const struct uva__layout *layout,
                                      const struct ArrowArray *array, int64_t i)
{
    struct uva_buffer buffer = {.data = array->buffers[i]};
    const int code =
        uva__buffer_size(layout, array, i, walk->on_host, &buffer.size_bytes);

    assert(code == 0);
    (void)code;
    if (!walk->on_host && buffer.data != NULL && array->length > 0 &&
        buffers_is_counted(layout, array, i))
        buffer.size_bytes = -1;
    return buffer;
}

static void buffers_walk_node(struct buffers_walk *walk,
                              const struct ArrowSchema *schema,
                              const struct ArrowArray *array)
{
    struct uva__layout layout;
    const int code = uva__format_read(schema->format, &layout);

    assert(code == 0);
    (void)code;
    for (int64_t i = 0; i < array->n_buffers; i++, walk->count++)
        if (walk->count < walk->room)
            walk->out[walk->count] = buffers_read(walk, &layout, array, i);
    for (int64_t i = 0; i < array->n_children; i++)
        buffers_walk_node(walk, schema->children[i], array->children[i]);
    if (array->dictionary != NULL)
        buffers_walk_node(walk, schema->dictionary, array->dictionary);
}

int uva_array_buffers(const struct ArrowSchema *schema,
                      const struct ArrowDeviceArray *array,
                      struct uva_buffer *out, size_t *count)
{
    struct buffers_walk walk = {.out = out};
    int64_t bytes;
    int code;

    if (schema == NULL || array == NULL || count == NULL ||
        (out == NULL && *count > 0))
        return EINVAL;
    code = uva__layout_copied(schema, array, &bytes, NULL);
    if (code != 0)
        return code;
    walk.room = *count;
    walk.on_host = uva__buffer_on_host(array);
    buffers_walk_node(&walk, schema, &array->array);
    *count = walk.count;
    return 0;
}
