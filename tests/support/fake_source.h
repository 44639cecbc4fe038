/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that a test controls: a blocking stream and a source of tasks of so
 * many batches, which fail, wait or give metadata on cue. Batch `k` is a
 * struct of one int64 column "n" with the rows k*10, k*10+1... */
#ifndef UVA_SUPPORT_FAKE_SOURCE_H
#define UVA_SUPPORT_FAKE_SOURCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "uvarrow/adapters.h"

struct fake_source {
    /* what it does */
    int64_t batches;       /* that it has */
    int64_t rows;          /* in each */
    int64_t fail_at;       /* next fails there; negative: never */
    int64_t extract_at;    /* extract fails there; negative: never */
    int fail_code;         /* with that */
    const char *fail_text; /* and that; or NULL */
    int schema_code;       /* get_schema fails with that; 0: not */
    int open_code;         /* the open hook does; 0: not */
    int64_t gate_at;       /* next waits there for the gate; negative: never */
    const char *metadata;  /* of each batch; or NULL */
    bool wrong_shape;      /* batches do not fit the schema */
    /* what happened; any thread */
    atomic_long live;       /* schemas, arrays and items not yet released */
    atomic_long given;      /* batches */
    atomic_long opened;     /* streams given of a device, or by a hook */
    atomic_long released;   /* times the stream was */
    atomic_long freed;      /* times its ctx was */
    atomic_long interrupts; /* times it was interrupted */
    atomic_long inside;     /* calls that are running */
    atomic_bool overlapped; /* two calls ran at once (DS-16) */
    atomic_long at_home;    /* items extracted by the thread that made it */
    pthread_t home;         /* the id of that thread */
    /* the gate */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;    /* the gate is */
    bool waiting; /* next is at it */
};

void fake_source_init(struct fake_source *fake, int64_t batches);
void fake_source_fini(struct fake_source *fake);

/* Opens the gate; returns whether next is at it; waits until it is, which must
 * not depend on the caller. Thread: any. */
void fake_source_open_gate(struct fake_source *fake);
bool fake_source_is_waiting(struct fake_source *fake);
void fake_source_await(struct fake_source *fake);

/* Gives the source as a blocking stream, plain or of a device type. */
void fake_source_plain(struct fake_source *fake, struct ArrowArrayStream *out);
void fake_source_device(struct fake_source *fake, ArrowDeviceType device_type,
                        struct ArrowDeviceArrayStream *out);

/* Begins anew, once all streams of a device that were given have been released;
 * false: not yet. Thread: any. */
bool fake_source_again(struct fake_source *fake);

/* Options for it: the ctx counts as freed; interrupt opens the gate. */
struct uva_blocking_source fake_source_options(struct fake_source *fake);

/* The source as one of tasks. */
struct uva_task_source fake_source_tasks(struct fake_source *fake);

/* Gives one batch by itself. */
void fake_source_batch(struct fake_source *fake, int64_t ordinal,
                       struct ArrowDeviceArray *out);
void fake_source_schema(struct fake_source *fake, struct ArrowSchema *out);

#endif
