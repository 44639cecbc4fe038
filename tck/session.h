/* SPDX-License-Identifier: Apache-2.0 */
/* A run of one producer of the subject with a recording consumer, from its
 * start until it has released the handler. */
#ifndef UVA_TCK_SCENE_H
#define UVA_TCK_SCENE_H

#include "tck/recording_consumer.h"

/* A producer and its recording consumer. Lives as long as its process. */
struct uva__scene {
    struct uva__trial *trial;
    struct uva__probe *probe;
    enum uva_subject_plan plan;
    int64_t batches;
    int64_t at;
    struct uva__word answered; /* uva_subject_produce() has returned ... */
    int code;                  /* ... this code */
};

/* Makes a recording consumer and starts a producer on it, on a thread of its
 * own. Returns false if the subject cannot. Thread: any. */
bool uva__scene_open(struct uva__scene *scene, struct uva__trial *trial,
                     enum uva_subject_plan plan, int64_t batches, int64_t at,
                     const struct uva__probe_manner *manner);

/* Waits for the schema. Thread: any. */
void uva__scene_await_schema(struct uva__scene *scene);

/* Waits until `n` tasks have arrived. Thread: any. */
void uva__scene_await_tasks(struct uva__scene *scene, int64_t n);

/* Waits until the producer seems to be idle: its callbacks have returned, and
 * no other comes. Thread: any. */
void uva__scene_await_rest(struct uva__scene *scene);

/* Waits for release, and until other threads have finished their calls. Thread:
 * any. */
void uva__scene_await_release(struct uva__scene *scene);

/* Extracts tasks and releases arrays that were kept. Thread: any. */
void uva__scene_settle(struct uva__scene *scene);

/* Cancels, waits for release, then settles. Thread: any. */
void uva__scene_stop(struct uva__scene *scene);

/* Waits for a while; returns false if another callback came. Thread: any. */
bool uva__scene_is_quiet(struct uva__scene *scene);

/* Fails the case unless all that the subject made is freed soon; skips it if
 * the subject does not count. Thread: any. */
void uva__scene_check_live(struct uva__trial *trial);

#endif
