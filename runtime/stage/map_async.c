/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_map_async(): a function that begins with a batch, and a result
 * that is given later, on any thread.
 *
 * Happy path:  task -> a reply, with the extracted batch -> begun, on the loop
 *              thread -> the result is given: inside `begin`, and the loop sees
 *              it when that returns; or later, and the giving thread posts the
 *              stage -> the producer below takes the result.
 *
 * What can fail: begin, or the user gives an error: that follows the results of
 *              the batches before it (unordered: those at hand), nothing else
 * is begun, and what is above is cancelled. An extraction: the producer above
 * reports why.
 *
 * On stop:     batches and results are released, and the user's cancel is
 * called for what was begun. Replies are not waited for, as each counts the
 * stage. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "arrow/layout.h"
#include "arrow/metadata.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/mpsc.h"
#include "stage/output.h"
#include "stage/stage.h"
#include "stream/slots.h"
#include "stream/stream_impl.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

/* Half of the largest window. */
enum { AT_ONCE_MAX = 1 << 19 };

/* Which thread uses a reply. */
enum reply_state {
    REPLY_WAITING,   /* the loop; later batches of the same memory begin as
                        REPLY_GIVEN */
    REPLY_BEGINNING, /* the user; the loop looks at it when begin returns */
    REPLY_BEGUN, /* the user; it counts the stage, and posts it when given */
    REPLY_GIVEN  /* the loop */
};

/* One batch, from its task to its result, which is passed on in its slot: so a
 * reply is in use only until its turn has come, and the same few are used again
 * and again. */
struct uva_reply {
    struct uva__link link;       /* in a list of the stage */
    struct uva__link given;      /* in `given` of the stage */
    struct uva_reply *older;     /* owns: the one that was made before it */
    struct map_async *stage;     /* borrows */
    struct uva__atomic64 state;  /* enum reply_state */
    struct uva__task *slot;      /* owns, while it is in use: of the producer
                                    below. With what is known of the batch, and
                                    the batch that waits, or the result;
                                    released if there is neither */
    struct uva__failure failure; /* owns: given instead of a result, or of
                                    begin; code 0: none */
    int64_t before;              /* size of the batch that came, if known */
    bool seen;                   /* the loop has counted it as given */
};

struct map_async {
    struct uva__stage stage;      /* first */
    struct uva_async_map options; /* owns its ctx */
    struct uva_window window;     /* with its defaults filled in */
    struct uva__output output;    /* the schemas */
    struct uva__mpsc given;       /* replies, by `given`; borrows */

    struct {                      /* the loop thread's alone */
        struct uva_reply *newest; /* owns: leads to all replies */
        struct uva__list free;    /* replies that are not in use */
        struct uva__list waiting; /* not begun, in order */
        struct uva__list order;   /* ordered: begun, and its turn has not
                                     come */
        struct uva__list ready;   /* slots with results to be passed on */
        int64_t used;             /* replies in use, and those slots */
        int64_t begun;            /* of these, begun and not given */
        int64_t done;             /* of these, given */
        int64_t requested;        /* batches requested above that have not
                                     come */
        int64_t bytes;            /* in results */
        int64_t undone;           /* in the rest, as far as known */
        int64_t largest;          /* size of the largest batch; -1: unknown */
        bool started;             /* a batch has been requested */
        bool lost;                /* a batch was lost: none behind it is
                                     wanted */
        bool over;                /* a reply has failed: nothing is begun any
                                     more */
    } loop;
};

static struct map_async *map_async_of(struct uva__stage *stage)
{
    return uva__container_of(stage, struct map_async, stage);
}

static struct map_async *map_async_at(struct uva__source *source)
{
    return map_async_of(uva__stage_of(source));
}

static const struct uva_allocator *allocator_of(const struct map_async *m)
{
    return &m->stage.source.rt->allocator;
}

/* ---- replies ------------------------------------------------------------ */

static struct uva_reply *reply_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva_reply, link);
}

