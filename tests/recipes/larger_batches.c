/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "Fewer, larger batches"
 *
 *     $ ./a.out
 *     2 batches, 100000 rows, sum 4999950000, code 0
 */
#include "recipe.h"

#define RECIPE_END code = recipe_end(rt, s);
#include "recipe_lines.h"

int main(void)
{
    struct uva_runtime *rt = recipe_open();

    return recipe(uv_default_loop(), rt, integers_stream(rt, 100, 1000));
}
