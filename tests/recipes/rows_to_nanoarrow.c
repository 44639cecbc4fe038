/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "Rows to nanoarrow, or to another Arrow library": the other
 * library owns what it takes.
 *
 *     $ ./a.out
 *     took 100 rows
 *     took 100 rows
 *     code 0
 */
#include "recipe.h"
#include "recipe_lines.h"

int take_table(struct ArrowArray *array)
{
    printf("took %lld rows\n", (long long)array->length);
    array->release(array);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    printf("code %d\n", outcome->error.code);
}

int main(void)
{
    const struct uva_consumer to = {.on_batch = on_batch, .on_done = on_done};
    struct uva_runtime *rt = recipe_open();
    struct uva_stream *s = integers_stream(rt, 2, 100);

    if (uva_stream_for_each(s, &to, NULL) != 0)
        return 1;
    uva_stream_release(s);
    uva_runtime_close(rt, UVA_FOREVER, NULL, NULL);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
