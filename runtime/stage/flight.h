/* SPDX-License-Identifier: Apache-2.0 */
/* The batches in flight of a stage: work is begun with each of them, ends on
 * any thread, and the batches are passed on in the order in which they came, or
 * as their work ends. Room in the window is reserved before the work begins, at
 * the size of the largest batch so far.
 *
 *     admitted -> waits -> begun -> over -> its turn comes -> ready -> taken
 *        |                            ^
 *        '--- uva__flight_put(): is over, unless the stage begins a wait now
 *
 * A batch that fails takes its place in the order: the stream fails there. The
 * stage defines the work (struct uva__flight_ops); everything here runs on the
 * loop thread, unless its comment states otherwise. */
#ifndef UVA_STAGE_FLIGHT_H
#define UVA_STAGE_FLIGHT_H

#include "base/mpsc.h"
#include "base/slab.h"
#include "stage/stage.h"

/* One batch, until its turn has come: the first member of the stage's struct
 * for its work. Its memory is the stage's. */
struct uva__flight_batch {
    struct uva__link link;      /* waiting, in the order, or in the slab */
    struct uva__link work_link; /* in `done`; before that, in lists of the
                                   stage's work */
    struct uva__task *slot;     /* owns: with the facts about the batch, and the
                                   batch or the result, if that is live */
    struct uva__failure failure; /* owns: why there is no result. A failed
                                    extraction has a code alone */
    int64_t before; /* its size before the work, as the intake counts it; -1:
                       its size was final when it came */
    bool over;      /* the loop knows that its work is over */
};

struct uva__flight;

struct uva__flight_ops {
    size_t size; /* of one batch, with the stage's struct for its work */
    /* begins the work, which ends with uva__flight_finish(), or inside this
     * with uva__flight_end(); NULL: the stage begins with each batch itself */
    void (*begin)(struct uva__flight *flight, struct uva__flight_batch *batch);
    /* the turn of a batch has come: may make it fail; may be NULL */
    void (*complete)(struct uva__flight *flight,
                     struct uva__flight_batch *batch);
    bool extracts; /* the work is the extraction: the producer above has the
                      reason of a failure */
};

struct uva__flight {
    struct uva__stage stage;           /* first */
    const struct uva__flight_ops *ops; /* static */
    int64_t at_once;                   /* batches begun at one time, at most */
    int64_t unsized_max;   /* batches requested, and begun, until a size is
                              known */
    bool unordered;        /* batches are passed on as their work ends */
    struct uva__mpsc done; /* by `work_link`: batches whose work is over */

    struct {                      /* the loop thread's alone */
        struct uva__slab slab;    /* as many batches as were in use at once */
        struct uva__list waiting; /* not begun, in order */
        struct uva__list order;   /* begun, until their turn; unordered: only
                                     the batches that failed */
        bool failed; /* a batch has failed: no work is begun any more */
    } loop;
};

static inline struct uva__flight *uva__flight_of(struct uva__stage *stage)
{
    return uva__container_of(stage, struct uva__flight, stage);
}

/* For uva__stage_kind.init. Thread: builder. */
void uva__flight_init(struct uva__flight *flight,
                      const struct uva__flight_ops *ops);

/* Takes in the batch of a task that has come, or its promise. NULL: no
 * batch has come, as for uva__kept_take_in(). */
struct uva__flight_batch *uva__flight_admit(struct uva__flight *flight,
                                            struct ArrowAsyncTask *task,
                                            const char *metadata,
                                            enum uva__kept_content content);

/* The batch waits, after the others, for its work to begin. Counts it; `bytes`
 * as far as known. */
void uva__flight_wait(struct uva__flight *flight,
                      struct uva__flight_batch *batch, int64_t bytes);

/* The batch takes its place in the order at once, without waiting, and is over,
 * unless the stage begins work with it now. Counts it; `bytes` are final. */
void uva__flight_put(struct uva__flight *flight,
                     struct uva__flight_batch *batch);

/* The work is over, on another thread than the loop's, or later. Counts no
 * reference: the caller has one to the stage. Thread: any. */
static inline void uva__flight_finish(struct uva__flight *flight,
                                      struct uva__flight_batch *batch)
{
    uva__mpsc_push(&flight->done, &batch->work_link);
    uva__meter_wake(flight->stage.source.meter, &flight->stage.source.wakeup);
}

/* The work is over, with a result, a failure, or without both: then the batch
 * is dropped. */
void uva__flight_end(struct uva__flight *flight,
                     struct uva__flight_batch *batch);

/* Brings the facts of the source up to date: ends the work that is finished,
 * begins as much as the window and the budget allow, and passes on the ready
 * batches, up to a failure or the end of the stream above. */
void uva__flight_advance(struct uva__flight *flight);

/* For uva__source_ops.stop: discards every batch that no other thread has.
 * A batch that a thread has is discarded when its work is over. */
void uva__flight_stop(struct uva__source *source);

/* Passes each batch whose work has ended since the last call to `fn`. */
void uva__flight_each_done(struct uva__flight *flight,
                           void (*fn)(struct uva__flight *flight,
                                      struct uva__flight_batch *batch));

/* Discards a batch that is in no list, with its array. */
void uva__flight_discard(struct uva__flight *flight,
                         struct uva__flight_batch *batch);

/* For uva__stage_kind.clear: discards the batches whose work has ended. */
void uva__flight_clear(struct uva__stage *stage);

/* For uva__stage_kind.free: frees its memory. No work goes on. Thread: any. */
void uva__flight_free(struct uva__stage *stage,
                      const struct uva_allocator *allocator);

#endif
