/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of a reader: calls the source, fills slots, keeps the pace,
 * closes the source at the end; and interrupts a call that waits, on an extra
 * thread. The loop's side, and the happy path of both, is source/reader.c. */
#include "source/reader.h"

#include <errno.h>

#include "arrow/structs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "stream/slots.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

enum { YIELD_BATCHES = 64, YIELD_NS = 1000000 };

/* How a job of the worker ends. */
enum worker_end {
    WORKER_IDLE,  /* another thread may use the reader */
    WORKER_AGAIN, /* other jobs wait for the thread: submit the job again */
    WORKER_CLOSE  /* the source is to be closed */
};

/* Why it stops reading for now. */
enum worker_stop {
    STOP_DRY,   /* no slot is granted */
    STOP_FULL,  /* the window is full of bytes */
    STOP_YIELD, /* other jobs wait for the thread */
    STOP_OVER   /* the source has ended, or was cancelled */
};

/* ---- what is shared with the loop --------------------------------------- */

static bool worker_is_full(const struct uva__reader *r)
{
    return r->worker.bytes - uva__atomic64_load(&r->consumed) >=
           (uint64_t)r->window.bytes;
}

/* Whether no more batches are wanted. */
static bool worker_is_cancelled(struct uva__reader *r)
{
    unsigned facts;

    (void)uva__reader_credit_look(&r->credit, &facts);
    return (facts & READER_CANCELLED) != 0;
}

/* ---- calls into the source ---------------------------------------------- */

/* Returns whether the source may be called, and whether the result is wanted.
 */
static bool worker_is_wanted(const struct uva__reader *r)
{
    return !uva__interrupt_is_cancelled(&r->interrupt);
}

/* False if it was cancelled before: then the source must not be called. One
 * entry serves for all calls until the worker stops reading for now. */
static bool worker_enter(struct uva__reader *r)
{
    if (r->worker.inside)
        return worker_is_wanted(r);
    r->worker.inside = uva__interrupt_enter(&r->interrupt);
    return r->worker.inside;
}

/* Waits for an interrupt that is running, so that it never overlaps later
 * calls. */
static void worker_leave(struct uva__reader *r)
{
    uint64_t interrupt;

    if (!r->worker.inside)
        return;
    r->worker.inside = false;
    interrupt = uva__interrupt_leave(&r->interrupt);
    if (!(interrupt & INTERRUPT_CANCEL))
        return;
    if (interrupt & INTERRUPT_STUCK)
        uva__atomic64_sub(&r->source.rt->stats.calls_stuck, 1);
    uva__interrupt_wake(&r->interrupt);
}

static inline void worker_notify(struct uva__reader *r)
{
    if (!r->on_loop)
        uva__meter_wake_outside(r->source.meter, &r->source.wakeup);
}

/* Counts for the statistics whether the worker runs. A source without a
 * meter was never part of a stream. */
static void worker_set_working(struct uva__reader *r, bool working)
{
    struct uva__meter *meter = r->source.meter;

    if (meter == NULL || r->worker.working == working)
        return;
    r->worker.working = working;
    if (r->on_loop)
        uva__meter_enter(meter, working);
    else
        uva__small_counter_add_shared(&meter->shared.jobs_running,
                                      working ? 1 : -1);
}

/* Ends reading, with a failure or at the source's end. The loop is woken when
 * the source is closed. A text begins with the name of the source. */
static void worker_finish(struct uva__reader *r, int code,
                          struct uva_error *error, const char *metadata)
{
    if (code != 0 && error->message[0] != '\0')
        uva__error_prefix(error, r->source.name);
    if (code != 0)
        uva__failure_set(&r->worker.failure, &r->source.rt->allocator, code,
                         error, metadata);
    r->worker.reading = UVA__READING_OVER;
}

/* As that, after a call of the source that failed. */
static void worker_fail(struct uva__reader *r, int code,
                        struct uva_error *error)
{
    worker_finish(r, code, error,
                  r->ops->metadata != NULL ? r->ops->metadata(r, code) : NULL);
}

