/* SPDX-License-Identifier: Apache-2.0 */
/* A table between the addon and Node-API, in which a call can fail: the linker
 * has each call of the addon go through it (--wrap). The addon has one more
 * function: fault(at, until) has the calls number `at`, from 1, up to `until`
 * fail, and gives how many calls were made since the last fault(). Calls that
 * end something do not fail. Each thread counts by itself. */
#include <string.h>

#define NAPI_VERSION 8
#include <node_api.h>

static _Thread_local int64_t made, first_bad, last_bad;

static bool is_bad(void)
{
    made++;
    return made >= first_bad && made <= last_bad;
}

/* PASS(name, parameters, arguments) */
#define PASS(name, parameters, arguments)                                      \
    napi_status __real_##name parameters;                                      \
    napi_status __wrap_##name parameters;                                      \
    napi_status __wrap_##name parameters                                       \
    {                                                                          \
        return is_bad() ? napi_generic_failure : __real_##name arguments;      \
    }

PASS(napi_add_async_cleanup_hook,
     (napi_env env, napi_async_cleanup_hook hook, void *arg,
      napi_async_cleanup_hook_handle *out),
     (env, hook, arg, out))
PASS(napi_add_env_cleanup_hook,
     (napi_env env, void (*hook)(void *ctx), void *ctx), (env, hook, ctx))
PASS(napi_adjust_external_memory, (napi_env env, int64_t change, int64_t *out),
     (env, change, out))
PASS(napi_async_init,
     (napi_env env, napi_value resource, napi_value name,
      napi_async_context *out),
     (env, resource, name, out))
PASS(napi_call_function,
     (napi_env env, napi_value self, napi_value function, size_t argc,
      const napi_value *argv, napi_value *out),
     (env, self, function, argc, argv, out))
PASS(napi_create_array, (napi_env env, napi_value *out), (env, out))
PASS(napi_create_arraybuffer,
     (napi_env env, size_t size, void **data, napi_value *out),
     (env, size, data, out))
PASS(napi_create_buffer,
     (napi_env env, size_t size, void **data, napi_value *out),
     (env, size, data, out))
PASS(napi_create_double, (napi_env env, double number, napi_value *out),
     (env, number, out))
PASS(napi_create_external,
     (napi_env env, void *data, napi_finalize finalize, void *hint,
      napi_value *out),
     (env, data, finalize, hint, out))
PASS(napi_create_external_arraybuffer,
     (napi_env env, void *data, size_t size, napi_finalize finalize, void *hint,
      napi_value *out),
     (env, data, size, finalize, hint, out))
PASS(napi_create_external_buffer,
     (napi_env env, size_t size, void *data, napi_finalize finalize, void *hint,
      napi_value *out),
     (env, size, data, finalize, hint, out))
PASS(napi_create_function,
     (napi_env env, const char *name, size_t size, napi_callback function,
      void *data, napi_value *out),
     (env, name, size, function, data, out))
PASS(napi_create_int32, (napi_env env, int32_t number, napi_value *out),
     (env, number, out))
PASS(napi_create_object, (napi_env env, napi_value *out), (env, out))
PASS(napi_create_reference,
     (napi_env env, napi_value value, uint32_t count, napi_ref *out),
     (env, value, count, out))
PASS(napi_create_string_utf8,
     (napi_env env, const char *text, size_t size, napi_value *out),
     (env, text, size, out))
PASS(napi_create_threadsafe_function,
     (napi_env env, napi_value function, napi_value resource, napi_value name,
      size_t queue, size_t threads, void *data, napi_finalize finalize,
      void *ctx, napi_threadsafe_function_call_js call,
      napi_threadsafe_function *out),
     (env, function, resource, name, queue, threads, data, finalize, ctx, call,
      out))
PASS(napi_create_typedarray,
     (napi_env env, napi_typedarray_type type, size_t length, napi_value buffer,
      size_t at, napi_value *out),
     (env, type, length, buffer, at, out))
PASS(napi_detach_arraybuffer, (napi_env env, napi_value buffer), (env, buffer))
PASS(napi_get_and_clear_last_exception, (napi_env env, napi_value *out),
     (env, out))
PASS(napi_get_array_length, (napi_env env, napi_value array, uint32_t *out),
     (env, array, out))
PASS(napi_get_boolean, (napi_env env, bool truth, napi_value *out),
     (env, truth, out))
PASS(napi_get_cb_info,
     (napi_env env, napi_callback_info info, size_t *argc, napi_value *argv,
      napi_value *self, void **data),
     (env, info, argc, argv, self, data))
