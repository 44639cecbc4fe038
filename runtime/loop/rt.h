/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime core: the reference-counted half of a runtime, which any thread
 * may use at any time, also after the runtime has detached from its loop. It is
 * counted twice: a reference is for objects that may call functions of the
 * host, a hold only keeps the memory. The core holds the mailbox and the
 * descriptor that wake the loop, the allocator, the log, and the counters of
 * work in flight. The other half, which only the loop thread uses, is
 * loop/loop.c. */
#ifndef UVA_LOOP_RT_H
#define UVA_LOOP_RT_H

#include "base/fork_page.h"
#include "base/inflight.h"
#include "base/platform.h"
#include "base/thread.h"
#include "exec/lane.h"
#include "loop/mailbox.h"
#include "loop/permits.h"
#include "loop/stats.h"
#include "uvarrow/runtime.h"

struct uva__rt;
/* Data that a file of a higher layer attaches to the rt: the first member of
 * its struct. */
struct uva__rt_data {
    /* frees it; the last call, any thread */
    void (*free)(struct uva__rt *rt, struct uva__rt_data *data);
    /* the loop detaches and runs no wake-up any more; on the loop. NULL: no
     * action */
    void (*detach)(struct uva__rt *rt, struct uva__rt_data *data);
};

/* The kinds of attached data, at most one of each kind, in the order in which
 * they are detached and freed. */
enum uva__rt_data_kind {
    UVA__RT_DATA_CHECKS,   /* checks in quarantine: stream/check_hop.c */
    UVA__RT_DATA_DISCARDS, /* the discard queue: stream/discard_queue.c */
    UVA__RT_DATA_DRIVEN,   /* handlers in use: sink/drive.c */
    UVA__RT_DATA_OUTLINE,  /* the schema of the last stream: stream/outline.c */
    UVA__RT_DATA_SLOTS,    /* tasks and producers: stream/slots.c */
    UVA__RT_DATA_KINDS
};

/* The reports on streams besides results: bits of uva__rt.observed. */
enum {
    UVA__OBSERVED_LOG = 1,     /* each step of the protocol, in the log */
    UVA__OBSERVED_MEASURE = 2, /* times, in the statistics */
    UVA__OBSERVED_TRACE = 4,   /* trace events */
    UVA__OBSERVED_INSPECT = 8  /* of one producer: it has inspectors */
};

struct uva__hold_up;

/* The functions of a hold-up, on the loop. Each may be NULL. */
struct uva__hold_up_ops {
    /* the close has ended all streams and waits for the object; called once.
     * Must not drop a hold-up before it returns */
    void (*close)(struct uva__hold_up *hold_up);
    /* the loop detaches from the rt without the object; called once */
    void (*detach)(struct uva__hold_up *hold_up);
};

/* An object that outlives its stream and that a close has to wait for, but not
 * longer than `close_limit_ms`. All zeroes: not held. */
struct uva__hold_up {
    const struct uva__hold_up_ops *ops; /* static; NULL: no function */
    struct uva__hold_up *next, *before; /* borrow: the rt's list */
    enum {
        UVA__HOLD_UP_FREE, /* not in that list */
        UVA__HOLD_UP_HELD,
        UVA__HOLD_UP_CLOSING /* `close` was called */
    } state;
};

/* The fields of the first part never change once the runtime is open. */
struct uva__rt {
    struct uva_allocator allocator; /* for the runtime's whole memory */
    struct uva_log log;             /* without `write`, `level` is 0 */
    struct uva__fork_page alive;    /* cleared in a forked child */
    struct uva__wake_fd wake_fd;    /* watched by the loop */
    bool checked;                   /* every hop has a checker */
    uint8_t observed;            /* bits UVA__OBSERVED_..., but for INSPECT */
    bool traces_to_file;         /* `trace` is of observe/trace_file.h */
    struct uva_trace trace;      /* owns its ctx, through free_ctx */
    void (*on_quiet)(void *ctx); /* called without a reference left; or NULL */
    void *quiet_ctx;             /* borrows */
    int64_t memory_bytes;        /* limit of all windows; 0: no limit */
    int64_t close_limit_ms; /* a close waits so long for calls that may never
                               return */

    struct uva__atomic64 refs;      /* objects that may call the host: the open
                                       runtime, streams, sources, jobs, private
                                       workers */
    struct uva__atomic64 holds;     /* users of the memory: all `refs` as one,
                                       producers, checks, the user */
    struct uva__inflight user_refs; /* user-visible objects; closed: shutdown */
    struct uva__inflight streams;   /* started and not done; closed: draining */
    struct uva__inflight jobs_in_flight; /* closed: no job may begin */
    struct uva__atomic64 jobs_returning; /* jobs that are returning, and calls
                                            of the log */
    struct uva__atomic64 streams_made;   /* in all: gives them numbers */
    struct uva__atomic64 devices_met;    /* one bit for each device type */
    struct uva__stats stats;
    struct uva__jobs jobs; /* the workers' side of this runtime */
    struct uva__atomic_ptr
        data[UVA__RT_DATA_KINDS]; /* owns; uva__rt_get_data() */

