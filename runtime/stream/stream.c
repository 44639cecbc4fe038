/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  built -> started -> (loop) begun -> done -> released by its last
 *              holder: freed.
 *
 * What can fail:
 * - building: kept, and returned by the start;
 * - the start: nothing has happened, it may be released.
 *
 * On cancel:   a latch is set and the loop woken; the consumer does the rest.
 * On drop:     a cancel without callbacks. */
#include "stream/stream_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "arrow/metadata.h"
#include "base/error.h"
#include "uvarrow/arrow.h"

enum { NAME_SIZE = 64 };

/* Streams to return without memory or without a runtime. Never written. */
static const struct uva_stream without_memory = {.sticky = {.code = ENOMEM}};
static const struct uva_stream without_runtime = {.sticky = {.code = EINVAL}};
static const struct uva_stream in_a_child = {.sticky = {.code = EPERM}};

static struct uva_stream *flow_static(const struct uva_stream *stream)
{
    return (struct uva_stream *)stream;
}

/* ---- life --------------------------------------------------------------- */

static void flow_free(struct uva__node *node)
{
    struct uva_stream *s = uva__container_of(node, struct uva_stream, node);
    const struct uva_allocator *allocator = &s->hub->allocator;
    struct uva__hub *hub = s->hub;

    if (s->tail != NULL) /* it has never begun */
        uva__producer_release(s->tail);
    if (s->terminal != NULL)
        s->terminal->ops->free(s);
    uva_schema_release(&s->loop.schema);
    uva__memory_free(allocator, s->loop.metadata, s->loop.metadata_size);
    uva__failure_fini(&s->sticky, allocator);
    uva__failure_fini(&s->why, allocator);
    uva__failure_fini(&s->result, allocator);
    uva__memory_free(allocator, s->name, NAME_SIZE);
    uva__memory_free(allocator, s, sizeof(*s));
    uva__word_sub(&hub->counts.streams_held, 1);
    uva__hub_release(hub);
}

static bool flow_visit(struct uva__node *node);

static const struct uva__node_ops flow_node_ops = {flow_visit, flow_free};

static void flow_evict(struct uva__tenant *tenant)
{
    struct uva_stream *s =
        uva__container_of(tenant, struct uva_stream, loop.tenant);

    uva_stream_cancel(s, ECANCELED, "the runtime was closed");
    uva__hub_post(s->hub, &s->node); /* also if it was cancelled before */
}

static struct uva_stream *flow_alloc(struct uva__hub *hub)
{
    struct uva_stream *s = uva__memory_new(&hub->allocator, sizeof(*s));

    if (s == NULL)
        return NULL;
    s->hub = uva__hub_acquire(hub);
    uva__word_store(&s->holders, 1);
    uva__node_init(&s->node, &flow_node_ops, 1);
    s->loop.tenant.evict = flow_evict;
    uva__word_add(&hub->counts.streams_held, 1);
    return s;
}

struct uva_stream *uva__flow_new(struct uva__feed *feed)
{
    struct uva_stream *s = flow_alloc(feed->hub);

    if (s == NULL) {
        feed->ops->leave(feed);
        return flow_static(&without_memory);
    }
    s->tail = uva__producer_new(feed);
    if (s->tail != NULL)
        return s;
    feed->ops->leave(feed);
    uva__node_release(&s->node);
    return flow_static(&without_memory);
}

struct uva_stream *uva__flow_failed(struct uva_runtime *runtime,
                                    const struct uva_error *error)
{
    struct uva__hub *hub = uva__loop_hub(runtime);
    struct uva_stream *s;

    if (hub == NULL)
        return flow_static(&without_runtime);
    if (!uva__hub_is_alive(hub))
        return flow_static(&in_a_child);
    s = flow_alloc(hub);
    if (s == NULL)
        return flow_static(&without_memory);
    uva__failure_set(&s->sticky, &hub->allocator, error->code, error, NULL);
    return s;
}

/* ---- building ----------------------------------------------------------- */

int uva__flow_building(const struct uva_stream *s)
{
    if (s == NULL)
        return EINVAL;
    if (s->sticky.code != 0)
        return s->sticky.code;
    if (!uva__hub_is_alive(s->hub))
        return EPERM;
    return uva__word_load(&s->stage) == UVA__FLOW_BUILDING ? 0 : EBUSY;
}

