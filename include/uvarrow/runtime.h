/* SPDX-License-Identifier: Apache-2.0 */
/* Open and close a runtime: the loop on which streams are delivered, and the
 * worker threads behind it. Streams are described in stream.h.
 *
 * One function opens a runtime in four ways:
 *   your libuv loop   uva_runtime_open(loop, NULL, &rt, &error)
 *   a thread of ours  uva_runtime_open(NULL, NULL, &rt, &error)
 *   any other loop    uva_runtime_open(NULL, &(struct uva_runtime_options){
 *                         .no_thread = true}, &rt, &error), then watch
 *                     uva_runtime_fd(rt) and call uva_runtime_turn(rt)
 *   a loop that       uva_runtime_open() with .no_thread and .post, which
 *   cannot watch a    must make your loop call uva_runtime_turn(rt) later
 *   descriptor
 * "The loop thread" below is the thread that runs that loop. */
#ifndef UVARROW_RUNTIME_H
#define UVARROW_RUNTIME_H

#include "uvarrow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct uva_runtime; /* delivers streams on one loop */
struct uva_workers; /* threads, shared by any number of runtimes */
struct uva_job;     /* a unit of work for an executor */
struct uv_loop_s;   /* libuv's uv_loop_t; <uv.h> is not needed here */

/** No time limit, for functions that document it. */
#define UVA_FOREVER ((int64_t)-1)

/* ---- workers ------------------------------------------------------------ */

/** The kind of work that a worker does. */
enum uva_lane {
    UVA_LANE_COMPUTE, /* extraction, maps, filters: uses a core, never blocks */
    UVA_LANE_BLOCKING /* get_next, foreign producers: may block for ever */
};

/** Runs the library's jobs on your threads. */
struct uva_executor {
    /* takes `job`, and later calls uva_job_run() on it, once, on a thread
     * suitable for this lane, never inside this call. Returns 0, or an errno if
     * the job was not taken. Called by any thread. If all threads of a lane
     * block, its streams make no progress: the blocking lane must be able to
     * add threads. */
    int (*submit)(void *ctx, enum uva_lane lane, struct uva_job *job);
    void *ctx; /* borrows, as long as the workers exist */
};

/** The number of threads, and how they start. */
struct uva_workers_options {
    const char *name;         /* borrows for the call: part of thread names */
    int32_t compute_threads;  /* maximum; 0: one per core */
    int32_t blocking_threads; /* maximum; 0: 64 */
    int32_t idle_ms; /* an idle thread exits after this time; 0: 10 s */
    struct uva_allocator allocator; /* zeroes: the C library's */
    struct uva_executor executor;   /* zeroes: the library's own threads */
    /* the first call on each new thread of the library; NULL: none */
    void (*thread_begin)(void *ctx, enum uva_lane lane);
    /* the last call on each such thread; NULL: none */
    void (*thread_end)(void *ctx, enum uva_lane lane);
    void *ctx; /* borrows, as long as the workers exist */
    void *reserved[4];
};

/** Creates workers that several runtimes share. No thread starts before there
 * is work. A single runtime does not need this: it creates its own workers.
 * `options` may be NULL. Returns 0 and gives `out`; EINVAL, ENOMEM.
 * Thread: any. */
UVA_API UVA_MUST_CHECK int
uva_workers_new(const struct uva_workers_options *options,
                struct uva_workers **out, struct uva_error *error);

/** Drops the caller's reference. The threads exit once the last runtime that
 * uses them has closed. NULL is allowed.
 * Thread: any. */
UVA_API void uva_workers_free(struct uva_workers *workers);

/** Runs a job that your executor accepted, and takes it.
 * Thread: any, but not inside submit(). */
UVA_API void uva_job_run(struct uva_job *job);

/* ---- open and close ----------------------------------------------------- */

/** Options of a runtime. */
struct uva_runtime_options {
    const char *name; /* borrows for the call: used in logs and traces */
    struct uva_workers *workers;    /* adds a reference; NULL: makes its own */
    struct uva_allocator allocator; /* zeroes: the C library's */
    struct uva_log log;             /* zeroes: see struct uva_log */
    int8_t check;   /* protocol checker on every hop: 1 on, -1 off, 0 as set in
                       the environment (UVA_CHECK=1) */
    bool no_thread; /* with `loop` NULL: start no thread, and let the host call
                       uva_runtime_turn() */
    int32_t turn_batches; /* batches delivered before other work of the loop
                             runs; 0: 256 */
    int32_t turn_us; /* time spent before other work of the loop runs; 0: 500 */
    unsigned uv_version; /* set to uv_version() to detect a second copy of libuv
                            in the process; 0: not checked */
    /* with no_thread, for hosts that can neither share a loop nor watch a
     * descriptor: called on a thread of the library when there is work for
     * uva_runtime_turn(), at most once before the next turn. It must only
     * arrange for uva_runtime_turn() to be called later, on the loop thread.
     * NULL: watch uva_runtime_fd(). */
    void (*post)(void *post_ctx);
    void *post_ctx; /* borrows, until the runtime is closed */
    /* what all windows of the runtime may hold together; 0: no limit. It never
     * stops a stream that has no batch ready for its consumer: such a stream
     * may take in one at a time, however full the budget is; the excess is
     * counted. */
    int64_t memory_bytes;
    int32_t sources_open; /* blocking sources and task sources open at one time;
                             0: no limit; others wait, in order */
    void *reserved[2];
};

