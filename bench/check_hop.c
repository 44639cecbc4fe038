/* SPDX-License-Identifier: Apache-2.0 */
/* What the protocol checker costs: the same hop without it and with it. Run it
 * on one core for steady figures: taskset -c 0 bench_check_hop */
#include <stdio.h>
#include <stdlib.h>

#include "hop.h"
#include "measure.h"
#include "uvarrow/check.h"

enum { BATCHES = 200000 };

static void fail_at_breach(void *ctx, const struct uva_breach *breach)
{
    (void)ctx;
    (void)fprintf(stderr, "%s: %s\n", breach->clause, breach->message);
    abort();
}

static void run_bare(void *ctx, int64_t n)
{
    struct hop hop;

    (void)ctx;
    hop_init(&hop, 64, 1);
    hop_run(&hop.handler, n);
}

static void run_checked(void *ctx, int64_t n)
{
    struct uva_check how = {.report = fail_at_breach};
    struct ArrowAsyncDeviceStreamHandler *checked;
    struct hop hop;

    how.deep = ctx != NULL;
    hop_init(&hop, 64, 1);
    if (uva_check_handler(&hop.handler, &how, &checked, NULL) != 0)
        abort();
    hop_run(checked, n);
    if (hop.taken != n)
        abort();
}

static void print(const char *what, double ns, double bare_ns)
{
    printf("%-28s %8.1f %+10.1f %9.1f\n", what, ns, ns - bare_ns, ns / bare_ns);
}

int main(void)
{
    const double bare = measure_ns(run_bare, NULL, BATCHES);
    int deep = 1;

    printf("%-28s %8s %10s %9s\n", "one hop, one thread", "ns/batch", "more",
           "ratio");
    print("unchecked", bare, bare);
    print("checked", measure_ns(run_checked, NULL, BATCHES), bare);
    print("checked, children too", measure_ns(run_checked, &deep, BATCHES),
          bare);
    return 0;
}
