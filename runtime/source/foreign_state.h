/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign producer: what our calls of its methods, its calls of our handler
 * and the loop share. The rules are in protocol/consumer_state, the tasks wait
 * in source/pending_tasks; the calls are in source/foreign_calls.c, the handler
 * is in source/foreign_handler.c.
 *
 * References are held by the source, by the producer until its release, and by
 * every thread of ours that is inside one of its methods: no thread waits for
 * another one before it frees the object. The producer is done once it has
 * released the handler and no call into it, start included, is in flight: then
 * free_ctx is called. A producer that is never done keeps the object, and its
 * ctx, for ever. */
#ifndef UVA_SOURCE_FOREIGN_STATE_H
#define UVA_SOURCE_FOREIGN_STATE_H

#include "protocol/consumer_state.h"
#include "source/pending_tasks.h"
#include "stream/slots.h"
#include "stream/source.h"
#include "uvarrow/stream.h"

/* What the producer has reported since the loop last collected it. */
struct uva__foreign_events {
    struct ArrowSchema schema;     /* gives, if live */
    ArrowDeviceType device_type;   /* with the schema */
    struct uva__metadata metadata; /* gives: the producer's */
    struct uva__list queue;        /* gives: pending tasks, in order */
    int64_t count;                 /* number of tasks in `queue` */
    struct uva__failure failure;   /* gives; code 0: none */
    bool ended;                    /* no task follows those in `queue` */
};

struct uva__foreign {
    struct uva__handler_slot slot; /* first: its memory, which stays valid for
                                      calls that come after release */
    struct uva__source source;
    struct ArrowAsyncDeviceStreamHandler handler; /* given to the producer */
    struct uva_async_source options;              /* owns its ctx */
    struct uva__pending_tasks pending_tasks;      /* owns: pending tasks */
    struct uva__atomic64 closed;           /* 1: free_ctx has been called */
    struct uva__atomic64 releasing_thread; /* the thread that was extracting
                                              when the producer has released, or
                                              0 */
    struct uva__wakeup wakeup;   /* posted when `events` have changed */
    struct uva_job starter;      /* extra threads, one per job: calls start */
    struct uva_job requester;    /* calls request when no callback will do so */
    struct uva_job canceller;    /* calls cancel */
    struct uva_job interrupter;  /* calls interrupt */
    struct uva_job discarder;    /* discards tasks that are not wanted */
    struct uva_job closer;       /* extracts what release has left */
    struct uva_job free_ctx_job; /* calls free_ctx */
    struct uva__futex left;      /* raised when a method returns for which a
                                    terminal callback waits */
    int64_t limit_ms;            /* how long that callback waits */

    struct {                    /* the loop thread's alone */
        struct uva__list ready; /* pending tasks to be taken */
        int64_t taken;          /* of these, not reported to the rules so far */
        int64_t ordinal;        /* of the next task */
        bool started;           /* the producer holds a reference */
        bool draining;          /* a close waits a while for the producer */
    } loop;

    struct uva__lock lock; /* valid in quarantine, too */
    struct {
        struct uva__consumer_state state;    /* the rules; valid as the lock */
        struct uva__foreign_events events;   /* not collected by the loop */
        struct uva__list unwanted;           /* owns: pending tasks to be
                                                discarded by `discarder` */
        struct ArrowAsyncProducer *producer; /* borrows, until a terminal
                                                callback; or NULL */
        uint64_t requesting;   /* the thread inside request, or 0 */
        uint64_t cancelling;   /* the thread inside cancel, or 0 */
        int32_t inside;        /* our calls in flight: start, request, cancel */
        int32_t waiting;       /* callbacks that wait for request and cancel */
        bool calls_abandoned;  /* such a wait took longer than limit_ms */
        bool requester_out;    /* the requester job is in flight */
        bool canceller_out;    /* the canceller job was submitted */
        bool discarder_out;    /* the discarder job is in flight */
        bool starting;         /* a thread is inside start */
        bool start_returned;   /* start was called, and has returned */
        bool touched;          /* the producer has called the handler */
        bool ended_silently;   /* released without an end or error: what start
                                  returns may give the reason */
        bool failure_reported; /* a failure was put into `events` */
        bool stopped;          /* the source wants no more batches */
        bool abandoned;     /* the source stopped before the producer ended */
        bool peer_released; /* the producer's reference was dropped */
        bool ctx_free_due;  /* one thread was chosen to call free_ctx */
    } locked;
};

/* Initialises what the calls and the handler share; `source` and `options` are
 * filled in. The source holds the only reference. Thread: any. */
void uva__foreign_init_state(struct uva__foreign *foreign);

