/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  on_schema: the producer is recorded, the schema passed on in a
 *              struct of the check -> (on_next_task: passed on as a task of the
 *              check)* -> on_next_task(NULL) -> release: the consumer's handler
 *              is released.
 *
 * Failures: memory for copies; then the producer's own are passed on.
 *
 * On release:  later calls are not passed on. They are reported, and their
 *              arguments disposed of: a task is discarded, a schema released.
 */
#include "check/checked_handler.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "arrow/structs.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "check/checked_callback.h"
#include "check/checked_producer.h"
#include "check/checked_task.h"
#include "check/checker_host.h"
#include "check/release_hook.h"
#include "check/schema_check.h"
#include "check/tagged_pointer.h"
#include "uvarrow/arrow.h"

enum { POISON = 0xDD };

/* ---- strings ------------------------------------------------------------ */

/* Returns a copy of `size` bytes, to be overwritten later; the original if
 * there is no memory. */
static const char *show_bytes(struct uva__callback *cb, const char *bytes,
                              size_t size, char **copy)
{
    *copy = size > 0 ? uva__quarantine_alloc(&cb->stream->copies, size) : NULL;
    if (*copy == NULL)
        return bytes;
    memcpy(*copy, bytes, size);
    return *copy;
}

/* The last byte stays, so that text has an end. */
static void spoil_bytes(char *copy, size_t size)
{
    if (copy != NULL)
        memset(copy, POISON, size - 1);
}

/* Checks the metadata of a callback. An unreadable object is passed on as it
 * is. */
static void inspect_at_metadata(struct uva__callback *cb, const char *metadata)
{
    cb->metadata = metadata;
    if (uva__checked_metadata(metadata, &cb->metadata_size, &cb->seen) != 0)
        cb->metadata_size = 0;
}

/* ---- on_schema ---------------------------------------------------------- */

/* The release of the schema after on_schema returned: called by a consumer that
 * kept the pointer. */
static void schema_trap(struct ArrowSchema *self)
{
    struct uva__checked *c =
        uva__tagged_pointer_read(self->private_data).object;

    if (c != NULL)
        uva__checked_report(c, UVA__RULE_AH_06, 0);
}

static void inspect_at_schema(struct uva__callback *cb,
                              const struct ArrowSchema *schema)
{
    struct uva__checked *c = cb->stream;
    struct uva__tree_walk walk;
    struct ArrowSchema copy;

    if (schema == NULL || schema->release == NULL) {
        uva__findings_add(&cb->seen, UVA__RULE_AH_07, 0);
        return;
    }
    uva__tree_walk_init(&walk, c->reporter);
    uva__schema_check(&walk, schema);
    /* Without a copy, arrays are not compared with it. */
    if (c->schema.release == NULL &&
        uva__structs_copy_schema(&c->allocator, schema, &copy) == 0)
        c->schema = copy;
}

/* The producer is recorded when it is first seen, and compared later. */
static void observe_producer(struct uva__callback *cb)
{
    struct uva__checked *c = cb->stream;
    struct ArrowAsyncProducer *real = cb->self->producer;

    if (uva__atomic_ptr_load(&c->peer.producer) != NULL) {
        uva__callback_check_producer(cb);
    } else if (real != NULL) {
        uva__checked_producer_adopt(c, real, &cb->seen);
    } else {
        uva__findings_add(&cb->seen, UVA__RULE_AH_03, 0);
        c->real->producer = NULL;
    }
}

/* Returns the schema in a struct of the check, with a release hook. */
static struct ArrowSchema *schema_show(struct uva__callback *cb,
                                       struct ArrowSchema *schema)
{
    struct uva__checked *c = cb->stream;
    struct ArrowSchema *shown;

    cb->schema = schema;
    if (schema == NULL || schema->release == NULL)
        return NULL;
    shown = uva__quarantine_alloc(&c->copies, sizeof(*shown));
    if (shown == NULL)
        return NULL;
    uva_schema_move(schema, shown);
    cb->schema = shown;
    if (uva__release_hook_schema(c->reporter, shown, 0) != 0)
        uva__reporter_note(c->reporter, "no memory: it passes unwatched", 0, 0);
    return shown;
}

/* Ends the consumer's access. The Arrow document leaves open which side
 * releases a schema that the consumer left; here the producer does. */