static struct uva_reply *reply_pop(struct uva__list *list)
{
    struct uva__link *link = uva__list_pop(list);

    return link != NULL ? reply_of(link) : NULL;
}

/* A reply has no slot any more. Its memory is in the cache: the next batch gets
 * it. */
static void reply_put(struct map_async *m, struct uva_reply *reply)
{
    uva__list_push_front(&m->loop.free, &reply->link);
}

/* Releases what a reply holds, but for its slot. Thread: the last that uses it.
 */
static void reply_empty(struct map_async *m, struct uva_reply *reply)
{
    uva_array_release(&reply->slot->array);
    uva__failure_fini(&reply->failure, allocator_of(m));
    m->loop.used--;
}

/* Frees a reply with all that it holds. */
static void reply_discard(struct map_async *m, struct uva_reply *reply)
{
    reply_empty(m, reply);
    uva__task_clear(reply->slot, allocator_of(m));
    uva__slots_put_task(m->stage.source.rt, reply->slot);
    reply_put(m, reply);
}

static struct uva_reply *reply_make(struct map_async *m)
{
    struct uva_reply *reply = uva__memory_new(allocator_of(m), sizeof(*reply));

    if (reply == NULL)
        return NULL;
    reply->stage = m;
    reply->older = m->loop.newest;
    m->loop.newest = reply;
    return reply;
}

/* Gives a reply with a slot in which only the metadata is filled in; NULL
 * without memory. */
static struct uva_reply *reply_new(struct map_async *m, const char *metadata)
{
    struct uva_reply *reply = reply_pop(&m->loop.free);

    if (reply == NULL)
        reply = reply_make(m);
    if (reply == NULL)
        return NULL;
    reply->slot = uva__producer_take_task(m->stage.source.producer);
    if (reply->slot == NULL) {
        reply_put(m, reply);
        return NULL;
    }
    reply->slot->array.array.release = NULL;
    reply->seen = false;
    m->loop.used++;
    if (uva__task_take_metadata(reply->slot, allocator_of(m), metadata) == 0)
        return reply;
    reply_discard(m, reply);
    return NULL;
}

static void map_async_note_size(struct map_async *m, int64_t bytes)
{
    if (bytes > m->loop.largest)
        m->loop.largest = bytes;
}

/* States what the window holds: results, and the rest, which may become as
 * large as the largest. */
static void map_async_account(struct map_async *m)
{
    int64_t undone = m->loop.begun * m->loop.largest;

    if (undone < m->loop.undone)
        undone = m->loop.undone;
    uva__share_hold(&m->stage.source.share, m->loop.used,
                    m->loop.bytes + undone);
    uva__meter_hold(m->stage.source.meter, m->loop.used,
                    m->loop.bytes + m->loop.undone);
}

/* ---- any thread: a reply is given --------------------------------------- */

/* Not inline, as most results are simple, and an error takes a kilobyte of
 * stack. */
__attribute__((noinline)) static void
reply_fill_slowly(struct uva_reply *reply, struct ArrowDeviceArray *out,
                  const struct uva_error *error)
{
    const struct map_async *m = reply->stage;
    const char *name = m->stage.source.ops->name;
    struct uva_error detail; /* a kilobyte, which is not cleared */
    int code = 0;

    uva__error_begin(&detail);
    if (error != NULL)
        uva__failure_set(&reply->failure, allocator_of(m),
                         uva__error_positive(error->code), error, NULL);
    else if (out != NULL && !uva_array_is_live(out))
        code = uva_error_set(&detail, EPROTO, "%s: a released array was given",
                             name);
    else if (out != NULL)
        code = uva__output_measure(&m->output, name, out,
                                   &reply->slot->info.bytes, &detail);
    if (code != 0)
        uva__failure_set(&reply->failure, allocator_of(m), code, &detail, NULL);
    if (out == NULL || !uva_array_is_live(out))
        return;
    if (reply->failure.code == 0)
        uva_array_move(out, &reply->slot->array);
    else
        uva_array_release(out);
}

