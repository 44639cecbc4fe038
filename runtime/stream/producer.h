/* SPDX-License-Identifier: Apache-2.0 */
/* An ArrowAsyncProducer: drives one handler on the loop thread with batches of
 * one source, as protocol/producer_state decides. Its maps are part of the
 * extraction of its tasks.
 *
 * The object is readable under both layouts that the specification has of the
 * struct: the metadata stands where either has it. Its memory is type-stable,
 * so a late request or cancel is counted and has no effect.
 *
 * Clauses: G-03, G-10. */
#ifndef UVA_STREAM_PRODUCER_H
#define UVA_STREAM_PRODUCER_H

#include "loop/loop.h"
#include "protocol/producer_state.h"
#include "stream/demand.h"
#include "stream/outstanding.h"
#include "stream/source.h"
#include "uvarrow/stages.h"

struct uva__deadlines;

/* One map of a producer, with the outline of its input. */
struct uva__mapping {
    struct uva__mapping *next;          /* owns: the map that runs after it */
    struct uva_map options;             /* owns its ctx */
    struct uva__outline *outline;       /* counts: of its input, once known */
    const struct uva__measure *measure; /* borrows: of that */
    struct uva__meter *meter;           /* borrows: the label's */
    int (*batch)(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                 struct uva_error *error); /* of `options`, or a function that
                                              times it */
    void *ctx;                             /* borrows: of that */
    struct uva__producer *producer;        /* borrows: its producer */
};

struct uva__inspector; /* see observe/observe.h */

/* Callbacks to the producer's creator, a static table. Each may be NULL. On the
 * loop. */
struct uva__producer_hooks {
    /* takes the array of a task, in place of an on_next_task that extracts it
     * at once: for our handler, and not called if a checker or an inspector
     * sees each call, or if extraction may fail. False: it was not taken, and
     * is offered as usual */
    bool (*take)(void *ctx, struct uva__task *task);
    /* the handler is about to be released */
    void (*releasing)(void *ctx);
    /* the handler was released; `ctx` is used for `emptied` alone then */
    void (*released)(void *ctx);
    /* the handler was released and has no task any more, of which a close has
     * taken back `revoked`: the last call. A task that is being extracted then
     * is not waited for if the close cannot wait */
    void (*emptied)(void *ctx, int64_t revoked);
    bool foreign; /* the handler is the user's: texts of errors are to have the
                     stream's name */
    bool reuses_slots; /* the handler is ours and gives its tasks to no other
                          code: the token of an extracted task is not used any
                          more, so its slot needs no quarantine */
    bool relayed; /* the handler hands the producer itself to another one, so a
                     check in front of it would not see all calls */
};

/* The event for which it waits between two runs. */
enum uva__producer_wait {
    UVA__PRODUCER_READY,   /* for neither, or it is not timed */
    UVA__PRODUCER_STARVED, /* for a batch: one is requested, and none ready */
    UVA__PRODUCER_IDLE     /* for a request: the opposite */
};

/* The part of a producer that only the loop thread uses, and its maker before.
 * No late call reaches it, so its memory is reused as soon as the producer is
 * over. */
struct uva__producer_loop {
    union {
        struct uva__producer *producer; /* borrows: it is its part */
        struct uva__link link;          /* while it is not used */
    };
    struct ArrowAsyncDeviceStreamHandler *handler; /* until released */
    const struct uva__producer_hooks *hooks;       /* static */
    void *hooks_ctx;                     /* borrows, until `emptied` */
    const struct uva__atomic64 *pausing; /* borrows: a word of the consumer, as
                                            stream/pausing.h has it; or NULL */
    struct uva__producer_state state;    /* the rules */
    struct uva__failure urgent;          /* reported before any batch */
    struct uva__metadata metadata;       /* owns: instead of the source's */
    struct uva__outstanding out;         /* tasks offered, and not over */
    int64_t revoked;                     /* taken back by a close */
    struct uva__timer drain;             /* limits the wait at the end */
    struct uva__hold_up hold_up;         /* held while tasks are out after the
                                            handler was released */
    struct uva__inspector *inspectors;   /* owns, until its end */
    int64_t limit;     /* batches at most; negative: no limit */
    uint64_t since_ns; /* it waits since; 0: not timed */
    uint64_t call_ns;  /* a foreign handler is called since; 0: not timed */
    int64_t ordinal;   /* of the batch offered last, if that is reported */
    bool ahead;        /* it began before its batches are needed, as
                          loop/permits.h has it */
    bool asks;         /* its handler requests a batch as soon as it has seen
                          the schema, unless the stream is over or paused then:
                          set before it begins */
    bool takes;        /* hooks->take is called */
    bool to_foreign;   /* hooks->foreign, and no handler of ours before it */
    bool cancel_seen;  /* a cancel was reported */
    bool running;      /* its run is on the stack */
    enum uva__producer_wait waits;
    int refusal; /* the code that the handler returned */
};

/* The part that any thread may reach: its memory rests in quarantine when the
 * producer is over. */
struct uva__producer {
    struct ArrowAsyncProducer abi; /* the handler's view */
    void *printed_private_data;    /* of the printed layout: always NULL */
    struct uva__atomic64 demand;   /* see stream/demand.h; from any thread */
    struct uva__wakeup wakeup;     /* posted after a change of the facts; counts
                                      the maker, posts and watched tasks */
    struct uva__link in_quarantine; /* in the quarantine */
    uint64_t retired_ns;            /* when its quarantine began */

