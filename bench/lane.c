/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that calls get_next, and a loop that receives: by hand over a ring,
 * with one uv_queue_work() for each batch, and by
 * uva_stream_from_device_stream() with uva_stream_for_each(). `window` is the
 * number of batches that may be in flight. */
#include <stdlib.h>

#include "hand.h"

/* ---- by hand ------------------------------------------------------------ */

static void hand_thread(void *ctx)
{
    struct hand *hand = ctx;
    struct ring *ring = &hand->ring;
    uint64_t at = 0;

    bench_stay_on(hand->how, 1);
    for (;;) {
        struct ArrowDeviceArray *slot = ring_slot(ring, at);

        if (!ring_has_room(ring, at))
            ring_sleep(ring, ring_has_room, at);
        (void)hand->input.abi.get_next(&hand->input.abi, slot);
        if (slot->array.release == NULL)
            break;
        atomic_store_explicit(&ring->tail, ++at, memory_order_release);
        ring_wake_loop(ring);
    }
    atomic_store_explicit(&ring->ended, true, memory_order_release);
    ring_wake_loop(ring);
}

static void hand_take(struct hand *hand, uint64_t tail)
{
    struct ring *ring = &hand->ring;

    while (hand->at != tail) {
        struct ArrowArray *array = &ring_slot(ring, hand->at)->array;

        tally_take(&hand->tally, array);
        array->release(array);
        atomic_store_explicit(&ring->head, ++hand->at, memory_order_release);
        if (ring_at_half(ring, hand->at))
            ring_wake_thread(ring);
    }
}

static void hand_on_wake(void *ctx)
{
    struct hand *hand = ctx;
    struct ring *ring = &hand->ring;
    bool ended;

    do {
        ended = atomic_load_explicit(&ring->ended, memory_order_acquire);
        hand_take(hand,
                  atomic_load_explicit(&ring->tail, memory_order_acquire));
        ring_wake_thread(ring);
    } while (!ended && ring_must_look_again(ring, ring_has_batch, hand->at));
    if (!ended)
        return;
    hand->ended_ns = bench_now_ns(hand->how);
    bell_close(&ring->bell);
}

static double run_hand(const struct bench_case *self,
                       const struct bench_how *how)
{
    return hand_play(self, how, hand_on_wake, hand_thread);
}

/* ---- uv_queue_work() ---------------------------------------------------- */

struct queue {
    uv_loop_t loop;
    uv_mutex_t mutex; /* allows one get_next at a time */
    struct input input;
    struct tally tally;
    const struct bench_how *how; /* borrows */
    double ended_ns;
};

struct work {
    uv_work_t req;       /* first */
    struct queue *queue; /* borrows */
    struct ArrowDeviceArray array;
};

static void work_do(uv_work_t *req)
{
    struct work *work = (struct work *)req;
    struct queue *queue = work->queue;

    uv_mutex_lock(&queue->mutex);
    (void)queue->input.abi.get_next(&queue->input.abi, &work->array);
    uv_mutex_unlock(&queue->mutex);
}

static void work_done(uv_work_t *req, int status)
{
    struct work *work = (struct work *)req;
    struct queue *queue = work->queue;

    bench_check(status == 0, "work");
    if (work->array.array.release == NULL) {
        queue->ended_ns = bench_now_ns(queue->how);
        return;
    }
    queue->tally.seen++; /* in any order, as libuv's pool is unordered */
    work->array.array.release(&work->array.array);
    (void)uv_queue_work(&queue->loop, req, work_do, work_done);
}

static double run_queue(const struct bench_case *self,
                        const struct bench_how *how)
{
    struct work *works = calloc((size_t)self->window, sizeof(*works));
    struct queue queue = {.how = how};
    double begun;

    bench_check(works != NULL, "memory");
    bench_check(uv_loop_init(&queue.loop) == 0, "loop");
    bench_check(uv_mutex_init(&queue.mutex) == 0, "mutex");
    input_init(&queue.input, how->batches);
    begun = bench_now_ns(how);
    bench_stay_on(how, 1); /* libuv's threads inherit the core of this one */
    for (int32_t i = 0; i < self->window; i++) {
        works[i].queue = &queue;
        (void)uv_queue_work(&queue.loop, &works[i].req, work_do, work_done);
    }
    bench_stay_on(how, 0);
    (void)uv_run(&queue.loop, UV_RUN_DEFAULT);
    uv_mutex_destroy(&queue.mutex);
    bench_check(uv_loop_close(&queue.loop) == 0, "loop not empty");
    tally_check(&queue.tally, how->batches);
    free(works);
    return queue.ended_ns - begun;
}

/* ---- uvarrow ------------------------------------------------------------ */

static double run_lane(const struct bench_case *self,
                       const struct bench_how *how)
{
    const struct uva_arrow_source source = {
        .window = {.batches = self->window}};
    struct tally tally = {0};
    struct host host;
    struct input input;
    double begun;

    host_open_for(&host, how, &(struct uva_workers_options){0});
    input_init(&input, how->batches);
    begun = bench_now_ns(how);
    host_for_each(
        &host, uva_stream_from_device_stream(host.runtime, &input.abi, &source),
        &tally);
    begun = host_run(&host) - begun;
    host_close(&host);
    tally_check(&tally, how->batches);
    return begun;
}

enum { SPIN_NS = 30000 };

static const struct bench_case cases[] = {
    {"lane/1/ring", 20000, run_hand, 1, 0, 0},
    {"lane/1/uvarrow", 20000, run_lane, 1, 0, 0},
    {"lane/1/spinning-ring", 20000, run_hand, 1, SPIN_NS, BENCH_APART},
    {"lane/1/queue_work", 20000, run_queue, 1, 0, 0},
    {"lane/8/ring", 100000, run_hand, 8, 0, 0},
    {"lane/8/uvarrow", 100000, run_lane, 8, 0, 0},
    {"lane/8/spinning-ring", 100000, run_hand, 8, SPIN_NS, BENCH_APART},
    {"lane/8/queue_work", 50000, run_queue, 8, 0, 0},
    {"lane/64/ring", 500000, run_hand, 64, 0, 0},
    {"lane/64/uvarrow", 500000, run_lane, 64, 0, 0},
    {"lane/64/spinning-ring", 500000, run_hand, 64, SPIN_NS, BENCH_APART},
    {"lane/64/queue_work", 100000, run_queue, 64, 0, 0},
    {"lane/512/ring", 1000000, run_hand, 512, 0, 0},
    {"lane/512/uvarrow", 1000000, run_lane, 512, 0, 0},
    {"lane/512/spinning-ring", 1000000, run_hand, 512, SPIN_NS, BENCH_APART},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
