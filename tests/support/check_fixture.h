/* SPDX-License-Identifier: Apache-2.0 */
/* A producer and a consumer that are passive, with a check between them: the
 * test calls both. Each reported breach is recorded as a line "AP-06 producer
 * error". Thread: any, unless a comment states otherwise. */
#ifndef UVA_SUPPORT_CHECK_SCENE_H
#define UVA_SUPPORT_CHECK_SCENE_H

#include <pthread.h>
#include <stdatomic.h>

#include "check/handler_check.h"
#include "uvarrow/arrow.h"
#include "uvarrow/check.h"

enum { CHECK_FIXTURE_TASKS = 64, CHECK_FIXTURE_BREACHES = 4096 };

struct check_fixture;

/* One task of the producer, valid until it was extracted. */
struct check_fixture_task {
    struct check_fixture *fixture; /* borrows */
    int code;                      /* the result of extraction */
    bool empty; /* extraction gives no array although it succeeds */
};

struct check_fixture {
    struct uva_check options;                   /* options of the check */
    struct ArrowAsyncDeviceStreamHandler *out;  /* for the producer */
    struct ArrowAsyncDeviceStreamHandler inner; /* the consumer's own */
    struct ArrowAsyncProducer producer;         /* the producer's */
    pthread_mutex_t lock; /* guards the members up to the next blank line */
    char breaches[CHECK_FIXTURE_BREACHES]; /* the breaches that were reported */
    char message[256];                     /* of the last report */
    char transcript[4096];                 /* of the last report */
    int reports;

    /* the consumer's reaction; NULL: moves the schema and requests 100,
     * extracts each task */
    int (*on_schema)(struct check_fixture *s, struct ArrowSchema *schema);
    int (*on_task)(struct check_fixture *s, struct ArrowAsyncTask *task);
    int (*on_end)(struct check_fixture *s);
    void (*on_error)(struct check_fixture *s, int code, const char *message,
                     const char *metadata);
    void (*on_release)(struct check_fixture *s);
    /* the producer's reaction in its methods; NULL: only counts the calls */
    void (*on_request)(struct check_fixture *s, int64_t n);
    void (*on_cancel)(struct check_fixture *s);
    void (*on_extract)(struct check_fixture *s, struct ArrowDeviceArray *array);

    struct ArrowAsyncProducer *peer; /* the producer as on_schema found it */
    struct ArrowSchema schema;       /* moved here by on_schema */
    struct ArrowAsyncTask kept[CHECK_FIXTURE_TASKS]; /* kept copies */
    struct ArrowAsyncTask *pointer; /* kept against the rules */
    const char *metadata;           /* of the last callback */
    struct check_fixture_task
        tasks[CHECK_FIXTURE_TASKS]; /* the producer's own */
    atomic_int offered, extracted, discarded, released, cancels, freed;
    _Atomic int64_t requested;
    void *ctx; /* borrows: for the test */
};

/* Makes a fixture, with `keep`; the other members of `options` (may be NULL)
 * are passed to the check. Returns false if the check gets no memory; then
 * check_fixture_fini() has no effect. */
bool check_fixture_try(struct check_fixture *s,
                       const struct uva_check *options);

/* As check_fixture_try(), where memory must suffice. */
void check_fixture_init(struct check_fixture *s,
                        const struct uva_check *options);

/* Makes a fixture with limits of time. */
void check_fixture_init_within(struct check_fixture *s,
                               const struct uva__check_times *times);

/* Concludes the check, unless the test has done that, and frees the rest. */
void check_fixture_fini(struct check_fixture *s);

/* Concludes the check, as no more calls follow; returns the result of
 * uva_check_conclude(). */
int64_t check_fixture_conclude(struct check_fixture *s);

/* The producer's callbacks: on_schema with a fresh schema of one int32 column,
 * on_next_task with the next task, the end, and so on. */
int check_fixture_schema(struct check_fixture *s);
int check_fixture_task(struct check_fixture *s);
int check_fixture_end(struct check_fixture *s);
void check_fixture_error(struct check_fixture *s, int code,
                         const char *message);
void check_fixture_release(struct check_fixture *s);

/* Fills in a schema, or an array that fits it. */
void check_fixture_fill_schema(struct ArrowSchema *schema);
void check_fixture_fill_array(struct ArrowDeviceArray *array);

/* extract_data of the producer's tasks; private_data is a check_fixture_task.
 */
int check_fixture_extract(struct ArrowAsyncTask *self,
                          struct ArrowDeviceArray *out);

/* The consumer's default behaviour. */
int check_fixture_take_schema(struct check_fixture *s,
                              struct ArrowSchema *schema);
int check_fixture_take_task(struct check_fixture *s,
                            struct ArrowAsyncTask *task);

/* Returns the number of live arrays and schemas. */
int check_fixture_live(void);

/* Returns all reports since the last call, and forgets them. Thread: one. */
const char *check_fixture_breaches(struct check_fixture *s);

#endif
