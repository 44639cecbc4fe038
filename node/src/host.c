/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime of one environment of Node.js: of the main thread, or of a
 * worker. It is a turned runtime, with a libuv of its own, so that one binary
 * serves each host: the loop of the environment watches its descriptor
 * (watch.c), or a thread-safe function makes the turns (post.c).
 *
 * Happy path:  start -> a turn, in which the callbacks of the library note news
 *              -> after the turn, JavaScript is told the news -> ... -> the
 *              cleanup hook of the environment closes the runtime.
 *
 * On teardown: the hook ends all calls and writers, and makes the last turns:
 * at most CLOSE_LIMIT_MS, if a source is stuck. JavaScript is told nothing any
 * more. Finalizers come later, and so the host counts its objects. At
 * process.exit() no hook runs, and the threads end with the process. */
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "addon.h"

/* A worker that is terminated waits so long for a source that is stuck. */
enum { CLOSE_LIMIT_MS = 100 };

enum mode { MODE_WATCH, MODE_POST };

/* Threads that all environments of the process share. */
static uv_once_t workers_once = UV_ONCE_INIT;
static struct uva_workers *workers;

static void workers_make(void)
{
    if (uva_workers_new(&(struct uva_workers_options){.name = "uvarrow"},
                        &workers, NULL) != 0)
        workers = NULL; /* each runtime makes its own */
}

struct host *host_of(napi_env env)
{
    void *host = NULL;

    return value_ok(env, napi_get_instance_data(env, &host)) ? host : NULL;
}

struct host *host_acquire(struct host *host)
{
    host->users++;
    return host;
}

void host_release(struct host *host)
{
    if (--host->users > 0)
        return;
    uva_runtime_release(host->runtime);
    free(host);
}

int64_t host_new_id(struct host *host)
{
    return ++host->last_id;
}

void host_tell_bytes(struct host *host, int64_t bytes)
{
    int64_t now;

    host->bytes += bytes;
    if (host->env != NULL && bytes != 0)
        (void)napi_adjust_external_memory(host->env, bytes, &now);
}

/* ---- news ---------------------------------------------------------------- */

void host_note(struct host *host, struct news *news)
{
    if (news->is_queued)
        return;
    news->is_queued = true;
    news->next = NULL;
    *host->last = news;
    host->last = &news->next;
}

void host_forget(struct host *host, struct news *news)
{
    struct news **at = &host->news;

    if (!news->is_queued)
        return;
    while (*at != news)
        at = &(*at)->next;
    *at = news->next;
    if (host->last == &news->next)
        host->last = at;
    news->is_queued = false;
}

static struct news *news_first(struct host *host)
{
    struct news *news = host->news;

    if (news != NULL)
        host_forget(host, news);
    return news;
}

/* Takes an exception, so that it is not thrown in other code. */
static napi_value exception_take(napi_env env)
{
    napi_value exception = NULL;
    bool is_pending = false;

    if (napi_is_exception_pending(env, &is_pending) != napi_ok || !is_pending ||
        napi_get_and_clear_last_exception(env, &exception) != napi_ok)
        return NULL;
    return exception;
}

void host_drop_exception(struct host *host)
{
    (void)exception_take(host->env);
}

/* onNews(kind, id, value): what a call of Node-API gave */
static napi_status news_call(napi_env env, const struct host *host,
                             const napi_value *args)
{
    napi_value function = NULL, global = NULL;
    napi_status status;

    status = napi_get_reference_value(env, host->on_news, &function);
    if (status == napi_ok)
        status = napi_get_global(env, &global);
    if (status == napi_ok)
        status = napi_call_function(env, global, function, 3, args, NULL);
    return status;
}

/* Whether JavaScript was told. An exception that it has thrown is one that is
 * not caught; one of ours is dropped. */
static bool news_tell(napi_env env, const struct host *host, struct news *news)
{
    void (*const lost)(struct news *) = news->lost;
    napi_value args[3] = {0}, exception;
    napi_status status = napi_generic_failure;

    args[0] = value_number(env, news->kind);
    args[1] = value_number(env, (double)news->id);
    args[2] = news->value != NULL ? news->value(env, news) : value_null(env);
    if (args[0] != NULL && args[1] != NULL && args[2] != NULL)
        status = news_call(env, host, args);
    if (status == napi_ok)
        return true;
    if (args[2] != NULL && lost != NULL)
        lost(news);
    exception = exception_take(env);
    if (status == napi_pending_exception && exception != NULL)
        (void)napi_fatal_exception(env, exception);
    return status == napi_pending_exception;
}

