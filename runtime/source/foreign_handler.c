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

#include "source/foreign_clauses.h"
#include "base/memory.h"
#include "arrow/metadata.h"
#include "base/error.h"
#include "arrow/structs.h"
#include "arrow/vendor_error.h"
#include "stream/handler_base.h"
#include "uvarrow/arrow.h"

enum { PRINTED_METADATA = 32 };

/* One call of a callback. */
struct call {
    struct uva__consumer_verdict verdict;
    int failure; /* the code with which it makes the stream fail; or 0 */
};

static void inlet_tell_call(struct uva__inlet *i, const struct call *call)
{
    const char *clause = call->verdict.clause;

    if (call->failure != 0)
        uva__peer_side_tell_text(i, call->failure,
                                 clause != NULL ? uva__breaches_text(clause)
                                                : uva_error_name(call->failure),
                                 clause);
}

/* ---- a callback's begin and end ----------------------------------------- */

static struct uva__inlet *
inlet_at(const struct ArrowAsyncDeviceStreamHandler *self)
{
    return self->private_data;
}

static struct call inlet_enter(const struct ArrowAsyncDeviceStreamHandler *self,
                               struct uva__consumer_call what)
{
    struct uva__inlet *i = inlet_at(self);
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
    call.verdict = uva__consumer_enter(state, &what);
    if (before != UVA__CONSUMER_FAILED && state->end == UVA__CONSUMER_FAILED)
        call.failure = state->code;
    uva__lock_drop(&i->lock);
    uva__peer_side_report(i, call.verdict.clause);
    if (self != &i->handler)
        uva__peer_side_report(i, "AH-24");
    if (in_cancel && what.event != UVA__EVENT_ERROR)
        uva__peer_side_report(i, "AP-13");
    return call;
}

/* Queues a task that was kept. After a stop it discards the task, for which it
 * drops the lock. */
static void inlet_push_locked(struct uva__inlet *i, struct uva__parcel *parcel)
{
    if (!i->locked.stopped) {
        uva__list_push(&i->locked.news.queue, &parcel->link);
        i->locked.news.count++;
        return;
    }
    uva__consumer_note_settled(&i->locked.state, 0);
    uva__lock_drop(&i->lock);
    uva__depot_discard(&i->depot, parcel);
    uva__inlet_extracted(i);
    uva__lock_take(&i->lock);
}

/* Returns whether this callback drops the producer's reference: the last one
 * does, as release may come inside another callback. In `home`: whether the
 * producer is done. */
static bool call_end_locked(struct uva__inlet *i, bool *home)
{
    bool last;

    uva__consumer_leave(&i->locked.state);
    last = i->locked.state.released && i->locked.state.calls == 0 &&
           !i->locked.given_back;
    i->locked.given_back = i->locked.given_back || last;
    *home = uva__inlet_is_home_locked(i);
    return last;
}

/* Queues `parcel` (or NULL) and requests, if more is wanted. The loop is woken
 * before the request, which may take long; the caller wakes it again for demand
 * that arose meanwhile. Returns whether there was a request. */
static bool inlet_go_on(struct uva__inlet *i, struct uva__parcel *parcel)
{
    struct ArrowAsyncProducer *producer;
    int64_t n;

    uva__lock_take(&i->lock);
    if (parcel != NULL)
        inlet_push_locked(i, parcel);
    n = uva__inlet_request_begin_locked(i);
    producer = i->locked.producer;
    uva__lock_drop(&i->lock);
    uva__hub_post(i->feed.hub, &i->node);
    if (n > 0)
        producer->request(producer, n);
    return n > 0;
}

/* The end of every callback. The caller must not use `i` afterwards. */
static void inlet_leave(struct uva__inlet *i, struct uva__parcel *parcel)
{
    const bool requested = inlet_go_on(i, parcel);
    bool last, home;

    if (requested)
        uva__inlet_acquire(i);
    uva__lock_take(&i->lock);
    if (requested)
        uva__inlet_request_end_locked(i);
    last = call_end_locked(i, &home);
    uva__lock_drop(&i->lock);
    if (home)
        uva__inlet_farewell_elsewhere(i);
    if (last)
        uva__inlet_release(i);
    if (!requested)
        return;
    uva__hub_post(i->feed.hub, &i->node);
    uva__inlet_release(i);
}

