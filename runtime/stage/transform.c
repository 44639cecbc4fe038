/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_transform(): a function that takes batches one at a time, in
 * order, and emits any number of them.
 *
 * Happy path:  task -> input -> a run, which is a job on a compute worker or
 *              part of the loop's turn: extracts the input and calls the user's
 *              function -> that emits results -> the producer below takes them.
 *              Behind the last input a run calls `finish`.
 *
 * What can fail: an extraction: the producer above reports why. The user's
 *              function, or a result that does not fit the schema: the error
 *              follows the results before it, and no further input is taken.
 *
 * On stop:     inputs and results are discarded; a run that is in progress
 *              discards what it holds, and is not waited for, as it counts the
 *              stage. */
#include "stage/transform.h"

#include <assert.h>
#include <errno.h>

#include "arrow/entry.h"
#include "arrow/share.h"
#include "arrow/slice.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/unreachable.h"
#include "loop/loop.h"
#include "stage/output.h"
#include "stage/parallel.h"
#include "stage/stage.h"
#include "stage/stuck_calls.h"
#include "stream/stream_impl.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

/* An input, or a result. */
struct item {
    struct uva__link link;
    struct ArrowAsyncTask task; /* of an input */
    struct uva__entry batch;    /* of a result; of an input without the array,
                                   with the size that its task states */
    /* of a result */
    int64_t left;                /* batches that are passed on of it */
    int64_t rows;                /* in each of them but the last one */
    int64_t bytes;               /* that such a one counts */
    int64_t from;                /* the first row that was not passed on */
    struct uva__share_room room; /* for those slices */
};

/* What a run does next. */
enum step {
    STEP_NOTHING, /* no input, or no room for results */
    STEP_BATCH,   /* go on with the current input */
    STEP_FLUSH,   /* rows were kept back for too long */
    STEP_FINISH   /* the input has ended */
};

/* What a step leaves, until that is noted under the lock. */
struct leftover {
    bool any;                        /* it leaves something */
    bool over;                       /* no run follows */
    int64_t inputs;                  /* that are done */
    int64_t bytes;                   /* in those */
    uint64_t since_ns;               /* kind.since_ns() */
    struct uva__transform_need need; /* kind.need() */
    int extraction;                  /* the code of one that failed, or 0 */
    struct uva__failure failure;     /* owns: of the function; code 0: none */
};

struct transform {
    struct uva__stage stage;      /* first */
    struct uva__stage_ops ops;    /* of this stage, with its name */
    struct uva_transform options; /* owns its ctx */
    uva_emit_fn *emit;            /* what its functions get */
    struct uva_window window;     /* with its defaults filled in */
    struct uva__output output;    /* the schemas */
    struct uva__transform_kind kind;
    struct uva_job job;    /* a run on a worker */
    uint64_t submitted_ns; /* when that was; 0: not timed */
    bool sizes_hold; /* inputs were measured, and extraction changes nothing */

    struct {                    /* of the run in progress */
        struct item *item;      /* owns: the current input; or NULL */
        bool extracted;         /* `batch` is what is left of it */
        int64_t bytes;          /* that its task states */
        enum step step;         /* of this call */
        struct uva_batch batch; /* owns its data */
        bool full;              /* an emit of this call has returned EAGAIN */
        int fault;              /* why this call fails, whatever it returns: an
                                   emit has failed, for example; or 0 */
        int64_t rows;           /* of each slice of what is emitted; or 0 */
        struct leftover left;   /* of the step before */
        struct item *spare;     /* owns: not in use; or NULL */
        struct uva__list freed; /* more of those */
        struct uva_error error; /* of this call */
    } run;

    struct {               /* the loop thread's alone */
        int64_t requested; /* batches requested above that have not come */
        bool started;      /* a batch has been requested */
        struct uva__timer timer;     /* for rows that are kept back */
        struct uva__share_kept kept; /* of the result that goes first */
        int64_t largest;          /* bytes of the largest input so far, as far
                                     as known; -1: none has come */
        struct uva__list inputs;  /* items, behind locked.inputs */
        int64_t queued;           /* those, not counted in `locked` */
        int64_t queued_bytes;     /* in them */
        struct uva__list results; /* of a worker: items, in order */
        int64_t taken;       /* of these, passed on, but counted in `locked` */
        int64_t taken_bytes; /* in them */
        struct uva__list free; /* items that are not in use */
    } loop;

    struct uva__lock lock;
    struct {
        struct uva__list inputs;  /* items, in order */
        struct uva__list results; /* items, behind loop.results; with
                                     on_loop: tasks, which are filled in
                                     already */
        struct uva__list free;    /* items that are not in use */
        int64_t used;             /* inputs, with the current one */
        int64_t used_bytes;       /* in inputs, as far as known */
        int64_t ready;            /* results */
        int64_t bytes;            /* in results */
        int64_t ordinal;          /* of the next result */
        bool running;             /* a run is in progress, or queued */
        bool input_ended;         /* no input follows */
        bool over;                /* no run follows: finished, or failed */
        bool flush;               /* rows were kept back for too long */
        uint64_t since_ns;        /* kind.since_ns() of the last step */
        struct uva__transform_need need; /* kind.need() of the last step */
        bool stopped;                    /* nothing is wanted any more */
        int extraction;                  /* the code of one that failed, or 0 */
        struct uva__failure failure;     /* of the function; code 0: none */
        /* runs on workers */
        struct uva__stuck_calls calls;
    } locked;
};

