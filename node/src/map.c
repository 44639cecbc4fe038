/* SPDX-License-Identifier: Apache-2.0 */
/* A function of JavaScript as a stage: it is called on the thread of JavaScript
 * after a turn, may be asynchronous, and as many calls as the stage allows are
 * under way at one time.
 *
 * Happy path:  begun, in a turn -> JavaScript is told of the call, with its
 *              batch -> give(call, result).
 *
 * Failures: give(call, text): the stream fails; JavaScript has the exception. A
 *           call that is collected without a result fails.
 *
 * On cancel:   the stream does not wait for results. A late one is released. */
#include <stdlib.h>

#include "addon.h"

struct map {
    struct host *host;         /* borrows: in turns */
    struct keeper *keeper;     /* owns: names the function */
    struct ArrowSchema schema; /* of the results; released: as before */
    int64_t id;
    bool is_mapped; /* see struct rows */
};

struct call {
    struct host *host;          /* counts */
    struct shape *shape;        /* counts */
    struct uva_reply *reply;    /* owns; NULL: given */
    struct ArrowDeviceArray in; /* released: JavaScript has it */
    int64_t ordinal;
    struct news news;
    struct call *next, **link; /* in host->calls, while it has a reply */
    bool is_mapped;
};

/* ---- a call -------------------------------------------------------------- */

static void call_give(struct call *call, struct ArrowDeviceArray *out,
                      const struct uva_error *error)
{
    struct uva_reply *reply = call->reply;

    if (reply == NULL)
        return;
    call->reply = NULL;
    *call->link = call->next;
    if (call->next != NULL)
        call->next->link = call->link;
    uva_reply_give(reply, out, error);
}

static void call_abandon(struct call *call)
{
    struct uva_error error;

    (void)uva_error_set(&error, ECANCELED,
                        "the function of map() has not returned");
    call_give(call, NULL, &error);
}

static void call_free(struct call *call)
{
    call_abandon(call);
    uva_array_release(&call->in);
    shape_release(call->shape);
    host_release(call->host);
    free(call);
}

static void call_finalize(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    call_free(data);
}

void map_end_all(struct host *host)
{
    while (host->calls != NULL)
        call_abandon(host->calls);
}

/* The batch, for which a row of a stream stands. */
static napi_value call_batch(napi_env env, struct call *call)
{
    struct rows rows = {
        .host = call->host, .shape = call->shape, .is_mapped = call->is_mapped};
    struct uva_batch batch = {.schema = &call->shape->schema,
                              .ordinal = call->ordinal};

    uva_array_move(&call->in, &batch.data);
    return held_new(env, &rows, &batch);
}

/* JavaScript cannot be told: that is not to be found out by a collection. */
static void call_lost(struct news *news)
{
    call_abandon((struct call *)((char *)news - offsetof(struct call, news)));
}

static napi_value call_pair(napi_env env, struct call *call,
                            napi_value external)
{
    napi_value out = NULL, batch = NULL;

    if (!value_ok(env, napi_create_array(env, &out)) ||
        !value_ok(env, napi_set_element(env, out, 0, external)) ||
        (batch = call_batch(env, call)) == NULL ||
        !value_ok(env, napi_set_element(env, out, 1, batch)))
        return NULL;
    return out;
}

/* -> [call, batch] */
static napi_value call_value(napi_env env, struct news *news)
{
    struct call *call =
        (struct call *)((char *)news - offsetof(struct call, news));
    napi_value external, out;

    if (env == NULL) {
        call_free(call);
        return NULL;
    }
    external = value_external(env, call, call_finalize);
    if (external == NULL)
        return NULL;
    out = call_pair(env, call, external);
    if (out == NULL)
        call_abandon(call);
    return out;
}

