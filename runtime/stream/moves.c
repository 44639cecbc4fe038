/* SPDX-License-Identifier: Apache-2.0 */
/* Each move calls the handler once, with what the feed or the owner has said;
 * the rules of core/producer_state note how it went. */
#include "stream/moves.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/status.h"
#include "core/structs.h"
#include "core/time_limits.h"
#include "stream/offered.h"
#include "uvarrow/arrow.h"

/* Passes the schema through the maps, each of which keeps what goes into it. */
static int moves_map_schema(struct uva__producer *p, struct ArrowSchema *schema)
{
    struct uva__mapping *m;
    struct ArrowSchema next;
    struct uva_error error = {0};
    int code = 0;

    for (m = p->maps; m != NULL && code == 0; m = m->next) {
        memset(&next, 0, sizeof(next));
        code = uva__structs_copy_schema(&p->hub->allocator, schema, &m->schema);
        if (code != 0 || m->how.schema == NULL)
            continue;
        code = uva__status_positive(
            m->how.schema(m->how.ctx, &m->schema, &next, &error));
        if (code == 0 && uva__structs_check_schema(&next, &error) != 0) {
            code = uva_error_set(&error, EPROTO,
                                 "a map said success and gave no good schema");
            uva_schema_release(&next);
        }
        if (code != 0)
            break;
        uva_schema_release(schema);
        uva_schema_move(&next, schema);
    }
    if (code != 0)
        uva__failure_set(&p->loop.urgent, &p->hub->allocator, code, &error,
                         NULL);
    return code;
}

static void moves_describe(struct uva__producer *p)
{
    p->abi.device_type = p->feed->device_type;
    p->abi.additional_metadata =
        p->loop.metadata != NULL ? p->loop.metadata : p->feed->metadata;
    p->abi.private_data = /* where the printed layout has the metadata */
        (void *)(uintptr_t)p->abi.additional_metadata;
}

static int moves_tell_schema(struct uva__producer *p)
{
    struct ArrowAsyncDeviceStreamHandler *handler = p->loop.handler;
    struct ArrowSchema schema;
    int code;

    uva_schema_move(&p->feed->schema, &schema);
    code = handler->on_schema(handler, &schema);
    uva_schema_release(&schema); /* LC-17 */
    return code;
}

static int moves_tell_task(struct uva__producer *p)
{
    struct ArrowAsyncDeviceStreamHandler *handler = p->loop.handler;
    struct uva__task *task = p->feed->ops->take(p->feed);
    struct ArrowAsyncTask offered;
    int code;

    if (task == NULL) {
        uva__failure_set(&p->loop.urgent, &p->hub->allocator, ENOMEM, NULL,
                         NULL);
        uva__producer_note_urgent(&p->loop.state, ENOMEM);
        return 0;
    }
    uva__task_offer(task, &offered);
    code = handler->on_next_task(handler, &offered, task->metadata);
    p->loop.told++;
    if (code != 0)
        uva__task_reclaim(task); /* LC-18, LC-19, G-18 */
    if (uva__task_state(task) == UVA__TASK_SETTLED) {
        uva__offered_put(p, task);
        return code;
    }
    uva__offered_keep(p, task);
    if (uva__task_state(task) == UVA__TASK_FAILED)
        uva__offered_reap_all(p); /* before anything else is told (AT-08) */
    return code;
}

static void moves_tell_error(struct uva__producer *p)
{
    struct ArrowAsyncDeviceStreamHandler *handler = p->loop.handler;
    const struct uva__failure *failure = uva__producer_failure(p);

    if (!p->loop.state.schema_told) /* it never changes after that (AP-20) */
        moves_describe(p);
    handler->on_error(handler, failure->code, uva__failure_message(failure),
                      uva__failure_metadata(failure));
}

/* The feed is stopped first: nothing of it is told any more. */
void uva__moves_stop_feed(struct uva__producer *p)
{
    if (p->loop.stopped)
        return;
    p->loop.stopped = true;
    p->feed->ops->stop(p->feed);
    p->loop.state.ready = 0;
}

static void moves_release(struct uva__producer *p)
{
    struct ArrowAsyncDeviceStreamHandler *handler = p->loop.handler;
    struct uva__producer_hooks hooks = p->loop.hooks;

    p->loop.handler = NULL;
    uva__timer_stop(p->hub, &p->loop.drain);
    uva__word_or(&p->word, UVA__WORD_DEAD);
    if (hooks.releasing != NULL)
        hooks.releasing(hooks.ctx);
    handler->release(handler);
    p->loop.state.released = true;
    if (hooks.released != NULL)
        hooks.released(hooks.ctx);
}

/* The end was told: wait for the tasks that may still fail (G-17, R21). */
static void moves_drain(struct uva__producer *p)
{
    assert(!p->loop.state.hurried); /* comes after the end */
    if (uva__offered_unsettled(p) > 0) {
        uva__offered_watch(p);
        uva__offered_reap_all(p);
        uva__timer_start(p->hub, &p->loop.drain, UVA__LIMIT_DRAIN_MS);
    }
    p->loop.state.unsettled = uva__offered_unsettled(p);
    if (p->loop.state.unsettled > 0 && p->loop.hooks.ended != NULL)
        p->loop.hooks.ended(p->loop.hooks.ctx);
}

void uva__moves_make(struct uva__producer *p, enum uva__producer_move move)
{
    struct uva__producer_state *state = &p->loop.state;
    int code = 0;

    if (move != UVA__MOVE_TELL_TASK && uva__producer_is_sated(state))
        uva__moves_stop_feed(p);
    if (move == UVA__MOVE_TELL_SCHEMA) {
        moves_describe(p);
        code = moves_map_schema(p, &p->feed->schema);
        if (code != 0) {
            uva__producer_note_urgent(state, p->loop.urgent.code);
            return;
        }
    }
    uva__producer_begin(state, move);
    switch (move) { /* not covered: a wait is no move */
    case UVA__MOVE_TELL_SCHEMA:
        code = moves_tell_schema(p);
        break;
    case UVA__MOVE_TELL_TASK:
        code = moves_tell_task(p);
        break;
    case UVA__MOVE_TELL_END:
        (void)p->loop.handler->on_next_task(p->loop.handler, NULL, NULL);
        break;
    case UVA__MOVE_TELL_ERROR:
        moves_tell_error(p);
        break;
    case UVA__MOVE_RELEASE:
        moves_release(p);
        break;
    case UVA__MOVE_WAIT:
        assert(!"not a move");
    }
    if (code != 0)
        p->loop.refusal = code;
    uva__producer_end(state, move, code);
    if (move == UVA__MOVE_TELL_END)
        moves_drain(p);
}
