/* SPDX-License-Identifier: Apache-2.0 */
/* A batch that JavaScript holds. V8 sees an object of a few bytes, and is told
 * how many it keeps alive, until its ArrayBuffers are made (data.c), which V8
 * counts itself. */
#include <stdlib.h>

#include "addon.h"

static void held_return(struct held *held)
{
    if (--held->borrows == 0)
        uva_array_release(&held->data);
}

static void held_drop(struct held *held)
{
    if (--held->users > 0)
        return;
    shape_release(held->shape);
    host_release(held->host);
    free(held);
}

void held_lend(struct held *held)
{
    held->borrows++;
    held->users++;
}

void held_release(struct held *held)
{
    held_return(held);
    held_drop(held);
}

static void held_close(struct held *held)
{
    if (held->is_closed)
        return;
    held->is_closed = true;
    held->host->batches--;
    held_untell(held);
    held_return(held);
}

void held_untell(struct held *held)
{
    host_tell_bytes(held->host, -held->bytes);
    held->bytes = 0;
}

static void held_finalize(napi_env env, void *data, void *hint)
{
    struct held *held = data;

    (void)env;
    (void)hint;
    held_close(held);
    held_drop(held);
}

static bool rows_know_shape(struct rows *rows, const struct ArrowSchema *schema)
{
    if (rows->shape == NULL)
        rows->shape = shape_new(schema);
    return rows->shape != NULL;
}

napi_value held_new(napi_env env, struct rows *rows, struct uva_batch *batch)
{
    double *numbers = rows->host->numbers;
    struct held *held = calloc(1, sizeof(*held));

    if (held == NULL || !rows_know_shape(rows, batch->schema)) {
        free(held);
        uva_array_release(&batch->data);
        return value_no_memory(env);
    }
    held->host = host_acquire(rows->host);
    held->shape = shape_acquire(rows->shape);
    held->is_mapped = rows->is_mapped;
    held->users = held->borrows = 1;
    numbers[NUMBER_ROWS] = (double)batch->data.array.length;
    numbers[NUMBER_ORDINAL] = (double)batch->ordinal;
    if (uva_array_size(batch->schema, &batch->data, &held->bytes) != 0)
        held->bytes = 0; /* of an unknown type */
    numbers[NUMBER_BYTES] = (double)held->bytes;
    uva_array_move(&batch->data, &held->data);
    held->host->batches++;
    host_tell_bytes(held->host, held->bytes);
    return value_external(env, held, held_finalize);
}

struct held *held_of(napi_env env, napi_value value)
{
    struct held *held = NULL;

    if (!value_object(env, value, &held))
        return NULL;
    if (!held->is_closed)
        return held;
    (void)value_fail(env, EPIPE, "the batch is closed", NULL);
    return NULL;
}

bool held_share(napi_env env, struct held *held, struct ArrowDeviceArray *out)
{
    if (uva_array_share(&held->data, out) == 0)
        return true;
    (void)value_no_memory(env);
    return false;
}

/* close(batch): frees the data, when no ArrayBuffer borrows it any more. */
napi_value batch_close(napi_env env, napi_callback_info info)
{
    napi_value arg = NULL;
    struct held *held = NULL;

    if (!value_args(env, info, 1, &arg) || !value_object(env, arg, &held))
        return NULL;
    held_close(held);
    return value_truth(env, true);
}

/* schema(batch) -> Field */
napi_value batch_schema(napi_env env, napi_callback_info info)
{
    napi_value arg = NULL;
    struct held *held = NULL;

    if (!value_args(env, info, 1, &arg) || !value_object(env, arg, &held))
        return NULL;
    return schema_value(env, &held->shape->schema);
}

/* encode(batch, how it is encoded...) -> Uint8Array */
napi_value batch_encode(napi_env env, napi_callback_info info)
{
    napi_value args[1 + ENCODE_ARGS], out;
    struct ArrowDeviceArray data;
    struct encode how;
    struct uva_error error;
    struct uva_part part;
    struct held *held;
    int code;

    if (!value_args(env, info, 1 + ENCODE_ARGS, args) ||
        (held = held_of(env, args[0])) == NULL ||
        !encode_read(env, args + 1, &how))
        return NULL;
    if (!held_share(env, held, &data)) {
        encode_free(&how);
        return NULL;
    }
    code = uva_array_encode(&held->shape->schema, &data, 1, &how.options, &part,
                            &error);
    encode_free(&how);
    if (code != 0) {
        uva_array_release(&data);
        return value_fail(env, code, error.message, NULL);
    }
    out = part_copy(env, &part);
    uva_part_release(&part);
    return out;
}
