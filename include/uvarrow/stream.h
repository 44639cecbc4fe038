/* SPDX-License-Identifier: Apache-2.0 */
/* A stream: create it from a source, start it with a consumer, and control it
 * while it runs. Stages are declared in stages.h; blocking streams and data
 * pushed by other threads in adapters.h.
 *
 *     struct uva_stream *s = uva_stream_from_...(runtime, ...);
 *     uva_stream_map(s, ...);                        changes s in place
 *     code = uva_stream_for_each(s, &consumer, &error);       starts it
 *     uva_stream_release(s);                         it runs to its end
 *
 * A stream under construction remembers its first error: a source never returns
 * NULL, a stage called on a failed stream does nothing, and the call that
 * starts the stream returns that error. So one check is enough; stages also
 * return the error, for callers that want it early. A NULL stream counts as
 * failed with EINVAL.
 *
 * Everything passed to a stream (Arrow structs, a ctx with its free_ctx, other
 * streams) is taken by the call that passes it, even if that call fails. The
 * library releases or frees it exactly once, and the caller has nothing to
 * undo.
 *
 * A stream ends exactly once, with one of enum uva_end. Callbacks of the
 * consumer run on the loop thread, one at a time, never inside a call into this
 * library. They may call every function of this library that does not block. */
#ifndef UVARROW_STREAM_H
#define UVARROW_STREAM_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"
#include "uvarrow/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

struct uva_stream; /* a source, its stages and, once started, its consumer */

/** Limits of a queue inside a stream. A queue accepts another batch while it
 * holds fewer than `batches` batches and fewer than `bytes` bytes. One batch
 * always fits, however large it is. The error is EINVAL for a negative
 * member, for more than 1048576 batches, and for a reserved member that is not
 * NULL. */
struct uva_window {
    int32_t batches; /* 0: 64 */
    int32_t refill;  /* request more when this few are left; 0: half */
    int64_t bytes;   /* 0: 32 MiB; measured by uva_array_size() */
    void *reserved[2];
};

/* ---- what callbacks receive --------------------------------------------- */

/** What is known about a stream before its first batch. Borrowed pointers stay
 * valid as long as the stream.
 * Clauses: AP-19, AT-16, DS-03. */
struct uva_stream_info {
    struct uva_stream *stream;        /* the stream described */
    const struct ArrowSchema *schema; /* borrowed: see uva_schema_copy() */
    const char *metadata;             /* of the producer, or NULL */
    ArrowDeviceType device_type;      /* device type of every batch */
    int64_t reserved[4];              /* 0 */
};

/** One batch. The callee may take `data` by moving it out with
 * uva_array_move(); otherwise the library releases it after the callback.
 * Everything else is borrowed for the call.
 * Clauses: AH-13. */
struct uva_batch {
    struct ArrowDeviceArray data;     /* gives, if moved out */
    const struct ArrowSchema *schema; /* schema of every batch of the stream */
    const char *metadata;      /* metadata sent with the batch, or NULL */
    int64_t ordinal;           /* number in the order of the source, from 0 */
    struct uva_stream *stream; /* NULL in the functions of stages */
    int64_t reserved[4];       /* 0 */
};

/** How a stream ended. */
enum uva_end {
    UVA_END_COMPLETE = 0, /* every batch was delivered */
    UVA_END_FAILED,       /* the producer or a stage failed */
    UVA_END_CANCELLED, /* uva_stream_cancel() was called, the consumer returned
                          ECANCELED, or the runtime was closed */
    UVA_END_REJECTED   /* a callback of the consumer returned an error */
};

/** The outcome of a stream. Borrowed for the call.
 * Clauses: ER-08. */
struct uva_outcome {
    struct uva_stream *stream; /* may be released in the callback */
    enum uva_end end;          /* how it ended */
    struct uva_error error; /* its code is 0 if and only if end is COMPLETE */
    const char *metadata;   /* metadata sent with the error, or the name of the
                               device call that failed; or NULL */
    int64_t batches;        /* number of batches delivered */
    int64_t reserved[4];    /* 0 */
};

