/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that threads of the program push: the pusher, and the source that
 * hands them on. How batches queue and pushes wait for room is in pusher_queue.
 *
 * Happy path:  made -> schema set -> (push) -> the loop takes -> close -> the
 *              stream ends after the batches that were pushed.
 *
 * What can fail:
 * - a push: the array is still the caller's, the stream goes on;
 * - a close without a schema: the stream ends with EPROTO, unless the close had
 * an error of its own.
 *
 * On cancel, or when the stream ends before the close: queued batches are
 * released, pushes that wait return EPIPE, then on_gone is called. When a
 * stream is released that was never started: the same happens. Until then a
 *   cancel before the start has no effect here.
 * When the runtime closes and the stream was never started: EPIPE from then on,
 * and no callback. On close:    no callback begins any more. free_ctx is called
 * by the last of stream and pusher to release, on its thread. */
#include <errno.h>
#include <string.h>

#include "source/push_queue.h"
#include "arrow/layout.h"
#include "base/memory.h"
#include "base/error.h"
#include "arrow/structs.h"
#include "stream/stream_impl.h"
#include "uvarrow/adapters.h"
#include "uvarrow/arrow.h"

/* What has happened so far: bits of `facts`. */
enum {
    FACT_CLAIMED = 1,   /* a thread is setting the schema */
    FACT_DESCRIBED = 2, /* the schema can be read */
    FACT_CLOSING = 4,   /* the pusher is closed: no callback begins */
    FACT_CLOSED = 8,    /* `failure` can be read */
    FACT_GONE = 16,     /* no batches are wanted any more */
    FACTS_OVER = FACT_CLOSING | FACT_GONE
};

/* The members of struct uva_push_source that are kept. */
struct pusher_user {
    void (*on_room)(void *ctx, struct uva_pusher *pusher);
    void (*on_gone)(void *ctx, struct uva_pusher *pusher);
    void (*free_ctx)(void *ctx);
    void *ctx; /* owns, through free_ctx */
};

struct uva_pusher {
    struct uva__feed feed;   /* first; its schema is valid with DESCRIBED */
    struct pusher_user user; /* the callbacks */
    struct uva__pusher_queue queue; /* batches that were pushed */
    struct uva__node node;          /* posted when the loop has to look; counts
                                       stream, pusher and wake-ups */
    struct uva__word facts;         /* bits FACT_... */
    struct ArrowSchema schema;      /* owns: to check with, once DESCRIBED */
    struct uva__failure failure;    /* gives to the loop, with CLOSED */

    struct {             /* the loop thread's alone */
        int64_t ordinal; /* of the next batch */
        bool running;    /* started and not stopped */
        bool gone_told;  /* on_gone was called, or is not wanted */
    } loop;
};

static struct uva_pusher *pusher_at(struct uva__feed *feed)
{
    return uva__container_of(feed, struct uva_pusher, feed);
}

/* ---- life --------------------------------------------------------------- */

static void pusher_free(struct uva__node *node)
{
    struct uva_pusher *p = uva__container_of(node, struct uva_pusher, node);
    struct uva__hub *hub = uva__hub_acquire(p->feed.hub);
    const struct pusher_user user = p->user;

    uva_schema_release(&p->schema);
    uva__failure_fini(&p->failure, &hub->allocator);
    uva__pusher_queue_fini(&p->queue);
    uva__feed_fini(&p->feed);
    uva__memory_free(&hub->allocator, p, sizeof(*p));
    uva__hub_release(hub);
    if (user.free_ctx != NULL)
        user.free_ctx(user.ctx);
}

/* ---- the writer --------------------------------------------------------- */

/* 0 as long as pushed batches may be wanted, EPIPE after that. */
static int pusher_look(const struct uva_pusher *p)
{
    if (p == NULL)
        return EPIPE;
    if (!uva__hub_is_alive(p->feed.hub))
        return EPERM;
    return (uva__word_load(&p->facts) & FACTS_OVER) != 0 ||
                   uva__hub_is_shut(p->feed.hub)
               ? EPIPE
               : 0;
}

/* The schema is copied before FACT_CLAIMED is set, so that nothing can fail
 * after that. */
