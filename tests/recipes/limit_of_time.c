/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "A limit of time that holds": no batch comes, and the clock of the
 * process goes on by itself when the loop sleeps. The query is within its
 * limit.
 *
 *     $ ./a.out "$SQLITE" 2>&1 | cut -d ';' -f 1
 *     timeout: no first batch came within 5000 ms (first_ms)
 *     0 batches, 0 rows, sum 0, code 110
 *     1
 *     1
 */
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "database.h"
#include "print.h"
#include "recipe.h"

static const char *driver;
static _Atomic int64_t skipped_ms;

static int query_print(const struct uva_adbc_query *query)
{
    struct uva_runtime *rt = recipe_open();

    return print_to_end(rt, database_query(rt, driver, ":memory:", query),
                        UVA_FORMAT_CSV);
}

#define RECIPE_END code = recipe_end(rt, s) | query_print(&query);
#include "recipe_lines.h"

/* libuv calls these two instead of those of the C library. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
    long result = syscall(SYS_clock_gettime, clock, out);

    out->tv_sec += skipped_ms / 1000;
    return (int)result;
}

int epoll_pwait(int fd, struct epoll_event *events, int count, int timeout,
                const sigset_t *signals)
{
    long result =
        syscall(SYS_epoll_pwait, fd, events, count,
                timeout > 1000 ? 0 : timeout, signals, sizeof(int64_t));

    if (result == 0 && timeout > 1000)
        skipped_ms += (timeout + 999) / 1000 * 1000;
    return (int)result;
}

int main(int argc, char **argv)
{
    struct uva_runtime *rt = recipe_open();
    struct uva_pusher *pusher;
    struct uva_stream *s = uva_stream_from_pusher(rt, NULL, &pusher);
    int code;

    driver = argc == 2 ? argv[1] : "";
    code = recipe(uv_default_loop(), rt, s);
    uva_pusher_close(pusher, NULL, NULL);
    return code;
}
