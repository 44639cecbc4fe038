/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_transform(): a function that takes batches one at a time, in
 * order, and emits any number of them.
 *
 * A batch waits in a slot, before the function and after it:
 *
 *     task from above -> `inputs` -> run -> `results` -> the producer below
 *
 * A run extracts the inputs in order and calls the function, as long as there
 * are inputs, and room for results. It is a job on a compute worker, or, with
 * `on_loop`, part of the loop's turn, where no lock is needed. The phase states
 * how far the runs are:
 *
 *         room, and: an input, the end, or rows kept for too long
 *       .-------------------------------------------------------------.
 *       |                                                             v
 *     IDLE <------------- no input, or no room for results -------- RUNNING
 *       |                                                             |
 *       |      ENDED: finish was called, or the function has enough <-|
 *       |      FAILED: the function has failed <----------------------|
 *       |      LOST: an extraction has failed <-----------------------|
 *       v                                 v                           v
 *     STOPPED, from any of these: the input that a run has is discarded, by the
 *     run in RUNNING, by the stop in any other phase
 *
 * A function that returns EINPROGRESS keeps its input: IDLE has an input then,
 * with which the next run goes on.
 *
 * Failures:    an extraction: the producer above reports why. The function, or
 *              a result that does not fit the schema: the error follows the
 *              results before it, and no further input is taken. Memory for an
 *              input: it is lost, and the error takes its place.
 *
 * On stop:     inputs and results are discarded; a run is not waited for, as it
 *              counts the stage. */
#include "stage/transform.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "arrow/slice.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/unreachable.h"
#include "loop/loop.h"
#include "stage/output.h"
#include "stage/parallel.h"
#include "stage/stage.h"
#include "stage/worker_job.h"
#include "stream/intake.h"
#include "stream/slots.h"
#include "stream/stream_impl.h"
#include "uvarrow/arrow.h"

/* The next step of a run. */
enum step {
    STEP_NOTHING, /* no input, or no room for results */
    STEP_INPUT,   /* takes the next input */
    STEP_AGAIN,   /* goes on with the same input */
    STEP_FLUSH,   /* rows were kept for too long */
    STEP_FINISH   /* the input has ended */
};

/* In this order: runs may begin up to PHASE_RUNNING, and none begins after it.
 */
enum phase {
    PHASE_IDLE,
    PHASE_RUNNING, /* a run is in progress, or waits for its worker */
    PHASE_ENDED,   /* no run follows: finish was called, or it was enough */
    PHASE_FAILED,  /* no run follows: the function has failed */
    PHASE_LOST,    /* no run follows: an extraction has failed */
    PHASE_STOPPED
};

/* How far the runs are. The loop acts on a copy of it. */
struct progress {
    enum phase phase;
    struct uva__kept inputs;  /* their tasks; the first may be at a run */
    struct uva__kept results; /* its count is of the batches into which its
                                 elements are cut, also after the last step */
    struct uva__transform_rows rows; /* after the last step */
};

struct transform {
    struct uva__stage stage;      /* first */
    struct uva_transform options; /* owns its ctx */
    struct uva__output output;    /* the schemas */
    struct uva__transform_kind kind;
    struct uva__worker_job job; /* a run on a worker */

    struct {                     /* the run's alone, but for `input` */
        struct uva__task *input; /* the first of `inputs`, from when a run takes
                                    it until its step is over, also while IDLE.
                                    Changes under the lock, as a stop reads it
                                    */
        struct uva_batch batch;  /* owns its data */
        bool full;               /* an emit of this call has returned EAGAIN */
        int fault; /* why this call fails, whatever it returns: an emit has
                      failed, for example; or 0 */
        struct uva_error error; /* of this call */
        struct uva__list slots; /* without a batch, of a worker */
    } run;

    struct {                               /* the loop thread's alone */
        struct uva__share_kept kept;       /* of the result that goes first */
        struct uva__array_share_room room; /* for slices of that result */
    } loop;

