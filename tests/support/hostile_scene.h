/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile producer, a guest runtime on a loop of the test's own and a
 * consumer that writes down what it is told: "schema 0 1 failed EIO", each
 * batch by its ordinal; and the rules that the log says were broken: "AH-05".
 */
#ifndef UVA_SUPPORT_HOSTILE_SCENE_H
#define UVA_SUPPORT_HOSTILE_SCENE_H

#include "support/hostile_producer.h"
#include "support/loop_rig.h"

struct hostile_scene {
    struct loop_rig rig;
    struct hostile_producer peer;
    struct uva_stream *stream; /* NULL once released */
    /* what the consumer does; set before the start */
    int64_t stop_at;  /* cancels the stream in this batch; negative: no */
    int64_t appetite; /* batches it takes before EAGAIN; negative: all */
    /* what happened */
    char story[8192];
    int64_t batches;          /* it took */
    char message[1024];       /* of the outcome */
    char tag[64];             /* metadata of the last batch or the outcome */
    char about[64];           /* of the producer */
    ArrowDeviceType kind;     /* of the stream */
    bool done;                /* the outcome is here */
    pthread_mutex_t lock;     /* for: */
    char clauses[8192];       /* the rules that were broken */
    atomic_long clause_count; /* how many */
};

/* Opens it; the peer may then be told more. */
void hostile_scene_open(struct hostile_scene *scene, const char *script);

/* Makes the stream; starts it with the consumer, which only a failing
 * allocation may keep from it: then it is over. */
void hostile_scene_make(struct hostile_scene *scene);
void hostile_scene_start(struct hostile_scene *scene);

/* Turns the loop until the outcome. */
void hostile_scene_finish(struct hostile_scene *scene);

/* All of that. `blind`: the loop does not turn until the script is over. */
void hostile_scene_play(struct hostile_scene *scene, bool blind);

/* Turns the loop just once, without waiting. */
void hostile_scene_turn(struct hostile_scene *scene);

/* Closes it all, waits until all that is foreign has gone home, and does the
 * books. */
void hostile_scene_close(struct hostile_scene *scene);

/* Turns the loop until `word` is `n`; or waits for that without. */
void hostile_scene_await(struct hostile_scene *scene, atomic_long *word,
                         long n);
void hostile_await(atomic_long *word, long n);

#endif
