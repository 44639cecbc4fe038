/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  kept (SHUT) -> claimed (OPENING) -> extracted, checked -> back
 * in the pool.
 *
 * What can fail:
 * - the extraction, or the array it gives: a code for the thread that claimed
 * it;
 * - no memory to keep a task: a code for the callback that gave it.
 *
 * On close:    tasks that are not claimed are extracted here, and kept as
 * arrays (OPEN). A thread that claims one meanwhile waits for that; one that
 *              only wants to discard it leaves that to the thread that is
 *              extracting it. */
#include "source/pending_tasks.h"

#include <errno.h>
#include <string.h>

#include "source/foreign_clauses.h"
#include "arrow/layout.h"
#include "base/memory.h"
#include "arrow/metadata.h"
#include "base/thread.h"
#include "uvarrow/arrow.h"

enum { POOL_STEP = 16 };

/* ---- life --------------------------------------------------------------- */

void uva__depot_init(struct uva__depot *depot, struct uva__hub *hub)
{
    depot->hub = hub;
    depot->locked.pool = (struct uva__slab){
        .allocator = &hub->allocator,
        .size = sizeof(struct uva__parcel),
        .align = _Alignof(struct uva__parcel),
        .link_offset = offsetof(struct uva__parcel, link),
        .step = POOL_STEP,
    };
}

void uva__depot_fini(struct uva__depot *depot)
{
    uva_schema_release(&depot->schema);
    uva__slab_fini(&depot->locked.pool);
}

void uva__depot_describe(struct uva__depot *depot, struct ArrowSchema *schema,
                         ArrowDeviceType device_type)
{
    uva_schema_move(schema, &depot->schema);
    depot->device_type = device_type;
    uva__lock_take(&depot->lock);
    depot->locked.ready = true;
    uva__lock_drop(&depot->lock);
}

/* ---- keeping ------------------------------------------------------------ */

/* Returns 0 with a pending task, which is NULL if the pool is empty; or an
 * error. */
static int depot_take_locked(struct uva__depot *depot, struct uva__parcel **out)
{
    if (depot->locked.closed)
        return ECANCELED;
    if (!depot->locked.ready)
        return EPROTO;
    *out = uva__slab_take(&depot->locked.pool, NULL);
    return 0;
}

/* Fills the pool, without the lock. */
static int depot_stock_up(struct uva__depot *depot)
{
    struct slab_chunk *chunk = uva__slab_fetch(&depot->locked.pool);

    if (chunk == NULL)
        return ENOMEM;
    uva__lock_take(&depot->lock);
    uva__slab_add(&depot->locked.pool, chunk);
    uva__lock_drop(&depot->lock);
    return 0;
}

static int depot_shelve(struct uva__depot *depot,
                        const struct ArrowAsyncTask *task,
                        struct uva__parcel **out)
{
    struct uva__parcel *parcel = NULL;
    int code;

    uva__lock_take(&depot->lock);
    code = depot_take_locked(depot, &parcel);
    if (parcel != NULL) {
        parcel->task = *task;
        parcel->state = UVA__PARCEL_SHUT;
        parcel->unwanted = false;
        uva__list_push(&depot->locked.shelf, &parcel->shelf);
    }
    uva__lock_drop(&depot->lock);
    *out = parcel;
    return code;
}

int uva__depot_keep(struct uva__depot *depot, const struct ArrowAsyncTask *task,
                    const char *metadata, struct uva__parcel **out)
{
    const struct uva_allocator *allocator = &depot->hub->allocator;
    char *copy;
    size_t size;
    int code = uva__metadata_copy(allocator, metadata, &copy, &size);

    if (code == ENOMEM)
        return code;
    if (code != 0)
        uva__breaches_count(depot->hub, "MD-05");
    do
        code = depot_shelve(depot, task, out);
    while (code == 0 && *out == NULL && (code = depot_stock_up(depot)) == 0);
    if (code != 0) {
        uva__memory_free(allocator, copy, size);
        return code;
    }
    (*out)->metadata = copy;
    (*out)->metadata_size = size;
    return 0;
}

