/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  new (HELD) -> passed on in on_next_task -> overwritten ->
 *              extract (EXTRACTING) into memory of the check, checked, passed
 *              on -> IDLE.
 *
 * Failures:    the producer's extraction: its code is passed on. A second
 *              extraction is not: EINVAL, `out` unchanged.
 *
 * Refused:     a task for which on_next_task returned an error, and which was
 *              not extracted, is the producer's again; extracting a late copy
 *              of it returns ECANCELED.
 *
 * Slots wait in a quarantine before they are used again, so that a stale copy
 * of a task is recognised. */
#include "check/checked_task.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "check/array_check.h"
#include "check/release_hook.h"
#include "check/tagged_pointer.h"
#include "uvarrow/arrow.h"

enum { SLOT_STEP = 16, SLOT_QUARANTINE = 48, UNSET = 0xA5, POISON = 0xDD };

/* A slot, padded up to the next. */
union task_slot {
    struct uva__checked_task task;
    char room[2 * UVA__TAGGED_POINTER_ALIGN];
};

_Static_assert(sizeof(union task_slot) % UVA__TAGGED_POINTER_ALIGN == 0,
               "slots follow each other at addresses that can be tagged");

static int task_extract(struct ArrowAsyncTask *self,
                        struct ArrowDeviceArray *out);

/* ---- the store ---------------------------------------------------------- */

void uva__checked_tasks_init(struct uva__checked *c)
{
    c->locked.tasks = (struct uva__slab){
        .allocator = &c->allocator,
        .size = sizeof(union task_slot),
        .align = UVA__TAGGED_POINTER_ALIGN,
        .link_offset = offsetof(struct uva__checked_task, link),
        .rest = SLOT_QUARANTINE,
        .step = SLOT_STEP};
}

static void slot_free_text(void *block, void *ctx)
{
    struct uva__checked_task *task = block;

    uva__memory_free(ctx, task->text, task->room);
}

void uva__checked_tasks_fini(struct uva__checked *c)
{
    uva__slab_each(&c->locked.tasks, slot_free_text, &c->allocator);
    uva__slab_fini(&c->locked.tasks);
}

/* ---- offer -------------------------------------------------------------- */

struct uva__checked_task *uva__checked_task_take_locked(struct uva__checked *c)
{
    struct uva__checked_task *task = uva__slab_take(&c->locked.tasks, NULL);

    if (task == NULL)
        return NULL;
    task->stream = c;
    task->generation++;
    task->state = UVA__CHECKED_HELD;
    c->locked.held++;
    c->locked.refs++;
    return task;
}

struct uva__checked_task *uva__checked_task_fetch(struct uva__checked *c)
{
    struct slab_chunk *chunk = uva__slab_fetch(&c->locked.tasks);
    struct uva__checked_task *task;

    if (chunk == NULL)
        return NULL;
    uva__lock_take(&c->lock);
    uva__slab_add(&c->locked.tasks, chunk);
    task = uva__checked_task_take_locked(c);
    uva__lock_drop(&c->lock);
    return task;
}

/* Makes room for metadata, which the slot keeps for later tasks. */
static bool slot_make_room(struct uva__checked_task *task, size_t size)
{
    const struct uva_allocator *allocator = &task->stream->allocator;
    char *text;

    if (size <= task->room)
        return true;
    text = uva__memory_new(allocator, size);
    if (text == NULL)
        return false;
    uva__memory_free(allocator, task->text, task->room);
    task->text = text;
    task->room = size;
    return true;
}

void uva__checked_task_fill(struct uva__checked_task *task,
                            const struct ArrowAsyncTask *real,
                            const char *metadata, size_t size, int64_t ordinal)
{
    if (size > 0 && slot_make_room(task, size))
        memcpy(task->text, metadata, size);
    task->real = *real;
    task->ordinal = ordinal;
    task->shown.extract_data = task_extract;
    task->shown.private_data = uva__tagged_pointer_make(task, task->generation);
}

/* ---- after the callback ------------------------------------------------- */

/* Returns the task of a tagged pointer, which may be altered; NULL if its slot
 * cannot be found. */
static struct uva__checked_task *task_of(const struct ArrowAsyncTask *self)
{
    return self != NULL ? uva__tagged_pointer_read(self->private_data).object
                        : NULL;
}

const struct ArrowAsyncTask *
uva__checked_task_behind(const struct ArrowAsyncTask *task)
{
    return task->extract_data == task_extract ? &task_of(task)->real : NULL;
}

/* Called through the struct of a callback that has returned. */
static int task_extract_spoiled(struct ArrowAsyncTask *self,
                                struct ArrowDeviceArray *out)
{
    struct uva__checked_task *task = task_of(self);