int uva_pusher_set_schema(struct uva_pusher *pusher, struct ArrowSchema *schema)
{
    struct ArrowSchema copy;
    int code = pusher_look(pusher);

    if (code == 0)
        code = uva__structs_check_schema(schema, NULL);
    if (code == 0)
        code = uva__structs_copy_schema(&pusher->feed.hub->allocator, schema,
                                        &copy);
    if (code != 0)
        return code != EMSGSIZE ? code : EINVAL;
    if (uva__word_or(&pusher->facts, FACT_CLAIMED) & FACT_CLAIMED) {
        uva_schema_release(&copy);
        return EBUSY;
    }
    uva_schema_move(&copy, &pusher->schema);
    uva_schema_move(schema, &pusher->feed.schema);
    uva__word_or(&pusher->facts, FACT_DESCRIBED);
    uva__hub_post(pusher->feed.hub, &pusher->node);
    return 0;
}

/* The log has what a code cannot express: where the two schemas differ. */
static int push_measure(struct uva_pusher *p,
                        const struct ArrowDeviceArray *array, int64_t *bytes)
{
    struct uva_error detail = {0};

    if (array == NULL || !uva_array_is_live(array) ||
        array->device_type != p->feed.device_type ||
        !(uva__word_load(&p->facts) & FACT_DESCRIBED))
        return EINVAL;
    if (uva__layout_measure(&p->schema, array, bytes, &detail) != EINVAL)
        return 0; /* the size of an unknown format is not known */
    uva__hub_log(p->feed.hub, UVA_LOG_WARN, NULL, NULL,
                 "uva_pusher_push: the array does not fit the schema: %s",
                 detail.message);
    return EINVAL;
}

int uva_pusher_push(struct uva_pusher *pusher, struct ArrowDeviceArray *array,
                    const char *metadata, int64_t timeout_ms)
{
    int64_t bytes = 0;
    int code = pusher_look(pusher);

    if (code != 0)
        return code;
    if (timeout_ms < UVA_FOREVER)
        return EINVAL;
    if (timeout_ms != 0 && uva__hub_must_not_wait(pusher->feed.hub))
        return EDEADLK;
    code = push_measure(pusher, array, &bytes);
    if (code != 0)
        return code;
    return uva__pusher_queue_push(&pusher->queue, array, bytes, metadata,
                                  timeout_ms);
}

/* A callback that runs while another thread closes may close again. */
void uva_pusher_close(struct uva_pusher *pusher, const struct uva_error *error,
                      const char *metadata)
{
    struct uva__hub *hub;

    if (pusher == NULL || !uva__hub_is_alive(pusher->feed.hub))
        return;
    hub = pusher->feed.hub;
    if (uva__word_or(&pusher->facts, FACT_CLOSING) & FACT_CLOSING)
        return;
    if (error != NULL)
        uva__failure_set(&pusher->failure, &hub->allocator,
                         uva__status_positive(error->code), error, metadata);
    uva__word_or(&pusher->facts, FACT_CLOSED);
    uva__hub_post(hub, &pusher->node);
    uva__node_release(&pusher->node);
}

/* ---- the loop: as a source ----------------------------------------------- */

static void pusher_start(struct uva__feed *feed)
{
    pusher_at(feed)->loop.running = true;
    uva__pusher_queue_start(&pusher_at(feed)->queue);
}

static void pusher_conclude(struct uva_pusher *p, bool described)
{
    struct uva__feed *feed = &p->feed;

    if (p->failure.code == 0 && !described)
        uva__failure_say(&p->failure, &feed->hub->allocator, EPROTO,
                         "the pusher was closed without a schema: call "
                         "uva_pusher_set_schema() first, or close it with an "
                         "error");
    uva__failure_move(&p->failure, &feed->failure, &feed->hub->allocator);
    feed->ended = feed->failure.code == 0;
}

/* Reads the facts before the queue: so with a close, all pushes before it are
 * seen. */
static void pusher_pull(struct uva__feed *feed, int64_t demand)
{
    struct uva_pusher *p = pusher_at(feed);
    uint64_t facts = uva__word_load(&p->facts);

    (void)demand; /* only the window limits the queue */
    feed->ready = uva__pusher_queue_absorb(&p->queue);
    feed->schema_known = (facts & FACT_DESCRIBED) != 0;
    if ((facts & FACT_CLOSED) && !feed->ended && feed->failure.code == 0)
        pusher_conclude(p, (facts & FACT_DESCRIBED) != 0);
}

static struct uva__task *pusher_take(struct uva__feed *feed)
{
    struct uva_pusher *p = pusher_at(feed);
    struct uva__task *task = uva__producer_take_task(feed->producer);

    if (task == NULL)
        return NULL;
    uva__pusher_queue_take(&p->queue, task);
    task->ordinal = p->loop.ordinal++;
    feed->ready--;
    return task;
}

/* No batches are wanted any more; on_gone is called, unless the pusher is
 * closed. */