/* Puts the result in the reply, or why there is none. */
static void reply_fill(struct uva_reply *reply, struct ArrowDeviceArray *out,
                       const struct uva_error *error)
{
    const struct uva__output *output = &reply->stage->output;
    struct uva__task *slot = reply->slot;

    if (error == NULL && out != NULL &&
        uva__output_measure_simple(output, out, &slot->info.bytes))
        uva_array_move(out, &slot->array);
    else
        reply_fill_slowly(reply, out, error);
}

/* In a turn only the loop thread can see BEGINNING, while begin is on its
 * stack: when that returns it looks at the reply itself, so nothing has to be
 * published and a store will do. Other threads publish the result by the
 * exchange, which pairs with the load or the compare-and-swap of the loop. */
void uva_reply_give(uva_reply *reply, struct ArrowDeviceArray *out,
                    const struct uva_error *error)
{
    struct map_async *m = reply->stage;

    reply_fill(reply, out, error);
    if (uva__rt_in_turn(m->stage.source.rt) &&
        uva__atomic64_peek(&reply->state) == REPLY_BEGINNING) {
        uva__atomic64_store(&reply->state, REPLY_GIVEN);
        return;
    }
    if (uva__atomic64_exchange(&reply->state, REPLY_GIVEN) == REPLY_BEGINNING)
        return; /* both may be gone */
    uva__mpsc_push(&m->given, &reply->given);
    uva__meter_wake(m->stage.source.meter, &m->stage.wakeup);
    uva__stage_release(&m->stage);
}

/* ---- the loop: sizes ---------------------------------------------------- */

/* Notes the size of the batch that came. The first one is measured if that is
 * not known: results are expected to be as large. */
static void reply_measure(struct map_async *m, struct uva_reply *reply,
                          const struct ArrowDeviceArray *array, int64_t bytes)
{
    if (bytes == 0 && m->loop.largest < 0 &&
        uva__layout_measure(&m->output.input, array, &bytes, NULL) != 0)
        bytes = 0;
    reply->before = uva__window_size(bytes);
    m->loop.undone += reply->before;
    if (bytes > 0)
        map_async_note_size(m, reply->before);
}

/* ---- the loop: results -------------------------------------------------- */

/* It is the turn of a reply that was given. */
static void reply_settle(struct map_async *m, struct uva_reply *reply)
{
    struct uva__source *source = &m->stage.source;

    if (uva_array_is_live(&reply->slot->array)) {
        assert(reply->failure.code == 0);
        uva__list_push(&m->loop.ready, &reply->slot->link);
        source->ready++;
        reply_put(m, reply);
        return;
    }
    if (source->failure.code == 0)
        uva__failure_move(&reply->failure, &source->failure, allocator_of(m));
    m->loop.done--;
    reply_discard(m, reply);
}

/* Counts a reply that was given. */
static void reply_note_given(struct map_async *m, struct uva_reply *reply)
{
    const struct uva__task *slot = reply->slot;

    reply->seen = true;
    m->loop.begun--;
    m->loop.undone -= reply->before;
    m->loop.done++;
    if (reply->failure.code != 0)
        m->loop.over = true;
    if (uva_array_is_live(&slot->array)) {
        m->loop.bytes += slot->info.bytes;
        map_async_note_size(m, slot->info.bytes);
    }
}

/* Gives the replies that were given since the last call: the first one, which
 * leads to the rest. */
static struct uva__link *replies_take_given(struct map_async *m)
{
    return uva__mpsc_is_empty(&m->given) ? NULL : uva__mpsc_take(&m->given);
}

static void replies_poll(struct map_async *m)
{
    struct uva__link *link = replies_take_given(m), *next;
    struct uva_reply *reply;

    for (; link != NULL; link = next) {
        next = link->next;
        reply = uva__container_of(link, struct uva_reply, given);
        reply_note_given(m, reply);
        if (m->options.unordered)
            reply_settle(m, reply);
    }
}

