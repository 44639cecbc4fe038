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
#include "uvarrow/trace.h"

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
    /* most threads of each lane that are written off at one time; 0: 256. A
     * thread is written off, and another one may take its place, when its
     * stream was cancelled, the foreign code that it is in does not return, and
     * other work waits for a thread. Beyond the maximum that work waits, and
     * one warning is logged. A thread that returns late ends its job, and then
     * goes on or exits. Threads of an executor cannot be replaced: if such a
     * call has not returned after a second, one warning is logged. */
    int32_t stuck_threads;
    /* added to the nice value that the caller of uva_workers_new() has, for
     * threads of the blocking lane, from -20 to 19: positive values leave the
     * processors to other threads, such as the loop's. A negative value that
     * the system does not allow has no effect but a warning in the log of each
     * runtime that uses the workers */
    int32_t blocking_nice;
    /* in the same way, for threads of the compute lane */
    int32_t compute_nice;
    /* how long a thread that finds no more work looks for some before it
     * sleeps, in microseconds; 0: not at all. Work that comes meanwhile needs
     * no system call, and no processor has to wake up; in return each thread
     * uses a processor for so long each time it runs out of work. For streams
     * on two processors that are idle otherwise */
    int32_t spin_us;
    struct uva_allocator allocator; /* zeroes: the C library's */
    struct uva_executor executor;   /* zeroes: the library's own threads */
    /* the first call on each new thread of the library; NULL: none. Should be
     * short: until it returns, no other thread of the lane is started or
     * woken */
    void (*thread_begin)(void *ctx, enum uva_lane lane);
    /* the last call on each such thread; NULL: none */
    void (*thread_end)(void *ctx, enum uva_lane lane);
    void *ctx; /* borrows, as long as the workers exist */
    void *reserved[3];
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
                            with another version in the process; 0: not
                            checked */
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
    bool measure; /* count times in the statistics of streams; otherwise these
                     are 0, and no clock is read for them */
    /* receives trace events; zeroes: UVA_TRACE=file.json in the environment
     * writes them there, for Perfetto and `uvarrow timeline`, otherwise none.
     * See docs/timeline.md */
    struct uva_trace trace;
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
 * calls none of your functions, except the free_ctx of streams that you hold
 * and never started (when you release them) and of streams with a call that is
 * still blocked (if it ever returns, and once you have released them). */
typedef void uva_closed_fn(void *ctx);

/** Starts to close a runtime. From now on streams fail to start (ESHUTDOWN).
 * Running streams may continue for `grace_ms` (0: not at all; UVA_FOREVER: to
 * their end) and are then cancelled, each with its on_done. Last, `fn` (may be
 * NULL) is called on the loop thread; after it `runtime` is freed. Close waits
 * at most one second for calls that are running on workers, and for extractions
 * that are running on any thread. Foreign calls that block for longer do not
 * delay it: they are abandoned on their threads. Tasks that a foreign handler
 * holds do not delay it either: they are revoked, and extracting one after this
 * returns ECANCELED and calls none of your functions.
 *
 * If you passed a loop, keep it running until then. May be called in any
 * callback. Returns 0; EALREADY if it was closing (the shorter grace applies,
 * `fn` is not called).
 * Thread: any.
 * Clauses: G-16. */
UVA_API int uva_runtime_close(struct uva_runtime *runtime, int64_t grace_ms,
                              uva_closed_fn *fn, void *ctx);

/** Begins a graceful end: from now on streams fail to start (ESHUTDOWN), built
 * ones included, and running streams continue to their end. After `deadline_ms`
 * (0: at once; UVA_FOREVER: never) the rest is cancelled with ETIMEDOUT. When
 * no stream is open, `fn` (may be NULL) is called on the loop thread, never
 * inside this call; the loop is kept alive until then, from this call on if it
 * is made on the loop thread. The runtime stays open, so that what was
 * delivered can still be written, posted or waited for; close it afterwards. If
 * it is closed before, the grace of the close counts as well, and `fn` is
 * called before that of the close. Borrows `ctx` until `fn` is called.
 * docs/shutdown.md describes the end of a server.
 *
 * Returns 0; EALREADY if it was called before (the shorter deadline applies,
 * `fn` is not called); ESHUTDOWN once the runtime is closing; EINVAL if
 * `runtime` is NULL or `deadline_ms` is negative and not UVA_FOREVER; EPERM in
 * a forked child.
 * Thread: any. */
UVA_API UVA_MUST_CHECK int uva_runtime_drain(struct uva_runtime *runtime,
                                             int64_t deadline_ms,
                                             uva_closed_fn *fn, void *ctx);

/** Ends a runtime that has its own thread: lets its streams finish, closes it
 * if that has not begun, waits for the thread to exit, and frees it. It is the
 * last call on every such runtime. To stop sooner, call uva_runtime_close()
 * first. Returns 0; EDEADLK on the loop thread; EINVAL for a runtime without a
 * thread. Blocks, for ever if a stream never ends or is never resumed.
 * Thread: any, except the loop thread and workers. */
UVA_API int uva_runtime_join(struct uva_runtime *runtime);

/* ---- the memory of a runtime, and its very last call -------------------- */

