/* SPDX-License-Identifier: Apache-2.0 */
/* The option close_limit_ms: how long a close waits for a call that does not
 * return. Two runtimes on one loop show that it counts: the one with the
 * shorter limit has closed first, although it began later. */
#include <check.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/fake_source.h"
#include "support/recording_consumer.h"
#include "uvarrow/runtime.h"

/* One runtime with a source that is stuck in its first read. */
struct guest {
    struct uva_runtime *runtime;
    struct fake_source fake;
    struct recording_consumer consumer;
    struct uva_runtime_stats stats; /* when it had closed */
    int place;                      /* 1: it was the first that had closed */
};

static uv_loop_t loop;
static struct guest slow, fast;
static int closings;

static void set_up(void)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    closings = 0;
}

static void tear_down(void)
{
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

static void guest_open(struct guest *guest, int64_t close_limit_ms)
{
    const struct uva_runtime_options options = {.close_limit_ms =
                                                    close_limit_ms};
    struct uva_arrow_source stuck;
    struct ArrowArrayStream source;

    fake_source_init(&guest->fake, 3);
    recording_init(&guest->consumer);
    guest->fake.gate_at = 0;
    stuck = fake_source_options(&guest->fake);
    stuck.interrupt = NULL;
    fake_source_plain(&guest->fake, &source);
    ck_assert_int_eq(uva_runtime_open(&loop, &options, &guest->runtime, NULL),
                     0);
    recording_consume(&guest->consumer, uva_stream_from_arrow_stream(
                                            guest->runtime, &source, &stuck));
    while (!fake_source_is_waiting(&guest->fake))
        (void)uv_run(&loop, UV_RUN_NOWAIT);
}

static void guest_closed(void *ctx)
{
    struct guest *guest = ctx;

    uva_runtime_get_stats(guest->runtime, &guest->stats);
    guest->place = ++closings;
}

static void guest_close(struct guest *guest)
{
    ck_assert_int_eq(uva_runtime_close(guest->runtime, 0, guest_closed, guest),
                     0);
}

/* Its call was abandoned, and returns now. */
static void guest_end(struct guest *guest)
{
    ck_assert_int_eq(guest->stats.calls_stuck, 1);
    ck_assert_int_eq(guest->consumer.outcome.end, UVA_END_CANCELLED);
    fake_source_open_gate(&guest->fake);
    await_count(&guest->fake.freed, 1);
    fake_source_fini(&guest->fake);
}

/* Index: the default, and a limit that is longer than a test may take. */
START_TEST(a_shorter_limit_ends_a_close_sooner)
{
    guest_open(&slow, _i == 0 ? 0 : 3600000);
    guest_open(&fast, _i == 0 ? 1 : 50);
    guest_close(&slow);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    guest_close(&fast);
    while (closings == 0)
        (void)uv_run(&loop, UV_RUN_ONCE);
    ck_assert_int_eq(fast.place, 1);
    guest_end(&fast);
    if (_i == 0) {
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        guest_end(&slow);
        return;
    }
    fake_source_open_gate(&slow.fake); /* the close goes on with the return */
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(slow.place, 2);
    ck_assert_int_eq(slow.stats.calls_stuck, 0);
    await_count(&slow.fake.freed, 1);
    fake_source_fini(&slow.fake);
}
END_TEST

START_TEST(a_negative_limit_is_refused)
{
    const struct uva_runtime_options bad = {.close_limit_ms = -1};
    struct uva_runtime *runtime = NULL;
    struct uva_error error;

    ck_assert_int_eq(uva_runtime_open(&loop, &bad, &runtime, &error), EINVAL);
    ck_assert_ptr_null(runtime);
    ck_assert_ptr_nonnull(strstr(error.message, "close_limit_ms"));
}
END_TEST

int main(void)
{
    TCase *limit = tcase_create("limit");

    tcase_set_timeout(limit, 60);
    suite_add_loops(limit, 0, 2, a_shorter_limit_ends_a_close_sooner, NULL);
    suite_add(limit, a_negative_limit_is_refused, NULL);
    return suite_main("close limit", set_up, tear_down, limit, NULL);
}