    struct uva__rt *rt;               /* holds, until its end */
    struct uva__source *source;       /* counts, until its end */
    struct uva__mapping *maps;        /* owns, until its end */
    struct uva__deadlines *deadlines; /* owns, until its end; or NULL */
    struct uva__producer_loop *loop;  /* owns: the rest of it; NULL in
                                         quarantine */
    int32_t priority; /* of its source's jobs, set before it begins */
    bool asleep;      /* not begun, or over: a run has no effect; loop */
    bool expensive;   /* extraction may be expensive */
    bool lazy;        /* extraction may fail */
    uint8_t observed; /* bits UVA__OBSERVED_...: the reports */
    struct uva__meter *meter;    /* borrows, until its end: the source's */
    struct uva__outline *output; /* counts: after the maps, if no map changed
                                    it last, or sizes are measured at
                                    extraction; otherwise NULL */
};

/* Makes a producer that draws from `source`. On success it takes over the
 * caller's reference to that. NULL without memory. The maker has one reference
 * to the producer. Thread: any. */
struct uva__producer *uva__producer_new(struct uva__source *source);

/* Counts. The maker releases its reference to a producer that has not begun;
 * a producer that has begun releases that reference itself at its end. Thread:
 * any. */
void uva__producer_acquire(struct uva__producer *producer);
void uva__producer_release(struct uva__producer *producer);

/* Begins to drive `handler` (borrows, until its release returns). `hooks`
 * (may be NULL) get `ctx`. Thread: loop. */
void uva__producer_begin_driving(struct uva__producer *producer,
                                 struct ArrowAsyncDeviceStreamHandler *handler,
                                 const struct uva__producer_hooks *hooks,
                                 void *ctx);

/* Does that for the handler of a stage: with the priority of `below`, which
 * drives that stage, and ahead if that has begun ahead, or with `ahead`.
 * Thread: loop. */
void uva__producer_begin_above(struct uva__producer *producer,
                               struct ArrowAsyncDeviceStreamHandler *handler,
                               const struct uva__producer *below, bool ahead);

/* Its batches are needed from now on, if it has begun ahead. Thread: loop. */
void uva__producer_need(struct uva__producer *producer);

/* Has the loop run the producer, as facts of the source or the owner changed.
 * Thread: any that holds a reference. */
void uva__producer_wake(struct uva__producer *producer);

/* Runs the producer at once, unless a run is queued already. For the
 * wake-up of its source, which has no other work for it; the producer may be
 * gone afterwards. Thread: loop, inside a wake-up that is not its own. */
void uva__producer_run(struct uva__producer *producer);

/* Cancels for the handler's owner: calls the cancel of `seen`, the producer as
 * the handler sees it; while that may not be called, aborts instead. No effect
 * once it has reported an error, as its release follows.
 * Thread: loop. Clauses: AH-04. */
void uva__producer_quit(struct uva__producer *producer,
                        struct ArrowAsyncProducer *seen);

/* Reports `failure` (takes it) to the handler before any other batch, then
 * releases the handler. Thread: loop. */
void uva__producer_abort(struct uva__producer *producer,
                         struct uva__failure *failure);

/* Pauses or resumes all calls of the handler but on_schema and an urgent error.
 * Thread: loop. */
void uva__producer_pause(struct uva__producer *producer, bool paused);

/* Offers no batch while `word` (borrows, until the handler is released) is
 * paused; the end and an error are offered once no batch is left before them.
 * Whoever changes the word wakes the producer afterwards. Thread: loop. */
void uva__producer_pause_by(struct uva__producer *producer,
                            const struct uva__atomic64 *word);

/* Notes that the handler refused with `code`, for a proxy that calls it on
 * another thread. Thread: loop. */
void uva__producer_refuse(struct uva__producer *producer, int code);

/* Revokes all tasks that the handler has not extracted. Thread: loop.
 * Clauses: G-16. */
void uva__producer_revoke(struct uva__producer *producer);

/* Notes the end of a step that its source counts in `stopping`. The last one
 * wakes the producer. Thread: loop. */
void uva__producer_end_stop(struct uva__producer *producer);

/* Ends the wait at the end for tasks that other threads extract.
 * Thread: loop. */
void uva__producer_end_drain(struct uva__producer *producer);

/* Takes over a filled slot that will not be offered. Thread: loop. */
void uva__producer_drop_task(struct uva__producer *producer,
                             struct uva__task *task);

/* Whether ready batches may be offered between two turns of the host: a turn
 * would cost system calls, and no user code is called for that. Does not
 * change. Thread: loop. */
bool uva__producer_is_direct(const struct uva__producer *producer);

/* Requests `n` batches, 0 or more, of such a producer between two turns, for a
 * handler that calls no user code now. Ready batches are offered before it
 * returns. The loop is woken only if more are wanted, and no other event will
 * wake it. Thread: loop. */
void uva__producer_request_direct(struct uva__producer *producer, int64_t n);

/* How many batches it has offered. Thread: loop. */
static inline int64_t
uva__producer_offered(const struct uva__producer *producer)
{
    return uva__counter_get(&producer->meter->loop.batches);
}

/* Gives a free slot of this producer; NULL without memory. Thread: loop. */
struct uva__task *uva__producer_take_task(struct uva__producer *producer);

/* The failure that its handler gets, or got, as an error. Thread: loop. */
static inline const struct uva__failure *
uva__producer_failure(const struct uva__producer *producer)
{
    return producer->loop->urgent.code != 0 ? &producer->loop->urgent
                                            : &producer->source->failure;
}

#endif
