/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  on_schema: kept, a window requested -> (on_next_task: kept, the
 *              loop woken; request, when enough of the window was used)* ->
 *              on_next_task(NULL) -> release: tasks that were not extracted so
 *              far are extracted here.
 *
 * What can fail:
 * - the producer reports an error: it is reported behind the batches before it;
 * - the producer breaks a rule: it is counted, and the rules decide what to do;
 * - no memory: it is reported like an error, and the producer is cancelled.
 *
 * On cancel and close: what the producer still sends is discarded, here.
 *
 * No lock is held while the producer's code runs. A callback never returns an
 * error for a task, and requests once at most.
 *
 * Clauses: G-18, Q-15. */
#include "source/foreign_handler.h"

#include <errno.h>
#include <string.h>

#include "arrow/metadata.h"
#include "arrow/structs.h"
#include "arrow/vendor_error.h"
#include "base/error.h"
#include "base/memory.h"
#include "source/foreign_clauses.h"
#include "stream/handler_base.h"
#include "uvarrow/arrow.h"

enum { PRINTED_METADATA = 32 };

/* One call of a callback. */
struct call {
    struct uva__consumer_verdict verdict;
    int failure; /* the code with which it makes the stream fail; or 0 */
};

static void foreign_notify_call(struct uva__foreign *i, const struct call *call)
{
    const char *clause = call->verdict.clause;

    if (call->failure != 0)
        uva__foreign_fail_text(i, call->failure,
                               clause != NULL
                                   ? uva__foreign_clauses_text(clause)
                                   : uva_error_name(call->failure),
                               clause);
}

/* ---- a callback's begin and end ----------------------------------------- */

static struct uva__foreign *
foreign_at(const struct ArrowAsyncDeviceStreamHandler *self)
{
    return self->private_data;
}

static struct call
foreign_enter(const struct ArrowAsyncDeviceStreamHandler *self,
              struct uva__consumer_call what)
{
    struct uva__foreign *i = foreign_at(self);
    struct uva__consumer_state *state = &i->locked.state;
    const uint64_t thread = uva__thread_self();
    enum uva__consumer_end before;
    struct call call = {.failure = 0};
    bool in_cancel;

    uva__lock_take(&i->lock);
    i->locked.touched = true;
    what.in_request = i->locked.requesting == thread;
    in_cancel = i->locked.cancelling == thread;
    before = state->end;
    call.verdict = uva__consumer_state_enter(state, &what);
    if (before != UVA__CONSUMER_FAILED && state->end == UVA__CONSUMER_FAILED)
        call.failure = state->code;
    uva__lock_drop(&i->lock);
    uva__foreign_report_breach(i, call.verdict.clause);
    if (self != &i->handler)
        uva__foreign_report_breach(i, "AH-24");
    if (in_cancel && what.event != UVA__EVENT_ERROR)
        uva__foreign_report_breach(i, "AP-13");
    return call;
}

/* Queues a task that was kept. After a stop it discards the task, for which it
 * drops the lock. */
static void foreign_push_locked(struct uva__foreign *i,
                                struct uva__pending_task *pending_task)
{
    if (!i->locked.stopped) {
        uva__list_push(&i->locked.events.queue, &pending_task->link);
        i->locked.events.count++;
        return;
    }
    uva__consumer_state_note_settled(&i->locked.state, 0);
    uva__lock_drop(&i->lock);
    uva__pending_tasks_discard(&i->pending_tasks, pending_task);
    uva__foreign_extracted(i);
    uva__lock_take(&i->lock);
}

/* Returns whether this callback drops the producer's reference: the last one
 * does, as release may come inside another callback. In `home`: whether the
 * producer is done. */
static bool call_end_locked(struct uva__foreign *i, bool *closed)
{
    bool last;

    uva__consumer_state_leave(&i->locked.state);
    last = i->locked.state.released && i->locked.state.calls == 0 &&
           !i->locked.peer_released;
    i->locked.peer_released = i->locked.peer_released || last;
    *closed = uva__foreign_is_closed_locked(i);
    return last;
}

/* Queues `parcel` (or NULL) and requests, if more is wanted. The loop is woken
 * before the request, which may take long; the caller wakes it again for demand
 * that arose meanwhile. Returns whether there was a request. */
static bool foreign_go_on(struct uva__foreign *i,
                          struct uva__pending_task *pending_task)
{
    struct ArrowAsyncProducer *producer;
    int64_t n;

