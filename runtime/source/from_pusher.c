/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that threads of the program push: the pusher, and the source that
 * hands them on. Batches are queued, and pushes wait for room, in
 * source/push_queue.
 *
 * Happy path:  made -> schema set -> (push) -> the loop takes -> close -> the
 *              stream ends after the batches that were pushed.
 *
 * Failures:
 * - a push: the array is released, the stream goes on;
 * - a close without a schema: the stream ends with EPROTO, unless the close had
 *   its own error.
 *
 * On cancel:   queued batches are released, pushes that wait return EPIPE, then
 *              on_closed is called. An end of the stream before the close has
 *              this effect too, and so has the release of a stream that was
 *              never started; until then, a cancel of it has no effect here.
 *
 * On close:    no callback begins any more; the last release, of the stream or
 *              of the pusher, calls free_ctx. Once the runtime is closed, a
 *              push into a stream that was never started returns EPIPE, and
 *              there is no callback. */
#include <errno.h>

#include "arrow/structs.h"
#include "base/error.h"
#include "source/push_queue.h"
#include "stream/outline.h"
#include "stream/source_kind.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"

/* The events so far: bits of `facts`. */
enum {
    FACT_CLAIMED = 1,   /* a thread is setting the schema */
    FACT_DESCRIBED = 2, /* the schema can be read */
    FACT_CLOSING = 4,   /* the pusher is closed: no callback begins */
    FACT_CLOSED = 8,    /* `failure` can be read */
    FACT_UNWANTED = 16, /* no more batches are wanted */
    FACTS_OVER = FACT_CLOSING | FACT_UNWANTED
};

/* The members of struct uva_push_source that are used later. */
struct pusher_user {
    void (*on_writable)(void *ctx, struct uva_pusher *pusher);
    void (*on_closed)(void *ctx, struct uva_pusher *pusher);
    void (*free_ctx)(void *ctx);
    void *ctx; /* owns, through free_ctx */
};

struct uva_pusher {
    struct uva__source source; /* first; its schema and outline are valid with
                                  DESCRIBED. The stream and the pusher count */
    struct pusher_user user;   /* the callbacks */
    struct uva__push_queue queue; /* batches that were pushed */
    struct uva__atomic64 facts;   /* bits FACT_... */
    struct uva__failure failure;  /* gives to the loop, with CLOSED */

    struct {                  /* the loop thread's alone */
        int64_t ordinal;      /* of the next batch */
        bool closed_reported; /* on_closed was called, or is not wanted */
    } loop;
};

static struct uva_pusher *pusher_at(struct uva__source *source)
{
    return uva__container_of(source, struct uva_pusher, source);
}

/* ---- life --------------------------------------------------------------- */

static void pusher_free(struct uva__source *source,
                        const struct uva_allocator *allocator)
{
    struct uva_pusher *p = pusher_at(source);

    uva__failure_fini(&p->failure, allocator);
    if (p->user.free_ctx != NULL)
        p->user.free_ctx(p->user.ctx);
}

/* ---- calls of the program ----------------------------------------------- */

/* 0 as long as pushed batches may be wanted, EPIPE after that. */
static int pusher_status(const struct uva_pusher *p)
{
    if (p == NULL)
        return EPIPE;
    if (!uva__rt_is_alive(p->source.rt))
        return EPERM;
    return (uva__atomic64_load(&p->facts) & FACTS_OVER) != 0 ||
                   uva__rt_is_closed(p->source.rt)
               ? EPIPE
               : 0;
}

/* The schema is copied before FACT_CLAIMED is set, so that nothing can fail
 * after that. Takes `schema` if it succeeds. */
static int pusher_describe(struct uva_pusher *pusher,
                           struct ArrowSchema *schema)
{
    struct uva__outline *outline;
    int code = pusher_status(pusher);

    if (code == 0)
        code = uva__structs_check_schema(schema, NULL);
    if (code == 0)
        code = uva__outline_acquire(pusher->source.rt, schema, &outline);
    if (code != 0)
        return code != EMSGSIZE ? code : EINVAL;
    if (uva__atomic64_or(&pusher->facts, FACT_CLAIMED) & FACT_CLAIMED) {
        uva__outline_release(outline);
        return EBUSY;
    }
    pusher->source.outline = outline;
    uva_schema_move(schema, &pusher->source.schema);
    uva__atomic64_or(&pusher->facts, FACT_DESCRIBED);
    uva__rt_wake(pusher->source.rt, &pusher->source.wakeup);
    return 0;
}

