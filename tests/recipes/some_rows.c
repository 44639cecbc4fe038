/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "Some rows": every third number
 *
 *     $ ./a.out
 *     10 batches, 334 rows, sum 166833, code 0
 */
#include "recipe.h"

#define RECIPE_END code = recipe_end(rt, s);
#include "recipe_lines.h"

int is_late(void *ctx, const struct uva_batch *batch, uint8_t *bits,
            struct uva_error *error)
{
    const int64_t *values = integers_of(&batch->data);

    (void)ctx, (void)error;
    for (int64_t row = 0; row < batch->data.array.length; row++)
        if (values[row] % 3 == 0)
            bits[row / 8] |= (uint8_t)(1 << row % 8);
    return 0;
}

int main(void)
{
    struct uva_runtime *rt = recipe_open();

    return recipe(uv_default_loop(), rt, integers_stream(rt, 10, 100));
}