    uva__lock_take(&i->lock);
    if (pending_task != NULL)
        foreign_push_locked(i, pending_task);
    n = uva__foreign_request_begin_locked(i);
    producer = i->locked.producer;
    uva__lock_drop(&i->lock);
    uva__rt_wake(i->source.rt, &i->wakeup);
    if (n > 0)
        producer->request(producer, n);
    return n > 0;
}

/* The end of every callback. The caller must not use `i` afterwards. */
static void foreign_leave(struct uva__foreign *i,
                          struct uva__pending_task *pending_task)
{
    const bool requested = foreign_go_on(i, pending_task);
    bool last, closed;

    if (requested)
        uva__foreign_acquire(i);
    uva__lock_take(&i->lock);
    if (requested)
        uva__foreign_request_end_locked(i);
    last = call_end_locked(i, &closed);
    uva__lock_drop(&i->lock);
    if (closed)
        uva__foreign_free_ctx_async(i);
    if (last)
        uva__foreign_release(i);
    if (!requested)
        return;
    uva__rt_wake(i->source.rt, &i->wakeup);
    uva__foreign_release(i);
}

/* ---- on_schema ---------------------------------------------------------- */

static const char *metadata_of(const struct uva__foreign *i,
                               const struct ArrowAsyncProducer *producer)
{
    const char *metadata;

    if (!i->options.printed_layout)
        return producer->additional_metadata;
    memcpy(&metadata, (const char *)producer + PRINTED_METADATA,
           sizeof(metadata));
    return metadata;
}

/* Gives schema, device type and metadata to the pending tasks and, in `news`,
 * to the loop. */
static int foreign_describe(struct uva__foreign *i,
                            const struct ArrowAsyncProducer *producer,
                            struct ArrowSchema *schema,
                            struct uva__foreign_events *events)
{
    const struct uva_allocator *allocator = &i->source.rt->allocator;
    struct ArrowSchema copy;
    int code = uva__metadata_copy(allocator, metadata_of(i, producer),
                                  &events->metadata);

    if (code == ENOMEM)
        return code;
    uva__foreign_report_breach(i, code != 0 ? "MD-05" : NULL);
    code = uva__structs_copy_schema(allocator, schema, &copy);
    if (code != 0)
        return code;
    events->device_type = producer->device_type;
    if (events->device_type == 0) {
        uva__foreign_report_breach(i, "AP-01");
        events->device_type = i->source.device_type;
    }
    uva__pending_tasks_set_schema(&i->pending_tasks, &copy,
                                  events->device_type);
    uva_schema_move(schema, &events->schema);
    return 0;
}

/* Makes the schema and the producer visible to the loop, unless the stream was
 * stopped meanwhile. */
static int foreign_publish(struct uva__foreign *i,
                           struct ArrowAsyncProducer *producer,
                           struct uva__foreign_events *events)
{
    struct uva__consumer_state *state = &i->locked.state;
    int code = 0;

    uva__lock_take(&i->lock);
    if (uva__consumer_state_must_cancel(state)) {
        code = state->code;
        uva__consumer_state_note_refusal(state, UVA__EVENT_SCHEMA, code);
    } else {
        uva_schema_move(&events->schema, &i->locked.events.schema);
        i->locked.events.device_type = events->device_type;
        uva__metadata_move(&events->metadata, &i->locked.events.metadata);
        i->locked.producer = producer;
    }
    uva__lock_drop(&i->lock);
    return code;
}

static void foreign_refuse(struct uva__foreign *i, int code)
{
    uva__lock_take(&i->lock);
    uva__consumer_state_note_fault(&i->locked.state, code);
    uva__consumer_state_note_refusal(&i->locked.state, UVA__EVENT_SCHEMA, code);
    uva__lock_drop(&i->lock);
    uva__foreign_fail_text(i, code, "on_schema: the schema cannot be copied",
                           NULL);
}

static int foreign_take_schema(struct uva__foreign *i,
                               struct ArrowAsyncProducer *producer,
                               struct ArrowSchema *schema)
{
    struct uva__foreign_events events = {.device_type = 0};
    int code = foreign_describe(i, producer, schema, &events);

    if (code != 0)
        foreign_refuse(i, code);
    else
        code = foreign_publish(i, producer, &events);
    uva_schema_release(&events.schema);
    uva__metadata_fini(&events.metadata, &i->source.rt->allocator, NULL);
    return code;
}

