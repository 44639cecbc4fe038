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
     * move it. `out` must fit the schema: only a checker looks at that. Returns
     * 0 and gives `out`; or an errno, and the stream ends FAILED. Called where
     * extraction happens: on a worker, or where a foreign consumer extracts;
     * several calls at once unless there is one worker, and in any order.
     * Mandatory. */
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

/** A batch that was begun by a function of struct uva_async_map, and the place
 * for its result. */
typedef struct uva_reply uva_reply;

/** A function with a result that comes later: from a network, a timer, another
 * stream. */
struct uva_async_map {
    /* begins with a batch, on the loop thread; must not block. Returns 0: the
     * result is given by uva_reply_give(), once, here or later; or an errno: it
     * is never given, and the stream ends FAILED. What is left in in->data is
     * released after the call; to keep it, move it. Mandatory. */
    int (*begin)(void *ctx, struct uva_batch *in, uva_reply *reply);
    /* the result is not wanted any more, as the stream was cancelled, or ends:
     * it should be given soon, with whatever content, here or later. Called on
     * the loop thread, once for each reply that was not given; another thread
     * may be giving it. NULL: nothing is called. The stream does not wait in
     * either case */
    void (*cancel)(void *ctx, uva_reply *reply);
    /* gives the schema of the results; called before the first batch, on the
     * loop thread. NULL: the schema does not change. */
    int (*schema)(void *ctx, const struct ArrowSchema *in,
                  struct ArrowSchema *out, struct uva_error *error);
    void (*free_ctx)(void *ctx); /* the last call, when every result was given;
                                    any thread; NULL: none */
    void *ctx;                   /* owns, through free_ctx */
    int32_t at_once; /* begun and not given, at most; 0: 1; up to 524288 */
    bool unordered;  /* pass results on as they come, not in order of arrival */
    struct uva_window window; /* limits of the batches requested and not passed
                                 on. 0 batches: 64, or twice `at_once` if that
                                 is more. Room for results is reserved at the
                                 size of the largest batch so far */
    void *reserved[4];
};

/** Begins with every batch, and passes on the results. A result has the ordinal
 * and the metadata of its batch. Copies `options`, takes its ctx. Extraction
 * that may be expensive runs on workers, as by uva_stream_parallel(). A stream
 * that was cancelled, or has failed, ends without waiting for results; until
 * they are given, its runtime is not quiet: uva_runtime_on_quiet(). Returns the
 * first error so far, or 0; EINVAL for an invalid member of `options`.
 * Thread: builder.
 * Clauses: AP-14, AP-29. */
UVA_API int uva_stream_map_async(struct uva_stream *stream,
                                 const struct uva_async_map *options);

/** Gives a result, and ends `reply`, which must not be used afterwards. Takes
 * `out` in any case; NULL: there is no batch in place of this one. With `error`
 * (copied) the stream ends FAILED, behind the results of the batches before
 * this one, or, if unordered, behind those that have come; nothing more is
 * begun. A batch that does not fit the schema, or is released, fails with
 * EPROTO. When the stream has ended, what is given is released; also after its
 * runtime has closed.
 * Thread: any.
 * Clauses: ER-09. */
UVA_API void uva_reply_give(uva_reply *reply, struct ArrowDeviceArray *out,
                            const struct uva_error *error);

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
 * anew. Rows that wait to be joined are released if the stream fails. Copies
 * `options`. Returns the first error so far, or 0; EINVAL for a negative limit,
 * or none. Thread: builder. Clauses: DA-23, LC-10. */
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

/** What a branch does while its consumer does not keep up. */
enum uva_slow {
    UVA_SLOW_WAIT = 0, /* hold up the other branches */
    UVA_SLOW_DROP_NEW, /* lose the batches that do not fit */
    UVA_SLOW_DROP_OLD, /* lose the batches that have waited longest */
    UVA_SLOW_FAIL      /* end this branch FAILED with EOVERFLOW, behind the
                          batches that wait for it */
};

/** How to branch. */
struct uva_tee {
    enum uva_slow slow;       /* of the new branch */
    struct uva_window window; /* of the new branch, and of `stream` unless it
                                 is a branch already: limits of the batches that
                                 wait for it. With 1 batch nothing is requested
                                 ahead */
    void *reserved[4];
};

/** Gives a second stream with the same batches. Their data is shared and not
 * copied, so no branch may write to it. `stream` goes on as the first branch,
 * which always waits; stages added to one branch do not affect the other.
 * Extraction that may be expensive runs on workers, as by
 * uva_stream_parallel(). Batches are requested for the branch that wants most,
 * as far as there is room in every branch that waits. A branch that is not
 * started counts as slow, also if it was cancelled; released unstarted it
 * leaves. The new branch has no name, and its own priority; the source has that
 * of the branch that starts first. Ending one branch in any way ends that one
 * alone, and the source is cancelled when every branch has ended. An error of
 * the source ends each of them. Batches that are dropped leave gaps in the
 * ordinals. A tee of a tee is one tee of three branches. `options` may be NULL.
 * Returns the new branch, never NULL, with one reference for the caller. If it
 * cannot be made, it has failed, with the first error of `stream` so far; EBUSY
 * if that was started; EINVAL for an invalid member of `options`; EAGAIN if no
 * thread can be started; ENOMEM.
 * Thread: builder.
 * Clauses: AP-14, AP-29, LC-10. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_tee(struct uva_stream *stream, const struct uva_tee *options);

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

/* ---- on time ------------------------------------------------------------ */