    (void)out;
    if (task != NULL)
        uva__checked_report(task->stream, UVA__RULE_AT_13, task->ordinal);
    return EINVAL;
}

void uva__checked_task_poison(struct uva__checked_task *task)
{
    task->shown.extract_data = task_extract_spoiled;
    if (task->text != NULL)
        memset(task->text, POISON, task->room);
}

bool uva__checked_task_take_back_locked(struct uva__checked_task *task)
{
    if (task->state != UVA__CHECKED_HELD)
        return false;
    task->state = UVA__CHECKED_TAKEN_BACK;
    task->stream->locked.held--;
    task->stream->locked.refs--; /* the callback has its own count */
    uva__slab_put(&task->stream->locked.tasks, task);
    return true;
}

/* Called by the producer, through its own struct. */
static int task_extract_scribbled(struct ArrowAsyncTask *self,
                                  struct ArrowDeviceArray *out)
{
    struct uva__checked_task *task = task_of(self);

    (void)out;
    if (task != NULL)
        uva__checked_report(task->stream, UVA__RULE_AT_20, task->ordinal);
    return EINVAL;
}

void uva__checked_task_scribble(const struct uva__checked_task *task,
                                struct ArrowAsyncTask *real)
{
    real->extract_data = task_extract_scribbled;
    real->private_data = task->shown.private_data;
}

/* ---- extract: permission ------------------------------------------------ */

/* One extraction. */
struct extraction {
    struct uva__checked *stream;    /* borrows; the call has a reference */
    struct uva__checked_task *task; /* borrows */
    struct uva__active_call active_call;
    bool failed;               /* it gave no array, though one was requested */
    struct uva__findings seen; /* faults of the array */
};

/* Returns 0 if the pointer names a task that is held; otherwise the error to
 * return. */
static int task_check_locked(struct uva__checked_task *task,
                             const struct uva__tagged_pointer *pointer,
                             struct uva__findings *findings)
{
    struct uva__checker_state *protocol = &task->stream->locked.protocol;
    const bool same = pointer->generation == task->generation;

    if (!pointer->intact) {
        uva__checker_state_find(protocol, findings, UVA__RULE_AT_14,
                                task->ordinal);
        return EINVAL;
    }
    if (same && task->state == UVA__CHECKED_TAKEN_BACK)
        return ECANCELED;
    if (same && task->state == UVA__CHECKED_HELD)
        return 0;
    uva__checker_state_find(protocol, findings, UVA__RULE_AT_03, task->ordinal);
    return EINVAL;
}

static int extraction_begin(struct extraction *e,
                            const struct uva__tagged_pointer *pointer)
{
    struct uva__checked *c = e->stream;
    struct uva__findings findings;
    int code;

    findings.count = 0;
    uva__lock_take(&c->lock);
    code = task_check_locked(e->task, pointer, &findings);
    if (code == 0) {
        e->task->state = UVA__CHECKED_EXTRACTING;
        uva__checker_state_extract(&c->locked.protocol);
        (void)uva__checked_enter_locked(c, &e->active_call);
    }
    uva__lock_drop(&c->lock);
    uva__checked_report_all(c, &findings);
    return code;
}

static void extraction_end(struct extraction *e)
{
    struct uva__checked *c = e->stream;
    struct uva__findings findings;

    findings.count = 0;
    uva__lock_take(&c->lock);
    uva__checker_state_observed(&c->locked.protocol, &e->seen, &findings);
    uva__checker_state_extracted(&c->locked.protocol, e->failed);
    e->task->state = UVA__CHECKED_IDLE;
    uva__slab_put(&c->locked.tasks, e->task);
    c->locked.held--;
    c->locked.refs--; /* the task's; the call has its own reference */
    uva__checked_leave_unlock(c, &e->active_call, &findings);
}

/* ---- extract: the array ------------------------------------------------- */

static bool gives_array(const struct ArrowDeviceArray *array)
{
    unsigned char unset[sizeof(array->array.release)];

    memset(unset, UNSET, sizeof(unset));
    return array->array.release != NULL &&
           memcmp(&array->array.release, unset, sizeof(unset)) != 0;
}

/* Calls the producer, and measures only that. */
static int extraction_call(struct extraction *e, struct ArrowDeviceArray *out)
{
    struct uva__checked *c = e->stream;
    const int64_t begun = uva__checked_clock(c);
    int64_t ms;
    int code;

    code = e->task->real.extract_data(&e->task->real, out);
    ms = uva__checked_elapsed_ms(c, begun);
    if (ms > c->times.slow_extract_ms)
        uva__findings_add(&e->seen, UVA__RULE_AT_09, ms);
    return code;
}

/* Faults of shape and numbers are reported by their own clauses; those against
 * the schema, by the one on extracted arrays. Clauses: AT-17. */
