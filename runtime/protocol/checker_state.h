/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the async stream as a pure state machine. Each call that begins
 * or ends is recorded, and the rules that it breaks are returned. No function
 * here calls out, locks or allocates. Thread: any one at a time, for every
 * function. */
#ifndef UVA_PROTOCOL_CHECKER_STATE_H
#define UVA_PROTOCOL_CHECKER_STATE_H

#include "protocol/active_calls.h"
#include "protocol/clauses.h"

/* The largest number of rules that one call can break. */
enum { UVA__FINDINGS_MAX = 12 };

/* The rules that a call broke. */
struct uva__findings {
    int count; /* of them */
    struct {
        enum uva__rule rule; /* which */
        int64_t number;      /* for the "#" of its text */
    } all[UVA__FINDINGS_MAX];
};

/* All facts about one stream. All zeroes has not begun. Read freely; written
 * only by the functions here. */
struct uva__checker_state {
    uint64_t found[4]; /* bits of the rules found broken, to find each once */
    uint64_t granted;  /* batches requested, all together, saturating */
    uint64_t granted_early; /* requested before cancel had returned */
    uint64_t largest;       /* the largest request */
    int64_t requests;       /* calls of request with a number above 0 */
    int64_t offers;         /* tasks offered */
    int64_t failures;       /* extractions that failed */
    int64_t extracting;     /* extractions under way */
    uint64_t canceller;     /* the thread that called cancel */
    bool schema_delivered;  /* on_schema was called */
    bool schema_refused;    /* on_schema returned an error */
    bool task_refused;      /* on_next_task returned an error */
    bool ended;             /* NULL came */
    bool failed;            /* on_error came */
    bool releasing;         /* release was entered */
    bool released;          /* the consumer's release has returned */
    bool requested_outside; /* a request was made outside of callbacks */
    bool bad_request;       /* request(n < 1) while the stream was open */
    bool bad_returned;      /* that has returned, or will before its callback */
    bool cancelled;         /* cancel was entered */
    bool cancel_returned;   /* cancel has returned */
    bool cancel_known;      /* a callback has returned since then (*) */
    bool failure_known; /* a callback has returned since an extraction failed
                           (*) */
    bool bad_known; /* a callback has returned since a bad request did (*) */
};
/* (*) The producer cannot be blamed for ignoring a fact of one thread while it
 * decides on another thread about its next step; it can be once a callback has
 * returned to it. */

/* Adds a broken rule; beyond the limit it is dropped. */
void uva__findings_add(struct uva__findings *findings, enum uva__rule rule,
                       int64_t number);

/* Adds a rule unless it was found before; _observed adds all rules of `seen`.
 */
void uva__checker_state_find(struct uva__checker_state *p,
                             struct uva__findings *findings,
                             enum uva__rule rule, int64_t number);
static inline void uva__checker_state_observed(struct uva__checker_state *p,
                                               const struct uva__findings *seen,
                                               struct uva__findings *findings)
{
    for (int i = 0; i < seen->count; i++)
        uva__checker_state_find(p, findings, seen->all[i].rule,
                                seen->all[i].number);
}

/* Records a callback that begins at `place`. Returns false if it came after
 * release: then no function may be called. */
bool uva__checker_state_begin(struct uva__checker_state *p, enum uva__call call,
                              const struct uva__call_context *context,
                              struct uva__findings *findings);

/* Records the `code` and `message` (may be NULL; borrowed) of on_error, on
 * `thread`. */
void uva__checker_state_error(struct uva__checker_state *p, int code,
                              const char *message, uint64_t thread,
                              struct uva__findings *findings);

/* Records that a callback has returned `code`; with `calls_beside`, while the
 * consumer was inside the producer on another thread. */
void uva__checker_state_end(struct uva__checker_state *p, enum uva__call call,
                            int code, bool calls_beside,
                            struct uva__findings *findings);

/* Records a request of `n`, or a cancel, at `place`, on `thread`. Returns false
 * if the producer may be gone and must not be called: from release on; for
 * request, which has no effect then, from the end or the error on. */
bool uva__checker_state_request(struct uva__checker_state *p, int64_t n,
                                const struct uva__call_context *context,
                                struct uva__findings *findings);
bool uva__checker_state_cancel(struct uva__checker_state *p,
                               const struct uva__call_context *context,
                               uint64_t thread, struct uva__findings *findings);

/* Record that cancel, and that a request of `n`, has returned. */
void uva__checker_state_cancelled(struct uva__checker_state *p);
static inline void uva__checker_state_requested(struct uva__checker_state *p,
                                                int64_t n)
{
    p->bad_returned |= n < 1;
}

/* Record that an extraction begins, and that it ends, failed or not. */
static inline void uva__checker_state_extract(struct uva__checker_state *p)
{
    p->extracting++;
}

static inline void uva__checker_state_extracted(struct uva__checker_state *p,
                                                bool failed)
{
    p->extracting--;
    p->failures += failed;
}

/* Records that no more calls will come. `accepted`: the producer has taken the
 * handler; `held` tasks were not extracted, of which `first` is the oldest. */
void uva__checker_state_conclude(struct uva__checker_state *p, bool accepted,
                                 int64_t held, int64_t first,
                                 struct uva__findings *findings);

#endif