/* ---- opening ------------------------------------------------------------ */

void uva__depot_spend(const struct ArrowAsyncTask *task)
{
    struct ArrowAsyncTask copy = *task;
    struct ArrowDeviceArray array;

    if (uva_task_extract(&copy, &array) == 0)
        uva_array_release(&array);
}

static int parcel_check(struct uva__depot *depot,
                        struct ArrowDeviceArray *array, struct uva_error *error)
{
    struct uva_error detail;
    int64_t bytes;

    if (array->array.release == NULL) {
        uva__breaches_count(depot->hub, "AT-05");
        return uva_error_set(error, EPROTO, "%s (AT-05)",
                             uva__breaches_text("AT-05"));
    }
    if (array->device_type != depot->device_type &&
        uva__word_exchange(&depot->warned, 1) == 0)
        uva__breaches_count(depot->hub, "AT-16");
    if (uva__layout_measure(&depot->schema, array, &bytes, &detail) != EINVAL)
        return 0; /* batches of an unknown format cannot be checked */
    uva__breaches_count(depot->hub, "AT-17");
    uva_array_release(array);
    return uva_error_set(error, EPROTO, "%s (AT-17): %s",
                         uva__breaches_text("AT-17"), detail.message);
}

/* Calls the foreign producer. */
static int parcel_open(struct uva__depot *depot, struct uva__parcel *parcel,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    int code;

    uva_array_clear(out); /* */
    code = parcel->task.extract_data(&parcel->task, out);
    if (code == 0)
        return parcel_check(depot, out, error);
    out->array.release = NULL;
    return uva_error_set(error, code, "extraction failed with %s (%d)",
                         uva_error_name(code), code);
}

static void depot_changed_locked(struct uva__depot *depot)
{
    if (depot->locked.waiting > 0)
        uva__signal_raise(&depot->changed);
}

/* Drops the lock while it waits. */
static void depot_wait_locked(struct uva__depot *depot)
{
    const uint32_t seen = uva__signal_now(&depot->changed);

    depot->locked.waiting++;
    uva__lock_drop(&depot->lock);
    (void)uva__signal_wait(&depot->changed, seen, -1);
    uva__lock_take(&depot->lock);
    depot->locked.waiting--;
}

/* How a claim ends. */
enum claim {
    CLAIM_MINE,  /* the caller opens it */
    CLAIM_OPEN,  /* it is open already */
    CLAIM_OTHERS /* the thread that opens it will discard it */
};

static enum claim parcel_claim_locked(struct uva__depot *depot,
                                      struct uva__parcel *parcel, bool wanted)
{
    while (parcel->state == UVA__PARCEL_OPENING && wanted)
        depot_wait_locked(depot);
    switch (parcel->state) {
    case UVA__PARCEL_OPENING:
        parcel->unwanted = true;
        return CLAIM_OTHERS;
    case UVA__PARCEL_OPEN:
        return CLAIM_OPEN;
    default:
        parcel->state = UVA__PARCEL_OPENING;
        parcel->opener = uva__thread_self();
        return CLAIM_MINE;
    }
}

static enum claim parcel_claim(struct uva__depot *depot,
                               struct uva__parcel *parcel, bool wanted)
{
    enum claim claim;

    uva__lock_take(&depot->lock);
    claim = parcel_claim_locked(depot, parcel, wanted);
    uva__lock_drop(&depot->lock);
    return claim;
}

/* Puts it back into the pool; `opened`: the caller has opened it, with this
 * outcome. */
static void parcel_put(struct uva__depot *depot, struct uva__parcel *parcel,
                       bool opened, int code)
{
    const struct uva_allocator *allocator = &depot->hub->allocator;

    uva__failure_fini(&parcel->failure, allocator);
    uva__memory_free(allocator, parcel->metadata, parcel->metadata_size);
    parcel->metadata = NULL;
    uva__lock_take(&depot->lock);
    depot->locked.failed = depot->locked.failed || code != 0;
    if (opened) {
        (void)uva__list_remove(&depot->locked.shelf, &parcel->shelf);
        depot_changed_locked(depot);
    }
    uva__slab_put(&depot->locked.pool, parcel);
    uva__lock_drop(&depot->lock);
}