static void pusher_cut(struct uva_pusher *p)
{
    if (uva__word_or(&p->facts, FACT_GONE) & FACT_GONE)
        return;
    uva__pusher_queue_shut(&p->queue);
    uva__hub_post(p->feed.hub, &p->node);
}

static void pusher_stop(struct uva__feed *feed)
{
    struct uva_pusher *p = pusher_at(feed);

    p->loop.running = false;
    feed->ready = 0;
    pusher_cut(p);
}

static void pusher_leave(struct uva__feed *feed)
{
    struct uva_pusher *p = pusher_at(feed);

    pusher_cut(p); /* if it was never started */
    uva__node_release(&p->node);
}

/* ---- the loop: callbacks ------------------------------------------------ */

/* Calls the one callback that is due, if any. This comes last: the callback may
 * close the pusher, after which only the wake-up's reference keeps it. */
static bool pusher_visit(struct uva__node *node)
{
    struct uva_pusher *p = uva__container_of(node, struct uva_pusher, node);
    bool room = uva__pusher_queue_has_news(&p->queue);
    uint64_t facts = uva__word_load(&p->facts);

    if (p->loop.running)
        uva__producer_wake(p->feed.producer);
    if ((facts & FACT_CLOSING) || p->loop.gone_told)
        return false;
    if (facts & FACT_GONE) {
        p->loop.gone_told = true;
        if (p->user.on_gone != NULL)
            p->user.on_gone(p->user.ctx, p);
    } else if (room && p->user.on_room != NULL) {
        p->user.on_room(p->user.ctx, p);
    }
    return false;
}

/* ---- making one --------------------------------------------------------- */

static const struct uva__node_ops pusher_node_ops = {pusher_visit, pusher_free};

static const struct uva__feed_ops pusher_feed_ops = {
    .name = "from_pusher",
    .start = pusher_start,
    .pull = pusher_pull,
    .take = pusher_take,
    .stop = pusher_stop,
    .leave = pusher_leave,
};

static int source_check(const struct uva_push_source *how,
                        struct uva_pusher *const *pusher,
                        struct uva_error *error)
{
    if (pusher == NULL)
        return uva_error_set(error, EINVAL,
                             "from_pusher: there is no place for the pusher");
    if (!uva__memory_is_clear(how->reserved, 4))
        return uva_error_set(error, EINVAL,
                             "uva_push_source: reserved members must be NULL; "
                             "clear the struct before filling it in");
    return 0;
}

/* Gives it two references: the stream's and the pusher's. It is marked as
 * closed until the stream is made, so that no callback comes for a stream that
 * could not be made. */
static int pusher_new(struct uva__hub *hub, const struct uva_push_source *how,
                      struct uva_pusher **out, struct uva_error *error)
{
    struct uva_pusher *p = uva__memory_new(&hub->allocator, sizeof(*p));

    if (p == NULL)
        return uva_error_set(error, ENOMEM, "no memory for the stream");
    if (uva__pusher_queue_init(&p->queue, hub, &p->node, &how->window) != 0) {
        uva__memory_free(&hub->allocator, p, sizeof(*p));
        return uva_error_set(error, EINVAL,
                             "from_pusher: a window must not be negative");
    }
    uva__feed_init(&p->feed, &pusher_feed_ops, hub);
    if (how->device_type != 0)
        p->feed.device_type = how->device_type;
    p->user = (struct pusher_user){how->on_room, how->on_gone, how->free_ctx,
                                   how->ctx};
    uva__node_init(&p->node, &pusher_node_ops, 2);
    uva__word_store(&p->facts, FACT_CLOSING);
    *out = p;
    return 0;
}

struct uva_stream *uva_stream_from_pusher(struct uva_runtime *runtime,
                                          const struct uva_push_source *how,
                                          struct uva_pusher **pusher)
{
    const struct uva_push_source none = {0};
    struct uva__hub *hub = uva__loop_hub(runtime);
    struct uva_error error = {0};
    struct uva_pusher *p = NULL;
    struct uva_stream *stream;
    int code;

    if (pusher != NULL)
        *pusher = NULL;
    how = how != NULL ? how : &none;
    code = source_check(how, pusher, &error);
    if (code == 0 && hub != NULL && uva__hub_is_alive(hub))
        code = pusher_new(hub, how, &p, &error);
    if (p == NULL) {
        if (how->free_ctx != NULL)
            how->free_ctx(how->ctx);
        return uva__flow_failed(runtime, &error);
    }
    stream = uva__flow_new(&p->feed);
    if (uva_stream_status(stream, NULL) != 0) {
        uva__node_release(&p->node);
        return stream;
    }
    uva__word_store(&p->facts, 0);
    *pusher = p;
    return stream;
}
