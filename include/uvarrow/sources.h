/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: where the batches of a stream come from. Streams themselves are
 * described in stream.h; files and sockets are in io.h, databases in adbc.h.
 *
 *   arrays in memory                     uva_stream_from_arrays()
 *   Arrow's blocking streams             uva_stream_from_arrow_stream(),
 *                                        uva_stream_from_device_stream()
 *   work in two halves, found in order   uva_stream_from_tasks()
 *   and done on several workers
 *   a producer of Arrow's asynchronous   uva_stream_from_async()
 *   interface
 *   batches that threads push            uva_stream_from_pusher()
 *
 * Each returns a stream, never NULL, with one reference for the caller: one
 * that cannot be made has failed, and its start returns the error. Each takes
 * its arguments, also then. */
#ifndef UVARROW_SOURCES_H
#define UVARROW_SOURCES_H

#include "uvarrow/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- arrays, errors ------------------------------------------------------ */

/** Creates a stream of `count` arrays in memory. Takes `schema` and each of
 * `arrays`; borrows the C array of structs for the call. Returns the stream,
 * never NULL, with one reference for the caller: uva_stream_release().
 * Thread: any.
 * Clauses: DA-16. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_arrays(struct uva_runtime *runtime, struct ArrowSchema *schema,
                       struct ArrowDeviceArray *arrays, size_t count);

/** Creates a stream that has failed with `error`, as a source does that cannot
 * be made: for libraries with sources of their own. Returns the stream, never
 * NULL, with one reference for the caller.
 * Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_error(struct uva_runtime *runtime,
                      const struct uva_error *error);

/* ---- Arrow's blocking streams -------------------------------------------- */

/** How to open and read a blocking stream. All its functions but `needed`
 * run on a blocking worker. */
struct uva_arrow_source {
    /* gives the stream, when the uva_stream starts: for steps that block
     * before the ArrowArrayStream exists (connect, execute). For
     * uva_stream_from_arrow_stream() with `source` NULL. Returns 0, or an errno
     * that `error` may describe. */
    int (*open)(void *ctx, struct ArrowArrayStream *out,
                struct uva_error *error) UVA_0;
    /* gives the stream in the same way, for uva_stream_from_device_stream() */
    int (*open_device)(void *ctx, struct ArrowDeviceArrayStream *out,
                       struct uva_error *error) UVA_0;
    /* makes a blocked open or get_next return soon, because the stream was
     * cancelled: the cancel function of a driver. NULL: the call returns when
     * it is ready, on its worker. Called on another worker while that call
     * runs, or just before or after it, and again until that call returns, so
     * data that both use needs synchronisation. No other function is called
     * before both have returned. */
    void (*interrupt)(void *ctx) UVA_0;
    /* gives the rows and the bytes of the whole stream, as far as they are
     * known, for the statistics; both are 0 before. NULL: unknown. Called once,
     * after get_schema, on its thread */
    void (*expect)(void *ctx, int64_t *rows, int64_t *bytes) UVA_0;
    /* the last call, after the stream was released. May be NULL. Frees the
     * objects that must outlive the stream: a statement, a connection. */
    void (*free_ctx)(void *ctx) UVA_0;
    void *ctx UVA_0; /* owns, through free_ctx */
    /* of the kind of source ("query") in errors, statistics and traces; copied,
     * at most 31 bytes; NULL: "arrow_stream" or "device_stream" */
    const char *name UVA_0;
    ArrowDeviceType device_type UVA_0; /* device type of the stream that
                                          open_device gives; 0: CPU */
    struct uva_window
        window UVA_0;   /* read ahead of demand; batches = 1 for a source that
                           must not start a batch early */
    bool on_loop UVA_0; /* no function here blocks: all may run on the loop
                           thread */
    /* gives the metadata of the stream, once, after get_schema (`code` 0), and
     * of a failure, with its code, after the call that failed: NULL, or a block
     * that stays valid until the next call. May be NULL. Called on the thread
     * of those calls; may not block. */
    const char *(*metadata)(void *ctx, int code)UVA_0;
    /* open only with a permit, which is held until free_ctx has returned,
     * also after a cancel. Counts. NULL: none is needed */
    struct uva_permits *permits UVA_0;
    /* the stream has started and its batches are needed: from now on its
     * consumer waits for whatever the source waits for, its permit included.
     * Called before open, on the loop thread, and only that once; not for a
     * source that gets a permit before it is needed (see uva_permits). May not
     * block. May be NULL */
    void (*needed)(void *ctx) UVA_0;
    /* the most time that open, get_schema and get_next may take in all, on a
     * blocking worker; then the source is interrupted, and the stream fails
     * with ETIMEDOUT. The time of a slow consumer does not count. 0: no limit
     */
    int64_t busy_ms UVA_0;
    bool frees_late UVA_0; /* the end of the stream does not wait for free_ctx,
                              which may take long: it may come after the
                              outcome. The permit is held until then */
    void *reserved[4] UVA_0;
};