int uva__flow_fail(struct uva_stream *s, int code, const char *format, ...)
{
    struct uva_error error = {0};
    va_list args;

    va_start(args, format);
    (void)vsnprintf(error.message, sizeof(error.message), format, args);
    va_end(args);
    uva__failure_set(&s->sticky, &s->hub->allocator, code, &error, NULL);
    return s->sticky.code;
}

int uva__flow_wrap(struct uva_stream *s,
                   struct uva__feed *(*wrap)(struct uva__producer *above,
                                             const void *how),
                   const void *how)
{
    struct uva__feed *feed = wrap(s->tail, how);
    struct uva__producer *tail;

    if (feed == NULL)
        return uva__flow_fail(s, ENOMEM, "no memory for another stage");
    tail = uva__producer_new(feed);
    if (tail == NULL)
        feed->ops->leave(feed);
    s->tail = tail; /* what was there is the feed's now */
    return tail != NULL
               ? 0
               : uva__flow_fail(s, ENOMEM, "no memory for another stage");
}

int uva_stream_set_name(struct uva_stream *stream, const char *name)
{
    int code = uva__flow_building(stream);
    size_t size;

    if (code != 0)
        return code;
    if (name == NULL)
        return uva__flow_fail(stream, EINVAL, "set_name: the name is NULL");
    if (stream->name == NULL)
        stream->name = uva__memory_new(&stream->hub->allocator, NAME_SIZE);
    if (stream->name == NULL)
        return uva__flow_fail(stream, ENOMEM, "no memory for the name");
    size = uva__status_clip(name, strlen(name), NAME_SIZE - 1);
    memcpy(stream->name, name, size);
    stream->name[size] = '\0';
    return 0;
}

/* ---- start -------------------------------------------------------------- */

int uva__flow_may_start(const struct uva_stream *s, struct uva_error *error)
{
    if (s == NULL)
        return uva_error_set(error, EINVAL, "the stream is NULL");
    if (s == &without_runtime)
        return uva_error_set(error, EINVAL,
                             "the stream was made without a runtime");
    if (s->sticky.code != 0)
        return uva__failure_get(&s->sticky, error);
    if (!uva__hub_is_alive(s->hub))
        return uva_error_set(error, EPERM,
                             "a forked child cannot use its parent's streams");
    if (uva__word_load(&s->stage) != UVA__FLOW_BUILDING)
        return uva_error_set(error, EBUSY, "the stream was started before");
    if (uva__word_load(&s->latch) == UVA__LATCH_SET)
        return uva__failure_get(&s->why, error);
    return 0;
}

int uva__flow_start(struct uva_stream *s, struct uva__terminal *terminal,
                    struct uva_error *error)
{
    int code = uva__flow_may_start(s, error);

    if (code != 0)
        return code;
    if (!uva__hub_enter(s->hub))
        return uva_error_set(error, ESHUTDOWN, "the runtime is closing");
    s->terminal = terminal;
    uva__node_acquire(&s->node); /* the stream's own */
    uva__word_add(&s->hub->counts.streams_open, 1);
    if (uva__hub_on_loop(s->hub)) {
        s->loop.held = true;
        uva__loop_hold(s->hub);
    }
    uva__word_exchange(&s->stage, UVA__FLOW_STARTED);
    uva__hub_post(s->hub, &s->node);
    return 0;
}

static void flow_begin(struct uva_stream *s)
{
    s->loop.begun = true;
    if (!s->loop.held)
        uva__loop_hold(s->hub);
    s->loop.held = true;
    uva__loop_move_in(s->hub, &s->loop.tenant);
    s->terminal->ops->begin(s);
}

static bool flow_visit(struct uva__node *node)
{
    struct uva_stream *s = uva__container_of(node, struct uva_stream, node);

    if (uva__word_load(&s->stage) == UVA__FLOW_BUILDING)
        return false;
    if (!s->loop.begun)
        flow_begin(s);
    s->terminal->ops->visit(s);
    return false;
}

/* ---- the run ------------------------------------------------------------ */

int uva__flow_take_schema(struct uva_stream *s,
                          const struct ArrowAsyncProducer *from,
                          struct ArrowSchema *schema)
{
    int code = uva__metadata_copy(&s->hub->allocator, from->additional_metadata,
                                  &s->loop.metadata, &s->loop.metadata_size);