/* ---- sources ------------------------------------------------------------ */

/** Creates a stream of `count` arrays in memory. Takes `schema` and each of
 * `arrays`; borrows the C array of structs for the call. Returns the stream,
 * never NULL, with one reference for the caller: uva_stream_release().
 * Thread: any.
 * Clauses: DA-16. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_arrays(struct uva_runtime *runtime, struct ArrowSchema *schema,
                       struct ArrowDeviceArray *arrays, size_t count);

/** A source in two halves: `next` finds the next piece of work, in order, and
 * `extract`, the expensive half, turns it into data on any thread. Functions
 * return 0 or an errno, and may describe the error in `error`. The library
 * clears the output arguments before each call, and ignores them after a
 * failure. The first three functions are mandatory. */
struct uva_task_source {
    /* gives the schema. Called once, before next, on a blocking worker. */
    int (*schema)(void *ctx, struct ArrowSchema *out, struct uva_error *error);
    /* gives the next item, or leaves it NULL at the end. May set `metadata` to
     * a block that stays valid until the following call. Called on a blocking
     * worker, one call at a time, so it may read from a file or socket. */
    int (*next)(void *ctx, void **item, const char **metadata,
                struct uva_error *error);
    /* takes `item`, even if it fails. Gives its data, or only frees the item if
     * `out` is NULL (the data is not wanted). Called on a compute worker, or
     * where a foreign consumer extracts; several calls at once, in any order,
     * even after the end. */
    int (*extract)(void *ctx, void *item, struct ArrowDeviceArray *out,
                   struct uva_error *error);
    /* makes a blocked call of next return soon, because the stream was
     * cancelled. NULL: not possible. Called on a worker while next runs, or
     * just before or after it, and again until next returns. */
    void (*interrupt)(void *ctx);
    /* the last call, on any thread. NULL: nothing to free. */
    void (*free_ctx)(void *ctx);
    void *ctx;                   /* owns, through free_ctx */
    ArrowDeviceType device_type; /* of the data; 0: CPU */
    struct uva_window window;    /* items found ahead of demand */
    /* returns how many bytes `item` holds until it is extracted, which windows
     * count. NULL: that is not known, and only its batches limit a window.
     * Called on the same worker as next, which it follows. */
    int64_t (*size)(void *ctx, const void *item);
    void *reserved[3];
};

/** Creates a stream of tasks, for parallel decoding in order (see
 * uva_stream_parallel()). Copies `source`, takes its ctx. Returns the stream,
 * never NULL, with one reference for the caller.
 * Thread: any.
 * Clauses: AT-09, AT-10, AT-11. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_tasks(struct uva_runtime *runtime,
                      const struct uva_task_source *source);

/** A foreign producer that implements Arrow's asynchronous interface.
 * Clauses: G-03, G-55, Q-17. */
struct uva_async_source {
    /* passes `handler` to the producer; called once. 0: the producer has
     * accepted it. Otherwise an errno; the library detects whether the producer
     * has released the handler by then, so both conventions work. Called on a
     * blocking worker; it may take as long as the stream runs. */
    int (*start)(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                 struct uva_error *error);
    void (*free_ctx)(void *ctx); /* the last call; any thread; NULL: none */
    void *ctx;                   /* owns, through free_ctx */
    ArrowDeviceType device_type; /* for uva_stream_to_blocking(), which must
                                    know it early; 0: CPU */
    struct uva_window window;    /* limits of the batches requested */
    bool on_loop; /* extraction only moves an array, as in Arrow C++: may run on
                     the loop thread. Otherwise the tasks of a producer that
                     releases on a loop thread are extracted after that */
    bool printed_layout; /* the producer object has the layout printed in the
                            document, with a `release` function. Set by itself
                            where struct ArrowAsyncProducer has it, because the
                            header that defines it so was included first */
    /* makes a blocked start, or a blocked request of the producer, return soon,
     * because no more batches are wanted: the cancel function of a driver. A
     * start that lasts as long as the stream counts as blocked. NULL: the call
     * returns when it is ready, on its thread. Called on another thread while
     * that call runs, or just before or after it, and again until that call
     * returns, so data that both use needs synchronisation. The producer's
     * cancel may run beside it; free_ctx is not called before all of them have
     * returned. */
    void (*interrupt)(void *ctx);
    void *reserved[3];
};

