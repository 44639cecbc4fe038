/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of a reader: calls the source, fills slots, keeps the pace,
 * closes the source at the end; and interrupts a call that waits, on an extra
 * thread. The loop's side, and the happy path of both, is source/reader.c. */
#include "source/reader_worker.h"

#include <errno.h>

#include "base/clock.h"
#include "arrow/layout.h"
#include "base/memory.h"
#include "base/error.h"
#include "arrow/structs.h"
#include "uvarrow/arrow.h"

enum {
    YIELD_BATCHES = 64,
    YIELD_NS = 1000000,
    BREAK_MS = 100,
    BREAK_MAX_MS = 5000
};

/* How a job of the worker ends. */
enum lane_end {
    LANE_IDLE,   /* RUNNING was given up: another thread may use the reader */
    LANE_AGAIN,  /* other jobs wait for the thread: submit the job again */
    LANE_TO_HOME /* the source is to be closed */
};

/* Why it stops reading for now. */
enum lane_stop {
    STOP_DRY,    /* no slot is granted */
    STOP_FULL,   /* the window is full of bytes */
    STOP_WANTED, /* other jobs wait for the thread */
    STOP_OVER    /* the source has ended, or was cancelled */
};

/* ---- life --------------------------------------------------------------- */

void uva__reader_free(struct uva__node *node)
{
    struct uva__reader *r = uva__container_of(node, struct uva__reader, node);
    const struct uva__reader_ops *ops = r->ops;
    struct uva__hub *hub = uva__hub_acquire(r->feed.hub);
    const struct uva_allocator *allocator = &hub->allocator;

    uva_schema_release(&r->lane.schema);
    uva_schema_release(&r->lane.told);
    uva__failure_fini(&r->lane.failure, allocator);
    uva__memory_free(allocator, r->ring,
                     (r->ring_mask + 1) * sizeof(struct uva__task *));
    uva__feed_fini(&r->feed);
    ops->free(r, allocator);
    uva__hub_release(hub);
}

void uva__reader_acquire(struct uva__reader *r)
{
    uva__node_acquire(&r->node);
}

void uva__reader_release(struct uva__reader *r)
{
    uva__node_release(&r->node);
}

/* ---- calls into the source ---------------------------------------------- */

/* Returns whether a call may be made, and whether its result is wanted. */
static bool lane_is_welcome(const struct uva__reader *r)
{
    return r->quick || !uva__phase_is_cancelled(&r->phase);
}

/* False if it was cancelled before: then the source must not be called. One
 * entry serves for all calls until the worker stops reading for now. */
static bool lane_enter(struct uva__reader *r)
{
    if (r->quick || r->lane.inside)
        return lane_is_welcome(r);
    r->lane.inside = uva__phase_enter(&r->phase);
    return r->lane.inside;
}

/* Waits for an interrupt that is running, so that it never overlaps later
 * calls. */
static void lane_leave(struct uva__reader *r)
{
    uint64_t phase;

    if (!r->lane.inside)
        return;
    r->lane.inside = false;
    phase = uva__phase_leave(&r->phase);
    if (!(phase & PHASE_CANCEL))
        return;
    if (phase & PHASE_STUCK)
        uva__word_sub(&r->feed.hub->counts.calls_stuck, 1);
    uva__phase_tell(&r->phase);
}

static void lane_announce(struct uva__reader *r)
{
    if (!r->quick)
        uva__hub_post(r->feed.hub, &r->node);
}

/* Ends reading, with a failure or at the source's end. The loop is woken when
 * the source is closed. */
static void lane_finish(struct uva__reader *r, int code,
                        const struct uva_error *error)
{
    if (code != 0)
        uva__failure_set(&r->lane.failure, &r->feed.hub->allocator, code, error,
                         NULL);
    r->lane.ended = true;
}

/* Batches are checked against a copy, as the schema itself is given to the
 * loop. */
static int lane_copy_schema(struct uva__reader *r, struct uva_error *error)
{
    int code = uva__structs_copy_schema(&r->feed.hub->allocator, &r->lane.told,
                                        &r->lane.schema);

    uva__shape_read(&r->lane.shape, &r->lane.schema);
    if (code == ENOMEM || code == 0)
        return code;
    return uva_error_set(error, code,
                         "get_schema gave a schema that makes no sense: its "
                         "metadata, its children or a format of theirs");
}