/** Limits in milliseconds; 0: none. The first three count only while the stream
 * waits for what is above: time in which no batch is requested, or in which the
 * consumer is busy, never counts. */
struct uva_timeout {
    int64_t open_ms;    /* from the start to the schema */
    int64_t first_ms;   /* from the first request to the first batch; 0:
                           between_ms counts for that one too */
    int64_t between_ms; /* from a request, or from the batch before if more are
                           requested, to the next batch */
    int64_t total_ms;   /* from the start to the end, whatever is slow */
    void *reserved[4];
};

/** Ends the stream FAILED with ETIMEDOUT when a limit passes. The text names
 * the limit, the stage that waits, and what that waits for: its source, its
 * consumer, a worker thread, a device, memory of the runtime's budget. The
 * source is interrupted as by a cancel; batches that stages below hold are
 * delivered before the error. A second call at the same place can only shorten
 * limits. Copies `options`. Returns the first error so far, or 0; EINVAL
 * without options, and for a negative limit; ENOMEM. Thread: builder. Clauses:
 * AP-14. */
UVA_API int uva_stream_timeout(struct uva_stream *stream,
                               const struct uva_timeout *options);

/** A rate. 0: no limit, but not both. */
struct uva_throttle {
    int64_t batches_per_s; /* of any size */
    int64_t bytes_per_s;   /* measured by uva_array_size() */
    void *reserved[4];
};

/** Passes on no more than so much a second, in bursts of at most a tenth of a
 * second's worth; a batch that is larger than that passes alone. Requests no
 * more than one burst ahead, of what is requested below. Copies `options`.
 * Returns the first error so far, or 0; EINVAL for a negative rate, or none;
 * EAGAIN if no thread can be started; ENOMEM. Thread: builder.
 * Clauses: AP-14. */
UVA_API int uva_stream_throttle(struct uva_stream *stream,
                                const struct uva_throttle *options);

/** How a stream that has failed is opened again. */
struct uva_retry {
    /* gives a stream to go on with (gives the reference), or NULL to give up:
     * then `failed` is the end. `passed` batches with `rows` rows have been
     * passed on so far; `attempt` counts from 1. `failed` has no stream. Called
     * on the loop thread. Mandatory. */
    struct uva_stream *(*again)(void *ctx, const struct uva_outcome *failed,
                                int32_t attempt, int64_t passed, int64_t rows);
    void (*free_ctx)(void *ctx); /* the last call; any thread; NULL: none */
    void *ctx;                   /* owns, through free_ctx */
    int32_t times;               /* most calls of `again`; 0: 3; -1: no limit */
    int64_t delay_ms;     /* before the first of them, doubled each time; 0: 100
                           */
    int64_t delay_max_ms; /* 0: 10 s */
    bool resume; /* the streams of `again` go on behind what was passed on, so
                    failures behind the first batch are tried again, too */
    void *reserved[4];
};

/** Opens the stream again when it has FAILED: behind the batches before the
 * failure and a delay, `again` gives another stream, and its batches follow;
 * ordinals count on. Without `resume` only failures before the first batch are
 * tried again. A stream of `again` that could not be built, fails or is
 * cancelled counts as failed. The stream ends FAILED with the last failure if
 * none is left to try; with EBUSY if `again` gives a stream that was started;
 * with EINVAL if that is of another runtime, has another schema (as for
 * uva_stream_merge()) or device type, or no ready stage where the first one has
 * one. A cancel ends a delay at once; a drain does so with the failure before
 * it, and has nothing tried again, nor has a close. Copies `options`, takes its
 * ctx. Returns the first error so far, or 0; EINVAL for a negative member other
 * than -1 for `times`, and for a delay_ms larger than delay_max_ms; EAGAIN if
 * no thread can be started; ENOMEM. Thread: builder. Clauses: AP-14, AH-04. */
UVA_API int uva_stream_retry(struct uva_stream *stream,
                             const struct uva_retry *options);

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
    void *device_stream; /* for UVA_WAIT_STREAM: a cudaStream_t, hipStream_t,
                            cl_command_queue or sycl::queue * of the batches'
                            device; NULL: the legacy default stream of CUDA and
                            HIP; borrows, until the stream is done */
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

/** Where a function queues its work. */
struct uva_device_queue {
    ArrowDeviceType device_type; /* of the batch */
    int64_t device_id;           /* of the batch */
    void *device_stream;         /* borrows: that of struct uva_device_map */
    int64_t reserved[4];         /* 0 */
};