/* ---- on_schema ---------------------------------------------------------- */

static const char *metadata_of(const struct uva__inlet *i,
                               const struct ArrowAsyncProducer *producer)
{
    const char *metadata;

    if (!i->how.printed_layout)
        return producer->additional_metadata;
    memcpy(&metadata, (const char *)producer + PRINTED_METADATA,
           sizeof(metadata));
    return metadata;
}

/* Gives schema, device type and metadata to the pending tasks and, in `news`,
 * to the loop. */
static int inlet_describe(struct uva__inlet *i,
                          const struct ArrowAsyncProducer *producer,
                          struct ArrowSchema *schema,
                          struct uva__inlet_news *news)
{
    const struct uva_allocator *allocator = &i->feed.hub->allocator;
    struct ArrowSchema copy;
    int code = uva__metadata_copy(allocator, metadata_of(i, producer),
                                  &news->metadata, &news->metadata_size);

    if (code == ENOMEM)
        return code;
    uva__peer_side_report(i, code != 0 ? "MD-05" : NULL);
    code = uva__structs_copy_schema(allocator, schema, &copy);
    if (code != 0)
        return code;
    news->device_type = producer->device_type;
    if (news->device_type == 0) {
        uva__peer_side_report(i, "AP-01");
        news->device_type = i->feed.device_type;
    }
    uva__depot_describe(&i->depot, &copy, news->device_type);
    uva_schema_move(schema, &news->schema);
    return 0;
}

/* Makes the schema and the producer visible to the loop, unless the stream was
 * stopped meanwhile. */
static int inlet_publish(struct uva__inlet *i,
                         struct ArrowAsyncProducer *producer,
                         struct uva__inlet_news *news)
{
    struct uva__consumer_state *state = &i->locked.state;
    int code = 0;

    uva__lock_take(&i->lock);
    if (uva__consumer_must_cancel(state)) {
        code = state->code;
        uva__consumer_note_refusal(state, UVA__EVENT_SCHEMA, code);
    } else {
        uva_schema_move(&news->schema, &i->locked.news.schema);
        i->locked.news.device_type = news->device_type;
        i->locked.news.metadata = news->metadata;
        i->locked.news.metadata_size = news->metadata_size;
        i->locked.producer = producer;
        news->metadata = NULL;
    }
    uva__lock_drop(&i->lock);
    return code;
}

static void inlet_refuse(struct uva__inlet *i, int code)
{
    uva__lock_take(&i->lock);
    uva__consumer_note_fault(&i->locked.state, code);
    uva__consumer_note_refusal(&i->locked.state, UVA__EVENT_SCHEMA, code);
    uva__lock_drop(&i->lock);
    uva__peer_side_tell_text(i, code, "on_schema: the schema cannot be copied",
                             NULL);
}

static int inlet_take_schema(struct uva__inlet *i,
                             struct ArrowAsyncProducer *producer,
                             struct ArrowSchema *schema)
{
    struct uva__inlet_news news = {.metadata = NULL};
    int code = inlet_describe(i, producer, schema, &news);

    if (code != 0)
        inlet_refuse(i, code);
    else
        code = inlet_publish(i, producer, &news);
    uva_schema_release(&news.schema);
    uva__memory_free(&i->feed.hub->allocator, news.metadata,
                     news.metadata_size);
    return code;
}

static int inlet_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                           struct ArrowSchema *schema)
{
    struct uva__inlet *i = inlet_at(self);
    struct uva__consumer_call what = {.event = UVA__EVENT_SCHEMA};
    struct call call;
    int code;

    if (uva__structs_check_schema(schema, NULL) != 0)
        what.clause = "AH-07";
    else if (self->producer == NULL)
        what.clause = "AH-03";
    what.code = what.clause != NULL ? EINVAL : 0;
    call = inlet_enter(self, what);
    inlet_tell_call(i, &call);
    code = call.verdict.code;
    if (call.verdict.action == UVA__ACTION_TAKE)
        code = inlet_take_schema(i, self->producer, schema);
    if (schema != NULL)
        uva_schema_release(schema); /* unless it was moved out (G-43) */
    inlet_leave(i, NULL);
    return code;
}