    struct uva__lock lock;
    struct {
        struct progress progress;
        int64_t ordinal;             /* of the next result */
        bool input_ended;            /* no input follows */
        bool flush;                  /* rows were kept for too long */
        struct uva__failure failure; /* why FAILED; LOST: a code alone */
    } locked;
};

static struct transform *transform_at(struct uva__source *source)
{
    return uva__container_of(source, struct transform, stage.source);
}

static const struct uva_allocator *allocator_of(const struct transform *t)
{
    return &t->stage.source.rt->allocator;
}

/* On the loop thread alone, no lock is needed. */
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

/* The list of empty slots for a run; NULL: the slots of the loop thread. */
static struct uva__list *run_slots(struct transform *t)
{
    return t->options.on_loop ? NULL : &t->run.slots;
}

/* ---- a run: emitting ---------------------------------------------------- */

static bool has_room(const struct transform *t, const struct progress *progress)
{
    const struct uva__window *window = &t->stage.in.window;

    return progress->results.count < window->batches &&
           progress->results.bytes < window->bytes;
}

/* Puts a result, which is passed on as `batches`, after the earlier ones.
 * Returns 0; EAGAIN if there is no room after it; ECANCELED: not wanted. */
static int result_push_locked(struct transform *t, struct uva__task *slot,
                              int64_t bytes, int64_t batches)
{
    if (t->locked.progress.phase == PHASE_STOPPED)
        return ECANCELED;
    slot->info.ordinal = t->locked.ordinal;
    slot->info.bytes = bytes;
    slot->measured = true;
    t->locked.ordinal += batches;
    uva__kept_push(&t->locked.progress.results, slot);
    t->locked.progress.results.count += batches - 1;
    return has_room(t, &t->locked.progress) ? 0 : EAGAIN;
}

/* Joins the batches of a result to the input from which it was made, if there
 * is one, and has the loop pass them on. */
static void result_announce(struct transform *t, int64_t ordinal,
                            int64_t batches)
{
    struct uva__source *source = &t->stage.source;

    for (int64_t i = 0; t->run.input != NULL && i < batches; i++)
        uva__meter_link(source->meter, ordinal + i, source->label,
                        t->run.batch.ordinal);
    if (!t->options.on_loop)
        uva__meter_wake(source->meter, &t->stage.source.wakeup);
}

/* In how many batches these rows of a result are passed on. */
static int64_t result_slices(const struct transform *t, int64_t rows)
{
    const int64_t most = t->kind.slice_rows;

    return most == 0 || rows <= most ? 1 : (rows - 1) / most + 1;
}

/* Puts a result in a slot, and passes it to the loop. */
static int result_give(struct transform *t, struct uva_batch *out,
                       int64_t bytes)
{
    struct uva__rt *rt = t->stage.source.rt;
    struct uva__task *slot =
        uva__slots_new_task(rt, run_slots(t), out->metadata);
    int64_t ordinal, batches;
    int code;

    if (slot == NULL)
        return ENOMEM;
    uva_array_move(&out->data, &slot->array);
    batches = result_slices(t, slot->array.array.length);
    transform_lock(t);
    ordinal = t->locked.ordinal;
    code = result_push_locked(t, slot, bytes, batches);
    transform_unlock(t);
    if (code == ECANCELED) {
        uva_array_release(&slot->array);
        uva__slots_end_task(rt, run_slots(t), slot);
    } else {
        result_announce(t, ordinal, batches);
    }
    return code;
}

/* Measures a result, unless its `*bytes` are known (not negative). Batches of
 * an unknown format cannot be checked. */
static int result_check(struct transform *t, const struct uva_batch *out,
                        int64_t *bytes)
{
    struct uva_error detail;

    if (!uva_array_is_live(&out->data))
        return uva_error_set(&t->run.error, EPROTO, "%s: no array was emitted",
                             t->stage.source.name);
    if (*bytes >= 0 ||
        uva__measure(t->output.measure, &out->data, bytes, &detail) == 0)
        return 0;
    return uva_error_set(&t->run.error, EPROTO,
                         "%s: a batch does not fit the schema: %s",
                         t->stage.source.name, detail.message);
}

