/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign producer: the part that our calls of its methods, its calls of our
 * handler and the loop share. The rules are in protocol/consumer_state, the
 * tasks wait in source/pending_tasks, the handler is source/foreign_handler.c,
 * the source is source/from_async.c.
 *
 *   start    NOT --- on an extra thread ---> IN --- it returns ---> BACK
 *
 *   peer     SILENT --- first callback ---> LIVE
 *              |                              | release, and its last callback
 *              | start has failed before      | has returned
 *              | any callback                 v
 *              +--------------------------> RELEASED --- no call of ours is in
 *              |                                         flight ---> CLOSED
 *              '--- stopped before start ------------------------------^
 *
 *   wish     WANTED --- stop ---> STOPPED, if the producer had ended by then,
 *                                 or ABANDONED
 *
 * free_ctx is called once: when the producer is CLOSED, or with the source if
 * that never begins, and the producer is SILENT then. A producer that is never
 * CLOSED keeps the object, and its ctx, for ever. After a stop the object
 * discards the batches that the producer still sends.
 *
 * References are held by the source, by the producer until it is RELEASED, and
 * by each of our threads inside its methods: no thread waits for another one
 * before it frees the object. */
#ifndef UVA_SOURCE_FOREIGN_H
#define UVA_SOURCE_FOREIGN_H

#include "protocol/consumer_state.h"
#include "source/pending_tasks.h"
#include "stream/discard_queue.h"
#include "stream/slots.h"
#include "stream/source.h"
#include "uvarrow/sources.h"

/* The three state machines of the picture above. */
enum uva__foreign_start {
    UVA__FOREIGN_START_NOT,
    UVA__FOREIGN_START_IN,
    UVA__FOREIGN_START_BACK
};

enum uva__foreign_peer {
    UVA__FOREIGN_PEER_SILENT,
    UVA__FOREIGN_PEER_LIVE,
    UVA__FOREIGN_PEER_RELEASED,
    UVA__FOREIGN_PEER_CLOSED
};

enum uva__foreign_wish {
    UVA__FOREIGN_WISH_WANTED,
    UVA__FOREIGN_WISH_STOPPED,
    UVA__FOREIGN_WISH_ABANDONED /* calls in flight count as stuck */
};

/* The failure of the producer. */
enum uva__foreign_failure {
    UVA__FOREIGN_FAILURE_NONE,
    UVA__FOREIGN_FAILURE_CUT_OFF, /* it has released without an end or error:
                                    the code of start may give the reason */
    UVA__FOREIGN_FAILURE_KNOWN    /* it is put into `events` */
};

/* The reports of the producer since the loop last collected them. */
struct uva__foreign_events {
    struct ArrowSchema schema;     /* gives, if live */
    ArrowDeviceType device_type;   /* with the schema */
    struct uva__metadata metadata; /* gives: the producer's */
    struct uva__list queue;        /* gives: pending tasks, in order */
    int64_t count;                 /* number of tasks in `queue` */
    struct uva__failure failure;   /* gives; code 0: no failure */
    bool ended;                    /* no task follows those in `queue` */
};

struct uva__foreign {
    struct uva__handler_slot slot; /* first: its memory, which stays valid for
                                      calls that come after release */
    struct uva__source source;
    struct ArrowAsyncDeviceStreamHandler handler; /* given to the producer */
    struct uva_async_source options;              /* owns its ctx */
    struct uva__pending_tasks pending_tasks;
    struct uva__atomic64 ctx_freed;        /* 1: free_ctx has been called */
    struct uva__atomic64 releasing_thread; /* the thread that was extracting
                                              when the producer has released, or
                                              0 */
    struct uva__job starter;               /* on extra threads: calls start */
    struct uva__job requester;   /* calls request when no callback will do so */
    struct uva__job canceller;   /* calls cancel */
    struct uva__job interrupter; /* calls interrupt */
    struct uva__discard last;    /* extracts the tasks that release has left;
                                    later calls free_ctx */
    struct uva__futex call_returned; /* raised when a method returns for which a
                                   terminal callback or the interrupter waits */
    int64_t limit_ms;                /* how long that callback waits */

    struct {                    /* the loop thread's alone */
        struct uva__list ready; /* pending tasks to be taken */
        int64_t taken;          /* batches taken, not yet stated to the rules */
        int64_t ordinal;        /* of the next task */
        struct uva__hold_up hold_up; /* stopped, and not closed */
    } loop;

    struct uva__lock lock; /* valid in quarantine, too */
    struct {
        struct uva__consumer_state
            state; /* the rules; valid in quarantine, too */
        enum uva__foreign_start start;
        enum uva__foreign_peer peer;
        enum uva__foreign_wish wish;
        enum uva__foreign_failure failure;
        struct uva__foreign_events events;   /* not collected by the loop */
        struct ArrowAsyncProducer *producer; /* borrows, until a terminal
                                                callback; or NULL */
        uint64_t requesting; /* the thread inside request, or 0 */
        uint64_t cancelling; /* the thread inside cancel, or 0 */
        int32_t inside;      /* our calls in flight, with interrupt, and the
                                extractions that CLOSED waits for */
        int32_t waiting;     /* threads that wait for a call to return */
        bool calls_overdue;  /* such a wait took longer than limit_ms */
        bool requester_out;  /* the requester job is in flight */
        bool canceller_submitted; /* the canceller job was submitted */
    } locked;
};