int uva__depot_extract(struct uva__depot *depot, struct uva__parcel *parcel,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    const bool mine = parcel_claim(depot, parcel, true) == CLAIM_MINE;
    int code;

    if (mine) {
        code = parcel_open(depot, parcel, out, error);
    } else {
        uva_array_move(&parcel->array, out);
        code = uva__failure_get(&parcel->failure, error);
    }
    parcel_put(depot, parcel, mine, code);
    return code;
}

void uva__depot_discard(struct uva__depot *depot, struct uva__parcel *parcel)
{
    const enum claim claim = parcel_claim(depot, parcel, false);

    if (claim == CLAIM_OTHERS)
        return;
    if (claim == CLAIM_MINE)
        uva__depot_spend(&parcel->task);
    else
        uva_array_release(&parcel->array);
    parcel_put(depot, parcel, claim == CLAIM_MINE, 0);
}

/* ---- closing ------------------------------------------------------------ */

static struct uva__parcel *parcel_at(struct uva__link *shelf)
{
    return uva__container_of(shelf, struct uva__parcel, shelf);
}

/* Returns the first task that is not claimed; NULL: there is none. */
static struct uva__parcel *depot_claim_next(struct uva__depot *depot)
{
    struct uva__parcel *parcel = NULL;
    struct uva__link *shelf;

    uva__lock_take(&depot->lock);
    for (shelf = depot->locked.shelf.head; shelf != NULL; shelf = shelf->next)
        if (parcel_at(shelf)->state == UVA__PARCEL_SHUT) {
            parcel = parcel_at(shelf);
            (void)parcel_claim_locked(depot, parcel, true);
            break;
        }
    uva__lock_drop(&depot->lock);
    return parcel;
}

static void parcel_open_ahead(struct uva__depot *depot,
                              struct uva__parcel *parcel)
{
    struct uva_error error;
    bool unwanted;
    int code = parcel_open(depot, parcel, &parcel->array, &error);

    if (code != 0)
        uva__failure_set(&parcel->failure, &depot->hub->allocator, code, &error,
                         NULL);
    uva__lock_take(&depot->lock);
    (void)uva__list_remove(&depot->locked.shelf, &parcel->shelf);
    parcel->state = UVA__PARCEL_OPEN;
    depot->locked.failed = depot->locked.failed || code != 0;
    unwanted = parcel->unwanted;
    depot_changed_locked(depot);
    uva__lock_drop(&depot->lock);
    if (!unwanted)
        return; /* another thread has claimed it, and may be opening it */
    uva_array_release(&parcel->array);
    parcel_put(depot, parcel, false, 0);
}

/* Returns whether another thread is extracting a task. */
static bool depot_is_busy_locked(const struct uva__depot *depot)
{
    struct uva__link *shelf = depot->locked.shelf.head;

    while (shelf != NULL && parcel_at(shelf)->opener == uva__thread_self())
        shelf = shelf->next;
    return shelf != NULL;
}

bool uva__depot_close(struct uva__depot *depot)
{
    struct uva__parcel *parcel;
    bool nested;

    uva__lock_take(&depot->lock);
    depot->locked.closed = true;
    uva__lock_drop(&depot->lock);
    while ((parcel = depot_claim_next(depot)) != NULL)
        parcel_open_ahead(depot, parcel);
    uva__lock_take(&depot->lock);
    while (depot_is_busy_locked(depot))
        depot_wait_locked(depot);
    nested = !uva__list_is_empty(&depot->locked.shelf);
    uva__lock_drop(&depot->lock);
    return nested;
}

bool uva__depot_is_at_risk(struct uva__depot *depot)
{
    bool risky;

    uva__lock_take(&depot->lock);
    risky = depot->locked.failed || !uva__list_is_empty(&depot->locked.shelf);
    uva__lock_drop(&depot->lock);
    return risky;
}