/* Ordered: nothing follows a failure. */
static void replies_settle_in_order(struct map_async *m)
{
    struct uva_reply *reply;

    while (m->stage.source.failure.code == 0 &&
           !uva__list_is_empty(&m->loop.order)) {
        reply = reply_of(m->loop.order.head);
        if (!reply->seen)
            return;
        (void)uva__list_pop(&m->loop.order);
        reply_settle(m, reply);
    }
}

/* ---- the loop: beginning ------------------------------------------------ */

/* How many of `room` more batches the window's bytes allow, with `asked`
 * batches of unknown size. Until one size is known, as many as may be under
 * way. */
static int64_t map_async_fit(const struct map_async *m, int64_t room,
                             int64_t asked)
{
    if (m->loop.largest >= 0)
        return uva__window_fit(&m->window, room, m->loop.bytes, asked,
                               m->loop.largest);
    return room < m->options.at_once - asked ? room
                                             : m->options.at_once - asked;
}

/* Room for the results is reserved before they come. While the budget of the
 * runtime is full, one at a time is begun. Where none is under way, as many
 * users give their results at once, the room needs no product. */
static inline bool map_async_may_begin(const struct map_async *m)
{
    bool fits;

    if (m->loop.over || m->loop.begun >= m->options.at_once)
        return false;
    fits = m->loop.begun == 0
               ? m->loop.bytes == 0 ||
                     m->loop.bytes + m->loop.largest <= m->window.bytes
               : map_async_fit(m, 1, m->loop.begun) > 0;
    return fits && (uva__share_is_free(&m->stage.source.share) ||
                    m->loop.begun + m->loop.done == 0);
}

/* begin has failed: a result that it has given is not wanted. */
static void reply_refuse(struct map_async *m, struct uva_reply *reply, int code)
{
    uva__failure_format(&reply->failure, allocator_of(m), code,
                        "%s: begin failed with %s", m->stage.source.ops->name,
                        uva_error_name(code));
    uva_array_release(&reply->slot->array);
}

/* Returns whether the reply was given inside begin. Otherwise it counts the
 * stage from now on. */
static bool reply_was_given(struct map_async *m, struct uva_reply *reply)
{
    uint64_t state = REPLY_BEGINNING;

    if (uva__atomic64_load(&reply->state) == REPLY_GIVEN)
        return true;
    uva__stage_acquire(&m->stage); /* before another thread may release it */
    if (uva__atomic64_cas(&reply->state, &state, REPLY_BEGUN))
        return false;
    uva__stage_release(&m->stage);
    return true;
}

/* Whether the turn of a reply comes as soon as it is given, as none before it
 * is waited for. Nothing is begun behind a failure. */
static bool reply_is_next(const struct map_async *m)
{
    return m->options.unordered || uva__list_is_empty(&m->loop.order);
}

/* Begins with `batch`, in which the array is filled in. */
static inline void reply_begin(struct map_async *m, struct uva_reply *reply,
                               struct uva_batch *batch)
{
    const struct uva__batch_info *info = &reply->slot->info;
    uint64_t since_ns;
    int code;

    batch->schema = &m->output.input;
    batch->metadata = info->metadata.block;
    batch->ordinal = info->ordinal;
    batch->stream = NULL;
    memset(batch->reserved, 0, sizeof(batch->reserved));
    m->loop.begun++;
    uva__atomic64_store(&reply->state, REPLY_BEGINNING);
    since_ns = uva__span_begin(m->stage.source.rt);
    code = uva__error_positive(m->options.begin(m->options.ctx, batch, reply));
    uva__span_end(m->stage.source.meter, m->stage.source.ops->name,
                  info->ordinal, since_ns);
    uva_array_release(&batch->data);
    if (code != 0)
        reply_refuse(m, reply, code);
    if (code != 0 || reply_was_given(m, reply)) {
        reply_note_given(m, reply);
        if (reply_is_next(m)) {
            reply_settle(m, reply);
            return;
        }
    }
    if (!m->options.unordered)
        uva__list_push(&m->loop.order, &reply->link);
}

