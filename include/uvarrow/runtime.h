/* SPDX-License-Identifier: Apache-2.0 */
/* Open and close a runtime: the loop that streams are delivered on, and the
 * worker threads behind it. What a stream is, is in stream.h.
 *
 * Four ways to host one, one function:
 *   your libuv loop   uva_runtime_open(loop, NULL, &rt, &error)
 *   a thread of ours  uva_runtime_open(NULL, NULL, &rt, &error)
 *   any other loop    uva_runtime_open(NULL, &(struct uva_runtime_options){
 *                         .no_thread = true}, &rt, &error), then watch
 *                     uva_runtime_fd(rt) and call uva_runtime_turn(rt)
 *   no descriptors    the same with .post = tell_my_loop, which gets
 *                     uva_runtime_turn(rt) called later
 * "The loop thread" below is the thread that runs that loop. */
#ifndef UVARROW_RUNTIME_H
#define UVARROW_RUNTIME_H

#include "uvarrow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct uva_runtime; /* delivers streams on one loop */
struct uva_workers; /* threads, shared by as many runtimes as you like */
struct uva_job;     /* one piece of work for an executor */
struct uv_loop_s;   /* libuv's uv_loop_t; <uv.h> is not needed here */

/** A time in milliseconds that never comes. */
#define UVA_FOREVER ((int64_t)-1)

/* ---- workers ------------------------------------------------------------ */

/** What kind of work a worker does. */
enum uva_lane {
    UVA_LANE_COMPUTE, /* extraction, maps, filters: uses a core, never waits */
    UVA_LANE_BLOCKING /* get_next, foreign producers: may wait for ever */
};

/** Runs the library's jobs on threads of yours. */
struct uva_executor {
    /* takes `job` and later calls uva_job_run() on it, once, on a thread that
     * may do such work; not inside this call. 0, or an errno and the job is
     * not taken. Called by any thread. A lane in which every thread waits
     * stops its streams: a blocking lane must be able to grow. */
    int (*submit)(void *ctx, enum uva_lane lane, struct uva_job *job);
    void *ctx; /* borrows, while the workers live */
};

/** How many threads, and how they begin. */
struct uva_workers_options {
    const char *name;         /* borrows for the call: part of thread names */
    int32_t compute_threads;  /* at most; 0: one per core */
    int32_t blocking_threads; /* at most; 0: 64 */
    int32_t idle_ms;          /* a thread with nothing to do leaves; 0: 10 s */
    struct uva_allocator allocator; /* zeroes: the C library's */
    struct uva_executor executor;   /* zeroes: threads of our own */
    /* called on each new thread of ours as its first act; NULL: no */
    void (*thread_begin)(void *ctx, enum uva_lane lane);
    /* and as its last */
    void (*thread_end)(void *ctx, enum uva_lane lane);
    void *ctx; /* borrows, while the workers live */
    void *reserved[4];
};

/** Makes workers that several runtimes share; no thread starts before there is
 * work. One runtime alone needs none of this: it makes its own. `options` may
 * be NULL. Returns 0 and gives `out`; EINVAL, ENOMEM. Thread: any. */
UVA_API UVA_MUST_CHECK int
uva_workers_new(const struct uva_workers_options *options,
                struct uva_workers **out, struct uva_error *error);

/** Gives up the caller's count. The threads leave once the last runtime on
 * them has closed. NULL is allowed. Thread: any. */
UVA_API void uva_workers_free(struct uva_workers *workers);

/** Runs a job that your executor accepted; takes it. Thread: any, but not
 * inside submit(). */
UVA_API void uva_job_run(struct uva_job *job);

/* ---- open and close ----------------------------------------------------- */

/** How a runtime is to be. */
struct uva_runtime_options {
    const char *name;            /* borrows for the call: in logs and traces */
    struct uva_workers *workers; /* counted; NULL: the runtime makes its own */
    struct uva_allocator allocator; /* zeroes: the C library's */
    struct uva_log log;             /* zeroes: see struct uva_log */
    int8_t check;         /* protocol checker on every hop: 1 on, -1 off,
                             0 as the environment says (UVA_CHECK=1) */
    bool no_thread;       /* without a loop: start no thread, see turn */
    int32_t turn_batches; /* deliveries before the loop's other work gets
                             its turn; 0: 256 */
    int32_t turn_us;      /* likewise in time; 0: 500 */
    unsigned uv_version;  /* set to uv_version() to have a second copy of
                             libuv in the process noticed; 0: unchecked */
    /* with no_thread, for hosts that can neither share a loop nor watch a
     * descriptor: called when uva_runtime_turn() has something to do, once till
     * it has run; it must only get turn called later, on the loop thread. On a
     * thread of the library's own. NULL: watch uva_runtime_fd(). */
    void (*post)(void *post_ctx);
    void *post_ctx; /* borrows, until the runtime is gone */
    void *reserved[2];
};