/** Creates a stream that reads `source`, one call at a time, and reads ahead as
 * far as `options` allows. Takes `source`, which reads as released from then
 * on. If `source` is NULL, options->open_device gives it when the stream
 * starts; otherwise `options` may be NULL. An error of get_schema or get_next
 * ends the stream, with the text of get_last_error. Returns the stream, never
 * NULL, with one reference for the caller.
 * Thread: any.
 * Clauses: DS-16. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_device_stream(struct uva_runtime *runtime,
                              struct ArrowDeviceArrayStream *source,
                              const struct uva_arrow_source *options);

/** As uva_stream_from_device_stream(), for a plain ArrowArrayStream such as
 * database drivers and file readers give, and with options->open. Takes
 * `source`. Returns the stream, never NULL, with one reference for the caller.
 * Thread: any.
 * Clauses: DS-16. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_arrow_stream(struct uva_runtime *runtime,
                             struct ArrowArrayStream *source,
                             const struct uva_arrow_source *options);

/* ---- tasks --------------------------------------------------------------- */

/** A source in two halves: `next` finds the next piece of work, in order, and
 * `extract`, the expensive half, turns it into data on any thread. Functions
 * return 0 or an errno, and may describe the error in `error`. The library
 * clears the output arguments before each call, and ignores them after a
 * failure. The first three functions are mandatory. */
struct uva_task_source {
    /* gives the schema. Called once, before next, on a blocking worker. */
    int (*schema)(void *ctx, struct ArrowSchema *out, struct uva_error *error)
        UVA_0;
    /* gives the next item, or leaves it NULL at the end. May set `metadata` to
     * a block that stays valid until the following call. Called on a blocking
     * worker, one call at a time, so it may read from a file or socket. */
    int (*next)(void *ctx, void **item, const char **metadata,
                struct uva_error *error) UVA_0;
    /* takes `item`, even if it fails. Gives its data, or only frees the item if
     * `out` is NULL (the data is not wanted). Called on a compute worker, or
     * where a foreign consumer extracts; several calls at once, in any order,
     * even after the end. See also at_once. */
    int (*extract)(void *ctx, void *item, struct ArrowDeviceArray *out,
                   struct uva_error *error) UVA_0;
    /* makes a blocked call of next return soon, because the stream was
     * cancelled. NULL: not possible. Called on a worker while next runs, or
     * just before or after it, and again until next returns. */
    void (*interrupt)(void *ctx) UVA_0;
    /* as in struct uva_arrow_source; called after schema */
    void (*expect)(void *ctx, int64_t *rows, int64_t *bytes) UVA_0;
    /* the last call, on any thread. May be NULL. */
    void (*free_ctx)(void *ctx) UVA_0;
    void *ctx UVA_0; /* owns, through free_ctx */
    /* copied, as in struct uva_arrow_source; NULL: "tasks" */
    const char *name UVA_0;
    ArrowDeviceType device_type UVA_0; /* of the data; 0: CPU */
    struct uva_window window UVA_0;    /* items found ahead of demand */
    /* returns how many bytes `item` holds until it is extracted, which windows
     * count. NULL: that is not known, and only its batches limit a window.
     * Called on the same worker as next, which it follows. */
    int64_t (*size)(void *ctx, const void *item) UVA_0;
    /* returns whether the data of `item` is so little work that extract is
     * called at once, there and then: no compute worker has such a batch, whose
     * windows count it as the larger of `size` and its rows. NULL: none is.
     * Called after size. */
    bool (*at_once)(void *ctx, const void *item) UVA_0;
    /* open only with a permit, which is held while items are found: until next
     * has given the end or failed, or after a cancel the call in progress has
     * returned. Items that were found may be extracted later. Counts. NULL:
     * none is needed */
    struct uva_permits *permits UVA_0;
    void *reserved[4] UVA_0;
};

/** Creates a stream of tasks, for parallel decoding in order (see
 * uva_stream_parallel()). Copies `source`, takes its ctx. Returns the stream,
 * never NULL, with one reference for the caller.
 * Thread: any.
 * Clauses: AT-09, AT-10, AT-11. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_tasks(struct uva_runtime *runtime,
                      const struct uva_task_source *source);

/* ---- a foreign producer -------------------------------------------------- */

/** A foreign producer that implements Arrow's asynchronous interface.
 * Clauses: G-03, G-55, Q-17. */
