/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that a test controls: a blocking stream and a source of tasks with a
 * given number of batches, which fail, wait or carry metadata on request. Batch
 * `k` is a struct of one int64 column "n" with the rows k*10, k*10+1... */
#ifndef UVA_SUPPORT_FAKE_SOURCE_H
#define UVA_SUPPORT_FAKE_SOURCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "uvarrow/sources.h"

/* A blocking stream of the source. */
struct fake_stream {
    struct fake_source *fake; /* borrows */
    atomic_long inside;       /* calls of this stream in progress */
};

enum { FAKE_SOURCE_STREAMS = 8 }; /* that a test may have open at once */

struct fake_source {
    /* its plan */
    int64_t batches;       /* number of batches */
    int64_t rows;          /* rows in each batch */
    int64_t fail_at;       /* get_next fails at this batch; negative: never */
    int64_t extract_at;    /* extraction fails at this batch; negative: never */
    int fail_code;         /* code of that failure */
    const char *fail_text; /* text of that failure; or NULL */
    int schema_code;       /* get_schema fails with this code; 0: it works */
    int open_code;         /* the open hook fails with this code; 0: it works */
    int64_t gate_at; /* get_next waits for the gate here; negative: never */
    const char *metadata; /* metadata of each batch; or NULL */
    const char *column;   /* name of the column; NULL: "n" */
    bool wrong_shape;     /* batches do not fit the schema */
    int64_t item_size;    /* bytes of each task's item; 0: not known */
    int64_t at_once;      /* each such task is made at once; 0: none is */
    /* its record; any thread */
    atomic_long live;           /* schemas, arrays and items not yet released */
    atomic_long given;          /* batches given */
    atomic_long opened;         /* streams given, of a device or by a hook */
    atomic_long released;       /* how often the stream was released */
    atomic_long freed;          /* how often the ctx was freed */
    atomic_long interrupts;     /* how often it was interrupted */
    atomic_long inside;         /* calls in progress, of all streams */
    atomic_bool overlapped;     /* two calls of a stream ran at once (DS-16) */
    atomic_long extracted_here; /* tasks extracted on the maker's thread */
    pthread_t maker;            /* the thread that made the source */
    struct fake_stream tasks;   /* calls of the source of tasks */
    struct fake_stream streams[FAKE_SOURCE_STREAMS]; /* used in turn */
    atomic_long made; /* blocking streams given */
    /* the gate */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;    /* the gate is open */
    bool waiting; /* get_next waits at the gate */
};

void fake_source_init(struct fake_source *fake, int64_t batches);
void fake_source_fini(struct fake_source *fake);

/* Opens the gate; returns whether get_next waits at it; blocks until it does,
 * which must not depend on the caller. Thread: any. */
void fake_source_open_gate(struct fake_source *fake);
bool fake_source_is_waiting(struct fake_source *fake);
void fake_source_await(struct fake_source *fake);

/* Gives the source as a blocking stream, for the CPU or for a device type. */
void fake_source_plain(struct fake_source *fake, struct ArrowArrayStream *out);
void fake_source_device(struct fake_source *fake, ArrowDeviceType device_type,
                        struct ArrowDeviceArrayStream *out);

/* Begins anew, if all device streams that were given have been released;
 * returns false if they have not. Thread: any. */
bool fake_source_again(struct fake_source *fake);

/* Returns options for the source: free_ctx is counted, and interrupt opens the
 * gate. */
struct uva_arrow_source fake_source_options(struct fake_source *fake);

/* Returns the source as a source of tasks. */
struct uva_task_source fake_source_tasks(struct fake_source *fake);

/* Gives a single batch. */
void fake_source_batch(struct fake_source *fake, int64_t ordinal,
                       struct ArrowDeviceArray *out);
void fake_source_schema(struct fake_source *fake, struct ArrowSchema *out);

#endif
