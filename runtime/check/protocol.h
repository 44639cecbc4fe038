/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the async stream, as a pure state machine: each call that begins
 * or ends is put to it, and the rules thereby broken come out. Nothing here
 * calls, locks or allocates. For every function: Thread: any one at a time. */
#ifndef UVA_CHECK_PROTOCOL_H
#define UVA_CHECK_PROTOCOL_H

#include "check/clauses.h"
#include "check/epochs.h"

/* Most rules that one call can break. */
enum { UVA__FINDINGS_MAX = 12 };

/* The rules that a call broke. */
struct uva__findings {
    int count; /* of them */
    struct {
        enum uva__rule rule; /* which */
        int64_t number;      /* what its text has a place for */
    } all[UVA__FINDINGS_MAX];
};

/* Everything known about one stream. All zeroes is one that was not begun. Read
 * freely; written only by the functions here. */
struct uva__protocol {
    uint64_t found[4];      /* bits of the rules found broken: each once */
    uint64_t granted;       /* batches asked for, all together, saturating */
    uint64_t granted_early; /* before cancel had returned */
    uint64_t largest;       /* request */
    int64_t requests;       /* calls of request that asked for some */
    int64_t offers;         /* tasks that came */
    int64_t failures;       /* extractions that failed */
    int64_t extracting;     /* extractions under way */
    uint64_t canceller;     /* the thread that called cancel */
    bool schema_told;       /* on_schema was called */
    bool schema_refused;    /* and returned an error */
    bool task_refused;      /* on_next_task returned an error */
    bool ended;             /* NULL came */
    bool failed;            /* on_error came */
    bool releasing;         /* release was entered */
    bool released;          /* the consumer's release has returned */
    bool asked_outside;     /* a request came from outside of callbacks */
    bool bad_request;       /* request(n < 1) while the stream was open */
    bool cancelled;         /* cancel was entered */
    bool cancel_returned;   /* and has returned */
    bool cancel_known;      /* and a callback has returned since (*) */
    bool failure_known;     /* likewise: an extraction failed before that */
};
/* (*) What happens on one thread while the producer decides on another what to
 * do next cannot be held against it; what happened before a callback returned
 * to it can. */

/* Adds a rule that was broken; the most are kept. */
void uva__findings_add(struct uva__findings *findings, enum uva__rule rule,
                       int64_t number);

/* The same, unless it was found before; and for all that were `seen`. */
void uva__protocol_find(struct uva__protocol *p, struct uva__findings *findings,
                        enum uva__rule rule, int64_t number);
static inline void uva__protocol_observed(struct uva__protocol *p,
                                          const struct uva__findings *seen,
                                          struct uva__findings *findings)
{
    for (int i = 0; i < seen->count; i++)
        uva__protocol_find(p, findings, seen->all[i].rule, seen->all[i].number);
}

/* A callback begins at `place`. False if it came after release: then nothing
 * may be called. */
bool uva__protocol_begin(struct uva__protocol *p, enum uva__call call,
                         const struct uva__place *place,
                         struct uva__findings *findings);

/* on_error says `code` and `message` (may be NULL; borrowed), on `thread`. */
void uva__protocol_error(struct uva__protocol *p, int code, const char *message,
                         uint64_t thread, struct uva__findings *findings);

/* A callback has returned `code`; with `calls_beside`, while the consumer was
 * inside the producer on another thread. */
void uva__protocol_end(struct uva__protocol *p, enum uva__call call, int code,
                       bool calls_beside, struct uva__findings *findings);

/* request or cancel is called at `place`, on `thread`; `n` of request. False
 * if the producer may be gone, and must not be called: from release on, and
 * for request, which means nothing then, from the end or the error on. */
bool uva__protocol_request(struct uva__protocol *p, int64_t n,
                           const struct uva__place *place,
                           struct uva__findings *findings);
bool uva__protocol_cancel(struct uva__protocol *p,
                          const struct uva__place *place, uint64_t thread,
                          struct uva__findings *findings);

/* cancel has returned. */
void uva__protocol_cancelled(struct uva__protocol *p);

/* An extraction begins, and ends well or not. */
static inline void uva__protocol_extract(struct uva__protocol *p)
{
    p->extracting++;
}

static inline void uva__protocol_extracted(struct uva__protocol *p, bool failed)
{
    p->extracting--;
    p->failures += failed;
}

/* Nothing more will come. `accepted`: the producer has had the handler; `held`
 * tasks were not extracted, of which `first` came first. */
void uva__protocol_conclude(struct uva__protocol *p, bool accepted,
                            int64_t held, int64_t first,
                            struct uva__findings *findings);

#endif