/** Creates a stream of the batches that a foreign producer sends, and tolerates
 * the deviations listed in the clauses below. Copies `source`, takes its ctx.
 * Callbacks that come after the producer's release have no effect, are reported
 * as a breach, and counted in `late_calls`; not so once the runtime is closed,
 * as the handler is freed then. Returns the stream, never NULL, with one
 * reference for the caller.
 * Thread: any.
 * Clauses: AH-22, Q-01 to Q-24. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_async(struct uva_runtime *runtime,
                      const struct uva_async_source *source);

#ifdef UVA_ABI_IS_PRINTED
/** As uva_stream_from_async(), which calls this behind another header that
 * defines ArrowAsyncProducer: sets printed_layout if that is the printed one.
 * Takes the ctx of `source`, and returns a stream, as that function does.
 * Thread: any.
 * Clauses: G-03. */
UVA_MUST_CHECK static inline struct uva_stream *
uva_stream_from_async_adopted(struct uva_runtime *runtime,
                              const struct uva_async_source *source)
{
    struct uva_async_source printed;

    if (source == NULL || !UVA_ABI_IS_PRINTED)
        return uva_stream_from_async(runtime, source);
    printed = *source;
    printed.printed_layout = true;
    return uva_stream_from_async(runtime, &printed);
}
#define uva_stream_from_async(...) uva_stream_from_async_adopted(__VA_ARGS__)
#endif

/** Creates a stream that has failed with `error`, as a source does that cannot
 * be made: for libraries with sources of their own. Returns the stream, never
 * NULL, with one reference for the caller.
 * Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_error(struct uva_runtime *runtime,
                      const struct uva_error *error);

/* ---- start --------------------------------------------------------------- */

/* There are four ways to consume a stream: for_each, next and drive below, and
 * uva_stream_to_blocking() in adapters.h.
 *
 * Each stream is started once (EBUSY afterwards), from any thread. A failed
 * start has made no callback and taken nothing; the caller still has to release
 * the stream. If the start is called off the loop thread, callbacks may begin
 * before it has returned.
 *
 * for_each and next deliver batches that the host can read at once, and end the
 * stream with ENOTSUP if the data is on a device or has a pending event. If
 * extraction may be expensive (tasks, foreign producers, maps not marked
 * `on_loop`) and there is no parallel stage, they add one with a single
 * worker. */

/** Three callbacks. Only on_batch is mandatory. */
struct uva_consumer {
    /* receives the schema. Returns 0, or an errno that ends the stream
     * REJECTED. */
    int (*on_schema)(void *ctx, const struct uva_stream_info *info);
    /* receives a batch. Returns
     *   0          to continue;
     *   EAGAIN     to pause until uva_stream_resume(). That delivers the same
     *              batch again, or the next if the data was moved out;
     *   ECANCELED  to stop: the stream ends CANCELLED;
     *   otherwise  an errno, with which the stream ends REJECTED.
     * Negative codes of libuv count as the positive codes with that name. */
    int (*on_batch)(void *ctx, struct uva_batch *batch);
    /* reports the end: the last callback, exactly once after a start that
     * returned 0. Only uva_stream_drop() omits it. */
    void (*on_done)(void *ctx, const struct uva_outcome *outcome);
    void *ctx; /* borrows, until on_done or uva_stream_drop(); with free_ctx:
                  until that */
    /* the last call after a start that returned 0, on the loop thread, once:
     * behind on_done, and also after uva_stream_drop(). For libraries that wrap
     * a consumer. NULL: none */
    void (*free_ctx)(void *ctx);
    void *reserved[3];
};

