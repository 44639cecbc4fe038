/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of a foreign producer: on_schema, on_next_task, on_error and
 * release.
 *
 * Happy path:  on_schema: copied, a window requested -> (on_next_task: copied,
 *              the loop woken; request, when enough of the window was used)* ->
 *              on_next_task(NULL) -> release: foreign tasks that are not
 *              extracted are extracted here, or on an extra thread.
 *
 * Failures:
 * - the producer reports an error: it is reported after the batches before it;
 * - the producer breaks a rule: it is counted, and the rules decide the
 *   reaction;
 * - no memory: it is reported like an error, and the producer is cancelled.
 *
 * On cancel and close: later batches of the producer are discarded, here.
 *
 * On a loop thread no task is extracted here, unless on_loop is set.
 *
 * No lock is held while the producer's code runs. A callback never returns an
 * error for a task, and requests once at most.
 *
 * Clauses: G-18, G-43, Q-15. */
#include <errno.h>
#include <string.h>

#include "arrow/metadata.h"
#include "arrow/structs.h"
#include "arrow/vendor_error.h"
#include "base/error.h"
#include "base/memory.h"
#include "source/foreign.h"
#include "source/foreign_clauses.h"
#include "uvarrow/arrow.h"

/* One call of a callback. */
struct call {
    struct uva__consumer_verdict verdict;
    int failure; /* the code with which it makes the stream fail; or 0 */
    bool late;   /* the producer has released the handler: the object may be in
                    quarantine, and is not used any more */
};

static void foreign_report_call(struct uva__foreign *f, const struct call *call)
{
    const char *clause = call->verdict.clause;

    if (call->failure != 0)
        uva__foreign_fail_text(f, call->failure,
                               clause != NULL ? uva__clause_breach(clause)
                                              : uva_error_name(call->failure),
                               clause);
}

/* ---- a callback's begin and end ----------------------------------------- */

/* Does not use the object, which may be in quarantine. */
static void foreign_report_late(struct uva__rt *rt, const struct call *call)
{
    uva__atomic64_add(&rt->stats.late_calls, 1);
    uva__foreign_count_late(rt, NULL, call->verdict.clause);
}

static struct uva__foreign *
foreign_at(const struct ArrowAsyncDeviceStreamHandler *self)
{
    return self->private_data;
}

/* The steps in the log. */
static const char *const callbacks[] = {
    [UVA__EVENT_SCHEMA] = "on_schema",
    [UVA__EVENT_TASK] = "on_next_task",
    [UVA__EVENT_END] = "on_next_task, the end",
    [UVA__EVENT_ERROR] = "on_error",
    [UVA__EVENT_RELEASE] = "release",
};

static struct call
foreign_enter(const struct ArrowAsyncDeviceStreamHandler *self,
              struct uva__consumer_call what)
{
    struct uva__foreign *f = foreign_at(self);
    struct uva__consumer_state *state = &f->locked.state;
    const uint64_t thread = uva__thread_self();
    enum uva__consumer_end before;
    struct call call = {.failure = 0};
    struct uva__rt *rt;
    bool in_cancel;

    uva__lock_take(&f->lock);
    rt = f->source.rt;
    call.late = state->heard == UVA__HEARD_RELEASE;
    if (f->locked.peer == UVA__FOREIGN_PEER_SILENT)
        f->locked.peer = UVA__FOREIGN_PEER_LIVE;
    what.in_request = f->locked.requesting == thread;
    in_cancel = f->locked.cancelling == thread;
    before = state->end;
    call.verdict = uva__consumer_state_enter(state, &what);
    if (before != UVA__CONSUMER_FAILED && state->end == UVA__CONSUMER_FAILED)
        call.failure = state->code;
    if (call.late)
        uva__consumer_state_leave(state);
    uva__lock_drop(&f->lock);
    if (call.late) {
        foreign_report_late(rt, &call);
        return call;
    }
    uva__foreign_log(f, callbacks[what.event], -1);
    uva__foreign_report_breach(f, call.verdict.clause);
    if (self != &f->handler)
        uva__foreign_report_breach(f, "AH-24");
    if (in_cancel && what.event != UVA__EVENT_ERROR)
        uva__foreign_report_breach(f, "AP-13");
    return call;
}