static void replies_begin(struct map_async *m)
{
    struct uva_reply *reply;
    struct uva_batch batch;

    while (map_async_may_begin(m)) {
        reply = reply_pop(&m->loop.waiting);
        if (reply == NULL)
            return;
        uva_array_move(&reply->slot->array, &batch.data);
        reply_begin(m, reply, &batch);
    }
}

/* ---- the loop: as a handler --------------------------------------------- */

/* There is no memory for the batch, or for one before it: the error takes its
 * place. */
static void map_async_lose(struct map_async *m, struct ArrowAsyncTask *task)
{
    uva__task_drop(task);
    m->loop.lost = true;
    uva__failure_set(&m->stage.failure, allocator_of(m), ENOMEM, NULL, NULL);
}

/* Extracts a batch that has come, to `out`; false if that failed: the producer
 * above reports why. */
static bool reply_extract(struct map_async *m, struct uva_reply *reply,
                          struct ArrowAsyncTask *task,
                          struct ArrowDeviceArray *out)
{
    const struct uva__batch_info *info = uva__task_info(task);
    const int64_t bytes = info->bytes;

    reply->slot->info.ordinal = info->ordinal;
    if (uva__task_extract_first(task, out) != 0) {
        reply->slot->array.array.release = NULL;
        reply_discard(m, reply);
        return false;
    }
    reply_measure(m, reply, out, bytes);
    return true;
}

/* A batch is begun at once if none waits, and so lies in no queue between. */
static void map_async_task(struct uva__stage *stage,
                           struct ArrowAsyncTask *task, const char *metadata)
{
    struct map_async *m = map_async_of(stage);
    struct uva_reply *reply = NULL;
    struct uva_batch batch;
    bool begins;

    m->loop.requested--;
    assert(m->loop.requested >= 0);
    if (!m->loop.lost)
        reply = reply_new(m, metadata);
    if (reply == NULL) {
        map_async_lose(m, task);
        return;
    }
    begins = uva__list_is_empty(&m->loop.waiting) && map_async_may_begin(m);
    if (reply_extract(m, reply, task,
                      begins ? &batch.data : &reply->slot->array)) {
        if (begins)
            reply_begin(m, reply, &batch);
        else
            uva__list_push(&m->loop.waiting, &reply->link);
    }
    if (m->stage.source.share.account != NULL)
        map_async_account(m); /* the next batch may begin before a pull */
}

/* ---- the loop: as a source ---------------------------------------------- */

/* The end or error of the producer above follows when all batches before it
 * have been passed on. */
static void map_async_conclude(struct map_async *m)
{
    struct uva__stage *stage = &m->stage;
    struct uva__source *source = &stage->source;
    const bool alone = m->loop.used == source->ready;

    if (source->failure.code != 0 || source->ended)
        return;
    if (stage->failure.code != 0 && alone)
        uva__failure_move(&stage->failure, &source->failure, allocator_of(m));
    else
        source->ended = stage->ended && alone;
}

static void map_async_request(struct map_async *m, int64_t demand)
{
    const int64_t used = m->loop.used + m->loop.requested;
    int64_t room = uva__window_room(&m->window, demand, used);

    m->loop.started = m->loop.started || demand > 0;
    if (!m->loop.started || room == 0)
        return;
    room = map_async_fit(m, room, used - m->loop.done);
    if (room <= 0)
        return;
    m->loop.requested += room;
    uva__stage_request(&m->stage, room);
}

