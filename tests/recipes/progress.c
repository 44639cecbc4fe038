/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "Progress", before the start and at the end; arrays in memory do
 * not say how many rows will come.
 *
 *     $ ./a.out 2>&1
 *     0 of 0 rows
 *     10 batches, 1000 rows, sum 499500, code 0
 *     1000 of 0 rows
 */
#include "recipe.h"

#define RECIPE_END
#include "recipe_lines.h"

int main(void)
{
    struct uva_runtime *rt = recipe_open();
    struct uva_stream *s = integers_stream(rt, 10, 100);

    uva_stream_acquire(s);
    recipe(uv_default_loop(), rt, s);
    recipe_end(rt, s);
    recipe(uv_default_loop(), rt, s);
    uva_stream_release(s);
    return 0;
}
