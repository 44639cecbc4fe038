/* SPDX-License-Identifier: Apache-2.0 */
/* The reading thread's half of a ring of tasks.
 *
 * Happy path:  a batch is wanted -> (waits) -> a task is taken, more are
 *              requested when few are left, the task is extracted -> end.
 *
 * What can fail:
 * - the stream: reported behind the tasks before that, and then by every call;
 * - an extraction: the stream's own report is waited for, since each extraction
 *   of ours that fails is followed by an on_error or, late, by a release.
 *
 * On cancel and close: the loop drops the tasks in the ring, one by one, while
 *              the reader may take them: each of them goes to one of the two.
 *
 * A reader does not spin before it sleeps: it cannot know whether the loop is
 * on another CPU, and if it is not, spinning costs ten times what it can save.
 *
 * Clauses: G-66, G-67. */
#include "sink/task_ring_reader.h"

#include <errno.h>
#include <string.h>

#include "uvarrow/arrow.h"

/* Wakes the loop for what the reader has noted. */
static void reader_wake_loop(struct uva__task_ring *r)
{
    uva__rt_wake(r->stream->rt, &r->stream->wakeup);
}

/* ---- waiting ------------------------------------------------------------- */

static int reader_report(struct uva__task_ring *r, int code, const char *text)
{
    r->reader.text = text;
    return code;
}

static int reader_check_alive(struct uva__task_ring *r)
{
    return uva__rt_is_alive(r->stream->rt)
               ? 0
               : reader_report(
                     r, EPERM,
                     "a forked child cannot read its parent's streams");
}

/* Once the runtime has closed, no wake-up can come. */
static int reader_check_thread(struct uva__task_ring *r)
{
    const struct uva__rt *rt = r->stream->rt;

    if (!uva__rt_must_not_wait(rt) || uva__rt_is_closed(rt))
        return 0;
    return reader_report(
        r, EDEADLK,
        "to_blocking: this would wait on a thread that others "
        "wait for: that of a loop, or a compute worker; read the "
        "stream on another one");
}

/* Reads `events` before `tail`: so with the end, all tasks before it are seen.
 * `tail` is read only when all that it counted before are taken: so the loop
 * keeps its cache line while the reader takes those. */
static uint64_t reader_poll(struct uva__task_ring *r)
{
    const uint64_t events = uva__atomic64_load(&r->events);

    if (r->reader.taken >= r->reader.tail)
        r->reader.tail = uva__atomic64_load(&r->tail);
    return r->reader.taken < r->reader.tail ? events | UVA__TASK_RING_TASK
                                            : events;
}

/* Wakes the loop when all tasks are taken, if it has asked for that: it resumes
 * a producer that it has paused, and accounts for the ring. */
static void reader_notify_drained(struct uva__task_ring *r, uint64_t events)
{
    if (!(events & UVA__TASK_RING_TASK) &&
        uva__atomic64_exchange(&r->resume_wanted, 0) != 0)
        reader_wake_loop(r);
}

/* Waits for one of the bits in `wanted`; returns all bits that are set. */
static uint64_t reader_await(struct uva__task_ring *r, uint64_t wanted)
{
    uint64_t events = reader_poll(r);
    uint32_t seen;

    if (events & wanted)
        return events;
    uva__lane_wait_begin();
    for (;;) {
        seen = uva__parker_prepare(&r->parker);
        events = reader_poll(r);
        if (events & wanted)
            break;
        reader_notify_drained(r, events);
        uva__parker_park(&r->parker, seen);
    }
    uva__parker_finish(&r->parker);
    uva__lane_wait_end();
    return events;
}

/* ---- taking -------------------------------------------------------------- */

