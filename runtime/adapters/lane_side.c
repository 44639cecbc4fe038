/* SPDX-License-Identifier: Apache-2.0 */
/* The lane's side of a reader: calls into the source, fills slots, keeps the
 * pace, closes the source when it goes home. And the guest's: interrupting a
 * call that waits. The loop's side, and the whole story, is adapters/reader.c.
 */
#include "adapters/lane_side.h"

#include <errno.h>
#include <string.h>

#include "core/layout.h"
#include "core/structs.h"
#include "uv/turn.h"
#include "uvarrow/arrow.h"

enum {
    YIELD_BATCHES = 64,
    YIELD_NS = 1000000,
    BREAK_MS = 100,
    BREAK_MAX_MS = 5000
};

/* How a piece of the lane's work ends. */
enum lane_end {
    LANE_IDLE,   /* RUNNING was given up: the reader is not ours any more */
    LANE_AGAIN,  /* others wait for the thread: go on later */
    LANE_TO_HOME /* the source is to be closed */
};

/* ---- calls into the source ---------------------------------------------- */

/* False when a cancel was first: then the source is not to be called. */
static bool lane_enter(struct uva__reader *r)
{
    return r->quick || uva__phase_enter(&r->phase);
}

/* Waits for an interrupt that is running, so that it never overlaps what comes
 * next. False if there was a cancel meanwhile. */
static bool lane_leave(struct uva__reader *r)
{
    uint64_t phase;

    if (r->quick)
        return true;
    phase = uva__phase_leave(&r->phase);
    if (!(phase & PHASE_CANCEL))
        return true;
    if (phase & PHASE_STUCK)
        uva__word_sub(&r->feed.hub->counts.calls_stuck, 1);
    uva__phase_tell(&r->phase);
    return false;
}

static void lane_announce(struct uva__reader *r)
{
    if (!r->quick)
        uva__hub_post(r->feed.hub, &r->node);
}

/* Nothing more will be read: for a reason, or because that was all. The loop is
 * told once the source is closed. */
static void lane_finish(struct uva__reader *r, int code,
                        const struct uva_error *error)
{
    if (code != 0)
        uva__failure_set(&r->lane.failure, &r->feed.hub->allocator, code, error,
                         NULL);
    r->lane.ended = true;
}