/* Copies the metadata of the stream. 0 or ENOMEM. */
static int worker_copy_metadata(struct uva__reader *r)
{
    int code;

    if (r->ops->metadata == NULL)
        return 0;
    code = uva__metadata_copy(&r->source.rt->allocator, r->ops->metadata(r, 0),
                              &r->worker.metadata);
    if (code == 0 || code == ENOMEM)
        return code;
    uva__rt_breach(r->source.rt, uva__label_text(r->source.label), "MD-05",
                   "a source came with malformed metadata: left out");
    return 0;
}

static void worker_expect(struct uva__reader *r)
{
    int64_t rows = 0, bytes = 0;

    r->ops->expect(r, &rows, &bytes);
    uva__meter_expect(r->source.meter, rows, bytes);
}

/* Batches are checked against a copy, which other streams share, as the schema
 * itself is given to the loop. */
static int worker_take_schema(struct uva__reader *r, struct uva_error *error)
{
    int code = uva__structs_check_schema(&r->source.schema, error);

    if (code != 0)
        return code;
    code = uva__outline_acquire(r->source.rt, &r->source.schema,
                                &r->source.outline);
    if (code == 0)
        r->worker.measure = uva__outline_measure(r->source.outline);
    if (code == 0 || code == ENOMEM)
        return code;
    return uva_error_set(
        error, code,
        "get_schema gave a schema that makes no sense: its metadata, its "
        "children or a format of theirs");
}

/* A call of the source begins, and ends. */
static inline void worker_busy_begin(struct uva__reader *r)
{
    if (r->is_timed)
        uva__atomic64_store(&r->busy_since, uva__clock_ns());
}

static inline void worker_busy_end(struct uva__reader *r)
{
    const uint64_t since_ns = uva__atomic64_peek(&r->busy_since);

    if (!r->is_timed)
        return;
    uva__atomic64_store(&r->busy_since, 0);
    uva__atomic64_store(&r->busy_ns, uva__atomic64_peek(&r->busy_ns) +
                                         uva__clock_ns() - since_ns);
}

static void worker_open(struct uva__reader *r)
{
    struct uva_error error;
    uint64_t since_ns;
    int code;

    uva__error_begin(&error);
    r->worker.reading = UVA__READING_OPEN;
    if (!worker_enter(r))
        return;
    r->worker.device_type = r->source.device_type;
    since_ns = uva__span_begin(r->source.rt);
    worker_busy_begin(r);
    code = r->ops->open(r, &r->source.schema, &error);
    worker_busy_end(r);
    uva__span_end(r->source.meter, "open", -1, since_ns);
    if (!worker_is_wanted(r))
        return;
    if (code != 0) {
        worker_fail(r, code, &error);
        return;
    }
    code = worker_copy_metadata(r);
    if (code == 0)
        code = worker_take_schema(r, &error);
    if (code != 0) {
        worker_finish(r, code, &error, NULL);
        return;
    }
    worker_expect(r);
    uva__reader_credit_state(&r->credit, READER_DESCRIBED, UVA__READER_RUNNING);
    worker_notify(r);
}

/* ---- one batch ----------------------------------------------------------- */

static void read_discard(struct uva__read *read)
{
    uva_array_release(read->array);
    if (read->lazy.item != NULL)
        (void)read->lazy.extract(read->lazy.ctx, read->lazy.item, NULL, NULL);
}

static int worker_no_memory(struct uva_error *error)
{
    return uva_error_set(error, ENOMEM, "no memory for the next batch");
}

static void worker_check_metadata(const struct uva__reader *r,
                                  const char *metadata)
{
    size_t size;

    if (uva_metadata_size(metadata, &size) != 0)
        uva__rt_breach(r->source.rt, uva__label_text(r->source.label), "MD-05",
                       "a batch came with malformed metadata: left out");
}

static int worker_fill_lazy(struct uva__reader *r, struct uva__task *task,
                            const struct uva__read *read,
                            struct uva_error *error)
{
    worker_check_metadata(r, read->metadata);
    if (uva__task_fill_lazy(task, &r->source.rt->allocator, &read->lazy,
                            read->metadata) != 0)
        return worker_no_memory(error);
    task->info.bytes = read->bytes;
    return 0;
}

/* A batch is of another device type than the source has stated. */
__attribute__((cold)) static void worker_note_type(struct uva__reader *r)
{
    if (r->worker.warned)
        return;
    r->worker.warned = true;
    uva__rt_breach(r->source.rt, uva__label_text(r->source.label), "DS-03",
                   "a batch is of another device type than its stream");
}

