/* SPDX-License-Identifier: Apache-2.0 */
/* JSON's scalars as values. */
#include "parameters.h"

#include <errno.h>
#include <stdlib.h>

/* Fills a value, which borrows. */
static int value_set(struct uva_value *value, const json_t *from)
{
    switch (json_typeof(from)) {
    case JSON_INTEGER:
        value->type = UVA_VALUE_INT;
        value->integer = json_integer_value(from);
        return 0;
    case JSON_REAL:
        value->type = UVA_VALUE_DOUBLE;
        value->number = json_real_value(from);
        return 0;
    case JSON_TRUE:
    case JSON_FALSE:
        value->type = UVA_VALUE_BOOL;
        value->integer = json_is_true(from);
        return 0;
    case JSON_NULL:
        value->type = UVA_VALUE_NULL;
        return 0;
    case JSON_STRING:
        value->type = UVA_VALUE_TEXT;
        value->data = json_string_value(from);
        value->size = json_string_length(from);
        return 0;
    default:
        return EINVAL;
    }
}

int uva__parameters_new(const json_t *array, struct uva_value **out,
                        struct uva_error *error)
{
    const size_t count = json_array_size(array);
    struct uva_value *values;

    if (!json_is_array(array) || count == 0 || count > UVA__PARAMETERS_MOST)
        return uva_error_set(error, EINVAL,
                             "parameters are an array of 1 to %d values",
                             UVA__PARAMETERS_MOST);
    values = calloc(count + 1, sizeof(*values));
    if (values == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        if (value_set(&values[i], json_array_get(array, i)) != 0) {
            free(values);
            return uva_error_set(error, EINVAL,
                                 "a parameter is a number, a text, true, false "
                                 "or null");
        }
    *out = values;
    return 0;
}
