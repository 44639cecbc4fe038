/* SPDX-License-Identifier: Apache-2.0 */
/* A fake source, a guest runtime on a loop of the test's own and a consumer
 * that keeps the outcome: what tests of single streams set up. At the end it
 * does the books: each thing put in was given back exactly once. */
#ifndef UVA_SUPPORT_SOURCE_SCENE_H
#define UVA_SUPPORT_SOURCE_SCENE_H

#include "support/fake_source.h"
#include "support/loop_rig.h"
#include "support/recording_outcome.h"

struct source_scene {
    struct loop_rig rig;
    struct fake_source fake;
    struct recording_outcome outcome;
};

/* Opens it all; the source has `batches`. */
void source_scene_open(struct source_scene *scene, int64_t batches);

/* The source as a stream: blocking (plain), or of tasks. Its ctx is counted. */
struct uva_stream *source_scene_stream(struct source_scene *scene);
struct uva_stream *source_scene_tasks(struct source_scene *scene);

/* Starts `stream`, lets go of it, and turns the loop until the outcome. */
void source_scene_run(struct source_scene *scene, struct uva_stream *stream);

/* Turns the loop until the outcome is here. */
void source_scene_finish(struct source_scene *scene);

/* Checks how it ended: the code, and that the text says `text`. */
void source_scene_ended(const struct source_scene *scene, enum uva_end end,
                        int code, const char *text);

/* Checks that the stream has failed to be built, and that the start says the
 * same: the code, and that the text says `text`. Releases the stream. */
void source_scene_refused(struct source_scene *scene, struct uva_stream *stream,
                          int code, const char *text);

/* Closes it all. Waits until the stream's workers have gone home, then checks
 * how often the source was released and its ctx freed. */
void source_scene_close(struct source_scene *scene, long released, long freed);

#endif
