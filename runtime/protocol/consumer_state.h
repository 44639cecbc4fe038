/* SPDX-License-Identifier: Apache-2.0 */
/* How a consumer must treat each call of its producer, whether the producer
 * keeps the rules or not, and how much it must request: the consumer's side of
 * the protocol, as a pure state machine.
 *
 * Each callback of a handler goes to uva__consumer_state_enter(), which returns
 * one verdict. Acts of the program go in through the note functions;
 * uva__consumer_state_want() and _must_cancel() decide on calls to the
 * producer; `end` and `code` are how the stream ends. No function here calls
 * out, locks or allocates. For every function: Thread: any one at a time. */
#ifndef UVA_PROTOCOL_CONSUMER_STATE_H
#define UVA_PROTOCOL_CONSUMER_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* Demand that is not counted any more. Clauses: G-35. */
#define UVA__CONSUMER_UNBOUNDED INT64_MAX

/* Batches beyond the window that are still accepted from a producer that sends
 * without a request; one more ends the stream with EOVERFLOW. Clauses: AP-06.
 */
#define UVA__CONSUMER_UNREQUESTED 1024

/* ---- events and verdicts ------------------------------------------------ */

/* The callbacks of a handler; on_next_task counts as two. */
enum uva__consumer_event {
    UVA__EVENT_SCHEMA, /* on_schema */
    UVA__EVENT_TASK,   /* on_next_task with a task */
    UVA__EVENT_END,    /* on_next_task with NULL */
    UVA__EVENT_ERROR,  /* on_error */
    UVA__EVENT_RELEASE /* release */
};

/* One callback that begins. */
struct uva__consumer_call {
    enum uva__consumer_event event; /* which callback */
    int code; /* SCHEMA: 0, or the errno to refuse it with. TASK: 0, or EPROTO
                 if its function is NULL. ERROR: its code. Else 0. */
    const char *clause; /* static: the clause that `code` is for, or NULL.
                           Clauses: AH-03, AH-07, AT-01. */
    bool in_request;    /* it is called inside our request() */
};

/* The act of the callback. */
enum uva__consumer_action {
    UVA__ACTION_TAKE,    /* SCHEMA: move it out; TASK: queue a copy;
                            END: note it; ERROR: copy its text and metadata;
                            RELEASE: extract queued tasks, free. Return 0. */
    UVA__ACTION_DISCARD, /* TASK: extract to NULL; return 0. Clauses: G-18. */
    UVA__ACTION_REFUSE,  /* SCHEMA: release it if live; return `code` */
    UVA__ACTION_IGNORE   /* return 0, without any access */
};

/* One verdict. */
struct uva__consumer_verdict {
    enum uva__consumer_action action; /* the act */
    int code;                         /* to return from the callback */
    const char *clause; /* static: the clause that was broken; or NULL */
};

/* How the stream ends for the program. */
enum uva__consumer_end {
    UVA__CONSUMER_OPEN,      /* it has not ended */
    UVA__CONSUMER_COMPLETE,  /* all batches came */
    UVA__CONSUMER_FAILED,    /* by on_error, a breach, or our own error */
    UVA__CONSUMER_CANCELLED, /* the program wanted no more */
    UVA__CONSUMER_REJECTED   /* a callback returned its own error */
};

/* ---- the state ---------------------------------------------------------- */

/* The last call of the producer, tasks apart; it never goes back. */
enum uva__consumer_heard {
    UVA__HEARD_NOTHING,
    UVA__HEARD_SCHEMA,
    UVA__HEARD_END,
    UVA__HEARD_ERROR,
    UVA__HEARD_RELEASE
};

/* All facts about one stream. Any file may read it; only this one writes. */
struct uva__consumer_state {
    enum uva__consumer_heard heard;
    enum uva__consumer_end end; /* the first; only COMPLETE can still change */
    int code;                   /* of `end`: 0 while open or complete */
    int error_code;           /* the code of on_error, or 0. Clauses: ER-14. */
    int64_t window;           /* most batches requested and held */
    int64_t refill;           /* request when no more than this is left of it */
    int64_t outstanding;      /* batches requested that have not come */
    int64_t held;             /* batches taken and not passed on */
    int64_t offered;          /* tasks that came, wanted or not */
    int64_t breaches;         /* calls that broke a rule */
    const char *first_breach; /* static: the clause that the first one broke */
    const char *refused;      /* static: the clause against calls after an
                                 error that a callback returned */
    int calls; /* callbacks running; at most 1 is allowed. Clauses: TH-01. */
    bool requested;        /* request was called in this callback */
    bool cancel_delivered; /* cancel was called */
};

/* Sets up a handler that no producer has so far. It requests and holds at most
 * `window` batches (1 or more), and requests again when no more than `refill`
 * are left; 0: half. */
void uva__consumer_state_init(struct uva__consumer_state *s, int64_t window,
                              int64_t refill);

/* ---- inside a callback -------------------------------------------------- */

/* Classifies a callback that begins, and notes it; leave follows its work. */
struct uva__consumer_verdict
uva__consumer_state_enter(struct uva__consumer_state *s,
                          const struct uva__consumer_call *call);
void uva__consumer_state_leave(struct uva__consumer_state *s);

/* Notes that on_schema or on_next_task will return `code`, not 0, though the
 * verdict was TAKE: only release may follow. Our own handlers never refuse a
 * task; a task that is refused must have been settled.
 * Clauses: AH-08, AH-16, G-18. */
void uva__consumer_state_note_refusal(struct uva__consumer_state *s,
                                      enum uva__consumer_event event, int code);

/* ---- towards the producer ----------------------------------------------- */

/* Whether request and cancel may be called: from on_schema until the entry of
 * a terminal callback, or until we cancelled. Clauses: AH-04, AP-24, G-09. */
bool uva__consumer_state_may_call(const struct uva__consumer_state *s);

/* How many batches to request now: in a callback after its work, and outside
 * callbacks when a batch was passed on. At most one request in a callback, as
 * some producers queue requests in a few slots and deadlock; and always an open
 * request while there is room, as others notice the end only then.
 * Clauses. */
int64_t uva__consumer_state_want(const struct uva__consumer_state *s);

/* Notes that request(n) is about to be called, with `n` of 1 or more. */
void uva__consumer_state_note_request(struct uva__consumer_state *s, int64_t n);

/* Whether to call cancel, which happens once. */
bool uva__consumer_state_must_cancel(const struct uva__consumer_state *s);
void uva__consumer_state_note_cancel_delivered(struct uva__consumer_state *s);

/* ---- from the program --------------------------------------------------- */

/* Notes that a held batch was passed on or dropped (`code` 0), or was lost, to
 * a failed extraction or for lack of memory: that ends the stream. Clauses:
 * ER-12. */
void uva__consumer_state_note_settled(struct uva__consumer_state *s, int code);

/* Notes any other failure that ends the stream: `code`, not 0. */
void uva__consumer_state_note_fault(struct uva__consumer_state *s, int code);

/* Notes that the program cancels, for the reason `code`, not 0. Has no effect
 * once all batches were passed on. Clauses: G-26. */
void uva__consumer_state_note_cancel(struct uva__consumer_state *s, int code);

/* Whether the end can be reported: it is known, and all batches taken were
 * passed on; cancelled and rejected streams do not wait for the latter. */
bool uva__consumer_state_is_over(const struct uva__consumer_state *s);

#endif
