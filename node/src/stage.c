/* SPDX-License-Identifier: Apache-2.0 */
/* Stages: each call adds one, and throws its error. */
#include <stdlib.h>

#include "addon.h"

/* Gives the stream, and the numbers that follow it. */
static struct rows *stage_args(napi_env env, napi_callback_info info,
                               size_t count, int64_t *out)
{
    napi_value args[8];

    if (!value_args(env, info, count + 1, args))
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!value_integer(env, args[i + 1], out + i))
            return NULL;
    return rows_of(env, args[0]);
}

/* limit(stream, rows) */
napi_value stage_limit(napi_env env, napi_callback_info info)
{
    int64_t count = 0;
    struct rows *rows = stage_args(env, info, 1, &count);

    if (rows == NULL)
        return NULL;
    return rows_staged(env, rows, uva_stream_limit_rows(rows->stream, count));
}

/* rebatch(stream, rows, bytes, wait) */
napi_value stage_rebatch(napi_env env, napi_callback_info info)
{
    int64_t n[3] = {0};
    struct rows *rows = stage_args(env, info, 3, n);

    if (rows == NULL)
        return NULL;
    return rows_staged(
        env, rows,
        uva_stream_rebatch(rows->stream,
                           &(struct uva_rebatch){
                               .rows = n[0], .bytes = n[1], .wait_ms = n[2]}));
}

/* timeout(stream, open, first, between, total) */
napi_value stage_timeout(napi_env env, napi_callback_info info)
{
    int64_t n[4] = {0};
    struct rows *rows = stage_args(env, info, 4, n);

    if (rows == NULL)
        return NULL;
    return rows_staged(env, rows,
                       uva_stream_timeout(rows->stream, &(struct uva_timeout){
                                                            .open_ms = n[0],
                                                            .first_ms = n[1],
                                                            .between_ms = n[2],
                                                            .total_ms = n[3]}));
}

/* throttle(stream, batches, bytes) */
napi_value stage_throttle(napi_env env, napi_callback_info info)
{
    int64_t n[2] = {0};
    struct rows *rows = stage_args(env, info, 2, n);

    if (rows == NULL)
        return NULL;
    return rows_staged(
        env, rows,
        uva_stream_throttle(rows->stream,
                            &(struct uva_throttle){.batches_per_s = n[0],
                                                   .bytes_per_s = n[1]}));
}

/* parallel(stream, workers, whether in any order) */
napi_value stage_parallel(napi_env env, napi_callback_info info)
{
    int64_t n[2] = {0};
    struct rows *rows = stage_args(env, info, 2, n);

    if (rows == NULL)
        return NULL;
    return rows_staged(
        env, rows,
        uva_stream_parallel(rows->stream,
                            &(struct uva_parallel){.workers = (int32_t)n[0],
                                                   .unordered = n[1] != 0}));
}

/* cast(stream, Field) */
napi_value stage_cast(napi_env env, napi_callback_info info)
{
    struct ArrowSchema target;
    napi_value args[2];
    struct rows *rows;

    if (!value_args(env, info, 2, args) ||
        (rows = rows_of(env, args[0])) == NULL ||
        !schema_read(env, args[1], &target))
        return NULL;
    return rows_staged(env, rows, uva_stream_cast(rows->stream, &target));
}

/* name(stream, text) */
napi_value stage_name(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    struct rows *rows;
    char *name = NULL;
    int code;

    if (!value_args(env, info, 2, args) ||
        (rows = rows_of(env, args[0])) == NULL ||
        !value_text(env, args[1], &name))
        return NULL;
    code = uva_stream_set_name(rows->stream, name);
    free(name);
    return rows_staged(env, rows, code);
}

/* ---- several streams ----------------------------------------------------- */

static bool others_read(napi_env env, napi_value list, uint32_t count,
                        struct uva_stream **out)
{
    for (uint32_t i = 0; i < count; i++) {
        struct rows *rows = NULL;
        napi_value item = NULL;

        if (!value_ok(env, napi_get_element(env, list, i, &item)) ||
            (rows = rows_of(env, item)) == NULL)
            return false;
        out[i] = rows->stream;
    }
    return true;
}

/* Both take the references. */
static int others_add(struct rows *rows, struct uva_stream **others,
                      size_t count, bool in_order, bool cast)
{
    const struct uva_merge how = {.cast = cast};

    for (size_t i = 0; i < count; i++)
        (void)uva_stream_acquire(others[i]);
    return in_order ? uva_stream_concat(rows->stream, others, count, &how)
                    : uva_stream_merge(rows->stream, others, count, &how);
}

/* merge(stream, [stream...], whether one after the other, whether to cast) */
napi_value stage_merge(napi_env env, napi_callback_info info)
{
    bool in_order = false, cast = false, is_read;
    struct uva_stream **others;
    napi_value args[4];
    struct rows *rows;
    uint32_t count = 0;
    int code = 0;

    if (!value_args(env, info, 4, args) ||
        (rows = rows_of(env, args[0])) == NULL ||
        !value_ok(env, napi_get_array_length(env, args[1], &count)) ||
        !value_boolean(env, args[2], &in_order) ||
        !value_boolean(env, args[3], &cast))
        return NULL;
    others = calloc((size_t)count + 1, sizeof(struct uva_stream *));
    if (others == NULL)
        return value_no_memory(env);
    is_read = others_read(env, args[1], count, others);
    if (is_read)
        code = others_add(rows, others, count, in_order, cast);
    free(others);
    return is_read ? rows_staged(env, rows, code) : NULL;
}

/* tee(stream) -> another stream */
napi_value stage_tee(napi_env env, napi_callback_info info)
{
    struct rows *rows = stage_args(env, info, 0, NULL), *branch = NULL;
    napi_value out;

    if (rows == NULL)
        return NULL;
    out = rows_new(env, uva_stream_tee(rows->stream, NULL), &rows->window);
    if (out != NULL && value_object(env, out, &branch))
        branch->is_mapped = rows->is_mapped;
    return out;
}

/* encode(stream, how it is encoded...) */
napi_value stage_encode(napi_env env, napi_callback_info info)
{
    napi_value args[1 + ENCODE_ARGS];
    struct encode how;
    struct rows *rows;
    int code;

    if (!value_args(env, info, 1 + ENCODE_ARGS, args) ||
        (rows = rows_of(env, args[0])) == NULL ||
        !encode_read(env, args + 1, &how))
        return NULL;
    code = uva_stream_encode(rows->stream, &how.options);
    encode_free(&how);
    return rows_staged(env, rows, code);
}