static bool foreign_may_extract(const struct uva__foreign *f)
{
    return f->options.on_loop || !uva__foreign_is_on_loop(f);
}

static void foreign_discard(struct uva__foreign *f,
                            struct uva__pending_task *pending_task)
{
    if (!foreign_may_extract(f)) {
        uva__foreign_discard_later(f, pending_task);
        return;
    }
    uva__pending_task_discard(pending_task);
    uva__foreign_extracted(f);
}

/* Queues a pending task. After a stop it discards the task, for which it drops
 * the lock. */
static void foreign_push_locked(struct uva__foreign *f,
                                struct uva__pending_task *pending_task)
{
    if (f->locked.wish == UVA__FOREIGN_WISH_WANTED) {
        uva__list_push(&f->locked.events.queue, &pending_task->discard.link);
        f->locked.events.count++;
        return;
    }
    uva__consumer_state_note_settled(&f->locked.state, 0);
    uva__lock_drop(&f->lock);
    foreign_discard(f, pending_task);
    uva__lock_take(&f->lock);
}

/* Returns whether this callback drops the producer's reference: the last one
 * does, as release may come inside another callback. In `closed`: whether the
 * producer is done. */
static bool call_end_locked(struct uva__foreign *f, bool *closed)
{
    bool last;

    uva__consumer_state_leave(&f->locked.state);
    last = f->locked.state.heard == UVA__HEARD_RELEASE &&
           f->locked.state.calls == 0;
    if (last)
        f->locked.peer = UVA__FOREIGN_PEER_RELEASED;
    *closed = uva__foreign_enter_closed_locked(f);
    return last;
}

/* Queues `pending_task` (or NULL) and requests, if more is wanted. The loop is
 * woken before the request, which may take long; the caller wakes it again for
 * demand that arose meanwhile. Returns whether there was a request. */
static bool foreign_push_and_request(struct uva__foreign *f,
                                     struct uva__pending_task *pending_task)
{
    struct ArrowAsyncProducer *producer;
    int64_t n;

    uva__lock_take(&f->lock);
    if (pending_task != NULL)
        foreign_push_locked(f, pending_task);
    n = uva__foreign_request_begin_locked(f);
    producer = f->locked.producer;
    uva__lock_drop(&f->lock);
    uva__meter_wake(f->source.meter, &f->source.wakeup);
    if (n > 0) {
        uva__foreign_log(f, "request", n);
        producer->request(producer, n);
    }
    return n > 0;
}

/* The end of every callback. The caller must not use `f` afterwards. */
static void foreign_leave(struct uva__foreign *f,
                          struct uva__pending_task *pending_task)
{
    const bool requested = foreign_push_and_request(f, pending_task);
    bool last, closed;

    if (requested)
        uva__source_acquire(&f->source);
    uva__lock_take(&f->lock);
    if (requested)
        uva__foreign_call_end_locked(f, &f->locked.requesting);
    last = call_end_locked(f, &closed);
    uva__lock_drop(&f->lock);
    if (closed)
        uva__foreign_free_ctx(f);
    if (last)
        uva__source_release(&f->source);
    if (!requested)
        return;
    uva__meter_wake(f->source.meter, &f->source.wakeup);
    uva__source_release(&f->source);
}

/* ---- on_schema ---------------------------------------------------------- */

/* Gives schema, device type and metadata to the pending tasks and, in `events`,
 * to the loop. */
static int foreign_describe(struct uva__foreign *f,
                            const struct ArrowAsyncProducer *producer,
                            struct ArrowSchema *schema,
                            struct uva__foreign_events *events)
{
    const struct uva_allocator *allocator = &f->source.rt->allocator;
    int code = uva__metadata_copy(
        allocator,
        uva__structs_producer_metadata(producer, f->options.printed_layout),
        &events->metadata);