/* Tells it in the next turn, which comes soon. */
static void host_again(struct host *host, struct news *news)
{
    if (news != NULL)
        host_note(host, news);
    (void)exception_take(host->env);
    (void)uva_runtime_loop(host->runtime);
}

/* News with a value have given it away, and are not told again. */
static void host_tell(struct host *host)
{
    struct news *news;

    while (!host->is_closing && (news = news_first(host)) != NULL) {
        const bool has_value = news->value != NULL;

        if (news_tell(host->env, host, news) || has_value)
            continue;
        host_again(host, news);
        return;
    }
}

/* Around calls of JavaScript by a callback of libuv: promises run at its end.
 */
static void host_tell_scoped(struct host *host)
{
    napi_callback_scope scope = NULL;
    napi_value resource = NULL, exception;

    if (host->watch == NULL) { /* Node-API has opened one */
        host_tell(host);
        return;
    }
    if (napi_create_object(host->env, &resource) != napi_ok ||
        napi_open_callback_scope(host->env, resource, host->context, &scope) !=
            napi_ok) {
        host_again(host, NULL);
        return;
    }
    host_tell(host);
    (void)napi_close_callback_scope(host->env, scope);
    exception = exception_take(host->env); /* of a promise that ran */
    if (exception != NULL)
        (void)napi_fatal_exception(host->env, exception);
}

void host_turn(struct host *host)
{
    napi_env env = host->env;
    napi_handle_scope scope = NULL;

    if (host->is_closing)
        return;
    (void)uva_runtime_turn(host->runtime);
    if (host->news == NULL && !host->has_called)
        return;
    if (napi_open_handle_scope(env, &scope) != napi_ok) {
        host_again(host, NULL);
        return;
    }
    host->has_called = false;
    host_tell_scoped(host);
    (void)napi_close_handle_scope(env, scope);
}

/* ---- the end ------------------------------------------------------------- */

static void host_unwatched(void *ctx)
{
    struct host *host = ctx;

    (void)napi_remove_async_cleanup_hook(host->hook);
    host_release(host);
}

static void host_drop_news(struct host *host)
{
    struct news *news;

    while ((news = news_first(host)) != NULL)
        if (news->value != NULL)
            (void)news->value(NULL, news);
}

static void host_close(struct host *host)
{
    host->is_closing = true;
    if (host->watch != NULL)
        watch_stop(host->watch); /* before its descriptor is closed */
    map_end_all(host);
    writer_close_all(host);
    (void)uva_runtime_join(host->runtime, 0);
    host_drop_news(host);
}

/* The handle on the loop of Node.js is closed by that loop. */
static void host_leave_watched(napi_async_cleanup_hook_handle hook, void *ctx)
{
    struct host *host = host_acquire(ctx);
    struct watch *watch = host->watch;

    (void)hook;
    host_close(host);
    host->watch = NULL;
    watch_free(watch, host_unwatched, host);
}

static void host_leave_posted(void *ctx)
{
    struct host *host = ctx;

    host_close(host);
    post_free(host->post);
    host->post = NULL;
}

static void host_finalize(napi_env env, void *data, void *hint)
{
    struct host *host = data;

    (void)env;
    (void)hint;
    host->env = NULL;
    host_release(host);
}

/* ---- the start ----------------------------------------------------------- */

static bool host_keep_functions(napi_env env, struct host *host,
                                const napi_value *functions,
                                napi_value *numbers)
{
    const size_t bytes = NUMBERS * sizeof(double);
    napi_value memory = NULL, name = NULL;

    return value_ok(env, napi_create_reference(env, functions[2], 1,
                                               &host->on_retry)) &&
           value_ok(env, napi_create_reference(env, functions[0], 1,
                                               &host->on_news)) &&
           value_ok(env, napi_create_reference(env, functions[1], 1,
                                               &host->make_error)) &&
           value_ok(env, napi_create_arraybuffer(
                             env, bytes, (void **)&host->numbers, &memory)) &&
           value_ok(env, napi_create_typedarray(env, napi_float64_array,
                                                NUMBERS, memory, 0, numbers)) &&
           value_ok(env, napi_create_reference(env, *numbers, 1,
                                               &host->numbers_kept)) &&
           value_ok(env, napi_create_string_utf8(env, "uvarrow",
                                                 NAPI_AUTO_LENGTH, &name)) &&
           value_ok(env, napi_async_init(env, NULL, name, &host->context));
}