/** Counts one more user of the runtime's memory, so that a binding may still
 * call uva_runtime_post() from a late free_ctx; that returns ESHUTDOWN once the
 * runtime has closed. After the close only this, uva_runtime_release(),
 * uva_runtime_post(), uva_runtime_on_loop(), uva_runtime_get_stats() and
 * uva_runtime_on_quiet() are valid. Returns the runtime, to be released; NULL
 * for NULL.
 * Thread: any. */
UVA_API struct uva_runtime *uva_runtime_acquire(struct uva_runtime *runtime);

/** Drops what uva_runtime_acquire() counted; the last drop frees the memory, if
 * the runtime has closed. NULL is allowed. Without effect in a forked child.
 * Thread: any. */
UVA_API void uva_runtime_release(struct uva_runtime *runtime);

/** Calls `fn` once when the runtime has closed, every function of a source,
 * stage, consumer, log and post has returned, and every free_ctx has been
 * called, those of streams that are still held included: from then on nothing
 * of yours is called. Not counted are shared workers with what belongs to them,
 * and arrays and tasks that other code holds: their release still calls the
 * library, which then calls your allocator. So do uva_runtime_join() and
 * uva_runtime_release(), if they come later.
 *
 * `fn` is called on any thread, which may be one of the library's, or inside a
 * call of yours that releases the last stream: signal in it, and unload
 * elsewhere. That may be long after the callback of uva_runtime_close(), or
 * never, if a foreign call never returns. Borrows `ctx` until then. Call this
 * before the close, or while you hold the runtime by uva_runtime_acquire().
 * Returns 0; EBUSY if it was called before; EINVAL if `runtime` or `fn` is
 * NULL; EAGAIN if all is quiet already and no thread can be created for the
 * call; EPERM in a forked child.
 * Thread: any. */
UVA_API UVA_MUST_CHECK int uva_runtime_on_quiet(struct uva_runtime *runtime,
                                                void (*fn)(void *ctx),
                                                void *ctx);

/* ---- hosting without libuv ---------------------------------------------- */

/** Returns the file descriptor of a runtime opened with `no_thread`, -1 for
 * other runtimes. It is readable exactly while uva_runtime_turn() has work to
 * do, including timers that are due, calls posted between turns and handles
 * started as uva_runtime_loop() describes, so a host needs to watch nothing
 * else. It is level-triggered and does not change until
 * the runtime is closed. Do not read, write or close it.
 * Thread: any. */
UVA_API int uva_runtime_fd(const struct uva_runtime *runtime);

/** Does all work that is due, without waiting, and makes the callbacks. The
 * thread of the first call is the loop thread from then on. Until then it is
 * the thread that opened the runtime, which therefore may not wait for streams.
 * Returns whether the runtime is still open: false once, when it has just
 * closed.
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
 * on it: close them before the runtime. Borrows. With `no_thread`, no callback
 * of libuv notices a handle that is started, changed or closed between two
 * turns: call this each time before you do so. It updates the loop's time and
 * makes the descriptor readable (or calls `post`) once, and the turn that
 * follows finds the handle.
 * Thread: loop. */
UVA_API struct uv_loop_s *uva_runtime_loop(struct uva_runtime *runtime);

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
    int64_t late_calls;       /* calls after release: request and cancel of a
                                 driven handler, callbacks of a producer */
    int64_t hold_max_ns;      /* the longest time that one turn took, with the
                                 time in which the system ran other threads */
    int64_t turns;            /* turns of the loop that ran this runtime */
    int64_t hold_max_cpu_ns;  /* the most CPU time that one turn used; may
                                 count up to 0.5 ms before the turn */
    int64_t threads_stuck;    /* threads of the workers, also of those that are
                                 shared, that are written off: see the option
                                 stuck_threads */
    int64_t memory_held;      /* bytes that windows hold or have asked for;
                                 counted with memory_bytes only */
    int64_t memory_excess; /* the most by which that was above memory_bytes */
    int64_t reserved[6];
};

/** Takes a snapshot of the counters. All are 0 when nothing is open.
 * Thread: any. */
UVA_API void uva_runtime_get_stats(const struct uva_runtime *runtime,
                                   struct uva_runtime_stats *out);

/* ---- turns ----------------------------------------------------------------
 */

/** A limit that sources share: at most so many of them are open at one time,
 * and more of them wait for their turn, in order and without a thread. */
struct uva_turns;

/** Makes turns for `count` sources: see uva_blocking_source.turns. One that has
 * waited for `wait_ms` fails with ETIMEDOUT (0: it waits without a limit).
 * Returns 0 and gives `*out`, with one reference for the caller; EINVAL for a
 * count or time that is not possible, or if `runtime` or `out` is NULL; ENOMEM;
 * EPERM in a forked child.
 * Thread: any. */
UVA_API UVA_MUST_CHECK int uva_turns_new(struct uva_runtime *runtime,
                                         int32_t count, int64_t wait_ms,
                                         struct uva_turns **out,
                                         struct uva_error *error);

/** Drops the reference; sources keep theirs. NULL is allowed.
 * Thread: any. */
UVA_API void uva_turns_release(struct uva_turns *turns);

#ifdef __cplusplus
}
#endif

#endif
