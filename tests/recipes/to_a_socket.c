/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "Rows to a socket, as fast as its reader", which is another thread
 *
 *     $ ./a.out "$SQLITE"
 *     {"n":0}
 *     {"n":1}
 *     {"n":2}
 *     24 bytes, code 0
 */
#include <sys/socket.h>
#include <unistd.h>

#include "database.h"
#include "recipe.h"

static int ends[2];
static uv_thread_t reader;
static struct uva_runtime *opened;

#define RECIPE_END uva_stream_release(s);
#include "recipe_lines.h"

static void read_all(void *ctx)
{
    char bytes[16];
    ssize_t size;

    (void)ctx;
    while ((size = read(ends[1], bytes, sizeof(bytes))) > 0)
        (void)fwrite(bytes, 1, (size_t)size, stdout);
}

void on_done(void *ctx, const struct uva_outcome *outcome, int64_t bytes)
{
    (void)ctx;
    uv_close((uv_handle_t *)&client, NULL);
    uva_runtime_close(opened, UVA_FOREVER, NULL, NULL);
    shutdown(ends[0], SHUT_WR);
    (void)uv_thread_join(&reader);
    printf("%lld bytes, code %d\n", (long long)bytes, outcome->error.code);
}

int main(int argc, char **argv)
{
    const struct uva_adbc_query numbers = {
        .sql = "SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2"};

    opened = recipe_open();
    if (argc != 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 ||
        uv_tcp_init(uv_default_loop(), &client) != 0 ||
        uv_tcp_open(&client, ends[0]) != 0 ||
        uv_thread_create(&reader, read_all, NULL) != 0)
        return 2;
    recipe(uv_default_loop(), opened,
           database_query(opened, argv[1], ":memory:", &numbers));
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
