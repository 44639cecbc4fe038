/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "Another try, from another replica": the third one is up.
 *
 *     $ ./a.out
 *     attempt 1, after error 2
 *     attempt 2, after error 2
 *     3 batches, 30 rows, sum 435, code 0
 */
#include "database.h"
#include "recipe.h"

#define RECIPE_END code = recipe_end(rt, s);
#include "recipe_lines.h"

static struct uva_runtime *opened;

/* A query for which a worker finds no driver */
static struct uva_stream *down(void)
{
    return database_query(opened, "./none.so", "",
                          &(struct uva_adbc_query){.sql = "SELECT 1"});
}

struct uva_stream *open_replica(void *ctx, const struct uva_outcome *failed,
                                int32_t attempt, int64_t passed, int64_t rows)
{
    (void)ctx, (void)passed, (void)rows;
    printf("attempt %d, after error %d\n", (int)attempt, failed->error.code);
    return attempt == 1 ? down() : integers_stream(opened, 3, 10);
}

int main(void)
{
    opened = recipe_open();
    return recipe(uv_default_loop(), opened, down());
}
