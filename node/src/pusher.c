/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that JavaScript has, as a stream of them.
 *
 * Happy path:  open -> stream -> push, which gives whether there is room for
 *              more; if not, JavaScript is told when there is -> close.
 *
 * On drop of the stream: JavaScript is told, and a push gives null. */
#include <stdlib.h>

#include "addon.h"

struct pusher {
    struct host *host;          /* counts */
    struct uva_pusher *writing; /* owns; NULL: closed */
    struct uva_stream *stream;  /* counts; NULL: given */
    struct uva_window window;
    struct news news; /* room, or the end */
    bool has_schema;
    bool is_ended;
};

static void pusher_end(struct pusher *pusher, const struct uva_error *error)
{
    struct uva_pusher *writing = pusher->writing;

    pusher->writing = NULL;
    host_forget(pusher->host, &pusher->news);
    if (writing != NULL)
        uva_pusher_close(writing, error, NULL);
}

static void pusher_finalize(napi_env env, void *data, void *hint)
{
    struct pusher *pusher = data;
    struct uva_error error;

    (void)env;
    (void)hint;
    (void)uva_error_set(&error, ECONNABORTED,
                        "the source was abandoned before its end");
    pusher_end(pusher, &error);
    uva_stream_release(pusher->stream);
    host_release(pusher->host);
    free(pusher);
}

static void pusher_writable(void *ctx, struct uva_pusher *writing)
{
    struct pusher *pusher = ctx;

    (void)writing;
    host_note(pusher->host, &pusher->news);
}

static void pusher_closed(void *ctx, struct uva_pusher *writing)
{
    struct pusher *pusher = ctx;

    pusher->is_ended = true;
    pusher_writable(ctx, writing);
}

/* openPusher(batches, bytes): the external of a pusher, and its number in
 * `numbers` */
napi_value pusher_open(napi_env env, napi_callback_info info)
{
    struct host *host = host_of(env);
    struct pusher *pusher;
    napi_value args[2];
    struct uva_push_source how = {.on_writable = pusher_writable,
                                  .on_closed = pusher_closed};

    if (host == NULL || !value_args(env, info, 2, args) ||
        !source_window(env, args, &how.window))
        return NULL;
    pusher = calloc(1, sizeof(*pusher));
    if (pusher == NULL)
        return value_no_memory(env);
    how.ctx = pusher;
    pusher->host = host_acquire(host);
    pusher->window = how.window;
    pusher->news =
        (struct news){.kind = NEWS_WRITABLE, .id = host_new_id(host)};
    pusher->stream =
        uva_stream_from_pusher(host->runtime, &how, &pusher->writing);
    host->numbers[NUMBER_ID] = (double)pusher->news.id;
    return value_external(env, pusher, pusher_finalize);
}

/* pusherStream(pusher) -> stream, once */
napi_value pusher_stream(napi_env env, napi_callback_info info)
{
    struct pusher *pusher = NULL;
    struct uva_stream *stream;
    napi_value arg = NULL;

    if (!value_args(env, info, 1, &arg) || !value_object(env, arg, &pusher))
        return NULL;
    stream = pusher->stream;
    pusher->stream = NULL;
    return rows_new(env, stream, &pusher->window);
}

/* The first batch gives the schema. */
static int pusher_set_schema(struct pusher *pusher, const struct held *held)
{
    struct ArrowSchema schema;
    int code;

    if (pusher->has_schema)
        return 0;
    code = uva_schema_copy(&held->shape->schema, &schema);
    if (code == 0)
        code = uva_pusher_set_schema(pusher->writing, &schema);
    pusher->has_schema = code == 0;
    return code;
}

/* push(pusher, batch): true: there is room; false: that is told later; null:
 * the stream has ended */
napi_value pusher_push(napi_env env, napi_callback_info info)
{
    struct pusher *pusher = NULL;
    struct ArrowDeviceArray data;
    struct held *held;
    napi_value args[2];
    int code;

    if (!value_args(env, info, 2, args) ||
        !value_object(env, args[0], &pusher) ||
        (held = held_of(env, args[1])) == NULL)
        return NULL;
    if (pusher->is_ended || pusher->writing == NULL)
        return value_null(env);
    code = pusher_set_schema(pusher, held);
    if (code == 0) {
        if (!held_share(env, held, &data))
            return NULL;
        code = uva_pusher_push(pusher->writing, &data, NULL, 0);
    }
    if (code == EPIPE)
        return value_null(env);
    if (code == 0 || code == EAGAIN)
        return value_truth(env, code == 0);
    return value_fail(env, code,
                      code == EINVAL ? "a batch differs from the first one"
                                     : "a batch cannot be passed on",
                      NULL);
}

/* closePusher(pusher, text of a failure or null) */
napi_value pusher_close(napi_env env, napi_callback_info info)
{
    struct pusher *pusher = NULL;
    napi_value args[2];
    struct uva_error error;
    char *text = NULL;

    if (!value_args(env, info, 2, args) ||
        !value_object(env, args[0], &pusher) ||
        !value_text(env, args[1], &text))
        return NULL;
    if (text != NULL)
        (void)uva_error_set(&error, ECANCELED, "%s", text);
    pusher_end(pusher, text == NULL ? NULL : &error);
    free(text);
    return value_truth(env, true);
}
