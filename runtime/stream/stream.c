/* SPDX-License-Identifier: Apache-2.0 */
/* Builds, starts, cancels and frees a stream.
 *
 * Happy path:  built -> started -> (loop) begun -> done -> its last holder
 *              releases it: freed.
 *
 * Failures:
 * - building: kept, and returned by the start;
 * - the start: without effect, it may be released.
 *
 * On cancel:   a latch is set and the loop woken; the consumer does the rest.
 * On drop:     a cancel without callbacks. */
#include "stream/stream_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "arrow/metadata.h"
#include "base/error.h"
#include "base/memory.h"
#include "stream/pausing.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"

/* Streams to return without memory or without a runtime. Never written. */
static const struct uva_stream without_memory = {.sticky = {.code = ENOMEM}};
static const struct uva_stream without_runtime = {.sticky = {.code = EINVAL}};
static const struct uva_stream in_a_child = {.sticky = {.code = EPERM}};

static struct uva_stream *stream_static(const struct uva_stream *stream)
{
    return (struct uva_stream *)stream;
}

enum { SINK_ALIGNMENT = 64 }; /* a line of the cache */

/* ---- life --------------------------------------------------------------- */

bool uva__stream_watch_end(struct uva_stream *s, struct uva__end_watch *watch)
{
    void *first = uva__atomic_ptr_load(&s->watches);

    do {
        if (first == s)
            return false;
        watch->next = first;
    } while (!uva__atomic_ptr_cas(&s->watches, &first, watch));
    return true;
}

const struct uva__failure *uva__stream_failure(const struct uva_stream *s)
{
    const int code = s->result.code;

    return code == 0 || code == ECANCELED || uva__stream_cancelled(s) != NULL
               ? NULL
               : &s->result;
}

/* The stream has ended, unless it had before. */
static void stream_notify_end(struct uva_stream *s)
{
    struct uva__end_watch *watch = uva__atomic_ptr_exchange(&s->watches, s);
    struct uva__end_watch *next;

    if ((void *)watch == s)
        return;
    for (; watch != NULL; watch = next) {
        next = watch->next;
        watch->ended(watch, uva__stream_failure(s));
    }
}

static void stream_free(struct uva__wakeup *wakeup)
{
    struct uva_stream *s = uva__container_of(wakeup, struct uva_stream, wakeup);
    const struct uva_allocator *allocator = &s->rt->allocator;
    struct uva__rt *rt = s->rt;

    stream_notify_end(s);
    if (s->tail != NULL) /* it has never begun */
        uva__producer_release(s->tail);
    uva__stream_discard_sink(s);
    uva_schema_release(&s->loop.schema);
    uva__metadata_fini(&s->loop.metadata, allocator, NULL);
    uva__failure_fini(&s->sticky, allocator);
    uva__failure_fini(&s->why, allocator);
    uva__failure_fini(&s->result, allocator);
    if (s->label != NULL)
        uva__label_release(s->label); /* the stream follows it */
    else
        uva__memory_free(allocator, s, sizeof(*s));
    uva__atomic64_sub(&rt->stats.streams_held, 1);
    uva__rt_release(rt);
}

_Static_assert(_Alignof(struct uva_stream) <= _Alignof(struct uva__label),
               "it lies behind its label");

/* The sink follows its stream, if it has room there. */
static bool sink_lies_behind(const struct uva__sink_ops *ops)
{
    return ops->size <= UVA__STREAM_SINK_ROOM && !ops->shared;
}

int uva__stream_make_sink(struct uva_stream *s, const struct uva__sink_ops *ops,
                          struct uva_error *error)
{
    const int code = uva__stream_may_start(s, error);

    if (code != 0)
        return code;
    s->sink = sink_lies_behind(ops)
                  ? memset(s + 1, 0, ops->size)
                  : uva__memory_new_aligned(&s->rt->allocator, ops->size,
                                            SINK_ALIGNMENT);
    if (s->sink == NULL)
        return uva_error_set(error, ENOMEM, "no memory to start the stream");
    s->sink->ops = ops;
    return 0;
}

