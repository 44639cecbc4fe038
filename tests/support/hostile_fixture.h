/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile producer, an embedded runtime on the test's loop, and a consumer
 * that records a transcript of its callbacks ("schema 0 1 failed EIO", each
 * batch by its ordinal) and the clauses that the log reports as broken
 * ("AH-05"). */
#ifndef UVA_SUPPORT_HOSTILE_FIXTURE_H
#define UVA_SUPPORT_HOSTILE_FIXTURE_H

#include "support/hostile_producer.h"
#include "support/loop_fixture.h"

struct hostile_fixture {
    bool open;
    struct loop_fixture loop;
    struct hostile_producer peer;
    struct uva_stream *stream; /* NULL once released */
    /* the consumer's plan; set before the start */
    int64_t stop_at;  /* cancels the stream in this batch; negative: never */
    int64_t appetite; /* batches it takes, the last with EAGAIN; negative:
                         all */
    /* its record */
    char transcript[8192];
    int64_t batches;          /* batches that the consumer took */
    char message[1024];       /* error text of the outcome */
    char tag[64];             /* metadata of the last batch or the outcome */
    char about[64];           /* metadata of the producer */
    ArrowDeviceType kind;     /* device type of the stream */
    bool done;                /* on_done was called */
    pthread_mutex_t lock;     /* guards `clauses` */
    char clauses[8192];       /* broken clauses, in the order of the log */
    atomic_long clause_count; /* number of these clauses */
};

/* Opens the fixture; the test may then set more members of the peer. */
void hostile_open(struct hostile_fixture *s, const char *script);

/* Makes the stream; starts it with the consumer. Only a failed allocation may
 * prevent the start, which then counts as the end. The third form does both. */
void hostile_make(struct hostile_fixture *s);
void hostile_start(struct hostile_fixture *s);
void hostile_begin(struct hostile_fixture *s);

/* Turns the loop until on_done was called. */
void hostile_finish(struct hostile_fixture *s);

/* Makes the stream, starts it and turns the loop until its end. `blind`: the
 * loop does not turn before the script has ended. */
void hostile_play(struct hostile_fixture *s, bool blind);

/* Turns the loop just once, without waiting. */
void hostile_turn(struct hostile_fixture *s);

/* Closes everything, waits for the foreign threads that are still inside a
 * call, and checks that no object is left. Without effect where it is not open.
 */
void hostile_close(struct hostile_fixture *s);

/* A start function of sources that must never be started. */
int hostile_never(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                  struct uva_error *error);

/* Turns the loop until `count` is `n`. The second form waits without turning
 * it. */
void hostile_turn_until(struct hostile_fixture *s, atomic_long *count, long n);
void hostile_await(atomic_long *count, long n);

#endif
