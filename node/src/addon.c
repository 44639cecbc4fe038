/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the addon, as index.js calls them. */
#include "addon.h"

static const struct {
    const char *name;
    napi_callback function;
} functions[] = {
    {"start", host_start},
    {"keepAlive", host_keep_alive},
    {"take", rows_take_batch},
    {"takePart", rows_take_part},
    {"info", rows_info},
    {"cancel", rows_cancel},
    {"drop", rows_drop},
    {"changed", rows_changed},
    {"batchClose", batch_close},
    {"batchSchema", batch_schema},
    {"batchEncode", batch_encode},
    {"batchData", batch_data},
    {"batchColumns", select_columns},
    {"batchRows", select_rows},
    {"detach", data_detach},
    {"file", source_file},
    {"pointer", source_pointer},
    {"openWriter", writer_open},
    {"writerStream", writer_stream},
    {"write", writer_write},
    {"endWriter", writer_end},
    {"openPusher", pusher_open},
    {"pusherStream", pusher_stream},
    {"push", pusher_push},
    {"closePusher", pusher_close},
    {"openPool", pool_open},
    {"closePool", pool_close},
    {"session", pool_session},
    {"query", pool_query},
    {"ingest", pool_ingest},
    {"endTransaction", pool_end},
    {"objects", pool_objects},
    {"poolStats", pool_stats},
    {"limit", stage_limit},
    {"rebatch", stage_rebatch},
    {"timeout", stage_timeout},
    {"throttle", stage_throttle},
    {"parallel", stage_parallel},
    {"cast", stage_cast},
    {"setName", stage_name},
    {"merge", stage_merge},
    {"tee", stage_tee},
    {"encode", stage_encode},
    {"map", stage_map},
    {"give", map_give},
    {"retry", stage_retry},
    {"stats", stats_runtime},
    {"streamStats", stats_stream},
};

#define EXPORTED __attribute__((visibility("default")))

/* The names that each host looks for. The macro of Node-API for them declares
 * one without a prototype. */
EXPORTED int32_t node_api_module_get_api_version_v1(void);
EXPORTED napi_value napi_register_module_v1(napi_env env, napi_value exports);

int32_t node_api_module_get_api_version_v1(void)
{
    return NAPI_VERSION;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        napi_value function = NULL;

        if (!value_ok(env, napi_create_function(
                               env, functions[i].name, NAPI_AUTO_LENGTH,
                               functions[i].function, NULL, &function)) ||
            !value_ok(env, napi_set_named_property(
                               env, exports, functions[i].name, function)))
            return NULL;
    }
    return exports;
}
