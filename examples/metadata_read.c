/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the schema of a file beyond the stream, which only lends it, and prints
 * its metadata. No file is trusted: a block may be malformed.
 *
 *     $ cc metadata_read.c run.c $(pkg-config --cflags --libs uvarrow-io)
 *     $ ./a.out flights.arrow
 *     47 bytes of metadata for 19 columns
 *     airports = JFK LGA EWR
 *     year = 2013
 */
#include <inttypes.h>
#include <stdio.h>

#include "run.h"
#include "uvarrow/io.h"

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    return uva_schema_copy(info->schema, ctx);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    return 0; /* none comes */
}

static void show(const struct ArrowSchema *schema)
{
    struct uva_metadata_at at = {0};
    struct uva_pair pair;
    size_t size;
    int code = uva_metadata_size(schema->metadata, &size);

    if (code == 0)
        printf("%zu bytes of metadata for %" PRId64 " columns\n", size,
               schema->n_children);
    while ((code = uva_metadata_next(schema->metadata, &at, &pair)) == 0)
        printf("%.*s = %.*s\n", (int)pair.key_size, pair.key,
               (int)pair.value_size, pair.value);
    if (code != ENOENT) /* the end */
        printf("malformed: %s\n", uva_error_name(code));
}

int main(int argc, char **argv)
{
    struct ArrowSchema schema = {0};
    struct uva_consumer to = {
        .on_schema = on_schema, .on_batch = on_batch, .ctx = &schema};
    struct uva_runtime *rt;
    struct uva_stream *s;
    int code;

    if (uva_runtime_open(NULL, NULL, &rt, NULL) != 0)
        return 1;
    s = uva_stream_from_file(rt, argc == 2 ? argv[1] : NULL, NULL);
    uva_stream_limit_rows(s, 0);
    code = run_to_end(rt, s, &to);
    if (uva_schema_is_live(&schema)) /* one has come */
        show(&schema);
    uva_schema_release(&schema);
    return code;
}