    if (code == ENOMEM)
        return code;
    uva_schema_move(schema, &s->loop.schema);
    s->loop.info = (struct uva_stream_info){
        .stream = s,
        .schema = &s->loop.schema,
        .metadata = s->loop.metadata,
        .device_type = from->device_type,
    };
    return 0;
}

const struct uva_stream_info *
uva_stream_get_info(const struct uva_stream *stream)
{
    return stream != NULL && stream->loop.info.schema != NULL
               ? &stream->loop.info
               : NULL;
}

const struct uva__failure *uva__flow_cancelled(const struct uva_stream *s)
{
    return uva__word_load(&s->latch) == UVA__LATCH_SET ? &s->why : NULL;
}

void uva__flow_unhold(struct uva_stream *s)
{
    if (s->loop.held)
        uva__loop_unhold(s->hub);
    s->loop.held = false;
}

void uva__flow_done(struct uva_stream *s, int code,
                    const struct uva_error *error)
{
    struct uva__hub *hub = s->hub;

    if (code != 0)
        uva__failure_set(&s->result, &hub->allocator, code, error, NULL);
    uva__word_store(&s->verdict, (uint64_t)(int64_t)s->result.code);
    uva__word_exchange(&s->stage, UVA__FLOW_DONE);
    s->tail = NULL;
    uva__loop_move_out(hub, &s->loop.tenant);
    uva__word_sub(&hub->counts.streams_open, 1);
    uva__flow_unhold(s);
    uva__hub_leave(hub);
    uva__node_release(&s->node);
}

/* ---- control ------------------------------------------------------------ */

static bool flow_is_usable(const struct uva_stream *s)
{
    return s != NULL && s->hub != NULL && uva__hub_is_alive(s->hub);
}

struct uva_stream *uva_stream_acquire(struct uva_stream *stream)
{
    if (stream == NULL || stream->hub == NULL)
        return stream;
    uva__node_acquire(&stream->node);
    uva__word_add(&stream->holders, 1);
    return stream;
}

void uva_stream_release(struct uva_stream *stream)
{
    if (!flow_is_usable(stream))
        return; /* a forked child leaves its parent's things alone */
    if (uva__word_sub(&stream->holders, 1) == 1 &&
        uva__word_load(&stream->stage) == UVA__FLOW_STARTED &&
        stream->terminal->ops->lonely)
        uva_stream_cancel(stream, 0, "its last holder has let go of it");
    uva__node_release(&stream->node);
}

void uva_stream_cancel(struct uva_stream *stream, int code, const char *reason)
{
    uint64_t open = UVA__LATCH_OPEN;

    if (!flow_is_usable(stream) ||
        uva__word_load(&stream->stage) == UVA__FLOW_DONE ||
        !uva__word_cas(&stream->latch, &open, UVA__LATCH_SETTING))
        return;
    uva__failure_say(&stream->why, &stream->hub->allocator,
                     code != 0 ? code : ECANCELED, "%s",
                     reason != NULL ? reason : "cancelled");
    uva__word_exchange(&stream->latch, UVA__LATCH_SET);
    uva__hub_post(stream->hub, &stream->node);
}

void uva_stream_drop(struct uva_stream *stream)
{
    if (!flow_is_usable(stream)) {
        uva_stream_release(stream);
        return;
    }
    if (uva__hub_on_loop(stream->hub))
        stream->loop.silent = true;
    uva_stream_cancel(stream, 0, "dropped");
    uva__hub_post(stream->hub, &stream->node);
    uva_stream_release(stream);
}

void uva_stream_resume(struct uva_stream *stream)
{
    if (!flow_is_usable(stream))
        return;
    if (uva__word_exchange(&stream->resumed, 1) == 0)
        uva__hub_post(stream->hub, &stream->node);
}

int uva_stream_status(const struct uva_stream *stream, struct uva_error *error)
{
    int code;

    if (stream == NULL || stream->hub == NULL || stream->sticky.code != 0)
        return uva__flow_may_start(stream, error);
    code = (int)(int64_t)uva__word_load(&stream->verdict);
    return code != 0 ? uva__failure_get(&stream->result, error) : 0;
}