struct uva_async_source {
    /* passes `handler` to the producer; called once. 0: the producer has
     * accepted it. Otherwise an errno; the library detects whether the producer
     * has released the handler by then, so both conventions work. Called on a
     * blocking worker; it may take as long as the stream runs. */
    int (*start)(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                 struct uva_error *error) UVA_0;
    void (*free_ctx)(void *ctx)
        UVA_0;       /* the last call; any thread; may be NULL */
    void *ctx UVA_0; /* owns, through free_ctx */
    ArrowDeviceType device_type UVA_0; /* for uva_stream_to_device_stream(),
                                          which must know it early; 0: CPU */
    struct uva_window window UVA_0;    /* limits of the batches requested */
    bool on_loop UVA_0; /* extraction only moves an array, as in Arrow C++: may
                           run on the loop thread. Otherwise the tasks of a
                           producer that releases on a loop thread are extracted
                           after that */
    bool printed_layout UVA_0; /* the producer object has the layout printed in
                                  the document, with a `release` function. Set
                                  by itself where struct ArrowAsyncProducer has
                                  it, because the header that defines it so was
                                  included first */
    /* makes a blocked start, or a blocked request of the producer, return soon,
     * because no more batches are wanted: the cancel function of a driver. A
     * start that lasts as long as the stream counts as blocked. NULL: the call
     * returns when it is ready, on its thread. Called on another thread while
     * that call runs, or just before or after it, and again until that call
     * returns, so data that both use needs synchronisation. The producer's
     * cancel may run beside it; free_ctx is not called before all of them have
     * returned. */
    void (*interrupt)(void *ctx) UVA_0;
    void *reserved[4] UVA_0;
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
/** As uva_stream_from_async(), which calls this after another header that
 * defines ArrowAsyncProducer: sets printed_layout for the layout printed in the
 * document. Takes the ctx of `source`, and returns a stream, as that function
 * does.
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

/* ---- data pushed --------------------------------------------------------- */

struct uva_pusher; /* the writing end, for any number of threads */

/** Callbacks of a pusher to its writers, on the loop thread. They may use and
 * close the pusher. Once the pusher was closed on the loop thread, no function
 * is called; if another thread closes it, a call may still be running. */
struct uva_push_source {
    /* the window has room again, half of it, after a push returned EAGAIN. It
     * may be called before that push has returned to another thread: there,
     * clear your flag before the push. NULL: no callback */
    void (*on_writable)(void *ctx, struct uva_pusher *pusher) UVA_0;
    /* the stream has ended: pushes return EPIPE. A stream that was not started
     * ends at its release; if the runtime closes before, pushes return EPIPE
     * without this call, so wait with a limit. NULL: no callback */
    void (*on_closed)(void *ctx, struct uva_pusher *pusher) UVA_0;
    void (*free_ctx)(void *ctx)
        UVA_0;       /* the last call; any thread; may be NULL */
    void *ctx UVA_0; /* owns, through free_ctx */
    ArrowDeviceType device_type UVA_0; /* 0: CPU */
    struct uva_window window UVA_0;    /* batches waiting for the consumer */
    void *reserved[4] UVA_0;
};

/** Creates a stream of the batches that will be pushed, and gives `pusher`, its
 * writing end, to be closed with uva_pusher_close(). `options` may be NULL. If
 * this fails, the stream remembers the error and `*pusher` is NULL, for which
 * all functions below return EPIPE. Returns the stream, never NULL, with one
 * reference for the caller.
 * Thread: any.
 * Clauses: AP-29. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_pusher(struct uva_runtime *runtime,
                       const struct uva_push_source *options,
                       struct uva_pusher **pusher);

/** Sets the schema of the batches, once, before the first push. Takes `schema`,
 * whatever it returns: after an error it was released. Returns 0; EBUSY if it
 * was already set; EPIPE; ENOMEM; EINVAL for a released schema.
 * Thread: any.
 * Clauses: AH-30. */
UVA_API UVA_MUST_CHECK int uva_pusher_set_schema(struct uva_pusher *pusher,
                                                 struct ArrowSchema *schema);

/** Pushes one batch. Takes `array`, whatever it returns. `metadata` is copied,
 * or NULL. Batches pushed by one thread keep their order.
 *
 * With a `timeout_ms` of 0 it never waits. Returns 0; or EAGAIN: the batch was
 * pushed, and the window is full now, so stop until on_writable is called. A
 * batch that is pushed nevertheless is taken too, and exceeds the window.
 *
 * With another timeout it waits for room first, up to `timeout_ms`
 * (UVA_FOREVER: without a limit, which is how a receiving thread passes
 * back-pressure on). Returns 0; ETIMEDOUT: there was no room, and the batch is
 * lost, so to wait in steps use a timeout of 0 and on_writable; EDEADLK on the
 * loop thread.
 *
 * Returns in both cases EPIPE if the stream has ended; EINVAL without a schema,
 * for a negative timeout, or for an array that is released, does not fit the
 * schema or is on another device type; ENOMEM. After every code but 0 and
 * EAGAIN the batch is lost: it was released.
 * Thread: any.
 * Clauses: AP-29. */
UVA_API UVA_MUST_CHECK int uva_pusher_push(struct uva_pusher *pusher,
                                           struct ArrowDeviceArray *array,
                                           const char *metadata,
                                           int64_t timeout_ms);

/** Ends the stream after the batches already pushed: as complete if `error` is
 * NULL, otherwise as failed with `error` (copied) and `metadata` (copied, or
 * NULL). Takes `pusher`, which no thread may use afterwards.
 * Thread: any.
 * Clauses: ER-09. */
UVA_API void uva_pusher_close(struct uva_pusher *pusher,
                              const struct uva_error *error,
                              const char *metadata);

#ifdef __cplusplus
}
#endif

#endif
