/* SPDX-License-Identifier: Apache-2.0 */
/* Between streams and threads that block: Arrow's blocking streams in and out,
 * and data pushed by threads of the program's own. */
#ifndef UVARROW_ADAPTERS_H
#define UVARROW_ADAPTERS_H

#include "uvarrow/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a blocking stream in ----------------------------------------------- */

/** How to open and read a blocking stream. Everything called here runs on a
 * blocking worker. */
struct uva_blocking_source {
    /* gives the stream, when this one starts: for what blocks before there is
     * one (connect, execute). For uva_stream_from_blocking_cpu() without a
     * source. 0 or an errno, which `error` may explain. */
    int (*open)(void *ctx, struct ArrowArrayStream *out,
                struct uva_error *error);
    /* the same for uva_stream_from_blocking() */
    int (*open_device)(void *ctx, struct ArrowDeviceArrayStream *out,
                       struct uva_error *error);
    /* makes an open or get_next that waits return soon, because of a cancel: a
     * driver's own cancel call. NULL: it is left to return by itself, on its
     * worker. Begins on another worker while that call runs, or just before or
     * after it, so what both use must be shared safely, and again while it does
     * not return; nothing else is called before both are back. */
    void (*interrupt)(void *ctx);
    /* the last call, after the stream was released. NULL: none. Frees what
     * must outlive the stream: a statement, a connection. */
    void (*free_ctx)(void *ctx);
    void *ctx;                   /* owns, through free_ctx */
    ArrowDeviceType device_type; /* what open_device will give; 0: CPU */
    struct uva_window window; /* read ahead of demand; batches = 1 for a source
                                 whose next batch should not be begun early */
    bool quick; /* nothing here waits: call it on the loop thread */
    void *reserved[4];
};

/** Makes a stream that reads `source`: one call at a time (DS-16), as far ahead
 * as `how` allows. Takes `source`, which reads as released from then on. With
 * `source` NULL, how->open_device gives it when the stream starts; otherwise
 * `how` may be NULL. An error of get_schema or get_next ends the stream, with
 * the text of get_last_error. Returns a stream that the caller holds (never
 * NULL). Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_blocking(struct uva_runtime *runtime,
                         struct ArrowDeviceArrayStream *source,
                         const struct uva_blocking_source *how);

/** The same for a plain ArrowArrayStream, as database drivers and file readers
 * give it (DS-16); with how->open. Takes `source`. Returns a stream that the
 * caller holds (never NULL). Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_blocking_cpu(struct uva_runtime *runtime,
                             struct ArrowArrayStream *source,
                             const struct uva_blocking_source *how);

/* ---- a blocking stream out ---------------------------------------------- */

/** Starts the stream and gives `out` a blocking stream that one other thread at
 * a time reads: its get_next waits for a batch. On the loop thread get_next
 * always returns EDEADLK, and get_schema while the schema is not known. Up to
 * `window` wait in it (NULL: the default). Data is extracted by the reading
 * thread, and events are passed on. Releasing `out` cancels; cancelling the
 * stream makes get_next return the code. get_schema may be called any number of
 * times (DS-21). The end and an error are sticky (G-66). Returns 0; otherwise
 * as uva_stream_for_each(), and `out` is released. Thread: builder. */
UVA_API UVA_MUST_CHECK int uva_stream_to_blocking(
    struct uva_stream *stream, const struct uva_window *window,
    struct ArrowDeviceArrayStream *out, struct uva_error *error);

/** The same as a plain ArrowArrayStream: get_next fails with ENOTSUP for data
 * that is not on the host or is behind an event (G-61). Gives `out`. Returns as
 * that does. Thread: builder. */
UVA_API UVA_MUST_CHECK int uva_stream_to_blocking_cpu(
    struct uva_stream *stream, const struct uva_window *window,
    struct ArrowArrayStream *out, struct uva_error *error);

/* ---- data pushed -------------------------------------------------------- */

struct uva_pusher; /* the writing end; for any number of threads */

/** What a pusher tells its writers, on the loop thread. The pusher may be used
 * and closed in these callbacks, and none comes after it was closed there;
 * closed by another thread, one may just be running. */
struct uva_push_source {
    /* there is room again after a push said EAGAIN; NULL: no */
    void (*on_room)(void *ctx, struct uva_pusher *pusher);
    /* the stream has ended or was cancelled: pushes say EPIPE; NULL: no */
    void (*on_gone)(void *ctx, struct uva_pusher *pusher);
    void (*free_ctx)(void *ctx); /* the last call; any thread; NULL: none */
    void *ctx;                   /* owns, through free_ctx */
    ArrowDeviceType device_type; /* 0: CPU */
    struct uva_window window;    /* what may wait for the consumer */
    void *reserved[4];
};

/** Makes a stream of what will be pushed (AP-29), and gives `pusher` its
 * writing end, to be ended by uva_pusher_close(). `how` may be NULL. If this
 * fails (the stream remembers how), `*pusher` is NULL, which all functions
 * below accept and answer with EPIPE. Returns a stream that the caller holds
 * (never NULL). Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_pusher(struct uva_runtime *runtime,
                       const struct uva_push_source *how,
                       struct uva_pusher **pusher);

/** Says what the batches look like (AH-30); before the first push, once. Takes
 * `schema`. Returns 0; EBUSY if it was said before; EPIPE; ENOMEM; EINVAL for
 * one that is released. After an error `schema` is the caller's. Thread: any.
 */
UVA_API UVA_MUST_CHECK int uva_pusher_set_schema(struct uva_pusher *pusher,
                                                 struct ArrowSchema *schema);

/** Pushes one batch. Takes `array` if it returns 0, and not otherwise.
 * `metadata` is copied, or NULL. If there is no room it waits up to
 * `timeout_ms`: 0 for not at all, UVA_FOREVER for as long as it takes, which is
 * how a receiving thread passes back-pressure on (AP-29). Returns 0; EAGAIN no
 * room (timeout 0), on_room will follow; ETIMEDOUT; EPIPE the stream is over;
 * EDEADLK a timeout other than 0 on the loop thread; EINVAL without schema, or
 * for an array that is released or of another device type; ENOMEM. Batches of
 * one thread keep their order. Thread: any. */
UVA_API UVA_MUST_CHECK int uva_pusher_push(struct uva_pusher *pusher,
                                           struct ArrowDeviceArray *array,
                                           const char *metadata,
                                           int64_t timeout_ms);

/** Ends the stream after what was pushed (ER-09): well if `error` is NULL,
 * otherwise failed with it (copied) and `metadata` (copied, or NULL). Takes
 * `pusher`: no thread uses it any more. Thread: any. */
UVA_API void uva_pusher_close(struct uva_pusher *pusher,
                              const struct uva_error *error,
                              const char *metadata);

#ifdef __cplusplus
}
#endif

#endif
