/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers of a batch as ArrayBuffers. Large ones borrow the memory of the
 * batch; small ones are copied together, which costs less than an object each.
 * JavaScript has no views that are read-only, so memory of a mapped file is
 * copied, too. */
#include <stdlib.h>
#include <string.h>

#include "addon.h"

/* Each copy begins at a multiple of it, as Arrow advises. */
enum { ALIGNMENT = 64 };

/* Numbers of a node before its buffers: length, nulls, offset, buffers */
enum { NODE_NUMBERS = 4 };

struct data {
    napi_env env;
    struct held *held;
    int64_t copy_below;
    struct uva_buffer *buffers; /* owns */
    size_t count, next;
    napi_value list;  /* [layout, copies, ArrayBuffer...] */
    double *layout;   /* for each node its numbers, and (place, size) */
    char *copies;     /* the memory of all copies */
    size_t copied;    /* bytes of it in use */
    uint32_t borrows; /* ArrayBuffers made */
};

static size_t padded(int64_t size)
{
    return ((size_t)size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool is_copied(const struct data *data, const struct uva_buffer *buffer)
{
    return buffer->size_bytes < data->copy_below;
}

static size_t nodes_of(const struct ArrowArray *array)
{
    size_t count = 1;

    for (int64_t i = 0; i < array->n_children; i++)
        count += nodes_of(array->children[i]);
    return array->dictionary == NULL ? count
                                     : count + nodes_of(array->dictionary);
}

/* Finds the buffers, in the order of the nodes. */
static bool data_find(struct data *data)
{
    const struct ArrowSchema *schema = &data->held->shape->schema;
    int code;

    code = uva_array_buffers(schema, &data->held->data, NULL, &data->count);
    if (code == 0) {
        data->buffers = calloc(data->count + 1, sizeof(*data->buffers));
        code = data->buffers == NULL
                   ? ENOMEM
                   : uva_array_buffers(schema, &data->held->data, data->buffers,
                                       &data->count);
    }
    if (code != 0)
        (void)value_fail(data->env, code,
                         "the buffers of the batch cannot be listed", NULL);
    return code == 0;
}

/* Appends an ArrayBuffer of `size` bytes of its own, and gives these. */
static bool data_append(struct data *data, uint32_t at, size_t size, void *out)
{
    napi_value value = NULL;

    return value_ok(data->env,
                    napi_create_arraybuffer(data->env, size, out, &value)) &&
           value_ok(data->env,
                    napi_set_element(data->env, data->list, at, value));
}

static bool data_make_room(struct data *data)
{
    const size_t numbers =
        nodes_of(&data->held->data.array) * NODE_NUMBERS + data->count * 2;
    size_t copies = 0;

    for (size_t i = 0; i < data->count; i++)
        if (is_copied(data, data->buffers + i))
            copies += padded(data->buffers[i].size_bytes);
    return value_ok(data->env, napi_create_array(data->env, &data->list)) &&
           data_append(data, 0, numbers * sizeof(double), &data->layout) &&
           data_append(data, 1, copies, &data->copies);
}

static void borrow_finalize(napi_env env, void *memory, void *held)
{
    (void)env;
    (void)memory;
    held_release(held);
}

/* Appends an ArrayBuffer on the memory of the batch; on a copy where the engine
 * has none of that kind, as in Electron. */
static bool data_borrow(struct data *data, const struct uva_buffer *buffer)
{
    const uint32_t at = 2 + data->borrows++;
    const size_t size = (size_t)buffer->size_bytes;
    napi_value value = NULL;
    napi_status status;
    void *copy = NULL;

    held_lend(data->held);
    status =
        napi_create_external_arraybuffer(data->env, (void *)buffer->data, size,
                                         borrow_finalize, data->held, &value);
    if (status == napi_ok)
        return value_ok(data->env,
                        napi_set_element(data->env, data->list, at, value));
    held_release(data->held);
    if (status != napi_no_external_buffers_allowed)
        return value_ok(data->env, status);
    if (!data_append(data, at, size, &copy))
        return false;
    memcpy(copy, buffer->data, size);
    return true;
}

/* The place of a copy is its offset, of an ArrayBuffer -1 minus its number. */
static bool data_write_buffer(struct data *data,
                              const struct uva_buffer *buffer)
{
    *data->layout++ = is_copied(data, buffer) ? (double)data->copied
                                              : -1 - (double)data->borrows;
    *data->layout++ = (double)buffer->size_bytes;
    if (!is_copied(data, buffer))
        return data_borrow(data, buffer);
    if (buffer->size_bytes > 0)
        memcpy(data->copies + data->copied, buffer->data,
               (size_t)buffer->size_bytes);
    data->copied += padded(buffer->size_bytes);
    return true;
}

static bool data_write(struct data *data, const struct ArrowArray *array)
{
    *data->layout++ = (double)array->length;
    *data->layout++ = (double)array->null_count;
    *data->layout++ = (double)array->offset;
    *data->layout++ = (double)array->n_buffers;
    for (int64_t i = 0; i < array->n_buffers; i++)
        if (!data_write_buffer(data, data->buffers + data->next++))
            return false;
    for (int64_t i = 0; i < array->n_children; i++)
        if (!data_write(data, array->children[i]))
            return false;
    return array->dictionary == NULL || data_write(data, array->dictionary);
}

/* data(batch, copyBelow) -> [layout, copies, ArrayBuffer...] */
napi_value batch_data(napi_env env, napi_callback_info info)
{
    struct data data = {.env = env};
    napi_value args[2];
    bool done;

    if (!value_args(env, info, 2, args) ||
        !value_integer(env, args[1], &data.copy_below) ||
        (data.held = held_of(env, args[0])) == NULL)
        return NULL;
    if (data.copy_below < 1) /* empty buffers have no memory */
        data.copy_below = 1;
    if (data.held->is_mapped)
        data.copy_below = INT64_MAX;
    done = data_find(&data) && data_make_room(&data) &&
           data_write(&data, &data.held->data.array);
    free(data.buffers);
    if (!done)
        return NULL;
    held_untell(data.held);
    return data.list;
}

napi_value data_detach(napi_env env, napi_callback_info info)
{
    napi_value arg = NULL;

    if (!value_args(env, info, 1, &arg) ||
        !value_ok(env, napi_detach_arraybuffer(env, arg)))
        return NULL;
    return value_truth(env, true);
}