/** Opens a runtime.
 *
 * With `loop`: as a guest on it. Adds a poll, a timer, an idle and a check
 * handle, never sets handle->data, and keeps the loop alive only while a stream
 * runs. Call it on the thread that runs the loop.
 * Without: the runtime has a loop of its own, run by a thread of its own, or
 * with `no_thread` by whoever calls uva_runtime_turn().
 *
 * Returns 0 and gives `out`, to be ended by uva_runtime_close() (and, for a
 * thread of its own, uva_runtime_join()). EINVAL for an option that makes no
 * sense or a foreign libuv; ENOMEM; EPERM in a forked child; what the system
 * said if a handle or thread could not be made. `options` may be NULL. Thread:
 * any. */
UVA_API UVA_MUST_CHECK int
uva_runtime_open(struct uv_loop_s *loop,
                 const struct uva_runtime_options *options,
                 struct uva_runtime **out, struct uva_error *error);

/** Called when a runtime is fully detached: none of its handles is on the loop,
 * none of its streams is open, uv_loop_close() can succeed. It calls nothing
 * of yours any more, but the free_ctx of streams you still hold (when you let
 * go) and of foreign calls that are stuck (if they ever return). */
typedef void uva_closed_fn(void *ctx);

/** Begins to close a runtime. From now on streams fail to start (ESHUTDOWN);
 * those running may go on for `grace_ms` (0: not at all; UVA_FOREVER: to their
 * end) and are then cancelled, each with its on_done. Last of all, `fn` (may be
 * NULL) is called on the loop thread; after it `runtime` is gone. Calls that
 * workers are inside of are waited for, but for a second at most: foreign calls
 * that are stuck do not hold this up, their workers stay behind alone. Neither
 * do tasks that a foreign handler holds: extracting one after this returns
 * ECANCELED (G-16).
 *
 * On a loop of yours, keep the loop running until then. From any callback it is
 * safe. Returns 0; EALREADY if it was closing (the shorter grace counts, `fn`
 * is not called). Thread: any. */
UVA_API int uva_runtime_close(struct uva_runtime *runtime, int64_t grace_ms,
                              uva_closed_fn *fn, void *ctx);

/** Ends a runtime that has a thread of its own: lets its streams finish, closes
 * it if that has not begun, waits for the thread to end, frees it. The last
 * call on every such runtime. To stop sooner, uva_runtime_close() first.
 * Returns 0; EDEADLK on the loop thread; EINVAL for a runtime without a thread.
 * Blocks, for ever if a stream never ends or is never resumed. Thread: any, but
 * the loop's and workers. */
UVA_API int uva_runtime_join(struct uva_runtime *runtime);

/* ---- hosting without libuv ---------------------------------------------- */

/** Returns the file descriptor of a runtime opened with `no_thread`. It is
 * readable exactly while uva_runtime_turn() has something to do; timers make it
 * readable too, and so does work handed in between turns, so watching it is all
 * there is to do. Level triggered, the same until closed; do not read, write or
 * close it. For other runtimes it is -1. Thread: any. */
UVA_API int uva_runtime_fd(const struct uva_runtime *runtime);

/** Does what is to be done now, without waiting, all callbacks included. The
 * thread that calls it first is the loop thread from then on. Returns whether
 * the runtime is still open: false once, when it has just gone.
 * Thread: loop; not from a callback. */
UVA_API bool uva_runtime_turn(struct uva_runtime *runtime);

/* ---- everything else ---------------------------------------------------- */

/** A call for the loop thread. */
typedef void uva_post_fn(void *ctx);

/** Calls `fn` on the loop thread, later, in order of posting; never inside this
 * call. Posted on the loop thread it keeps a loop of yours alive until then;
 * posted elsewhere it cannot. Returns 0; ENOMEM; ESHUTDOWN, and `fn` will not
 * be called. Thread: any. */
UVA_API UVA_MUST_CHECK int uva_runtime_post(struct uva_runtime *runtime,
                                            uva_post_fn *fn, void *ctx);

/** Returns whether the caller is on the loop thread. Thread: any. */
UVA_API bool uva_runtime_on_loop(const struct uva_runtime *runtime);

/** Returns the libuv loop, yours or the runtime's own, for handles of your own
 * on it: close them before the runtime. Borrows. Thread: loop. */
UVA_API struct uv_loop_s *uva_runtime_loop(const struct uva_runtime *runtime);

/** What a runtime holds and has seen. */
struct uva_runtime_stats {
    int64_t streams_open;     /* started and not done */
    int64_t streams_held;     /* structs not yet released by their holders */
    int64_t tasks_held;       /* given to handlers and not extracted */
    int64_t threads_compute;  /* of the workers, now */
    int64_t threads_blocking; /* of the workers, now */
    int64_t calls_stuck;      /* foreign calls abandoned and not yet back */
    int64_t peer_breaches;    /* rules broken by others, and survived */
    int64_t late_calls;       /* request or cancel after release (G-10) */
    int64_t hold_max_ns;      /* longest time the loop was held at one go */
    int64_t turns;            /* times the loop came round to us */
    int64_t reserved[10];
};

/** Takes a snapshot. All counts are 0 when nothing is open. Thread: any. */
UVA_API void uva_runtime_get_stats(const struct uva_runtime *runtime,
                                   struct uva_runtime_stats *out);

#ifdef __cplusplus
}
#endif

#endif