static struct transform *transform_of(struct uva__stage *stage)
{
    return uva__container_of(stage, struct transform, stage);
}

static struct transform *transform_at(struct uva__source *source)
{
    return transform_of(uva__stage_of(source));
}

static const struct uva_allocator *allocator_of(const struct transform *t)
{
    return &t->stage.source.rt->allocator;
}

/* On the loop thread alone, nothing has to be locked. */
static void transform_lock(struct transform *t)
{
    if (!t->options.on_loop)
        uva__lock_take(&t->lock);
}

static void transform_unlock(struct transform *t)
{
    if (!t->options.on_loop)
        uva__lock_drop(&t->lock);
}

/* ---- items -------------------------------------------------------------- */

static struct item *item_pop(struct uva__list *list)
{
    struct uva__link *link = uva__list_pop(list);

    return link != NULL ? uva__container_of(link, struct item, link) : NULL;
}

/* Gives an item that is not in use: `item`, or a new one if that is NULL. In it
 * only the metadata is filled in. */
static struct item *item_begin(struct transform *t, struct item *item,
                               const char *metadata)
{
    if (item == NULL)
        item = uva__memory_new(allocator_of(t), sizeof(*item));
    if (item == NULL ||
        uva__metadata_copy(allocator_of(t), metadata,
                           &item->batch.info.metadata) != ENOMEM)
        return item;
    uva__memory_free(allocator_of(t), item, sizeof(*item));
    return NULL;
}

static void item_end(struct transform *t, struct item *item)
{
    if (item->batch.info.metadata.block != NULL)
        uva__metadata_fini(&item->batch.info.metadata, allocator_of(t), NULL);
}

/* Frees an item, but keeps its memory for another one. Loop thread. */
static void item_free(struct transform *t, struct item *item)
{
    item_end(t, item);
    uva__list_push(&t->loop.free, &item->link);
}

/* The same for a run: the next result needs one. */
static void run_free_item(struct transform *t, struct item *item)
{
    item_end(t, item);
    if (t->run.spare == NULL)
        t->run.spare = item;
    else
        uva__list_push(&t->run.freed, &item->link);
}

/* Takes free items that the runs have left, no more than inputs may come: so
 * the memory of items stays bounded. */
static void items_fetch(struct transform *t)
{
    struct item *item;

    transform_lock(t);
    for (int64_t i = 0; i <= t->loop.requested; i++) {
        item = item_pop(&t->locked.free);
        if (item == NULL)
            break;
        uva__list_push(&t->loop.free, &item->link);
    }
    transform_unlock(t);
}

/* Makes an item for an input. Loop thread. */
static struct item *item_new(struct transform *t, const char *metadata)
{
    if (uva__list_is_empty(&t->loop.free))
        items_fetch(t);
    return item_begin(t, item_pop(&t->loop.free), metadata);
}

/* Makes an item for a result of a run. */
static struct item *run_new_item(struct transform *t, const char *metadata)
{
    struct item *item = t->run.spare;

    t->run.spare = NULL;
    if (item == NULL)
        item = item_pop(&t->run.freed);
    if (item == NULL) {
        transform_lock(t);
        item = item_pop(&t->locked.free);
        transform_unlock(t);
    }
    return item_begin(t, item, metadata);
}

static void items_drop(struct transform *t, struct uva__list *inputs,
                       struct uva__list *results)
{
    struct item *item;

    while ((item = item_pop(inputs)) != NULL) {
        uva__task_drop(&item->task);
        item_free(t, item);
    }
    while ((item = item_pop(results)) != NULL) {
        uva__share_give_up(&item->room);
        uva_array_release(&item->batch.array);
        item_free(t, item);
    }
}

static struct uva__task *task_pop(struct uva__list *list)
{
    struct uva__link *link = uva__list_pop(list);

    return link != NULL ? uva__container_of(link, struct uva__task, link)
                        : NULL;
}

static void tasks_drop(struct transform *t, struct uva__list *results)
{
    struct uva__task *task;

    while ((task = task_pop(results)) != NULL)
        uva__producer_drop_task(t->stage.source.producer, task);
}

/* ---- a run: emitting ---------------------------------------------------- */

static bool has_room_locked(const struct transform *t)
{
    return t->locked.ready < t->window.batches &&
           t->locked.bytes < t->window.bytes;
}

/* Puts a result, which counts as `batches`, behind the earlier ones. Returns 0;
 * EAGAIN if there is no room behind it. */
static int result_push_locked(struct transform *t, struct uva__link *link,
                              struct uva__batch_info *info, int64_t bytes,
                              int64_t batches)
{
    const int64_t ready = t->locked.ready + batches;
    const int64_t sum = t->locked.bytes + bytes;

    info->ordinal = t->locked.ordinal;
    info->bytes = bytes;
    t->locked.ordinal += batches;
    t->locked.ready = ready;
    t->locked.bytes = sum;
    uva__list_push(&t->locked.results, link);
    return ready < t->window.batches && sum < t->window.bytes ? 0 : EAGAIN;
}

/* Batches of an unknown format cannot be checked. */
static int result_check(struct transform *t, const struct uva_batch *out,
                        int64_t *bytes)
{
    if (t->run.full)
        return uva_error_set(&t->run.error, EPROTO,
                             "%s: emit returned EAGAIN, and was called again",
                             t->ops.source.name);
    if (!uva_array_is_live(&out->data))
        return uva_error_set(&t->run.error, EPROTO, "%s: no array was emitted",
                             t->ops.source.name);
    return uva__output_measure(&t->output, t->ops.source.name, &out->data,
                               bytes, &t->run.error);
}