void uva__stream_discard_sink(struct uva_stream *s)
{
    struct uva__sink *sink = s->sink;
    const struct uva__sink_ops *ops;

    if (sink == NULL)
        return;
    ops = sink->ops;
    ops->free(s);
    s->sink = NULL;
    if (!sink_lies_behind(ops))
        uva__memory_free(&s->rt->allocator, sink, ops->size);
}

static bool stream_on_wakeup(struct uva__wakeup *wakeup);

static const struct uva__wakeup_ops stream_wakeup_ops = {stream_on_wakeup,
                                                         stream_free};

static void stream_abort(struct uva__open_object *object)
{
    struct uva_stream *s =
        uva__container_of(object, struct uva_stream, loop.object);

    uva_stream_cancel(s, ECANCELED, "the runtime was closed");
    uva__rt_wake(s->rt, &s->wakeup); /* also if it was cancelled before */
}

static void stream_time_out(struct uva__open_object *object)
{
    struct uva_stream *s =
        uva__container_of(object, struct uva_stream, loop.object);

    uva_stream_cancel(s, ETIMEDOUT, "the deadline of the drain has passed");
}

static struct uva_stream *stream_init(struct uva_stream *s, struct uva__rt *rt)
{
    s->rt = uva__rt_acquire(rt);
    uva__atomic64_store(&s->holders, 1);
    uva__wakeup_init(&s->wakeup, &stream_wakeup_ops, 1);
    s->loop.object.abort = stream_abort;
    s->loop.object.time_out = stream_time_out;
    uva__atomic64_add(&rt->stats.streams_held, 1);
    return s;
}

struct uva_stream *uva__stream_new(struct uva__source *source, const char *name)
{
    struct uva__label *label = uva__label_new(
        source->rt, sizeof(struct uva_stream), UVA__STREAM_SINK_ROOM);
    struct uva_stream *s;

    if (label == NULL) {
        uva__source_leave(source);
        return stream_static(&without_memory);
    }
    s = stream_init(uva__label_behind(label), source->rt);
    s->label = label;
    source->label = uva__label_acquire(label);
    if (name != NULL)
        source->name = uva__label_keep(label, name);
    if (source->name != NULL)
        s->tail = uva__producer_new(source);
    if (s->tail != NULL)
        return s;
    uva__source_leave(source);
    uva__wakeup_release(&s->wakeup);
    return stream_static(&without_memory);
}

static struct uva_stream *stream_failed(struct uva__rt *rt,
                                        const struct uva_error *error)
{
    struct uva_stream *s;

    if (!uva__rt_is_alive(rt))
        return stream_static(&in_a_child);
    s = uva__memory_new(&rt->allocator, sizeof(*s));
    if (s == NULL)
        return stream_static(&without_memory);
    (void)stream_init(s, rt);
    uva__failure_set(&s->sticky, &rt->allocator, error->code, error, NULL);
    return s;
}

struct uva_stream *uva__stream_failed(struct uva_runtime *runtime,
                                      const struct uva_error *error)
{
    struct uva__rt *rt = uva__loop_rt(runtime);

    return rt != NULL ? stream_failed(rt, error)
                      : stream_static(&without_runtime);
}

struct uva_stream *uva_stream_from_error(struct uva_runtime *runtime,
                                         const struct uva_error *error)
{
    static const struct uva_error unknown = {
        .code = EINVAL, .message = "from_error: there is no error"};

    return uva__stream_failed(
        runtime, error != NULL && error->code > 0 ? error : &unknown);
}

/* ---- building ----------------------------------------------------------- */

int uva__stream_building(const struct uva_stream *s)
{
    if (s == NULL)
        return EINVAL;
    if (s->sticky.code != 0)
        return s->sticky.code;
    if (!uva__rt_is_alive(s->rt))
        return EPERM;
    return uva__atomic64_load(&s->state) == UVA__STREAM_BUILDING ? 0 : EBUSY;
}