static void schema_hide(struct uva__callback *cb, struct ArrowSchema *shown,
                        struct ArrowSchema *schema)
{
    if (cb->schema != NULL && cb->schema->release != NULL)
        uva__findings_add(&cb->seen, UVA__RULE_AH_06, 0);
    if (shown == NULL)
        return;
    if (shown->release != NULL)
        uva_schema_move(shown, schema);
    memset(shown, POISON, sizeof(*shown));
    shown->release = schema_trap;
    shown->private_data = uva__tagged_pointer_make(cb->stream, 0);
}

static int handler_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                             struct ArrowSchema *schema)
{
    struct ArrowSchema *shown;
    struct uva__callback cb;
    int64_t ordinal;

    uva__callback_open(&cb, self, UVA__CALL_SCHEMA);
    uva__reporter_note(cb.stream->reporter, "on_schema", 0, 0);
    if (!uva__callback_begin(&cb, &ordinal)) {
        if (schema != NULL)
            uva_schema_release(schema);
        uva__callback_drop(&cb);
        return ECANCELED;
    }
    observe_producer(&cb);
    inspect_at_schema(&cb, schema);
    uva__checked_producer_catch_up(cb.stream);
    shown = schema_show(&cb, schema);
    uva__callback_pass_on(&cb);
    schema_hide(&cb, shown, schema);
    return uva__callback_end(&cb);
}

/* ---- on_next_task ------------------------------------------------------- */

/* Replaces the missing function of a task, so that NULL is not called. */
static int task_extract_nothing(struct ArrowAsyncTask *self,
                                struct ArrowDeviceArray *out)
{
    (void)self;
    if (out != NULL)
        out->array.release = NULL;
    return EPROTO;
}

/* Its extraction is not seen: it counts as running for ever. */
static void task_pass_unchecked(struct uva__checked *c)
{
    uva__lock_take(&c->lock);
    uva__checker_state_extract(&c->locked.protocol);
    uva__lock_drop(&c->lock);
}

/* Passes on a task of the check; without a slot, the task passes unchecked. */
static void task_show(struct uva__callback *cb,
                      const struct ArrowAsyncTask *real, int64_t ordinal)
{
    if (cb->slot == NULL)
        cb->slot = uva__checked_task_fetch(cb->stream);
    if (cb->slot == NULL) {
        task_pass_unchecked(cb->stream);
        return;
    }
    uva__checked_task_fill(cb->slot, real, cb->metadata, cb->metadata_size,
                           ordinal);
    cb->task = &cb->slot->shown;
    if (cb->metadata_size > 0 && cb->slot->room >= cb->metadata_size)
        cb->metadata = cb->slot->text;
}

static void task_hide(struct uva__callback *cb, struct ArrowAsyncTask *real)
{
    if (cb->slot == NULL)
        return;
    uva__checked_task_poison(cb->slot);
    if (cb->code == 0 && uva__atomic64_peek(&cb->stream->chance) != 0)
        uva__checked_task_scribble(cb->slot, real);
}

static int task_arrived(struct uva__callback *cb, struct ArrowAsyncTask *task,
                        const char *metadata)
{
    struct ArrowAsyncTask plain = *task;
    int64_t ordinal;

    uva__reporter_note(cb->stream->reporter, "on_next_task", 0, 0);
    cb->task = &plain;
    cb->tracked = task->extract_data != NULL;
    if (!uva__callback_begin(cb, &ordinal)) {
        if (cb->tracked)
            (void)task->extract_data(task, NULL);
        uva__callback_drop(cb);
        return 0;
    }
    uva__callback_check_producer(cb);
    inspect_at_metadata(cb, metadata);
    if (cb->tracked) {
        task_show(cb, task, ordinal);
    } else {
        uva__findings_add(&cb->seen, UVA__RULE_AT_01, ordinal);
        plain.extract_data = task_extract_nothing;
    }
    uva__callback_pass_on(cb);
    task_hide(cb, task);
    return uva__callback_end(cb);
}

static int end_arrived(struct uva__callback *cb, const char *metadata)
{
    int64_t ordinal;
    char *copy;

    uva__reporter_note(cb->stream->reporter, "on_next_task(NULL)", 0, 0);
    if (!uva__callback_begin(cb, &ordinal)) {
        uva__callback_drop(cb);
        return 0;
    }
    uva__callback_check_producer(cb);
    inspect_at_metadata(cb, metadata);
    cb->metadata = show_bytes(cb, metadata, cb->metadata_size, &copy);
    uva__callback_pass_on(cb);
    spoil_bytes(copy, cb->metadata_size);
    return uva__callback_end(cb);
}