/* Joins a result to the input from which it was made, if there is one. */
static void result_link(const struct transform *t, int64_t ordinal)
{
    if (t->run.step == STEP_BATCH)
        uva__meter_link(t->stage.source.meter, ordinal, t->stage.source.label,
                        t->run.batch.ordinal);
}

/* On the loop thread a result goes into its task at once. */
static inline int result_give(struct transform *t, struct uva_batch *out,
                              int64_t bytes)
{
    struct uva__producer *below = t->stage.source.producer;
    struct uva__task *task = uva__producer_take_task(below);
    int code;

    if (task == NULL)
        return ENOMEM;
    uva_array_move(&out->data, &task->array);
    if (uva__task_take_metadata(task, allocator_of(t), out->metadata) != 0) {
        uva__producer_drop_task(below, task);
        return ENOMEM;
    }
    code = result_push_locked(t, &task->link, &task->info, bytes, 1);
    result_link(t, task->info.ordinal);
    return code;
}

/* Divides a result into slices of `rows`, unless that is 0. Each counts its
 * part of the size, as all share the data. Returns their number. */
static int64_t item_divide(struct item *item, int64_t rows, int64_t bytes)
{
    item->left = 1;
    item->from = 0;
    if (rows == 0)
        return 1;
    item->left = (item->batch.array.array.length + rows - 1) / rows;
    item->rows = rows;
    item->bytes = bytes / item->left;
    return item->left;
}

/* On a worker it waits for a task. Nothing may be wanted any more: ECANCELED.
 */
static int result_keep(struct transform *t, struct uva_batch *out,
                       int64_t bytes)
{
    struct item *item = run_new_item(t, out->metadata);
    int64_t ordinal = 0, batches;
    int code = ECANCELED;

    if (item == NULL)
        return ENOMEM;
    uva_array_move(&out->data, &item->batch.array);
    batches = item_divide(item, t->run.rows, bytes);
    transform_lock(t);
    if (!t->locked.stopped) {
        code = result_push_locked(t, &item->link, &item->batch.info, bytes,
                                  batches);
        ordinal = item->batch.info.ordinal;
    }
    transform_unlock(t);
    if (code == ECANCELED) {
        uva_array_release(&item->batch.array);
        run_free_item(t, item);
    } else {
        for (int64_t i = 0; i < batches; i++)
            result_link(t, ordinal + i);
        uva__meter_wake(t->stage.source.meter, &t->stage.wakeup);
    }
    return code;
}

/* Notes what became of a result. What fails here fails the stream, also if the
 * function of the user's ignores it: a batch is lost, and none follows it. */
static int result_note(struct transform *t, struct uva_batch *out, int code)
{
    if (code == 0)
        return 0;
    t->run.full = code == EAGAIN;
    if (code == EAGAIN)
        return code;
    if (code == ENOMEM)
        (void)uva_error_set(&t->run.error, code, "no memory for a batch");
    if (uva_array_is_live(&out->data))
        uva_array_release(&out->data);
    t->run.fault = code;
    return code;
}

/* The uva_emit_fn of the user's functions. */
static int transform_emit(void *emitter, struct uva_batch *out)
{
    struct transform *t = emitter;
    int64_t bytes;
    int code = t->run.fault;

    if (code == 0)
        code = result_check(t, out, &bytes);
    if (code == 0)
        code = t->options.on_loop ? result_give(t, out, bytes)
                                  : result_keep(t, out, bytes);
    return result_note(t, out, code);
}

/* The same for most batches on the loop thread. */
static int transform_emit_on_loop(void *emitter, struct uva_batch *out)
{
    struct transform *t = emitter;
    int64_t bytes;

    if (t->run.fault != 0 || t->run.full || !uva_array_is_live(&out->data) ||
        !uva__output_measure_simple(&t->output, &out->data, &bytes))
        return transform_emit(t, out);
    return result_note(t, out, result_give(t, out, bytes));
}

int uva__transform_fail(void *emitter, int code)
{
    struct transform *t = emitter;

    t->run.fault = uva__error_positive(code);
    return t->run.fault;
}

int uva__transform_pass(void *emitter, struct uva_batch *in)
{
    struct transform *t = emitter;

    assert(in == &t->run.batch && t->run.fault == 0 && !t->run.full);
    if (!t->sizes_hold || t->run.bytes == 0)
        return transform_emit(t, in);
    return result_note(t, in,
                       t->options.on_loop ? result_give(t, in, t->run.bytes)
                                          : result_keep(t, in, t->run.bytes));
}

int uva__transform_emit_slices(void *emitter, struct uva_batch *out,
                               int64_t rows)
{
    struct transform *t = emitter;
    int code;

    assert(!t->options.on_loop && rows > 0 && out->data.array.length > 0);
    t->run.rows = rows;
    code = transform_emit(t, out);
    t->run.rows = 0;
    return code;
}

/* ---- a run: one step ---------------------------------------------------- */

static enum step step_peek_locked(const struct transform *t)
{
    if (t->locked.stopped || t->locked.over || !has_room_locked(t))
        return STEP_NOTHING;
    if (t->locked.used > 0)
        return STEP_BATCH;
    if (t->locked.input_ended)
        return STEP_FINISH;
    return t->locked.flush ? STEP_FLUSH : STEP_NOTHING;
}