/* Batches are checked against a copy, as the schema itself goes on. */
static int lane_copy_schema(struct uva__reader *r, struct uva_error *error)
{
    int code = uva__structs_copy_schema(&r->feed.hub->allocator, &r->lane.told,
                                        &r->lane.schema);

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
    if (!lane_leave(r))
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

static void read_discard(struct uva__read *out)
{
    uva_array_release(&out->array);
    if (out->lazy.item != NULL)
        (void)out->lazy.extract(out->lazy.ctx, out->lazy.item, NULL, NULL);
}

static int lane_measure(struct uva__reader *r, struct uva__read *out,
                        int64_t *bytes, struct uva_error *error)
{
    struct uva_error detail = {0};
    int code =
        uva__layout_measure(&r->lane.schema, &out->array, bytes, &detail);

    if (code != EINVAL)
        return 0; /* of a format unknown here the size is not known */
    return uva_error_set(
        error, EPROTO, "batch %llu does not fit the schema: %s",
        (unsigned long long)uva__word_peek(&r->tail), detail.message);
}

/* Puts what was read into the next slot; takes it, also when that fails. */
static int lane_fill(struct uva__reader *r, struct uva__read *out,
                     struct uva_error *error)
{
    const struct uva_allocator *allocator = &r->feed.hub->allocator;
    uint64_t tail = uva__word_peek(&r->tail);
    struct uva__task *task = r->ring[tail & r->ring_mask];
    int64_t bytes = 0;
    size_t size;
    int code = 0;

    if (uva_metadata_size(out->metadata, &size) != 0)
        uva__hub_breach(r->feed.hub, NULL, "MD-05",
                        "a batch came with malformed metadata: left out");
    if (out->lazy.item != NULL)
        code = uva__task_fill_lazy(task, allocator, &out->lazy, out->metadata);
    else
        code = lane_measure(r, out, &bytes, error);
    if (code == 0 && out->lazy.item == NULL)
        code = uva__task_fill(task, allocator, &out->array, out->metadata);
    if (code != 0) {
        read_discard(out);
        return code;
    }
    task->bytes = bytes;
    task->ordinal = (int64_t)tail;
    r->lane.bytes += (uint64_t)bytes;
    r->lane.credits--;
    r->lane.count++;
    uva__word_store(&r->tail, tail + 1);
    return 0;
}

/* False when there is nothing more to read, or nobody wants it. */
static bool lane_read(struct uva__reader *r)
{
    struct uva__read out;
    struct uva_error error;
    int code;

    memset(&out, 0, sizeof(out));
    error.code = 0;
    error.message[0] = '\0';
    error.vendor = NULL;
    error.vendor_code = 0;
    if (!lane_enter(r))
        return false;
    code = r->ops->next(r, &out, &error);
    if (!lane_leave(r)) {
        if (code == 0)
            read_discard(&out);
        return false;
    }
    if (code == 0 && out.array.array.release == NULL && out.lazy.item == NULL) {
        lane_finish(r, 0, NULL);
        return false;
    }
    if (code == 0)
        code = lane_fill(r, &out, &error);
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
           uva__turn_now() - r->lane.since_ns > YIELD_NS;
}

/* Gives up RUNNING while the window is full of bytes; the loop is told, and
 * looks again when it has eaten. False if there was a cancel. */
static bool lane_pause(struct uva__reader *r)
{
    bool paused;

    uva__reader_acquire(r); /* without RUNNING it may be gone */
    paused = uva__lane_word_pause(&r->lane_word);
    if (paused)
        lane_announce(r);
    uva__reader_release(r);
    return paused;
}

static enum lane_end lane_work(struct uva__reader *r)
{
    enum uva__lane_word_next next;
    uint64_t credits;

    if (uva__word_load(&r->lane_word) & LANE_CANCEL)
        return LANE_TO_HOME;
    if (!r->lane.opened)
        lane_open(r);
    for (;;) {
        while (!r->lane.ended && r->lane.credits > 0) {
            if (lane_is_full(r))
                return lane_pause(r) ? LANE_IDLE : LANE_TO_HOME;
            if (lane_must_yield(r))
                return LANE_AGAIN;
            if (!lane_read(r))
                return LANE_TO_HOME;
        }
        if (r->lane.ended)
            return LANE_TO_HOME;
        next = uva__lane_word_refill(&r->lane_word, &credits);
        if (next == UVA__LANE_WORD_STOP)
            return LANE_TO_HOME;
        if (next == UVA__LANE_WORD_IDLE)
            return LANE_IDLE;
        r->lane.credits = credits;
    }
}

/* ---- home ---------------------------------------------------------------- */

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

/* Closes the source. After a cancel what was filled and not taken is ours to
 * discard; without one it is still the loop's. */
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
    r->lane.since_ns = uva__turn_now();
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

/* Whoever turned RUNNING on sets the lane off. */
void uva__lane_side_set_off(struct uva__reader *r)
{
    if (!r->quick && uva__hub_job_begin(r->feed.hub))
        uva__lane_submit(&r->feed.hub->jobs, UVA_LANE_BLOCKING, &r->job);
    else if (lane_work(r) == LANE_TO_HOME)
        lane_go_home(r);
}

/* ---- interrupting ------------------------------------------------------- */

/* Again and again, with growing pauses: drivers forget an interrupt that came
 * just before the call. */
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

/* Marks the cancel where the lane looks before and after each call. */
bool uva__lane_side_break(struct uva__reader *r)
{
    struct uva__hub *hub = r->feed.hub;

    uva__word_add(&hub->counts.calls_stuck, 1); /* before it can be undone */
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
