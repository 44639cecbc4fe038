/* SPDX-License-Identifier: Apache-2.0 */
/* Some columns, or some rows, of a batch as another batch. Columns share the
 * data of the whole batch, and keep all of it. */
#include <stdlib.h>

#include "addon.h"

/* The private data of an array with some of the columns of `whole`. A column
 * that a consumer moves out of it is moved out of `whole`. */
struct picked {
    struct ArrowDeviceArray whole; /* owns */
    struct ArrowArray *columns[];  /* borrows: of `whole` */
};

/* The indices of the columns */
struct indices {
    uint32_t count;
    uint32_t at[]; /* each in its range, and once: JavaScript has checked it */
};

static bool indices_fill(napi_env env, napi_value list, struct indices *out)
{
    for (uint32_t i = 0; i < out->count; i++) {
        napi_value item = NULL;
        int64_t at = 0;

        if (!value_ok(env, napi_get_element(env, list, i, &item)) ||
            !value_integer(env, item, &at))
            return false;
        out->at[i] = (uint32_t)at;
    }
    return true;
}

/* Gives the numbers of an array, to be freed; NULL with an exception. */
static struct indices *indices_read(napi_env env, napi_value list)
{
    struct indices *out;
    uint32_t count = 0;

    if (!value_ok(env, napi_get_array_length(env, list, &count)))
        return NULL;
    out = calloc(1, sizeof(*out) + count * sizeof(*out->at));
    if (out == NULL) {
        (void)value_no_memory(env);
        return NULL;
    }
    out->count = count;
    if (indices_fill(env, list, out))
        return out;
    free(out);
    return NULL;
}

/* A copy of the schema with these columns; NULL: no memory */
static struct shape *pick_shape(const struct ArrowSchema *schema,
                                const struct indices *indices)
{
    struct ArrowSchema some = *schema; /* borrows */
    struct shape *out = NULL;

    some.n_children = indices->count;
    some.children = calloc((size_t)indices->count + 1, sizeof(*some.children));
    if (some.children == NULL)
        return NULL;
    for (uint32_t i = 0; i < indices->count; i++)
        some.children[i] = schema->children[indices->at[i]];
    out = shape_new(&some);
    free(some.children);
    return out;
}

static void picked_release(struct ArrowArray *array)
{
    struct picked *picked = array->private_data;

    uva_array_release(&picked->whole);
    free(picked);
    array->release = NULL;
}

/* Gives an array with these columns. False with an exception. */
static bool pick_array(napi_env env, struct held *held,
                       const struct indices *indices,
                       struct ArrowDeviceArray *out)
{
    struct picked *picked =
        calloc(1, sizeof(*picked) + indices->count * sizeof(*picked->columns));

    if (picked == NULL) {
        (void)value_no_memory(env);
        return false;
    }
    if (!held_share(env, held, &picked->whole)) {
        free(picked);
        return false;
    }
    for (uint32_t i = 0; i < indices->count; i++)
        picked->columns[i] = picked->whole.array.children[indices->at[i]];
    *out = picked->whole; /* the rows, their nulls, and the device */
    out->array.n_children = indices->count;
    out->array.children = picked->columns;
    out->array.release = picked_release;
    out->array.private_data = picked;
    return true;
}

/* Makes a batch of `data`, which it takes. */
static napi_value select_batch(napi_env env, const struct held *from,
                               struct shape *shape, int64_t ordinal,
                               struct ArrowDeviceArray *data)
{
    struct rows rows = {
        .host = from->host, .shape = shape, .is_mapped = from->is_mapped};
    struct uva_batch batch = {.schema = &shape->schema, .ordinal = ordinal};

    uva_array_move(data, &batch.data);
    return held_new(env, &rows, &batch);
}

static napi_value select_picked(napi_env env, struct held *held,
                                const struct indices *indices, int64_t ordinal)
{
    struct shape *shape = pick_shape(&held->shape->schema, indices);
    struct ArrowDeviceArray data;
    napi_value out = NULL;

    if (shape == NULL)
        return value_no_memory(env);
    if (pick_array(env, held, indices, &data))
        out = select_batch(env, held, shape, ordinal, &data);
    shape_release(shape);
    return out;
}

/* columns(batch, [index...], ordinal) -> another batch */
napi_value select_columns(napi_env env, napi_callback_info info)
{
    struct indices *indices;
    struct held *held;
    napi_value args[3], out;
    int64_t ordinal = 0;

    if (!value_args(env, info, 3, args) ||
        (held = held_of(env, args[0])) == NULL ||
        !value_integer(env, args[2], &ordinal) ||
        (indices = indices_read(env, args[1])) == NULL)
        return NULL;
    out = select_picked(env, held, indices, ordinal);
    free(indices);
    return out;
}

/* rows(batch, a Uint8Array with a bit for each row, ordinal) -> another batch
 */
napi_value select_rows(napi_env env, napi_callback_info info)
{
    struct ArrowDeviceArray data, out;
    struct uva_error error;
    struct held *held;
    napi_value args[3];
    int64_t ordinal = 0;
    void *bits = NULL;
    int code;

    if (!value_args(env, info, 3, args) ||
        (held = held_of(env, args[0])) == NULL ||
        !value_integer(env, args[2], &ordinal) ||
        !value_ok(env, napi_get_typedarray_info(env, args[1], NULL, NULL, &bits,
                                                NULL, NULL)) ||
        !held_share(env, held, &data))
        return NULL;
    code = uva_array_select(&held->shape->schema, &data, bits, &out, &error);
    if (code != 0) {
        uva_array_release(&data);
        return value_fail(env, code, error.message, NULL);
    }
    return select_batch(env, held, held->shape, ordinal, &out);
}