/** Starts the stream and delivers every batch to `consumer` (copied). Returns
 * 0, and on_done will be called; otherwise the first error of construction, or
 * EBUSY, ENOMEM, ESHUTDOWN, and no callback is made.
 * Thread: builder.
 * Clauses: AH-05, AH-11, ER-10. */
UVA_API UVA_MUST_CHECK int
uva_stream_for_each(struct uva_stream *stream,
                    const struct uva_consumer *consumer,
                    struct uva_error *error);

/** Called once for each uva_stream_next(): with a batch and no outcome, or, at
 * the end, with the outcome and no batch. */
typedef void uva_next_fn(void *ctx, struct uva_batch *batch,
                         const struct uva_outcome *outcome);

/** Requests one batch; the first call starts the stream. `fn` is called later,
 * on the loop thread. After the end, every call reports that outcome again.
 * Designed for bindings: one call is one awaitable. Returns 0; EBUSY while an
 * earlier call is pending, or if the stream was started in another way;
 * otherwise as uva_stream_for_each(). Releasing the last reference cancels a
 * stream started in this way, and a pending call completes with that outcome.
 * Thread: builder for the first call, then any that holds a reference.
 * Clauses: ER-10. */
UVA_API UVA_MUST_CHECK int uva_stream_next(struct uva_stream *stream,
                                           uva_next_fn *fn, void *ctx,
                                           struct uva_error *error);

/** Called on the loop thread, never inside a call of the user's: once after
 * each EAGAIN of uva_stream_take(), when the schema is known, a batch waits, or
 * the stream has ended. Batches that come together are announced together, or
 * once half a window of them waits. May take, cancel, and release the stream.
 */
typedef void uva_ready_fn(void *ctx);

/** Starts the stream for uva_stream_take(). Up to `window` (copied; NULL: the
 * default) is requested ahead and waits there. Batches come as for
 * uva_stream_for_each(): extracted on a worker where that is expensive, and
 * readable by the host. Releasing the last reference cancels a stream started
 * in this way. `ctx` is borrowed until that release, or uva_stream_drop(): no
 * call of `fn` begins afterwards. One may be under way if the release is made
 * on another thread than the loop's. Returns 0; EINVAL without `fn` or for an
 * impossible window; otherwise as uva_stream_for_each().
 * Thread: builder.
 * Clauses: AP-29, ER-10. */
UVA_API UVA_MUST_CHECK int
uva_stream_start_take(struct uva_stream *stream,
                      const struct uva_window *window, uva_ready_fn *fn,
                      void *ctx, struct uva_error *error);

/** Takes the next batch, if one waits. Calls no function of the user's. Its
 * only system call is a wake-up when the window is refilled: of the loop, or of
 * the worker that reads the source. What such a worker has read may come
 * without a turn if the host makes the turns (uva_runtime_turn()), but no more
 * of it than in a turn. With `batch` NULL nothing is taken: 0 once the schema
 * is known (uva_stream_get_info()). Returns 0 and gives batch->data, which the
 * caller releases; its other members are borrowed until the next call. EAGAIN:
 * there is none now, and the ready function will be called. ENOENT: the stream
 * has ended, however it did; `outcome` (may be NULL) is borrowed as long as the
 * stream. EINVAL if it was not started so; EPERM on another thread. Thread:
 * loop. Clauses: ER-08, ER-10. */
UVA_API UVA_MUST_CHECK int uva_stream_take(struct uva_stream *stream,
                                           struct uva_batch *batch,
                                           struct uva_outcome *outcome);

/** Called once, on the loop thread: with every batch of a stream that has ended
 * COMPLETE, otherwise with none. The callee may take each of `batches` by
 * uva_array_move(); the library releases the rest. `info` is NULL if no schema
 * has come. Everything is borrowed for the call. */
typedef void uva_collected_fn(void *ctx, const struct uva_stream_info *info,
                              struct ArrowDeviceArray *batches, size_t count,
                              const struct uva_outcome *outcome);