static int handler_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                                struct ArrowAsyncTask *task,
                                const char *metadata)
{
    struct uva__callback cb;

    uva__callback_open(&cb, self,
                       task != NULL ? UVA__CALL_TASK : UVA__CALL_END);
    return task != NULL ? task_arrived(&cb, task, metadata)
                        : end_arrived(&cb, metadata);
}

/* ---- on_error ----------------------------------------------------------- */

/* Before on_schema the producer may have left anything in handler->producer:
 * only whether it is NULL is looked at. Clauses: AH-03. */
static void observe_producer_late(struct uva__callback *cb)
{
    if (uva__atomic_ptr_load(&cb->stream->peer.producer) != NULL)
        uva__callback_check_producer(cb);
    else if (cb->self->producer == NULL)
        uva__findings_add(&cb->seen, UVA__RULE_AH_03_EARLY, 0);
}

static void error_arrived(struct uva__callback *cb, const char *message,
                          const char *metadata)
{
    const size_t size = message != NULL ? strlen(message) + 1 : 0;
    char *text, *copy;

    observe_producer_late(cb);
    if (message != NULL && !uva__utf8_is_sound(message))
        uva__findings_add(&cb->seen, UVA__RULE_ER_07, 0);
    inspect_at_metadata(cb, metadata);
    cb->message = show_bytes(cb, message, size, &text);
    cb->metadata = show_bytes(cb, metadata, cb->metadata_size, &copy);
    uva__callback_pass_on(cb);
    spoil_bytes(text, size);
    spoil_bytes(copy, cb->metadata_size);
}

static void handler_on_error(struct ArrowAsyncDeviceStreamHandler *self,
                             int code, const char *message,
                             const char *metadata)
{
    struct uva__callback cb;
    int64_t ordinal;

    uva__callback_open(&cb, self, UVA__CALL_ERROR);
    uva__reporter_note(cb.stream->reporter, "on_error(%" PRId64 ")", code, 0);
    cb.code = code;
    cb.message = message;
    if (!uva__callback_begin(&cb, &ordinal)) {
        uva__callback_drop(&cb);
        return;
    }
    error_arrived(&cb, message, metadata);
    (void)uva__callback_end(&cb);
}

/* ---- release ------------------------------------------------------------ */

/* Records release. Returns whether it may be made at once; otherwise the last
 * call in flight makes it. */
static bool release_begin(struct uva__callback *cb)
{
    struct uva__checked *c = cb->stream;
    struct uva__findings findings;
    struct uva__call_context context;
    bool held, passes;

    findings.count = 0;
    uva__lock_take(&c->lock);
    held = uva__active_calls_hold_release(&c->locked.active_calls,
                                          uva__thread_self());
    context = uva__checked_enter_locked(c, &cb->active_call);
    passes = uva__checker_state_begin(&c->locked.protocol, UVA__CALL_RELEASE,
                                      &context, &findings);
    uva__checker_state_observed(&c->locked.protocol, &cb->seen, &findings);
    if (passes && held) {
        c->locked.release_due = true;
        c->locked.releaser = cb->active_call.thread;
    }
    uva__lock_drop(&c->lock);
    uva__checked_report_all(c, &findings);
    return passes && !held;
}

static void handler_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct uva__callback cb;

    uva__callback_open(&cb, self, UVA__CALL_RELEASE);
    uva__reporter_note(cb.stream->reporter, "release", 0, 0);
    if (release_begin(&cb))
        uva__checked_release_now(cb.stream);
    uva__callback_drop(&cb);
}

/* ---- the object --------------------------------------------------------- */

static const struct ArrowAsyncDeviceStreamHandler handler_functions = {
    .on_schema = handler_on_schema,
    .on_next_task = handler_on_next_task,
    .on_error = handler_on_error,
    .release = handler_release};

void uva__checked_handler_init(struct uva__checked *c,
                               struct ArrowAsyncDeviceStreamHandler *real)
{
    c->functions = &handler_functions;
    c->handler = handler_functions;
    c->handler.private_data = uva__layout_probe_address(&c->probe);
    c->real = real;
    real->producer = &c->producer;
}

struct uva__checked *
uva__checked_handler_stream(struct ArrowAsyncDeviceStreamHandler *handler)
{
    return uva__container_of(handler, struct uva__checked, handler);
}
