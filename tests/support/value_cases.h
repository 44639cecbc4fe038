/* SPDX-License-Identifier: Apache-2.0 */
/* A value of each type, and conditions of several databases that hold for it
 * alone: a query has one row if its driver has bound the value as it is. */
#ifndef UVA_SUPPORT_VALUE_CASES_H
#define UVA_SUPPORT_VALUE_CASES_H

#include "uvarrow/adbc.h"

enum { VALUE_CASES = 15 };

struct value_case {
    struct uva_value values[2]; /* one value, and the end */
    const char *sqlite, *duckdb, *postgresql;
};

extern const struct value_case value_cases[VALUE_CASES];

#endif