/* Notes the fate of a result. A failure here fails the stream, also if the
 * function ignores it: a batch is lost, and no batch follows it. */
static int result_note(struct transform *t, struct uva_batch *out, int code)
{
    t->run.full = t->run.full || code == EAGAIN;
    if (code == 0 || code == EAGAIN)
        return code;
    if (code == ENOMEM)
        (void)uva_error_set(&t->run.error, code, "no memory for a batch");
    if (uva_array_is_live(&out->data))
        uva_array_release(&out->data);
    t->run.fault = code;
    return code;
}

int64_t uva__transform_input_size(const void *emitter)
{
    const struct transform *t = emitter;
    const struct uva__task *input = t->run.input;

    return input != NULL && input->measured && t->options.schema == NULL
               ? input->info.bytes
               : -1;
}

int uva__transform_emit(void *emitter, struct uva_batch *out, int64_t bytes)
{
    struct transform *t = emitter;
    int code = t->run.fault;

    if (code == 0)
        code = result_check(t, out, &bytes);
    if (code == 0)
        code = result_give(t, out, bytes);
    return result_note(t, out, code);
}

/* The uva_emit_fn of the functions, which may have changed the batch. */
static int transform_emit(void *emitter, struct uva_batch *out)
{
    return uva__transform_emit(emitter, out, -1);
}

int uva__transform_fail(void *emitter, int code)
{
    struct transform *t = emitter;

    t->run.fault = uva__error_positive(code);
    return t->run.fault;
}

/* ---- a run: one step ---------------------------------------------------- */

static enum step step_peek_locked(const struct transform *t)
{
    if (t->locked.progress.phase > PHASE_RUNNING ||
        !has_room(t, &t->locked.progress))
        return STEP_NOTHING;
    if (t->locked.progress.inputs.count > 0)
        return t->run.input != NULL ? STEP_AGAIN : STEP_INPUT;
    if (t->locked.input_ended)
        return STEP_FINISH;
    return t->locked.flush ? STEP_FLUSH : STEP_NOTHING;
}

/* Takes the current input from the run: from then on no stop discards it. */
static struct uva__task *run_take_input_locked(struct transform *t)
{
    struct uva__task *input = t->run.input;

    t->run.input = NULL;
    return input;
}

/* Ends an input that a run had, if there is one. */
static void run_end_input(struct transform *t, struct uva__task *input)
{
    if (input == NULL)
        return;
    if (uva_array_is_live(&t->run.batch.data))
        uva_array_release(&t->run.batch.data);
    uva__slots_end_task(t->stage.source.rt, run_slots(t), input);
}

/* Decides on the next step, and takes its input. With STEP_NOTHING the run is
 * over, and another one may begin on another thread. */
static enum step step_begin(struct transform *t)
{
    struct uva__task *stopped = NULL;
    struct uva__list slots = {0};
    enum step step;

    transform_lock(t);
    step = step_peek_locked(t);
    if (step == STEP_INPUT)
        t->run.input = uva__kept_first(&t->locked.progress.inputs);
    if (t->locked.progress.phase == PHASE_STOPPED)
        stopped = run_take_input_locked(t);
    else if (step == STEP_NOTHING)
        uva__list_append(&slots, &t->run.slots);
    if (step == STEP_NOTHING && t->locked.progress.phase == PHASE_RUNNING)
        t->locked.progress.phase = PHASE_IDLE;
    transform_unlock(t);
    run_end_input(t, stopped);
    if (!uva__list_is_empty(&slots))
        uva__slots_return_tasks(t->stage.source.rt, &slots);
    return step;
}

/* Extracts the input that was taken. */
static int run_extract(struct transform *t)
{
    struct uva__task *input = t->run.input;

    t->run.batch.schema = t->output.input;
    t->run.batch.metadata = input->info.metadata.block;
    t->run.batch.ordinal = input->info.ordinal;
    return uva_task_extract(&input->promise, &t->run.batch.data);
}

