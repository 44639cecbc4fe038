/* SPDX-License-Identifier: Apache-2.0 */
/* Many files, of which a few are open at one time: the rest wait for a permit,
 * without a thread. Each user of the program has permits within those of all,
 * so that one with many files leaves room for the others.
 *
 *     $ cc open_few.c tell.c $(pkg-config --cflags --libs uvarrow-io)
 *     $ ./a.out flights.arrow flights.arrow flights.arrow
 *     1010328 rows
 */
#include <inttypes.h>
#include <stdio.h>

#include "tell.h"
#include "uvarrow/io.h"

enum { ALL = 4, EACH = 2, WAIT_MS = 30000 };

static int on_batch(void *ctx, struct uva_batch *batch)
{
    *(int64_t *)ctx += batch->data.array.length; /* on the loop thread */
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    if (outcome->error.code != 0)
        (void)tell(&outcome->error);
}

/* Starts to count the rows of a user's files. */
static int count(struct uva_runtime *rt, struct uva_permits *own, char **paths,
                 int64_t *rows, struct uva_error *error)
{
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = rows};
    const struct uva_ipc_source limited = {.permits = own};
    int code = 0;

    for (; code == 0 && *paths != NULL; paths++) {
        struct uva_stream *s = uva_stream_from_file(rt, *paths, &limited);

        code = uva_stream_for_each(s, &consumer, error);
        uva_stream_release(s); /* it runs to its end */
    }
    return code;
}

int main(int argc, char **argv)
{
    struct uva_permits *all = NULL, *own = NULL;
    struct uva_runtime *rt;
    struct uva_error error;
    int64_t rows = 0;
    int code;

    (void)argc;
    if (uva_runtime_open(NULL, NULL, &rt, &error) != 0)
        return tell(&error);
    code = uva_permits_new(rt, ALL, WAIT_MS, &all, &error);
    uva_permits_explain(all, "too many files are open");
    if (code == 0)
        code = uva_permits_within(all, EACH, WAIT_MS, &own, &error);
    if (code == 0)
        code = count(rt, own, argv + 1, &rows, &error);
    uva_permits_resize(all, 2 * ALL); /* there turns out to be more room */
    uva_permits_release(own);         /* the sources keep theirs */
    uva_permits_release(all);
    uva_runtime_join(rt, UVA_FOREVER); /* every stream has ended */
    printf("%" PRId64 " rows\n", rows);
    return code != 0 ? tell(&error) : 0;
}
