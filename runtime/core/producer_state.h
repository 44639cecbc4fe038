/* SPDX-License-Identifier: Apache-2.0 */
/* What a producer must do next: the protocol's rules, as a pure state machine.
 *
 * Facts go in through the note functions; one decision comes out of
 * uva__producer_next(). Nothing here calls a handler, takes a lock, allocates
 * or knows what a loop is: stream/producer.c does what this file decides. */
#ifndef UVA_CORE_PRODUCER_STATE_H
#define UVA_CORE_PRODUCER_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* Demand that is not counted any more (G-35). */
#define UVA__UNBOUNDED INT64_MAX

/* One move, in the order in which a healthy stream makes them. */
enum uva__producer_move {
    UVA__MOVE_WAIT,        /* nothing to do until the next fact */
    UVA__MOVE_TELL_SCHEMA, /* call on_schema */
    UVA__MOVE_TELL_TASK,   /* call on_next_task with the next batch */
    UVA__MOVE_TELL_END,    /* call on_next_task with NULL */
    UVA__MOVE_TELL_ERROR,  /* call on_error */
    UVA__MOVE_RELEASE      /* call release; the last move */
};

/* Everything known about one stream. All zeroes but `left` (see init) is a
 * stream not yet begun. */
struct uva__producer_state {
    int64_t demand;    /* batches requested and not yet told */
    int64_t ready;     /* batches at hand and not yet told */
    int64_t left;      /* batches still allowed; negative: no limit */
    int64_t unsettled; /* told batches whose extraction may still fail */
    bool in_call;      /* a handler callback is running; written for each batch,
                          and so apart from what is read with one load */
    int source_error;  /* comes behind the batches at hand, or 0 */
    int urgent_error;  /* comes before them: bad request, failed extraction,
                          abort by the owner; or 0 */
    bool refused;      /* the consumer returned an error from a callback */
    bool cancelled;    /* the consumer wants no more */
    bool error_told;   /* on_error has been delivered */
    bool schema_known; /* the source has given a schema */
    bool schema_told;  /* on_schema has been called */
    bool exhausted;    /* the source has no further batch */
    bool held;         /* the handler takes nothing for now, not the end */
    bool hurried;      /* the end waits for unsettled batches no longer */
    bool end_told;     /* the closing NULL has been delivered */
    bool released;     /* release has been called */
};

/* A stream of at most `limit` batches; negative: as many as come. */
void uva__producer_init(struct uva__producer_state *s, int64_t limit);

/* Decides the next move from the facts alone. Thread: any one at a time. */
enum uva__producer_move uva__producer_next(const struct uva__producer_state *s);

/* Whether the source can stop: nothing it may still give will be told. */
bool uva__producer_is_sated(const struct uva__producer_state *s);

/* Notes that a move begins and, once it is over, how it went. `code` is the
 * handler's answer and counts for on_schema and on_next_task only. */
void uva__producer_begin(struct uva__producer_state *s,
                         enum uva__producer_move move);
void uva__producer_end(struct uva__producer_state *s,
                       enum uva__producer_move move, int code);

/* Notes what the consumer asked for: `n` more batches, saturating (AP-02,
 * G-35); 0 or less is a failure (AP-09). Ignored after cancel (AP-07). */
void uva__producer_note_request(struct uva__producer_state *s, int64_t n);
void uva__producer_note_cancel(struct uva__producer_state *s);

/* Notes that nothing is to be told but `code`, before all else. The first one
 * counts; none after the error was told. */
void uva__producer_note_urgent(struct uva__producer_state *s, int code);

#endif