/* Gives the code for what the function has returned. EAGAIN is a failure as any
 * other, but most likely a mistake. */
static int run_judge(struct transform *t, int returned)
{
    struct uva_error *error = &t->run.error;
    const char *name = t->stage.source.name;
    const int code = uva__error_positive(returned);

    if (code == EINPROGRESS && !t->run.full)
        return uva_error_set(error, EPROTO,
                             "%s: EINPROGRESS, and no emit returned EAGAIN",
                             name);
    if (code == EAGAIN && error->message[0] == '\0')
        return uva_error_set(error, EAGAIN,
                             "%s: the function returned EAGAIN; for a batch "
                             "that is not finished it returns EINPROGRESS",
                             name);
    return code;
}

/* Calls the function that the step needs, and gives the code for its result. */
static int run_call(struct transform *t, enum step step)
{
    const struct uva_transform *options = &t->options;
    struct uva_error *error = &t->run.error;
    uint64_t since_ns;
    int code = 0;

    t->run.full = false;
    t->run.fault = 0;
    uva__error_begin(error);
    since_ns = uva__span_begin(t->stage.source.rt);
    if (t->run.input != NULL)
        code = options->batch(options->ctx, &t->run.batch, transform_emit, t,
                              error);
    else if (step == STEP_FLUSH)
        code = t->kind.flush(options->ctx, transform_emit, t, error);
    else if (options->finish != NULL)
        code = options->finish(options->ctx, transform_emit, t, error);
    uva__span_end(t->stage.source.meter, t->stage.source.name,
                  t->run.input != NULL ? t->run.batch.ordinal : -1, since_ns);
    return t->run.fault != 0 ? t->run.fault : run_judge(t, code);
}

/* The step is over, and the runs go on with `phase`, or end; takes `failure`.
 */
static void step_end(struct transform *t, enum phase phase,
                     const struct uva__failure *failure)
{
    struct uva__transform_rows rows = {0};
    struct uva__task *input;

    if (t->kind.rows != NULL)
        rows = t->kind.rows(t->options.ctx);
    transform_lock(t);
    input = run_take_input_locked(t);
    t->locked.failure = *failure;
    if (t->locked.progress.phase == PHASE_RUNNING) {
        if (input != NULL)
            (void)uva__kept_pop(&t->locked.progress.inputs);
        t->locked.progress.phase = phase;
        t->locked.progress.rows = rows;
        t->locked.flush = false;
    }
    transform_unlock(t);
    run_end_input(t, input);
}

/* Takes a step. A function that returns EINPROGRESS goes on when there is room.
 */
static void run_step(struct transform *t, enum step step)
{
    struct uva__failure failure = {0};
    enum phase phase = PHASE_RUNNING;
    int code;

    if (step == STEP_INPUT && (failure.code = run_extract(t)) != 0) {
        step_end(t, PHASE_LOST, &failure);
        return;
    }
    code = run_call(t, step);
    if (code == EINPROGRESS && t->run.fault == 0)
        return;
    if (t->run.fault != 0 || (code != 0 && code != ENOENT)) {
        phase = PHASE_FAILED;
        uva__failure_set(&failure, allocator_of(t), code, &t->run.error, NULL);
    } else if (code == ENOENT || step == STEP_FINISH) {
        phase = PHASE_ENDED;
    }
    step_end(t, phase, &failure);
}

static void run_steps(struct transform *t)
{
    enum step step;

    while ((step = step_begin(t)) != STEP_NOTHING)
        run_step(t, step);
}

static bool transform_work(struct uva__worker_job *job)
{
    struct transform *t = uva__container_of(job, struct transform, job);

    run_steps(t);
    uva__meter_wake(t->stage.source.meter, &t->stage.source.wakeup);
    return false;
}

/* ---- the loop: as a handler --------------------------------------------- */

