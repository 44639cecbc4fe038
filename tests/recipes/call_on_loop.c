/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "A call on the loop thread, from any other": the runtime has a
 * thread of its own.
 *
 *     $ ./a.out
 *     on the loop thread: 0
 *     on the loop thread: 1
 */
#include "recipe.h"

static struct uva_runtime *opened;

#define RECIPE_END
#include "recipe_lines.h"

void on_loop(void *ctx)
{
    (void)ctx;
    printf("on the loop thread: %d\n", uva_runtime_on_loop(opened));
}

int main(void)
{
    if (uva_runtime_open(NULL, NULL, &opened, NULL) != 0)
        return 2;
    on_loop(NULL);
    setvbuf(stdout, NULL, _IONBF, 0);
    return recipe(NULL, opened, NULL) | uva_runtime_join(opened, UVA_FOREVER);
}
