/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking stream for one consumer, and for three by a tee: the time for a
 * batch of the source. `window` is the window of the source and of the
 * branches, `more` the number of branches. */
#include "host.h"

enum { BRANCHES_MAX = 3 };

static double run_branches(const struct bench_case *self,
                           const struct bench_how *how)
{
    const struct uva_window window = {.batches = self->window};
    const struct uva_arrow_source source = {.window = window};
    const struct uva_tee tee = {.window = window, .first = window};
    struct tally tallies[BRANCHES_MAX] = {{0}};
    struct uva_stream *stream, *branch;
    struct host host;
    struct input input;
    double begun;

    host_open(&host, how, 0);
    input_init(&input, how->batches);
    begun = bench_now_ns(how);
    stream = uva_stream_from_device_stream(host.runtime, &input.abi, &source);
    for (int32_t i = 1; i < self->more; i++) {
        branch = uva_stream_tee(stream, &tee);
        host_for_each(&host, branch, &tallies[i]);
    }
    host_for_each(&host, stream, &tallies[0]);
    begun = host_run(&host) - begun;
    host_close(&host);
    for (int32_t i = 0; i < self->more; i++)
        tally_check(&tallies[i], how->batches);
    return begun;
}

static const struct bench_case cases[] = {
    {"branches/1/uvarrow", 500000, run_branches, 64, 1, 0},
    {"branches/2/uvarrow", 500000, run_branches, 64, 2, 0},
    {"branches/3/uvarrow", 500000, run_branches, 64, BRANCHES_MAX, 0},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
