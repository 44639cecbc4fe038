/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime on a libuv loop of the bench, and functions that run a stream to
 * its end. */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <uv.h>

#include "batch.h"
#include "suite.h"
#include "uvarrow/uvarrow.h"

#ifdef __cplusplus
extern "C" {
#endif

struct host {
    uv_loop_t loop;
    struct uva_workers *workers; /* owns a reference */
    struct uva_runtime *runtime; /* owns, until host_close() */
    const struct bench_how *how; /* borrows */
    int open;                    /* streams not done */
    double ended_ns;             /* when the last stream was done */
};

/* Opens a runtime, with at most `compute_threads` for extraction (0: one for
 * each core). If `how` wants threads apart, its threads run on core 1, the
 * calling one on core 0. */
void host_open(struct host *host, const struct bench_how *how,
               int compute_threads);

/* As host_open(), with memory from `allocator` (copied). */
void host_open_on(struct host *host, const struct bench_how *how,
                  int compute_threads, const struct uva_allocator *allocator);

/* As host_open(), with workers of those options, of which it sets the members
 * that place threads. */
void host_open_for(struct host *host, const struct bench_how *how,
                   const struct uva_workers_options *workers);

/* Starts `stream`, releases it, and counts its batches in `tally`. */
void host_for_each(struct host *host, struct uva_stream *stream,
                   struct tally *tally);

/* An on_done callback that records the time and decrements `open`; `ctx` is the
 * host. */
void host_on_done(void *ctx, const struct uva_outcome *outcome);

/* Runs the loop until all streams are done. Returns the time at which they
 * were. */
double host_run(struct host *host);

/* Closes everything that was opened. */
void host_close(struct host *host);

#ifdef __cplusplus
}
#endif

#endif