int uva__stream_fail(struct uva_stream *s, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    uva__failure_format_args(&s->sticky, &s->rt->allocator, code, format, args);
    va_end(args);
    return s->sticky.code;
}

int uva__stream_wrap(struct uva_stream *s,
                     struct uva__source *(*wrap)(struct uva__producer *above,
                                                 const void *options),
                     const void *options)
{
    struct uva__source *source = wrap(s->tail, options);

    if (source != NULL) { /* the stage owns the old tail now */
        s->tail = uva__producer_new(source);
        if (s->tail != NULL)
            return 0;
        uva__source_leave(source);
    }
    return uva__stream_fail(s, ENOMEM, "no memory for another stage");
}

int uva_stream_set_name(struct uva_stream *stream, const char *name)
{
    int code = uva__stream_building(stream);

    if (code != 0)
        return code;
    if (name == NULL)
        return uva__stream_fail(stream, EINVAL, "set_name: the name is NULL");
    return uva__label_set(stream->label, name) == 0
               ? 0
               : uva__stream_fail(stream, ENOMEM, "no memory for the name");
}

int uva_stream_set_priority(struct uva_stream *stream, int32_t priority)
{
    const int code = uva__stream_building(stream);

    if (code == 0)
        stream->priority = priority;
    return code;
}

/* Reports to the trace the events of the stream as a whole. */
static void stream_note(struct uva_stream *s, enum uva_trace_kind kind,
                        int64_t value)
{
    if (s->label != NULL)
        uva__point_instant(&s->label->consumer, kind, value);
}

/* ---- start -------------------------------------------------------------- */

void uva__stream_name_error(const struct uva_stream *s, struct uva_error *error)
{
    const char *name = uva__label_whole(s->label);

    if (name != NULL && error != NULL)
        uva__error_prefix(error, name);
}

static int stream_check(const struct uva_stream *s, struct uva_error *error)
{
    if (s == NULL)
        return uva_error_set(error, EINVAL, "the stream is NULL");
    if (s == &without_runtime)
        return uva_error_set(error, EINVAL,
                             "the stream was made without a runtime");
    if (s->sticky.code != 0)
        return uva__failure_get(&s->sticky, error);
    if (!uva__rt_is_alive(s->rt))
        return uva_error_set(error, EPERM,
                             "a forked child cannot use its parent's streams");
    if (uva__atomic64_load(&s->state) != UVA__STREAM_BUILDING)
        return uva_error_set(error, EBUSY, "the stream was started before");
    if (uva__atomic64_load(&s->latch) == UVA__CANCEL_LATCH_SET)
        return uva__failure_get(&s->why, error);
    return 0;
}

struct uva_stream *uva__stream_failed_like(const struct uva_stream *s)
{
    struct uva_error error = {0};

    if (s == NULL)
        return stream_static(&without_runtime);
    if (s->rt == NULL)
        return stream_static(s);
    (void)stream_check(s, &error);
    return stream_failed(s->rt, &error);
}

int uva__stream_may_start(const struct uva_stream *s, struct uva_error *error)
{
    const int code = stream_check(s, error);

    if (code != 0 && s != NULL)
        uva__stream_name_error(s, error);
    return code;
}

static int stream_enter(struct uva_stream *s, struct uva_error *error)
{
    const int code = uva__stream_may_start(s, error);

    if (code != 0 || uva__rt_stream_begin(s->rt))
        return code;
    (void)uva_error_set(error, ESHUTDOWN,
                        uva__rt_is_closing(s->rt) ? "the runtime is closing"
                                                  : "the runtime is draining");
    uva__stream_name_error(s, error);
    return ESHUTDOWN;
}

static void stream_keep_loop(struct uva_stream *s)
{
    if (!s->loop.keeps_loop)
        uva__loop_ref_stream(s->rt);
    s->loop.keeps_loop = true;
}

