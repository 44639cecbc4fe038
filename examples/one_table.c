/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the batches of a file into one, and writes it as a file: for readers
 * that want a table in one piece.
 *
 *     $ cc one_table.c $(pkg-config --cflags --libs uvarrow-io libuv)
 *     $ ./a.out flights.arrow > table.arrow
 *     7 batches became one of 336776 rows
 */
#include <inttypes.h>
#include <stdio.h>
#include <uv.h>

#include "uvarrow/io.h"
#include "uvarrow/uvarrow.h"

/* Writes the bytes of `table`, which it takes if it returns 0. */
static int write_table(const struct ArrowSchema *schema,
                       struct ArrowDeviceArray *table, struct uva_error *error)
{
    struct uva_encode format = {.format = UVA_FORMAT_ARROW_FILE};
    struct uva_part part;
    int code = uva_array_encode(schema, table, 1, &format, &part, error);

    for (size_t i = 0; code == 0 && i < part.count; i++) {
        const uv_buf_t *buffer = &part.buffers[i];

        if (fwrite(buffer->base, 1, buffer->len, stdout) != buffer->len)
            code = uva_error_set(error, EIO, "cannot write");
    }
    uva_part_release(&part);
    return code;
}

/* Called once, with all batches, or with the reason why there are none. */
static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t count,
                         const struct uva_outcome *outcome)
{
    struct uva_error error = outcome->error;
    struct ArrowDeviceArray table = {0};
    int code = error.code;

    if (code == 0)
        code =
            uva_array_concat(info->schema, batches, count, 0, &table, &error);
    if (code == 0)
        code = write_table(info->schema, &table, &error);
    uva_array_release(&table); /* no effect on a written one */
    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    else
        fprintf(stderr, "%zu batches became one of %" PRId64 " rows\n", count,
                outcome->rows);
    *(int *)ctx = code;
}

int main(int argc, char **argv)
{
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;
    int code = 0;

    if (argc != 2 || uva_runtime_open(NULL, NULL, &rt, NULL) != 0)
        return 2;
    s = uva_stream_from_file(rt, argv[1], NULL);
    if (uva_stream_collect(s, INT64_C(1) << 30, on_collected, &code, &error) !=
        0) {
        fprintf(stderr, "%s\n", error.message);
        code = 1;
    }
    uva_stream_release(s);
    uva_runtime_join(rt, UVA_FOREVER);
    return code != 0;
}