static int worker_fill_array(struct uva__reader *r, struct uva__task *task,
                             const struct uva__read *read,
                             struct uva_error *error)
{
    struct uva_error detail;

    if (task->array.device_type != r->worker.device_type)
        worker_note_type(r);
    if (uva__measure(r->worker.measure, &task->array, &task->info.bytes,
                     &detail) != 0)
        return uva_error_set(
            error, EPROTO, "batch %llu does not fit the schema: %s",
            (unsigned long long)r->worker.done, detail.message);
    task->measured = task->info.bytes >= read->bytes;
    if (!task->measured)
        task->info.bytes = read->bytes;
    if (read->metadata == NULL)
        return 0;
    worker_check_metadata(r, read->metadata);
    return uva__task_take_metadata(task, &r->source.rt->allocator,
                                   read->metadata) == 0
               ? 0
               : worker_no_memory(error);
}

/* Completes the slot and gives it to the loop; discards the batch if that
 * fails. */
static int worker_fill(struct uva__reader *r, struct uva__task *task,
                       struct uva__read *read, struct uva_error *error)
{
    const int code = read->lazy.item != NULL
                         ? worker_fill_lazy(r, task, read, error)
                         : worker_fill_array(r, task, read, error);

    if (code != 0) {
        read_discard(read);
        return code;
    }
    task->info.ordinal = (int64_t)r->worker.done++;
    task->producer = r->source.producer;
    r->worker.credits--;
    r->worker.count++;
    r->worker.bytes += (uint64_t)task->info.bytes;
    if (r->on_loop)
        uva__kept_push(&r->inbox.ready, task);
    else if (uva__inbox_put(&r->inbox, task))
        worker_notify(r); /* before the next call, which may wait */
    return 0;
}

/* Whether a read has given a batch, and not the end. */
static bool read_is_batch(const struct uva__read *read)
{
    return read->array->array.release != NULL || read->lazy.item != NULL;
}

/* Reads a batch into `task`. False if the source has ended, or was cancelled:
 * then the slot is empty. */
static inline bool worker_read_to(struct uva__reader *r, struct uva__task *task,
                                  struct uva_error *error)
{
    struct uva__read read;
    uint64_t since_ns;
    int code;

    read.array = &task->array;
    read.lazy.item = NULL;
    read.bytes = 0;
    read.metadata = NULL;
    uva_array_clear(
        &task->array); /* a source may leave parts of it as they are */
    since_ns = uva__span_begin(r->source.rt);
    worker_busy_begin(r);
    code = r->ops->next(r, &read, error);
    worker_busy_end(r);
    uva__span_end(r->source.meter, r->ops->call,
                  code == 0 && read_is_batch(&read) ? (int64_t)r->worker.done
                                                    : -1,
                  since_ns);
    if (code != 0)
        uva_array_clear(&task->array);
    if (!worker_is_wanted(r)) {
        if (code == 0)
            read_discard(&read);
        return false;
    }
    if (code != 0) {
        worker_fail(r, code, error);
        return false;
    }
    if (!read_is_batch(&read)) {
        worker_finish(r, 0, NULL, NULL);
        return false;
    }
    code = worker_fill(r, task, &read, error);
    if (code != 0)
        worker_finish(r, code, error, NULL);
    return code == 0;
}

/* Reads into the next slot. False as above. */
static bool worker_read(struct uva__reader *r, struct uva_error *error)
{
    struct uva__list *slots = r->on_loop ? NULL : &r->worker.slots;
    struct uva__task *task;

    if (!worker_enter(r))
        return false;
    task = r->on_loop ? uva__slots_take_task(r->source.rt)
                      : uva__slots_new_task(r->source.rt, slots, NULL);
    if (task == NULL) {
        worker_finish(
            r, uva_error_set(error, ENOMEM, "no memory for the next batch"),
            error, NULL);
        return false;
    }
    if (worker_read_to(r, task, error))
        return true;
    uva__slots_end_task(r->source.rt, slots, task);
    return false;
}

/* ---- pace ---------------------------------------------------------------- */

static bool worker_reads_ahead(const struct uva__reader *r)
{
    return !uva__awaited_is(&r->awaited, r->worker.done);
}