/** Starts the stream and keeps all of it, up to `max_bytes` (by
 * uva_array_size(); 0: no limit), beyond which it ends REJECTED with EMSGSIZE.
 * Returns 0, and `fn` will be called, unless the stream is dropped; EINVAL
 * without `fn` or for a negative limit; otherwise as uva_stream_for_each().
 * `ctx` is borrowed until then. Thread: builder. Clauses: ER-10. */
UVA_API UVA_MUST_CHECK int uva_stream_collect(struct uva_stream *stream,
                                              int64_t max_bytes,
                                              uva_collected_fn *fn, void *ctx,
                                              struct uva_error *error);

/** Options of uva_stream_drive(). */
struct uva_drive {
    /* the handler has been released; it may still hold tasks. NULL: no
     * callback */
    void (*on_done)(void *ctx, const struct uva_outcome *outcome);
    void *ctx;            /* borrows, until on_done */
    const char *metadata; /* copied: additional_metadata of the producer */
    bool on_worker; /* call the handler on a blocking worker instead of the loop
                       thread: for handlers that may block */
    void *reserved[4];
};

/** Starts the stream as the producer for a foreign handler. The handler then
 * controls requests, cancellation and extraction; device events are passed on.
 * Data is extracted on the thread on which the handler extracts. If it may do
 * so inside on_next_task, and extraction is expensive, add
 * uva_stream_parallel() first. Tasks that may fail to be extracted postpone the
 * release of the handler, at most 30 seconds from the end; the stream is open,
 * and keeps the loop alive, until that release. `options` may be NULL. Returns
 * 0: the stream takes `handler` and will call its release exactly once.
 * Otherwise the handler is untouched: EINVAL if a function of it is NULL, EBUSY
 * for a handler in use, or as uva_stream_for_each().
 * Thread: builder.
 * Clauses: AH-02, AH-29, G-17, G-55. */
UVA_API UVA_MUST_CHECK int
uva_stream_drive(struct uva_stream *stream,
                 struct ArrowAsyncDeviceStreamHandler *handler,
                 const struct uva_drive *options, struct uva_error *error);

/* ---- control ------------------------------------------------------------ */

/** Adds a reference, so that another thread or object can keep `stream`.
 * Returns `stream`.
 * Thread: any that holds a reference. */
UVA_API struct uva_stream *uva_stream_acquire(struct uva_stream *stream);

/** Drops one reference. Dropping the last one frees a stream that was not
 * started, with everything it has taken; a started stream runs to its end.
 * Never blocks: a worker releases the source. NULL is allowed.
 * Thread: any. */
UVA_API void uva_stream_release(struct uva_stream *stream);

/** Cancels the stream: no more batches are delivered, and the outcome is
 * CANCELLED with `code` (0: ECANCELED) and `reason` (copied; may be NULL). Only
 * sets a mark and returns at once. A source that blocks is interrupted if it
 * can be; otherwise its worker keeps it until it returns. A driven handler
 * receives the cancellation as an error. Only the first call has an effect;
 * calls after the end do nothing. Called before the start, it makes the start
 * fail. on_done is still called, so the ctx of the consumer must stay valid:
 * see uva_stream_drop().
 * Thread: any that holds a reference.
 * Clauses: AP-11, AP-12, AP-13, AP-14, AP-15, AP-16, G-24. */
UVA_API void uva_stream_cancel(struct uva_stream *stream, int code,
                               const char *reason);

/** Cancels the stream, makes no further callback to the consumer, not even
 * on_done, and drops one reference of the caller: for a caller about to free
 * the ctx of its callbacks. Also frees the items of tasks that a foreign
 * handler has taken and not extracted. Until the runtime is closed, extracting
 * such a task fails: it returns ECANCELED and marks the output released; or,
 * once its memory serves a later task, EINVAL, and the output is not written.
 * uva_task_extract() leaves it released in both cases. Safe inside any
 * callback, including those of this stream. On another thread it is
 * uva_stream_cancel() followed by uva_stream_release(), and a callback may
 * still run. NULL is allowed. Thread: loop. Clauses: G-16. */
UVA_API void uva_stream_drop(struct uva_stream *stream);