/** A function that queues work on a device: a kernel. */
struct uva_device_map {
    /* queues work on queue->device_stream that makes `out` of `in`, and returns
     * without waiting for it: nothing else is to be queued between. That stream
     * already waits for the event of `in`, and its context or device is
     * current. Rules for `in` and `out` are those of struct uva_map, but:
     * what is left in in->data is released when the work is complete, and so
     * is `out`, at the earliest; both on a thread of the library. The library
     * sets the sync_event of `out`, and its device unless device_type is set.
     * Returns 0 and gives `out`; or an errno, and the stream ends FAILED: what
     * was queued before still reads `in`, and `out` is not given. For a batch
     * of the CPU, `queue` is NULL, and this is a plain map. Called on a compute
     * worker; in order, one call at a time. Mandatory. */
    int (*batch)(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                 const struct uva_device_queue *queue, struct uva_error *error);
    /* gives the schema of the results; called before the first batch, on the
     * loop thread. NULL: the schema does not change. */
    int (*schema)(void *ctx, const struct ArrowSchema *in,
                  struct ArrowSchema *out, struct uva_error *error);
    void (*free_ctx)(void *ctx); /* the last call; any thread; NULL: none */
    void *ctx;                   /* owns, through free_ctx */
    void *device_stream; /* a cudaStream_t, hipStream_t, cl_command_queue or
                            sycl::queue * of the batches' device; NULL: the
                            legacy default stream of CUDA and HIP; borrows,
                            until free_ctx */
    struct uva_window window; /* limits of the batches requested and not passed
                                 on; work that has yet to run does not count */
    void *reserved[4];
};

/** Has a function queue work on a device for every batch, behind the event of
 * the batch, and passes on the result at once, with an event behind the work.
 * What the work uses is kept until that event is complete, whatever happens to
 * the stream. No ready stage is needed before it, and no thread waits for the
 * device. A failed event of a batch ends the stream with EIO and the vendor's
 * code, and the function is not called; if the event fails after that, the
 * vendor decides what becomes of the work. Device types for which events cannot
 * be recorded end it with ENOTSUP. Copies `options`, takes its ctx. Adds a
 * parallel stage with one worker. Returns the first error so far, or 0; EINVAL
 * for an invalid member of `options`; ENOTSUP for a default stream of a context
 * other than the primary one; EAGAIN if no thread can be started; ENOMEM.
 * Thread: builder.
 * Clauses: AT-10, EV-01, EV-17. */
UVA_API int uva_stream_map_device(struct uva_stream *stream,
                                  const struct uva_device_map *options);
struct uva_device_allocator; /* in device.h */

/** The target of a copy. */
struct uva_transfer {
    ArrowDeviceType device_type; /* of the target; 0: CPU. CUDA_HOST and
                                    ROCM_HOST are pinned host memory */
    int64_t device_id;           /* of the target; ignored for CPU */
    struct uva_window window;    /* limits of the copies in flight */
    const struct uva_device_allocator *allocator; /* of memory on the device;
                                    borrowed for the call. NULL: the driver's */
    void *device_stream; /* to queue the copies on: a cudaStream_t, hipStream_t
                            or cl_command_queue of the device that is copied
                            to or from; borrows, until the stream is done, and
                            `allocator` has all its memory back. NULL: streams
                            of the library; the legacy default stream is 1 */
    void *reserved[2];
};

/** Copies each batch to another device, or to the host (`options` NULL). The
 * copy is queued on the device behind the event of the batch, so it needs no
 * ready stage before it. A copy to the host is passed on, without an event,
 * when it is complete. A copy to a device is passed on at once with an event of
 * its own, which may fail; its original is released when the copy is complete.
 * Batches already on the target are passed on unchanged. Between devices of
 * CUDA or of HIP there is a way, too; `device_stream` is then one of the
 * target's. If there is no way to copy, the stream ends with ENOTSUP, and so it
 * does if the device type has no way to copy on a `device_stream`. Copies
 * `options` and the allocator, takes its ctx. Returns 0; EINVAL for a negative
 * member, a reserved one that is not NULL (then nothing is taken), or an
 * allocator that lacks a function or goes with a target on the host; ENOTSUP
 * for a default stream that cannot be used, as for uva_stream_ready(); EAGAIN
 * if no thread can be started; ENOMEM. Thread: builder. Clauses: DA-11, EV-02.
 */
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
    enum uva_event_kind kind; /* what passes */
    int code; /* of END: 0 for a complete stream, or why it ended; ECANCELED
                 after a cancel. Of CANCEL: ECANCELED. Otherwise 0 */
    int64_t count;   /* of REQUEST: the batches, INT64_MAX for no limit;
                        otherwise 1 */
    int64_t time_ns; /* uv_hrtime() */
    struct uva_stream *stream; /* the one that the inspector was added to;
                                  borrowed for the call. NULL if it has a tee */
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
