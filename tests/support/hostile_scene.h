/* SPDX-License-Identifier: Apache-2.0 */
/* A fixture: a hostile producer, a runtime embedded in a loop of the test, and
 * a consumer that records its callbacks: "schema 0 1 failed EIO", each batch by
 * its ordinal; and the broken rules that the log names: "AH-05". */
#ifndef UVA_SUPPORT_HOSTILE_SCENE_H
#define UVA_SUPPORT_HOSTILE_SCENE_H

#include "support/hostile_producer.h"
#include "support/loop_rig.h"

struct hostile_scene {
    struct loop_rig rig;
    struct hostile_producer peer;
    struct uva_stream *stream; /* NULL once released */
    /* what the consumer does; set before the start */
    int64_t stop_at;  /* cancels the stream in this batch; negative: never */
    int64_t appetite; /* batches it takes before EAGAIN; negative: all */
    /* what happened */
    char story[8192];
    int64_t batches;          /* batches taken */
    char message[1024];       /* text of the outcome */
    char tag[64];             /* metadata of the last batch or the outcome */
    char about[64];           /* metadata of the producer */
    ArrowDeviceType kind;     /* device type of the stream */
    bool done;                /* the outcome has arrived */
    pthread_mutex_t lock;     /* guards `clauses` */
    char clauses[8192];       /* the broken rules */
    atomic_long clause_count; /* number of broken rules */
};

/* Opens the fixture; the peer may be configured afterwards. */
void hostile_scene_open(struct hostile_scene *scene, const char *script);

/* Makes the stream; starts it with the consumer. Only a failing allocation may
 * prevent that; then the run is over. */
void hostile_scene_make(struct hostile_scene *scene);
void hostile_scene_start(struct hostile_scene *scene);

/* Turns the loop until the outcome. */
void hostile_scene_finish(struct hostile_scene *scene);

/* Does all of that. `blind`: the loop does not turn until the script is
 * over. */
void hostile_scene_play(struct hostile_scene *scene, bool blind);

/* Turns the loop once, without waiting. */
void hostile_scene_turn(struct hostile_scene *scene);

/* Closes everything, waits until all foreign threads and objects are gone, and
 * checks the counts. */
void hostile_scene_close(struct hostile_scene *scene);

/* Turns the loop until `word` is `n`; the second waits without turning it. */
void hostile_scene_await(struct hostile_scene *scene, atomic_long *word,
                         long n);
void hostile_await(atomic_long *word, long n);

#endif
