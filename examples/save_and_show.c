/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a query in two places: all of them in an Arrow file, and the
 * first five on standard output. Neither branch gets ahead of the other by more
 * than its window, and a failure of one ends both, as Ctrl-C does.
 *
 *     $ cc save_and_show.c database.c \
 *          $(pkg-config --cflags --libs uvarrow-adbc uvarrow-io libuv)
 *     $ ./a.out "$SQLITE" :memory: "SELECT 'apple' AS name, 2 AS price" a.arrow
 *     {"name":"apple","price":2}
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <uv.h>

#include "database.h"
#include "uvarrow/io.h"

static struct uva_runtime *rt;
static struct uva_group *group; /* of both branches */
static uv_signal_t ctrl_c;
static int result;

static void on_done(void *ctx, const struct uva_outcome *outcome, int64_t bytes)
{
    (void)ctx, (void)bytes;
    if (outcome->error.code != 0 && result == 0)
        fprintf(stderr, "%s\n", outcome->error.message);
    result = result != 0 ? result : outcome->error.code;
}

static void on_ctrl_c(uv_signal_t *signal, int number)
{
    (void)signal, (void)number;
    uva_group_cancel(group, ECANCELED, "interrupted");
}

static void on_all_done(void *ctx)
{
    (void)ctx;
    uv_close((uv_handle_t *)&ctrl_c, NULL);
    uva_runtime_close(rt, UVA_FOREVER, NULL, NULL); /* after the last write */
}

static void save(struct uva_stream *s, int fd, enum uva_format format)
{
    const struct uva_write to = {.encode.format = format, .on_done = on_done};
    struct uva_outcome failed = {.end = UVA_END_FAILED};

    if (uva_group_add(group, s) != 0 ||
        uva_stream_write_file(s, fd, &to, &failed.error) != 0) {
        uva_group_cancel(group, 0, NULL);
        on_done(NULL, &failed, 0);
    }
    uva_stream_release(s); /* it runs to its end */
}

int main(int argc, char **argv)
{
    const int fd =
        argc == 5 ? open(argv[4], O_CREAT | O_TRUNC | O_WRONLY, 0644) : -1;
    struct uva_stream *s, *first;

    if (fd < 0 || uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0 ||
        uva_group_new(rt, true, &group, NULL) != 0)
        return fprintf(stderr, "usage: %s DRIVER URI SQL FILE\n", argv[0]), 2;
    uv_signal_init(uv_default_loop(), &ctrl_c);
    uv_signal_start(&ctrl_c, on_ctrl_c, SIGINT);
    s = database_query(rt, argv[1], argv[2],
                       &(struct uva_adbc_query){.sql = argv[3]});
    first = uva_stream_tee(s, NULL);
    uva_stream_limit_rows(first, 5);
    save(first, 1, UVA_FORMAT_JSON);
    save(s, fd, UVA_FORMAT_ARROW_FILE);
    if (uva_group_on_done(group, on_all_done, NULL) != 0)
        return 1;
    uv_run(uv_default_loop(), UV_RUN_DEFAULT); /* until all is closed */
    uva_group_release(group);
    return result != 0;
}
