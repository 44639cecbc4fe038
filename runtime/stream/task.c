/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a task, from its data to its end.
 *
 * Happy path:  fill -> offer (HELD) -> claim (EXTRACTING) -> data made, maps
 *              run -> settle (DONE); the loop reaps the slot.
 *
 * Failures:
 * - making the data, or a map: FAILED; the loop reads why and ends the stream;
 * - a second or late extraction: EINVAL or ECANCELED, `out` as it was; a late
 *   discard is no error.
 *
 * On cancel:   tasks that consumers hold stay extractable, until revoked. */
#include "stream/task.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "loop/rt.h"
#include "stream/check_hop.h"
#include "stream/producer.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

enum { TOKEN_LOW_BITS = 8, TOKEN_HIGH_SHIFT = 48 };

static const uint64_t TOKEN_ADDRESS = 0x0000ffffffffff00u;

/* ---- fill --------------------------------------------------------------- */

int uva__task_take_metadata(struct uva__task *task,
                            const struct uva_allocator *allocator,
                            const char *metadata)
{
    size_t size = 0;

    assert(task->info.metadata.block == NULL);
    if (metadata == NULL || uva_metadata_size(metadata, &size) != 0)
        return 0;
    if (size > sizeof(task->room)) {
        task->info.metadata.block = uva__memory_new(allocator, size);
        if (task->info.metadata.block == NULL)
            return ENOMEM;
    } else {
        task->info.metadata.block = task->room;
    }
    memcpy(task->info.metadata.block, metadata, size);
    task->info.metadata.size = size;
    return 0;
}

int uva__task_fill_lazy(struct uva__task *task,
                        const struct uva_allocator *allocator,
                        const struct uva__lazy *lazy, const char *metadata)
{
    if (uva__task_take_metadata(task, allocator, metadata) != 0)
        return ENOMEM;
    task->is_lazy = true;
    task->info.bytes = 0;
    task->no_rows = 0;
    task->lazy = *lazy;
    return 0;
}

/* ---- offer -------------------------------------------------------------- */

static void *token_make(struct uva__task *task, uint64_t generation)
{
    uint64_t token = (uint64_t)(uintptr_t)task;

    assert((token & ~TOKEN_ADDRESS) == 0);
    token |= generation & 0xff;
    token |= (generation >> TOKEN_LOW_BITS) << TOKEN_HIGH_SHIFT;
    return (void *)(uintptr_t)token;
}

static struct uva__task *token_read(void *pointer, uint64_t *generation)
{
    uint64_t token = (uint64_t)(uintptr_t)pointer;

    *generation = (token & 0xff) | (token >> TOKEN_HIGH_SHIFT)
                                       << TOKEN_LOW_BITS;
    return (struct uva__task *)(uintptr_t)(token & TOKEN_ADDRESS);
}

void uva__task_offer(struct uva__task *task, bool to_foreign,
                     struct ArrowAsyncTask *out)
{
    const uint64_t flags = to_foreign ? UVA__TASK_COUNTED : 0;

    out->private_data =
        token_make(task, uva__task_state_offer(&task->state, flags));
    out->extract_data = uva__task_extract;
    if (to_foreign)
        uva__stats_give_task(&task->producer->rt->stats, true);
}

/* It is counted first: once it is marked, it may be over at any moment. */
void uva__task_give(struct uva__rt *rt, const struct ArrowAsyncTask *task)
{
    uint64_t generation;
    struct uva__task *slot = token_read(task->private_data, &generation);

    assert(uva__task_is_ours(task));
    uva__stats_give_task(&rt->stats, false);
    if (!uva__task_state_count(&slot->state, generation))
        uva__stats_end_task(&rt->stats, false);
}

/* ---- extract ------------------------------------------------------------ */

/* The end of a watch, which counts a reference. */
static void producer_notify(struct uva__producer *producer)
{
    uva__rt_wake(producer->rt, &producer->wakeup);
    uva__wakeup_release(&producer->wakeup);
}

/* Ends a claim or a discard. It is the last access to the slot; the producer is
 * accessed afterwards only if the task is watched. */