/* Releases the current input, which has been extracted, if there is one. */
static void run_drop_input(struct transform *t)
{
    if (uva_array_is_live(&t->run.batch.data))
        uva_array_release(&t->run.batch.data);
    if (t->run.item != NULL)
        run_free_item(t, t->run.item);
    t->run.item = NULL;
    t->run.extracted = false;
}

/* Notes what the step before has left. */
static void leftover_note_locked(struct transform *t)
{
    struct leftover *left = &t->run.left;

    if (!left->any)
        return;
    t->locked.used -= left->inputs;
    t->locked.used_bytes -= left->bytes;
    t->locked.flush = false;
    t->locked.since_ns = left->since_ns;
    t->locked.need = left->need;
    t->locked.over = t->locked.over || left->over;
    if (left->extraction != 0)
        t->locked.extraction = left->extraction;
    if (left->failure.code != 0)
        t->locked.failure = left->failure;
    *left = (struct leftover){0};
    uva__list_append(&t->locked.free, &t->run.freed);
}

/* Decides on the next step; with STEP_NOTHING the run is over. */
static enum step step_begin(struct transform *t)
{
    enum step step;
    bool stopped;

    transform_lock(t);
    leftover_note_locked(t);
    step = step_peek_locked(t);
    stopped = t->locked.stopped;
    t->locked.running = step != STEP_NOTHING;
    if (step == STEP_BATCH && t->run.item == NULL)
        t->run.item = item_pop(&t->locked.inputs);
    transform_unlock(t);
    if (stopped)
        run_drop_input(t);
    return step;
}

/* Makes the facts about the current input those of the batch. */
static void run_begin_input(struct transform *t, const char *metadata,
                            int64_t ordinal, int64_t bytes)
{
    struct uva_batch *batch = &t->run.batch;

    batch->schema = &t->output.input;
    batch->metadata = metadata;
    batch->ordinal = ordinal;
    t->run.bytes = bytes;
}

/* Extracts the current input, once. */
static int run_extract(struct transform *t)
{
    struct item *item = t->run.item;
    const struct uva__batch_info *info = &item->batch.info;
    int code;

    if (t->run.extracted)
        return 0;
    run_begin_input(t, info->metadata.block, info->ordinal, info->bytes);
    t->run.extracted = true;
    code = uva_task_extract(&item->task, &t->run.batch.data);
    if (code != 0)
        t->run.batch.data.array.release = NULL;
    return code;
}

static uint64_t call_begin(struct transform *t, enum step step)
{
    t->run.step = step;
    t->run.full = false;
    t->run.fault = 0;
    uva__error_begin(&t->run.error);
    return uva__span_begin(t->stage.source.rt);
}

/* Gives the code for what a function of the user's has returned. */
static int call_end(struct transform *t, int code, int64_t ordinal,
                    uint64_t since_ns)
{
    const char *name = t->ops.source.name;

    uva__span_end(t->stage.source.meter, name, ordinal, since_ns);
    if (t->run.fault != 0)
        return t->run.fault;
    code = uva__error_positive(code);
    if (code == EAGAIN && !t->run.full)
        return uva_error_set(&t->run.error, EPROTO,
                             "%s: EAGAIN without a full window", name);
    return code;
}

static inline int call_batch(struct transform *t)
{
    const uint64_t since_ns = call_begin(t, STEP_BATCH);
    const int code = t->options.batch(t->options.ctx, &t->run.batch, t->emit, t,
                                      &t->run.error);

    return call_end(t, code, t->run.batch.ordinal, since_ns);
}

/* Calls one of the user's functions. */
static int run_call(struct transform *t, enum step step)
{
    const struct uva_transform *options = &t->options;
    struct uva_error *error = &t->run.error;
    uint64_t since_ns;
    int code = 0;

    if (step == STEP_BATCH)
        return call_batch(t);
    since_ns = call_begin(t, step);
    if (step == STEP_FLUSH)
        code = t->kind.flush(options->ctx, t->emit, t, error);
    else if (options->finish != NULL)
        code = options->finish(options->ctx, t->emit, t, error);
    return call_end(t, code, -1, since_ns);
}

/* The step is over. */
static void step_end(struct transform *t, enum step step)
{
    struct leftover *left = &t->run.left;

    left->any = true;
    if (step == STEP_BATCH) {
        left->inputs = 1;
        left->bytes = t->run.bytes;
    }
    if (t->kind.wait_ms > 0)
        left->since_ns = t->kind.since_ns(t->options.ctx);
    if (t->kind.need != NULL)
        left->need = t->kind.need(t->options.ctx);
    run_drop_input(t);
}

/* Whether a call that returned `code` goes on when there is room. */
static bool run_goes_on(const struct transform *t, int code)
{
    return code == EAGAIN && t->run.fault == 0;
}

/* A call has returned `code`. */
static void step_result(struct transform *t, enum step step, int code)
{
    struct leftover *left = &t->run.left;

    if (run_goes_on(t, code))
        return;
    left->over = code != 0 || step == STEP_FINISH;
    if (t->run.fault != 0 || (code != 0 && code != ENOENT))
        uva__failure_set(&left->failure, allocator_of(t), code, &t->run.error,
                         NULL);
    step_end(t, step);
}

/* The producer above reports why. */
static void extraction_failed(struct transform *t, int code)
{
    t->run.left.over = true;
    t->run.left.extraction = code;
    step_end(t, STEP_BATCH);
}