/** Continues delivery after on_batch has returned EAGAIN. A call made on any
 * thread while that on_batch is still running also counts, so no wake-up is
 * lost. Has no effect on a stream that is not paused.
 * Thread: any that holds a reference.
 * Clauses: AP-25. */
UVA_API void uva_stream_resume(struct uva_stream *stream);

/** Returns the first error so far, of construction or of the run; 0 if there is
 * none, with `error` (may be NULL) untouched; EINVAL for a NULL stream.
 * Thread: builder; after the start: any that holds a reference.
 * Clauses: ER-10. */
UVA_API int uva_stream_status(const struct uva_stream *stream,
                              struct uva_error *error);

/** Returns what is known about the stream, borrowed as long as the stream
 * lives; NULL before its schema is known.
 * Thread: loop. */
UVA_API const struct uva_stream_info *
uva_stream_get_info(const struct uva_stream *stream);

/** Returns the runtime of the stream, borrowed; NULL once that has closed, or
 * if the stream could not be made. Thread: loop. */
UVA_API struct uva_runtime *
uva_stream_get_runtime(const struct uva_stream *stream);

/** Returns whether uva_stream_drop() was called on the loop thread, after which
 * no callback may be made: for libraries that make callbacks of their own after
 * the end of a stream to which they hold a reference.
 * Thread: loop. */
UVA_API bool uva_stream_is_dropped(const struct uva_stream *stream);

/** Sets the name of the stream in logs, traces and error texts. The text of
 * every error of the stream begins with it, and a colon: that of the start, of
 * uva_stream_status(), of the outcome, of get_last_error() of an exported
 * blocking stream, and of on_error() of a driven handler. Copies at most 63
 * bytes. The last call before the start counts. Returns the first error so far,
 * or 0.
 * Thread: builder. */
UVA_API int uva_stream_set_name(struct uva_stream *stream, const char *name);

/** Puts the stream's work on its workers before (positive `priority`) or behind
 * (negative) that of other streams of its runtime; 0 at first. Only the sign
 * counts. It orders work of one kind: what a consumer waits for goes before
 * read-ahead whatever its priority, and runtimes that share workers take turns
 * whatever theirs. Work behind is delayed and never stops: at least one turn in
 * nine is its. No effect on threads of an executor. Returns the first error so
 * far, or 0.
 * Thread: builder. */
UVA_API int uva_stream_set_priority(struct uva_stream *stream,
                                    int32_t priority);

/* ---- groups ------------------------------------------------------------- */

/** Streams that are cancelled together, such as those of one request, and that
 * report together when they have ended. */
struct uva_group;

/** Makes a group without streams. With `fail_together` the first of them that
 * ends FAILED or REJECTED cancels the group, with its code and text; one that
 * is cancelled by itself does not. Returns 0 and gives `*out`, with one
 * reference for the caller: uva_group_release(). EINVAL if `runtime` or `out`
 * is NULL; ENOMEM; EPERM in a forked child.
 * Thread: any. */
UVA_API UVA_MUST_CHECK int uva_group_new(struct uva_runtime *runtime,
                                         bool fail_together,
                                         struct uva_group **out,
                                         struct uva_error *error);

/** Adds a stream, started or not, which the group counts as open until it ends:
 * also by its release, if it was never started. Takes no reference. Added to a
 * group that is cancelled, it is cancelled at once. A stream may be in several
 * groups. Returns 0; EINVAL for NULL or a stream of another runtime; the code
 * of a stream that could not be made; ENOMEM, and the group is as before; EPERM
 * in a forked child.
 * Thread: any that holds a reference to both. */
UVA_API int uva_group_add(struct uva_group *group, struct uva_stream *stream);

/** Cancels each stream of the group, as uva_stream_cancel() does, and those
 * that are added later. The first call counts. Streams that are not started can
 * then not be started any more. NULL is allowed.
 * Thread: any that holds a reference.
 * Clauses: AP-14. */
UVA_API void uva_group_cancel(struct uva_group *group, int code,
                              const char *reason);

