/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "Blocking work that is no stream"
 *
 *     $ ./a.out
 *     work: another thread
 *     done: the loop thread
 */
#include "recipe.h"

static struct uva_runtime *opened;

#define RECIPE_END
#include "recipe_lines.h"

static void tell(const char *what)
{
    printf("%s: %s\n", what,
           uva_runtime_on_loop(opened) ? "the loop thread" : "another thread");
}

void work(void *ctx)
{
    (void)ctx;
    tell("work");
}

void done(void *ctx)
{
    (void)ctx;
    tell("done");
    uva_runtime_close(opened, 0, NULL, NULL);
}

int main(void)
{
    opened = recipe_open();
    return recipe(uv_default_loop(), opened, NULL) |
           uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
