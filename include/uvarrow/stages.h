/* SPDX-License-Identifier: Apache-2.0 */
/* Stages: what happens to batches between the source of a stream and its
 * consumer.
 *
 * Each call appends a stage to the stream, in place, and returns the first
 * error of the stream so far, or 0. The code may be ignored, because the start
 * returns it too. After the start a stage fails with EBUSY. A ctx is taken at
 * once and freed once, possibly after on_done, because a foreign consumer may
 * still hold tasks. `options` may be NULL if each of its members has a default.
 *
 * Demand passes upstream, towards the source, unchanged, except for a window
 * where documented; a cancel passes upstream at once; an error keeps its code,
 * text and metadata, and is delivered after the batches that preceded it.
 *
 * Clauses: G-40. */
#ifndef UVARROW_STAGES_H
#define UVARROW_STAGES_H

#include "uvarrow/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- on the data -------------------------------------------------------- */

/** A function applied to batches. */
struct uva_map {
    /* makes `out` from `in`. out->array reads as released, and is not cleared:
     * fill in all of it. The other members of `out` are 0: set those that
     * differ. The library releases what is left in in->data; to pass data on,
     * move it. Returns 0 and gives `out`; or an errno, and the stream ends
     * FAILED. Called where extraction happens: on a worker, or where a foreign
     * consumer extracts; several calls at once unless there is one worker, and
     * in any order. Mandatory. */
    int (*batch)(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                 struct uva_error *error);
    /* gives the schema of the results; called before the first batch, on the
     * loop thread. NULL: the schema does not change. */
    int (*schema)(void *ctx, const struct ArrowSchema *in,
                  struct ArrowSchema *out, struct uva_error *error);
    void (*free_ctx)(void *ctx); /* the last call; any thread; NULL: none */
    void *ctx;                   /* owns, through free_ctx */
    bool on_loop; /* takes microseconds: may run on the loop thread */
    void *reserved[4];
};

/** Applies a function to every batch. Copies `options`, takes its ctx. Adds the
 * function to the extraction and runs nothing itself, so a chain of maps runs
 * in one job on one worker. Returns the first error so far, or 0.
 * Thread: builder.
 * Clauses: AT-10. */
UVA_API int uva_stream_map(struct uva_stream *stream,
                           const struct uva_map *options);

/** Gives one more batch to what follows the stage. Always takes `out`, of which
 * only the data and the metadata (copied) are used. Valid during the call that
 * received it, on that thread. Returns 0: go on; EAGAIN: taken, and the window
 * is full: return, since one more emit of the call ends the stream with EPROTO;
 * otherwise an errno to return. What it returns ends the stream even if the
 * function returns 0. */
typedef int uva_emit_fn(void *emitter, struct uva_batch *out);

/** A function with a memory: any number of batches out for each one in, and
 * more at the end. Called in order, one call at a time. The general form of
 * filters, folds, and encoders. */
struct uva_transform {
    /* takes a batch. Returns 0: what is left in in->data is released. EAGAIN,
     * only after an emit that returned it: the function is called again, with
     * what is left in `in`, when there is room. ENOENT: enough; the stream ends
     * COMPLETE behind what was emitted, and what is above is cancelled. Any
     * other errno ends the stream FAILED, behind what was emitted. Mandatory.
     */
    int (*batch)(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                 void *emitter, struct uva_error *error);
    /* the input has ended well: the last chance to emit. Returns as `batch`.
     * NULL: nothing follows */
    int (*finish)(void *ctx, uva_emit_fn *emit, void *emitter,
                  struct uva_error *error);
    /* gives the schema of what is emitted; called before the first batch, on
     * the loop thread. NULL: the schema does not change. */
    int (*schema)(void *ctx, const struct ArrowSchema *in,
                  struct ArrowSchema *out, struct uva_error *error);
    void (*free_ctx)(void *ctx); /* the last call; any thread; NULL: none */
    void *ctx;                   /* owns, through free_ctx */
    bool on_loop; /* takes microseconds: runs on the loop thread; otherwise on a
                     compute worker */
    struct uva_window window; /* limits of the batches that were emitted and not
                                 passed on, or that wait for the function */
    void *reserved[4];
};

/** Puts every batch through a transform. Copies `options`, takes its ctx.
 * Ordinals count anew. Returns the first error so far, or 0.
 * Thread: builder.
 * Clauses: AT-10. */
UVA_API int uva_stream_transform(struct uva_stream *stream,
                                 const struct uva_transform *options);

/** A function that decides about batches. */
struct uva_filter {
    /* sets `*keep`, which is false before; `batch` is read only. Returns 0, or
     * an errno, and the stream ends FAILED. Mandatory. */
    int (*keep)(void *ctx, const struct uva_batch *batch, bool *keep,
                struct uva_error *error);
    void (*free_ctx)(void *ctx); /* the last call; any thread; NULL: none */
    void *ctx;                   /* owns, through free_ctx */
    bool on_loop; /* takes microseconds: runs on the loop thread; otherwise on a
                     compute worker */
    void *reserved[4];
};

