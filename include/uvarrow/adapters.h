/* SPDX-License-Identifier: Apache-2.0 */
/* Streams to and from threads that block: Arrow's blocking streams as source
 * and as sink, and data pushed by threads of the program. */
#ifndef UVARROW_ADAPTERS_H
#define UVARROW_ADAPTERS_H

#include "uvarrow/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a blocking stream in ----------------------------------------------- */

/** How to open and read a blocking stream. All its functions but `needed`
 * run on a blocking worker. */
struct uva_blocking_source {
    /* gives the stream, when the uva_stream starts: for steps that block
     * before the ArrowArrayStream exists (connect, execute). For
     * uva_stream_from_blocking_cpu() with `source` NULL. Returns 0, or an errno
     * that `error` may describe. */
    int (*open)(void *ctx, struct ArrowArrayStream *out,
                struct uva_error *error) UVA_0;
    /* gives the stream in the same way, for uva_stream_from_blocking() */
    int (*open_device)(void *ctx, struct ArrowDeviceArrayStream *out,
                       struct uva_error *error) UVA_0;
    /* makes a blocked open or get_next return soon, because the stream was
     * cancelled: the cancel function of a driver. NULL: the call returns when
     * it is ready, on its worker. Called on another worker while that call
     * runs, or just before or after it, and again until that call returns, so
     * data that both use needs synchronisation. No other function is called
     * before both have returned. */
    void (*interrupt)(void *ctx) UVA_0;
    /* the last call, after the stream was released. May be NULL. Frees the
     * objects that must outlive the stream: a statement, a connection. */
    void (*free_ctx)(void *ctx) UVA_0;
    void *ctx UVA_0;                   /* owns, through free_ctx */
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
    /* open only in its turn, which lasts until free_ctx has returned, also
     * after a cancel; instead of the runtime's `sources_open`. Counts. May be
     * NULL */
    struct uva_turns *turns UVA_0;
    /* the stream has started and its batches are needed: from now on its
     * consumer waits for whatever the source waits for, its turn included.
     * Called before open, on the loop thread, and only that once; not for a
     * source that gets its turn before it is needed (see uva_turns). May not
     * block. May be NULL */
    void (*needed)(void *ctx) UVA_0;
    /* the most time that open, get_schema and get_next may take in all, on a
     * blocking worker; then the source is interrupted, and the stream fails
     * with ETIMEDOUT. The time of a slow consumer does not count. 0: no limit
     */
    int64_t busy_ms UVA_0;
    bool frees_late UVA_0; /* the end of the stream does not wait for free_ctx,
                              which may take long: it may come after the
                              outcome. The turn lasts until then */
    void *reserved[1] UVA_0;
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
uva_stream_from_blocking(struct uva_runtime *runtime,
                         struct ArrowDeviceArrayStream *source,
                         const struct uva_blocking_source *options);

/** As uva_stream_from_blocking(), for a plain ArrowArrayStream such as database
 * drivers and file readers give, and with options->open. Takes `source`.
 * Returns the stream, never NULL, with one reference for the caller.
 * Thread: any.
 * Clauses: DS-16. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_blocking_cpu(struct uva_runtime *runtime,
                             struct ArrowArrayStream *source,
                             const struct uva_blocking_source *options);

/* ---- a blocking stream out ---------------------------------------------- */

/** Starts the stream and gives `out`, a blocking stream to be read by one other
 * thread at a time: its get_next waits for a batch. On the thread of a loop and
 * on a compute worker get_next returns EDEADLK until the runtime is closed, as
 * does get_schema until the schema is known. `window` limits the batches that
 * wait to be read (NULL: the default). The reading thread extracts the data;
 * events are passed on. Releasing `out` cancels the stream; if the stream is
 * cancelled, get_next returns the code. get_schema may be called repeatedly.
 * The end and an error are sticky. Returns 0; otherwise as
 * uva_stream_for_each(), and `out` is released.
 * Thread: builder.
 * Clauses: DS-21, G-66. */
UVA_API UVA_MUST_CHECK int uva_stream_to_blocking(
    struct uva_stream *stream, const struct uva_window *window,
    struct ArrowDeviceArrayStream *out, struct uva_error *error);

/** As uva_stream_to_blocking(), but gives a plain ArrowArrayStream: get_next
 * fails with ENOTSUP for data that is not on the host or has an event. Gives
 * `out`. Returns as uva_stream_to_blocking().
 * Thread: builder.
 * Clauses: G-61. */
UVA_API UVA_MUST_CHECK int uva_stream_to_blocking_cpu(
    struct uva_stream *stream, const struct uva_window *window,
    struct ArrowArrayStream *out, struct uva_error *error);

/** Returns the stream that `reader` reads, with a reference for the caller:
 * uva_stream_cancel() on it makes a get_next that waits on another thread
 * return. NULL if uva_stream_to_blocking_cpu() has not given `reader`, which
 * may be NULL or released. Borrows `reader` for the call.
 * Thread: any, but not while another one releases `reader`.
 * Clauses: DS-16. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_of_reader(const struct ArrowArrayStream *reader);

/* ---- data pushed -------------------------------------------------------- */

struct uva_pusher; /* the writing end, for any number of threads */

/** Callbacks of a pusher to its writers, on the loop thread. They may use and
 * close the pusher. Once the pusher was closed on the loop thread, no function
 * is called; if another thread closes it, a call may still be running. */
struct uva_push_source {
    /* there is room again after a push returned EAGAIN; NULL: no callback */
    void (*on_writable)(void *ctx, struct uva_pusher *pusher) UVA_0;
    /* the stream has ended or was cancelled: pushes return EPIPE; NULL: no
     * callback */
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

/** Sets the schema of the batches, once, before the first push. Takes `schema`.
 * Returns 0; EBUSY if it was already set; EPIPE; ENOMEM; EINVAL for a released
 * schema. After an error the caller still owns `schema`.
 * Thread: any.
 * Clauses: AH-30. */
UVA_API UVA_MUST_CHECK int uva_pusher_set_schema(struct uva_pusher *pusher,
                                                 struct ArrowSchema *schema);

/** Pushes one batch. Takes `array` only if it returns 0. `metadata` is copied,
 * or NULL. If there is no room, waits up to `timeout_ms`: 0 does not wait,
 * UVA_FOREVER waits without a limit, which is how a receiving thread passes
 * back-pressure on. Returns 0; EAGAIN if there is no room and the timeout is 0
 * (on_writable will be called); ETIMEDOUT; EPIPE if the stream has ended;
 * EDEADLK for a timeout other than 0 on the loop thread; EINVAL without a
 * schema, or for an array that is released or on another device type; ENOMEM.
 * Batches pushed by one thread keep their order.
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
