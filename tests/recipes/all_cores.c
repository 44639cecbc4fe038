/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "Work on all cores"
 *
 *     $ ./a.out
 *     10 batches, 1000 rows, sum 499500, code 0
 */
#include "recipe.h"

#define RECIPE_END code = recipe_end(rt, s);
#include "recipe_lines.h"

int main(void)
{
    struct uva_runtime *rt = recipe_open();

    return recipe(uv_default_loop(), rt, integers_stream(rt, 10, 100));
}
