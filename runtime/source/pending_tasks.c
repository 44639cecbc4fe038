/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping and extracting the tasks of a foreign producer.
 *
 * Happy path:  kept (HELD) -> claimed (EXTRACTING) -> extracted and checked ->
 *              freed.
 *
 * Failures:
 * - the extraction, or the array it gives: a code for the thread that claimed
 *   it;
 * - no memory to keep a task: a code for the callback that gave it.
 *
 * On close:    tasks that are not claimed are extracted here, and kept as
 *              arrays (EXTRACTED). A thread that claims one meanwhile waits for
 *              that; a thread that only wants to discard it leaves that to the
 *              thread that is extracting it. Our expensive tasks stay as they
 *              are. */
#include "source/pending_tasks.h"

#include <errno.h>
#include <string.h>

#include "arrow/metadata.h"
#include "base/error.h"
#include "base/locked_wait.h"
#include "base/memory.h"
#include "base/thread.h"
#include "source/foreign_clauses.h"
#include "uvarrow/arrow.h"

/* ---- keeping ------------------------------------------------------------ */

int uva__pending_tasks_set_schema(struct uva__pending_tasks *tasks,
                                  const struct ArrowSchema *schema,
                                  ArrowDeviceType device_type)
{
    struct uva__source *const source = tasks->source;
    const int code = uva__outline_acquire(source->rt, schema, &source->outline);

    if (code != 0)
        return code;
    tasks->measure = uva__outline_measure(source->outline);
    tasks->device_type = device_type;
    uva__lock_take(&tasks->lock);
    tasks->locked.ready = true;
    uva__lock_drop(&tasks->lock);
    return 0;
}

static void pending_task_free(struct uva__pending_task *pending)
{
    struct uva__pending_tasks *tasks = pending->tasks;
    const struct uva_allocator *allocator = &tasks->source->rt->allocator;

    uva__failure_fini(&pending->failure, allocator);
    uva__metadata_fini(&pending->metadata, allocator, NULL);
    uva__memory_free(allocator, pending, sizeof(*pending));
}

static int pending_tasks_keep(struct uva__pending_task *pending)
{
    struct uva__pending_tasks *tasks = pending->tasks;
    int code = 0;

    uva__lock_take(&tasks->lock);
    if (tasks->locked.closed)
        code = ECANCELED;
    else if (!tasks->locked.ready)
        code = EPROTO;
    else
        uva__list_push(&tasks->locked.unextracted, &pending->unextracted);
    uva__lock_drop(&tasks->lock);
    return code;
}

int uva__pending_tasks_add(struct uva__pending_tasks *tasks,
                           const struct ArrowAsyncTask *task,
                           const char *metadata, struct uva__pending_task **out)
{
    const struct uva_allocator *allocator = &tasks->source->rt->allocator;
    struct uva__pending_task *pending =
        uva__memory_new(allocator, sizeof(*pending));
    int code;

    if (pending == NULL)
        return ENOMEM;
    pending->tasks = tasks;
    pending->task = *task;
    pending->kind = uva__task_kind(task);
    code = uva__metadata_copy(allocator, metadata, &pending->metadata);
    if (code != 0 && code != ENOMEM)
        uva__foreign_count(tasks->source, "MD-05");
    if (code != ENOMEM)
        code = pending_tasks_keep(pending);
    if (code == 0)
        *out = pending;
    else
        pending_task_free(pending);
    return code;
}

/* ---- extracting --------------------------------------------------------- */

void uva__pending_tasks_extract_unwanted(const struct ArrowAsyncTask *task,
                                         enum uva__task_kind kind)
{
    struct ArrowAsyncTask copy = *task;
    struct ArrowDeviceArray array;

    if (kind != UVA__TASK_FOREIGN)
        uva__task_drop(&copy);
    else if (uva_task_extract(&copy, &array) == 0)
        uva_array_release(&array);
}

static int pending_task_check(struct uva__pending_tasks *tasks,
                              struct ArrowDeviceArray *array,
                              struct uva_error *error)
{
    struct uva_error detail;
    int64_t bytes;

