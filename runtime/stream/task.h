/* SPDX-License-Identifier: Apache-2.0 */
/* An ArrowAsyncTask: holds one batch, or the promise of one, until one thread
 * extracts it, once. stream/producer.c offers tasks.
 *
 * A task's private_data is a token: the slot's address and a generation. Slots
 * are type-stable, so a second or late extraction is an error code and never a
 * crash.
 *
 * Clauses: AT-03, G-16. */
#ifndef UVA_STREAM_TASK_H
#define UVA_STREAM_TASK_H

#include <stddef.h>

#include "arrow/batch_info.h"
#include "base/list.h"
#include "stream/discard_queue.h"
#include "stream/task_state.h"
#include "uvarrow/stream.h"

struct uva__producer;

/* Data that extraction makes. Functions as in struct uva_task_source. */
struct uva__lazy {
    /* takes `item`; gives its data, or frees it if `out` is NULL */
    int (*extract)(void *ctx, void *item, struct ArrowDeviceArray *out,
                   struct uva_error *error);
    void *ctx;  /* borrows: lasts as long as the producer's source */
    void *item; /* owns, until extracted */
};

/* One slot. Its size and alignment leave the token's low bits free. */
struct uva__task {
    struct uva__atomic64 state;     /* see stream/task_state.h */
    struct uva__link link;          /* in the free list, or among offered
                                       tasks */
    struct uva__producer *producer; /* borrows: its producer */
    struct uva__batch_info info;    /* its metadata may lie in `room` */
    bool is_lazy;                   /* `lazy` holds, not `array` */
    bool dropped;                   /* never offered, only discarded; loop */
    bool measured; /* `array`, or what `promise` gives, fits the schema of its
                      stream and has `info.bytes`, as uva__measure() says:
                      whoever changes the array, its device or event clears
                      this */
    union {
        struct ArrowDeviceArray array; /* owns */
        struct {
            int64_t no_rows;             /* 0, where the array has its length */
            struct uva__lazy lazy;       /* owns its item */
            struct uva__discard discard; /* while the item is queued for it */
        };
        struct ArrowAsyncTask promise; /* owns: to be extracted, in a slot that
                                          is not offered */
        struct {                       /* FAILED */
            int code;
            struct uva_error *error; /* owns; NULL without memory */
        } failed;
    };
    char room[UVA__METADATA_ROOM]; /* for metadata that fits */
};

_Static_assert(sizeof(struct uva__task) == 256, "the low bits of a token");
_Static_assert(offsetof(struct uva__task, no_rows) ==
                   offsetof(struct uva__task, array.array.length),
               "rows are counted without a look at is_lazy");

/* Fills a free slot with a promise. `metadata` is copied (may be NULL); a
 * malformed block is left out. 0; ENOMEM, and no argument was taken. Thread:
 * the filler of the slot. */
UVA_MUST_CHECK int uva__task_fill_lazy(struct uva__task *task,
                                       const struct uva_allocator *allocator,
                                       const struct uva__lazy *lazy,
                                       const char *metadata);

/* Copies `metadata` into a free slot, as above; the caller fills in the array,
 * the ordinal and the size. 0 or ENOMEM. Thread: the filler of the slot. */
UVA_MUST_CHECK int
uva__task_take_metadata(struct uva__task *task,
                        const struct uva_allocator *allocator,
                        const char *metadata);

/* Makes a filled slot extractable, and gives the task to offer. `to_foreign`:
 * to a user's handler, so the statistics count it until it is over.
 * Thread: loop. */
void uva__task_offer(struct uva__task *task, bool to_foreign,
                     struct ArrowAsyncTask *out);

/* Counts our task, of a producer of `rt`, that was offered to our handler and
 * is about to be passed on to a user's handler. No effect if it was taken back.
 * Thread: that passes it on. */
void uva__task_give(struct uva__rt *rt, const struct ArrowAsyncTask *task);

/* The state now. Thread: any. */
static inline enum uva__task_state uva__task_state(const struct uva__task *task)
{
    return (enum uva__task_state)(uva__atomic64_load(&task->state) &
                                  UVA__TASK_STATES);
}

/* Whether no thread uses the data any more. The loop may then take the slot
 * back, unless the task is ORPHANED. Thread: loop. */
