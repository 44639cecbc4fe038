/* SPDX-License-Identifier: Apache-2.0 */
/* The texts are borrowed from JSON until the row has copied them. */
#include "parameters.h"

#include <errno.h>
#include <stdlib.h>

#include "row.h"

/* Fills a value, which borrows. */
static int value_set(struct uva__parameter *value, const json_t *from)
{
    switch (json_typeof(from)) {
    case JSON_INTEGER:
        value->kind = UVA__PARAMETER_INT;
        value->integer = json_integer_value(from);
        return 0;
    case JSON_REAL:
        value->kind = UVA__PARAMETER_FLOAT;
        value->number = json_real_value(from);
        return 0;
    case JSON_TRUE:
    case JSON_FALSE:
        value->kind = UVA__PARAMETER_BOOL;
        value->boolean = json_is_true(from);
        return 0;
    case JSON_NULL:
        return 0;
    case JSON_STRING:
        value->kind = UVA__PARAMETER_TEXT;
        value->text = (char *)json_string_value(from);
        value->size = json_string_length(from);
        return 0;
    default:
        return EINVAL;
    }
}

int uva__parameters_new(const json_t *values, struct ArrowArrayStream *out,
                        struct uva_error *error)
{
    const size_t count = json_array_size(values);
    struct uva__parameter *row;
    size_t i;
    int code = 0;

    if (!json_is_array(values) || count == 0 || count > UVA__PARAMETERS_MOST)
        return uva_error_set(error, EINVAL,
                             "parameters are an array of 1 to %d values",
                             UVA__PARAMETERS_MOST);
    row = calloc(count, sizeof(*row));
    if (row == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    for (i = 0; i < count && code == 0; i++)
        code = value_set(&row[i], json_array_get(values, i));
    if (code != 0)
        (void)uva_error_set(error, code,
                            "a parameter is a number, a text, true, false or "
                            "null");
    else
        code = uva__row_new(row, count, out, error);
    free(row);
    return code;
}
