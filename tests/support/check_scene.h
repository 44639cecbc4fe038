/* SPDX-License-Identifier: Apache-2.0 */
/* A producer and a consumer that do nothing by themselves, with a check between
 * them: a test plays both. What the check reports is written down as
 * "AP-06 producer error", a line each. Thread: any, where not said. */
#ifndef UVA_SUPPORT_CHECK_SCENE_H
#define UVA_SUPPORT_CHECK_SCENE_H

#include <pthread.h>
#include <stdatomic.h>

#include "uvarrow/arrow.h"
#include "uvarrow/check.h"

enum { CHECK_SCENE_TASKS = 64, CHECK_SCENE_STORY = 4096 };

struct check_scene;

/* One task of the producer, which lives until it was extracted. */
struct check_scene_task {
    struct check_scene *scene; /* borrows */
    int code;                  /* what extraction returns */
    bool full;                 /* it gives an array though it fails */
    bool empty;                /* it gives none though it does not */
};

struct check_scene {
    struct uva_check options;                   /* as it was made */
    struct ArrowAsyncDeviceStreamHandler *out;  /* for the producer */
    struct ArrowAsyncDeviceStreamHandler inner; /* the consumer's */
    struct ArrowAsyncProducer producer;         /* the producer's */
    pthread_mutex_t lock;          /* of what follows up to the next gap */
    char story[CHECK_SCENE_STORY]; /* what was reported */
    char message[256];             /* of the last report */
    char transcript[4096];         /* likewise */
    int reports;

    /* what the consumer does; NULL: moves the schema and requests 100, extracts
     * each task */
    int (*on_schema)(struct check_scene *s, struct ArrowSchema *schema);
    int (*on_task)(struct check_scene *s, struct ArrowAsyncTask *task);
    int (*on_end)(struct check_scene *s);
    void (*on_error)(struct check_scene *s, int code, const char *message,
                     const char *metadata);
    void (*on_release)(struct check_scene *s);
    /* what the producer does in its calls; NULL: no more than count */
    void (*on_request)(struct check_scene *s, int64_t n);
    void (*on_cancel)(struct check_scene *s);
    void (*on_extract)(struct check_scene *s, struct ArrowDeviceArray *array);

    struct ArrowAsyncProducer *peer;               /* as on_schema found it */
    struct ArrowSchema schema;                     /* moved out */
    struct ArrowAsyncTask kept[CHECK_SCENE_TASKS]; /* copies, by the test */
    struct ArrowAsyncTask *pointer;                /* kept by a bad one */
    const char *metadata;                          /* of the last callback */
    struct check_scene_task tasks[CHECK_SCENE_TASKS]; /* the producer's */
    atomic_int offered, extracted, discarded, released, cancels, freed;
    atomic_long requested;
    void *ctx; /* the test's */
};

/* Makes one, with `keep`; what is set in `options` besides is heeded (NULL:
 * none). False if there is no memory for the check; then fini does nothing. */
bool check_scene_try(struct check_scene *s, const struct uva_check *options);

/* The same where there is memory. */
void check_scene_init(struct check_scene *s, const struct uva_check *options);

/* Concludes it, if nobody has, and frees what is left. */
void check_scene_fini(struct check_scene *s);

/* Says that nothing more comes; gives what it returns. */
int64_t check_scene_conclude(struct check_scene *s);

/* What the producer calls: a fresh schema of one int32 column, the next task,
 * the end, and so on. */
int check_scene_schema(struct check_scene *s);
int check_scene_task(struct check_scene *s);
int check_scene_end(struct check_scene *s);
void check_scene_error(struct check_scene *s, int code, const char *message);
void check_scene_release(struct check_scene *s);

/* Fills a schema, or an array that fits it. */
void check_scene_fill_schema(struct ArrowSchema *schema);
void check_scene_fill_array(struct ArrowDeviceArray *array);

/* The function of the producer's tasks; private_data is a check_scene_task. */
int check_scene_extract(struct ArrowAsyncTask *self,
                        struct ArrowDeviceArray *out);

/* What the consumer does by default. */
int check_scene_take_schema(struct check_scene *s, struct ArrowSchema *schema);
int check_scene_take_task(struct check_scene *s, struct ArrowAsyncTask *task);

/* Arrays and schemas that are live. */
int check_scene_live(void);

/* The whole of what was reported; then forgets it. Thread: one. */
const char *check_scene_story(struct check_scene *s);

#endif
