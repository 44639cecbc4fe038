/* SPDX-License-Identifier: Apache-2.0 */
/* Values of JavaScript as values of C, and back; errors. JavaScript has checked
 * the types of its users' arguments before it calls the addon. */
#include <stdlib.h>
#include <string.h>

#include "addon.h"

bool value_ok(napi_env env, napi_status status)
{
    bool is_pending = false;

    if (status == napi_ok)
        return true;
    if (napi_is_exception_pending(env, &is_pending) == napi_ok && !is_pending)
        (void)napi_throw_error(env, "EIO",
                               "uvarrow: a call of Node-API has failed");
    return false;
}

bool value_args(napi_env env, napi_callback_info info, size_t count,
                napi_value *out)
{
    return value_ok(env, napi_get_cb_info(env, info, &count, out, NULL, NULL));
}

bool value_object(napi_env env, napi_value value, void *out)
{
    return value_ok(env, napi_get_value_external(env, value, out));
}

bool value_integer(napi_env env, napi_value value, int64_t *out)
{
    return value_ok(env, napi_get_value_int64(env, value, out));
}

bool value_boolean(napi_env env, napi_value value, bool *out)
{
    return value_ok(env, napi_get_value_bool(env, value, out));
}

static bool value_is_absent(napi_env env, napi_value value, bool *out)
{
    napi_valuetype type = napi_undefined;

    if (!value_ok(env, napi_typeof(env, value, &type)))
        return false;
    *out = type == napi_undefined || type == napi_null;
    return true;
}

bool value_text(napi_env env, napi_value value, char **out)
{
    bool is_absent = false;
    size_t size = 0;

    *out = NULL;
    if (!value_is_absent(env, value, &is_absent))
        return false;
    if (is_absent)
        return true;
    if (!value_ok(env, napi_get_value_string_utf8(env, value, NULL, 0, &size)))
        return false;
    *out = malloc(size + 1);
    if (*out == NULL) {
        (void)value_no_memory(env);
        return false;
    }
    if (value_ok(env,
                 napi_get_value_string_utf8(env, value, *out, size + 1, &size)))
        return true;
    free(*out);
    *out = NULL;
    return false;
}

/* ---- pairs --------------------------------------------------------------- */

void value_pairs_free(struct uva_pair *pairs)
{
    if (pairs == NULL)
        return;
    for (struct uva_pair *p = pairs; p->key != NULL; p++) {
        free((void *)p->key);
        free((void *)p->value);
    }
    free(pairs);
}

static bool pair_read(napi_env env, napi_value array, uint32_t at,
                      struct uva_pair *out)
{
    napi_value key = NULL, value = NULL;

    return value_ok(env, napi_get_element(env, array, at, &key)) &&
           value_ok(env, napi_get_element(env, array, at + 1, &value)) &&
           value_text(env, key, (char **)&out->key) &&
           value_text(env, value, (char **)&out->value);
}

bool value_pairs(napi_env env, napi_value value, struct uva_pair **out)
{
    bool is_absent = false;
    uint32_t count = 0;

    *out = NULL;
    if (!value_is_absent(env, value, &is_absent))
        return false;
    if (is_absent)
        return true;
    if (!value_ok(env, napi_get_array_length(env, value, &count)))
        return false;
    *out = calloc(count / 2 + 1, sizeof(**out));
    if (*out == NULL) {
        (void)value_no_memory(env);
        return false;
    }
    for (uint32_t i = 0; i + 1 < count; i += 2)
        if (!pair_read(env, value, i, *out + i / 2)) {
            value_pairs_free(*out);
            *out = NULL;
            return false;
        }
    return true;
}

static bool pair_set(napi_env env, napi_value object,
                     const struct uva_pair *pair)
{
    napi_value key = NULL, value = NULL;

    return value_ok(env, napi_create_string_utf8(env, pair->key, pair->key_size,
                                                 &key)) &&
           value_ok(env, napi_create_string_utf8(env, pair->value,
                                                 pair->value_size, &value)) &&
           value_ok(env, napi_set_property(env, object, key, value));
}

napi_value value_metadata(napi_env env, const char *block)
{
    struct uva_metadata_at at = {0};
    struct uva_pair pair;
    napi_value out = NULL;

    if (!value_ok(env, napi_create_object(env, &out)))
        return NULL;
    while (uva_metadata_next(block, &at, &pair) == 0)
        if (!pair_set(env, out, &pair))
            return NULL;
    return out;
}

/* ---- making values ------------------------------------------------------- */

napi_value value_null(napi_env env)
{
    napi_value out = NULL;

    return value_ok(env, napi_get_null(env, &out)) ? out : NULL;
}

napi_value value_number(napi_env env, double number)
{
    napi_value out = NULL;

    return value_ok(env, napi_create_double(env, number, &out)) ? out : NULL;
}

napi_value value_truth(napi_env env, bool truth)
{
    napi_value out = NULL;

    return value_ok(env, napi_get_boolean(env, truth, &out)) ? out : NULL;
}

napi_value value_external(napi_env env, void *object, napi_finalize finalize)
{
    napi_value out = NULL;

    if (value_ok(env, napi_create_external(env, object, finalize, NULL, &out)))
        return out;
    finalize(env, object, NULL);
    return NULL;
}

/* ---- errors -------------------------------------------------------------- */

/* makeError(name of the code, number, text, metadata) */
static bool error_args(napi_env env, int code, const char *text,
                       const char *metadata, napi_value *out)
{
    if (!value_ok(env, napi_create_string_utf8(env, uva_error_name(code),
                                               NAPI_AUTO_LENGTH, out)) ||
        !value_ok(env, napi_create_int32(env, -code, out + 1)) ||
        !value_ok(
            env, napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, out + 2)))
        return false;
    out[3] = value_metadata(env, metadata);
    return out[3] != NULL;
}

napi_value value_error(napi_env env, int code, const char *text,
                       const char *metadata)
{
    struct host *host = host_of(env);
    napi_value function = NULL, global = NULL, out = NULL, args[4] = {0};

    if (host == NULL || !error_args(env, code, text, metadata, args) ||
        !value_ok(env,
                  napi_get_reference_value(env, host->make_error, &function)) ||
        !value_ok(env, napi_get_global(env, &global)) ||
        !value_ok(env,
                  napi_call_function(env, global, function, 4, args, &out)))
        return NULL;
    return out;
}

napi_value value_fail(napi_env env, int code, const char *text,
                      const char *metadata)
{
    napi_value error = value_error(env, code, text, metadata);

    if (error != NULL)
        (void)value_ok(env, napi_throw(env, error));
    return NULL;
}

napi_value value_no_memory(napi_env env)
{
    return value_fail(env, ENOMEM, "out of memory", NULL);
}
