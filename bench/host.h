/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime on a libuv loop of the bench's own, and a stream run to its end on
 * it. */
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
    struct uva_workers *workers; /* owns a count */
    struct uva_runtime *runtime; /* owns, till host_close() */
    const struct bench_how *how; /* borrows */
    int open;                    /* streams not done */
    double ended_ns;             /* when the last was */
};

/* Opens a runtime, with at most `compute_threads` for extraction (0: one a
 * core). Its threads are on core 1 if `how` wants threads apart, the calling
 * one on core 0. */
void host_open(struct host *host, const struct bench_how *how,
               int compute_threads);

/* The same, with memory from `allocator` (copied). */
void host_open_on(struct host *host, const struct bench_how *how,
                  int compute_threads, const struct uva_allocator *allocator);

/* Starts `stream`, which is let go of, and counts its batches in `tally`. */
void host_for_each(struct host *host, struct uva_stream *stream,
                   struct tally *tally);

/* An on_done that notes the time; `ctx` is the host. Counts down `open`. */
void host_on_done(void *ctx, const struct uva_outcome *outcome);

/* Runs the loop until all streams are done. Returns when that was. */
double host_run(struct host *host);

/* Closes all that was opened. */
void host_close(struct host *host);

#ifdef __cplusplus
}
#endif

#endif
