/* SPDX-License-Identifier: Apache-2.0 */
/* The named columns of a file, in the order of the names, as CSV: their types
 * come from the schema of the file, out of a copy of which they are moved.
 *
 *     $ cc pick_columns.c print.c tell.c \
 *          $(pkg-config --cflags --libs uvarrow-io libuv)
 *     $ ./a.out flights.arrow dest carrier >csv; head -2 csv
 *     dest,carrier
 *     IAH,UA
 */
#include <stdio.h>
#include <uv.h>

#include "print.h"
#include "tell.h"

enum { MOST = 64 };

static struct ArrowSchema picked[MOST]; /* owns, until it is part of another */
static int count;

/* Called with the schema, and with no batch. */
static void pick(void *ctx, const struct uva_stream_info *info,
                 struct ArrowDeviceArray *batches, size_t batch_count,
                 const struct uva_outcome *outcome)
{
    struct ArrowSchema all;

    (void)batches, (void)batch_count;
    if (outcome->error.code != 0)
        (void)tell(&outcome->error);
    if (info == NULL || uva_schema_copy(info->schema, &all) != 0)
        return;
    for (char **name = ctx; *name != NULL; name++)
        for (int64_t i = 0; i < all.n_children; i++)
            if (uva_schema_is_live(all.children[i]) && count < MOST &&
                strcmp(all.children[i]->name, *name) == 0)
                uva_schema_move(all.children[i], &picked[count++]);
    uva_schema_release(&all); /* with the other columns */
}

static void picked_release(struct ArrowSchema *schema)
{
    for (int i = 0; i < count; i++)
        uva_schema_release(&picked[i]);
    schema->release = NULL;
}

int main(int argc, char **argv)
{
    struct ArrowSchema *children[MOST];
    struct ArrowSchema wanted = {.format = "+s",
                                 .name = "",
                                 .children = children,
                                 .release = picked_release};
    struct uva_error error;
    struct uva_runtime *rt;
    struct uva_stream *s;

    if (argc < 3 || uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s FILE COLUMN...\n", argv[0]), 2;
    s = uva_stream_from_file(rt, argv[1], NULL);
    uva_stream_limit_rows(s, 0);
    if (uva_stream_collect(s, 0, pick, argv + 2, &error) != 0)
        return tell(&error);
    uva_stream_release(s);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    if (count != argc - 2)
        return fprintf(stderr, "the file lacks a column\n"), 1;
    for (int i = 0; i < count; i++)
        children[i] = &picked[i];
    wanted.n_children = count;
    s = uva_stream_from_file(rt, argv[1], NULL);
    uva_stream_cast(s, &wanted);
    return print_to_end(rt, s, UVA_FORMAT_CSV);
}