static void map_async_pull(struct uva__source *source, int64_t demand)
{
    struct map_async *m = map_async_at(source);

    if (!uva__output_prepare(&m->output, source, m->options.schema,
                             m->options.ctx) &&
        m->stage.failure.code == 0)
        return;
    replies_poll(m);
    replies_begin(m);
    replies_settle_in_order(m);
    map_async_conclude(m);
    map_async_account(m);
    if (m->loop.over)
        uva__stage_quit(&m->stage);
    else
        map_async_request(m, demand);
}

static struct uva__task *ready_pop(struct map_async *m)
{
    struct uva__link *link = uva__list_pop(&m->loop.ready);

    if (link == NULL)
        return NULL;
    m->loop.used--;
    return uva__container_of(link, struct uva__task, link);
}

static struct uva__task *map_async_take(struct uva__source *source)
{
    struct map_async *m = map_async_at(source);
    struct uva__task *task = ready_pop(m);

    source->ready--;
    m->loop.done--;
    m->loop.bytes -= task->info.bytes;
    return task;
}

/* ---- the loop: stopping ------------------------------------------------- */

static void replies_drop_waiting(struct map_async *m)
{
    struct uva_reply *reply;

    while ((reply = reply_pop(&m->loop.waiting)) != NULL)
        reply_discard(m, reply);
}

static void ready_drop(struct map_async *m)
{
    struct uva__task *task;

    while ((task = ready_pop(m)) != NULL)
        uva__producer_drop_task(m->stage.source.producer, task);
}

/* Discards the results that were given after a stop. */
static void replies_clear(struct map_async *m)
{
    struct uva__link *link = replies_take_given(m), *next;

    for (; link != NULL; link = next) {
        next = link->next;
        reply_discard(m, uva__container_of(link, struct uva_reply, given));
    }
}

/* The list of those in order loses the ones that were not given: they are
 * discarded when they are. */
static void replies_drop_ordered(struct map_async *m)
{
    struct uva_reply *reply;

    while ((reply = reply_pop(&m->loop.order)) != NULL)
        if (reply->seen)
            reply_discard(m, reply);
}

/* Another thread may give a reply while the user's cancel is called for it; its
 * memory is not used for another batch any more. */
static void replies_cancel(struct map_async *m)
{
    struct uva_reply *reply = m->loop.newest;

    for (; reply != NULL && m->options.cancel != NULL; reply = reply->older)
        if (uva__atomic64_load(&reply->state) == REPLY_BEGUN)
            m->options.cancel(m->options.ctx, reply);
}

/* What was begun waits for the user's answer, which is its source. */
static const struct uva__source *
map_async_above(const struct uva__source *source)
{
    const struct map_async *m =
        uva__container_of(source, struct map_async, stage.source);

    return m->loop.begun > 0 ? NULL : uva__stage_above(source);
}

static void map_async_stop(struct uva__source *source)
{
    struct map_async *m = map_async_at(source);

    uva__stage_stop(source);
    uva__source_hold(source, 0, 0);
    replies_drop_waiting(m);
    ready_drop(m);
    replies_drop_ordered(m);
    replies_cancel(m);
    replies_clear(m);
}

static bool map_async_on_wakeup(struct uva__wakeup *wakeup)
{
    struct map_async *m =
        uva__container_of(wakeup, struct map_async, stage.wakeup);

    if (m->stage.source.stopped)
        replies_clear(m);
    else
        uva__producer_run(m->stage.source.producer);
    return false;
}

/* ---- life --------------------------------------------------------------- */

static const struct uva__wakeup_ops map_async_wakeup_ops = {map_async_on_wakeup,
                                                            uva__stage_free};

static void map_async_free(struct uva__stage *stage,
                           const struct uva_allocator *allocator)
{
    struct map_async *m = map_async_of(stage);
    struct uva__link *link = replies_take_given(m);
    struct uva_reply *reply;

    /* Given behind the close of the runtime, which frees the slots. */
    for (; link != NULL; link = link->next)
        reply_empty(m, uva__container_of(link, struct uva_reply, given));
    assert(m->loop.used == 0);
    while ((reply = m->loop.newest) != NULL) {
        m->loop.newest = reply->older;
        uva__memory_free(allocator, reply, sizeof(*reply));
    }
    if (m->options.free_ctx != NULL)
        m->options.free_ctx(m->options.ctx);
    uva__output_fini(&m->output);
    uva__memory_free(allocator, m, sizeof(*m));
}

