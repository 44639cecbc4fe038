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

/* The producer cannot be blamed for ignoring a fact of one thread while it
 * decides on another thread about its next step. Once a callback has returned
 * to it, it can be: the fact is known then. */

/* Cancel; later calls of it change nothing. */
enum uva__cancel_state {
    UVA__CANCEL_NOT_CALLED = 0,
    UVA__CANCEL_ENTERED,  /* the stream may end early from here on */
    UVA__CANCEL_RETURNED, /* no task is due that was not requested before */
    UVA__CANCEL_KNOWN     /* a callback has returned since then */
};

/* A request(n < 1) while the stream was open and not cancelled, which the
 * producer must answer by an error; not by an end that it decided on before. */
enum uva__bad_request_state {
    UVA__BAD_REQUEST_NONE = 0, /* or an end came first */
    UVA__BAD_REQUEST_ENTERED,
    UVA__BAD_REQUEST_RETURNED, /* or will return before its callback */
    UVA__BAD_REQUEST_KNOWN     /* a callback has returned since then */
};

/* The release, after which no call is passed on. */
enum uva__release_state {
    UVA__RELEASE_NOT_CALLED = 0,
    UVA__RELEASE_ENTERED, /* or none can come: the handler was taken back */
    UVA__RELEASE_RETURNED /* the consumer's release has returned */
};

/* The callback that the consumer answered with an error. */
enum uva__refusal {
    UVA__REFUSAL_NONE = 0,
    UVA__REFUSAL_OF_TASK,  /* or of the end */
    UVA__REFUSAL_OF_SCHEMA /* the graver one: it stays */
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
    enum uva__cancel_state cancel;
    enum uva__bad_request_state bad_request;
    enum uva__release_state release;
    enum uva__refusal refusal;
    bool schema_delivered;  /* on_schema was called */
    bool ended;             /* NULL came; an error may follow */
    bool failed;            /* on_error came */
    bool failure_known;     /* an extraction failed, and a callback has returned
                               since then */
    bool requested_outside; /* a request was made outside of callbacks */
};

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
    if (n < 1 && p->bad_request == UVA__BAD_REQUEST_ENTERED)
        p->bad_request = UVA__BAD_REQUEST_RETURNED;
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

/* Records that the handler was taken back, or that no more calls will come:
 * later ones are not passed on. Returns whether release was never called. */
static inline bool uva__checker_state_close(struct uva__checker_state *p)
{
    const bool open = p->release == UVA__RELEASE_NOT_CALLED;

    if (open)
        p->release = UVA__RELEASE_ENTERED;
    return open;
}

/* Records that no more calls will come. `accepted`: the producer has taken the
 * handler; `held` tasks were not extracted, of which `first` is the oldest. */
void uva__checker_state_conclude(struct uva__checker_state *p, bool accepted,
                                 int64_t held, int64_t first,
                                 struct uva__findings *findings);

#endif
