/* SPDX-License-Identifier: Apache-2.0 */
/* One checked scene and short words for what happens in it. For the main thread
 * of a test, where not said. */
#ifndef UVA_SUPPORT_CHECK_PLAY_H
#define UVA_SUPPORT_CHECK_PLAY_H

#include "support/check_scene.h"

/* What is played. */
extern struct check_scene play;

/* A checked fixture: a scene as check_scene_init() makes it, and a look whether
 * all is freed after it. */
void play_setup(void);
void play_teardown(void);

/* Throws the scene away for one that is checked by `options`. */
void play_again(const struct uva_check *options);

/* Asserts that these were reported, and nothing else since the last time; and
 * the same when it is concluded, with the schema released. */
void play_told(const char *story);
void play_told_at_last(const char *story);

/* The producer: on_schema; so many tasks, or one, whatever is returned; the end
 * and release; only the one or the other. */
void play_begin(void);
void play_tasks(int count);
void play_task(void);
void play_end(void);
void play_the_end(void);
void play_release(void);

/* The consumer: request and cancel. */
void play_ask(int64_t n);
void play_cancel(void);

/* Runs `fn` on another thread, to its end. */
void play_elsewhere(void (*fn)(void));

#endif