PASS(napi_get_element,
     (napi_env env, napi_value array, uint32_t at, napi_value *out),
     (env, array, at, out))
PASS(napi_get_global, (napi_env env, napi_value *out), (env, out))
PASS(napi_get_instance_data, (napi_env env, void **out), (env, out))
PASS(napi_get_named_property,
     (napi_env env, napi_value object, const char *name, napi_value *out),
     (env, object, name, out))
PASS(napi_get_null, (napi_env env, napi_value *out), (env, out))
PASS(napi_get_reference_value,
     (napi_env env, napi_ref reference, napi_value *out), (env, reference, out))
PASS(napi_get_typedarray_info,
     (napi_env env, napi_value array, napi_typedarray_type *type,
      size_t *length, void **data, napi_value *buffer, size_t *at),
     (env, array, type, length, data, buffer, at))
PASS(napi_get_uv_event_loop, (napi_env env, struct uv_loop_s **out), (env, out))
PASS(napi_get_value_bigint_int64,
     (napi_env env, napi_value value, int64_t *out, bool *is_exact),
     (env, value, out, is_exact))
PASS(napi_get_value_bigint_uint64,
     (napi_env env, napi_value value, uint64_t *out, bool *is_exact),
     (env, value, out, is_exact))
PASS(napi_get_value_bool, (napi_env env, napi_value value, bool *out),
     (env, value, out))
PASS(napi_get_value_double, (napi_env env, napi_value value, double *out),
     (env, value, out))
PASS(napi_get_value_external, (napi_env env, napi_value value, void **out),
     (env, value, out))
PASS(napi_get_value_int64, (napi_env env, napi_value value, int64_t *out),
     (env, value, out))
PASS(napi_get_value_string_utf8,
     (napi_env env, napi_value value, char *text, size_t size, size_t *out),
     (env, value, text, size, out))
PASS(napi_is_array, (napi_env env, napi_value value, bool *out),
     (env, value, out))
PASS(napi_is_exception_pending, (napi_env env, bool *out), (env, out))
PASS(napi_open_callback_scope,
     (napi_env env, napi_value resource, napi_async_context context,
      napi_callback_scope *out),
     (env, resource, context, out))
PASS(napi_open_handle_scope, (napi_env env, napi_handle_scope *out), (env, out))
PASS(napi_set_element,
     (napi_env env, napi_value array, uint32_t at, napi_value value),
     (env, array, at, value))
PASS(napi_set_instance_data,
     (napi_env env, void *data, napi_finalize finalize, void *hint),
     (env, data, finalize, hint))
PASS(napi_set_property,
     (napi_env env, napi_value object, napi_value key, napi_value value),
     (env, object, key, value))
PASS(napi_throw, (napi_env env, napi_value error), (env, error))
PASS(napi_throw_error, (napi_env env, const char *code, const char *message),
     (env, code, message))
PASS(napi_typeof, (napi_env env, napi_value value, napi_valuetype *out),
     (env, value, out))
PASS(napi_unref_threadsafe_function,
     (napi_env env, napi_threadsafe_function function), (env, function))

/* fault(at, until) */
static napi_value fault(napi_env env, napi_callback_info info)
{
    const int64_t before = made;
    napi_value args[2], out = NULL;
    size_t count = 2;

    (void)__real_napi_get_cb_info(env, info, &count, args, NULL, NULL);
    (void)__real_napi_get_value_int64(env, args[0], &first_bad);
    (void)__real_napi_get_value_int64(env, args[1], &last_bad);
    (void)__real_napi_create_double(env, (double)before, &out);
    made = 0;
    return out;
}

/* The first function of the addon is followed by fault(). */
napi_status __real_napi_set_named_property(napi_env env, napi_value object,
                                           const char *name, napi_value value);
napi_status __wrap_napi_set_named_property(napi_env env, napi_value object,
                                           const char *name, napi_value value);
napi_status __wrap_napi_set_named_property(napi_env env, napi_value object,
                                           const char *name, napi_value value)
{
    napi_value function = NULL;

    if (strcmp(name, "start") == 0) {
        (void)__real_napi_create_function(env, "fault", NAPI_AUTO_LENGTH, fault,
                                          NULL, &function);
        (void)__real_napi_set_named_property(env, object, "fault", function);
    }
    return is_bad() ? napi_generic_failure
                    : __real_napi_set_named_property(env, object, name, value);
}
