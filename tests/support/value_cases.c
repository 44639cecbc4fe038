/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions have one parameter. DuckDB's and PostgreSQL's state its type
 * where the database would not know it. */
#include "support/value_cases.h"

#include <math.h>

#define IF(condition)  "SELECT 1 WHERE " condition
#define ALL(condition) IF(condition), IF(condition)

const struct value_case value_cases[VALUE_CASES] = {
    {{{.type = UVA_VALUE_NULL}}, ALL("? IS NULL"), IF("$1::bigint IS NULL")},
    {{{.type = UVA_VALUE_BOOL, .integer = 1}},
     IF("? = 1"),
     IF("? = true"),
     IF("$1 = true")},
    {{{.type = UVA_VALUE_BOOL, .integer = 0}},
     IF("? = 0"),
     IF("? = false"),
     IF("$1 = false")},
    {{{.type = UVA_VALUE_INT, .integer = 0}},
     ALL("? = 0"),
     IF("$1 = 0::bigint")},
    {{{.type = UVA_VALUE_INT, .integer = INT64_MIN}},
     ALL("CAST(? AS TEXT) = '-9223372036854775808'"),
     IF("CAST($1::bigint AS TEXT) = '-9223372036854775808'")},
    {{{.type = UVA_VALUE_INT, .integer = INT64_MAX}},
     ALL("CAST(? AS TEXT) = '9223372036854775807'"),
     IF("CAST($1::bigint AS TEXT) = '9223372036854775807'")},
    {{{.type = UVA_VALUE_DOUBLE, .number = 0.1}},
     ALL("? = 1e-1"),
     IF("$1 = 1e-1::float8")},
    {{{.type = UVA_VALUE_DOUBLE, .number = -5e-324}},
     ALL("? < 0"),
     IF("$1 < 0::float8")},
    {{{.type = UVA_VALUE_DOUBLE, .number = HUGE_VAL}},
     ALL("? > 1e308"),
     IF("$1 > 1e308::float8")},
    {{{.type = UVA_VALUE_TEXT, .data = "gr\xc3\xbcn"}},
     ALL("? = 'gr\xc3\xbcn'"),
     IF("$1 = 'gr\xc3\xbcn'::text")},
    {{{.type = UVA_VALUE_TEXT, .data = "abc", .size = 2}},
     ALL("? = 'ab'"),
     IF("$1 = 'ab'::text")},
    {{{.type = UVA_VALUE_TEXT, .data = ""}},
     ALL("? = ''"),
     IF("$1 = ''::text")},
    {{{.type = UVA_VALUE_BYTES,
       .data = "\0\xff"
               "A",
       .size = 3}},
     IF("? = X'00FF41'"),
     IF("? = '\\x00\\xFFA'::BLOB"),
     IF("$1 = '\\x00ff41'::bytea")},
    {{{.type = UVA_VALUE_BYTES, .data = "", .size = 0}},
     IF("? = X''"),
     IF("? = ''::BLOB"),
     IF("$1 = ''::bytea")},
    {{{.type = UVA_VALUE_BYTES}},
     IF("? = X''"),
     IF("? = ''::BLOB"),
     IF("$1 = ''::bytea")},
};