/* Takes steps for as long as there are inputs, and room for results. */
static void run_steps(struct transform *t)
{
    enum step step;
    int code;

    while ((step = step_begin(t)) != STEP_NOTHING) {
        code = step == STEP_BATCH ? run_extract(t) : 0;
        if (code != 0)
            extraction_failed(t, code);
        else
            step_result(t, step, run_call(t, step));
    }
}

static void transform_job(struct uva_job *job)
{
    struct transform *t = uva__container_of(job, struct transform, job);
    struct uva__rt *rt = t->stage.source.rt;
    struct uva__meter *meter = t->stage.source.meter;
    bool counts;

    transform_lock(t);
    counts = uva__stuck_calls_enter(&t->locked.calls);
    transform_unlock(t);
    uva__meter_run_begin(meter, t->submitted_ns);
    run_steps(t);
    uva__meter_run_end(meter);
    if (counts) {
        transform_lock(t);
        uva__stuck_calls_leave(&t->locked.calls, &rt->stats);
        transform_unlock(t);
    }
    uva__meter_wake(meter, &t->stage.wakeup);
    uva__stage_release(&t->stage);
    uva__rt_job_end(rt);
}

/* ---- the loop: as a handler --------------------------------------------- */

/* There is no memory for the batch: it is lost, and no other one follows. */
static void transform_lose(struct transform *t)
{
    transform_lock(t);
    t->locked.over = true;
    if (t->locked.failure.code == 0)
        t->locked.failure.code = ENOMEM;
    transform_unlock(t);
}

static void transform_note_size(struct transform *t, int64_t bytes)
{
    if (bytes > t->loop.largest)
        t->loop.largest = bytes;
}

/* Puts an input behind the earlier ones, for a run. */
static void transform_queue(struct transform *t, struct ArrowAsyncTask *task,
                            const char *metadata)
{
    const struct uva__batch_info *info = uva__task_info(task);
    struct item *item = item_new(t, metadata);

    if (item == NULL) {
        transform_lose(t);
        uva__task_drop(task);
        return;
    }
    item->task = *task;
    item->batch.info.ordinal = info->ordinal;
    item->batch.info.bytes = uva__window_size(info->bytes);
    uva__list_push(&t->loop.inputs, &item->link);
    t->loop.queued++;
    t->loop.queued_bytes += item->batch.info.bytes;
    transform_note_size(t, item->batch.info.bytes);
}

/* The function wants to be called again with what is left of the current input.
 * Its metadata is copied, as it is lent only for the callback that brought it.
 */
static void transform_keep_input(struct transform *t)
{
    struct item *item = item_new(t, t->run.batch.metadata);

    if (item == NULL) {
        transform_lose(t);
        run_drop_input(t);
        return;
    }
    t->run.item = item;
    t->run.extracted = true;
    t->run.batch.metadata = item->batch.info.metadata.block;
}

/* The step with an input that was not queued has ended with `code`, or goes on
 * later. */
static void transform_passed(struct transform *t, int code)
{
    t->locked.used = 1;
    t->locked.used_bytes = t->run.bytes;
    step_result(t, STEP_BATCH, code);
    leftover_note_locked(t);
    if (run_goes_on(t, code))
        transform_keep_input(t);
}

/* Takes a step with an input that has just come, and is not queued. Nothing is
 * kept back on the loop thread, so a call that succeeds changes nothing but the
 * results. */
static void transform_pass(struct transform *t, struct ArrowAsyncTask *task,
                           const char *metadata)
{
    const struct uva__batch_info *info = uva__task_info(task);
    struct uva_batch *batch = &t->run.batch;
    int code;

    run_begin_input(t, metadata, info->ordinal, uva__window_size(info->bytes));
    transform_note_size(t, t->run.bytes);
    code = uva__task_extract_first(task, &batch->data);
    if (code != 0) { /* the producer above reports why */
        batch->data.array.release = NULL;
        t->locked.extraction = code;
        t->locked.over = true;
        return;
    }
    uva__meter_enter(t->stage.source.meter, true);
    code = call_batch(t);
    uva__meter_enter(t->stage.source.meter, false);
    if (code != 0)
        transform_passed(t, code);
    else if (uva_array_is_live(&batch->data))
        uva_array_release(&batch->data);
}

static void transform_task(struct uva__stage *stage,
                           struct ArrowAsyncTask *task, const char *metadata)
{
    struct transform *t = transform_of(stage);

    t->loop.requested--;
    assert(t->loop.requested >= 0);
    if (t->options.on_loop && t->locked.used + t->loop.queued == 0 &&
        !t->locked.over && has_room_locked(t))
        transform_pass(t, task, metadata);
    else
        transform_queue(t, task, metadata);
}

/* ---- the loop: as a source ---------------------------------------------- */

/* What the loop sees of the runs. */
struct progress {
    int64_t used, ready; /* inputs; results */
    int64_t bytes;       /* in both, as far as known */
    bool room;           /* for results */
    bool running;        /* a run is in progress, or queued */
    bool over;           /* no run follows */
    uint64_t since_ns;   /* when the oldest row came; 0: none is kept */
    struct uva__transform_need need; /* of a function that joins batches */
    int extraction;                  /* the code of one that failed, or 0 */
    struct uva__failure failure;     /* owns: of the function */
};

