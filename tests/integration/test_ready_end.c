/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a stream while a driver is inside the call that makes the
 * consumer's device stream wait: the loop goes on, and the end comes when the
 * driver has returned, wherever in the chain the stage is. A close of the
 * runtime waits for a limited time. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <semaphore.h>

#include "support/check_suite.h"
#include "support/fixture.h"

enum shape { ALONE, ABOVE_A_STAGE, IN_A_CONCAT, ABOVE_A_TEE, SHAPES };

static struct fixture f;

static struct {
    sem_t go;
    atomic_int calls;
    atomic_bool inside;  /* the device thread is in a call */
    atomic_long touched; /* the calls' use of the device stream */
} driver;

/* Holds the first call of the driver. */
static void hold(void *ctx)
{
    (void)ctx;
    if (atomic_fetch_add(&driver.calls, 1) > 0)
        return;
    atomic_store(&driver.inside, true);
    loop_nudge(&f.loop);
    while (sem_wait(&driver.go) != 0)
        continue;
    atomic_store(&driver.inside, false);
}

static bool driver_is_inside_or_late(void *ctx)
{
    (void)ctx;
    return atomic_load(&driver.inside) || atomic_load(&f.got.done) != 0;
}

static void driver_free(void)
{
    (void)sem_post(&driver.go);
}

static void tear_down(void)
{
    fixture_close(&f);
    (void)sem_destroy(&driver.go);
}

static void shape_make(enum shape shape)
{
    struct uva_stream *branch;

    if (shape == ABOVE_A_STAGE)
        (void)uva_stream_throttle(
            f.stream, &(struct uva_throttle){.batches_per_s = 1000000});
    if (shape == IN_A_CONCAT)
        (void)uva_stream_concat(f.stream, NULL, 0,
                                &(struct uva_merge){.open_at_once = 2});
    if (shape != ABOVE_A_TEE)
        return;
    branch = uva_stream_tee(f.stream, NULL);
    uva_stream_release(branch);
}

/* Starts a stream, and waits until the driver is inside a call for it. Returns
 * whether it is: the time limit may pass before. */
static bool start_once(enum shape shape, int64_t timeout_ms)
{
    const struct uva_ready options = {.wait = UVA_WAIT_STREAM,
                                      .device_stream = &driver.touched,
                                      .timeout_ms = timeout_ms};

    ck_assert_int_eq(sem_init(&driver.go, 0, 0), 0);
    atomic_store(&driver.calls, 0);
    fixture_open_device(&f, SOFT_POLLS, 20);
    f.device.chaining = hold;
    fixture_ready(&f, fixture_device_stream(&f), &options);
    shape_make(shape);
    fixture_start(&f);
    loop_until(&f.loop, driver_is_inside_or_late, NULL);
    return atomic_load(&driver.inside);
}

static void start(enum shape shape, int64_t timeout_ms)
{
    while (!start_once(shape, timeout_ms))
        tear_down();
}

/* The stream ends when the driver returns, and its device stream is left
 * alone from then on. */
static void ends_with(int code)
{
    long touched;

    loop_settle(&f.loop); /* it hangs if the loop waits for the driver */
    ck_assert_int_eq(atomic_load(&f.got.done), 0);
    driver_free();
    ck_assert_int_eq(fixture_await(&f), code);
    ck_assert(!atomic_load(&driver.inside));
    touched = atomic_load(&driver.touched);
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&driver.touched), touched);
}

START_TEST(a_cancelled_stream_ends_when_the_driver_returns)
{
    start((enum shape)_i, 0);
    uva_stream_cancel(f.stream, ECANCELED, NULL);
    ends_with(ECANCELED);
}
END_TEST

START_TEST(a_stream_at_its_time_limit_ends_when_the_driver_returns)
{
    start((enum shape)_i, 1);
    loop_pass(&f.loop, 4);
    ends_with(ETIMEDOUT);
}
END_TEST

/* The loop has turned many times since the close began. */
static void free_at_turn(uv_idle_t *idle)
{
    int *turns = idle->data;

    if (++*turns < 20)
        return;
    ck_assert_int_eq(atomic_load(&f.got.done), 0);
    driver_free();
    uv_close((uv_handle_t *)idle, NULL);
}

START_TEST(a_close_ends_when_the_driver_returns)
{
    uv_idle_t idle;
    int turns = 0;

    start((enum shape)_i, 0);
    ck_assert_int_eq(uv_idle_init(&f.loop.uv, &idle), 0);
    idle.data = &turns;
    ck_assert_int_eq(uv_idle_start(&idle, free_at_turn), 0);
    uva_stream_release(f.stream);
    f.stream = NULL;
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(atomic_load(&f.got.done), 1);
    ck_assert(!atomic_load(&driver.inside));
}
END_TEST

START_TEST(a_close_leaves_a_driver_behind_that_is_stuck)
{
    start((enum shape)_i, _i == ALONE ? 2 : 0);
    if (_i == ALONE) { /* the batch that has failed is in use, too */
        loop_pass(&f.loop, 4);
        loop_settle(&f.loop);
    }
    uva_stream_release(f.stream);
    f.stream = NULL;
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(atomic_load(&f.got.done), 1);
    ck_assert(atomic_load(&driver.inside));
    driver_free();
    while (atomic_load(&f.fake.live) != 0)
        sched_yield();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ends");

    tcase_set_timeout(tc, 60);
    suite_add_loops(tc, 0, SHAPES,
                    a_cancelled_stream_ends_when_the_driver_returns,
                    a_stream_at_its_time_limit_ends_when_the_driver_returns,
                    a_close_ends_when_the_driver_returns,
                    a_close_leaves_a_driver_behind_that_is_stuck, NULL);
    return suite_main("ready end", NULL, tear_down, tc, NULL);
}