/** Passes on the batches that a function wants, in order; one call at a time.
 * For each batch that it drops, one more is requested. Copies `options`, takes
 * its ctx. Ordinals count anew. Returns the first error so far, or 0.
 * Thread: builder.
 * Clauses: AT-10. */
UVA_API int uva_stream_filter(struct uva_stream *stream,
                              const struct uva_filter *options);

/** Sizes of batches. 0: no such limit, but not both of rows and bytes. */
struct uva_rebatch {
    int64_t rows;    /* rows in each batch but the last */
    int64_t bytes;   /* at most, by uva_array_size(); a row that is larger is
                        passed on alone */
    int64_t wait_ms; /* pass on what there is when its oldest row has waited so
                        long, and a batch is requested; 0: wait for the rest */
    void *reserved[4];
};

/** Joins small batches and splits large ones. Splitting copies nothing: it
 * gives offsets into shared data. Joining copies once, on a compute worker, and
 * only data of the CPU: for data of another device type the stream ends FAILED
 * with ENOTSUP, where batches would have to be joined. A batch is cut earlier
 * where 32-bit offsets, run ends or indices of dictionaries would overflow. A
 * joined batch has the metadata of the batch of its first row; ordinals count
 * anew. Copies `options`. Returns the first error so far, or 0; EINVAL for a
 * negative limit, or none. Thread: builder. Clauses: DA-23, LC-10. */
UVA_API int uva_stream_rebatch(struct uva_stream *stream,
                               const struct uva_rebatch *options);

/** Passes on the first `batches` batches, then ends the stream COMPLETE and
 * cancels upstream. Returns the first error so far, or 0; EINVAL if negative.
 * Thread: builder.
 * Clauses: AP-14. */
UVA_API int uva_stream_limit(struct uva_stream *stream, int64_t batches);

/** Passes on the first `rows` rows, then ends the stream COMPLETE and cancels
 * upstream. The last batch is a slice, which shares the data. Ordinals count
 * anew. Returns the first error so far, or 0; EINVAL if negative.
 * Thread: builder.
 * Clauses: AP-14. */
UVA_API int uva_stream_limit_rows(struct uva_stream *stream, int64_t rows);

/* ---- several streams ---------------------------------------------------- */

/** How to merge. */
struct uva_merge {
    bool keep_going; /* when one stream fails, finish the other streams first */
    int32_t open_at_once;     /* streams that run at one time; 0: all */
    struct uva_window window; /* of each stream: limits of the batches requested
                                 and not passed on. 0: the default, divided by
                                 the number of streams, but at least 8 batches
                                 and 1 MiB. A window of 1 batch requests nothing
                                 ahead, and at most one batch of each stream */
    void *reserved[4];
};

/** Adds the batches of other streams, as they come: streams that have batches
 * take turns. Takes the references on `others`, one for each, also on failure;
 * they must be of this runtime and not started, and from then on they can only
 * be cancelled, dropped, released, and asked for their status. The schema that
 * arrives first is passed on, with its metadata. A stream fails with EINVAL if
 * its schema differs from that one in a format, name, flag, child or
 * dictionary, and the text names the field; or if its device type differs.
 * Metadata does not count, nor does the name of the root or, where that is a
 * struct, whether it is nullable. A stream that is cancelled by itself fails
 * too. The first failure ends the result FAILED behind the batches that had
 * come, and cancels the other streams; with `keep_going` it follows their ends.
 * Extraction that may be expensive runs on workers, as by
 * uva_stream_parallel(). Ordinals count anew. `options` may be NULL. Returns
 * the first error so far, or 0; EINVAL for an invalid member of `options`, for
 * NULL or a stream of another runtime in `others`; EBUSY for a stream that was
 * started, or is part of another one; the error of a stream that could not be
 * built; EAGAIN if no thread can be started; ENOMEM.
 * Thread: builder.
 * Clauses: AP-14, AP-29. */
UVA_API int uva_stream_merge(struct uva_stream *stream,
                             struct uva_stream *const *others, size_t count,
                             const struct uva_merge *options);

/** Adds the batches of other streams behind those of this one, one stream after
 * the other. A stream is opened when the one before it has ended, or `ahead`
 * streams earlier, once the first schema is known; batches are requested of one
 * stream at a time, as many as are requested here. References, schemas and
 * failures are treated as in uva_stream_merge(), but a failure follows all
 * batches of the streams before it. Returns the first error so far, or 0;
 * EINVAL for a negative `ahead`; otherwise as uva_stream_merge().
 * Thread: builder.
 * Clauses: AP-14. */
UVA_API int uva_stream_concat(struct uva_stream *stream,
                              struct uva_stream *const *others, size_t count,
                              int32_t ahead);

/* ---- on the pace -------------------------------------------------------- */

/** Where extraction happens, and how much of it at once. */
struct uva_parallel {
    int32_t workers; /* maximum for this stream; 0: number of cores */
    bool unordered;  /* deliver in order of completion, not of arrival */
    struct uva_window window; /* limits of the batches being extracted, or
                                 extracted and not passed on */
    void *reserved[4];
};

