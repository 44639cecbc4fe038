/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "The first rows only"
 *
 *     $ ./a.out
 *     4 batches, 100 rows, sum 4950, code 0
 */
#include "recipe.h"

#define RECIPE_END code = recipe_end(rt, s);
#include "recipe_lines.h"

int main(void)
{
    struct uva_runtime *rt = recipe_open();

    return recipe(uv_default_loop(), rt, integers_stream(rt, 10, 30));
}