/* ---- on_next_task ------------------------------------------------------- */

static struct uva__parcel *inlet_keep(struct uva__inlet *i,
                                      const struct ArrowAsyncTask *task,
                                      const char *metadata)
{
    struct uva__parcel *parcel;
    int code = uva__depot_keep(&i->depot, task, metadata, &parcel);

    if (code == 0)
        return parcel;
    if (code != ENOMEM)
        code = EPROTO; /* two callbacks ran at the same time */
    uva__depot_spend(task);
    uva__lock_take(&i->lock);
    uva__consumer_note_settled(&i->locked.state, code);
    uva__lock_drop(&i->lock);
    uva__peer_side_tell_text(i, code, "a batch could not be kept", NULL);
    return NULL;
}

static void inlet_on_end(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct uva__inlet *i = inlet_at(self);
    const struct call call =
        inlet_enter(self, (struct uva__consumer_call){.event = UVA__EVENT_END});

    uva__inlet_close_gate(i);
    inlet_tell_call(i, &call);
    inlet_leave(i, NULL);
}

static int inlet_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                              struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__inlet *i = inlet_at(self);
    struct uva__consumer_call what = {.event = UVA__EVENT_TASK};
    struct uva__parcel *parcel = NULL;
    struct call call;

    if (task == NULL) {
        inlet_on_end(self);
        return 0;
    }
    if (task->extract_data == NULL) {
        what.code = EPROTO;
        what.clause = "AT-01";
    }
    call = inlet_enter(self, what);
    inlet_tell_call(i, &call);
    if (call.verdict.action == UVA__ACTION_TAKE)
        parcel = inlet_keep(i, task, metadata);
    else if (call.verdict.action == UVA__ACTION_DISCARD)
        uva__depot_spend(task);
    inlet_leave(i, parcel);
    return 0;
}

/* ---- on_error, release -------------------------------------------------- */

static void inlet_on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                           const char *message, const char *metadata)
{
    struct uva__inlet *i = inlet_at(self);
    const struct call call =
        inlet_enter(self, (struct uva__consumer_call){.event = UVA__EVENT_ERROR,
                                                      .code = code});
    struct uva_error error;
    size_t size;

    uva__inlet_close_gate(i);
    if (call.failure != 0) {
        code = uva__error_receive(&error, code, message);
        if (uva_metadata_size(metadata, &size) != 0)
            uva__peer_side_report(i, "MD-05");
        uva__vendor_read(metadata, &error);
        uva__peer_side_tell(i, code, &error, metadata);
    }
    inlet_leave(i, NULL);
}

/* A release without an end or error. If start has not returned, its code may
 * still give the reason. */
static void inlet_cut_off(struct uva__inlet *i)
{
    bool now;

    uva__lock_take(&i->lock);
    now = i->locked.start_returned;
    i->locked.cut_off = !now;
    uva__lock_drop(&i->lock);
    if (now)
        uva__peer_side_tell_cut_off(i);
}

static void inlet_on_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct uva__inlet *i = inlet_at(self);
    const struct call call = inlet_enter(
        self, (struct uva__consumer_call){.event = UVA__EVENT_RELEASE});

    if (call.verdict.action == UVA__ACTION_TAKE) {
        uva__handler_base_mark_released(self);
        uva__inlet_close_gate(i);
        if (uva__depot_close(&i->depot))
            uva__inlet_release_below(i);
    }
    if (call.failure != 0)
        inlet_cut_off(i);
    inlet_leave(i, NULL);
}

void uva__peer_side_init(struct uva__inlet *i)
{
    i->handler = (struct ArrowAsyncDeviceStreamHandler){
        .on_schema = inlet_on_schema,
        .on_next_task = inlet_on_next_task,
        .on_error = inlet_on_error,
        .release = inlet_on_release,
        .private_data = i,
    };
}
