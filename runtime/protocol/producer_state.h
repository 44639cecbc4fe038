/* SPDX-License-Identifier: Apache-2.0 */
/* The next step of a producer: the protocol's rules, as a pure state machine.
 *
 * Facts go in through the note functions; uva__producer_state_next() returns
 * one decision. No function here calls a handler, takes a lock, allocates, or
 * depends on a loop: stream/producer.c carries out its decisions. */
#ifndef UVA_PROTOCOL_PRODUCER_STATE_H
#define UVA_PROTOCOL_PRODUCER_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* Demand that is not counted any more. Clauses: G-35. */
#define UVA__UNBOUNDED INT64_MAX

/* One move, in the order in which a healthy stream makes them. */
enum uva__producer_move {
    UVA__MOVE_WAIT,         /* wait for the next fact */
    UVA__MOVE_OFFER_SCHEMA, /* call on_schema */
    UVA__MOVE_OFFER_TASK,   /* call on_next_task with the next batch */
    UVA__MOVE_OFFER_END,    /* call on_next_task with NULL */
    UVA__MOVE_OFFER_ERROR,  /* call on_error */
    UVA__MOVE_RELEASE       /* call release; the last move */
};

/* How far the calls of the handler have come. No phase returns. */
enum uva__producer_phase {
    UVA__PHASE_OPENING, /* on_schema has not been called */
    UVA__PHASE_FLOWING, /* it has: batches follow */
    UVA__PHASE_ENDED,  /* the closing NULL has been delivered; an extraction may
                          still fail */
    UVA__PHASE_FAILED, /* on_error has been called: from here on only release
                          follows */
    UVA__PHASE_CANCELLED, /* the consumer wants no more */
    UVA__PHASE_REFUSED,   /* the consumer returned an error from a callback */
    UVA__PHASE_RELEASED   /* release has been called */
};

/* The calls that the handler does not accept now. */
enum uva__producer_paused {
    UVA__PAUSED_NOT,     /* it accepts each */
    UVA__PAUSED_BATCHES, /* a batch waits, and what follows the batches at hand
                            behind it */
    UVA__PAUSED_ALL      /* all wait, and the end, too */
};

/* All facts about one stream. A stream that has not begun: all zeroes, but for
 * `left` (see init). */
struct uva__producer_state {
    int64_t demand;    /* batches requested and not delivered */
    int64_t ready;     /* batches ready and not delivered */
    int64_t left;      /* batches still allowed; negative: no limit */
    int64_t unsettled; /* delivered batches; their extraction may fail */
    int source_error;  /* comes after the batches at hand, or 0 */
    int urgent_error;  /* comes before them: bad request, failed extraction,
                          abort by the owner; or 0 */
    enum uva__producer_phase phase;
    enum uva__producer_paused paused;
    bool in_call;      /* a callback of the handler is running */
    bool schema_known; /* the source has given a schema */
    bool exhausted;    /* the source has no further batch */
    bool stopping;     /* the source uses the consumer's memory: no call follows
                          until its stop has ended */
    bool drain_ended;  /* release waits for unsettled batches no longer */
};

/* A stream of at most `limit` batches; negative: as many as come. */
void uva__producer_state_init(struct uva__producer_state *s, int64_t limit);

/* Decides the next move from the facts alone. Thread: any one at a time. */
enum uva__producer_move
uva__producer_state_next(const struct uva__producer_state *s);

/* Whether the handler wants a batch now. */
static inline bool
uva__producer_state_wants(const struct uva__producer_state *s)
{
    return s->demand > 0 && s->paused == UVA__PAUSED_NOT;
}

/* Whether the source can stop: no further batch of it would be delivered. */
bool uva__producer_state_is_sated(const struct uva__producer_state *s);

/* Notes that a move begins and, once it has ended, its result. `code` is the
 * handler's result; it counts for on_schema and on_next_task only. */
void uva__producer_state_begin(struct uva__producer_state *s,
                               enum uva__producer_move move);
void uva__producer_state_end(struct uva__producer_state *s,
                             enum uva__producer_move move, int code);

/* Notes a request of the consumer for `n` more batches, saturating; 0 or less
 * is a failure. Ignored after the end. Clauses: AP-02, AP-07, AP-09, G-35. */
void uva__producer_state_note_request(struct uva__producer_state *s, int64_t n);

/* Notes that the consumer wants no more, or has refused a call. */
void uva__producer_state_note_cancel(struct uva__producer_state *s);
void uva__producer_state_note_refusal(struct uva__producer_state *s);

/* Notes an error that goes before everything else: only `code` is delivered.
 * The first one counts; none once only release follows. */
void uva__producer_state_note_urgent(struct uva__producer_state *s, int code);

#endif
