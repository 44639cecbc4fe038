/* SPDX-License-Identifier: Apache-2.0 */
/* Several statements as one transaction, on one connection of a pool: all of
 * them take effect, or none does. Each runs when the one before it has ended.
 *
 *     $ cc transaction.c database.c tell.c \
 *          $(pkg-config --cflags --libs uvarrow-adbc libuv)
 *     $ ./a.out "$SQLITE" file:fruit.db "CREATE TABLE fruit (name TEXT)" \
 *          "INSERT INTO fruit VALUES ('pear')"
 *     committed
 *     $ ./a.out "$SQLITE" file:fruit.db "DELETE FROM fruit" "SELEC" 2>err || :
 *     rolled back
 */
#include <stdio.h>
#include <uv.h>

#include "database.h"
#include "tell.h"

static struct uva_runtime *rt;
static struct uva_adbc_pool *session;
static char **next; /* statement; NULL: after the last one */
static bool is_over, has_failed;

static void run_next(void);

static void on_step(void *ctx, const struct uva_stream_info *info,
                    struct ArrowDeviceArray *batches, size_t count,
                    const struct uva_outcome *outcome)
{
    (void)ctx, (void)info, (void)batches, (void)count;
    if (outcome->error.code != 0)
        has_failed = tell(&outcome->error) != 0;
    run_next();
}

static void run_next(void)
{
    struct uva_stream *s;
    struct uva_error error;

    if (is_over) {
        printf("%s\n", has_failed ? "rolled back" : "committed");
        uva_adbc_pool_release(session); /* gives the connection back */
        uva_runtime_close(rt, 0, NULL, NULL);
        return;
    }
    is_over = has_failed || *next == NULL;
    if (has_failed)
        s = uva_stream_from_rollback(session);
    else if (*next == NULL)
        s = uva_stream_from_commit(session);
    else
        s = uva_stream_from_query(session,
                                  &(struct uva_adbc_query){.sql = *next++});
    if (uva_stream_collect(s, 0, on_step, NULL, &error) != 0) {
        has_failed = is_over = tell(&error) != 0;
        run_next(); /* the release of the session rolls back */
    }
    uva_stream_release(s);
}

int main(int argc, char **argv)
{
    struct uva_adbc_pool *pool;
    struct uva_error error;

    if (argc < 4 || uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s DRIVER URI SQL...\n", argv[0]), 2;
    pool = database_open(rt, argv[1], argv[2]);
    if (pool == NULL)
        return 1;
    if (uva_adbc_pool_session(pool, NULL, &session, &error) != 0)
        return tell(&error);
    next = argv + 3;
    run_next();
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    uva_adbc_pool_release(pool);
    return has_failed;
}
