/* SPDX-License-Identifier: Apache-2.0 */
/* Stages: what happens to batches between a stream's source and its consumer.
 *
 * Each call adds a stage at the end of the stream, in place, and returns the
 * first error of the stream so far, or 0: it may be ignored, the start returns
 * it too. EBUSY after the start. A ctx is taken at once and freed once, maybe
 * after on_done: a foreign consumer may hold tasks. A `how` may be NULL where
 * all its members have a default.
 *
 * Demand passes through exactly, but for a documented window; cancel passes up
 * at once; an error keeps its code, text and metadata and comes after the
 * batches that preceded it (G-40). */
#ifndef UVARROW_OPERATORS_H
#define UVARROW_OPERATORS_H

#include "uvarrow/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- on the data -------------------------------------------------------- */

/** A function over batches. */
struct uva_map {
    /* makes `out` from `in`: fills in all of its array, as that comes released
     * but not cleared, and what is not 0 of the rest. What is left in in->data
     * is released; to pass data on, move it. 0 gives `out`; otherwise an errno,
     * and the stream ends FAILED. Called where extraction happens: on a worker,
     * or wherever a foreign consumer extracts, several at once unless there is
     * one worker; batches may come in any order. Mandatory. */
    int (*batch)(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                 struct uva_error *error);
    /* gives the schema of what comes out; before the first batch, on the loop
     * thread. NULL: it stays as it is. */
    int (*schema)(void *ctx, const struct ArrowSchema *in,
                  struct ArrowSchema *out, struct uva_error *error);
    void (*free_ctx)(void *ctx); /* the last call; any thread; NULL: none */
    void *ctx;                   /* owns, through free_ctx */
    bool cheap; /* takes microseconds: it may run on the loop thread */
    void *reserved[4];
};

/** Copies `how`, takes its ctx. Applies a function to every batch. Runs nothing
 * by itself: it becomes part of the extraction, so a chain of maps runs in one
 * go on one worker (AT-10). Returns the first error so far, or 0. Thread:
 * builder. */
UVA_API int uva_stream_map(struct uva_stream *stream,
                           const struct uva_map *how);

/** Passes on the first `batches` batches, then ends the stream COMPLETE and
 * cancels what is above (AP-14). Returns the first error so far, or 0; EINVAL
 * if negative. Thread: builder. */
UVA_API int uva_stream_limit(struct uva_stream *stream, int64_t batches);

/* ---- on the pace -------------------------------------------------------- */

/** Where extraction happens, and how much of it at once. */
struct uva_parallel {
    int32_t workers;          /* at most at once, for this stream; 0: cores */
    bool unordered;           /* deliver as they finish, not as they began */
    struct uva_window window; /* begun and not yet passed on */
    void *reserved[4];
};

/** Extracts here, on compute workers: decoding and maps from above run on up to
 * `workers` of them at once, and their results are passed on in order (AT-11).
 * `how` is copied. Returns the first error so far, or 0. Thread: builder. */
UVA_API int uva_stream_parallel(struct uva_stream *stream,
                                const struct uva_parallel *how);

/* ---- on devices --------------------------------------------------------- */

/** Who waits for an event. */
enum uva_wait {
    UVA_WAIT_HOST = 0, /* pass a batch on when its data is complete */
    UVA_WAIT_STREAM,   /* make `device_stream` wait, pass it on at once */
    UVA_WAIT_NONE      /* pass it on with its event, unwaited */
};

/** How to wait for events. */
struct uva_ready {
    enum uva_wait wait;  /* who waits */
    void *device_stream; /* for UVA_WAIT_STREAM: a cudaStream_t, hipStream_t or
                            cl_command_queue of the batches' device; borrows,
                            until the stream is done */
    int64_t timeout_ms;  /* for one event; 0: none. ETIMEDOUT */
    struct uva_window window; /* waited for at once */
    void *reserved[4];
};

/** Waits for each batch's sync_event, in order, without holding up the loop or
 * any thread. Tells for_each and next that device data is welcome. A failed
 * event ends the stream with EIO and the vendor's code. `how` may be NULL.
 * Returns 0; EINVAL for what makes no sense in `how`; EAGAIN, ENOMEM. Rests on
 * EV-01 to EV-22. Thread: builder. */
UVA_API int uva_stream_ready(struct uva_stream *stream,
                             const struct uva_ready *how);

/** Where to copy to. */
struct uva_transfer {
    ArrowDeviceType device_type; /* to there; 0: CPU. CUDA_HOST and ROCM_HOST
                                    are pinned host memory */
    int64_t device_id;           /* to that one; not looked at for CPU */
    struct uva_window window;    /* under way at once */
    void *reserved[4];
};

/** Copies each batch to another device, or to the host (`how` NULL). The copy
 * is queued on the device behind the batch's event; put no ready stage before
 * it. To the host: passed on when all of it has arrived, without an event. To a
 * device: passed on at once, with an event of its own, which may fail; what it
 * was copied from is released when that is complete. Batches that are there
 * already pass through, with theirs. ENOTSUP ends the stream where there is no
 * way. Returns 0; EINVAL for a negative member; EAGAIN, ENOMEM. Rests on EV-02,
 * DA-11. Thread: builder. */
UVA_API int uva_stream_transfer(struct uva_stream *stream,
                                const struct uva_transfer *how);

#ifdef __cplusplus
}
#endif

#endif