/** Has `fn` called on the loop thread, once, when no stream of the group is
 * open: later, and also for a group without streams. The loop is kept alive
 * until then, from this call on if it is made on the loop thread. If the
 * runtime closes before, `fn` is called when its streams have ended, whatever
 * was not started. `ctx` is borrowed until then. Returns 0; EBUSY for a second
 * function; EINVAL without a group or `fn`; ESHUTDOWN once the runtime is
 * closing; EPERM in a forked child.
 * Thread: any that holds a reference. */
UVA_API UVA_MUST_CHECK int uva_group_on_done(struct uva_group *group,
                                             uva_closed_fn *fn, void *ctx);

/** Drops the reference to the group. Cancels nothing: what was set up goes on
 * until its streams have ended. NULL is allowed.
 * Thread: any. */
UVA_API void uva_group_release(struct uva_group *group);

/* ---- statistics --------------------------------------------------------- */

/** What a stage is waiting for. */
enum uva_waiting {
    UVA_WAITING_NONE = 0, /* it is working, in a function of the source's or of
                             yours; or it is over */
    UVA_WAITING_SOURCE,   /* for data from above */
    UVA_WAITING_CONSUMER, /* for a request from below */
    UVA_WAITING_WORKER,   /* for a free worker thread */
    UVA_WAITING_DEVICE,   /* for an event of a device */
    UVA_WAITING_MEMORY,   /* for its share of the runtime's memory budget */
    UVA_WAITING_TURN,     /* for its turn to be opened (sources_open) */
    UVA_WAITING_TIME      /* for a delay of its own to pass */
};

/** What one stage has done so far. Times are in nanoseconds of uv_hrtime(). */
struct uva_stage_stats {
    const char *name;         /* static: "from_blocking", "map", "merge"... */
    enum uva_waiting waiting; /* now */
    int32_t next;      /* index of the stage it passes to; -1: the consumer */
    int64_t requested; /* batches requested from it, in total; INT64_MAX: no
                          limit */
    int64_t batches;   /* batches passed on; by a map: extracted */
    int64_t rows;      /* rows passed on; where batches are made at their
                          extraction, rows extracted */
    int64_t bytes;     /* bytes passed on, where a window measures them or with
                          `measure`; otherwise -1 */
    int64_t dropped;   /* batches lost by a slow branch of a tee */
    int64_t queued;    /* batches held, when the loop last ran the stage */
    int64_t queued_bytes;     /* bytes in these, as far as known */
    int64_t queued_max;       /* most batches held at one time */
    int64_t queued_bytes_max; /* most bytes held at one time */
    int64_t busy_ns;          /* spent in the source's or the user's functions,
                                 by all threads */
    int64_t busy_max_ns;      /* longest single call of those */
    int64_t starved_ns;       /* a request was open and there was no batch */
    int64_t idle_ns;          /* a batch was ready and there was no request */
    int64_t worker_wait_ns;   /* jobs waited for a worker thread */
    int64_t wakeups;          /* system calls made to wake another thread */
    int64_t reserved[8];      /* 0 */
};

/** Copies the statistics of up to `*count` stages, each behind those that pass
 * to it, and sets `*count` to the number of stages there are. A map is a stage;
 * a limit and an inspector are none. Stages that the library adds by itself,
 * such as a parallel stage for expensive extraction, are there once the stream
 * has started; a stream that was merged into this one is there with its
 * stages. A stream that failed while it was built has none.
 *
 * The last five members but `wakeups` are times, which are 0 unless the runtime
 * was opened with `measure`; all others are always counted. They are numbers of
 * different moments, as the stream may be running meanwhile; after its end they
 * are final, but for what is extracted later. `stages` may be NULL if `*count`
 * is 0. Returns 0; EINVAL for a NULL argument.
 * Thread: any that holds the stream. */
UVA_API UVA_MUST_CHECK int uva_stream_get_stats(const struct uva_stream *stream,
                                                struct uva_stage_stats *stages,
                                                size_t *count);

#ifdef __cplusplus
}
#endif

#endif