/* Gives its memory, cleared; NULL without memory, and unless
 * uva__slots_ensure() has succeeded. Thread: any. */
struct uva__foreign *uva__foreign_alloc(struct uva__rt *rt);

/* For uva__wakeup_ops: frees what it owns, and puts its memory into quarantine,
 * as the producer may still call the handler. Thread: any. */
void uva__foreign_free(struct uva__wakeup *wakeup);

/* Counts references; the last release frees the object. Thread: any. */
void uva__foreign_acquire(struct uva__foreign *foreign);
void uva__foreign_release(struct uva__foreign *foreign);

/* Returns whether the producer is done now; the one caller that gets true calls
 * one of the two below. Thread: any. */
bool uva__foreign_is_closed_locked(struct uva__foreign *foreign);

/* Calls free_ctx and wakes the loop, once; `_async`: on an extra thread,
 * since the caller may be the producer itself, or the loop.
 * Thread: an extra thread; any. */
void uva__foreign_free_ctx(struct uva__foreign *foreign);
void uva__foreign_free_ctx_async(struct uva__foreign *foreign);

/* Runs a job on an extra thread, which ends with uva__foreign_end_job(). False
 * once the workers were released: then the job does not run. Thread: any. */
UVA_MUST_CHECK bool uva__foreign_run_job(struct uva__foreign *foreign,
                                         struct uva_job *job);
void uva__foreign_end_job(struct uva__foreign *foreign);

/* Whether the caller is a loop thread, which must neither wait for the producer
 * nor, unless on_loop is set, extract its tasks. Thread: any. */
bool uva__foreign_is_on_loop(const struct uva__foreign *foreign);

/* Discards pending tasks (takes them) on an extra thread. Thread: any. */
void uva__foreign_discard_async(struct uva__foreign *foreign,
                                struct uva__list *tasks);

/* Extracts all tasks that the producer has left, on an extra thread; free_ctx
 * is called after that. Thread: any. */
void uva__foreign_close_async(struct uva__foreign *foreign);

/* Counts and logs a rule that the producer broke; NULL: none. Thread: any. */
void uva__foreign_report_breach(struct uva__foreign *foreign,
                                const char *clause);

/* Logs a step between us and the producer, with a number unless that is
 * negative. No lock is held. Thread: any. */
void uva__foreign_log_step(struct uva__foreign *foreign, const char *step,
                           int64_t n);
static inline void uva__foreign_log(struct uva__foreign *foreign,
                                    const char *step, int64_t n)
{
    if (uva__rt_logs(foreign->source.rt, UVA_LOG_DEBUG))
        uva__foreign_log_step(foreign, step, n);
}

/* Puts a failure into the events; the first one counts. `_text` makes the error
 * of a text and, unless that is NULL, a clause; `_cut_off` is for a producer
 * that released without an end or error. Thread: any. */
void uva__foreign_fail(struct uva__foreign *foreign, int code,
                       const struct uva_error *error, const char *metadata);
void uva__foreign_fail_text(struct uva__foreign *foreign, int code,
                            const char *text, const char *clause);
void uva__foreign_fail_cut_off(struct uva__foreign *foreign);

/* Counts a call of ours into the producer; and that it has returned, which
 * wakes the callbacks that wait for that. Thread: any. */
void uva__foreign_frame_begin_locked(struct uva__foreign *foreign);
void uva__foreign_frame_end_locked(struct uva__foreign *foreign);

/* Notes that the producer releases inside an extraction of ours, which has to
 * return before the producer is done. Thread: the one that extracts. */
void uva__foreign_release_below(struct uva__foreign *foreign);

/* Notes that the caller has extracted, or discarded, one of the tasks.
 * Thread: any that holds a reference. */
void uva__foreign_extracted(struct uva__foreign *foreign);

/* Returns how many batches the caller has to request now; 0: none, and there
 * is no end to note. `_end`: request has returned. Thread: any. */
int64_t uva__foreign_request_begin_locked(struct uva__foreign *foreign);
void uva__foreign_request_end_locked(struct uva__foreign *foreign);

/* Returns whether a thread is inside a call that interrupt is for. Thread: any.
 */
bool uva__foreign_is_blocked_locked(const struct uva__foreign *foreign);

/* Waits for those calls, `limit_ms` at most. Thread: an extra thread. */
void uva__foreign_await_blocked(struct uva__foreign *foreign, int64_t limit_ms);

/* In a terminal callback, after which no thread may be inside the producer's
 * methods: waits for those that are. Thread: the producer's. */
void uva__foreign_await_calls(struct uva__foreign *foreign);

#endif
