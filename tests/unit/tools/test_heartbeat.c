/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of the heartbeat. These tests do not depend on the machine's
 * speed: the loop is held until the clock has advanced as far as needed. */
#include "heartbeat.h"
#include "support/check_suite.h"

#include <check.h>

#define HELD_NS ((uint64_t)20000000)

static void hold(uv_idle_t *idle)
{
    const uint64_t begin = uv_hrtime();

    while (uv_hrtime() - begin < HELD_NS)
        ;
    uva__heartbeat_stop(idle->data);
    uv_close((uv_handle_t *)idle, NULL);
}

START_TEST(a_loop_that_is_held_makes_a_beat_late)
{
    struct uva__heartbeat heart;
    uv_loop_t loop;
    uv_idle_t idle;

    ck_assert_int_eq(uv_loop_init(&loop), 0);
    uva__heartbeat_start(&heart, &loop);
    (void)uv_idle_init(&loop, &idle);
    idle.data = &heart;
    (void)uv_idle_start(&idle, hold);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    uva__heartbeat_stop(&heart); /* a second stop has no effect */
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_uint_ge(heart.max_ns, HELD_NS - 1000000);
    ck_assert_uint_eq(uva__heartbeat_quantile_ns(&heart, 1), heart.max_ns);
    ck_assert_uint_ge(heart.beats, 1);
}
END_TEST

START_TEST(quantiles_are_within_an_eighth)
{
    struct uva__heartbeat heart = {0};
    uint64_t p50, p99;
    int i;

    /* sets counts by hand: 90 delays of 5 ns, 10 of 1000 ns */
    heart.max_ns = 1000;
    heart.beats = 100;
    for (i = 0; i < UVA__HEARTBEAT_CLASSES; i++)
        heart.counts[i] = i == 5 ? 90 : i == 8 * 6 + 15 ? 10 : 0;
    p50 = uva__heartbeat_quantile_ns(&heart, 0.5);
    p99 = uva__heartbeat_quantile_ns(&heart, 0.99);
    ck_assert_uint_eq(p50, 5);
    ck_assert_uint_ge(p99, 1000 - 1000 / 8);
    ck_assert_uint_le(p99, 1000);
}
END_TEST

int main(void)
{
    TCase *beats = tcase_create("beats");

    tcase_add_test(beats, a_loop_that_is_held_makes_a_beat_late);
    tcase_add_test(beats, quantiles_are_within_an_eighth);
    return suite_main("heartbeat", NULL, NULL, beats, NULL);
}