/* To a job that goes before this one it yields after each batch, but not before
 * the first: it may have its turn because it was passed over for long. To other
 * jobs it yields after a while. */
static bool worker_must_yield(struct uva__reader *r)
{
    if (r->on_loop ||
        !uva__lane_is_wanted(&r->source.rt->jobs, UVA_LANE_BLOCKING))
        return false;
    if (r->worker.count > 0 &&
        uva__lane_must_yield(&r->source.rt->jobs, UVA_LANE_BLOCKING,
                             uva__place_of_job(&r->job, worker_reads_ahead(r))))
        return true;
    return r->worker.count >= YIELD_BATCHES ||
           uva__clock_ns() - r->worker.since_ns > YIELD_NS;
}

static void worker_submit(struct uva__reader *r)
{
    r->job.done = r->worker.done;
    if (r->source.meter != NULL)
        uva__meter_submit(r->source.meter, UVA_LANE_BLOCKING, &r->job,
                          &r->submitted_ns);
    else
        uva__lane_submit(&r->source.rt->jobs, UVA_LANE_BLOCKING, &r->job);
}

/* Gives up the source while the window is full of bytes, and wakes the loop,
 * which ends the pause when bytes were consumed. */
static enum uva__reader_credit_next worker_pause(struct uva__reader *r)
{
    enum uva__reader_credit_next next;

    uva__source_acquire(&r->source); /* once it is given up it may be freed */
    next = uva__reader_credit_refill(&r->credit, true, &r->worker.credits);
    if (next == UVA__READER_CREDIT_IDLE)
        worker_notify(r);
    uva__source_release(&r->source);
    return next;
}

/* Reads as long as it can; returns why it stopped. */
static enum worker_stop worker_read_on(struct uva__reader *r)
{
    struct uva_error error; /* of the call that fails */

    if (r->worker.reading == UVA__READING_OVER)
        return STOP_OVER;
    while (r->worker.credits > 0) {
        if (worker_is_full(r))
            return STOP_FULL;
        if (worker_must_yield(r))
            return STOP_YIELD;
        if (!worker_read(r, &error))
            return STOP_OVER;
    }
    return STOP_DRY;
}

static enum worker_end worker_work(struct uva__reader *r)
{
    enum uva__reader_credit_next next = UVA__READER_CREDIT_GO;
    enum worker_stop why;

    if (worker_is_cancelled(r))
        return WORKER_CLOSE;
    worker_set_working(r, true);
    if (r->worker.reading == UVA__READING_NOT)
        worker_open(r);
    while (next == UVA__READER_CREDIT_GO) {
        worker_set_working(r, true);
        why = worker_read_on(r);
        worker_leave(r);
        worker_set_working(r, false); /* before another thread may work */
        if (why == STOP_YIELD && !worker_is_cancelled(r))
            return WORKER_AGAIN;
        if (why == STOP_FULL)
            next = worker_pause(r);
        else if (why == STOP_DRY)
            next = uva__reader_credit_refill(&r->credit, false,
                                             &r->worker.credits);
        else
            return WORKER_CLOSE;
    }
    return next == UVA__READER_CREDIT_IDLE ? WORKER_IDLE : WORKER_CLOSE;
}

/* ---- closing ------------------------------------------------------------- */

/* After a cancel: discards the batches that the loop has not taken. */
static void worker_discard(struct uva__reader *r)
{
    struct uva__link *link = uva__mpsc_take(&r->inbox.fresh), *next;
    struct uva__task *task;

    for (; link != NULL; link = next) {
        next = link->next;
        task = uva__container_of(link, struct uva__task, link);
        if (task->is_lazy)
            (void)task->lazy.extract(task->lazy.ctx, task->lazy.item, NULL,
                                     NULL);
        else
            uva_array_release(&task->array);
        uva__task_clear(task, &r->source.rt->allocator);
        uva__list_push(&r->worker.slots, link);
    }
}

/* States that no batch follows, and who has the source then. */
static void worker_end(struct uva__reader *r, enum uva__reader_owner owner)
{
    uva__reader_credit_state(&r->credit, READER_ENDED, owner);
    uva__rt_wake(r->source.rt, &r->source.wakeup);
}

