/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  open -> begin: checked -> passed on without a lock, perhaps on
 *              another thread -> end: its result is checked.
 *
 * Failures: none. */
#include "check/checked_callback.h"

#include "base/thread.h"
#include "check/checked_producer.h"
#include "check/checker_host.h"

enum { OTHER_THREAD_ODDS = 2 };

/* ---- open --------------------------------------------------------------- */

/* Returns the stream of the handler, or of a copy of it, or of the handler
 * after its private_data was altered, which is restored. */
static struct uva__checked *
stream_of(struct ArrowAsyncDeviceStreamHandler *self,
          struct uva__findings *seen)
{
    void *const found = uva__layout_probe_read(self->private_data);
    struct uva__checked *c = found;

    if (c == NULL)
        c = uva__container_of(self, struct uva__checked, handler);
    if (self != &c->handler) {
        uva__findings_add(seen, UVA__RULE_AH_24, 0);
    } else if (found == NULL) {
        uva__findings_add(seen, UVA__RULE_AH_25, 0);
        self->private_data = uva__layout_probe_address(&c->probe);
    }
    return c;
}

static void inspect_at_slots(const struct uva__checked *c,
                             struct ArrowAsyncDeviceStreamHandler *self,
                             struct uva__findings *seen)
{
    const struct ArrowAsyncDeviceStreamHandler *own = c->functions;

    if (self->on_schema == own->on_schema &&
        self->on_next_task == own->on_next_task &&
        self->on_error == own->on_error && self->release == own->release)
        return;
    uva__findings_add(seen, UVA__RULE_AH_26, 0);
    self->on_schema = own->on_schema;
    self->on_next_task = own->on_next_task;
    self->on_error = own->on_error;
    self->release = own->release;
}

void uva__callback_open(struct uva__callback *cb,
                        struct ArrowAsyncDeviceStreamHandler *self,
                        enum uva__call call)
{
    cb->self = self;
    cb->active_call = (struct uva__active_call){.call = call};
    cb->schema = NULL;
    cb->task = NULL;
    cb->slot = NULL;
    cb->tracked = false;
    cb->message = cb->metadata = NULL;
    cb->metadata_size = 0;
    cb->code = 0;
    cb->seen.count = 0;
    cb->stream = stream_of(self, &cb->seen);
    inspect_at_slots(cb->stream, self, &cb->seen);
}

/* ---- begin -------------------------------------------------------------- */

/* Whether the handler was given to another producer, which set itself there; a
 * consumer may clear that field. */
static bool handler_is_shared(const struct uva__checked *c)
{
    return c->real->producer != NULL && c->real->producer != &c->producer;
}

bool uva__callback_begin(struct uva__callback *cb, int64_t *ordinal)
{
    struct uva__checked *c = cb->stream;
    struct uva__checker_state *protocol = &c->locked.protocol;
    struct uva__findings findings;
    struct uva__call_context context;
    bool passes;

    findings.count = 0;
    uva__lock_take(&c->lock);
    context = uva__checked_enter_locked(c, &cb->active_call);
    cb->within = context.within != UVA__CALL_NONE;
    *ordinal = protocol->offers;
    passes = uva__checker_state_begin(protocol, cb->active_call.call, &context,
                                      &findings);
    if (passes && cb->active_call.call == UVA__CALL_ERROR)
        uva__checker_state_error(protocol, cb->code, cb->message,
                                 cb->active_call.thread, &findings);
    if (passes)
        uva__checker_state_observed(protocol, &cb->seen, &findings);
    if (passes && cb->tracked)
        cb->slot = uva__checked_task_take_locked(c);
    uva__lock_drop(&c->lock);
    uva__checked_report_all(c, &findings);
    cb->seen.count = 0;
    return passes;
}

