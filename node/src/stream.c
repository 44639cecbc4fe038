/* SPDX-License-Identifier: Apache-2.0 */
/* The native half of a Stream. JavaScript takes until that gives null, and then
 * waits until it is told that there is something new.
 *
 * Happy path:  new -> take (starts it): null -> ready, in a turn -> take: a
 *              batch ... -> take: false, the end.
 *
 * Failures: take throws the error of the outcome, once; then it gives false.
 *
 * On drop:  the stream is cancelled, and no news of it comes. So it is when the
 *           object of JavaScript is collected. */
#include <stdlib.h>

#include "addon.h"

static void rows_drop_stream(struct rows *rows)
{
    struct uva_stream *stream = rows->stream;

    rows->stream = NULL;
    host_forget(rows->host, &rows->news);
    uva_stream_drop(stream);
}

static void rows_finalize(napi_env env, void *data, void *hint)
{
    struct rows *rows = data;

    (void)env;
    (void)hint;
    rows_drop_stream(rows);
    shape_release(rows->shape);
    host_release(rows->host);
    free(rows);
}

napi_value rows_new(napi_env env, struct uva_stream *stream,
                    const struct uva_window *window)
{
    struct host *host = host_of(env);
    struct rows *rows = host == NULL ? NULL : calloc(1, sizeof(*rows));

    if (rows == NULL) {
        uva_stream_release(stream);
        return host == NULL ? NULL : value_no_memory(env);
    }
    rows->host = host_acquire(host);
    rows->stream = stream;
    if (window != NULL)
        rows->window = *window;
    rows->news = (struct news){.kind = NEWS_READY, .id = host_new_id(host)};
    host->numbers[NUMBER_ID] = (double)rows->news.id;
    return value_external(env, rows, rows_finalize);
}

struct rows *rows_of(napi_env env, napi_value value)
{
    struct rows *rows = NULL;

    if (!value_object(env, value, &rows))
        return NULL;
    if (rows->stream != NULL)
        return rows;
    (void)value_fail(env, EPIPE, "the stream is closed", NULL);
    return NULL;
}

napi_value rows_staged(napi_env env, struct rows *rows, int code)
{
    struct uva_error error;

    if (code == 0)
        return value_truth(env, true);
    (void)uva_error_set(&error, code, "the stage cannot be added: %s",
                        uva_error_name(code));
    (void)uva_stream_status(rows->stream, &error);
    return value_fail(env, code, error.message, NULL);
}

/* ---- reading ------------------------------------------------------------- */

static void rows_ready(void *ctx)
{
    struct rows *rows = ctx;

    host_note(rows->host, &rows->news);
}

static bool rows_start(napi_env env, struct rows *rows)
{
    struct uva_error error = {0};
    int code;

    if (rows->is_started)
        return true;
    code = uva_stream_start_take(rows->stream, &rows->window, rows_ready, rows,
                                 &error);
    rows->is_started = true;
    if (code == 0)
        return true;
    rows->is_over = true;
    (void)value_fail(env, code, error.message, NULL);
    return false;
}

/* Throws the error of a stream that has ended otherwise than well. */
static int rows_end(napi_env env, struct rows *rows,
                    const struct uva_outcome *outcome)
{
    if (rows->is_over || outcome->end == UVA_END_COMPLETE)
        return ENOENT;
    rows->is_over = true;
    (void)value_fail(env, outcome->error.code, outcome->error.message,
                     outcome->metadata);
    return -1;
}

int rows_take(napi_env env, struct rows *rows, struct uva_batch *batch)
{
    struct uva_outcome outcome;
    int code;

    if (!rows_start(env, rows))
        return -1;
    if (rows->is_over)
        return ENOENT;
    code = uva_stream_take(rows->stream, batch, &outcome);
    if (code == ENOENT)
        return rows_end(env, rows, &outcome);
    if (code == 0 || code == EAGAIN)
        return code;
    (void)value_fail(env, code, "the stream cannot be read", NULL);
    return -1;
}

