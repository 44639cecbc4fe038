/* SPDX-License-Identifier: Apache-2.0 */
/* An addon without anything, which Node.js unloads when the worker that has
 * loaded it ends. */
#define NAPI_VERSION 8
#include <node_api.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int32_t node_api_module_get_api_version_v1(void);
EXPORTED napi_value napi_register_module_v1(napi_env env, napi_value exports);

int32_t node_api_module_get_api_version_v1(void)
{
    return NAPI_VERSION;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
    (void)env;
    return exports;
}