int uva_pusher_set_schema(struct uva_pusher *pusher, struct ArrowSchema *schema)
{
    const int code = pusher_describe(pusher, schema);

    if (code != 0 && schema != NULL)
        uva_schema_release(schema);
    return code;
}

/* ---- pushing ------------------------------------------------------------ */

/* The log has what a code cannot express: where the two schemas differ. */
static int push_measure(struct uva_pusher *p,
                        const struct ArrowDeviceArray *array, int64_t *bytes)
{
    struct uva_error detail = {0};

    if (array == NULL || !uva_array_is_live(array) ||
        array->device_type != p->source.device_type ||
        !(uva__atomic64_load(&p->facts) & FACT_DESCRIBED))
        return EINVAL;
    if (uva__measure_exactly(uva__outline_measure(p->source.outline), array,
                             bytes, &detail) == 0)
        return 0;
    uva__rt_log(p->source.rt, UVA_LOG_WARN, uva__label_text(p->source.label),
                NULL, "uva_pusher_push: the array does not fit the schema: %s",
                detail.message);
    return EINVAL;
}

/* Takes `array` if it returns 0 or EAGAIN. */
static int pusher_push(struct uva_pusher *pusher,
                       struct ArrowDeviceArray *array, const char *metadata,
                       int64_t timeout_ms)
{
    int64_t bytes;
    bool first = false;
    int code = pusher_status(pusher);

    if (code != 0)
        return code;
    if (timeout_ms < 0)
        return EINVAL;
    if (timeout_ms != 0 && uva__rt_must_not_wait(pusher->source.rt))
        return EDEADLK;
    code = push_measure(pusher, array, &bytes);
    if (code == 0)
        code = uva__push_queue_push(&pusher->queue, array, bytes, metadata,
                                    timeout_ms, &first);
    if (first)
        uva__meter_wake(pusher->source.meter, &pusher->source.wakeup);
    return code;
}

/* A batch that was not pushed is released here, whatever the reason is. */
int uva_pusher_push(struct uva_pusher *pusher, struct ArrowDeviceArray *array,
                    const char *metadata, int64_t timeout_ms)
{
    const int code = pusher_push(pusher, array, metadata, timeout_ms);

    if (code != 0 && code != EAGAIN && array != NULL)
        uva_array_release(array);
    return code;
}

/* A callback that runs while another thread closes may close again. */
void uva_pusher_close(struct uva_pusher *pusher, const struct uva_error *error,
                      const char *metadata)
{
    struct uva__rt *rt;

    if (pusher == NULL || !uva__rt_is_alive(pusher->source.rt))
        return;
    rt = pusher->source.rt;
    if (uva__atomic64_or(&pusher->facts, FACT_CLOSING) & FACT_CLOSING)
        return;
    if (error != NULL)
        uva__failure_set(&pusher->failure, &rt->allocator,
                         uva__error_positive(error->code), error, metadata);
    uva__atomic64_or(&pusher->facts, FACT_CLOSED);
    uva__rt_wake(rt, &pusher->source.wakeup);
    uva__source_release(&pusher->source);
}

/* ---- the loop: as a source ----------------------------------------------- */

static void pusher_start(struct uva__source *source)
{
    uva__push_queue_start(&pusher_at(source)->queue);
}

static void pusher_conclude(struct uva_pusher *p, bool described)
{
    struct uva__source *source = &p->source;

    if (p->failure.code == 0 && !described)
        uva__failure_format(
            &p->failure, &source->rt->allocator, EPROTO,
            "the pusher was closed without a schema: call "
            "uva_pusher_set_schema() first, or close it with an "
            "error");
    uva__failure_move(&p->failure, &source->failure, &source->rt->allocator);
    source->ended = source->failure.code == 0;
}

/* Reads the facts before the inbox: so with a close, all pushes before it are
 * seen. */
static void pusher_pull(struct uva__source *source, int64_t demand)
{
    struct uva_pusher *p = pusher_at(source);
    uint64_t facts = uva__atomic64_load(&p->facts);

    (void)demand; /* only the window limits the inbox */
    uva__push_queue_absorb(&p->queue);
    source->ready = p->queue.inbox.ready.count;
    uva__source_hold(source, source->ready,
                     uva__window_size(p->queue.inbox.ready.bytes));
    if (p->queue.room_due)
        uva__rt_wake(source->rt, &source->wakeup);
    source->schema_known = (facts & FACT_DESCRIBED) != 0;
    if ((facts & FACT_CLOSED) && !source->ended && source->failure.code == 0)
        pusher_conclude(p, (facts & FACT_DESCRIBED) != 0);
}