/* Has more batches requested, as few of those requested are outstanding. */
static void reader_refill(struct uva__task_ring *r)
{
    const uint64_t left = r->reader.requested - r->reader.taken;
    const uint64_t room = (uint64_t)r->window.batches - left;

    r->reader.requested += room;
    r->reader.refill_at = r->reader.requested - (uint64_t)r->window.refill;
    uva__atomic64_add(&r->wanted, room);
    reader_wake_loop(r);
}

/* Moves the head behind the next task; false if the loop has taken that
 * meanwhile, as it takes all after a cancel. In a direct ring it is taken by
 * its extraction, which fails if the loop has dropped it. */
static bool reader_advance(struct uva__task_ring *r)
{
    if (r->direct)
        uva__atomic64_store(&r->head, r->reader.taken + 1);
    else if (!uva__atomic64_cas(&r->head, &r->reader.taken,
                                r->reader.taken + 1))
        return false;
    r->reader.taken++;
    return true;
}

static bool reader_take(struct uva__task_ring *r, uint64_t events,
                        struct ArrowAsyncTask *out)
{
    const struct uva__task_ring_slot *slot =
        &r->ring[r->reader.taken & r->ring_mask];
    const uint64_t bytes = (uint64_t)slot->bytes;

    out->extract_data = slot->task.extract_data;
    out->private_data = slot->task.private_data;
    if (!reader_advance(r))
        return false;
    uva__atomic64_store(&r->consumed, uva__atomic64_peek(&r->consumed) + bytes);
    if (r->reader.taken >= r->reader.refill_at &&
        !(events & UVA__TASK_RING_END))
        reader_refill(r);
    return true;
}

static void reader_fail(struct uva__task_ring *r)
{
    const char *name = uva__stream_name(r->stream);

    r->reader.code = r->failure.code;
    if (name != NULL)
        uva__failure_format(&r->reader.named, &r->stream->rt->allocator,
                            r->failure.code, "%s: %s", name,
                            uva__failure_message(&r->failure));
}

static const char *reader_message(const struct uva__task_ring *r)
{
    return uva__failure_message(r->reader.named.code != 0 ? &r->reader.named
                                                          : &r->failure);
}

/* Stores how the stream ended, which all later calls return, and lets
 * the stream be done. Tasks that are still in the ring are not used: the stream
 * failed at an earlier task. */
static int reader_conclude(struct uva__task_ring *r, uint64_t events)
{
    struct ArrowAsyncTask task;

    if (!r->reader.ended) {
        r->reader.ended = true;
        if (events & UVA__TASK_RING_BAD)
            reader_fail(r);
        while (reader_poll(r) & UVA__TASK_RING_TASK)
            if (reader_take(r, UVA__TASK_RING_END, &task))
                uva_task_discard(&task);
        uva__atomic64_exchange(&r->finished, 1);
        reader_wake_loop(r);
    }
    return reader_report(r, r->reader.code,
                         r->reader.code != 0 ? reader_message(r) : NULL);
}

/* Only the stream has, or will have, more of the error than its code. */
static int reader_extraction_failed(struct uva__task_ring *r, int code)
{
    const uint64_t events =
        reader_await(r, UVA__TASK_RING_BAD | UVA__TASK_RING_RELEASED);

    if (events & UVA__TASK_RING_BAD)
        return reader_conclude(r, events);
    return uva__task_ring_reader_refuse(r, code, strerror(code));
}

static int reader_extract(struct uva__task_ring *r,
                          struct ArrowDeviceArray *out)
{
    struct ArrowAsyncTask task;
    uint64_t events;
    int code;

    do {
        events = reader_await(r, UVA__TASK_RING_TASK | UVA__TASK_RING_END |
                                     UVA__TASK_RING_BAD);
        if (!(events & UVA__TASK_RING_TASK) ||
            (events & UVA__TASK_RING_CANCELLED))
            return reader_conclude(r, events);
    } while (!reader_take(r, events, &task));
    code = uva_task_extract(&task, out);
    return code == 0 ? reader_report(r, 0, NULL)
                     : reader_extraction_failed(r, code);
}