/* ---- life --------------------------------------------------------------- */

/* Gives its memory, cleared; NULL without memory, and unless
 * uva__slots_ensure() has succeeded. Thread: any. */
struct uva__foreign *uva__foreign_alloc(struct uva__rt *rt);

/* Initialises it; `source` and `options` are filled in. The source holds the
 * only reference. Thread: any. */
void uva__foreign_init(struct uva__foreign *foreign);

/* Fills in foreign->handler. Thread: any. */
void uva__foreign_handler_init(struct uva__foreign *foreign);

/* Frees it, after the last reference to its source. Thread: any. */
void uva__foreign_free(struct uva__source *source,
                       const struct uva_allocator *allocator);

/* Calls free_ctx, on an extra thread, and wakes the loop: once, as the producer
 * is CLOSED or was never started. Thread: any. */
void uva__foreign_free_ctx(struct uva__foreign *foreign);

/* ---- the source --------------------------------------------------------- */

/* Runs a job on an extra thread, which ends with uva__foreign_end_job(). The
 * workers are there, as a running stage keeps them. Thread: loop. */
void uva__foreign_submit(struct uva__foreign *foreign, struct uva__job *job);
void uva__foreign_end_job(struct uva__foreign *foreign);

/* Begins the call of start, or, after a stop, closes the producer, calls
 * free_ctx and drops the reference of the producer. Returns whether start is to
 * be called. Thread: an extra thread. */
bool uva__foreign_begin_start(struct uva__foreign *foreign);

/* Notes the code of start. Thread: an extra thread. */
void uva__foreign_started(struct uva__foreign *foreign, int code,
                          const struct uva_error *error);

/* Notes that `taken` pending tasks were handed on, gives the events since the
 * last call, and has batches requested or the producer cancelled. Thread: loop.
 */
void uva__foreign_poll(struct uva__foreign *foreign, int64_t taken,
                       struct uva__foreign_events *events);

/* Wants no more batches: discards the tasks in `ready` and the tasks not
 * collected, has the producer cancelled, and interrupted while start or request
 * is in progress. Thread: loop. */
void uva__foreign_stop(struct uva__foreign *foreign, int64_t taken,
                       struct uva__list *ready);

/* Notes a loss that ends the stream. Thread: any that holds a reference. */
void uva__foreign_note_lost(struct uva__foreign *foreign, int code);

/* The caller has extracted, or discarded, a task. Ends the call that
 * uva__foreign_release_below() has begun on this thread, if there is one.
 * Thread: any that holds a reference. */
void uva__foreign_extracted(struct uva__foreign *foreign);

/* ---- the handler -------------------------------------------------------- */

/* Whether the caller is a loop thread, which must not wait for extractions or,
 * unless on_loop is set, extract tasks of the producer. Thread: any. */
bool uva__foreign_is_on_loop(const struct uva__foreign *foreign);

/* Discards a pending task (takes it) on an extra thread. Thread: any. */
void uva__foreign_discard_later(struct uva__foreign *foreign,
                                struct uva__pending_task *task);

/* Extracts all tasks that the producer has not extracted, on an extra thread;
 * the producer is CLOSED after that. Thread: any. */
void uva__foreign_extract_later(struct uva__foreign *foreign);

/* Notes that the producer releases inside an extraction, which has to return
 * before the producer is CLOSED: a call that uva__foreign_extracted() ends.
 * Thread: as the extraction. */
void uva__foreign_release_below(struct uva__foreign *foreign);

/* Returns how many batches the caller has to request now; 0: no batches, and
 * there is no call to end. Thread: any. */
int64_t uva__foreign_request_begin_locked(struct uva__foreign *foreign);

/* A call of the producer has returned; `*thread` (or NULL) is the thread inside
 * it. Wakes the threads that wait for that. Thread: any. */
void uva__foreign_call_end_locked(struct uva__foreign *foreign,
                                  uint64_t *thread);

/* Returns whether the producer is CLOSED now; the one caller that gets true
 * calls uva__foreign_free_ctx(). Thread: any. */
bool uva__foreign_enter_closed_locked(struct uva__foreign *foreign);

/* In a terminal callback, after which no thread may be inside the producer's
 * methods: waits for the threads that are. Thread: the producer's. */
void uva__foreign_await_calls(struct uva__foreign *foreign);

/* ---- reports ------------------------------------------------------------ */

/* Counts and logs a rule that the producer broke; NULL: no rule. Thread: any.
 */
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

#endif