static void transform_task(struct uva__stage *stage,
                           struct ArrowAsyncTask *task, const char *metadata)
{
    struct transform *t = transform_at(&stage->source);
    struct uva__task *slot =
        uva__kept_take_in(&stage->inlet, stage->source.producer, task, metadata,
                          UVA__KEPT_PROMISE);

    uva__intake_come(&stage->in);
    if (slot == NULL)
        return;
    uva__intake_note_size(&stage->in, slot->info.bytes);
    transform_lock(t);
    uva__kept_push(&t->locked.progress.inputs, slot);
    transform_unlock(t);
}

/* ---- the loop: as a source ---------------------------------------------- */

/* Runs on the loop thread, or submits the job. */
static void transform_run(struct transform *t)
{
    const struct uva__source *source = &t->stage.source;

    if (t->options.on_loop) {
        uva__meter_enter(source->meter, true);
        run_steps(t);
        uva__meter_enter(source->meter, false);
        return;
    }
    if (!uva__worker_job_submit(&t->job))
        UVA__UNREACHABLE("a running stage keeps the workers alive");
}

/* Starts a run, if there is work and no run is in progress; gives how far the
 * runs are. */
static struct progress transform_advance(struct transform *t)
{
    struct progress progress;
    bool due;

    transform_lock(t);
    t->locked.input_ended = t->stage.inlet.state == UVA__INLET_ENDED;
    due = t->locked.progress.phase == PHASE_IDLE &&
          step_peek_locked(t) != STEP_NOTHING;
    if (due)
        t->locked.progress.phase = PHASE_RUNNING;
    transform_unlock(t);
    if (due)
        transform_run(t);
    transform_lock(t);
    progress = t->locked.progress;
    transform_unlock(t);
    return progress;
}

/* The end, or a failure, follows the results at hand. Once the runs are over,
 * they do not touch the failure. */
static void transform_conclude(struct transform *t,
                               const struct progress *progress)
{
    struct uva__stage *stage = &t->stage;
    struct uva__source *source = &stage->source;

    source->ready = progress->results.count;
    if (source->failure.code != 0 || source->ended)
        return;
    switch (progress->phase) {
    case PHASE_ENDED:
        source->ended = true;
        break;
    case PHASE_FAILED:
        uva__failure_move(&t->locked.failure, &source->failure,
                          allocator_of(t));
        break;
    case PHASE_LOST:
        uva__inlet_fail_extraction(&stage->inlet, t->locked.failure.code,
                                   source);
        break;
    default:
        if (stage->inlet.failure.code != 0 && progress->inputs.count == 0)
            uva__inlet_conclude(&stage->inlet, source);
    }
}

/* How many more inputs the demand takes. Without its own window the stage
 * requests the inputs of the results that are requested here and not ready. */
static int64_t transform_room(const struct transform *t, int64_t demand,
                              const struct progress *progress)
{
    const struct uva__intake *in = &t->stage.in;
    int64_t n;

    if (in->window.refill != UVA__WINDOW_FOLLOWS)
        return uva__window_room(&in->window, demand, in->held + in->requested);
    n = uva__window_allowed(&in->window, demand) - progress->results.count;
    if (n > 0 && t->kind.rows != NULL)
        n = progress->rows.input > 0 ? uva__transform_inputs(&progress->rows, n)
                                     : 1;
    return n > 0 ? uva__window_room(&in->window, n,
                                    progress->inputs.count + in->requested)
                 : 0;
}

/* Requests inputs as far as they fit by their size, which the first input
 * shows. While no input waits one may come, beside the results. */
static void transform_request(struct transform *t, int64_t demand,
                              const struct progress *progress)
{
    struct uva__intake *in = &t->stage.in;
    int64_t n;

    if (!uva__intake_start(in, demand) || !has_room(t, progress))
        return;
    n = transform_room(t, demand, progress);
    if (n > 0 && (n = uva__intake_fit(in, n, in->requested, 1)) == 0)
        n = progress->inputs.count + in->requested == 0;
    uva__inlet_request_for(&t->stage.inlet, in, n);
}

