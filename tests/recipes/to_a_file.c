/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "Rows to a file"
 *
 *     $ ./a.out "$SQLITE"
 *     7 bytes, code 0
 *     $ cat rows.csv
 *     n
 *     1
 *     22
 */
#include "database.h"
#include "recipe.h"

#define RECIPE_END uva_stream_release(s);
#include "recipe_lines.h"

void on_done(void *ctx, const struct uva_outcome *outcome, int64_t bytes)
{
    (void)ctx;
    printf("%lld bytes, code %d\n", (long long)bytes, outcome->error.code);
}

int main(int argc, char **argv)
{
    const struct uva_adbc_query numbers = {
        .sql = "SELECT 1 AS n UNION ALL SELECT 22"};
    struct uva_runtime *rt = recipe_open();

    if (argc != 2)
        return 2;
    recipe(uv_default_loop(), rt,
           database_query(rt, argv[1], ":memory:", &numbers));
    uva_runtime_close(rt, UVA_FOREVER, NULL, NULL);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