    if (code == ENOMEM)
        return code;
    uva__foreign_report_breach(f, code != 0 ? "MD-05" : NULL);
    events->device_type = producer->device_type;
    if (events->device_type == 0) {
        uva__foreign_report_breach(f, "AP-01");
        events->device_type = f->source.device_type;
    }
    code = uva__pending_tasks_set_schema(&f->pending_tasks, schema,
                                         events->device_type);
    if (code == 0)
        uva_schema_move(schema, &events->schema);
    return code;
}

/* Makes the schema and the producer visible to the loop, unless the stream was
 * stopped meanwhile. */
static int foreign_publish(struct uva__foreign *f,
                           struct ArrowAsyncProducer *producer,
                           struct uva__foreign_events *events)
{
    struct uva__consumer_state *state = &f->locked.state;
    int code = 0;

    uva__lock_take(&f->lock);
    if (uva__consumer_state_must_cancel(state)) {
        code = state->code;
        uva__consumer_state_note_refusal(state, UVA__EVENT_SCHEMA, code);
    } else {
        uva_schema_move(&events->schema, &f->locked.events.schema);
        f->locked.events.device_type = events->device_type;
        uva__metadata_move(&events->metadata, &f->locked.events.metadata);
        f->locked.producer = producer;
    }
    uva__lock_drop(&f->lock);
    return code;
}

static void foreign_refuse(struct uva__foreign *f, int code)
{
    uva__lock_take(&f->lock);
    uva__consumer_state_note_fault(&f->locked.state, code);
    uva__consumer_state_note_refusal(&f->locked.state, UVA__EVENT_SCHEMA, code);
    uva__lock_drop(&f->lock);
    uva__foreign_fail_text(f, code, "on_schema: the schema cannot be copied",
                           NULL);
}

static int foreign_take_schema(struct uva__foreign *f,
                               struct ArrowAsyncProducer *producer,
                               struct ArrowSchema *schema)
{
    struct uva__foreign_events events = {.device_type = 0};
    int code = foreign_describe(f, producer, schema, &events);

    if (code != 0)
        foreign_refuse(f, code);
    else
        code = foreign_publish(f, producer, &events);
    uva_schema_release(&events.schema);
    uva__metadata_fini(&events.metadata, &f->source.rt->allocator, NULL);
    return code;
}

static int foreign_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                             struct ArrowSchema *schema)
{
    struct uva__foreign *f = foreign_at(self);
    struct uva__consumer_call what = {.event = UVA__EVENT_SCHEMA};
    struct call call;
    int code;

    if (uva__structs_check_schema(schema, NULL) != 0)
        what.clause = "AH-07";
    else if (self->producer == NULL)
        what.clause = "AH-03";
    what.code = what.clause != NULL ? EINVAL : 0;
    call = foreign_enter(self, what);
    foreign_report_call(f, &call);
    code = call.verdict.code;
    if (call.verdict.action == UVA__ACTION_TAKE)
        code = foreign_take_schema(f, self->producer, schema);
    if (schema != NULL)
        uva_schema_release(schema); /* unless it was moved out */
    if (!call.late)
        foreign_leave(f, NULL);
    return code;
}

/* ---- on_next_task ------------------------------------------------------- */

static struct uva__pending_task *
foreign_add_task(struct uva__foreign *f, const struct ArrowAsyncTask *task,
                 const char *metadata)
{
    struct uva__pending_task *pending_task;
    int code = uva__pending_tasks_add(&f->pending_tasks, task, metadata,
                                      &pending_task);

    if (code == 0)
        return pending_task;
    if (code != ENOMEM)
        code = EPROTO; /* two callbacks ran at the same time */
    uva__lock_take(&f->lock);
    uva__consumer_state_note_settled(&f->locked.state, code);
    uva__lock_drop(&f->lock);
    uva__foreign_fail_text(f, code, "a batch could not be kept", NULL);
    /* Last, since the producer may report its end inside the extraction. */
    uva__pending_tasks_extract_unwanted(task, uva__task_kind(task));
    return NULL;
}

/* Discards a task that comes too late; `late`: after the release, when only the
 * task may be used. A loop thread leaves that to another one, but not if the
 * task cannot be kept, as in the release. */