static int foreign_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                             struct ArrowSchema *schema)
{
    struct uva__foreign *i = foreign_at(self);
    struct uva__consumer_call what = {.event = UVA__EVENT_SCHEMA};
    struct call call;
    int code;

    if (uva__structs_check_schema(schema, NULL) != 0)
        what.clause = "AH-07";
    else if (self->producer == NULL)
        what.clause = "AH-03";
    what.code = what.clause != NULL ? EINVAL : 0;
    call = foreign_enter(self, what);
    foreign_notify_call(i, &call);
    code = call.verdict.code;
    if (call.verdict.action == UVA__ACTION_TAKE)
        code = foreign_take_schema(i, self->producer, schema);
    if (schema != NULL)
        uva_schema_release(schema); /* unless it was moved out (G-43) */
    foreign_leave(i, NULL);
    return code;
}

/* ---- on_next_task ------------------------------------------------------- */

static struct uva__pending_task *foreign_keep(struct uva__foreign *i,
                                              const struct ArrowAsyncTask *task,
                                              const char *metadata)
{
    struct uva__pending_task *pending_task;
    int code = uva__pending_tasks_add(&i->pending_tasks, task, metadata,
                                      &pending_task);

    if (code == 0)
        return pending_task;
    if (code != ENOMEM)
        code = EPROTO; /* two callbacks ran at the same time */
    uva__pending_tasks_spend(task);
    uva__lock_take(&i->lock);
    uva__consumer_state_note_settled(&i->locked.state, code);
    uva__lock_drop(&i->lock);
    uva__foreign_fail_text(i, code, "a batch could not be kept", NULL);
    return NULL;
}

static void foreign_on_end(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct uva__foreign *i = foreign_at(self);
    const struct call call = foreign_enter(
        self, (struct uva__consumer_call){.event = UVA__EVENT_END});

    uva__foreign_await_calls(i);
    foreign_notify_call(i, &call);
    foreign_leave(i, NULL);
}

static int foreign_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                                struct ArrowAsyncTask *task,
                                const char *metadata)
{
    struct uva__foreign *i = foreign_at(self);
    struct uva__consumer_call what = {.event = UVA__EVENT_TASK};
    struct uva__pending_task *pending_task = NULL;
    struct call call;

    if (task == NULL) {
        foreign_on_end(self);
        return 0;
    }
    if (task->extract_data == NULL) {
        what.code = EPROTO;
        what.clause = "AT-01";
    }
    call = foreign_enter(self, what);
    foreign_notify_call(i, &call);
    if (call.verdict.action == UVA__ACTION_TAKE)
        pending_task = foreign_keep(i, task, metadata);
    else if (call.verdict.action == UVA__ACTION_DISCARD)
        uva__pending_tasks_spend(task);
    foreign_leave(i, pending_task);
    return 0;
}

/* ---- on_error, release -------------------------------------------------- */

static void foreign_on_error(struct ArrowAsyncDeviceStreamHandler *self,
                             int code, const char *message,
                             const char *metadata)
{
    struct uva__foreign *i = foreign_at(self);
    const struct call call = foreign_enter(
        self,
        (struct uva__consumer_call){.event = UVA__EVENT_ERROR, .code = code});
    struct uva_error error;
    size_t size;

    uva__foreign_await_calls(i);
    if (call.failure != 0) {
        code = uva__error_receive(&error, code, message);
        if (uva_metadata_size(metadata, &size) != 0)
            uva__foreign_report_breach(i, "MD-05");
        uva__vendor_error_read(metadata, &error);
        uva__foreign_fail(i, code, &error, metadata);
    }
    foreign_leave(i, NULL);
}

/* A release without an end or error. If start has not returned, its code may
 * still give the reason. */
static void foreign_cut_off(struct uva__foreign *i)
{
    bool now;

    uva__lock_take(&i->lock);
    now = i->locked.start_returned;
    i->locked.ended_silently = !now;
    uva__lock_drop(&i->lock);
    if (now)
        uva__foreign_fail_cut_off(i);
}

static void foreign_on_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct uva__foreign *i = foreign_at(self);
    const struct call call = foreign_enter(
        self, (struct uva__consumer_call){.event = UVA__EVENT_RELEASE});

    if (call.verdict.action == UVA__ACTION_TAKE) {
        uva__handler_base_mark_released(self);
        uva__foreign_await_calls(i);
        if (uva__pending_tasks_close(&i->pending_tasks))
            uva__foreign_release_below(i);
    }
    if (call.failure != 0)
        foreign_cut_off(i);
    foreign_leave(i, NULL);
}

void uva__foreign_handler_init(struct uva__foreign *i)
{
    i->handler = (struct ArrowAsyncDeviceStreamHandler){
        .on_schema = foreign_on_schema,
        .on_next_task = foreign_on_next_task,
        .on_error = foreign_on_error,
        .release = foreign_on_release,
        .private_data = i,
    };
}
