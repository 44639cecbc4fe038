/* SPDX-License-Identifier: Apache-2.0 */
/* Trace events: what a runtime reports of each step of its streams, while it
 * runs, to a function of yours. Set the option `trace` of struct
 * uva_runtime_options (runtime.h). Numbers alone, without events, are the
 * statistics: uva_stream_get_stats() in stream.h. */
#ifndef UVARROW_TRACE_H
#define UVARROW_TRACE_H

#include "uvarrow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The kind of a trace event. */
enum uva_trace_kind {
    /* a call lasted from `at_ns` to `end_ns`, on the thread that reports it.
     * Spans of one thread nest */
    UVA_TRACE_SPAN,
    /* something happened at `at_ns`: a request, a resume, a cancel, a wake-up
     * of another thread, the end */
    UVA_TRACE_INSTANT,
    /* `value` batches or bytes are queued in the stage from `at_ns` on */
    UVA_TRACE_COUNTER,
    /* a job or a batch waited from `at_ns` to `end_ns`, for a worker thread or
     * a device; reported at its end, by any thread. Waits overlap */
    UVA_TRACE_WAIT,
    /* batch `ordinal`, which the stage passes on, was made from batch `value`
     * of stream `from_id`, which it took: after a stage that numbers batches
     * anew (merge, transform, rebatch) */
    UVA_TRACE_LINK
};

/** One trace event. The names of each kind:
 *   span      "open" and "get_next" (of the source), "extract" (of a batch),
 *             "on_schema", "on_batch", "on_done" (of the consumer), and for a
 *             function of a stage the name of the stage: "map", "transform"...
 *   instant   "request" (`value` batches), "resume", "cancel", "wake-up",
 *             "end" (`value`: 0, or the code of the error)
 *   counter   "batches", "bytes"
 *   wait      "worker", "device"
 *   link      "from"
 * Times are those of uv_hrtime(). */
struct uva_trace_event {
    enum uva_trace_kind kind;
    const char *name;       /* static: what it was */
    const char *stage_name; /* static: where it was, as in uva_stage_stats */
    const char *stream;     /* its name, or NULL; borrowed for the call */
    uint64_t stream_id;     /* number of the stream in its runtime, from 1 */
    int32_t stage;       /* number of the stage in its stream; 0: the source */
    int64_t ordinal;     /* of the batch, or -1; joins the spans of one batch */
    int64_t at_ns;       /* when it happened or began */
    int64_t end_ns;      /* when a span or a wait ended; otherwise `at_ns` */
    int64_t value;       /* see above; otherwise 0 */
    uint64_t from_id;    /* of a link; otherwise 0 */
    int64_t reserved[4]; /* 0 */
};

/** Receives trace events. */
struct uva_trace {
    /* called on the thread where it happened, by several threads at once, and
     * never under a lock; must return soon and must not call the library.
     * NULL: no events, unless UVA_TRACE names a file (runtime.h) */
    void (*event)(void *ctx, const struct uva_trace_event *event);
    void *ctx; /* borrows, until the runtime is quiet: see
                  uva_runtime_on_quiet() */
};

#ifdef __cplusplus
}
#endif

#endif
