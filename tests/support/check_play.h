/* SPDX-License-Identifier: Apache-2.0 */
/* One checked fixture, and short functions for its events. Thread: the test's
 * main thread, unless a comment states otherwise. */
#ifndef UVA_SUPPORT_CHECK_PLAY_H
#define UVA_SUPPORT_CHECK_PLAY_H

#include "support/check_fixture.h"

/* The fixture of the current test. */
extern struct check_fixture play;

/* A checked fixture of Check: makes a fixture by check_fixture_init(), and
 * afterwards checks that everything is freed. */
void play_setup(void);
void play_teardown(void);

/* Replaces the fixture by one with the options `options`. */
void play_again(const struct uva_check *options);
void play_again_within(const struct uva__check_times *times);

/* Asserts that exactly these breaches were reported since the last call. The
 * second form first concludes the check and releases the schema. */
void play_expect(const char *breaches);
void play_expect_at_last(const char *breaches);

/* The producer's callbacks: on_schema; several tasks, or one, with any return
 * code; the end and the release; only one of these. */
void play_begin(void);
void play_tasks(int count);
void play_task(void);
void play_end(void);
void play_the_end(void);
void play_release(void);

/* The consumer's calls: request and cancel. */
void play_request(int64_t n);
void play_cancel(void);

/* Runs `fn` on another thread and waits until it has returned. */
void play_elsewhere(void (*fn)(void));

/* For on_schema: move the schema and request no batch, or two. For on_task:
 * discards the task and refuses it. */
int play_request_none(struct check_fixture *s, struct ArrowSchema *schema);
int play_request_two(struct check_fixture *s, struct ArrowSchema *schema);
int play_refuse_task(struct check_fixture *s, struct ArrowAsyncTask *task);

#endif
