/* SPDX-License-Identifier: Apache-2.0 */
/* Batches in flight, each of which may wait for an event of a device: the
 * common part of ready and transfer. Everything here runs on the loop thread,
 * unless its comment states otherwise. */
#ifndef UVA_STAGE_ORDERED_WAITS_H
#define UVA_STAGE_ORDERED_WAITS_H

#include "stage/flight.h"
#include "stream/runtime_devices.h"

struct uva__ordered_waits;

/* One batch. */
struct uva__pending_batch {
    struct uva__flight_batch batch;   /* first; over: no event is waited for */
    struct uva__ordered_waits *waits; /* borrows, during a wait */
    struct uva_watch *watch; /* counts, from the begin of a wait until the turn
                                of the batch has come; or NULL */
    uint64_t since_ns;       /* when its wait began; 0: that is not timed */
    uint64_t due_ns;         /* the time limit of its wait; 0: not limited */
};

/* The stage's functions for its batches. */
struct uva__ordered_waits_ops {
    /* begins a wait, if one is needed, by uva__pending_batch_prepare(), or
     * calls uva__pending_batch_fail() */
    void (*begin)(struct uva__ordered_waits *waits,
                  struct uva__pending_batch *wait);
    /* the wait is over; `error` has code 0 if it succeeded. May call
     * uva__pending_batch_fail(). wait->watch is still valid. */
    void (*over)(struct uva__ordered_waits *waits,
                 struct uva__pending_batch *wait,
                 const struct uva_error *error);
};

struct uva__ordered_waits {
    struct uva__flight flight;                /* first */
    const struct uva__ordered_waits_ops *ops; /* static */
    struct uva__devices *devices;             /* counts */
    int64_t timeout_ms;                       /* for one wait; 0: not limited */
    struct uva__atomic64 working;       /* batches with work that goes on */
    struct uva__atomic64 working_bytes; /* in those batches */
    struct uva__atomic64 full; /* 1: wake the loop when such work ends */

    struct {                                    /* the loop thread's alone */
        const struct uva__pending_batch *timed; /* the oldest batch that
                                                   waits, while the timer of
                                                   the stage runs for it */
        struct uva__timer stuck; /* after an abort, for calls of a driver */
        struct uva__open_object object; /* tracked while a stop waits for such
                                           calls, of the batches in the order */
    } loop;
};

static inline struct uva__ordered_waits *
uva__ordered_waits_of(struct uva__stage *stage)
{
    return uva__container_of(stage, struct uva__ordered_waits, flight.stage);
}

/* For uva__stage_kind.init. Counts the devices. Thread: builder. */
void uva__ordered_waits_init(struct uva__ordered_waits *waits,
                             const struct uva__ordered_waits_ops *ops,
                             const struct uva__stage_setup *setup);

/* For uva__stage_kind; free is called on any thread. */
void uva__ordered_waits_task(struct uva__stage *stage,
                             struct ArrowAsyncTask *task, const char *metadata);
void uva__ordered_waits_pull(struct uva__source *source, int64_t demand);
void uva__ordered_waits_stop(struct uva__source *source);
void uva__ordered_waits_clear(struct uva__stage *stage);
void uva__ordered_waits_free(struct uva__stage *stage,
                             const struct uva_allocator *allocator);

/* The array of a batch, which is live until it fails. */
static inline struct ArrowDeviceArray *
uva__pending_batch_array(struct uva__pending_batch *wait)
{
    return &wait->batch.slot->array;
}

/* The event of that array. */
static inline struct uva_device_event
uva__pending_batch_event(struct uva__pending_batch *wait)
{
    const struct ArrowDeviceArray *array = uva__pending_batch_array(wait);

    return (struct uva_device_event){array->device_type, array->device_id,
                                     array->sync_event};
}

/* Whether a batch needs a wait for its event. Of an unknown kind: it has
 * failed. */
enum uva__event_kind
uva__pending_batch_classify(struct uva__ordered_waits *waits,
                            struct uva__pending_batch *wait);

/* Makes the watch of a batch, for `event`, which the caller completes and
 * passes to uva__event_wait_begin(). False: the batch has failed, as there is
 * no memory or the runtime is closing. */
UVA_MUST_CHECK bool
uva__pending_batch_prepare(struct uva__ordered_waits *waits,
                           struct uva__pending_batch *wait,
                           const struct uva_device_event *event);

/* Counts work that goes on after its batch was passed on: the batch takes room
 * of the window until uva__ordered_waits_end_work(), which is called once.
 * False: the runtime takes no more jobs. */
UVA_MUST_CHECK bool
uva__ordered_waits_begin_work(struct uva__ordered_waits *waits,
                              const struct uva__pending_batch *wait);
void uva__ordered_waits_end_work(void *waits, int64_t bytes); /* any thread */

/* The event of the batch, if there is one, is complete. */
void uva__pending_batch_complete(struct uva__pending_batch *wait);

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
