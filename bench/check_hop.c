/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of the protocol checker: the same hop without it and with it. */
#include <stdio.h>
#include <stdlib.h>

#include "hop.h"
#include "suite.h"
#include "uvarrow/check.h"

static void fail_at_breach(void *ctx, const struct uva_breach *breach)
{
    (void)ctx;
    (void)fprintf(stderr, "%s: %s\n", breach->clause, breach->message);
    abort();
}

static double run_bare(const struct bench_case *self,
                       const struct bench_how *how)
{
    struct hop hop;
    double begun;

    hop_init(&hop, self->window, 1);
    begun = bench_now_ns(how);
    hop_run(&hop.handler, how->batches);
    begun = bench_now_ns(how) - begun;
    bench_check(hop.taken == how->batches, "number of batches");
    return begun;
}

/* If `more` is not 0, the arrays' children are checked too. */
static double run_checked(const struct bench_case *self,
                          const struct bench_how *how)
{
    const struct uva_check check = {.report = fail_at_breach,
                                    .deep = self->more != 0};
    struct ArrowAsyncDeviceStreamHandler *checked;
    struct hop hop;
    double begun;

    hop_init(&hop, self->window, 1);
    bench_check(uva_check_handler(&hop.handler, &check, &checked, NULL) == 0,
                "check");
    begun = bench_now_ns(how);
    hop_run(checked, how->batches);
    begun = bench_now_ns(how) - begun;
    bench_check(hop.taken == how->batches, "number of batches");
    return begun;
}

static const struct bench_case cases[] = {
    {"check_hop/unchecked", 500000, run_bare, 64, 0, 0},
    {"check_hop/checked", 100000, run_checked, 64, 0, 0},
    {"check_hop/checked-children", 100000, run_checked, 64, 1, 0},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
