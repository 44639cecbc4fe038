/* SPDX-License-Identifier: Apache-2.0 */
/* Two sources of different types, int64 and int32, put together: with the types
 * of the first one, and with those that the program wants. A value that the
 * wanted type cannot hold ends the stream, and is named.
 *
 *     $ ./10_cast_merge
 *     merged: 2000 rows of l
 *     one after the other: 2000 rows of i
 *     large: column n, row 0: 5000000000 is no int32
 */
#include <inttypes.h>
#include <stdio.h>
#include <uv.h>

#include "data.h"

static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t count,
                         const struct uva_outcome *outcome)
{
    (void)batches;
    (void)count;
    if (outcome->error.code != 0)
        printf("%s\n", outcome->error.message); /* begins with the name */
    else
        printf("%s: %" PRId64 " rows of %s\n", (const char *)ctx, outcome->rows,
               info->schema->children[0]->format);
}

static int run(struct uva_stream *s, const char *name)
{
    struct uva_error error;
    const int code =
        uva_stream_collect(s, 1 << 20, on_collected, (void *)name, &error);

    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(s);
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    return code;
}

/* A stream of one number that needs 64 bits. */
static struct uva_stream *large(struct uva_runtime *rt)
{
    struct ArrowDeviceArray batch = {0};
    struct ArrowSchema schema = {0};
    struct uva_stream *s;

    if (data_schema(8, &schema) != 0 ||
        data_make(8, 5000000000, 1, &batch) != 0)
        return NULL; /* counts as a stream that has failed */
    s = uva_stream_from_arrays(rt, &schema, &batch, 1);
    (void)uva_stream_set_name(s, "large");
    return s;
}

int main(void)
{
    struct uva_stream *s, *other;
    struct ArrowSchema target;
    struct uva_error error;
    struct uva_runtime *rt;
    int code = uva_runtime_open(uv_default_loop(), NULL, &rt, &error);

    if (code != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    s = data_stream(rt, 8, 10, 100);
    other = data_stream(rt, 4, 10, 100);
    uva_stream_merge(s, &other, 1, &(struct uva_merge){.cast = true});
    code = run(s, "merged");

    s = data_stream(rt, 8, 10, 100);
    other = data_stream(rt, 4, 10, 100);
    if (code == 0 && (code = data_schema(4, &target)) == 0)
        uva_stream_cast(s, &target); /* takes it */
    uva_stream_concat(s, &other, 1, NULL);
    code = code != 0 ? code : run(s, "one after the other");

    s = large(rt);
    if (code == 0 && (code = data_schema(4, &target)) == 0)
        uva_stream_cast(s, &target);
    code = code != 0 ? code : run(s, "large");
    (void)uva_runtime_close(rt, 0, NULL, NULL);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT) != 0 || code != 0;
}
