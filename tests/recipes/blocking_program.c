/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "A stream for an old program that blocks": another thread reads
 * while the loop runs.
 *
 *     $ ./a.out
 *     1000 rows
 */
#include "recipe.h"

static void read_all(void *given)
{
    struct ArrowArrayStream *out = given;
    struct ArrowArray batch;
    int64_t rows = 0;

    while (out->get_next(out, &batch) == 0 && batch.release != NULL) {
        rows += batch.length;
        batch.release(&batch);
    }
    out->release(out);
    printf("%lld rows\n", (long long)rows);
}

static int run(struct uva_runtime *rt, struct uva_stream *s,
               struct ArrowArrayStream *out)
{
    uv_thread_t reader;

    uva_stream_release(s);
    if (uv_thread_create(&reader, read_all, out) != 0)
        return 2;
    uva_runtime_close(rt, UVA_FOREVER, NULL, NULL);
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    return uv_thread_join(&reader);
}

#define RECIPE_END code = code != 0 ? code : run(rt, s, &out);
#include "recipe_lines.h"

int main(void)
{
    struct uva_runtime *rt = recipe_open();

    return recipe(uv_default_loop(), rt, integers_stream(rt, 10, 100));
}
