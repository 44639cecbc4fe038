/* SPDX-License-Identifier: Apache-2.0 */
/* What to make of a producer's calls, lawful or not, and how much to ask it
 * for: the consumer's side of the protocol, as a pure state machine.
 *
 * Each callback of a handler is put to uva__consumer_enter(), which answers
 * with one verdict. What the program does comes in through the note functions,
 * what to do with the producer out of uva__consumer_want() and _must_cancel();
 * how the stream ends is in `end` and `code`. Nothing here calls, locks or
 * allocates. For every function: Thread: any one at a time. */
#ifndef UVA_CORE_CONSUMER_STATE_H
#define UVA_CORE_CONSUMER_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* Demand that is not counted any more (G-35). */
#define UVA__CONSUMER_UNBOUNDED INT64_MAX

/* Batches beyond the window that are still taken from a producer that does not
 * wait to be asked (AP-06); one more is too many (EOVERFLOW). */
#define UVA__CONSUMER_UNASKED 1024

/* ---- what happens, and what to make of it ------------------------------- */

/* The callbacks of a handler; the two uses of on_next_task are two. */
enum uva__consumer_event {
    UVA__EVENT_SCHEMA, /* on_schema */
    UVA__EVENT_TASK,   /* on_next_task with a task */
    UVA__EVENT_END,    /* on_next_task with NULL */
    UVA__EVENT_ERROR,  /* on_error */
    UVA__EVENT_RELEASE /* release */
};

/* One callback, as it begins. */
struct uva__consumer_call {
    enum uva__consumer_event event; /* which */
    int code; /* SCHEMA: 0, or the errno to refuse it with. TASK: 0, or EPROTO
                 if its function is NULL. ERROR: the code that came. Else 0. */
    const char *clause; /* static: the rule that `code` is for, AH-03, AH-07 or
                           AT-01; NULL if none is broken */
    bool in_request;    /* it runs inside a request() of ours, on one stack */
};

/* What to do in the callback. */
enum uva__consumer_action {
    UVA__ACTION_TAKE,    /* SCHEMA: move it out and go on; TASK: queue a copy;
                            END: note it; ERROR: copy its text and metadata;
                            RELEASE: extract what is queued, free. Return 0. */
    UVA__ACTION_DISCARD, /* TASK: extract to NULL; return 0 (G-18) */
    UVA__ACTION_REFUSE,  /* SCHEMA: release it if live; return `code` */
    UVA__ACTION_IGNORE   /* touch nothing; return 0 */
};

/* One verdict. */
struct uva__consumer_verdict {
    enum uva__consumer_action action; /* what to do */
    int code;                         /* to return from the callback */
    const char *clause; /* static: the rule that was broken; or NULL */
};

/* How the stream ends for the program. */
enum uva__consumer_end {
    UVA__CONSUMER_OPEN,      /* it has not */
    UVA__CONSUMER_COMPLETE,  /* all batches came */
    UVA__CONSUMER_FAILED,    /* by on_error, by a breach, or in our own hands */
    UVA__CONSUMER_CANCELLED, /* the program wanted no more */
    UVA__CONSUMER_REJECTED   /* a callback returned an error of its own */
};

/* ---- the state ---------------------------------------------------------- */

/* Everything known about one stream. Read freely; written only here. */
struct uva__consumer_state {
    enum uva__consumer_end end; /* the first; only COMPLETE can still change */
    int code;                   /* of `end`: 0 while open or complete */
    int error_code;             /* what on_error said, or 0 (ER-14) */
    int64_t window;             /* the most that may be asked for and held */
    int64_t refill;             /* ask when no more than this is left of it */
    int64_t outstanding;        /* asked for, not come */
    int64_t held;               /* taken, not handed on */
    int64_t offered;            /* tasks that came, wanted or not */
    int64_t breaches;           /* calls that broke a rule */
    const char *first_breach;   /* static: the rule the first of them broke */
    const char *refused;        /* static: the rule against what follows an
                                   error that a callback returned */
    int calls;                  /* callbacks running; more than 1: TH-01 */
    bool schema_seen;           /* on_schema was called */
    bool schema_taken;          /* and the schema kept */
    bool asked;                 /* request was called in this callback */
    bool cancel_told;           /* cancel was called */
    bool ended;                 /* NULL came */
    bool failed;                /* on_error came */
    bool released;              /* release came */
};

/* A handler not yet given away. Asks for and holds at most `window` batches (1
 * or more), and asks again when no more than `refill` are left; 0: half. */
void uva__consumer_init(struct uva__consumer_state *s, int64_t window,
                        int64_t refill);

/* ---- inside a callback -------------------------------------------------- */

/* Judges a callback that begins, and notes it; leave follows its work. */
struct uva__consumer_verdict
uva__consumer_enter(struct uva__consumer_state *s,
                    const struct uva__consumer_call *call);
void uva__consumer_leave(struct uva__consumer_state *s);

/* Notes that on_schema or on_next_task will return `code`, not 0, though the
 * verdict was to take: only release may follow (AH-08, AH-16). Ours never
 * refuse a task (G-18); one so refused must have been settled. */
void uva__consumer_note_refusal(struct uva__consumer_state *s,
                                enum uva__consumer_event event, int code);

/* ---- towards the producer ----------------------------------------------- */

/* Whether request and cancel may be called: from on_schema until the entry of
 * a terminal callback, or until we cancelled (AH-04, AP-24, G-09). */
bool uva__consumer_may_call(const struct uva__consumer_state *s);

/* How many batches to ask for now: in a callback after its work, and outside
 * once a batch was handed on. At most once in a callback; keeps one
 * request open wherever there is room. */
int64_t uva__consumer_want(const struct uva__consumer_state *s);

/* Notes that request(n) is about to be called, with `n` of 1 or more. */
void uva__consumer_note_request(struct uva__consumer_state *s, int64_t n);

/* Whether cancel is to be called, which is done once. */
bool uva__consumer_must_cancel(const struct uva__consumer_state *s);
void uva__consumer_note_cancel_told(struct uva__consumer_state *s);

/* ---- from the program --------------------------------------------------- */

/* Notes that a held batch was handed on or dropped (`code` 0), or was lost, to
 * a failed extraction or for lack of memory: that ends the stream (ER-12). */
void uva__consumer_note_settled(struct uva__consumer_state *s, int code);

/* Notes any other failure that ends the stream: `code`, not 0. */
void uva__consumer_note_fault(struct uva__consumer_state *s, int code);

/* Notes that the program wants no more: `code`, not 0, is why. Means nothing
 * once all there was has been handed on (G-26). */
void uva__consumer_note_cancel(struct uva__consumer_state *s, int code);

/* Whether the end can be told: it is known, and what was taken was handed on,
 * for which cancelled and rejected streams do not wait. */
bool uva__consumer_is_over(const struct uva__consumer_state *s);

#endif
