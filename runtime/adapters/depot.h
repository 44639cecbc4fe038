/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's tasks on their way: copied in the callback that brought them,
 * opened (extracted) once, by whoever wants them; or all of them when the
 * stranger lets go, for then its tasks may die with it (G-13). Who brings and
 * who wants them is not known here: adapters/inlet.c, from_async.c. */
#ifndef UVA_ADAPTERS_DEPOT_H
#define UVA_ADAPTERS_DEPOT_H

#include "core/slab.h"
#include "core/sync.h"
#include "stream/failure.h"
#include "uv/hub.h"
#include "uvarrow/arrow_abi.h"

enum uva__parcel_state {
    UVA__PARCEL_SHUT,    /* nobody has begun to extract it */
    UVA__PARCEL_OPENING, /* somebody is inside extract_data */
    UVA__PARCEL_OPEN     /* it was extracted in advance */
};

/* One task; reused, so that a steady flow allocates nothing. */
struct uva__parcel {
    struct uva__link link;         /* in the pool, or where its user has it */
    struct uva__link shelf;        /* among those not open; locked */
    struct ArrowAsyncTask task;    /* owns, until opened */
    struct ArrowDeviceArray array; /* owns, once open */
    struct uva__failure failure;   /* owns: why there is no array */
    char *metadata;                /* owns: that came with it; or NULL */
    size_t metadata_size;          /* of that, in bytes */
    uint64_t opener;               /* OPENING: on which thread; locked */
    enum uva__parcel_state state;  /* locked */
    bool unwanted;                 /* who opens it is to discard it; locked */
};

/* Where the parcels of one stream are kept. */
struct uva__depot {
    struct uva__hub *hub;        /* borrows: its user counts it */
    struct ArrowSchema schema;   /* owns: what batches are checked with; */
    ArrowDeviceType device_type; /* and their kind. Both stay once `ready` */
    struct uva__word warned;     /* 1: of a batch of another kind */
    struct uva__signal changed;  /* raised when an opening that is waited for
                                    has ended */
    struct uva__lock lock;
    struct {
        struct uva__slab pool;  /* owns all parcels */
        struct uva__list shelf; /* those not open, in order of arrival */
        int32_t waiting;        /* threads that wait for an opening */
        bool ready;             /* the schema has come */
        bool closed;            /* nothing is taken in any more */
        bool failed;            /* an extraction has failed */
    } locked;
};

/* Sets up a depot in cleared memory. Thread: any. */
void uva__depot_init(struct uva__depot *depot, struct uva__hub *hub);

/* Frees what it owns; all parcels are back in the pool. Thread: any. */
void uva__depot_fini(struct uva__depot *depot);

/* Says what batches are like: takes `schema`. Once, before all parcels.
 * Thread: any one at a time. */
void uva__depot_describe(struct uva__depot *depot, struct ArrowSchema *schema,
                         ArrowDeviceType device_type);

/* Gives a parcel with a copy of `task`, and of `metadata` where that is sound
 * (else the breach is counted). 0; ENOMEM; EPROTO before the schema; ECANCELED
 * once closed: then the task is still the caller's to spend. Thread: any. */
UVA_MUST_CHECK int uva__depot_keep(struct uva__depot *depot,
                                   const struct ArrowAsyncTask *task,
                                   const char *metadata,
                                   struct uva__parcel **out);

/* Takes `parcel` and gives its array. 0; or what the stranger said; EPROTO for
 * success without an array and for one that does not fit the schema: `error`
 * says more. Waits for one that is being opened by uva__depot_close().
 * Thread: any. */
UVA_MUST_CHECK int uva__depot_extract(struct uva__depot *depot,
                                      struct uva__parcel *parcel,
                                      struct ArrowDeviceArray *out,
                                      struct uva_error *error);

/* Takes `parcel`, which nobody wants: its task is spent, here or by who is
 * opening it. Thread: any. */
void uva__depot_discard(struct uva__depot *depot, struct uva__parcel *parcel);

/* Takes nothing more in, opens what is not open, and waits until others have
 * opened what they are at. Returns whether the caller himself is at one: called
 * by what he extracts (AT-23). Thread: any. */
bool uva__depot_close(struct uva__depot *depot);

/* Whether an extraction may yet fail, or has failed. Thread: any. */
bool uva__depot_is_at_risk(struct uva__depot *depot);

/* Spends a task that is not wanted. Never with a NULL `out`, though that is
 * what the document asks for: some producers fault on it, and none minds
 * an array that is released at once (G-21). Thread: any. */
void uva__depot_spend(const struct ArrowAsyncTask *task);

#endif