/* null: not now; false: the end. NULL with an exception */
static napi_value rows_nothing(napi_env env, int code)
{
    return code == EAGAIN   ? value_null(env)
           : code == ENOENT ? value_truth(env, false)
                            : NULL;
}

/* take(rows): a batch, and its rows and its ordinal in `numbers` */
napi_value rows_take_batch(napi_env env, napi_callback_info info)
{
    napi_value arg = NULL;
    struct rows *rows;
    struct uva_batch batch;
    int code;

    if (!value_args(env, info, 1, &arg) || (rows = rows_of(env, arg)) == NULL)
        return NULL;
    code = rows_take(env, rows, &batch);
    if (code != 0)
        return rows_nothing(env, code);
    return held_new(env, rows, &batch);
}

/* takePart(rows, copyBelow): an array of Buffers of a stream that encodes */
napi_value rows_take_part(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    struct rows *rows;
    struct uva_batch batch;
    struct uva_part part;
    int64_t copy_below = 0;
    int code;

    if (!value_args(env, info, 2, args) ||
        !value_integer(env, args[1], &copy_below) ||
        (rows = rows_of(env, args[0])) == NULL)
        return NULL;
    code = rows_take(env, rows, &batch);
    if (code != 0)
        return rows_nothing(env, code);
    code = uva_part_take(&batch.data, &part);
    if (code == 0)
        return part_value(env, rows->host, &part,
                          rows->is_mapped ? INT64_MAX : copy_below);
    uva_array_release(&batch.data);
    return value_fail(env, code, "the stream has no encoded bytes", NULL);
}

static napi_value info_value(napi_env env, const struct uva_stream_info *info)
{
    napi_value out = NULL, value = schema_value(env, info->schema);

    if (value == NULL || !value_ok(env, napi_create_array(env, &out)) ||
        !value_ok(env, napi_set_element(env, out, 0, value)))
        return NULL;
    value = value_metadata(env, info->metadata);
    return value != NULL && value_ok(env, napi_set_element(env, out, 1, value))
               ? out
               : NULL;
}

/* info(rows): [schema, metadata]; null: not now. Throws what the stream has
 * failed with; false: its failure was reported. */
napi_value rows_info(napi_env env, napi_callback_info info)
{
    const struct uva_stream_info *known;
    napi_value arg = NULL;
    struct rows *rows;
    int code;

    if (!value_args(env, info, 1, &arg) || (rows = rows_of(env, arg)) == NULL)
        return NULL;
    known = uva_stream_get_info(rows->stream);
    if (known == NULL) {
        code = rows_take(env, rows, NULL);
        if (code == -1)
            return NULL;
        known = uva_stream_get_info(rows->stream);
        if (known == NULL)
            return rows_nothing(env, code);
    }
    return info_value(env, known);
}

/* changed(rows): the number of rows that a query has changed, or -1 */
napi_value rows_changed(napi_env env, napi_callback_info info)
{
    napi_value arg = NULL;
    struct rows *rows;

    if (!value_args(env, info, 1, &arg) || (rows = rows_of(env, arg)) == NULL)
        return NULL;
    return value_number(
        env, (double)uva_adbc_rows_changed(uva_stream_get_info(rows->stream)));
}

/* ---- ending -------------------------------------------------------------- */

/* cancel(rows, reason) */
napi_value rows_cancel(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    struct rows *rows = NULL;
    char *reason = NULL;

    if (!value_args(env, info, 2, args) || !value_object(env, args[0], &rows) ||
        !value_text(env, args[1], &reason))
        return NULL;
    uva_stream_cancel(rows->stream, 0, reason);
    free(reason);
    return value_truth(env, rows->stream != NULL);
}

/* drop(rows) */
napi_value rows_drop(napi_env env, napi_callback_info info)
{
    napi_value arg = NULL;
    struct rows *rows = NULL;

    if (!value_args(env, info, 1, &arg) || !value_object(env, arg, &rows))
        return NULL;
    rows_drop_stream(rows);
    return value_truth(env, true);
}
