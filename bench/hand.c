/* SPDX-License-Identifier: Apache-2.0 */
/* The hand is static, and its ring has its own cache lines. */
#include "hand.h"

double hand_play(const struct bench_case *self, const struct bench_how *how,
                 void (*on_wake)(void *hand), uv_thread_cb thread)
{
    static struct hand hand;
    uv_thread_t other;
    uv_loop_t loop;
    double begun;

    bench_stay_on(how, 0);
    hand = (struct hand){.how = how};
    bench_check(uv_loop_init(&loop) == 0, "loop");
    ring_init(&hand.ring, self->window, (uint64_t)self->more, &loop, on_wake);
    input_init(&hand.input, how->batches);
    begun = bench_now_ns(how);
    bench_check(uv_thread_create(&other, thread, &hand) == 0, "thread");
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_thread_join(&other);
    bench_check(uv_loop_close(&loop) == 0, "loop not empty");
    ring_fini(&hand.ring);
    tally_check(&hand.tally, how->batches);
    return hand.ended_ns - begun;
}
