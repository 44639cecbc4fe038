/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of a producer besides its results: each step of the protocol to
 * the log, to the trace and to inspectors, and how long it waited to the
 * statistics. stream/producer.c calls this only if its flags `observed` are not
 * all clear. Everything here runs on the loop thread, unless its comment states
 * otherwise. */
#ifndef UVA_OBSERVE_OBSERVE_H
#define UVA_OBSERVE_OBSERVE_H

#include "stream/producer.h"

/* One uva_stream_inspect(). */
struct uva__inspector {
    struct uva__inspector *next; /* owns: the inspector that was added after
                                    it */
    struct uva_trace trace;      /* owns its ctx */
    struct uva_stream *stream;   /* borrows; counts while `held` */
    bool held;                   /* the producer drives its handler */
    bool above_limit;            /* a limit was added after it */
    bool ended;                  /* it has reported the end */
};

/* Adds an inspector of `stream`, takes the ctx also on failure. 0 or ENOMEM.
 * Thread: builder. */
UVA_MUST_CHECK int uva__observe_add(struct uva__producer *producer,
                                    const struct uva_trace *trace,
                                    struct uva_stream *stream);

/* Notes that a limit was added. Thread: builder. */
void uva__observe_limit(struct uva__producer *producer);

/* Frees the inspectors. Thread: any. */
void uva__observe_free(struct uva__producer *producer);

/* The producer begins to drive its handler. */
void uva__observe_begin(struct uva__producer *producer);

/* Steps besides the moves of protocol/producer_state.h. */
enum { UVA__STEP_REQUEST = UVA__MOVE_RELEASE + 1, UVA__STEP_CANCEL };

/* A move other than to offer a task is about to be made (`n` is 1), or `n`
 * batches were requested inside a turn; or flags and requests of other threads,
 * `word` of stream/demand.h, are taken over. */
void uva__observe_step(struct uva__producer *producer, int step, int64_t n);
void uva__observe_demand(struct uva__producer *producer, uint64_t word);

/* A task is about to be offered; and it was. */
void uva__observe_task(struct uva__producer *producer,
                       const struct uva__task *task);
void uva__observe_offered(struct uva__producer *producer);

/* A run of the producer begins, and ends. */
void uva__observe_run_begin(struct uva__producer *producer);
void uva__observe_run_end(struct uva__producer *producer);

#endif