static struct uva__task *pusher_take(struct uva__source *source)
{
    struct uva_pusher *p = pusher_at(source);
    struct uva__task *task = uva__kept_pop(&p->queue.inbox.ready);

    task->producer = source->producer;
    task->info.ordinal = p->loop.ordinal++;
    source->ready--;
    return task;
}

/* No batches are wanted any more: discards them, makes pushes that wait return
 * EPIPE, and has on_closed called, unless the pusher is closed. */
static void pusher_shut(struct uva_pusher *p)
{
    if (uva__atomic64_or(&p->facts, FACT_UNWANTED) & FACT_UNWANTED)
        return;
    uva__push_queue_shut(&p->queue);
    uva__rt_wake(p->source.rt, &p->source.wakeup);
}

static void pusher_stop(struct uva__source *source)
{
    struct uva_pusher *p = pusher_at(source);

    source->ready = 0;
    uva__share_stop(&source->share);
    pusher_shut(p);
}

static void pusher_leave(struct uva__source *source)
{
    struct uva_pusher *p = pusher_at(source);

    pusher_shut(p); /* if it was never started */
    uva__source_release(source);
}

/* ---- the loop: callbacks ------------------------------------------------ */

/* Calls the one callback that is due, if any. Callbacks may close the pusher,
 * after which only the wake-up's reference keeps it; on_writable comes first,
 * so that the producer finds the batches that it pushes. */
static void pusher_posted(struct uva__source *source)
{
    struct uva_pusher *p = pusher_at(source);
    const bool room = uva__push_queue_has_room(&p->queue);
    const uint64_t facts = uva__atomic64_load(&p->facts);

    if ((facts & FACT_CLOSING) || p->loop.closed_reported)
        return;
    if (facts & FACT_UNWANTED) {
        p->loop.closed_reported = true;
        if (p->user.on_closed != NULL)
            p->user.on_closed(p->user.ctx, p);
    } else if (room && p->user.on_writable != NULL) {
        p->user.on_writable(p->user.ctx, p);
    }
}

/* ---- making one --------------------------------------------------------- */

static int pusher_check(struct uva__source_setup *setup,
                        struct uva_error *error)
{
    return setup->given != NULL
               ? 0
               : uva_error_set(error, EINVAL,
                               "from_pusher: there is no place for the pusher");
}

/* It is marked as closed until the stream is made, so that no callback comes
 * for a stream that could not be made. */
static int pusher_init(struct uva__source *source,
                       const struct uva__source_setup *setup,
                       struct uva_error *error)
{
    const struct uva_push_source *options = setup->options;
    struct uva_pusher *p = pusher_at(source);

    (void)error;
    if (options->device_type != 0)
        source->device_type = options->device_type;
    p->queue.rt = setup->rt;
    p->queue.window = setup->window;
    p->user = (struct pusher_user){options->on_writable, options->on_closed,
                                   options->free_ctx, options->ctx};
    uva__atomic64_store(&p->facts, FACT_CLOSING);
    uva__source_acquire(source); /* the pusher's */
    *(struct uva_pusher **)setup->given = p;
    return 0;
}

static const struct uva__source_kind pusher_kind = {
    .options = {UVA__OPTIONS(uva_push_source),
                UVA__OPTIONS_CTX(uva_push_source),
                UVA__OPTIONS_WINDOW(uva_push_source)},
    .size = sizeof(struct uva_pusher),
    .needs = UVA__SOURCE_SLOTS,
    .always_frees = true,
    .check = pusher_check,
    .init = pusher_init,
    .source = {.name = "pusher",
               .sized = true,
               .start = pusher_start,
               .pull = pusher_pull,
               .take = pusher_take,
               .stop = pusher_stop,
               .leave = pusher_leave,
               .free = pusher_free,
               .posted = pusher_posted},
};

struct uva_stream *uva_stream_from_pusher(struct uva_runtime *runtime,
                                          const struct uva_push_source *options,
                                          struct uva_pusher **pusher)
{
    struct uva_pusher *p = NULL;
    struct uva_stream *stream = uva__source_add(runtime, &pusher_kind, options,
                                                pusher != NULL ? &p : NULL);

    if (pusher != NULL)
        *pusher = NULL;
    if (p == NULL)
        return stream;
    if (uva_stream_status(stream, NULL) != 0) {
        uva__source_release(&p->source);
        return stream;
    }
    uva__atomic64_store(&p->facts, 0);
    *pusher = p;
    return stream;
}