int uva__stream_start(struct uva_stream *s, struct uva_error *error)
{
    const int code = stream_enter(s, error);

    if (code != 0) {
        uva__stream_discard_sink(s);
        return code;
    }
    uva__wakeup_acquire(&s->wakeup); /* the stream's own */
    uva__wakeup_acquire(&s->wakeup); /* this call's: a stream that has started
                                        may end, and its holders release it */
    if (uva__rt_on_loop(s->rt))
        stream_keep_loop(s);
    uva__atomic64_exchange(&s->state, UVA__STREAM_STARTED);
    uva__rt_wake(s->rt, &s->wakeup);
    uva__wakeup_release(&s->wakeup);
    return 0;
}

static void stream_begin(struct uva_stream *s)
{
    uva__rt_log(s->rt, UVA_LOG_INFO, uva__stream_name(s), NULL, "opened by %s",
                s->sink->ops->name);
    uva__point_set_name(&s->label->consumer, s->sink->ops->name);
    s->loop.begun = true;
    stream_keep_loop(s);
    uva__loop_track(s->rt, &s->loop.object);
    s->tail->priority = s->priority;
    s->sink->ops->begin(s);
}

/* The cancel of a stream that was given away fails whatever draws on it. */
static void stream_cancel_given(struct uva_stream *s)
{
    const struct uva__failure *why = uva__stream_cancelled(s);
    struct uva__failure copy = {0};

    if (!s->loop.begun || s->tail == NULL || why == NULL)
        return;
    uva__failure_copy(why, &copy, &s->rt->allocator);
    uva__producer_abort(s->tail, &copy);
}

static bool stream_on_wakeup(struct uva__wakeup *wakeup)
{
    struct uva_stream *s = uva__container_of(wakeup, struct uva_stream, wakeup);
    const uint64_t state = uva__atomic64_load(&s->state);

    if (state == UVA__STREAM_GIVEN)
        stream_cancel_given(s);
    if (state == UVA__STREAM_GIVEN || state == UVA__STREAM_BUILDING)
        return false;
    if (!s->loop.begun)
        stream_begin(s);
    s->sink->ops->on_wakeup(s);
    return false;
}

void uva__stream_open_given(struct uva_stream *s)
{
    assert(uva__atomic64_load(&s->state) == UVA__STREAM_GIVEN);
    s->loop.begun = true;
}

/* ---- the run ------------------------------------------------------------ */

int uva__stream_take_schema(struct uva_stream *s,
                            const struct ArrowAsyncProducer *from,
                            struct ArrowSchema *schema)
{
    int code = uva__metadata_copy(&s->rt->allocator, from->additional_metadata,
                                  &s->loop.metadata);