static void lane_open(struct uva__reader *r)
{
    struct uva_error error = {0};
    int code;

    r->lane.opened = true;
    if (!lane_enter(r))
        return;
    r->lane.device_type = r->feed.device_type;
    code = r->ops->open(r, &r->lane.told, &error);
    if (!lane_is_welcome(r))
        return;
    if (code == 0)
        code = uva__structs_check_schema(&r->lane.told, &error);
    if (code == 0)
        code = lane_copy_schema(r, &error);
    if (code != 0) {
        lane_finish(r, code, &error);
        return;
    }
    uva__word_or(&r->news, NEWS_SCHEMA);
    lane_announce(r);
}

/* ---- one batch ----------------------------------------------------------- */

static void read_discard(struct uva__read *read)
{
    uva_array_release(read->array);
    if (read->lazy.item != NULL)
        (void)read->lazy.extract(read->lazy.ctx, read->lazy.item, NULL, NULL);
}

static int lane_measure(struct uva__reader *r, struct uva__task *task,
                        struct uva_error *error)
{
    struct uva_error detail;

    if (uva__shape_measure(&r->lane.shape, &task->array.array, &task->bytes))
        return 0;
    if (uva__layout_measure(&r->lane.schema, &task->array, &task->bytes,
                            &detail) != EINVAL)
        return 0; /* the size of an unknown format is not known */
    return uva_error_set(
        error, EPROTO, "batch %llu does not fit the schema: %s",
        (unsigned long long)uva__word_peek(&r->tail), detail.message);
}

static int lane_fill_lazy(struct uva__reader *r, struct uva__task *task,
                          const struct uva__read *read)
{
    size_t size;

    if (uva_metadata_size(read->metadata, &size) != 0)
        uva__hub_breach(r->feed.hub, NULL, "MD-05",
                        "a batch came with malformed metadata: left out");
    return uva__task_fill_lazy(task, &r->feed.hub->allocator, &read->lazy,
                               read->metadata);
}

/* Completes the slot and gives it to the loop; discards the batch if that
 * fails. */
static int lane_fill(struct uva__reader *r, struct uva__task *task,
                     struct uva__read *read, struct uva_error *error)
{
    const uint64_t tail = uva__word_peek(&r->tail);
    const int code = read->lazy.item != NULL ? lane_fill_lazy(r, task, read)
                                             : lane_measure(r, task, error);

    if (code != 0) {
        read_discard(read);
        return code;
    }
    task->ordinal = (int64_t)tail;
    r->lane.bytes += (uint64_t)task->bytes;
    r->lane.credits--;
    r->lane.count++;
    uva__word_store(&r->tail, tail + 1);
    return 0;
}

/* Reads into the next slot, which the loop takes back only when it is filled or
 * the source is closed. False if the source has ended, or was cancelled. */
static bool lane_read(struct uva__reader *r)
{
    struct uva__task *task = r->ring[uva__word_peek(&r->tail) & r->ring_mask];
    struct uva__read read = {.array = &task->array};
    struct uva_error error;
    int code;

    if (!lane_enter(r))
        return false;
    uva__error_begin(&error);
    uva_array_clear(&task->array); /* */
    code = r->ops->next(r, &read, &error);
    if (!lane_is_welcome(r)) {
        if (code == 0)
            read_discard(&read);
        return false;
    }
    if (code == 0 && read.array->array.release == NULL &&
        read.lazy.item == NULL) {
        lane_finish(r, 0, NULL);
        return false;
    }
    if (code == 0)
        code = lane_fill(r, task, &read, &error);
    if (code != 0)
        lane_finish(r, code, &error);
    else
        lane_announce(r); /* before the next call, which may wait */
    return code == 0;
}

/* ---- pace ---------------------------------------------------------------- */

static bool lane_is_full(const struct uva__reader *r)
{
    return r->lane.bytes - uva__word_load(&r->eaten) >=
           (uint64_t)r->window.bytes;
}

static bool lane_must_yield(struct uva__reader *r)
{
    if (r->quick || !uva__lane_is_wanted(&r->feed.hub->jobs, UVA_LANE_BLOCKING))
        return false;
    return r->lane.count >= YIELD_BATCHES ||
           uva__clock_ns() - r->lane.since_ns > YIELD_NS;
}

/* Gives up RUNNING while the window is full of bytes, and wakes the loop, which
 * ends the pause when bytes were consumed. False if it was cancelled. */
static bool lane_pause(struct uva__reader *r)
{
    bool paused;

    uva__reader_acquire(r); /* without RUNNING it may be freed */
    paused = uva__lane_word_pause(&r->lane_word);
    if (paused)
        lane_announce(r);
    uva__reader_release(r);
    return paused;
}

/* Reads as long as it can; returns why it stopped. */
static enum lane_stop lane_read_on(struct uva__reader *r)
{
    while (!r->lane.ended && r->lane.credits > 0) {
        if (lane_is_full(r))
            return STOP_FULL;
        if (lane_must_yield(r))
            return STOP_WANTED;
        if (!lane_read(r))
            return STOP_OVER;
    }
    return r->lane.ended ? STOP_OVER : STOP_DRY;
}

