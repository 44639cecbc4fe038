/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks received from a foreign producer that are not extracted. Each is copied
 * in the callback that gave it and extracted once, by the thread that wants its
 * data. Foreign ones are extracted when the producer releases, since they may
 * become invalid then; tasks of another stream of this library stay valid. The
 * callbacks are in source/foreign_handler.c, the source that hands the tasks on
 * is source/from_async.c.
 *
 * Clauses: G-13. */
#ifndef UVA_SOURCE_PENDING_TASKS_H
#define UVA_SOURCE_PENDING_TASKS_H

#include "base/atomic.h"
#include "base/list.h"
#include "stream/discard_queue.h"
#include "stream/source.h"
#include "stream/task.h"
#include "uvarrow/arrow_abi.h"

enum uva__pending_task_state {
    UVA__PENDING_TASK_HELD,       /* no thread has begun to extract it */
    UVA__PENDING_TASK_EXTRACTING, /* a thread is inside extract_data */
    UVA__PENDING_TASK_EXTRACTED   /* it was extracted in advance */
};

/* One pending task. */
struct uva__pending_task {
    struct uva__discard discard;      /* its link: in a list of the foreign
                                         producer, or to be discarded */
    struct uva__pending_tasks *tasks; /* borrows: where it is kept */
    struct uva__link unextracted;     /* among the tasks that are not extracted;
                                         locked */
    struct ArrowAsyncTask task;       /* owns, until it is extracted */
    enum uva__task_kind kind;         /* of that task */
    struct ArrowDeviceArray array;    /* owns, once extracted in advance */
    struct uva__failure failure;      /* owns: why there is no array */
    struct uva__metadata metadata;    /* owns: of the task */
    uint64_t extractor;               /* EXTRACTING: the thread that does it;
                                         locked */
    enum uva__pending_task_state state; /* locked */
    bool unwanted;                      /* the thread that extracts it discards
                                           it; locked */
};

/* The pending tasks of one stream; all zeroes but for the source. */
struct uva__pending_tasks {
    struct uva__source *source; /* borrows: both are part of one object. It gets
                                   the outline of the schema */
    const struct uva__measure *measure; /* of the batches; borrows: of that */
    ArrowDeviceType device_type; /* of batches. Both are fixed once `ready` */
    struct uva__atomic64 warned; /* 1: about a batch of another device type */
    struct uva__futex changed;   /* raised when a task was extracted, if a
                                    thread waits for that */
    struct uva__lock lock;
    struct {
        struct uva__list unextracted; /* tasks that are not extracted, in order
                                         of arrival */
        int32_t waiting;              /* threads that wait for an extraction */
        bool ready;                   /* schema and device type are known */
        bool closed;                  /* no task is kept any more */
        bool failed;                  /* an extraction has failed */
    } locked;
};

/* The task at its discard.link. Thread: any. */
static inline struct uva__pending_task *
uva__pending_task_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva__pending_task, discard.link);
}

/* Sets schema, which is copied, and device type of the batches. Once, before
 * any task is kept. 0, or an errno of uva__outline_acquire(). Thread: any one
 * at a time. */
UVA_MUST_CHECK int
uva__pending_tasks_set_schema(struct uva__pending_tasks *pending_tasks,
                              const struct ArrowSchema *schema,
                              ArrowDeviceType device_type);

/* Gives a pending task with a copy of `task`, and of `metadata` if that is
 * well-formed (otherwise the breach is counted). 0; ENOMEM; EPROTO before the
 * schema; ECANCELED once closed: then the caller still has to extract the task.
 * Thread: any. */
UVA_MUST_CHECK int
uva__pending_tasks_add(struct uva__pending_tasks *pending_tasks,
                       const struct ArrowAsyncTask *task, const char *metadata,
                       struct uva__pending_task **out);

/* Takes `pending_task` and gives its array. 0; or the producer's code; EPROTO
 * for success without an array and for an array that does not fit the schema,
 * with `error`. Waits if uva__pending_tasks_close() is extracting it.
 * Thread: any. */
UVA_MUST_CHECK int
uva__pending_task_extract(struct uva__pending_task *pending_task,
                          struct ArrowDeviceArray *out,
                          struct uva_error *error);

/* Takes `pending_task`, which is not wanted: it is extracted and discarded,
 * here or by the thread that is extracting it. Thread: any. */
void uva__pending_task_discard(struct uva__pending_task *pending_task);

/* Keeps no more tasks, and extracts the tasks that may become invalid with
 * their producer and are not being extracted: foreign ones only if `foreign`.
 * Our cheap tasks are extracted too, as their runtime may close before they are
 * wanted. Returns whether foreign ones are left. Thread: any. */
bool uva__pending_tasks_close(struct uva__pending_tasks *pending_tasks,
                              bool foreign);

/* Waits for foreign tasks that other threads are extracting, after a close that
 * has extracted the rest. Returns whether the caller itself is extracting one:
 * the producer has called this from inside extract_data. Thread: any but a loop
 * thread. Clauses: AT-23. */
bool uva__pending_tasks_await(struct uva__pending_tasks *pending_tasks);

/* Returns whether an extraction may still fail, or has failed. Thread: any. */
bool uva__pending_tasks_is_at_risk(struct uva__pending_tasks *pending_tasks);

/* Discards a task that is not wanted. A foreign one is extracted, and its array
 * released at once: not with a NULL `out`, though the Arrow document asks for
 * that, as some producers crash on it, and all accept this. Our own task is
 * not made into data. Thread: any.
 *
 * Clauses: G-21, Q-13. */
void uva__pending_tasks_extract_unwanted(const struct ArrowAsyncTask *task,
                                         enum uva__task_kind kind);

#endif
