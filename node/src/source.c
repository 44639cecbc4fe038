/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: a file of Arrow IPC, and a blocking stream of another addon. */
#include <stdlib.h>

#include "addon.h"

/* ---- objects that must live as long as a source -------------------------- */

struct keeper {
    struct host *host; /* borrows: its runtime is counted */
    struct uva_runtime *runtime;
    struct news news;
};

static napi_value keeper_value(napi_env env, struct news *news)
{
    struct keeper *keeper =
        (struct keeper *)((char *)news - offsetof(struct keeper, news));

    free(keeper);
    return env == NULL ? NULL : value_null(env);
}

struct keeper *keeper_new(napi_env env, struct host *host)
{
    struct keeper *keeper = calloc(1, sizeof(*keeper));

    if (keeper == NULL) {
        (void)value_no_memory(env);
        return NULL;
    }
    keeper->host = host;
    keeper->runtime = uva_runtime_acquire(host->runtime);
    keeper->news = (struct news){
        .kind = NEWS_FREED, .id = host_new_id(host), .value = keeper_value};
    return keeper;
}

int64_t keeper_id(const struct keeper *keeper)
{
    return keeper->news.id;
}

/* The host lives while its runtime turns. */
static void keeper_note(void *ctx)
{
    struct keeper *keeper = ctx;

    host_note(keeper->host, &keeper->news);
}

void keeper_free(void *ctx)
{
    struct keeper *keeper = ctx;
    struct uva_runtime *runtime = keeper->runtime;

    if (uva_runtime_post(runtime, keeper_note, keeper) != 0)
        free(keeper); /* JavaScript keeps the object until it ends */
    uva_runtime_release(runtime);
}

/* ---- sources ------------------------------------------------------------- */

/* args: batches, bytes */
bool source_window(napi_env env, const napi_value *args, struct uva_window *out)
{
    int64_t batches = 0;

    *out = (struct uva_window){0};
    if (!value_integer(env, args[0], &batches) ||
        !value_integer(env, args[1], &out->bytes))
        return false;
    out->batches = batches > INT32_MAX ? INT32_MAX : (int32_t)batches;
    return true;
}

/* file(path, batches, bytes, mmap) */
napi_value source_file(napi_env env, napi_callback_info info)
{
    struct host *host = host_of(env);
    struct uva_ipc_source how = {0};
    napi_value args[4], out;
    struct rows *rows = NULL;
    char *path = NULL;

    if (host == NULL || !value_args(env, info, 4, args) ||
        !source_window(env, args + 1, &how.window) ||
        !value_boolean(env, args[3], &how.mmap) ||
        !value_text(env, args[0], &path))
        return NULL;
    out = rows_new(env, uva_stream_from_file(host->runtime, path, &how),
                   &how.window);
    free(path);
    if (out == NULL || !value_object(env, out, &rows))
        return NULL;
    rows->is_mapped = how.mmap;
    return out;
}

/* pointer(address, batches, bytes): takes the ArrowArrayStream. JavaScript is
 * told when the keeper in `numbers` is freed, after its release. */
napi_value source_pointer(napi_env env, napi_callback_info info)
{
    struct host *host = host_of(env);
    struct uva_arrow_source how = {.free_ctx = keeper_free};
    struct ArrowArrayStream *source;
    struct keeper *keeper;
    napi_value args[3];
    uint64_t address = 0;
    bool is_exact = false;

    if (host == NULL || !value_args(env, info, 3, args) ||
        !source_window(env, args + 1, &how.window) ||
        !value_ok(env, napi_get_value_bigint_uint64(env, args[0], &address,
                                                    &is_exact)) ||
        (keeper = keeper_new(env, host)) == NULL)
        return NULL;
    how.ctx = keeper;
    host->numbers[NUMBER_KEEPER] = (double)keeper_id(keeper);
    source = (struct ArrowArrayStream *)(uintptr_t)address;
    return rows_new(env,
                    uva_stream_from_arrow_stream(host->runtime, source, &how),
                    &how.window);
}