/** Extracts on compute workers: decoding and the maps added so far run on up to
 * `workers` of them at once, and the results are passed on in order. Copies
 * `options`. Returns the first error so far, or 0.
 * Thread: builder.
 * Clauses: AT-11. */
UVA_API int uva_stream_parallel(struct uva_stream *stream,
                                const struct uva_parallel *options);

/* ---- on devices --------------------------------------------------------- */

/** Where an event is waited for. */
enum uva_wait {
    UVA_WAIT_HOST = 0, /* pass a batch on when its data is complete */
    UVA_WAIT_STREAM, /* make `device_stream` wait, pass the batch on at once */
    UVA_WAIT_NONE    /* pass the batch on with its event, without waiting */
};

/** How to wait for events. */
struct uva_ready {
    enum uva_wait wait;  /* where to wait */
    void *device_stream; /* for UVA_WAIT_STREAM: a cudaStream_t, hipStream_t or
                            cl_command_queue of the batches' device; borrows,
                            until the stream is done */
    int64_t timeout_ms;  /* for one event, then ETIMEDOUT; 0: no limit */
    struct uva_window window; /* limits of the batches waited for at once */
    void *reserved[4];
};

/** Waits for the sync_event of each batch, in order, without blocking the loop
 * or any thread. Allows device data through for_each and next. A failed event
 * ends the stream with EIO and the vendor's code. `options` may be NULL.
 * Returns 0; EINVAL for an invalid member of `options`; EAGAIN if no thread can
 * be started; ENOMEM.
 * Thread: builder.
 * Clauses: EV-01 to EV-22. */
UVA_API int uva_stream_ready(struct uva_stream *stream,
                             const struct uva_ready *options);

/** The target of a copy. */
struct uva_transfer {
    ArrowDeviceType device_type; /* of the target; 0: CPU. CUDA_HOST and
                                    ROCM_HOST are pinned host memory */
    int64_t device_id;           /* of the target; ignored for CPU */
    struct uva_window window;    /* limits of the copies in flight */
    void *reserved[4];
};

/** Copies each batch to another device, or to the host (`options` NULL). The
 * copy is queued on the device behind the event of the batch, so it needs no
 * ready stage before it. A copy to the host is passed on, without an event,
 * when it is complete. A copy to a device is passed on at once with an event of
 * its own, which may fail; its original is released when the copy is complete.
 * Batches already on the target are passed on unchanged. If there is no way to
 * copy, the stream ends with ENOTSUP. Returns 0; EINVAL for a negative member;
 * EAGAIN if no thread can be started; ENOMEM.
 * Thread: builder.
 * Clauses: DA-11, EV-02. */
UVA_API int uva_stream_transfer(struct uva_stream *stream,
                                const struct uva_transfer *options);

/* ---- looking on --------------------------------------------------------- */

/** The kind of an event that an inspector is called for. */
enum uva_event_kind {
    UVA_EVENT_SCHEMA,  /* the schema is passed on */
    UVA_EVENT_REQUEST, /* `count` batches are requested of the stage above */
    UVA_EVENT_BATCH,   /* a batch is passed on, extracted or not */
    UVA_EVENT_CANCEL,  /* the stage above is cancelled */
    UVA_EVENT_END      /* the last event: nothing passes any more */
};

/** One event at one place of a stream. */
struct uva_event {
    enum uva_event_kind kind;
    int code; /* of END: 0 for a complete stream, or why it ended; ECANCELED
                 after a cancel. Of CANCEL: ECANCELED. Otherwise 0 */
    int64_t count;   /* of REQUEST: the batches, INT64_MAX for no limit;
                        otherwise 1 */
    int64_t time_ns; /* uv_hrtime() */
    struct uva_stream *stream; /* the one that the inspector was added to;
                                  borrowed for the call */
    int64_t reserved[4];       /* 0 */
};

/** A function that looks on. */
struct uva_inspect {
    /* called for each event, in order, on the loop thread, never inside a call
     * into this library. Mandatory. */
    void (*event)(void *ctx, const struct uva_event *event);
    void (*free_ctx)(void *ctx); /* the last call; any thread. NULL: none */
    void *ctx;                   /* owns, through free_ctx */
    void *reserved[4];
};

/** Calls a function for everything that passes this place of the stream:
 * requests and a cancel upstream, the schema, batches and the end downstream.
 * It changes nothing, and extracts nothing. END is the last
 * event of each stream that was started, and comes once, unless the runtime
 * closes before the stage above has ended. The stream lives until then, also if
 * it is done before. Copies `options`, takes its ctx. Returns 0; EINVAL without
 * `event` or with a reserved member that is not NULL; ENOMEM.
 * Thread: builder.
 * Clauses: AP-02, AP-25. */
UVA_API int uva_stream_inspect(struct uva_stream *stream,
                               const struct uva_inspect *options);

#ifdef __cplusplus
}
#endif

#endif
