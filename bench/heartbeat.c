/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the 99th percentile of how late a 1 ms timer fires, on an idle loop
 * and on a loop that receives from a source that blocks for 10 ms a batch. For
 * comparison, a thread only wakes a loop every 10 ms: the cost of any wake-up
 * for a libuv timer. A case takes as long as its batches. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "bell.h"
#include "host.h"

enum { BLOCKS_NS = 10000000, TICK_MS = 1, TICKS_A_BATCH = 10 };

struct pulse {
    uv_timer_t timer;
    uint64_t *gaps; /* owns; ns */
    int64_t count;  /* number of gaps */
    int64_t most;
    uint64_t last; /* time of the last tick, or 0 */
};

static void pulse_on_tick(uv_timer_t *timer)
{
    struct pulse *pulse = timer->data;
    const uint64_t now = uv_hrtime();

    if (pulse->last != 0 && pulse->count < pulse->most)
        pulse->gaps[pulse->count++] = now - pulse->last;
    pulse->last = now;
    if (pulse->count == pulse->most)
        uv_close((uv_handle_t *)timer, NULL);
}

static void pulse_start(struct pulse *pulse, uv_loop_t *loop, int64_t ticks)
{
    *pulse = (struct pulse){.most = ticks};
    pulse->gaps = malloc(sizeof(pulse->gaps[0]) * (size_t)ticks);
    bench_check(pulse->gaps != NULL, "memory");
    bench_check(uv_timer_init(loop, &pulse->timer) == 0, "timer");
    pulse->timer.data = pulse;
    (void)uv_timer_start(&pulse->timer, pulse_on_tick, TICK_MS, TICK_MS);
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Returns the microseconds beyond 1 ms. */
static double pulse_fini(struct pulse *pulse)
{
    double late_us;

    qsort(pulse->gaps, (size_t)pulse->count, sizeof(pulse->gaps[0]), ascending);
    late_us =
        (double)pulse->gaps[pulse->count * 99 / 100] / 1e3 - TICK_MS * 1e3;
    free(pulse->gaps);
    return late_us;
}

/* ---- the source --------------------------------------------------------- */

static int blocking_get_next(struct ArrowDeviceArrayStream *self,
                             struct ArrowDeviceArray *out)
{
    const struct timespec pause = {.tv_nsec = BLOCKS_NS};
    struct input *input = self->private_data;

    (void)nanosleep(&pause, NULL);
    if (input->next == input->count)
        out->array.release = NULL;
    else
        batch_fill(out, input->next++);
    return 0;
}

static double run_empty(const struct bench_case *self,
                        const struct bench_how *how)
{
    struct pulse pulse;
    uv_loop_t loop;

    bench_stay_on(how, 0);
    bench_check(uv_loop_init(&loop) == 0, "loop");
    pulse_start(&pulse, &loop, how->batches * TICKS_A_BATCH);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    bench_check(uv_loop_close(&loop) == 0, "loop not empty");
    bench_print(self->name, pulse_fini(&pulse), "us");
    return 0;
}

/* ---- a wake-up by hand -------------------------------------------------- */

/* A thread that wakes a loop `left` times. */
struct waker {
    struct bell bell;
    int64_t left; /* wake-ups left */
    pthread_t thread;
};

static void *waker_main(void *arg)
{
    const struct timespec pause = {.tv_nsec = BLOCKS_NS};
    struct waker *waker = arg;

    for (; waker->left > 0; waker->left--) {
        (void)nanosleep(&pause, NULL);
        bell_ring(&waker->bell);
    }
    return NULL;
}

static void waker_on_wake(void *waker)
{
    (void)waker;
}

static double run_woken(const struct bench_case *self,
                        const struct bench_how *how)
{
    struct waker waker = {.left = how->batches};
    struct pulse pulse;
    uv_loop_t loop;

    bench_stay_on(how, 0);
    bench_check(uv_loop_init(&loop) == 0, "loop");
    bell_init(&waker.bell, &loop, waker_on_wake, &waker);
    uv_unref((uv_handle_t *)&waker.bell.poll);
    pulse_start(&pulse, &loop, how->batches * TICKS_A_BATCH);
    bench_check(pthread_create(&waker.thread, NULL, waker_main, &waker) == 0,
                "thread");
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)pthread_join(waker.thread, NULL);
    bell_close(&waker.bell);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    bell_fini(&waker.bell);
    bench_check(uv_loop_close(&loop) == 0, "loop not empty");
    bench_print(self->name, pulse_fini(&pulse), "us");
    return 0;
}

/* ---- uvarrow ------------------------------------------------------------ */

static double run_blocked(const struct bench_case *self,
                          const struct bench_how *how)
{
    struct tally tally = {0};
    struct pulse pulse;
    struct host host;
    struct input input;

    host_open(&host, how, 0);
    input_init(&input, how->batches);
    input.abi.get_next = blocking_get_next;
    host_for_each(&host,
                  uva_stream_from_device_stream(host.runtime, &input.abi, NULL),
                  &tally);
    pulse_start(&pulse, &host.loop, how->batches * TICKS_A_BATCH);
    (void)host_run(&host);
    host_close(&host);
    tally_check(&tally, how->batches);
    bench_print(self->name, pulse_fini(&pulse), "us");
    return 0;
}

static const struct bench_case cases[] = {
    {"heartbeat/empty", 100, run_empty, 0, 0, BENCH_PRINTS},
    {"heartbeat/bell", 100, run_woken, 0, 0, BENCH_PRINTS},
    {"heartbeat/uvarrow", 100, run_blocked, 0, 0, BENCH_PRINTS},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
