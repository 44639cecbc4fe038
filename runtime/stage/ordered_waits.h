/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of a stage in the order in which they came, each of which may wait
 * for an event: the part that ready and transfer have in common. Loop thread,
 * unless it says otherwise. */
#ifndef UVA_STAGE_ORDERED_WAITS_H
#define UVA_STAGE_ORDERED_WAITS_H

#include "stage/stage.h"
#include "stream/runtime_devices.h"

/* One batch. */
struct uva__pending_batch {
    struct uva__entry batch; /* with a code if its wait failed */
    struct uva_watch *watch; /* counts, while it is pending; or NULL */
    uint64_t due_ns;         /* when the patience with it is over */
};

struct uva__ordered_waits;

/* What the stage does to its batches. */
struct uva__ordered_waits_ops {
    /* begins what there is to wait for, if anything: uva__pending_batch_watch()
     * or uva__pending_batch_fail() */
    void (*begin)(struct uva__ordered_waits *waits,
                  struct uva__pending_batch *wait);
    /* the wait is over; `error` has code 0 if all is well. May fail it.
     * wait->watch is there still. */
    void (*over)(struct uva__ordered_waits *waits,
                 struct uva__pending_batch *wait,
                 const struct uva_error *error);
    /* the schema is in the feed, for the last time; false: no memory. NULL:
     * nothing to do. */
    bool (*prepare)(struct uva__ordered_waits *waits);
};

struct uva__ordered_waits {
    struct uva__stage stage; /* first: the stage is around this */
    const struct uva__ordered_waits_ops *ops; /* static */
    struct uva__devices *devices;             /* counts */
    struct uva_window window;                 /* with its defaults filled in */
    int64_t timeout_ms;                       /* for one wait; 0: none */
    struct uva__atomic64 awaited; /* the address of the watch that the loop
                                 has found pending last, or 0 */
    struct uva__atomic64 working; /* batches whose work goes on, here or not */
    struct uva__atomic64 working_bytes; /* in those */
    struct uva__atomic64 full;          /* 1: the loop has found some working */

    struct {                             /* the loop thread's alone */
        struct uva__pending_batch *ring; /* owns; NULL before the schema */
        uint64_t size;                   /* of the ring, a power of two */
        uint64_t first, last;            /* those in use: [first, last) */
        int64_t requested;         /* batches requested above, not here yet */
        int64_t bytes;             /* in the batches here */
        struct uva__timer timer;   /* for the oldest that is pending */
        uint64_t timed;            /* which one that is, while it runs */
        struct uva__failure fault; /* of the first wait that failed */
        bool started;              /* somebody has requested for a batch */
    } loop;
};

/* Sets up the frame and this in cleared memory; takes `above`. `window` is
 * complete; the devices are counted. Thread: builder. */
void uva__ordered_waits_init(struct uva__ordered_waits *waits,
                             const struct uva__stage_ops *stage_ops,
                             const struct uva__ordered_waits_ops *ops,
                             struct uva__producer *above,
                             struct uva__devices *devices);

/* For uva__stage_ops. */
void uva__ordered_waits_task(struct uva__stage *stage,
                             struct ArrowAsyncTask *task, const char *metadata);
void uva__ordered_waits_pull(struct uva__source *source, int64_t demand);
struct uva__task *uva__ordered_waits_take(struct uva__source *source);
void uva__ordered_waits_stop(struct uva__source *source);

/* Frees what is in here; the stage frees itself. Thread: any. */
void uva__ordered_waits_fini(struct uva__ordered_waits *waits,
                             const struct uva_allocator *allocator);

/* Begins to wait for `event` on behalf of a batch; or, with `device_stream`,
 * makes that one wait. */
void uva__pending_batch_watch(struct uva__ordered_waits *waits,
                              struct uva__pending_batch *wait,
                              const struct uva_device_event *event,
                              void *device_stream);

/* The same for work of several steps, which it takes; the event is that of the
 * first. */
void uva__pending_batch_work(struct uva__ordered_waits *waits,
                             struct uva__pending_batch *wait,
                             const struct uva_device_event *event,
                             struct uva__work *work);

/* The work of a batch goes on when it is passed on, within the window: until
 * uva__ordered_waits_end_work(), which is called once. False: the workers are
 * gone.
 */
UVA_MUST_CHECK bool
uva__ordered_waits_begin_work(struct uva__ordered_waits *waits,
                              const struct uva__pending_batch *wait);
void uva__ordered_waits_end_work(void *waits, int64_t bytes); /* any thread */

/* The batch is elsewhere now, and ready. */
void uva__pending_batch_retype(struct uva__pending_batch *wait,
                               ArrowDeviceType device_type, int64_t device_id);

/* The batch is lost, and its stream with it once those before it have been
 * passed on. `error` may be NULL. */
void uva__pending_batch_fail(struct uva__ordered_waits *waits,
                             struct uva__pending_batch *wait, int code,
                             const struct uva_error *error);

#endif
