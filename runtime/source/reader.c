/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  started -> (worker) opened, schema -> the loop grants slots ->
 * the worker fills them, and wakes the loop for each -> the loop takes them ->
 * end -> (worker) source closed.
 *
 * What can fail:
 * - open, schema or a read: reported behind the batches before it;
 * - a batch that does not fit the schema: EPROTO.
 *
 * On stop:     no call is waited for. A call in progress is interrupted, if the
 *              source can do that; when it returns, the worker discards its
 * batch and closes the source. The loop takes the slots back after that. */
#include "source/reader.h"

#include <errno.h>

#include "source/reader_worker.h"
#include "base/memory.h"
#include "stream/slots.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

/* ---- life --------------------------------------------------------------- */

static struct uva__reader *reader_of(struct uva__feed *feed)
{
    return uva__container_of(feed, struct uva__reader, feed);
}

/* ---- the loop: as a source ----------------------------------------------- */

static void reader_start(struct uva__feed *feed)
{
    struct uva__reader *r = reader_of(feed);

    r->loop.started = true;
    uva__lane_word_run(&r->lane_word);
    uva__lane_side_set_off(r);
}

/* Reads `news` before `tail`: so with the end, all batches before it are
 * seen. */
static void reader_absorb(struct uva__reader *r)
{
    struct uva__feed *feed = &r->feed;
    uint64_t news = uva__word_load(&r->news);

    if ((news & NEWS_SCHEMA) && !feed->schema_known) {
        uva_schema_move(&r->lane.told, &feed->schema);
        feed->device_type = r->lane.device_type;
        feed->schema_known = true;
    }
    feed->ready = (int64_t)(uva__word_load(&r->tail) - r->loop.taken);
    if ((news & NEWS_END) && !feed->ended && feed->failure.code == 0) {
        uva__failure_move(&r->lane.failure, &feed->failure,
                          &feed->hub->allocator);
        feed->ended = feed->failure.code == 0;
    }
}

/* Grants the worker up to `count` more slots. Returns how many there were. */
static uint64_t reader_grant(struct uva__reader *r, uint64_t count)
{
    struct uva__task *task;
    uint64_t i;

    for (i = 0; i < count; i++) {
        task = uva__producer_take_task(r->feed.producer);
        if (task == NULL)
            break;
        r->ring[(r->loop.granted + i) & r->ring_mask] = task;
    }
    if (i == 0)
        return 0;
    r->loop.granted += i;
    if (uva__lane_word_grant(&r->lane_word, i))
        uva__lane_side_set_off(r);
    return i;
}

/* A worker that has paused goes on when half of its bytes were consumed. */
static void reader_unpause(struct uva__reader *r)
{
    uint64_t waiting;

    if (!(uva__word_load(&r->lane_word) & LANE_PAUSED))
        return;
    waiting = r->lane.bytes - uva__word_peek(&r->eaten);
    if (waiting > (uint64_t)r->window.bytes / 2 && r->feed.ready > 0)
        return;
    uva__lane_word_unpause(&r->lane_word);
    uva__lane_side_set_off(r);
}

/* Returns how many more slots the worker may have. A source on the loop thread
 * is read only when batches are requested, and one visit's worth at a time. */
static uint64_t reader_room(const struct uva__reader *r, int64_t demand)
{
    int64_t used = (int64_t)(r->loop.granted - r->loop.taken);
    int64_t quantum = r->feed.hub->loop.quantum;

    if (!r->quick)
        return (uint64_t)uva__window_room(&r->window, demand, used);
    if (quantum > r->window.batches)
        quantum = r->window.batches;
    if (demand == 0)
        return 0;
    return quantum > used ? (uint64_t)(quantum - used) : 0;
}

static void reader_pull(struct uva__feed *feed, int64_t demand)
{
    struct uva__reader *r = reader_of(feed);
    uint64_t room;

    reader_absorb(r);
    if (feed->ended || feed->failure.code != 0)
        return;
    r->loop.asked = r->loop.asked || demand > 0;
    if (!r->loop.asked)
        return;
    reader_unpause(r);
    if (r->quick)
        reader_absorb(r);
    room = reader_room(r, demand);
    if (room == 0)
        return;
    if (reader_grant(r, room) == 0 && r->loop.granted == r->loop.taken)
        uva__failure_say(&feed->failure, &feed->hub->allocator, ENOMEM,
                         "no memory for the next batch");
    if (r->quick)
        reader_absorb(r);
}

static struct uva__task *reader_take(struct uva__feed *feed)
{
    struct uva__reader *r = reader_of(feed);
    struct uva__task *task = r->ring[r->loop.taken++ & r->ring_mask];

