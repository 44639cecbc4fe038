/* SPDX-License-Identifier: Apache-2.0 */
/* A producer of the subject, started on a probe, until it has let go. */
#ifndef UVA_TCK_SCENE_H
#define UVA_TCK_SCENE_H

#include "tck/probe.h"

/* A producer and its probe. Lives as long as its process. */
struct uva__scene {
    struct uva__trial *trial;
    struct uva__probe *probe;
    enum uva_subject_plan plan;
    int64_t batches;
    int64_t at;
    struct uva__word answered; /* uva_subject_produce() is back */
    int code;                  /* with this */
};

/* Makes a probe and starts a producer on it, by a thread of its own. False if
 * the subject cannot. Thread: any. */
bool uva__scene_open(struct uva__scene *scene, struct uva__trial *trial,
                     enum uva_subject_plan plan, int64_t batches, int64_t at,
                     const struct uva__probe_manner *manner);

/* Waits for the schema. Thread: any. */
void uva__scene_await_schema(struct uva__scene *scene);

/* Waits until `n` tasks have come. Thread: any. */
void uva__scene_await_tasks(struct uva__scene *scene, int64_t n);

/* Waits until the producer is left with nothing to do, as far as one can see:
 * its callbacks are back, and no other comes. Thread: any. */
void uva__scene_await_rest(struct uva__scene *scene);

/* Waits for release, and until all errands are done. Thread: any. */
void uva__scene_await_release(struct uva__scene *scene);

/* Extracts what was kept, releases arrays that were. Thread: any. */
void uva__scene_settle(struct uva__scene *scene);

/* Cancels, waits for release, settles. Thread: any. */
void uva__scene_stop(struct uva__scene *scene);

/* Waits whether another callback comes. False if one has. Thread: any. */
bool uva__scene_is_quiet(struct uva__scene *scene);

/* Fails the case, or skips it where the subject does not count, unless all that
 * the subject made is freed soon. Thread: any. */
void uva__scene_check_live(struct uva__trial *trial);

#endif