static inline void task_settle(struct uva__task *task,
                               enum uva__task_state state)
{
    struct uva__producer *producer = task->producer;
    const bool here = uva__rt_in_turn(producer->rt);

    if (uva__atomic64_peek(&task->state) & UVA__TASK_COUNTED)
        uva__stats_end_task(&producer->rt->stats, here);
    /* Only the loop sets a watch, so no watch is set during its own turn. */
    if (uva__task_state_settle(&task->state, state, here))
        producer_notify(producer);
}

/* Claiming an orphaned task gives up its hold on the rt. The memory of its
 * producer may be in quarantine by then, but it names the rt as before. */
static inline int task_claim(struct uva__task *task, uint64_t generation)
{
    bool orphaned;
    const int code = uva__task_state_claim(&task->state, generation, &orphaned);

    if (orphaned)
        uva__rt_unhold(task->producer->rt);
    return code;
}

/* Sizes are measured at extraction only where times are measured, too: of a
 * batch that goes to that map; NULL: of a result. */
static void task_count_bytes(struct uva__meter *meter,
                             const struct uva__producer *p,
                             const struct uva__mapping *to,
                             const struct ArrowDeviceArray *array)
{
    int64_t bytes;

    if (meter->times != NULL &&
        uva__measure_exactly(to != NULL ? to->measure
                                        : uva__outline_measure(p->output),
                             array, &bytes, NULL) == 0)
        uva__counter_add_shared(&meter->shared.bytes, bytes);
}

/* Counts what extraction has made: `here` is whether this is a turn of the
 * stream's loop, which has its own counters. */
static inline void task_count(struct uva__counter *own,
                              struct uva__counter *shared, bool here, int64_t n)
{
    if (here)
        uva__counter_add(own, n);
    else
        uva__counter_add_shared(shared, n);
}

static int task_make(struct uva__task *task, struct ArrowDeviceArray *out,
                     struct uva_error *error)
{
    const struct uva__producer *p = task->producer;
    struct uva__meter *meter = p->source->meter;
    struct uva__lazy lazy = task->lazy;
    const uint64_t since_ns = uva__span_begin(p->rt);
    int code;

    uva_array_clear(out); /* Clauses. */
    code = lazy.extract(lazy.ctx, lazy.item, out, error);
    uva__span_end(meter, "extract", task->info.ordinal, since_ns);
    if (code == 0 && out->array.release == NULL)
        code = uva_error_set(error, EPROTO,
                             "the extraction succeeded and gave no array");
    if (code != 0)
        return code;
    task_count(&meter->loop.rows, &meter->shared.rows, uva__rt_in_turn(p->rt),
               out->array.length);
    if (since_ns != 0)
        task_count_bytes(meter, p, p->maps, out);
    return 0;
}

/* Members that a map forgets to set are 0. It cannot forget the array. */
static void task_blank(struct ArrowDeviceArray *out)
{
    const size_t behind = offsetof(struct ArrowDeviceArray, device_id);

    out->array.release = NULL;
    memset((char *)out + behind, 0, sizeof(*out) - behind);
}

/* A batch between maps. */
struct mapped {
    struct uva_batch batch;
    uint64_t since_ns; /* when the map that made it ended, if maps are timed and
                          the next one follows at once; otherwise 0 */
};

static struct mapped *mapped_of(struct uva_batch *batch)
{
    return uva__container_of(batch, struct mapped, batch);
}

/* Where the result of a map lies, unless that is the last one. */
static struct mapped *mapped_at(struct ArrowDeviceArray *out)
{
    return mapped_of(uva__container_of(out, struct uva_batch, data));
}

/* Is called instead of the function of a map where that is timed. Between two
 * maps only the first one is reported, unless it leaves its batch to be
 * released. */
int uva__task_map_timed(void *ctx, struct uva_batch *in,
                        struct ArrowDeviceArray *out, struct uva_error *error)
{
    const struct uva__mapping *m = ctx;
    const struct uva__producer *p = m->producer;
    const int64_t ordinal = in->ordinal;
    uint64_t at_ns = m != p->maps ? mapped_of(in)->since_ns : 0;
    int code;