/* Takes over the results of a worker, so that none needs the lock. */
static void progress_look_locked(struct transform *t, struct progress *now)
{
    *now = (struct progress){
        .used = t->locked.used,
        .ready = t->locked.ready,
        .bytes = t->locked.used_bytes + t->locked.bytes,
        .room = has_room_locked(t),
        .running = t->locked.running,
        .over = t->locked.over,
        .since_ns = t->locked.since_ns,
        .need = t->locked.need,
        .extraction = t->locked.extraction,
        .failure = t->locked.failure,
    };
    t->locked.failure = (struct uva__failure){0};
    if (!t->options.on_loop)
        uva__list_append(&t->loop.results, &t->locked.results);
}

/* Hands over what the loop has collected: new inputs, free items, and what it
 * has passed on. */
static void transform_hand_over_locked(struct transform *t)
{
    t->locked.ready -= t->loop.taken;
    t->locked.bytes -= t->loop.taken_bytes;
    t->loop.taken = t->loop.taken_bytes = 0;
    t->locked.used += t->loop.queued;
    t->locked.used_bytes += t->loop.queued_bytes;
    t->loop.queued = t->loop.queued_bytes = 0;
    t->locked.input_ended = t->stage.ended;
    uva__list_append(&t->locked.inputs, &t->loop.inputs);
    uva__list_append(&t->locked.free, &t->loop.free);
}

static void transform_submit(struct transform *t)
{
    struct uva__rt *rt = t->stage.source.rt;

    uva__stage_acquire(&t->stage);
    t->job.priority = t->stage.source.producer->priority;
    if (uva__rt_job_begin(rt))
        uva__meter_submit(t->stage.source.meter, UVA_LANE_COMPUTE, &t->job,
                          &t->submitted_ns);
    else
        UVA__UNREACHABLE("a running stage keeps the workers alive");
}

/* Starts a run, if there is something to do and none is in progress. */
static void transform_advance(struct transform *t, struct progress *now)
{
    bool due;

    transform_lock(t);
    transform_hand_over_locked(t);
    due = !t->locked.running && step_peek_locked(t) != STEP_NOTHING;
    t->locked.running = t->locked.running || due;
    if (!due || !t->options.on_loop)
        progress_look_locked(t, now);
    transform_unlock(t);
    if (!due)
        return;
    if (!t->options.on_loop) {
        transform_submit(t);
        return;
    }
    uva__meter_enter(t->stage.source.meter, true);
    run_steps(t);
    uva__meter_enter(t->stage.source.meter, false);
    progress_look_locked(t, now); /* there is no other thread */
}

/* The end, or a failure, follows the results at hand. */
static void transform_conclude(struct transform *t, struct progress *now)
{
    struct uva__stage *stage = &t->stage;
    struct uva__source *source = &stage->source;

    source->ready = now->ready;
    if (source->failure.code != 0 || source->ended)
        return;
    if (now->failure.code != 0)
        uva__failure_move(&now->failure, &source->failure, allocator_of(t));
    else if (now->extraction != 0)
        uva__stage_fail_extraction(stage, now->extraction);
    else if (stage->failure.code != 0 && now->used == 0)
        uva__failure_move(&stage->failure, &source->failure, allocator_of(t));
    else
        source->ended = now->over;
}

/* How many of `room` more inputs fit into the window by their size, which the
 * first one shows. While no input waits one may come, beside the results. */
static int64_t transform_fit(const struct transform *t, int64_t room,
                             const struct progress *now)
{
    const bool alone = now->used + t->loop.requested == 0;
    int64_t fits;

    if (t->loop.largest < 0)
        return alone;
    fits = uva__window_fit(&t->window, room, now->bytes, t->loop.requested,
                           t->loop.largest);
    return fits == 0 ? alone : fits;
}

/* How many inputs `batches` results take, at least, if none is larger than the
 * largest one so far. */
static int64_t transform_inputs(const struct transform *t, int64_t batches,
                                const struct uva__transform_need *need)
{
    int64_t rows;

    if (need->input == 0)
        return t->kind.need == NULL ? batches : 1;
    if (__builtin_mul_overflow(batches - 1, need->whole, &rows) ||
        __builtin_add_overflow(rows, need->next, &rows))
        return t->window.batches;
    return rows > need->input ? (rows - 1) / need->input + 1 : 1;
}

/* How many more inputs the demand takes. Without a window of its own the stage
 * requests what the results take that are requested here and not ready. */
static int64_t transform_room(const struct transform *t, int64_t demand,
                              const struct progress *now)
{
    const int64_t coming = now->used + t->loop.requested;
    int64_t n;

    if (t->window.refill != UVA__WINDOW_FOLLOWS)
        return uva__window_room(&t->window, demand, coming + now->ready);
    n = uva__window_allowed(&t->window, demand) - now->ready;
    if (n <= 0)
        return 0;
    n = transform_inputs(t, n, &now->need);
    if (n > t->window.batches)
        n = t->window.batches;
    return n > coming ? n - coming : 0;
}

static void transform_request(struct transform *t, int64_t demand,
                              const struct progress *now)
{
    int64_t n = transform_room(t, demand, now);

    t->loop.started = t->loop.started || demand > 0;
    if (!t->loop.started || !now->room || n == 0)
        return;
    n = transform_fit(t, n, now);
    if (n == 0)
        return;
    t->loop.requested += n;
    uva__stage_request(&t->stage, n);
}

static void transform_expire(struct uva__timer *timer)
{
    struct transform *t =
        uva__container_of(timer, struct transform, loop.timer);

    transform_lock(t);
    t->locked.flush = true;
    transform_unlock(t);
    uva__rt_wake(t->stage.source.rt, &t->stage.wakeup);
}