/** Opens a runtime.
 *
 * With `loop`: embedded in that loop. Adds a poll, a timer, an idle and a check
 * handle, never sets handle->data, and keeps the loop alive only while a stream
 * runs. Call it on the thread that runs the loop.
 *
 * Without: the runtime has its own loop, which runs on its own thread or, with
 * `no_thread`, inside uva_runtime_turn().
 *
 * Returns 0 and gives `out`, to be closed by uva_runtime_close() (and, if it
 * has its own thread, uva_runtime_join()). EINVAL for an invalid option or a
 * foreign libuv; ENOMEM; EPERM in a forked child; the error of the system if a
 * handle or thread could not be created. `options` may be NULL.
 * Thread: any. */
UVA_API UVA_MUST_CHECK int
uva_runtime_open(struct uv_loop_s *loop,
                 const struct uva_runtime_options *options,
                 struct uva_runtime **out, struct uva_error *error);

/** Called when a runtime is fully detached: none of its handles is on the loop,
 * none of its streams is open, and uv_loop_close() can succeed. From now on it
 * calls none of your functions, except the free_ctx of streams that you still
 * hold (when you release them) and of foreign calls that are still blocked (if
 * they ever return). */
typedef void uva_closed_fn(void *ctx);

/** Starts to close a runtime. From now on streams fail to start (ESHUTDOWN).
 * Running streams may continue for `grace_ms` (0: not at all; UVA_FOREVER: to
 * their end) and are then cancelled, each with its on_done. Last, `fn` (may be
 * NULL) is called on the loop thread; after it `runtime` is freed. Close waits
 * at most one second for calls that are running on workers. Foreign calls that
 * block for longer do not delay it: they are abandoned on their workers. Tasks
 * that a foreign handler holds do not delay it either: extracting one after
 * this returns ECANCELED.
 *
 * If you passed a loop, keep it running until then. May be called in any
 * callback. Returns 0; EALREADY if it was closing (the shorter grace applies,
 * `fn` is not called).
 * Thread: any.
 * Clauses: G-16. */
UVA_API int uva_runtime_close(struct uva_runtime *runtime, int64_t grace_ms,
                              uva_closed_fn *fn, void *ctx);

/** Ends a runtime that has its own thread: lets its streams finish, closes it
 * if that has not begun, waits for the thread to exit, and frees it. It is the
 * last call on every such runtime. To stop sooner, call uva_runtime_close()
 * first. Returns 0; EDEADLK on the loop thread; EINVAL for a runtime without a
 * thread. Blocks, for ever if a stream never ends or is never resumed.
 * Thread: any, except the loop thread and workers. */
UVA_API int uva_runtime_join(struct uva_runtime *runtime);

/* ---- hosting without libuv ---------------------------------------------- */

/** Returns the file descriptor of a runtime opened with `no_thread`, -1 for
 * other runtimes. It is readable exactly while uva_runtime_turn() has work to
 * do, including timers that are due and calls posted between turns, so a host
 * needs to watch nothing else. It is level-triggered and does not change until
 * the runtime is closed. Do not read, write or close it.
 * Thread: any. */
UVA_API int uva_runtime_fd(const struct uva_runtime *runtime);

/** Does all work that is due, without waiting, and makes the callbacks. The
 * thread of the first call is the loop thread from then on. Returns whether the
 * runtime is still open: false once, when it has just closed.
 * Thread: loop; not from a callback. */
UVA_API bool uva_runtime_turn(struct uva_runtime *runtime);

/* ---- everything else ---------------------------------------------------- */

/** A function to call on the loop thread. */
typedef void uva_post_fn(void *ctx);

/** Calls `fn` later on the loop thread, in the order of posting; never inside
 * this call. If posted on the loop thread, it keeps a loop of yours alive until
 * then; if posted elsewhere, it cannot. Returns 0; ENOMEM; ESHUTDOWN, and `fn`
 * will not be called.
 * Thread: any. */
UVA_API UVA_MUST_CHECK int uva_runtime_post(struct uva_runtime *runtime,
                                            uva_post_fn *fn, void *ctx);

/** Returns whether it is called on the loop thread.
 * Thread: any. */
UVA_API bool uva_runtime_on_loop(const struct uva_runtime *runtime);

/** Returns the libuv loop, yours or the runtime's own, for handles of your own
 * on it: close them before the runtime. Borrows.
 * Thread: loop. */
UVA_API struct uv_loop_s *uva_runtime_loop(const struct uva_runtime *runtime);

/** A snapshot of the counters of a runtime.
 * Clauses: G-10. */
struct uva_runtime_stats {
    int64_t streams_open;     /* started and not finished */
    int64_t streams_held;     /* streams to which a user holds a reference */
    int64_t tasks_held;       /* passed to handlers and not extracted */
    int64_t threads_compute;  /* current number */
    int64_t threads_blocking; /* current number, with those beyond the limit
                                 for jobs that must not wait for a thread */
    int64_t calls_stuck;      /* foreign calls abandoned and still running */
    int64_t peer_breaches;    /* rules that peers broke, and we tolerated */
    int64_t late_calls;       /* calls to request or cancel after release */
    int64_t hold_max_ns;      /* the longest time that one turn took */
    int64_t turns;            /* turns of the loop that ran this runtime */
    int64_t memory_held;   /* bytes that windows hold or have asked for; counted
                              with memory_bytes only */
    int64_t memory_excess; /* the most by which that was above memory_bytes */
    int64_t reserved[8];
};

/** Takes a snapshot of the counters. All are 0 when nothing is open.
 * Thread: any. */
UVA_API void uva_runtime_get_stats(const struct uva_runtime *runtime,
                                   struct uva_runtime_stats *out);

#ifdef __cplusplus
}
#endif

#endif