    if (at_ns == 0)
        at_ns = uva__span_begin(p->rt);
    code = m->options.batch(m->options.ctx, in, out, error);
    at_ns = uva__span_end(m->meter, "map", ordinal, at_ns);
    if (code == 0 && out->array.release != NULL)
        task_count_bytes(m->meter, p, m->next, out);
    if (m->next != NULL)
        mapped_at(out)->since_ns =
            uva_array_is_live(&in->data) || m->meter->times != NULL ? 0 : at_ns;
    return code;
}

/* Runs one map, which takes the data of `in`; `here` as above. */
static int task_map_one(const struct uva__task *task,
                        const struct uva__mapping *m, struct uva_batch *in,
                        struct ArrowDeviceArray *out, bool here,
                        struct uva_error *error)
{
    int code;

    in->schema = &m->measure->schema;
    in->metadata = task->info.metadata.block;
    in->ordinal = task->info.ordinal;
    in->stream = NULL;
    task_blank(out);
    code = m->batch(m->ctx, in, out, error);
    uva_array_release(&in->data);
    if (code == 0 && out->array.release == NULL)
        return uva_error_set(error, EPROTO,
                             "a map succeeded and gave no array");
    if (code != 0)
        return uva__error_positive(code);
    task_count(&m->meter->loop.rows, &m->meter->shared.rows, here,
               out->array.length);
    return 0;
}

/* Runs the maps of the producer over the batch in `in`. The output of each is
 * the input of the next, and the last one writes `out`: without copies in
 * between. */
static int task_map(const struct uva__task *task, struct mapped *in,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    const struct uva__mapping *m = task->producer->maps;
    const bool here = uva__rt_in_turn(task->producer->rt);
    struct mapped other;
    struct uva_batch *from = &in->batch, *to = &other.batch, *swap;
    int code = 0;

    memset(from->reserved, 0, sizeof(from->reserved));
    memset(to->reserved, 0, sizeof(to->reserved));
    for (; m->next != NULL && code == 0; m = m->next) {
        code = task_map_one(task, m, from, &to->data, here, error);
        swap = from;
        from = to;
        to = swap;
    }
    if (code == 0)
        code = task_map_one(task, m, from, out, here, error);
    if (code != 0)
        return code;
    m = task->producer->maps; /* the first one counts for all */
    task_count(&m->meter->loop.batches, &m->meter->shared.batches, here, 1);
    return 0;
}

/* Keeps why a claimed task fails, which the producer reports on the loop. */
static void task_fail(struct uva__task *task, int code,
                      const struct uva_error *error)
{
    struct uva__producer *p = task->producer;
    struct uva_error *kept = NULL;

    uva__wakeup_acquire(&p->wakeup);
    if (error->message[0] != '\0')
        kept = uva__memory_new(&p->rt->allocator, sizeof(*kept));
    if (kept != NULL)
        *kept = *error;
    task->is_lazy = false;
    task->failed.code = code;
    task->failed.error = kept;
    task_settle(task, UVA__TASK_FAILED);
    uva__demand_note_failed(&p->demand); /* before the wake-up */
    producer_notify(p);
}

static int task_extract_expensive(struct uva__task *task,
                                  struct ArrowDeviceArray *out)
{
    const bool mapped = task->producer->maps != NULL;
    struct uva_error error;
    struct mapped in;
    int code = 0;

    uva__error_begin(&error);
    if (task->is_lazy)
        code = task_make(task, mapped ? &in.batch.data : out, &error);
    else
        uva_array_move(&task->array, &in.batch.data);
    if (code == 0 && mapped)
        code = task_map(task, &in, out, &error);
    if (code == 0) {
        task_settle(task, UVA__TASK_DONE);
        return 0;
    }
    out->array.release = NULL;
    task_fail(task, code, &error);
    return code;
}