    feed->ready--;
    uva__word_store(&r->eaten,
                    uva__word_peek(&r->eaten) + (uint64_t)task->bytes);
    return task;
}

/* ---- the loop: stopping ------------------------------------------------- */

/* The worker has closed the source: takes its slots back. */
static void reader_empty(struct uva__reader *r)
{
    struct uva__task *task;

    if (r->loop.emptied)
        return;
    r->loop.emptied = true;
    if (r->loop.homing)
        r->feed.hub->loop.homing--;
    for (; r->loop.taken < r->loop.granted; r->loop.taken++) {
        task = r->ring[r->loop.taken & r->ring_mask];
        uva__task_clear(task, &r->feed.hub->allocator);
        uva__stock_put_task(r->feed.hub, task);
    }
}

static void reader_discard_until(struct uva__reader *r, uint64_t tail)
{
    for (; r->loop.taken < tail; r->loop.taken++)
        uva__producer_drop_task(r->feed.producer,
                                r->ring[r->loop.taken & r->ring_mask]);
}

static void reader_stop(struct uva__feed *feed)
{
    struct uva__reader *r = reader_of(feed);
    uint64_t tail = uva__word_load(&r->tail), word;

    r->loop.stopped = true;
    feed->ready = 0;
    reader_discard_until(r, tail);
    uva__word_store(&r->kept, tail);
    word = uva__lane_word_cancel(&r->lane_word);
    if (word & LANE_HOME) {
        reader_discard_until(r, uva__word_load(&r->tail));
        reader_empty(r);
        return;
    }
    if (!uva__lane_side_break(r)) {
        r->loop.homing = true;
        feed->hub->loop.homing++;
    }
    if (word & LANE_RUNNING)
        return;
    uva__lane_word_run(&r->lane_word);
    uva__lane_side_set_off(r);
}

static bool reader_visit(struct uva__node *node)
{
    struct uva__reader *r = uva__container_of(node, struct uva__reader, node);

    if (!r->loop.stopped)
        uva__producer_wake(r->feed.producer);
    else if (uva__word_load(&r->lane_word) & LANE_HOME)
        reader_empty(r);
    return false;
}

/* A source that was never started still has to be closed, by a worker. A
 * quick one is closed here, if this is the loop thread or no worker can be
 * started. */
static void reader_leave(struct uva__feed *feed)
{
    struct uva__reader *r = reader_of(feed);

    if (!r->loop.started) {
        r->loop.stopped = true;
        r->lane.ended = r->lane.opened = true;
        r->quick =
            r->quick && (uva__hub_on_loop(feed->hub) ||
                         uva__hub_ensure_lane(feed->hub, UVA_LANE_BLOCKING));
        uva__lane_side_set_off(r);
    }
    uva__reader_release(r);
}

/* ---- making one --------------------------------------------------------- */

static const struct uva__node_ops reader_node_ops = {reader_visit,
                                                     uva__reader_free};

static int reader_threads(struct uva__hub *hub, bool quick, bool can_interrupt)
{
    int code = 0;

    if (!quick)
        code = uva__hub_ensure_lane(hub, UVA_LANE_BLOCKING);
    if (code == 0 && can_interrupt)
        code = uva__hub_ensure_guest(hub);
    return code;
}

static const struct uva__feed_ops reader_feed_ops = {
    .name = "reader",
    .start = reader_start,
    .pull = reader_pull,
    .take = reader_take,
    .stop = reader_stop,
    .leave = reader_leave,
};

int uva__reader_init(struct uva__reader *r, const struct uva__reader_ops *ops,
                     struct uva__hub *hub, const struct uva_window *window,
                     bool quick, bool can_interrupt)
{
    uint64_t size;
    int code = uva__window_complete(window, &r->window);

    if (code == 0)
        code = uva__stock_ensure(hub);
    if (code == 0)
        code = reader_threads(hub, quick, can_interrupt);
    if (code != 0)
        return code;
    size = uva__window_ring(r->window.batches);
    r->ring =
        uva__memory_new(&hub->allocator, size * sizeof(struct uva__task *));
    if (r->ring == NULL)
        return ENOMEM;
    r->ring_mask = size - 1;
    uva__feed_init(&r->feed, &reader_feed_ops, hub);
    r->feed.prompt = quick;
    r->ops = ops;
    r->quick = quick;
    r->can_interrupt = can_interrupt;
    r->job.run = uva__lane_side_run;
    r->breaker.run = uva__lane_side_interrupt;
    uva__node_init(&r->node, &reader_node_ops, 2); /* stream, worker */
    return 0;
}