static enum lane_end lane_work(struct uva__reader *r)
{
    enum lane_stop why;
    uint64_t credits;

    if (uva__word_load(&r->lane_word) & LANE_CANCEL)
        return LANE_TO_HOME;
    if (!r->lane.opened)
        lane_open(r);
    for (;;) {
        why = lane_read_on(r);
        lane_leave(r);
        if (why == STOP_FULL)
            return lane_pause(r) ? LANE_IDLE : LANE_TO_HOME;
        if (why != STOP_DRY)
            return why == STOP_WANTED ? LANE_AGAIN : LANE_TO_HOME;
        switch (uva__lane_word_refill(&r->lane_word, &credits)) {
        case UVA__LANE_WORD_STOP:
            return LANE_TO_HOME;
        case UVA__LANE_WORD_IDLE:
            return LANE_IDLE;
        case UVA__LANE_WORD_GO:
            r->lane.credits = credits;
        }
    }
}

/* ---- closing ------------------------------------------------------------- */

static void lane_discard(struct uva__reader *r)
{
    uint64_t tail = uva__word_peek(&r->tail), i = uva__word_load(&r->kept);
    struct uva__task *task;
    struct uva__lazy lazy;

    for (; i < tail; i++) {
        task = r->ring[i & r->ring_mask];
        lazy = task->lazy;
        if (task->is_lazy)
            (void)lazy.extract(lazy.ctx, lazy.item, NULL, NULL);
        else
            uva_array_release(&task->array);
        uva__task_clear(task, &r->feed.hub->allocator);
    }
}

/* Closes the source. After a cancel, slots that were filled and not taken are
 * discarded here; without one they are the loop's. */
static void lane_go_home(struct uva__reader *r)
{
    r->ops->close(r);
    uva__word_or(&r->news, NEWS_END);
    if (!uva__lane_word_go_home(&r->lane_word)) {
        lane_discard(r);
        uva__lane_word_is_home(&r->lane_word);
    }
    uva__hub_post(r->feed.hub, &r->node);
    uva__reader_release(r);
}

void uva__lane_side_run(struct uva_job *job)
{
    struct uva__reader *r = uva__container_of(job, struct uva__reader, job);
    struct uva__hub *hub = r->feed.hub;

    r->lane.count = 0;
    r->lane.since_ns = uva__clock_ns();
    switch (lane_work(r)) {
    case LANE_AGAIN:
        uva__lane_submit(&hub->jobs, UVA_LANE_BLOCKING, &r->job);
        return;
    case LANE_TO_HOME:
        lane_go_home(r);
        break;
    case LANE_IDLE:
        break;
    }
    uva__hub_job_end(hub);
}

/* The thread that has set RUNNING starts the worker. */
void uva__lane_side_set_off(struct uva__reader *r)
{
    if (!r->quick && uva__hub_job_begin(r->feed.hub))
        uva__lane_submit(&r->feed.hub->jobs, UVA_LANE_BLOCKING, &r->job);
    else if (lane_work(r) == LANE_TO_HOME)
        lane_go_home(r);
}

/* ---- interrupting ------------------------------------------------------- */

/* Interrupts repeatedly, with growing pauses: drivers forget an interrupt that
 * came just before the call. */
void uva__lane_side_interrupt(struct uva_job *job)
{
    struct uva__reader *r = uva__container_of(job, struct uva__reader, breaker);
    struct uva__hub *hub = r->feed.hub;
    int64_t pause_ms = BREAK_MS;

    while (uva__phase_interrupt_begin(&r->phase)) {
        r->ops->interrupt(r);
        uva__phase_interrupt_end(&r->phase);
        uva__phase_await(&r->phase, pause_ms);
        pause_ms = pause_ms * 2 < BREAK_MAX_MS ? pause_ms * 2 : BREAK_MAX_MS;
    }
    uva__reader_release(r);
    uva__hub_job_end(hub);
}

/* The worker checks the mark before and after each call. */
bool uva__lane_side_break(struct uva__reader *r)
{
    struct uva__hub *hub = r->feed.hub;

    uva__word_add(&hub->counts.calls_stuck, 1); /* before the worker can undo
                                                   it */
    if (!uva__phase_cancel(&r->phase)) {
        uva__word_sub(&hub->counts.calls_stuck, 1);
        return false;
    }
    if (!r->can_interrupt || !uva__hub_job_begin(hub))
        return true;
    uva__reader_acquire(r);
    uva__guest_run(&hub->jobs, &r->breaker);
    return true;
}