static void task_drop_data(struct uva__task *task)
{
    struct uva__lazy lazy = task->lazy;

    if (task->is_lazy)
        (void)lazy.extract(lazy.ctx, lazy.item, NULL, NULL);
    else
        uva_array_release(&task->array);
}

/* Extracts a claimed task to `out`; NULL discards it. */
static int task_give(struct uva__task *task, struct ArrowDeviceArray *out)
{
    if (out == NULL)
        task_drop_data(task);
    else if (task->is_lazy || task->producer->maps != NULL)
        return task_extract_expensive(task, out);
    else
        memcpy(out, &task->array, sizeof(*out));
    task_settle(task, UVA__TASK_DONE);
    return 0;
}

/* Whether a discard has no object left: the task was revoked, or its slot
 * serves another one. Clauses: AT-04. */
static bool task_is_gone(const struct uva__task *task, uint64_t generation,
                         int code)
{
    return code == ECANCELED ||
           uva__atomic64_load(&task->state) >> UVA__TASK_GENERATION_SHIFT !=
               generation;
}

int uva__task_extract(struct ArrowAsyncTask *self, struct ArrowDeviceArray *out)
{
    struct uva__task *task;
    uint64_t generation;
    int code;

    if (self == NULL || self->private_data == NULL)
        return EINVAL;
    task = token_read(self->private_data, &generation);
    code = task_claim(task, generation);
    if (code == 0)
        return task_give(task, out);
    if (out == NULL)
        return task_is_gone(task, generation, code) ? 0 : code;
    if (code == ECANCELED)
        out->array.release = NULL; /* not the array of a first extraction */
    return code;
}

/* No watch can be set on the task so far: it is settled by a store. */
int uva__task_extract_first(struct ArrowAsyncTask *self,
                            struct ArrowDeviceArray *out)
{
    struct uva__task *task;
    uint64_t generation, claimed;

    if (!uva__task_is_ours(self))
        return uva_task_extract(self, out);
    task = token_read(self->private_data, &generation);
    claimed = uva__atomic64_peek(&task->state) - UVA__TASK_HELD;
    assert(!(claimed & UVA__TASK_ALL_BITS)); /* not of a foreign handler */
    if (task->is_lazy || task->producer->maps != NULL) {
        uva__atomic64_store(&task->state, claimed + UVA__TASK_EXTRACTING);
        return task_extract_expensive(task, out);
    }
    memcpy(out, &task->array, sizeof(*out));
    uva__atomic64_store(&task->state, claimed + UVA__TASK_DONE);
    return 0;
}

/* The slot of our task, which the checker of any hop on the way may have
 * wrapped; NULL for a foreign one. */
static const struct uva__task *task_behind(const struct ArrowAsyncTask *task)
{
    uint64_t generation;

    while (task != NULL && task->extract_data != uva__task_extract)
        task = uva__check_hop_unwrap(task);
    return task != NULL ? token_read(task->private_data, &generation) : NULL;
}

enum uva__task_kind uva__task_kind(const struct ArrowAsyncTask *task)
{
    const struct uva__task *slot = task_behind(task);

    if (slot == NULL)
        return UVA__TASK_FOREIGN;
    return slot->producer->expensive ? UVA__TASK_OURS_EXPENSIVE
                                     : UVA__TASK_OURS;
}

bool uva__task_is_made(const struct ArrowAsyncTask *task)
{
    const struct uva__task *slot = task_behind(task);

    return slot != NULL && slot->producer->expensive && !slot->is_lazy &&
           slot->producer->maps == NULL;
}

const struct uva__batch_info *uva__task_info(const struct ArrowAsyncTask *task)
{
    const struct uva__task *slot = task_behind(task);

    assert(slot != NULL);
    return &slot->info;
}

int64_t uva__task_ordinal(const struct ArrowAsyncTask *task)
{
    return uva__task_info(task)->ordinal;
}

int64_t uva__task_bytes(const struct ArrowAsyncTask *task)
{
    return uva__window_size(uva__task_info(task)->bytes);
}