void uva__callback_check_producer(struct uva__callback *cb)
{
    struct uva__checked *c = cb->stream;

    uva__checked_producer_compare(c, cb->self->producer,
                                  cb->active_call.call <= UVA__CALL_TASK,
                                  &cb->seen);
    if (handler_is_shared(c))
        uva__findings_add(&cb->seen, UVA__RULE_AH_29, 0);
}

/* Reports the findings since it began, before the consumer gets it. */
static void callback_report(struct uva__callback *cb)
{
    struct uva__checked *c = cb->stream;
    struct uva__findings findings;

    findings.count = 0;
    if (cb->seen.count == 0)
        return;
    uva__lock_take(&c->lock);
    uva__checker_state_observed(&c->locked.protocol, &cb->seen, &findings);
    uva__lock_drop(&c->lock);
    uva__checked_report_all(c, &findings);
    cb->seen.count = 0;
}

/* ---- run ---------------------------------------------------------------- */

static void callback_call(struct uva__callback *cb)
{
    struct ArrowAsyncDeviceStreamHandler *real = cb->stream->real;

    switch (cb->active_call.call) {
    case UVA__CALL_SCHEMA:
        cb->code = real->on_schema(real, cb->schema);
        break;
    case UVA__CALL_ERROR:
        real->on_error(real, cb->code, cb->message, cb->metadata);
        cb->code = 0;
        break;
    default:
        cb->code = real->on_next_task(real, cb->task, cb->metadata);
    }
}

static void callback_run(void *arg)
{
    struct uva__callback *cb = arg;
    const uint64_t self = uva__thread_self();
    int64_t begun;

    if (self != cb->active_call.thread)
        uva__atomic64_store(&cb->active_call.runner, self);
    uva__checked_perturb(cb->stream);
    begun = uva__checked_clock(cb->stream);
    callback_call(cb);
    cb->took_ms = uva__checked_elapsed_ms(cb->stream, begun);
    uva__checked_perturb(cb->stream);
    uva__atomic64_store(&cb->active_call.runner, 0);
}

/* A callback inside a call of the consumer stays on its thread: the consumer
 * may wait, at the end, for calls in flight on other threads.
 * Clauses: AP-13. */
void uva__callback_pass_on(struct uva__callback *cb)
{
    callback_report(cb);
    if (!cb->within && uva__checked_chance(cb->stream, OTHER_THREAD_ODDS))
        uva__checker_host_run(callback_run, cb);
    else
        callback_run(cb);
}

/* ---- end ---------------------------------------------------------------- */

static void check_end_locked(struct uva__callback *cb,
                             struct uva__findings *findings)
{
    struct uva__checked *c = cb->stream;
    struct uva__checker_state *protocol = &c->locked.protocol;

    uva__checker_state_end(protocol, cb->active_call.call, cb->code,
                           uva__active_calls_calls_beside(
                               &c->locked.active_calls, &cb->active_call),
                           findings);
    if (cb->took_ms > c->times.slow_call_ms)
        uva__checker_state_find(protocol, findings, UVA__RULE_TH_12,
                                cb->took_ms);
    uva__checker_state_observed(protocol, &cb->seen, findings);
    if (cb->slot != NULL && cb->code != 0 &&
        uva__checked_task_take_back_locked(cb->slot))
        uva__checker_state_find(protocol, findings, UVA__RULE_AT_02,
                                cb->slot->ordinal);
}

int uva__callback_end(struct uva__callback *cb)
{
    struct uva__checked *c = cb->stream;
    struct uva__findings findings;
    const int code = cb->code;

    findings.count = 0;
    uva__lock_take(&c->lock);
    check_end_locked(cb, &findings);
    uva__checked_leave_unlock(c, &cb->active_call, &findings);
    return code;
}

void uva__callback_drop(struct uva__callback *cb)
{
    const struct uva__findings none = {.count = 0};

    uva__lock_take(&cb->stream->lock);
    uva__checked_leave_unlock(cb->stream, &cb->active_call, &none);
}
