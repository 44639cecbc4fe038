/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  a batch is wanted -> (waits) -> a task is taken, more are
 * requested when few are left, the task is extracted -> end.
 *
 * What can fail:
 * - the stream: reported behind the tasks before that, and then by every call;
 * - an extraction: the stream's own report is waited for, since each extraction
 * of ours that fails is followed by an on_error or, late, by a release.
 *
 * On cancel and close: the loop takes the tasks in the ring, one by one, while
 * the reader may do so too: each of them goes to one of the two.
 *
 * A reader does not spin before it sleeps: it cannot know whether the loop is
 * on another CPU, and if it is not, spinning costs ten times what it can save.
 */
#include "sink/task_ring_reader.h"

#include <errno.h>
#include <string.h>

#include "uvarrow/arrow.h"

/* Wakes the loop for what the reader has noted. */
static void user_post(struct uva__task_ring *o)
{
    uva__rt_wake(o->stream->rt, &o->stream->wakeup);
}

/* ---- waiting ------------------------------------------------------------- */

static int user_report(struct uva__task_ring *o, int code, const char *text)
{
    o->reader.text = text;
    return code;
}

static int user_check_alive(struct uva__task_ring *o)
{
    return uva__rt_is_alive(o->stream->rt)
               ? 0
               : user_report(o, EPERM,
                             "a forked child cannot read its parent's streams");
}

/* Once the runtime has closed, no wake-up can come. */
static int user_check_thread(struct uva__task_ring *o)
{
    const struct uva__rt *rt = o->stream->rt;

    if (!uva__rt_must_not_wait(rt) || uva__rt_is_closed(rt))
        return 0;
    return user_report(
        o, EDEADLK,
        "to_blocking: this would wait on a thread that others "
        "wait for: that of a loop, or a compute worker; read the "
        "stream on another one");
}

/* Reads `news` before `tail`: so with the end, all tasks before it are seen. A
 * cancel sets its bit before it empties the ring: so an empty ring is not taken
 * for the end. */
static uint64_t user_poll(const struct uva__task_ring *o)
{
    const uint64_t events = uva__atomic64_load(&o->events);

    return uva__atomic64_load(&o->tail) != uva__atomic64_load(&o->head)
               ? events | UVA__TASK_RING_TASK
               : events | (uva__atomic64_load(&o->events) &
                           UVA__TASK_RING_CANCELLED);
}

/* The ring has drained below its byte limit: resumes the producer. */
static void user_notify_hunger(struct uva__task_ring *o, uint64_t events)
{
    if (!(events & UVA__TASK_RING_TASK) &&
        uva__atomic64_exchange(&o->held, 0) != 0)
        user_post(o);
}

/* Waits for one of the bits in `wanted`; returns all bits that are set. */
static uint64_t user_await(struct uva__task_ring *o, uint64_t wanted)
{
    uint64_t events = user_poll(o);
    uint32_t seen;

    if (events & wanted)
        return events;
    uva__lane_wait_begin();
    for (;;) {
        seen = uva__parker_prepare(&o->parker);
        events = user_poll(o);
        if (events & wanted)
            break;
        user_notify_hunger(o, events);
        uva__parker_park(&o->parker, seen);
    }
    uva__parker_finish(&o->parker);
    uva__lane_wait_end();
    return events;
}

/* ---- taking -------------------------------------------------------------- */

/* Has more batches requested once few of those requested are outstanding. */
static void user_refill(struct uva__task_ring *o, uint64_t taken)
{
    const uint64_t left = o->reader.asked - taken;
    const uint64_t room = (uint64_t)o->window.batches - left;

    if (left > (uint64_t)o->window.refill)
        return;
    o->reader.asked += room;
    uva__atomic64_add(&o->wanted, room);
    user_post(o);
}

/* Takes the task at the head; false if the loop has taken it meanwhile, or is
 * about to take all. */
static bool user_take(struct uva__task_ring *o, uint64_t events,
                      struct ArrowAsyncTask *out)
{
    uint64_t head = uva__atomic64_load(&o->head);
    struct uva__task_ring_slot place;