/* A map may change it. */
bool uva__task_is_measured(const struct ArrowAsyncTask *task)
{
    const struct uva__task *slot = task_behind(task);

    assert(slot != NULL && !(slot->measured && slot->is_lazy));
    return slot->measured && slot->producer->maps == NULL;
}

/* ---- taking back -------------------------------------------------------- */

/* Ends a discard: the data is gone. An orphaned task is watched, and may be
 * extracted as soon as it is orphaned. */
static void task_swept(struct uva__task *task)
{
    struct uva__producer *producer = task->producer;
    struct uva__rt *rt = producer->rt;

    uva__rt_hold(rt);
    if (uva__task_state_orphan(&task->state)) {
        producer_notify(producer);
        return;
    }
    task_settle(task, UVA__TASK_REVOKED);
    uva__rt_unhold(rt);
}

static void task_discard_run(struct uva__discard *item)
{
    struct uva__task *task = uva__container_of(item, struct uva__task, discard);

    task_drop_data(task);
    task_swept(task);
}

/* Has a task in state DISCARDING discarded on an extra thread, as foreign code
 * discards it. */
static void task_discard_async(struct uva__task *task)
{
    task->discard.run = task_discard_run;
    task->discard.owner = task->producer;
    uva__discard_add(task->producer->rt, &task->discard);
}

/* Returns whether the task was taken back; `*counted` as in task_state.h. */
static bool task_take_back(struct uva__task *task, uint64_t generation,
                           uint64_t flags, bool *counted)
{
    struct uva__rt *rt;

    if (!uva__task_state_take_back(&task->state, generation, flags, counted))
        return false;
    rt = task->producer->rt;
    if (*counted)
        uva__stats_end_task(&rt->stats, uva__rt_in_turn(rt));
    return true;
}

static bool task_take_back_here(struct uva__task *task, uint64_t flags)
{
    const uint64_t generation =
        uva__atomic64_load(&task->state) >> UVA__TASK_GENERATION_SHIFT;
    bool counted;

    if (!task_take_back(task, generation, flags, &counted))
        return false;
    if (task->is_lazy) {
        task_discard_async(task);
        return counted;
    }
    uva_array_release(&task->array);
    task_swept(task);
    return counted;
}

bool uva__task_revoke(struct uva__task *task)
{
    return task_take_back_here(task, 0);
}

bool uva__task_orphan(struct uva__task *task)
{
    return task_take_back_here(task, UVA__TASK_ORPHAN);
}

/* Foreign code discards the data here only if this is no loop thread. A task
 * that was revoked before counts as extracted from now on. */
static void task_drop_ours(struct ArrowAsyncTask *copy)
{
    uint64_t generation;
    struct uva__task *task = token_read(copy->private_data, &generation);
    bool counted;

    if (!task_take_back(task, generation, 0, &counted)) {
        (void)task_claim(task, generation);
        return;
    }
    if (task->is_lazy && uva__turn_depth() > 0) {
        task_discard_async(task);
        return;
    }
    task_drop_data(task);
    task_swept(task);
}

void uva__task_drop(struct ArrowAsyncTask *task)
{
    if (uva__task_is_ours(task))
        task_drop_ours(task);
    else
        uva_task_discard(task);
}

void uva__task_discard(struct uva__task *task)
{
    if (!task->is_lazy) {
        uva_array_release(&task->array);
        return;
    }
    uva__atomic64_store(&task->state,
                        (uva__atomic64_peek(&task->state) & ~(uint64_t)0xff) |
                            UVA__TASK_DISCARDING);
    task_discard_async(task);
}

void uva__task_free_texts(struct uva__task *task,
                          const struct uva_allocator *allocator)
{
    uva__metadata_fini(&task->info.metadata, allocator, task->room);
    if (uva__task_state(task) == UVA__TASK_FAILED) {
        uva__memory_free(allocator, task->failed.error,
                         sizeof(*task->failed.error));
        uva__atomic64_store(&task->state, uva__atomic64_peek(&task->state) -
                                              UVA__TASK_FAILED +
                                              UVA__TASK_DONE);
    }
}