/* Starts the timer for rows that are kept back, if a batch is wanted and none
 * is under way. A run looks at these rows by itself, also if it still waits for
 * a worker, and wakes the loop when it is over. */
static void transform_set_timer(struct transform *t, int64_t demand,
                                const struct progress *now)
{
    struct uva__rt *rt = t->stage.source.rt;
    const bool waits = demand > 0 && now->since_ns != 0 && now->used == 0 &&
                       now->ready == 0 && !now->running && !now->over;
    int64_t age_ms;

    if (waits == t->loop.timer.running)
        return;
    if (!waits) {
        uva__timer_stop(rt, &t->loop.timer);
        return;
    }
    age_ms = (int64_t)((uva__clock_ns() - now->since_ns) / 1000000);
    uva__timer_start(rt, &t->loop.timer,
                     age_ms < t->kind.wait_ms ? t->kind.wait_ms - age_ms : 0);
}

/* States what its window holds, and the result that goes first. */
static void transform_account(struct transform *t, const struct progress *now)
{
    struct uva__source *source = &t->stage.source;
    const struct item *first;

    uva__source_hold(source, now->used + now->ready, now->bytes);
    if (uva__list_is_empty(&t->loop.results))
        return;
    first = uva__container_of(t->loop.results.head, struct item, link);
    uva__share_keep(&source->share, &t->loop.kept, &t->output.schema,
                    &first->batch.array, &first->batch.info);
}

static void transform_pull(struct uva__source *source, int64_t demand)
{
    struct transform *t = transform_at(source);
    struct progress now;

    if (!uva__output_prepare(&t->output, source, t->options.schema,
                             t->options.ctx) &&
        t->stage.failure.code == 0)
        return;
    transform_advance(t, &now);
    transform_account(t, &now);
    transform_conclude(t, &now);
    transform_set_timer(t, demand, &now);
    if (!now.over)
        transform_request(t, demand, &now);
    else if (now.extraction == 0) /* or it has the reason still to report */
        uva__stage_quit(&t->stage);
}

/* Puts the next slice of a result in a task; it is not the last one. */
static int result_slice(struct transform *t, struct item *item,
                        struct uva__task *task)
{
    struct uva__batch_info *info = &item->batch.info;
    int code = uva__share_more(allocator_of(t), &item->room, &item->batch.array,
                               item->left - 1, &task->array);

    if (code == 0)
        code = uva__task_take_metadata(task, allocator_of(t),
                                       info->metadata.block);
    if (code != 0)
        return code;
    uva__slice_reduce(&t->output.schema, &task->array.array, item->from,
                      item->rows);
    task->info.ordinal = info->ordinal++;
    task->info.bytes = item->bytes;
    info->bytes -= item->bytes;
    item->from += item->rows;
    item->left--;
    return 0;
}

/* Puts a result, or the last slice of one, in a task. */
static void result_fill(struct transform *t, struct item *item,
                        struct uva__task *task)
{
    struct ArrowArray *array = &item->batch.array.array;

    if (item->from > 0)
        uva__slice_reduce(&t->output.schema, array, item->from,
                          array->length - item->from);
    uva__task_fill_entry(task, &item->batch, NULL);
    (void)uva__list_pop(&t->loop.results);
    item_free(t, item);
}

/* A result of a worker goes into a task when the producer below takes it. */
static struct uva__task *transform_take(struct uva__source *source)
{
    struct transform *t = transform_at(source);
    struct uva__producer *below = t->stage.source.producer;
    struct uva__task *task = uva__producer_take_task(below);
    struct item *item =
        uva__container_of(t->loop.results.head, struct item, link);

    if (task == NULL)
        return NULL;
    if (item->left == 1) {
        result_fill(t, item, task);
    } else if (result_slice(t, item, task) != 0) {
        uva__producer_drop_task(below, task);
        return NULL;
    }
    t->loop.taken++;
    t->loop.taken_bytes += task->info.bytes;
    source->ready--;
    return task;
}

/* One of the loop thread has its task already. */
static struct uva__task *transform_take_given(struct uva__source *source)
{
    struct transform *t = transform_at(source);
    struct uva__task *task = task_pop(&t->locked.results);

    t->locked.ready--;
    t->locked.bytes -= task->info.bytes;
    source->ready--;
    return task;
}

/* Nothing waits for the run any more: its thread may be written off. */
static void transform_give_up(struct transform *t)
{
    struct uva__rt *rt = t->stage.source.rt;

    transform_lock(t);
    uva__stuck_calls_abandon(&t->locked.calls, &rt->stats);
    transform_unlock(t);
    if (!uva__rt_job_begin(rt))
        return;
    (void)uva__lane_give_up(&rt->jobs, UVA_LANE_COMPUTE, &t->job);
    uva__rt_job_end(rt);
}

static void transform_stop(struct uva__source *source)
{
    struct transform *t = transform_at(source);
    struct uva__list inputs, results;
    bool running;

    uva__stage_stop(source);
    uva__source_hold(source, 0, 0);
    uva__timer_stop(source->rt, &t->loop.timer);
    transform_lock(t);
    t->locked.stopped = true;
    running = t->locked.running;
    inputs = t->locked.inputs;
    results = t->locked.results;
    t->locked.inputs = t->locked.results = (struct uva__list){0};
    transform_unlock(t);
    uva__list_append(&inputs, &t->loop.inputs);
    if (t->options.on_loop)
        tasks_drop(t, &results);
    uva__list_append(&t->loop.results, &results);
    items_drop(t, &inputs, &t->loop.results);
    if (running)
        transform_give_up(t);
    else
        run_drop_input(t);
}

