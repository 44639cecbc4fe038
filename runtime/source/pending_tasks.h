/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks received from a foreign producer, not extracted so far. Each is copied
 * in the callback that gave it and opened (extracted) once, by the thread that
 * wants its data; all are opened when the producer releases, since they may
 * become invalid then. The callbacks are in source/foreign_handler.c, the source
 * that hands the tasks on is source/from_async.c.
 *
 * Clauses: G-13. */
#ifndef UVA_ADAPTERS_DEPOT_H
#define UVA_ADAPTERS_DEPOT_H

#include "base/slab.h"
#include "base/atomic.h"
#include "stream/failure.h"
#include "loop/rt.h"
#include "uvarrow/arrow_abi.h"

enum uva__parcel_state {
    UVA__PARCEL_SHUT,    /* no thread has begun to extract it */
    UVA__PARCEL_OPENING, /* a thread is inside extract_data */
    UVA__PARCEL_OPEN     /* it was extracted in advance */
};

/* One pending task; reused, so that a steady stream allocates nothing. */
struct uva__parcel {
    struct uva__link link;         /* in the pool, or in a list of its user */
    struct uva__link shelf;        /* among the tasks that are not open;
                                      locked */
    struct ArrowAsyncTask task;    /* owns, until opened */
    struct ArrowDeviceArray array; /* owns, once open */
    struct uva__failure failure;   /* owns: why there is no array */
    char *metadata;                /* owns: the metadata of the task; or NULL */
    size_t metadata_size;          /* of that metadata, in bytes */
    uint64_t opener;               /* OPENING: the thread that opens it;
                                      locked */
    enum uva__parcel_state state;  /* locked */
    bool unwanted;                 /* the thread that opens it discards it;
                                      locked */
};

/* The pending tasks of one stream. */
struct uva__depot {
    struct uva__hub *hub;        /* borrows: its user holds a reference */
    struct ArrowSchema schema;   /* owns: batches are checked with it */
    ArrowDeviceType device_type; /* of batches. Both are fixed once `ready` */
    struct uva__word warned;     /* 1: about a batch of another device type */
    struct uva__signal changed;  /* raised when a task was opened, if a thread
                                    waits for that */
    struct uva__lock lock;
    struct {
        struct uva__slab pool;  /* owns all pending tasks */
        struct uva__list shelf; /* tasks that are not open, in order of
                                   arrival */
        int32_t waiting;        /* threads that wait for a task to be opened */
        bool ready;             /* schema and device type are known */
        bool closed;            /* no task is kept any more */
        bool failed;            /* an extraction has failed */
    } locked;
};

/* Initialises it in cleared memory. Thread: any. */
void uva__depot_init(struct uva__depot *depot, struct uva__hub *hub);

/* Frees what it owns; all pending tasks are back in the pool. Thread: any. */
void uva__depot_fini(struct uva__depot *depot);

/* Sets schema (takes it) and device type of the batches. Once, before any task
 * is kept. Thread: any one at a time. */
void uva__depot_describe(struct uva__depot *depot, struct ArrowSchema *schema,
                         ArrowDeviceType device_type);

/* Gives a pending task with a copy of `task`, and of `metadata` if that is
 * well-formed (otherwise the breach is counted). 0; ENOMEM; EPROTO before the
 * schema; ECANCELED once closed: then the caller still has to spend the task.
 * Thread: any. */
UVA_MUST_CHECK int uva__depot_keep(struct uva__depot *depot,
                                   const struct ArrowAsyncTask *task,
                                   const char *metadata,
                                   struct uva__parcel **out);

/* Takes `parcel` and gives its array. 0; or the producer's code; EPROTO for
 * success without an array and for an array that does not fit the schema, with
 * `error`. Waits if uva__depot_close() is opening it. Thread: any. */
UVA_MUST_CHECK int uva__depot_extract(struct uva__depot *depot,
                                      struct uva__parcel *parcel,
                                      struct ArrowDeviceArray *out,
                                      struct uva_error *error);

/* Takes `parcel`, which is not wanted: its task is spent, here or by the thread
 * that is opening it. Thread: any. */
void uva__depot_discard(struct uva__depot *depot, struct uva__parcel *parcel);

/* Keeps no more tasks, opens those that are not open, and waits for tasks
 * that other threads are opening. Returns whether the caller itself is
 * extracting: the producer has called this from inside extract_data (AT-23).
 * Thread: any. */
bool uva__depot_close(struct uva__depot *depot);

/* Returns whether an extraction may still fail, or has failed. Thread: any. */
bool uva__depot_is_at_risk(struct uva__depot *depot);

/* Spends a task that is not wanted: extracts it and releases the array at once.
 * Not with a NULL `out`, though the Arrow document asks for that: some
 * producers crash on it, and all accept this. Thread: any.
 *
 * Clauses: G-21, Q-13. */
void uva__depot_spend(const struct ArrowAsyncTask *task);

#endif
