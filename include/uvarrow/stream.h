/* SPDX-License-Identifier: Apache-2.0 */
/* A stream: make one from a source, start it on a consumer, control it while
 * it runs. Stages in between are in operators.h; blocking streams and data
 * pushed by other threads are in adapters.h.
 *
 *     struct uva_stream *s = uva_stream_from_...(runtime, ...);
 *     uva_stream_map(s, ...);                        changes s in place
 *     code = uva_stream_for_each(s, &consumer, &error);       starts it
 *     uva_stream_release(s);                         it runs on without us
 *
 * Errors while building are remembered: a source never returns NULL, a stage
 * may be called on a stream that has failed and does nothing, and the call
 * that starts the stream returns the first error. So one check is enough; the
 * codes that stages return are there for who wants them earlier. A NULL
 * stream counts as failed with EINVAL.
 *
 * Whatever is put into a stream (Arrow structs, a ctx with its free_ctx, other
 * streams) is the stream's from that call on, also when the call fails: it
 * is released or freed exactly once, and the caller has nothing to undo.
 *
 * A stream ends once, as one of enum uva_end, whatever happens. Callbacks of
 * the consumer run on the loop thread, one at a time, never inside a call of
 * this library, and may call everything here that does not block. */
#ifndef UVARROW_STREAM_H
#define UVARROW_STREAM_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"
#include "uvarrow/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

struct uva_stream; /* a source, its stages and, once started, its consumer */

/** How much may wait in one place. A place takes one more batch while it holds
 * fewer than `batches` and fewer than `bytes`; one batch always fits, however
 * large. */
struct uva_window {
    int32_t batches; /* 0: 64 */
    int32_t refill;  /* ask for more when this few are left; 0: half */
    int64_t bytes;   /* 0: 32 MiB; sized by uva_array_size() */
};

/* ---- what callbacks receive --------------------------------------------- */

/** What is known of a stream before its first batch. Borrowed pointers live as
 * long as the stream does. */
struct uva_stream_info {
    struct uva_stream *stream;        /* the one this is about */
    const struct ArrowSchema *schema; /* uva_schema_copy() to own one */
    const char *metadata;             /* the producer's, or NULL (AP-19) */
    ArrowDeviceType device_type;      /* of every batch (DS-03, AT-16) */
};

/** One batch. `data` is the receiver's if it moves it out with
 * uva_array_move(); what is left in it is released after the callback. All
 * else is borrowed, for the call. */
struct uva_batch {
    struct ArrowDeviceArray data;     /* gives, if moved out */
    const struct ArrowSchema *schema; /* of every batch of the stream */
    const char *metadata;      /* that came with the batch, or NULL (AH-13) */
    int64_t ordinal;           /* 0 for the first one the source gave */
    struct uva_stream *stream; /* NULL in functions that run on workers */
};

/** How a stream ended. */
enum uva_end {
    UVA_END_COMPLETE = 0, /* every batch was delivered */
    UVA_END_FAILED,       /* the producer or a stage failed */
    UVA_END_CANCELLED,    /* somebody called uva_stream_cancel(), or the
                             consumer said ECANCELED, or the runtime closed */
    UVA_END_REJECTED      /* a callback of the consumer returned an error */
};

/** The one outcome of a stream. Borrowed, for the call. */
struct uva_outcome {
    struct uva_stream *stream; /* may be released in the callback */
    enum uva_end end;          /* how it ended */
    struct uva_error error;    /* its code is 0 exactly when end is COMPLETE */
    const char *metadata;      /* that came with the error, or says which call
                                  of a device's has failed; or NULL (ER-08) */
    int64_t batches;           /* delivered */
};

/* ---- sources ------------------------------------------------------------ */

/** Makes a stream of `count` arrays in memory. Takes `schema` and each of
 * `arrays`; the array of structs itself is borrowed for the call (DA-16).
 * Returns a stream that the caller holds (never NULL): uva_stream_release().
 * Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_arrays(struct uva_runtime *runtime, struct ArrowSchema *schema,
                       struct ArrowDeviceArray *arrays, size_t count);

/** A source in two halves: finding the next piece of work, in order, and the
 * dear part of turning it into data, anywhere. Functions return 0 or an
 * errno, and may explain it in `error`. Outputs are cleared before the call;
 * after a failure nothing in them is looked at. The first three are
 * mandatory. */