/* Clears `out`, if there is no batch in it. */
static int reader_give(const struct uva__task_ring *r, int code,
                       struct ArrowDeviceArray *out)
{
    if (out->array.release != NULL)
        return code;
    memset(out, 0, sizeof(*out));
    out->device_type = r->device_type;
    return code;
}

/* The way of a batch in general. Not inline, nor is the next one: the way of
 * most batches would have to save registers for what they call. */
__attribute__((noinline)) static int reader_next(struct uva__task_ring *r,
                                                 struct ArrowDeviceArray *out)
{
    int code = reader_check_alive(r);

    out->array.release = NULL;
    if (code == 0)
        code = reader_check_thread(r);
    if (code == 0)
        code = r->reader.ended ? reader_conclude(r, 0) : reader_extract(r, out);
    return reader_give(r, code, out);
}

/* Extracts a task that has flowed, but is not to be had at once. */
__attribute__((noinline)) static int
reader_next_late(struct uva__task_ring *r, struct ArrowAsyncTask task,
                 struct ArrowDeviceArray *out)
{
    int code = uva_task_extract(&task, out);

    if (code != 0)
        code = reader_extraction_failed(r, code);
    return reader_give(r, code, out);
}

/* Whether the next task is there, with its data, and nothing else is due: the
 * reader has seen it in the ring, and need neither wait, nor request more, nor
 * report anything. Takes it then. */
static inline bool reader_flows(struct uva__task_ring *r,
                                struct ArrowAsyncTask *out)
{
    const uint64_t taken = r->reader.taken;
    const struct uva__task_ring_slot *slot = &r->ring[taken & r->ring_mask];

    if (taken >= r->reader.tail || taken + 1 >= r->reader.refill_at ||
        r->lazy || !r->direct ||
        uva__atomic64_load(&r->events) != UVA__TASK_RING_SCHEMA)
        return false;
    out->extract_data = uva__task_extract;
    out->private_data = slot->task.private_data;
    uva__atomic64_store(&r->consumed, uva__atomic64_peek(&r->consumed) +
                                          (uint64_t)slot->bytes);
    uva__atomic64_store(&r->head, taken + 1);
    r->reader.taken = taken + 1;
    return true;
}

int uva__task_ring_reader_next(struct uva__task_ring *r,
                               struct ArrowDeviceArray *out)
{
    const struct uva__rt *rt = r->stream->rt;
    struct ArrowAsyncTask task;

    if (!uva__rt_is_alive(rt) || uva__rt_must_not_wait(rt) ||
        !reader_flows(r, &task))
        return reader_next(r, out);
    r->reader.text = NULL;
    return uva__task_extract_plain(&task, out) ? 0
                                               : reader_next_late(r, task, out);
}

int uva__task_ring_reader_schema(struct uva__task_ring *r,
                                 struct ArrowSchema *out)
{
    const uint64_t wanted = UVA__TASK_RING_SCHEMA | UVA__TASK_RING_BAD;
    int code = reader_check_alive(r);
    uint64_t events;

    memset(out, 0, sizeof(*out));
    if (code != 0)
        return code;
    events = reader_poll(r);
    if (!(events & wanted)) {
        code = reader_check_thread(r);
        if (code != 0)
            return code;
        events = reader_await(r, wanted);
    }
    if (!(events & UVA__TASK_RING_SCHEMA))
        return reader_conclude(r, events);
    code = uva_schema_copy(r->stream->loop.info.schema, out);
    return reader_report(r, code, code == 0 ? NULL : strerror(code));
}

int uva__task_ring_reader_refuse(struct uva__task_ring *r, int code,
                                 const char *text)
{
    uva_stream_cancel(r->stream, code, text);
    return reader_conclude(r, reader_await(r, UVA__TASK_RING_BAD));
}

const char *uva__task_ring_reader_text(const struct uva__task_ring *r)
{
    return r->reader.text;
}