    struct uva__mailbox mailbox;      /* wake-ups that threads have posted */
    struct uva__atomic64 turn;        /* the thread inside a turn, or 0 */
    struct uva__atomic64 loop_thread; /* the loop thread, if known, or 0 */
    struct uva__wakeup closer;        /* posted by a close */
    struct uva__wakeup drainer; /* posted by a drain, its last stream, and the
                                   last task */
    struct uva__wakeup lanes;   /* posted by `jobs`: loop/lane_news.c */

    struct {                         /* loop thread only */
        struct uva__list queue;      /* wake-ups to be run */
        struct uva_runtime *runtime; /* borrows; NULL once detached */
        bool turned;                 /* the host makes each turn */
        int64_t keepalive;           /* reasons to keep the loop alive */
        int64_t streams;             /* streams and cut turns, which are reasons
                                        unless ... */
        bool streams_let_go;         /* ... the user lets them go */
        int32_t quantum;             /* batches in one run of a wake-up */
        int32_t spent;               /* batches in this turn */
        int32_t budget;              /* most batches in a turn */
        struct uva__hold_up *hold_ups; /* borrows: a close waits for these */
    } loop;
};

/* Makes one with one reference. 0; ENOMEM, or a code of the system.
 * Thread: any. */
UVA_MUST_CHECK int uva__rt_new(const struct uva_runtime_options *options,
                               struct uva__rt **out);

/* Counts a reference, for a caller that has one already. The last release gives
 * up the hold that all references share, and then calls `on_quiet`. try: for a
 * caller that has only a hold; false once the last reference was released.
 * Thread: any. */
struct uva__rt *uva__rt_acquire(struct uva__rt *rt);
UVA_MUST_CHECK bool uva__rt_try_acquire(struct uva__rt *rt);
void uva__rt_release(struct uva__rt *rt);

/* Holds the memory, for an object that calls no function of the host; the last
 * unhold frees it, on that thread. Thread: any. */
void uva__rt_hold(struct uva__rt *rt);
void uva__rt_unhold(struct uva__rt *rt);

/* The runtime is open: from now on the last release calls the options' on_quiet
 * and the free_ctx of the trace. Thread: the opener. */
void uva__rt_opened(struct uva__rt *rt,
                    const struct uva_runtime_options *options);

/* Gives the data of one kind, which `make` makes at first need; NULL without
 * memory. Thread: any. */
struct uva__rt_data *
uva__rt_get_data(struct uva__rt *rt, enum uva__rt_data_kind kind,
                 struct uva__rt_data *(*make)(struct uva__rt *rt));

/* Has a close wait for `hold_up` (borrows) until it is dropped or the loop
 * detaches; no effect if it waits already. Drop: no effect if it does not.
 * Thread: loop. */
void uva__rt_hold_up(struct uva__rt *rt, struct uva__hold_up *hold_up,
                     const struct uva__hold_up_ops *ops);
void uva__rt_drop_hold_up(struct uva__rt *rt, struct uva__hold_up *hold_up);

/* Calls `close` of all hold-ups. Returns whether the close has to wait for one.
 * Thread: loop. */
bool uva__rt_is_held_up(struct uva__rt *rt);

/* False in a forked child: it lacks the threads and has no descriptor of its
 * own, so a child must not use any runtime of its parent. Thread: any. */
static inline bool uva__rt_is_alive(const struct uva__rt *rt)
{
    return uva__atomic64_peek(rt->alive.word) != 0;
}

/* Whether the caller is inside a turn of this runtime: then it may use the
 * fields of the loop. Thread: any. */
static inline bool uva__rt_in_turn(const struct uva__rt *rt)
{
    return uva__atomic64_peek(&rt->turn) == uva__thread_self();
}

/* Whether the caller is the loop thread, in a turn or not. Thread: any. */
bool uva__rt_on_loop(const struct uva__rt *rt);

/* Whether the caller must not wait: it is the loop thread of this runtime, is
 * inside a turn of any runtime, or runs a compute job. Thread: any. */
bool uva__rt_must_not_wait(const struct uva__rt *rt);

/* Brackets a turn on the calling thread, of whatever runtime; turns of several
 * runtimes may nest. depth: how many turns the thread is in. Thread: any. */