    if (head == uva__atomic64_load(&o->tail))
        return false;
    place = o->ring[head & o->ring_mask];
    *out = place.task;
    if (!uva__atomic64_cas(&o->head, &head, head + 1))
        return false;
    uva__atomic64_store(&o->consumed, uva__atomic64_peek(&o->consumed) +
                                          (uint64_t)place.bytes);
    if (uva__atomic64_load(&o->events) & UVA__TASK_RING_CANCELLED) {
        uva_task_discard(out); /* tasks before it may have been discarded */
        return false;
    }
    if (!(events & UVA__TASK_RING_END))
        user_refill(o, head + 1);
    return true;
}

/* Stores how the stream ended, which all later calls return (G-66), and lets
 * the stream be done. Tasks that are still in the ring are not used: the stream
 * failed at an earlier task. */
static int user_conclude(struct uva__task_ring *o, uint64_t events)
{
    struct ArrowAsyncTask task;

    if (!o->reader.ended) {
        o->reader.ended = true;
        o->reader.code = events & UVA__TASK_RING_BAD ? o->failure.code : 0;
        while (user_poll(o) & UVA__TASK_RING_TASK)
            if (user_take(o, UVA__TASK_RING_END, &task))
                uva_task_discard(&task);
        uva__atomic64_exchange(&o->finished, 1);
        user_post(o);
    }
    return user_report(o, o->reader.code,
                       o->reader.code != 0 ? uva__failure_message(&o->failure)
                                           : NULL);
}

/* Only the stream has, or will have, more of the error than its code. */
static int user_extraction_failed(struct uva__task_ring *o, int code)
{
    const uint64_t events =
        user_await(o, UVA__TASK_RING_BAD | UVA__TASK_RING_RELEASED);

    if (events & UVA__TASK_RING_BAD)
        return user_conclude(o, events);
    return uva__task_ring_reader_refuse(o, code, strerror(code));
}

static int user_extract(struct uva__task_ring *o, struct ArrowDeviceArray *out)
{
    struct ArrowAsyncTask task;
    uint64_t events;
    int code;

    do {
        events = user_await(o, UVA__TASK_RING_TASK | UVA__TASK_RING_END |
                                   UVA__TASK_RING_BAD);
        if (!(events & UVA__TASK_RING_TASK))
            return user_conclude(o, events);
    } while (!user_take(o, events, &task));
    code = uva_task_extract(&task, out);
    return code == 0 ? user_report(o, 0, NULL)
                     : user_extraction_failed(o, code);
}

int uva__task_ring_reader_next(struct uva__task_ring *o,
                               struct ArrowDeviceArray *out)
{
    int code = user_check_alive(o);

    out->array.release = NULL;
    if (code == 0)
        code = user_check_thread(o);
    if (code == 0)
        code = o->reader.ended ? user_conclude(o, 0) : user_extract(o, out);
    if (out->array.release != NULL)
        return code;
    memset(out, 0, sizeof(*out)); /* G-67 */
    out->device_type = o->device_type;
    return code;
}

int uva__task_ring_reader_schema(struct uva__task_ring *o,
                                 struct ArrowSchema *out)
{
    const uint64_t wanted = UVA__TASK_RING_SCHEMA | UVA__TASK_RING_BAD;
    int code = user_check_alive(o);
    uint64_t events;

    memset(out, 0, sizeof(*out));
    if (code != 0)
        return code;
    events = user_poll(o);
    if (!(events & wanted)) {
        code = user_check_thread(o);
        if (code != 0)
            return code;
        events = user_await(o, wanted);
    }
    if (!(events & UVA__TASK_RING_SCHEMA))
        return user_conclude(o, events);
    code = uva_schema_copy(o->stream->loop.info.schema, out);
    return user_report(o, code, code == 0 ? NULL : strerror(code));
}

int uva__task_ring_reader_refuse(struct uva__task_ring *o, int code,
                                 const char *text)
{
    uva_stream_cancel(o->stream, code, text);
    return user_conclude(o, user_await(o, UVA__TASK_RING_BAD));
}

const char *uva__task_ring_reader_text(const struct uva__task_ring *o)
{
    return o->reader.text;
}