static void foreign_discard_task(struct uva__foreign *f,
                                 const struct ArrowAsyncTask *task, bool late)
{
    struct uva__pending_task *pending_task;

    if (late || foreign_may_extract(f) ||
        uva__pending_tasks_add(&f->pending_tasks, task, NULL, &pending_task) !=
            0)
        uva__pending_tasks_extract_unwanted(task, uva__task_kind(task));
    else
        foreign_discard(f, pending_task);
}

static void foreign_on_end(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct uva__foreign *f = foreign_at(self);
    const struct call call = foreign_enter(
        self, (struct uva__consumer_call){.event = UVA__EVENT_END});

    if (call.late)
        return;
    uva__foreign_await_calls(f);
    foreign_report_call(f, &call);
    foreign_leave(f, NULL);
}

static int foreign_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                                struct ArrowAsyncTask *task,
                                const char *metadata)
{
    struct uva__foreign *f = foreign_at(self);
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
    foreign_report_call(f, &call);
    if (call.verdict.action == UVA__ACTION_TAKE)
        pending_task = foreign_add_task(f, task, metadata);
    else if (call.verdict.action == UVA__ACTION_DISCARD)
        foreign_discard_task(f, task, call.late);
    if (!call.late)
        foreign_leave(f, pending_task);
    return 0;
}

/* ---- on_error, release -------------------------------------------------- */

static void foreign_on_error(struct ArrowAsyncDeviceStreamHandler *self,
                             int code, const char *message,
                             const char *metadata)
{
    struct uva__foreign *f = foreign_at(self);
    const struct call call = foreign_enter(
        self,
        (struct uva__consumer_call){.event = UVA__EVENT_ERROR, .code = code});
    struct uva_error error;
    size_t size;

    if (call.late)
        return;
    uva__foreign_await_calls(f);
    if (call.failure != 0) {
        code = uva__error_set_foreign(&error, code, message);
        if (uva_metadata_size(metadata, &size) != 0)
            uva__foreign_report_breach(f, "MD-05");
        uva__vendor_error_from_metadata(metadata, &error);
        uva__foreign_fail(f, code, &error, metadata);
    }
    foreign_leave(f, NULL);
}

/* A release without an end or error. If start has not returned, its code may
 * still give the reason. */
static void foreign_end_silently(struct uva__foreign *f)
{
    bool now;

    uva__lock_take(&f->lock);
    now = f->locked.start == UVA__FOREIGN_START_BACK;
    if (!now && f->locked.failure == UVA__FOREIGN_FAILURE_NONE)
        f->locked.failure = UVA__FOREIGN_FAILURE_CUT_OFF;
    uva__lock_drop(&f->lock);
    if (now)
        uva__foreign_fail_cut_off(f);
}

/* Foreign tasks may become invalid with their producer, although the document
 * gives them lives of their own. So they are extracted before release returns;
 * a loop thread leaves that to another one, and free_ctx to after it.
 * Clauses: G-13. */
static void foreign_extract_all(struct uva__foreign *f)
{
    const bool left =
        uva__pending_tasks_close(&f->pending_tasks, foreign_may_extract(f));

    if (left && uva__foreign_is_on_loop(f))
        uva__foreign_extract_later(f);
    else if (left && uva__pending_tasks_await(&f->pending_tasks))
        uva__foreign_release_below(f);
}

static void foreign_on_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct uva__foreign *f = foreign_at(self);
    const struct call call = foreign_enter(
        self, (struct uva__consumer_call){.event = UVA__EVENT_RELEASE});

    if (call.late)
        return;
    self->release = NULL;
    self->producer = NULL;
    uva__foreign_await_calls(f);
    foreign_extract_all(f);
    if (call.failure != 0)
        foreign_end_silently(f);
    foreign_leave(f, NULL);
}

void uva__foreign_handler_init(struct uva__foreign *f)
{
    f->handler = (struct ArrowAsyncDeviceStreamHandler){
        .on_schema = foreign_on_schema,
        .on_next_task = foreign_on_next_task,
        .on_error = foreign_on_error,
        .release = foreign_on_release,
        .private_data = f,
    };
}