struct uva_task_source {
    /* gives the schema. Once, before next; on a blocking worker. */
    int (*schema)(void *ctx, struct ArrowSchema *out, struct uva_error *error);
    /* gives the next item, or leaves it NULL at the end, and may set
     * `metadata` to a block that stays good until the next call. One call at
     * a time, on a blocking worker: reading a file or socket is fine. */
    int (*next)(void *ctx, void **item, const char **metadata,
                struct uva_error *error);
    /* takes `item`, also when it fails; gives its data, or frees it if `out`
     * is NULL (not wanted). On a compute worker or wherever a foreign consumer
     * extracts; several at once, in any order, even after the end. */
    int (*extract)(void *ctx, void *item, struct ArrowDeviceArray *out,
                   struct uva_error *error);
    /* makes a next that waits return soon, because of a cancel; NULL: cannot.
     * On a worker, while next runs, or just before or after it; again while it
     * does not return. */
    void (*interrupt)(void *ctx);
    /* the last call; any thread. NULL: nothing to free. */
    void (*free_ctx)(void *ctx);
    void *ctx;                   /* owns, through free_ctx */
    ArrowDeviceType device_type; /* 0: CPU */
    struct uva_window window;    /* items found ahead of demand */
    void *reserved[4];
};

/** Makes a stream of tasks, for parallel decoding with order kept (see
 * uva_stream_parallel()). Copies `source`, takes its ctx. Rests on AT-09 to
 * AT-11. Returns a stream that the caller holds (never NULL). Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_tasks(struct uva_runtime *runtime,
                      const struct uva_task_source *source);

/** A foreign producer that speaks Arrow's asynchronous interface. */
struct uva_async_source {
    /* hands `handler` to the producer, once. 0: accepted. Otherwise an errno;
     * whether the producer has released the handler by then is noticed, so
     * both customs are fine (G-55). On a blocking worker; it may take as long
     * as the stream does. */
    int (*start)(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                 struct uva_error *error);
    void (*free_ctx)(void *ctx); /* the last call; any thread; NULL: none */
    void *ctx;                   /* owns, through free_ctx */
    ArrowDeviceType device_type; /* for uva_stream_to_blocking(), which has to
                                    know it early; 0: CPU. Else as it comes */
    struct uva_window window;    /* requests kept open */
    bool cheap; /* extraction only moves an array: it may run on the loop
                   thread, as with Arrow C++ */
    bool printed_layout; /* its producer object is laid out as the document
                            prints it, with a `release` slot (G-03) */
    void *reserved[4];
};

/** Makes a stream of what a foreign producer sends; tolerates the deviations
 * listed as. Copies `source`, takes its ctx. Returns a stream that
 * the caller holds (never NULL). Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_async(struct uva_runtime *runtime,
                      const struct uva_async_source *source);

/* ---- start: four ways to consume ---------------------------------------- */

/* Each stream is started once (EBUSY afterwards), from any thread. On failure
 * the call has made no callback and taken nothing; the stream is still there to
 * be released. Off the loop thread, callbacks may begin before the call has
 * returned.
 *
 * for_each and next deliver batches that the host can read now, and end the
 * stream with ENOTSUP if the data is on a device or behind an event. If
 * extraction may be dear (tasks, foreign producers, maps not marked cheap) and
 * there is no parallel stage, they add one with a single worker. */

/** Three callbacks. Only on_batch is mandatory. */
struct uva_consumer {
    /* the schema is known. 0; or an errno: the stream ends REJECTED. */
    int (*on_schema)(void *ctx, const struct uva_stream_info *info);
    /* here is a batch.
     *   0          go on;
     *   EAGAIN     not now: nothing comes until uva_stream_resume(). Then the
     *              same batch again if its data was left alone, the next one
     *              if it was moved out;
     *   ECANCELED  enough: the stream ends CANCELLED;
     *   otherwise  an errno: the stream ends REJECTED with it.
     * Codes of libuv, which are negative, count as their positive twins. */
    int (*on_batch)(void *ctx, struct uva_batch *batch);
    /* the end: the last callback, exactly once, after a start that returned 0;
     * only uva_stream_drop() leaves it out. */
    void (*on_done)(void *ctx, const struct uva_outcome *outcome);
    void *ctx; /* borrows, until on_done or uva_stream_drop() */
    void *reserved[4];
};

/** Starts the stream and hands every batch to `consumer` (copied). Rests on
 * AH-05, AH-11, ER-10. Returns 0: on_done will come. Otherwise the first error
 * of building, or EBUSY, ENOMEM, ESHUTDOWN; no callback. Thread: builder. */
UVA_API UVA_MUST_CHECK int
uva_stream_for_each(struct uva_stream *stream,
                    const struct uva_consumer *consumer,
                    struct uva_error *error);

/** Called once for each uva_stream_next(): with a batch and no outcome, or at
 * the end with no batch and the outcome. */
typedef void uva_next_fn(void *ctx, struct uva_batch *batch,
                         const struct uva_outcome *outcome);