static inline bool uva__task_is_over(const struct uva__task *task)
{
    return uva__task_state(task) >= UVA__TASK_ORPHANED;
}

/* Revokes an unclaimed task, and discards its data: at once, or on an extra
 * thread if foreign code does it. A late extraction fails with ECANCELED. No
 * effect on a task that is claimed or over. Returns whether a foreign handler
 * had it. Thread: loop. */
bool uva__task_revoke(struct uva__task *task);

/* Revokes a watched task for good, as the runtime closes: a later extraction
 * fails with ECANCELED. Until then the task is ORPHANED, and keeps a reference
 * to the rt in place of that to its producer. Returns whether a foreign handler
 * had it. Thread: loop. */
bool uva__task_orphan(struct uva__task *task);

/* Discards a task without using its data, for every task must be extracted or
 * discarded: our task is revoked, unless it was extracted; a foreign one is
 * extracted without an output. Thread: any. Clauses: AT-02. */
void uva__task_drop(struct ArrowAsyncTask *task);

/* Discards the data of a slot that was filled and never offered. Thread: loop.
 */
void uva__task_discard(struct uva__task *task);

/* Frees the slot's memory besides its data: metadata that did not fit, and the
 * error of a failed extraction. Thread: loop. */
void uva__task_free_texts(struct uva__task *task,
                          const struct uva_allocator *allocator);

/* Clears a slot that is over, or was discarded. Thread: loop. */
static inline void uva__task_clear(struct uva__task *task,
                                   const struct uva_allocator *allocator)
{
    if ((task->info.metadata.block != NULL &&
         task->info.metadata.block != task->room) ||
        uva__task_state(task) == UVA__TASK_FAILED)
        uva__task_free_texts(task, allocator);
    task->info.metadata.block = NULL;
    task->is_lazy = false;
    task->measured = false;
    task->info.bytes = 0;
}

/* Called in place of the function of a map that is timed, with its struct
 * uva__mapping as the ctx. Thread: the extracting one. */
int uva__task_map_timed(void *ctx, struct uva_batch *in,
                        struct ArrowDeviceArray *out, struct uva_error *error);

/* The function of all our tasks (AT-*). Thread: any. */
int uva__task_extract(struct ArrowAsyncTask *self,
                      struct ArrowDeviceArray *out);

/* Whether `task` is of this library, and no checker has wrapped it. Then it may
 * be copied: of all threads that extract or drop a copy, one gets its data.
 * Thread: any. */
static inline bool uva__task_is_ours(const struct ArrowAsyncTask *task)
{
    return task->extract_data == uva__task_extract;
}

/* Extracts inside the callback that brings the task, for a handler that has not
 * passed it on: no other claim is possible, so no claim is made. A foreign task
 * is extracted as usual. Thread: loop. */
int uva__task_extract_first(struct ArrowAsyncTask *self,
                            struct ArrowDeviceArray *out);

/* The facts about a task before its extraction. */
enum uva__task_kind {
    UVA__TASK_FOREIGN,
    UVA__TASK_OURS,          /* its extraction may run on the loop thread */
    UVA__TASK_OURS_EXPENSIVE /* and this one's may not */
};

/* The kind of a task, which the checker may have wrapped. Our task is valid
 * until it is extracted, whatever ends before that. Thread: inside the
 * callback that brings the task. */
enum uva__task_kind uva__task_kind(const struct ArrowAsyncTask *task);

/* Whether the task is ours, of a source whose extraction may be expensive, and
 * has its data all the same: extraction only moves it. Thread: as above. */
bool uva__task_is_made(const struct ArrowAsyncTask *task);

/* The facts about our task before its extraction. Borrows, until then.
 * Thread: inside the callback that brings the task. */
const struct uva__batch_info *uva__task_info(const struct ArrowAsyncTask *task);

/* The ordinal of our task before its extraction. Thread: any. */
int64_t uva__task_ordinal(const struct ArrowAsyncTask *task);

/* The size of the data of our task, as far as known, as windows count it.
 * Thread: loop, while it is being offered. */
int64_t uva__task_bytes(const struct ArrowAsyncTask *task);

/* Whether the data that our task gives fits the schema of its stream and has
 * that size, so that a stage which passes it on unchanged does not look at it
 * again. Thread: as above. */
bool uva__task_is_measured(const struct ArrowAsyncTask *task);

#endif
