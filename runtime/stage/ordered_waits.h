/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of a stage in the order in which they came, each of which may wait
 * for an event: the part that ready and transfer have in common. Everything
 * here runs on the loop thread, unless its comment states otherwise. */
#ifndef UVA_STAGE_ORDERED_WAITS_H
#define UVA_STAGE_ORDERED_WAITS_H

#include "stage/stage.h"
#include "stream/runtime_devices.h"

/* One batch. */
struct uva__pending_batch {
    struct uva__entry batch; /* with a code if its wait failed */
    struct uva_watch *watch; /* counts, while it is pending; or NULL */
    uint64_t since_ns;       /* when its wait began; 0: that is not timed */
    uint64_t due_ns;         /* the time limit of its wait; 0: none */
};

struct uva__ordered_waits;

/* What the stage does to its batches. */
struct uva__ordered_waits_ops {
    /* begins a wait, if one is needed, by uva__pending_batch_watch() or
     * uva__pending_batch_work(), or calls uva__pending_batch_fail() */
    void (*begin)(struct uva__ordered_waits *waits,
                  struct uva__pending_batch *wait);
    /* the wait is over; `error` has code 0 if it succeeded. May call
     * uva__pending_batch_fail(). wait->watch is still valid. */
    void (*over)(struct uva__ordered_waits *waits,
                 struct uva__pending_batch *wait,
                 const struct uva_error *error);
    /* the last call before the producer below moves the schema out of the
     * source; false: no memory. NULL: nothing to do. */
    bool (*prepare)(struct uva__ordered_waits *waits);
};

struct uva__ordered_waits {
    struct uva__stage stage;                  /* first */
    const struct uva__ordered_waits_ops *ops; /* static */
    struct uva__devices *devices;             /* counts */
    struct uva_window window;                 /* with its defaults filled in */
    int64_t timeout_ms;                       /* for one wait; 0: none */
    struct uva__atomic64 awaited; /* the address of the watch that the loop has
                                     found pending last, or 0 */
    struct uva__atomic64 working; /* batches with work that goes on */
    struct uva__atomic64 working_bytes; /* in those batches */
    struct uva__atomic64 full; /* 1: wake the loop when such work ends */

    struct {                             /* the loop thread's alone */
        struct uva__pending_batch *ring; /* owns; NULL before the schema */
        uint64_t size; /* of the ring, a power of two; doubled when full */
        uint64_t first, last; /* entries in use: [first, last) */
        int64_t requested;    /* batches requested above that have not come */
        int64_t bytes;        /* in the batches of the ring */
        int64_t largest;      /* size of the largest batch; -1: none so far */
        struct uva__timer timer; /* for the oldest batch that is pending */
        struct uva__timer stuck; /* after an abort, for calls of a driver's */
        struct uva__open_object object; /* tracked while a stop waits for such
                                           calls */
        uint64_t timed;            /* the index of that batch, while it runs */
        struct uva__failure fault; /* of the first wait that failed */
        bool started;              /* a batch has been requested */
        bool lost; /* a batch was lost: none behind it is wanted */
    } loop;
};

/* Initialises this and the stage in cleared memory; takes `above`. `window` is
 * filled in; counts the devices. Thread: builder. */
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

/* Frees what this owns, but for its own memory. Thread: any. */
void uva__ordered_waits_fini(struct uva__ordered_waits *waits,
                             const struct uva_allocator *allocator);

/* Begins to wait for `event` of a batch. */
void uva__pending_batch_watch(struct uva__ordered_waits *waits,
                              struct uva__pending_batch *wait,
                              const struct uva_device_event *event);

/* Has `device_stream` wait for `event` of a batch, on the device. */
void uva__pending_batch_chain(struct uva__ordered_waits *waits,
                              struct uva__pending_batch *wait,
                              const struct uva_device_event *event,
                              void *device_stream);

/* Begins `work` of several steps (takes it), and waits until it is complete;
 * `event` is the event of its first step. */
void uva__pending_batch_work(struct uva__ordered_waits *waits,
                             struct uva__pending_batch *wait,
                             const struct uva_device_event *event,
                             struct uva__work *work);

/* Counts work that goes on after its batch was passed on: the batch takes room
 * of the window until uva__ordered_waits_end_work(), which is called once.
 * False: the runtime takes no more jobs. */
UVA_MUST_CHECK bool
uva__ordered_waits_begin_work(struct uva__ordered_waits *waits,
                              const struct uva__pending_batch *wait);
void uva__ordered_waits_end_work(void *waits, int64_t bytes); /* any thread */

/* Notes that the batch is on another device now, without an event. */
void uva__pending_batch_retype(struct uva__pending_batch *wait,
                               ArrowDeviceType device_type, int64_t device_id);

/* Notes that the batch takes `bytes`, if that is more than was known.
 * Thread: loop. */
void uva__pending_batch_grow(struct uva__ordered_waits *waits,
                             struct uva__pending_batch *wait, int64_t bytes);

/* Notes that the batch is lost: the stream fails once the batches before it
 * have been passed on. `error` may be NULL. */
void uva__pending_batch_fail(struct uva__ordered_waits *waits,
                             struct uva__pending_batch *wait, int code,
                             const struct uva_error *error);

#endif