static bool host_open(napi_env env, struct host *host, enum mode mode)
{
    struct uva_runtime_options options = {.name = "node",
                                          .uv_version = uv_version(),
                                          .close_limit_ms = CLOSE_LIMIT_MS};
    struct uva_runtime *runtime = NULL;
    struct uva_error error;
    int code;

    uv_once(&workers_once, workers_make);
    options.workers = workers;
    if (mode == MODE_POST && (host->post = post_new(env, host)) == NULL)
        return false;
    code = uva_runtime_open_turned(mode == MODE_POST ? post_call : NULL,
                                   host->post, &options, &runtime, &error);
    if (code != 0) {
        (void)value_fail(env, code, error.message, NULL);
        return false;
    }
    host->runtime = uva_runtime_acquire(runtime);
    (void)uva_runtime_turn(runtime); /* from now on this is the loop thread */
    if (mode == MODE_WATCH)
        host->watch = watch_new(host);
    return host->watch != NULL || host->post != NULL;
}

static void host_fail(struct host *host)
{
    const napi_ref refs[] = {host->on_news, host->make_error, host->on_retry,
                             host->numbers_kept};

    for (size_t i = 0; i < sizeof(refs) / sizeof(*refs); i++)
        if (refs[i] != NULL)
            (void)napi_delete_reference(host->env, refs[i]);
    if (host->context != NULL)
        (void)napi_async_destroy(host->env, host->context);
    host->is_closing = true;
    if (host->runtime != NULL)
        (void)uva_runtime_join(host->runtime, 0);
    if (host->post != NULL)
        post_free(host->post);
    host_release(host);
}

static void host_start_undone(void *ctx)
{
    host_fail(ctx);
}

static struct host *host_new(napi_env env)
{
    struct host *host = calloc(1, sizeof(*host));

    if (host == NULL) {
        (void)value_ok(env, napi_generic_failure);
        return NULL;
    }
    host->env = env;
    host->users = 1;
    host->last = &host->news;
    return host;
}

/* Has the end of the environment close the runtime. Where turns are posted that
 * takes one call; Deno frees the hook of several twice. */
static bool host_add_hook(napi_env env, struct host *host)
{
    if (host->watch == NULL)
        return value_ok(
            env, napi_add_env_cleanup_hook(env, host_leave_posted, host));
    return value_ok(env, napi_add_async_cleanup_hook(env, host_leave_watched,
                                                     host, &host->hook));
}

static void host_remove_hook(napi_env env, struct host *host)
{
    if (host->watch == NULL)
        (void)napi_remove_env_cleanup_hook(env, host_leave_posted, host);
    else
        (void)napi_remove_async_cleanup_hook(host->hook);
}

/* Gives the host to the environment. */
static bool host_settle(napi_env env, struct host *host)
{
    if (!host_add_hook(env, host))
        return false;
    if (value_ok(env, napi_set_instance_data(env, host, host_finalize, NULL)))
        return true;
    host_remove_hook(env, host);
    return false;
}

napi_value host_start(napi_env env, napi_callback_info info)
{
    napi_value args[4], numbers = NULL;
    struct host *host;
    struct watch *watch;
    int64_t mode = 0;

    if (!value_args(env, info, 4, args) ||
        !value_integer(env, args[0], &mode) || host_of(env) != NULL)
        return NULL;
    host = host_new(env);
    if (host == NULL)
        return NULL;
    if (host_keep_functions(env, host, args + 1, &numbers) &&
        host_open(env, host, mode == MODE_POST ? MODE_POST : MODE_WATCH) &&
        host_settle(env, host))
        return numbers;
    watch = host->watch;
    host->watch = NULL;
    if (watch == NULL) {
        host_fail(host);
        return NULL;
    }
    watch_stop(watch);
    watch_free(watch, host_start_undone, host);
    return NULL;
}

napi_value host_keep_alive(napi_env env, napi_callback_info info)
{
    struct host *host = host_of(env);
    napi_value arg = NULL;
    bool keeps = false;

    if (host == NULL || !value_args(env, info, 1, &arg) ||
        !value_boolean(env, arg, &keeps))
        return NULL;
    if (host->watch != NULL)
        watch_keep_alive(host->watch, keeps);
    else if (host->post != NULL)
        post_keep_alive(env, host->post, keeps);
    return value_truth(env, keeps);
}