/** Asks for one batch; the first call starts the stream. `fn` is called later,
 * on the loop thread. After the end every call brings the same outcome again
 * (ER-10). Made for bindings: one call is one awaitable. Returns 0; EBUSY while
 * an earlier call is unanswered, or if started in another way; otherwise as
 * uva_stream_for_each(). When its last holder lets go, a stream so started is
 * cancelled, and a call still unanswered is told so. Thread: builder for the
 * first call, then any that holds it. */
UVA_API UVA_MUST_CHECK int uva_stream_next(struct uva_stream *stream,
                                           uva_next_fn *fn, void *ctx,
                                           struct uva_error *error);

/** What uva_stream_drive() needs to know. */
struct uva_drive {
    /* the handler has been released; tasks may still be held; NULL: no */
    void (*on_done)(void *ctx, const struct uva_outcome *outcome);
    void *ctx;            /* borrows, until on_done */
    const char *metadata; /* copied: additional_metadata of the producer */
    bool on_worker;       /* call the handler on a blocking worker, not on the
                             loop thread: for handlers that may wait */
    void *reserved[4];
};

/** Starts the stream as the producer for somebody else's handler. Requests,
 * cancel and extraction are then the handler's; events are passed on. Data is
 * extracted where the handler does so: if that may be inside on_next_task and
 * is dear, put uva_stream_parallel() before this. `how` may be NULL. Returns 0:
 * accepted, its release will be called exactly once. Otherwise untouched:
 * EINVAL for an empty slot (AH-02), EBUSY for a handler in use (AH-29), or as
 * uva_stream_for_each() (G-55). Thread: builder. */
UVA_API UVA_MUST_CHECK int
uva_stream_drive(struct uva_stream *stream,
                 struct ArrowAsyncDeviceStreamHandler *handler,
                 const struct uva_drive *how, struct uva_error *error);

/* The fourth, uva_stream_to_blocking(), is in adapters.h. */

/* ---- control ------------------------------------------------------------ */

/** Counts one more holder, so that another thread or object can keep `stream`
 * for itself. Returns it. Thread: any that holds it. */
UVA_API struct uva_stream *uva_stream_acquire(struct uva_stream *stream);

/** Gives up one hold. A stream not started is then freed with all it was
 * given; a started one runs on to its end without you. Never blocks: sources
 * are released by a worker. NULL is allowed. Thread: any. */
UVA_API void uva_stream_release(struct uva_stream *stream);

/** Stops the stream: no more batches, then the outcome CANCELLED with `code`
 * (0: ECANCELED) and `reason` (copied; may be NULL). Only marks, and returns at
 * once; a source that waits is interrupted if it can be, and left behind on
 * its worker if not. The handler of a driven stream is told as an error. The
 * first call counts; later ones, and those after the end, do nothing. Before
 * the start, it makes the start fail. on_done still comes, so the consumer's
 * ctx must last: see uva_stream_drop(). Rests on AP-11 to AP-16, G-24.
 * Thread: any that holds it. */
UVA_API void uva_stream_cancel(struct uva_stream *stream, int code,
                               const char *reason);

/** Cancels, makes no further callback to the consumer, not even on_done, and
 * gives up the caller's hold: for when the ctx of the callbacks is about to
 * go. Also frees what a foreign handler took and never extracted (G-16): it may
 * still extract that, and is told ECANCELED, until the runtime is closed. Safe
 * inside any callback, of this stream too. On another thread it can promise no
 * silence, and is uva_stream_cancel() and uva_stream_release() in one. NULL is
 * allowed. Thread: loop. */
UVA_API void uva_stream_drop(struct uva_stream *stream);

/** Takes back the EAGAIN of an on_batch: demand goes on (AP-25). Called while
 * that on_batch is still running, by whatever thread, it counts too, so no
 * wake-up is lost. No effect on a stream that was not stopped. Thread: any that
 * holds it. */
UVA_API void uva_stream_resume(struct uva_stream *stream);

/** Returns the first error so far, of building or of the run (ER-10); 0 while
 * all is well, with `error` (may be NULL) untouched. EINVAL for NULL. Thread:
 * builder; after the start: any that holds it. */
UVA_API int uva_stream_status(const struct uva_stream *stream,
                              struct uva_error *error);

/** Returns what is known of the stream, borrowed as long as that lives; NULL
 * before its schema is known. Thread: loop. */
UVA_API const struct uva_stream_info *
uva_stream_get_info(const struct uva_stream *stream);

/** Names the stream in logs, traces and error texts. Copies at most 63 bytes.
 * Returns the first error so far, or 0. Thread: builder. */
UVA_API int uva_stream_set_name(struct uva_stream *stream, const char *name);

#ifdef __cplusplus
}
#endif

#endif
