/* SPDX-License-Identifier: Apache-2.0 */
/* One row of parameters of a query, from values of JavaScript: null, booleans,
 * numbers, bigints, texts, and bytes, each with a name or without. */
#include <math.h>
#include <stdlib.h>

#include "addon.h"

/* Integers up to it are exact as numbers: Number.MAX_SAFE_INTEGER. */
#define SAFE_MAX 9007199254740991.0

static void param_free(struct uva_value *value)
{
    free((void *)value->name);
    if (value->type == UVA_VALUE_TEXT)
        free((void *)value->data);
}

void params_free(struct uva_value *values)
{
    if (values == NULL)
        return;
    for (struct uva_value *v = values; v->type != UVA_VALUE_END; v++)
        param_free(v);
    free(values);
}

static bool param_number(napi_env env, napi_value value, struct uva_value *out)
{
    if (!value_ok(env, napi_get_value_double(env, value, &out->number)))
        return false;
    out->type = UVA_VALUE_DOUBLE;
    if (floor(out->number) == out->number && fabs(out->number) <= SAFE_MAX) {
        out->type = UVA_VALUE_INT;
        out->integer = (int64_t)out->number;
    }
    return true;
}

static bool param_bigint(napi_env env, napi_value value, struct uva_value *out)
{
    bool is_exact = false;

    if (!value_ok(env, napi_get_value_bigint_int64(env, value, &out->integer,
                                                   &is_exact)))
        return false;
    out->type = UVA_VALUE_INT;
    if (is_exact)
        return true;
    (void)value_fail(env, EOVERFLOW, "a bigint has more than 64 bits", NULL);
    return false;
}

static bool param_boolean(napi_env env, napi_value value, struct uva_value *out)
{
    bool truth = false;

    out->type = UVA_VALUE_BOOL;
    if (!value_boolean(env, value, &truth))
        return false;
    out->integer = truth;
    return true;
}

static bool param_text(napi_env env, napi_value value, struct uva_value *out)
{
    if (!value_text(env, value, (char **)&out->data))
        return false;
    out->type = UVA_VALUE_TEXT;
    return true;
}

static bool param_bytes(napi_env env, napi_value value, struct uva_value *out)
{
    void *data = NULL;

    out->type = UVA_VALUE_BYTES;
    if (!value_ok(env, napi_get_typedarray_info(env, value, NULL, &out->size,
                                                &data, NULL, NULL)))
        return false;
    out->data = data;
    return true;
}

static bool param_read(napi_env env, napi_value value, struct uva_value *out)
{
    napi_valuetype type = napi_undefined;

    if (!value_ok(env, napi_typeof(env, value, &type)))
        return false;
    switch (type) {
    case napi_boolean:
        return param_boolean(env, value, out);
    case napi_number:
        return param_number(env, value, out);
    case napi_bigint:
        return param_bigint(env, value, out);
    case napi_string:
        return param_text(env, value, out);
    case napi_object:
        return param_bytes(env, value, out);
    default:
        out->type = UVA_VALUE_NULL;
        return true;
    }
}

static bool param_read_at(napi_env env, napi_value list, uint32_t at,
                          struct uva_value *out)
{
    napi_value name = NULL, value = NULL;

    return value_ok(env, napi_get_element(env, list, at, &name)) &&
           value_ok(env, napi_get_element(env, list, at + 1, &value)) &&
           param_read(env, value, out) &&
           value_text(env, name, (char **)&out->name);
}

/* [name or null, value, name or null, value...] or null */
bool params_read(napi_env env, napi_value list, struct uva_value **out)
{
    bool is_list = false;
    uint32_t count = 0;

    *out = NULL;
    if (!value_ok(env, napi_is_array(env, list, &is_list)))
        return false;
    if (!is_list)
        return true;
    if (!value_ok(env, napi_get_array_length(env, list, &count)))
        return false;
    *out = calloc(count / 2 + 1, sizeof(**out));
    if (*out == NULL) {
        (void)value_no_memory(env);
        return false;
    }
    for (uint32_t i = 0; i + 1 < count; i += 2)
        if (!param_read_at(env, list, i, *out + i / 2)) {
            param_free(*out + i / 2);
            (*out)[i / 2] = (struct uva_value){0};
            params_free(*out);
            *out = NULL;
            return false;
        }
    return true;
}