static bool transform_on_wakeup(struct uva__wakeup *wakeup)
{
    struct transform *t =
        uva__container_of(wakeup, struct transform, stage.wakeup);

    if (!t->stage.source.stopped)
        uva__producer_run(t->stage.source.producer);
    return false;
}

/* ---- life --------------------------------------------------------------- */

static void transform_free(struct uva__stage *stage,
                           const struct uva_allocator *allocator)
{
    struct transform *t = transform_of(stage);
    struct item *item;

    assert(t->run.item == NULL && !t->run.left.any);
    uva__list_append(&t->locked.free, &t->loop.free);
    uva__list_append(&t->locked.free, &t->run.freed);
    while ((item = item_pop(&t->locked.free)) != NULL)
        uva__memory_free(allocator, item, sizeof(*item));
    uva__memory_free(allocator, t->run.spare, sizeof(*item));
    if (t->options.free_ctx != NULL)
        t->options.free_ctx(t->options.ctx);
    uva__failure_fini(&t->locked.failure, allocator);
    uva__output_fini(&t->output);
    uva__memory_free(allocator, t, sizeof(*t));
}

static const struct uva__wakeup_ops transform_wakeup_ops = {transform_on_wakeup,
                                                            uva__stage_free};

static const struct uva__stage_ops transform_ops = {
    .source = {.sized = true,
               .start = uva__stage_start,
               .pull = transform_pull,
               .take = transform_take,
               .stop = transform_stop,
               .leave = uva__stage_leave,
               .need = uva__stage_need,
               .above = uva__stage_above},
    .task = transform_task,
    .free = transform_free,
};

/* The arguments of transform_make(). */
struct setup {
    const struct uva__transform_kind *kind;
    const struct uva_transform *options; /* takes its ctx ... */
    bool *taken;                         /* ... and notes that here */
    struct uva_window window;            /* complete */
};

static struct uva__source *transform_make(struct uva__producer *above,
                                          const void *given)
{
    const struct setup *setup = given;
    struct transform *t = uva__memory_new(&above->rt->allocator, sizeof(*t));

    if (t == NULL)
        return NULL;
    t->options = *setup->options;
    t->kind = *setup->kind;
    t->window = setup->window;
    t->ops = transform_ops;
    t->ops.source.name = t->kind.name;
    t->emit = t->options.on_loop ? transform_emit_on_loop : transform_emit;
    if (t->options.on_loop)
        t->ops.source.take = transform_take_given;
    t->sizes_hold = above->source->sized && !above->lazy;
    t->loop.timer.fire = transform_expire;
    t->loop.largest = -1;
    t->job.run = transform_job;
    *setup->taken = true;
    uva__stage_init(&t->stage, &t->ops, &transform_wakeup_ops, above);
    return &t->stage.source;
}

static int transform_check(struct uva_stream *stream,
                           const struct uva__transform_kind *kind,
                           const struct uva_transform *options,
                           struct uva_window *window)
{
    int code;

    if (options == NULL || options->batch == NULL)
        return uva__stream_fail(stream, EINVAL,
                                "uva_transform: batch is mandatory");
    code = kind->follows ? uva__window_follow(&options->window, window)
                         : uva__window_complete(&options->window, window);
    return code == 0
               ? 0
               : uva__stream_fail(stream, code,
                                  "uva_%s: no negative window, whose reserved "
                                  "members must be NULL",
                                  kind->name);
}

/* Has workers extract, or run the function. */
static int transform_add_workers(struct uva_stream *stream,
                                 const struct setup *setup)
{
    int code;

    if (setup->options->on_loop)
        return uva__parallel_ensure(stream, &setup->window);
    code = uva__rt_ensure_lane(stream->rt, UVA_LANE_COMPUTE);
    return code == 0
               ? 0
               : uva__stream_fail(stream, code,
                                  "transform: the system gives no thread");
}

int uva__transform_add(struct uva_stream *stream,
                       const struct uva__transform_kind *kind,
                       const struct uva_transform *options)
{
    bool taken = false;
    struct setup setup = {.kind = kind, .options = options, .taken = &taken};
    int code = transform_check(stream, kind, options, &setup.window);

    assert(kind->flush == NULL || !options->on_loop);
    if (code == 0)
        code = transform_add_workers(stream, &setup);
    if (code == 0)
        code = uva__stream_wrap(stream, transform_make, &setup);
    if (!taken && options != NULL && options->free_ctx != NULL)
        options->free_ctx(options->ctx);
    return code;
}

int uva_stream_transform(struct uva_stream *stream,
                         const struct uva_transform *options)
{
    static const struct uva__transform_kind kind = {.name = "transform"};
    int code = uva__stream_building(stream);

    if (options != NULL && !uva__memory_is_clear(options->reserved, 4))
        return code != 0 ? code /* no member of it can be trusted */
                         : uva__stream_fail(stream, EINVAL,
                                            "uva_transform: reserved members "
                                            "must be NULL; clear the struct "
                                            "before filling it in");
    if (code == 0)
        return uva__transform_add(stream, &kind, options);
    if (options != NULL && options->free_ctx != NULL)
        options->free_ctx(options->ctx);
    return code;
}