static void transform_expire(struct uva__timer *timer)
{
    struct transform *t =
        uva__container_of(timer, struct transform, stage.timer);

    transform_lock(t);
    t->locked.flush = true;
    transform_unlock(t);
    uva__producer_wake(t->stage.source.producer);
}

/* Starts the timer for kept rows, if a batch is wanted and none is under way. A
 * run may change these rows: it states them anew, and wakes the loop, which
 * then starts the timer. */
static void transform_set_timer(struct transform *t, int64_t demand,
                                const struct progress *progress)
{
    struct uva__rt *rt = t->stage.source.rt;
    struct uva__timer *timer = &t->stage.timer;
    const bool waits = demand > 0 && progress->rows.since_ns != 0 &&
                       progress->inputs.count == 0 &&
                       progress->results.count == 0 &&
                       progress->phase == PHASE_IDLE;
    int64_t age_ms;

    if (!waits)
        uva__timer_stop(rt, timer);
    if (!waits || timer->running)
        return;
    age_ms = (int64_t)((uva__clock_ns() - progress->rows.since_ns) / 1000000);
    uva__timer_start(rt, timer,
                     age_ms < t->kind.wait_ms ? t->kind.wait_ms - age_ms : 0);
}

/* States the bytes in the window, and the result that goes first. */
static void transform_account(struct transform *t,
                              const struct progress *progress)
{
    struct uva__source *source = &t->stage.source;
    struct uva__intake *in = &t->stage.in;
    const struct uva__task *first;

    in->held = progress->inputs.count + progress->results.count;
    in->bytes = progress->inputs.bytes + progress->results.bytes;
    uva__intake_account(in, source);
    if (progress->results.count == 0)
        return;
    first = uva__kept_first(&progress->results);
    uva__share_keep(&source->share, &t->loop.kept, t->output.measure,
                    &first->array, &first->info);
}

static void transform_pull(struct uva__source *source, int64_t demand)
{
    struct transform *t = transform_at(source);
    struct progress progress;

    if (!uva__output_prepare(&t->output, source, t->options.schema,
                             t->options.ctx) &&
        t->stage.inlet.failure.code == 0)
        return;
    progress = transform_advance(t);
    transform_account(t, &progress);
    transform_conclude(t, &progress);
    transform_set_timer(t, demand, &progress);
    if (progress.phase <= PHASE_RUNNING)
        transform_request(t, demand, &progress);
    else if (progress.phase !=
             PHASE_LOST) /* it has the reason still to report */
        uva__inlet_quit(&t->stage.inlet);
}

/* Gives the next of `slices` slices of the first result, in a separate slot,
 * and leaves the other rows in the result. A slice counts its part of the size,
 * as all share the data. NULL without memory. */
static struct uva__task *result_cut(struct transform *t,
                                    struct uva__task *first, int64_t slices)
{
    struct uva__rt *rt = t->stage.source.rt;
    struct uva__task *slot =
        uva__slots_new_task(rt, NULL, first->info.metadata.block);

    if (slot == NULL)
        return NULL;
    if (uva__slice_off(&rt->allocator, &t->output.measure->schema,
                       &t->loop.room, &first->array, t->kind.slice_rows, slices,
                       &slot->array) != 0) {
        uva__slots_end_task(rt, NULL, slot);
        return NULL;
    }
    slot->info.ordinal = first->info.ordinal++;
    first->measured = false;
    slot->info.bytes = first->info.bytes / slices;
    first->info.bytes -= slot->info.bytes;
    return slot;
}

/* The first result needs no lock: only this thread removes it, and a run adds
 * results after it. */
static struct uva__task *transform_take(struct uva__source *source)
{
    struct transform *t = transform_at(source);
    struct uva__kept *results = &t->locked.progress.results;
    struct uva__task *first = uva__kept_first(results), *task = first;
    const int64_t slices = result_slices(t, first->array.array.length);