static void extraction_check(struct extraction *e,
                             const struct ArrowDeviceArray *array)
{
    const struct uva__checked *c = e->stream;
    struct uva__tree_walk walk;

    if (uva__atomic_ptr_load(&c->peer.producer) != NULL &&
        array->device_type != c->peer.device_type)
        uva__findings_add(&e->seen, UVA__RULE_AT_16, array->device_type);
    uva__tree_walk_init(&walk, c->reporter);
    uva__array_check(&walk, c->schema.release != NULL ? &c->schema : NULL,
                     array, "AT-17");
}

/* A trap replaces this release, unless there was no memory for one. */
static void array_of_none(struct ArrowArray *array)
{
    array->release = NULL;
}

/* Gives no array. Output of a failed extraction is reported, and not released
 * or passed on: it may be stale. A consumer that marked `out` as released finds
 * it unchanged; any other finds a trap, or the mark.
 * Clauses: AT-22. */
static void extraction_give_none(struct extraction *e, int code,
                                 const struct ArrowDeviceArray *array,
                                 struct ArrowDeviceArray *out)
{
    e->failed = code != 0;
    if (code == 0)
        uva__findings_add(&e->seen, UVA__RULE_AT_05, e->task->ordinal);
    else if (gives_array(array) &&
             !uva__release_hook_array_is_trap(&array->array))
        uva__findings_add(&e->seen, UVA__RULE_AT_07, e->task->ordinal);
    if (out->array.release == NULL)
        return;
    out->array.release = NULL;
    if (code == 0 || !e->stream->keep)
        return;
    out->array.release = array_of_none;
    uva__release_hook_trap_array(e->stream->reporter, &out->array, "AT-22");
}

static int extraction_run(struct extraction *e, struct ArrowDeviceArray *out)
{
    struct ArrowDeviceArray array;
    int code;

    memset(&array, UNSET, sizeof(array));
    code = extraction_call(e, &array);
    if (code != 0 || !gives_array(&array)) {
        extraction_give_none(e, code, &array, out);
        return code;
    }
    extraction_check(e, &array);
    memset(array.reserved, 0, sizeof(array.reserved)); /* perhaps the fill */
    memcpy(out, &array, sizeof(*out));
    if (uva__release_hook_array(e->stream->reporter, &out->array,
                                e->task->ordinal) != 0)
        uva__reporter_note(e->stream->reporter,
                           "no memory: it passes unwatched", 0, 0);
    return 0;
}

static int extraction_discard(struct extraction *e)
{
    const int code = extraction_call(e, NULL);

    if (code != 0)
        uva__findings_add(&e->seen, UVA__RULE_AT_04, code);
    return code;
}

static void extraction_init(struct extraction *e,
                            struct uva__checked_task *task)
{
    e->stream = task->stream;
    e->task = task;
    e->active_call = (struct uva__active_call){.call = UVA__CALL_EXTRACT};
    e->failed = false;
    e->seen.count = 0;
}

/* The extract_data of every task that a check passes on. */
static int task_extract(struct ArrowAsyncTask *self,
                        struct ArrowDeviceArray *out)
{
    struct uva__tagged_pointer pointer = {.object = NULL};
    struct extraction e;
    int code;

    if (self != NULL)
        pointer = uva__tagged_pointer_read(self->private_data);
    if (pointer.object == NULL)
        return EINVAL;
    extraction_init(&e, pointer.object);
    uva__reporter_note(e.stream->reporter,
                       out != NULL ? "extract_data of task %" PRId64
                                   : "extract_data of task %" PRId64 ", NULL",
                       e.task->ordinal, 0);
    code = extraction_begin(&e, &pointer);
    if (code == ECANCELED && out != NULL)
        out->array.release = NULL;
    if (code != 0)
        return code;
    uva__checked_perturb(e.stream);
    code = out == NULL ? extraction_discard(&e) : extraction_run(&e, out);
    uva__checked_perturb(e.stream);
    extraction_end(&e);
    return code;
}

/* ---- at the end --------------------------------------------------------- */

/* Tasks that are left. */
struct leftovers {
    int64_t count; /* tasks held */
    int64_t first; /* the lowest ordinal of those */
};

static void slot_count(void *block, void *ctx)
{
    const struct uva__checked_task *task = block;
    struct leftovers *left = ctx;

    if (task->state != UVA__CHECKED_HELD)
        return;
    if (left->count == 0 || task->ordinal < left->first)
        left->first = task->ordinal;
    left->count++;
}

int64_t uva__checked_tasks_held_locked(struct uva__checked *c, int64_t *first)
{
    struct leftovers left = {.count = 0};

    uva__slab_each(&c->locked.tasks, slot_count, &left);
    *first = left.first;
    return left.count;
}