    if (array->array.release == NULL) {
        uva__foreign_count(tasks->source, "AT-05");
        return uva_error_set(error, EPROTO, "%s (AT-05)",
                             uva__clause_breach("AT-05"));
    }
    if (array->device_type != tasks->device_type &&
        uva__atomic64_exchange(&tasks->warned, 1) == 0)
        uva__foreign_count(tasks->source, "AT-16");
    if (uva__measure(tasks->measure, array, &bytes, &detail) == 0)
        return 0; /* as for an unknown format, which cannot be checked */
    uva__foreign_count(tasks->source, "AT-17");
    uva_array_release(array);
    return uva_error_set(error, EPROTO, "%s (AT-17): %s",
                         uva__clause_breach("AT-17"), detail.message);
}

/* Calls the foreign producer. */
static int pending_task_call_extract(struct uva__pending_task *pending,
                                     struct ArrowDeviceArray *out,
                                     struct uva_error *error)
{
    struct uva__pending_tasks *tasks = pending->tasks;
    int code;

    uva_array_clear(out); /* a producer may leave parts of it as they are */
    code = pending->task.extract_data(&pending->task, out);
    if (code == 0)
        return pending_task_check(tasks, out, error);
    out->array.release = NULL;
    return uva_error_set(error, uva__error_positive(code),
                         "extraction failed with %s (%d)",
                         uva_error_name(uva__error_positive(code)), code);
}

/* Drops the lock while it waits. */
static void pending_tasks_wait_locked(struct uva__pending_tasks *tasks)
{
    tasks->locked.waiting++;
    (void)uva__locked_wait(&tasks->lock, &tasks->changed, -1);
    tasks->locked.waiting--;
}

/* How a claim ends. */
enum claim {
    CLAIM_MINE,        /* the caller extracts it */
    CLAIM_EXTRACTED,   /* it was extracted in advance */
    CLAIM_OTHER_THREAD /* the thread that extracts it will discard it */
};

static enum claim pending_task_claim_locked(struct uva__pending_task *pending,
                                            bool wanted)
{
    struct uva__pending_tasks *tasks = pending->tasks;

    while (pending->state == UVA__PENDING_TASK_EXTRACTING && wanted)
        pending_tasks_wait_locked(tasks);
    switch (pending->state) {
    case UVA__PENDING_TASK_EXTRACTING:
        pending->unwanted = true;
        return CLAIM_OTHER_THREAD;
    case UVA__PENDING_TASK_EXTRACTED:
        return CLAIM_EXTRACTED;
    default:
        pending->state = UVA__PENDING_TASK_EXTRACTING;
        pending->extractor = uva__thread_self();
        return CLAIM_MINE;
    }
}

static enum claim pending_task_claim(struct uva__pending_task *pending,
                                     bool wanted)
{
    struct uva__pending_tasks *tasks = pending->tasks;
    enum claim claim;

    uva__lock_take(&tasks->lock);
    claim = pending_task_claim_locked(pending, wanted);
    uva__lock_drop(&tasks->lock);
    return claim;
}

/* The caller has extracted it, with the result `code`. Returns whether another
 * thread has left the array to it, to be discarded. */
static bool pending_task_settle(struct uva__pending_task *pending, int code)
{
    struct uva__pending_tasks *tasks = pending->tasks;
    bool unwanted;

    uva__lock_take(&tasks->lock);
    tasks->locked.failed = tasks->locked.failed || code != 0;
    uva__list_remove(&tasks->locked.unextracted, &pending->unextracted);
    pending->state = UVA__PENDING_TASK_EXTRACTED;
    if (tasks->locked.waiting > 0)
        uva__futex_raise(&tasks->changed);
    unwanted = pending->unwanted;
    uva__lock_drop(&tasks->lock);
    return unwanted;
}

int uva__pending_task_extract(struct uva__pending_task *pending,
                              struct ArrowDeviceArray *out,
                              struct uva_error *error)
{
    int code;

    if (pending_task_claim(pending, true) == CLAIM_MINE) {
        code = pending_task_call_extract(pending, out, error);
        (void)pending_task_settle(pending, code);
    } else {
        uva_array_move(&pending->array, out);
        code = uva__failure_get(&pending->failure, error);
    }
    pending_task_free(pending);
    return code;
}