static void worker_close(struct uva__reader *r)
{
    struct uva__list *slots = &r->worker.slots;

    worker_set_working(r, false);
    uva__lane_give_up_here(); /* a release may block, too */
    if (r->ops->end != NULL && r->ops->end(r))
        worker_end(r, UVA__READER_RUNNING);
    r->ops->close(r);
    if (worker_is_cancelled(r))
        worker_discard(r);
    if (!uva__list_is_empty(slots))
        uva__slots_return_tasks(r->source.rt, slots);
    worker_end(r, UVA__READER_CLOSED);
    uva__source_release(&r->source);
}

void uva__reader_worker_run(struct uva__job *job)
{
    struct uva__reader *r = uva__container_of(job, struct uva__reader, job);
    struct uva__rt *rt = r->source.rt;

    if (r->source.meter != NULL)
        uva__meter_run_begin(r->source.meter, r->submitted_ns);
    r->worker.working = r->source.meter != NULL;
    r->worker.count = 0;
    r->worker.since_ns = uva__clock_ns();
    switch (worker_work(r)) {
    case WORKER_AGAIN:
        worker_submit(r);
        return;
    case WORKER_CLOSE:
        worker_close(r);
        break;
    case WORKER_IDLE:
        break;
    }
    uva__rt_job_end(rt);
}

void uva__reader_worker_start(struct uva__reader *r)
{
    if (!r->on_loop && uva__rt_job_begin(r->source.rt))
        worker_submit(r);
    else if (worker_work(r) == WORKER_CLOSE)
        worker_close(r);
}

/* ---- giving up ---------------------------------------------------------- */

/* On an extra thread: the source of a stream that was cancelled, or never
 * started, is closed there if its job still waits. */
static void worker_rescue(struct uva__discard *item)
{
    struct uva__reader *r = uva__container_of(item, struct uva__reader, rescue);
    struct uva__rt *rt = r->source.rt;

    if (uva__lane_take_back(&rt->jobs, &r->job)) {
        if (r->source.meter != NULL)
            uva__meter_take_back(r->source.meter);
        worker_close(r);
        uva__rt_job_end(rt); /* of the job that was taken back */
    }
    uva__source_release(&r->source);
    uva__rt_job_end(rt);
}

void uva__reader_worker_give_up(struct uva__reader *r)
{
    struct uva__rt *rt = r->source.rt;
    unsigned facts;

    if (uva__reader_credit_look(&r->credit, &facts) == UVA__READER_CLOSED ||
        !uva__rt_job_begin(rt)) /* until the rescue has run */
        return;
    if (uva__lane_give_up(&rt->jobs, UVA_LANE_BLOCKING, &r->job) !=
        UVA__JOB_WAITING) {
        uva__rt_job_end(rt);
        return;
    }
    uva__source_acquire(&r->source);
    r->rescue.owner = r;
    r->rescue.run = worker_rescue;
    uva__discard_add(rt, &r->rescue);
}

/* ---- interrupting ------------------------------------------------------- */

static bool worker_interrupt_once(void *reader)
{
    struct uva__reader *r = reader;

    if (!uva__interrupt_begin(&r->interrupt))
        return false;
    r->ops->interrupt(r);
    uva__interrupt_end(&r->interrupt);
    return true;
}

static void worker_await_return(void *reader, int64_t limit_ms)
{
    uva__interrupt_await(&((struct uva__reader *)reader)->interrupt, limit_ms);
}

void uva__reader_worker_interrupt(struct uva__job *job)
{
    struct uva__reader *r =
        uva__container_of(job, struct uva__reader, interrupter);
    struct uva__rt *rt = r->source.rt;

    uva__interrupt_repeat(worker_interrupt_once, worker_await_return, r);
    uva__source_release(&r->source);
    uva__rt_job_end(rt);
}

/* The worker checks the mark before and after each call. */
bool uva__reader_worker_cancel(struct uva__reader *r)
{
    struct uva__rt *rt = r->source.rt;

    uva__atomic64_add(&rt->stats.calls_stuck, 1); /* before the worker can undo
                                                     it */
    if (!uva__interrupt_cancel(&r->interrupt)) {
        uva__atomic64_sub(&rt->stats.calls_stuck, 1);
        return false;
    }
    if (!r->can_interrupt || !uva__rt_job_begin(rt))
        return true;
    uva__source_acquire(&r->source);
    uva__lane_run_uncapped(&rt->jobs, &r->interrupter);
    return true;
}