/* give(call, batch or null, text of a failure or null) */
napi_value map_give(napi_env env, napi_callback_info info)
{
    struct call *call = NULL;
    struct ArrowDeviceArray out = {0};
    napi_valuetype type = napi_undefined;
    struct uva_error error;
    struct held *held;
    napi_value args[3];
    char *text = NULL;

    if (!value_args(env, info, 3, args) || !value_object(env, args[0], &call) ||
        !value_ok(env, napi_typeof(env, args[1], &type)) ||
        !value_text(env, args[2], &text))
        return NULL;
    if (text != NULL) {
        (void)uva_error_set(&error, ECANCELED, "%s", text);
        free(text);
        call_give(call, NULL, &error);
    } else if (type == napi_external) {
        held = held_of(env, args[1]);
        if (held == NULL || !held_share(env, held, &out))
            return NULL;
        if (call->reply == NULL)
            uva_array_release(&out);
        else
            call_give(call, &out, NULL);
    } else {
        call_give(call, NULL, NULL);
    }
    return value_truth(env, true);
}

/* ---- the stage ----------------------------------------------------------- */

static int call_fill(struct call *call, struct uva_batch *in)
{
    call->shape = shape_new(in->schema);
    if (call->shape == NULL)
        return ENOMEM;
    call->ordinal = in->ordinal;
    uva_array_move(&in->data, &call->in);
    return 0;
}

/* Loop thread, in a turn. */
static int map_begin(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    struct map *map = ctx;
    struct host *host = map->host;
    struct call *call;

    if (host->is_closing)
        return ECANCELED;
    call = calloc(1, sizeof(*call));
    if (call == NULL || call_fill(call, in) != 0) {
        free(call);
        return ENOMEM;
    }
    call->host = host_acquire(host);
    call->is_mapped = map->is_mapped;
    call->reply = reply;
    call->next = host->calls;
    call->link = &host->calls;
    if (host->calls != NULL)
        host->calls->link = &call->next;
    host->calls = call;
    call->news = (struct news){.kind = NEWS_CALL,
                               .id = map->id,
                               .value = call_value,
                               .lost = call_lost};
    host_note(host, &call->news);
    return 0;
}

static int map_schema(void *ctx, const struct ArrowSchema *in,
                      struct ArrowSchema *out, struct uva_error *error)
{
    const struct map *map = ctx;
    const int code = uva_schema_copy(&map->schema, out);

    (void)in;
    return code == 0 ? 0 : uva_error_set(error, code, "the schema of map()");
}

/* Thread: any */
static void map_free(void *ctx)
{
    struct map *map = ctx;

    if (uva_schema_is_live(&map->schema))
        uva_schema_release(&map->schema);
    keeper_free(map->keeper);
    free(map);
}

static struct map *map_new(napi_env env, const struct rows *rows,
                           napi_value field)
{
    napi_valuetype type = napi_undefined;
    struct map *map;

    if (!value_ok(env, napi_typeof(env, field, &type)))
        return NULL;
    map = calloc(1, sizeof(*map));
    if (map == NULL) {
        (void)value_no_memory(env);
        return NULL;
    }
    map->host = rows->host;
    map->is_mapped = rows->is_mapped;
    if ((type != napi_object || schema_read(env, field, &map->schema)) &&
        (map->keeper = keeper_new(env, rows->host)) != NULL) {
        map->id = keeper_id(map->keeper);
        return map;
    }
    uva_schema_release(&map->schema);
    free(map);
    return NULL;
}

/* map(stream, at once, whether in any order, Field or null): the number of its
 * function */
napi_value stage_map(napi_env env, napi_callback_info info)
{
    struct uva_async_map how = {.begin = map_begin, .free_ctx = map_free};
    napi_value args[4];
    int64_t at_once = 0, id;
    struct rows *rows;
    struct map *map;
    int code;

    if (!value_args(env, info, 4, args) ||
        (rows = rows_of(env, args[0])) == NULL ||
        !value_integer(env, args[1], &at_once) ||
        !value_boolean(env, args[2], &how.unordered) ||
        (map = map_new(env, rows, args[3])) == NULL)
        return NULL;
    id = map->id;
    how.ctx = map;
    how.at_once = at_once > INT32_MAX ? INT32_MAX : (int32_t)at_once;
    how.schema = uva_schema_is_live(&map->schema) ? map_schema : NULL;
    code = uva_stream_map_async(rows->stream, &how);
    return code == 0 ? value_number(env, (double)id)
                     : rows_staged(env, rows, code);
}
