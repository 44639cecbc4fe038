/* SPDX-License-Identifier: Apache-2.0 */
/* A stream with a pusher at one end and a recording consumer at the other, on a
 * loop. What the pusher's callbacks are told is in the consumer's story too:
 * "room", "gone". */
#ifndef UVA_SUPPORT_PUSH_SCENE_H
#define UVA_SUPPORT_PUSH_SCENE_H

#include <stdatomic.h>

#include "support/recording_consumer.h"
#include "uvarrow/adapters.h"

struct push_scene {
    struct loop_rig rig;
    struct recording_consumer consumer; /* appetite: all, unless set */
    struct uva_stream *stream;          /* NULL once released */
    struct uva_pusher *pusher;          /* NULL once closed */
    atomic_int freed;                   /* calls of free_ctx */
    atomic_bool pushing;                /* the loop thread is inside push */
    /* called by on_writable and on_closed, behind the word; NULL: nothing */
    void (*on_told)(struct push_scene *scene);
};

/* Options whose callbacks write into the story. */
struct uva_push_source push_scene_options(struct push_scene *scene);

/* Opens the rig, then a stream with a window of `batches` (0: the default) and
 * `bytes` (likewise); the schema is said unless `bare`. */
void push_scene_open(struct push_scene *scene, int32_t batches, int64_t bytes);
void push_scene_open_bare(struct push_scene *scene, int32_t batches,
                          int64_t bytes);

/* Pushes a batch of `length`; returns what push said. A batch that was not
 * taken is released. On the loop thread. */
int push_scene_push(struct push_scene *scene, int64_t length,
                    int64_t timeout_ms);

/* The same with metadata. */
int push_scene_push_with(struct push_scene *scene, int64_t length,
                         const char *metadata, int64_t timeout_ms);

/* Says the schema, starts the stream with the consumer. */
int push_scene_describe(struct push_scene *scene);
void push_scene_start(struct push_scene *scene);

/* Closes the pusher; releases the stream. No effect the second time. */
void push_scene_end(struct push_scene *scene);
void push_scene_release(struct push_scene *scene);

/* Closes all that is open, and checks that all was released and freed once. */
void push_scene_close(struct push_scene *scene);

#endif