    if (code == ENOMEM)
        return code;
    uva_schema_move(schema, &s->loop.schema);
    s->loop.info = (struct uva_stream_info){
        .stream = s,
        .schema = &s->loop.schema,
        .metadata = s->loop.metadata.block,
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

const struct uva__failure *uva__stream_cancelled(const struct uva_stream *s)
{
    return uva__atomic64_load(&s->latch) == UVA__CANCEL_LATCH_SET ? &s->why
                                                                  : NULL;
}

static void stream_log_end(struct uva_stream *s)
{
    const char *name = uva__stream_name(s);

    if (s->result.code == 0)
        uva__rt_log(s->rt, UVA_LOG_INFO, name, NULL, "closed: complete");
    else
        uva__rt_log(s->rt, UVA_LOG_INFO, name, NULL, "closed: %s: %s",
                    uva_error_name(s->result.code),
                    uva__failure_message(&s->result));
}

void uva__stream_settle(struct uva_stream *s, int code,
                        const struct uva_error *error)
{
    if (code != 0)
        uva__failure_set(&s->result, &s->rt->allocator, code, error, NULL);
    uva__atomic64_store(&s->verdict, (uint64_t)(int64_t)s->result.code);
    stream_notify_end(s);
}

void uva__stream_done(struct uva_stream *s, int code,
                      const struct uva_error *error)
{
    struct uva__rt *rt = s->rt;

    uva__stream_settle(s, code, error);
    stream_log_end(s);
    stream_note(s, UVA_TRACE_END, s->result.code);
    uva__atomic64_exchange(&s->state, UVA__STREAM_DONE);
    s->tail = NULL;
    uva__loop_untrack(rt, &s->loop.object);
    uva__loop_unref_stream(rt); /* since it began */
    uva__rt_stream_end(rt);
    uva__wakeup_release(&s->wakeup);
}

/* ---- control ------------------------------------------------------------ */

static bool stream_is_usable(const struct uva_stream *s)
{
    return s != NULL && s->rt != NULL && uva__rt_is_alive(s->rt);
}

struct uva_stream *uva_stream_acquire(struct uva_stream *stream)
{
    if (stream == NULL || stream->rt == NULL)
        return stream;
    uva__wakeup_acquire(&stream->wakeup);
    uva__atomic64_add(&stream->holders, 1);
    return stream;
}

void uva_stream_release(struct uva_stream *stream)
{
    if (!stream_is_usable(stream))
        return; /* a forked child must not free its parent's objects */
    if (uva__atomic64_sub(&stream->holders, 1) == 1 &&
        uva__atomic64_load(&stream->state) == UVA__STREAM_STARTED &&
        stream->sink->ops->cancel_without_holder)
        uva_stream_cancel(stream, 0, "its last holder has released it");
    uva__wakeup_release(&stream->wakeup);
}

void uva_stream_cancel(struct uva_stream *stream, int code, const char *reason)
{
    uint64_t open = UVA__CANCEL_LATCH_OPEN;

    if (!stream_is_usable(stream) ||
        uva__atomic64_load(&stream->state) == UVA__STREAM_DONE ||
        !uva__atomic64_cas(&stream->latch, &open, UVA__CANCEL_LATCH_SETTING))
        return;
    uva__failure_format(&stream->why, &stream->rt->allocator,
                        code != 0 ? code : ECANCELED, "%s",
                        reason != NULL ? reason : "cancelled");
    uva__atomic64_exchange(&stream->latch, UVA__CANCEL_LATCH_SET);
    stream_note(stream, UVA_TRACE_CANCEL, 0);
    uva__rt_wake(stream->rt, &stream->wakeup);
}

void uva_stream_drop(struct uva_stream *stream)
{
    if (!stream_is_usable(stream)) {
        uva_stream_release(stream);
        return;
    }
    if (uva__rt_on_loop(stream->rt))
        stream->loop.silent = true;
    uva_stream_cancel(stream, 0, "dropped");
    uva__rt_wake(stream->rt, &stream->wakeup);
    uva_stream_release(stream);
}

bool uva_stream_is_dropped(const struct uva_stream *stream)
{
    return stream_is_usable(stream) && stream->loop.silent;
}

struct uva_runtime *uva_stream_get_runtime(const struct uva_stream *stream)
{
    return stream_is_usable(stream) ? stream->rt->loop.runtime : NULL;
}

void uva_stream_pause(struct uva_stream *stream)
{
    if (stream_is_usable(stream) && uva__pausing_pause(&stream->pausing))
        uva__rt_wake(stream->rt, &stream->wakeup);
}

void uva_stream_resume(struct uva_stream *stream)
{
    enum uva__pausing before;

    if (!stream_is_usable(stream))
        return;
    before = uva__pausing_resume(&stream->pausing);
    if (before != UVA__PAUSING_RESUMED)
        stream_note(stream, UVA_TRACE_RESUME, 0);
    if (before == UVA__PAUSING_PAUSED)
        uva__rt_wake(stream->rt, &stream->wakeup);
}

int uva_stream_status(const struct uva_stream *stream, struct uva_error *error)
{
    int code;

    if (stream == NULL || stream->rt == NULL || stream->sticky.code != 0)
        return uva__stream_may_start(stream, error);
    code = (int)(int64_t)uva__atomic64_load(&stream->verdict);
    if (code == 0)
        return 0;
    (void)uva__failure_get(&stream->result, error);
    uva__stream_name_error(stream, error);
    return code;
}