static const struct uva__stage_ops map_async_ops = {
    .source = {.name = "map_async",
               .start = uva__stage_start,
               .sized = true,
               .pull = map_async_pull,
               .take = map_async_take,
               .stop = map_async_stop,
               .leave = uva__stage_leave,
               .need = uva__stage_need,
               .above = map_async_above},
    .task = map_async_task,
    .free = map_async_free,
};

/* The arguments of map_async_make(). */
struct setup {
    const struct uva_async_map *options; /* takes its ctx ... */
    bool *taken;                         /* ... and notes that here */
    struct uva_window window;            /* complete */
};

static struct uva__source *map_async_make(struct uva__producer *above,
                                          const void *given)
{
    const struct setup *setup = given;
    struct map_async *m = uva__memory_new(&above->rt->allocator, sizeof(*m));

    if (m == NULL)
        return NULL;
    m->options = *setup->options;
    if (m->options.at_once == 0)
        m->options.at_once = 1;
    m->window = setup->window;
    m->loop.largest = -1;
    *setup->taken = true;
    uva__stage_init(&m->stage, &map_async_ops, &map_async_wakeup_ops, above);
    return &m->stage.source;
}

/* More batches are requested when half of the window is left, so the default is
 * at least twice as many as may be under way. */
static int map_async_window(const struct uva_async_map *options,
                            struct uva_window *out)
{
    struct uva_window window = options->window;
    const int32_t least = 2 * options->at_once;

    if (uva__window_complete(&window, out) != 0)
        return EINVAL;
    if (window.batches != 0 || least <= out->batches)
        return 0;
    window.batches = least;
    return uva__window_complete(&window, out);
}

static int map_async_check(struct uva_stream *stream,
                           const struct uva_async_map *options,
                           struct uva_window *window)
{
    if (options == NULL || options->begin == NULL)
        return uva__stream_fail(stream, EINVAL,
                                "uva_async_map: begin is mandatory");
    if (options->at_once < 0 || options->at_once > AT_ONCE_MAX)
        return uva__stream_fail(stream, EINVAL,
                                "uva_async_map: at_once must be from 0 to %d",
                                AT_ONCE_MAX);
    if (map_async_window(options, window) != 0)
        return uva__stream_fail(stream, EINVAL,
                                "uva_async_map: no negative window, whose "
                                "reserved members must be NULL");
    return 0;
}

/* Adds the stage, unless `code` is not 0. Takes the ctx in any case. */
static int map_async_add(struct uva_stream *stream,
                         const struct uva_async_map *options, int code)
{
    bool taken = false;
    struct setup setup = {.options = options, .taken = &taken};

    if (code == 0)
        code = map_async_check(stream, options, &setup.window);
    if (code == 0 && stream->tail->expensive)
        code = uva_stream_parallel(
            stream, &(struct uva_parallel){.window = options->window});
    if (code == 0)
        code = uva__stream_wrap(stream, map_async_make, &setup);
    if (!taken && options != NULL && options->free_ctx != NULL)
        options->free_ctx(options->ctx);
    return code;
}

int uva_stream_map_async(struct uva_stream *stream,
                         const struct uva_async_map *options)
{
    const int code = uva__stream_building(stream);

    if (options != NULL && !uva__memory_is_clear(options->reserved, 4))
        return code != 0 ? code /* no member of it can be trusted */
                         : uva__stream_fail(stream, EINVAL,
                                            "uva_async_map: reserved members "
                                            "must be NULL; clear the struct "
                                            "before filling it in");
    return map_async_add(stream, options, code);
}
