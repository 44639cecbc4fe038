/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that is opened again when it has failed: a function of JavaScript
 * gives the next one. It is called inside a turn, as the library wants the
 * stream at once, and promises run after the turn. */
#include <stdlib.h>

#include "addon.h"

struct retry {
    struct host *host;     /* borrows: in turns */
    struct keeper *keeper; /* owns: names the function */
    int64_t id;
};

/* onRetry(id, number of the attempt, error) */
static napi_value retry_call(napi_env env, const struct retry *retry,
                             int32_t attempt, const struct uva_outcome *failed)
{
    napi_value args[3] = {0}, function = NULL, global = NULL, out = NULL;

    args[0] = value_number(env, (double)retry->id);
    args[1] = value_number(env, attempt);
    args[2] = value_error(env, failed->error.code, failed->error.message,
                          failed->metadata);
    if (args[0] == NULL || args[1] == NULL || args[2] == NULL ||
        !value_ok(env, napi_get_reference_value(env, retry->host->on_retry,
                                                &function)) ||
        !value_ok(env, napi_get_global(env, &global)) ||
        !value_ok(env,
                  napi_call_function(env, global, function, 3, args, &out)))
        return NULL;
    return out;
}

/* The stream of an external, with a reference; NULL for anything else. */
static struct uva_stream *retry_stream(napi_env env, napi_value value)
{
    napi_valuetype type = napi_undefined;
    struct rows *rows;

    if (value == NULL || !value_ok(env, napi_typeof(env, value, &type)) ||
        type != napi_external || (rows = rows_of(env, value)) == NULL)
        return NULL;
    return uva_stream_acquire(rows->stream);
}

/* NULL: there is no more attempt. JavaScript throws nothing: it keeps what its
 * function has thrown. */
static struct uva_stream *retry_again(void *ctx,
                                      const struct uva_outcome *failed,
                                      int32_t attempt, int64_t passed,
                                      int64_t rows)
{
    const struct retry *retry = ctx;
    struct host *host = retry->host;
    napi_handle_scope scope = NULL;
    struct uva_stream *stream;

    (void)passed;
    (void)rows;
    if (host->is_closing ||
        napi_open_handle_scope(host->env, &scope) != napi_ok)
        return NULL;
    host->has_called = true;
    stream =
        retry_stream(host->env, retry_call(host->env, retry, attempt, failed));
    host_drop_exception(host);
    (void)napi_close_handle_scope(host->env, scope);
    return stream;
}

/* Thread: any */
static void retry_free(void *ctx)
{
    struct retry *retry = ctx;

    keeper_free(retry->keeper);
    free(retry);
}

static struct retry *retry_new(napi_env env, struct host *host)
{
    struct retry *retry = calloc(1, sizeof(*retry));

    if (retry == NULL) {
        (void)value_no_memory(env);
        return NULL;
    }
    retry->host = host;
    retry->keeper = keeper_new(env, host);
    if (retry->keeper == NULL) {
        free(retry);
        return NULL;
    }
    retry->id = keeper_id(retry->keeper);
    return retry;
}

/* retry(stream, times, delay, delayMax): the number of its function */
napi_value stage_retry(napi_env env, napi_callback_info info)
{
    struct uva_retry how = {.again = retry_again, .free_ctx = retry_free};
    int64_t times = 0, id;
    struct retry *retry;
    napi_value args[4];
    struct rows *rows;
    int code;

    if (!value_args(env, info, 4, args) ||
        (rows = rows_of(env, args[0])) == NULL ||
        !value_integer(env, args[1], &times) ||
        !value_integer(env, args[2], &how.delay_ms) ||
        !value_integer(env, args[3], &how.delay_max_ms) ||
        (retry = retry_new(env, rows->host)) == NULL)
        return NULL;
    id = retry->id;
    how.ctx = retry;
    how.times = times > INT32_MAX ? INT32_MAX : (int32_t)times;
    code = uva_stream_retry(rows->stream, &how);
    return code == 0 ? value_number(env, (double)id)
                     : rows_staged(env, rows, code);
}