void uva__pending_task_discard(struct uva__pending_task *pending)
{
    switch (pending_task_claim(pending, false)) {
    case CLAIM_OTHER_THREAD:
        return;
    case CLAIM_MINE:
        uva__pending_tasks_extract_unwanted(&pending->task, pending->kind);
        (void)pending_task_settle(pending, 0);
        break;
    case CLAIM_EXTRACTED:
        uva_array_release(&pending->array);
        break;
    }
    pending_task_free(pending);
}

/* ---- closing ------------------------------------------------------------ */

static struct uva__pending_task *pending_task_at(struct uva__link *link)
{
    return uva__container_of(link, struct uva__pending_task, unextracted);
}

/* Whether a close extracts it. */
static bool pending_task_is_due_locked(const struct uva__pending_task *task,
                                       bool foreign)
{
    return task->state == UVA__PENDING_TASK_HELD &&
           (task->kind == UVA__TASK_OURS ||
            (task->kind == UVA__TASK_FOREIGN && foreign));
}

/* Claims the first task that a close extracts; NULL after the last one. */
static struct uva__pending_task *
pending_tasks_claim_next(struct uva__pending_tasks *tasks, bool foreign)
{
    struct uva__pending_task *pending = NULL;
    struct uva__link *link;

    uva__lock_take(&tasks->lock);
    for (link = tasks->locked.unextracted.head; link != NULL; link = link->next)
        if (pending_task_is_due_locked(pending_task_at(link), foreign)) {
            pending = pending_task_at(link);
            (void)pending_task_claim_locked(pending, true);
            break;
        }
    uva__lock_drop(&tasks->lock);
    return pending;
}

static void pending_task_extract_ahead(struct uva__pending_task *pending)
{
    struct uva__pending_tasks *tasks = pending->tasks;
    struct uva_error error;
    int code = pending_task_call_extract(pending, &pending->array, &error);

    if (code != 0)
        uva__failure_set(&pending->failure, &tasks->source->rt->allocator, code,
                         &error, NULL);
    if (!pending_task_settle(pending, code))
        return; /* another thread has claimed it, or will do so */
    uva_array_release(&pending->array);
    pending_task_free(pending);
}

/* Returns whether a foreign task is not extracted, leaving out the tasks that
 * `thread` is extracting (0: no thread). */
static bool
pending_tasks_has_foreign_locked(const struct uva__pending_tasks *tasks,
                                 uint64_t thread)
{
    const struct uva__pending_task *task;
    struct uva__link *link;

    for (link = tasks->locked.unextracted.head; link != NULL;
         link = link->next) {
        task = pending_task_at(link);
        if (task->kind == UVA__TASK_FOREIGN &&
            (thread == 0 || task->extractor != thread))
            return true;
    }
    return false;
}

bool uva__pending_tasks_close(struct uva__pending_tasks *tasks, bool foreign)
{
    struct uva__pending_task *task;
    bool left;

    uva__lock_take(&tasks->lock);
    tasks->locked.closed = true;
    uva__lock_drop(&tasks->lock);
    while ((task = pending_tasks_claim_next(tasks, foreign)) != NULL)
        pending_task_extract_ahead(task);
    uva__lock_take(&tasks->lock);
    left = pending_tasks_has_foreign_locked(tasks, 0);
    uva__lock_drop(&tasks->lock);
    return left;
}

bool uva__pending_tasks_await(struct uva__pending_tasks *tasks)
{
    bool nested;

    uva__lock_take(&tasks->lock);
    while (pending_tasks_has_foreign_locked(tasks, uva__thread_self()))
        pending_tasks_wait_locked(tasks);
    nested = pending_tasks_has_foreign_locked(tasks, 0);
    uva__lock_drop(&tasks->lock);
    return nested;
}

bool uva__pending_tasks_is_at_risk(struct uva__pending_tasks *tasks)
{
    bool risky;

    uva__lock_take(&tasks->lock);
    risky =
        tasks->locked.failed || !uva__list_is_empty(&tasks->locked.unextracted);
    uva__lock_drop(&tasks->lock);
    return risky;
}