    if (slices > 1)
        task = result_cut(t, first, slices);
    if (task == NULL)
        return NULL;
    transform_lock(t);
    if (task == first) {
        (void)uva__kept_pop(results);
    } else {
        results->count--;
        results->bytes -= task->info.bytes;
    }
    transform_unlock(t);
    task->producer = source->producer;
    source->ready--;
    return task;
}

static void transform_stop(struct uva__source *source)
{
    struct transform *t = transform_at(source);
    struct uva__task *slot, *input = NULL;
    struct progress last;

    uva__stage_stop(source);
    uva__array_share_give_up(&t->loop.room);
    transform_lock(t);
    last = t->locked.progress;
    if (t->run.input != NULL) /* it is the first of the inputs */
        (void)uva__kept_pop(&last.inputs);
    if (last.phase != PHASE_RUNNING)
        input = run_take_input_locked(t);
    t->locked.progress = (struct progress){.phase = PHASE_STOPPED};
    transform_unlock(t);
    while ((slot = uva__kept_pop(&last.inputs)) != NULL) {
        uva__task_drop(&slot->promise);
        uva__slots_end_task(source->rt, NULL, slot);
    }
    uva__kept_drop(&last.results, source);
    run_end_input(t, input);
    if (last.phase == PHASE_RUNNING)
        uva__worker_job_give_up(&t->job);
}

/* ---- life --------------------------------------------------------------- */

/* The options of transform_kind, and more. */
struct setup {
    struct uva_transform options; /* first */
    const struct uva__transform_kind *kind;
};

static void transform_init(struct uva__stage *stage,
                           const struct uva__stage_setup *setup)
{
    const struct setup *given = setup->options;
    struct transform *t = transform_at(&stage->source);

    t->kind = *given->kind;
    if (t->kind.state_size > 0)
        t->options.ctx = memcpy(t + 1, given->options.ctx, t->kind.state_size);
    stage->timer.fire = transform_expire;
    uva__worker_job_init(&t->job, stage, transform_work);
    stage->source.name = t->kind.name;
}

static void transform_free(struct uva__stage *stage,
                           const struct uva_allocator *allocator)
{
    struct transform *t = transform_at(&stage->source);

    assert(t->run.input == NULL);
    uva__slots_return_tasks(t->stage.source.rt, &t->run.slots);
    uva__failure_fini(&t->locked.failure, allocator);
    uva__output_fini(&t->output);
}

static const struct uva__stage_kind transform_kind = {
    .options = {UVA__OPTIONS(uva_transform), UVA__OPTIONS_CTX(uva_transform),
                UVA__OPTIONS_WINDOW(uva_transform),
                UVA__OPTIONS_NEED(uva_transform, batch), .follows = true},
    .size = sizeof(struct transform),
    .copy = offsetof(struct transform, options),
    .init = transform_init,
    .source = {UVA__STAGE_RELAYS(transform_stop), .name = "transform",
               .sized = true, .pull = transform_pull, .take = transform_take},
    .task = transform_task,
    .free = transform_free,
};

int uva__transform_add(struct uva_stream *stream,
                       const struct uva__transform_kind *kind,
                       const struct uva_transform *options)
{
    const struct setup given = {*options, kind};
    struct uva__stage_setup setup = {
        .stream = stream,
        .options = &given.options,
        .needs = options->on_loop ? UVA__STAGE_CHEAP : UVA__STAGE_WORKERS,
        .more = kind->state_size};

    assert(kind->flush == NULL || !options->on_loop);
    if (uva__window_follow(&options->window, &setup.window) != 0)
        UVA__UNREACHABLE("the default window is valid");
    return uva__stage_make(&transform_kind, &setup);
}

int uva_stream_transform(struct uva_stream *stream,
                         const struct uva_transform *options)
{
    static const struct uva__transform_kind kind = {.name = "transform"};
    struct uva__window window;
    const int code =
        uva__options_accept(&transform_kind.options, stream, options, &window);

    return code == 0 ? uva__transform_add(stream, &kind, options) : code;
}