void uva__turn_begin(void);
void uva__turn_end(void);
int uva__turn_depth(void);

/* Wakes the loop to run `wakeup`, later, once or more often. The caller holds a
 * reference to `rt`. Returns whether that took a system call. Thread: any. */
bool uva__rt_wake(struct uva__rt *rt, struct uva__wakeup *wakeup);

/* Posts a wake-up that uva__mailbox_claim() has claimed; for the two functions
 * beside this only. Returns whether that took a system call. Thread: any. */
bool uva__rt_post(struct uva__rt *rt, struct uva__wakeup *wakeup);

/* As uva__rt_wake(), for a caller that is in no turn of this runtime, or does
 * not care that the wake-up goes through the mailbox. Thread: any. */
static inline bool uva__rt_wake_outside(struct uva__rt *rt,
                                        struct uva__wakeup *wakeup)
{
    return uva__rt_is_alive(rt) && uva__mailbox_claim(wakeup) &&
           uva__rt_post(rt, wakeup);
}

/* Moves posted wake-ups to the run queue. Thread: loop. */
void uva__rt_collect(struct uva__rt *rt);

/* Closes the mailbox, and releases the wake-ups in it and in the run queue: no
 * wake-up is run after this. Thread: loop. */
void uva__rt_close(struct uva__rt *rt);

/* Counts one more object that a close has to wait for: false once the runtime
 * is closing. leave takes it off again. Thread: any; leave: loop. */
UVA_MUST_CHECK bool uva__rt_enter(struct uva__rt *rt);
void uva__rt_leave(struct uva__rt *rt);
bool uva__rt_is_closing(struct uva__rt *rt);

/* The same for a stream that starts, and for a stream that ends: false once the
 * runtime is draining or closing. Thread: any; end: loop. */
UVA_MUST_CHECK bool uva__rt_stream_begin(struct uva__rt *rt);
void uva__rt_stream_end(struct uva__rt *rt);

/* Has a drain look again, if no stream is open and it waits for the tasks of
 * foreign handlers alone. Thread: loop. */
void uva__rt_drain_on(struct uva__rt *rt);

/* Whether a stream may start now. Thread: any. */
bool uva__rt_takes_streams(struct uva__rt *rt);

/* Whether the mailbox is closed: no posted wake-up will be run any more.
 * Thread: any. */
static inline bool uva__rt_is_closed(const struct uva__rt *rt)
{
    return uva__mailbox_is_closed(&rt->mailbox);
}

/* Brackets the life of a job that works for this runtime, from before its
 * submit: begin takes a reference to `rt`, end releases it, as the job's last
 * act. begin returns false once the workers were released: then it has counted
 * no job. Thread: any. */
UVA_MUST_CHECK bool uva__rt_job_begin(struct uva__rt *rt);
void uva__rt_job_end(struct uva__rt *rt);

/* Makes sure that jobs of `lane`, or uncapped jobs, will be run: as
 * uva__lane_ensure() and uva__lane_ensure_uncapped(), but ESHUTDOWN once the
 * workers were released. Thread: any. */
UVA_MUST_CHECK int uva__rt_ensure_lane(struct uva__rt *rt, enum uva_lane lane);
UVA_MUST_CHECK int uva__rt_ensure_uncapped(struct uva__rt *rt);

/* Counts the threads that exist now, unless the workers were released.
 * Thread: any. */
void uva__rt_count_threads(struct uva__rt *rt, int64_t *compute,
                           int64_t *blocking);

/* Counts the threads that are written off now, unless the workers were
 * released. Thread: any. */
int64_t uva__rt_count_written_off(struct uva__rt *rt);

/* Releases the workers, now or with the last job that ends; no job may begin
 * any more. Thread: loop, or before any job was begun. */
void uva__rt_retire(struct uva__rt *rt);

/* Whether the log takes records of `level`: to be asked before a record is put
 * together, or on a path that every batch takes. Thread: any. */
static inline bool uva__rt_logs(const struct uva__rt *rt,
                                enum uva_log_level level)
{
    return rt->log.level >= level;
}

/* Writes one line to the log, if it takes records of `level`, until the runtime
 * has closed. `stream` and `clause` may be NULL. Thread: any. */
void uva__rt_log(struct uva__rt *rt, enum uva_log_level level,
                 const char *stream, const char *clause, const char *format,
                 ...) UVA_PRINTF(5, 6);

/* Writes the last line of the log, which comes after the mailbox was closed.
 * Thread: loop. */
void uva__rt_log_last(struct uva__rt *rt, const char *message);

/* Counts a rule that a peer broke, and logs it. Thread: any. */
void uva__rt_breach(struct uva__rt *rt, const char *stream, const char *clause,
                    const char *what);

#endif
