/* SPDX-License-Identifier: Apache-2.0 */
/* A loop that produces, and a thread that reads and may block: by hand over a
 * ring, and by uva_stream_to_device_stream(). `window` is the number of batches
 * that may wait for the reader. */
#include "hand.h"

enum {
    SPIN_NS = 30000,
    TURN_BATCHES = 256, /* batches in one loop iteration, as in uvarrow */
};

/* ---- by hand ------------------------------------------------------------ */

static void hand_thread(void *ctx)
{
    struct hand *hand = ctx;
    struct ring *ring = &hand->ring;
    struct ArrowDeviceArray array;
    uint64_t at = 0;

    bench_stay_on(hand->how, 1);
    ring_wake_loop(ring); /* starts the writing */
    for (;;) {
        if (!ring_has_batch(ring, at))
            ring_sleep(ring, ring_has_batch, at);
        if (atomic_load_explicit(&ring->tail, memory_order_acquire) == at)
            break;
        uva_array_move(ring_slot(ring, at), &array);
        atomic_store_explicit(&ring->head, ++at, memory_order_release);
        tally_take(&hand->tally, &array.array);
        array.array.release(&array.array);
        if (ring_at_half(ring, at))
            ring_wake_loop(ring);
    }
    hand->ended_ns = bench_now_ns(hand->how);
}

/* Returns whether it stopped early, to let other handles run. */
static bool hand_fill(struct hand *hand)
{
    struct ring *ring = &hand->ring;
    int left = TURN_BATCHES;

    while (ring_has_room(ring, hand->at)) {
        struct ArrowDeviceArray *slot = ring_slot(ring, hand->at);

        if (left-- == 0)
            return true;
        (void)hand->input.abi.get_next(&hand->input.abi, slot);
        if (slot->array.release == NULL) {
            atomic_store_explicit(&ring->ended, true, memory_order_release);
            return false;
        }
        atomic_store_explicit(&ring->tail, ++hand->at, memory_order_release);
    }
    return false;
}

static void hand_on_wake(void *ctx)
{
    struct hand *hand = ctx;
    struct ring *ring = &hand->ring;
    bool more;

    do {
        more = hand_fill(hand);
        ring_wake_thread(ring);
        if (atomic_load_explicit(&ring->ended, memory_order_relaxed)) {
            bell_close(&ring->bell);
            return;
        }
    } while (!more && ring_must_look_again(ring, ring_has_room, hand->at));
    if (more)
        bell_ring(&ring->bell);
}

static double run_hand(const struct bench_case *self,
                       const struct bench_how *how)
{
    return hand_play(self, how, hand_on_wake, hand_thread);
}

/* ---- uvarrow ------------------------------------------------------------ */

struct reader {
    struct ArrowDeviceArrayStream stream; /* owns */
    struct tally tally;
    const struct bench_how *how; /* borrows */
    uv_async_t gone;             /* closed once it has read everything */
    double ended_ns;
};

static void reader_thread(void *ctx)
{
    struct reader *reader = ctx;
    struct ArrowDeviceArrayStream *stream = &reader->stream;
    struct ArrowDeviceArray array;

    bench_stay_on(reader->how, 1);
    for (;;) {
        bench_check(stream->get_next(stream, &array) == 0, "get_next");
        if (array.array.release == NULL)
            break;
        tally_take(&reader->tally, &array.array);
        array.array.release(&array.array);
    }
    reader->ended_ns = bench_now_ns(reader->how);
    stream->release(stream);
    (void)uv_async_send(&reader->gone);
}

static void reader_on_gone(uv_async_t *async)
{
    uv_close((uv_handle_t *)async, NULL);
}

/* The source is called on the loop, as in the version by hand. */
static void reader_open(struct reader *reader, struct host *host,
                        struct input *input, int32_t window)
{
    const struct uva_arrow_source source = {.on_loop = true};
    const struct uva_window size = {.batches = window};
    struct uva_stream *stream;

    bench_check(uv_async_init(&host->loop, &reader->gone, reader_on_gone) == 0,
                "async");
    stream = uva_stream_from_device_stream(host->runtime, &input->abi, &source);
    bench_check(
        uva_stream_to_device_stream(stream, &size, &reader->stream, NULL) == 0,
        "to_blocking");
    uva_stream_release(stream);
}

static double run_reader(const struct bench_case *self,
                         const struct bench_how *how)
{
    struct reader reader = {.how = how};
    uv_thread_t thread;
    struct host host;
    struct input input;
    double begun;

    host_open(&host, how, 0);
    input_init(&input, how->batches);
    begun = bench_now_ns(how);
    reader_open(&reader, &host, &input, self->window);
    bench_check(uv_thread_create(&thread, reader_thread, &reader) == 0,
                "thread");
    (void)uv_run(&host.loop, UV_RUN_DEFAULT);
    (void)uv_thread_join(&thread);
    host_close(&host);
    tally_check(&reader.tally, how->batches);
    return reader.ended_ns - begun;
}

static const struct bench_case cases[] = {
    {"outlet/1/ring", 20000, run_hand, 1, 0, 0},
    {"outlet/1/uvarrow", 20000, run_reader, 1, 0, 0},
    {"outlet/1/spinning-ring", 20000, run_hand, 1, SPIN_NS, BENCH_APART},
    {"outlet/8/ring", 100000, run_hand, 8, 0, 0},
    {"outlet/8/uvarrow", 100000, run_reader, 8, 0, 0},
    {"outlet/8/spinning-ring", 100000, run_hand, 8, SPIN_NS, BENCH_APART},
    {"outlet/64/ring", 500000, run_hand, 64, 0, 0},
    {"outlet/64/uvarrow", 500000, run_reader, 64, 0, 0},
    {"outlet/64/spinning-ring", 500000, run_hand, 64, SPIN_NS, BENCH_APART},
    {"outlet/512/ring", 1000000, run_hand, 512, 0, 0},
    {"outlet/512/uvarrow", 1000000, run_reader, 512, 0, 0},
    {"outlet/512/spinning-ring", 1000000, run_hand, 512, SPIN_NS, BENCH_APART},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
