/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "A parameter"
 *
 *     $ ./a.out "$SQLITE"
 *     ?
 *     42
 */
#include "database.h"
#include "print.h"
#include "recipe.h"

static const char *driver;

#define RECIPE_END                                                             \
    code = print_to_end(rt, database_query(rt, driver, ":memory:", &query),    \
                        UVA_FORMAT_CSV);
#include "recipe_lines.h"

int main(int argc, char **argv)
{
    driver = argc == 2 ? argv[1] : "";
    return recipe(uv_default_loop(), recipe_open(), NULL);
}
