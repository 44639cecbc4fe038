/* SPDX-License-Identifier: Apache-2.0 */
/* The other thread waits for a stream behind a gate, which the test opens as
 * its last step: a call that is held up until then never ends. */
#include "devices/gpu_beside.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "devices/gpu_fixture.h"
#include "support/check_suite.h"
#include "support/loop_fixture.h"

enum { BATCHES = 5, TURNS = 100 };

static const struct vendor_driver *gpu;
static const struct fake_control *control;
static struct gpu_fixture s;
static int ends; /* of streams */

static void tear_down(void)
{
    gpu_fixture_close(&s);
}

/* ---- the other thread --------------------------------------------------- */

static pthread_t waiter;
static atomic_bool waits;

static void *waiter_main(void *arg)
{
    (void)arg;
    gpu->enter();
    atomic_store(&waits, true);
    vendor_stream_drain(s.streams[0]);
    gpu->leave();
    return NULL;
}

/* Returns when the thread is inside the driver; with a real one, about then. */
static void waiter_begin(void)
{
    gpu->stream_gate(s.streams[0], &s.words[0], 1);
    atomic_store(&waits, false);
    ck_assert_int_eq(pthread_create(&waiter, NULL, waiter_main, NULL), 0);
    while (!atomic_load(&waits) || (control->fakegpu_count != NULL &&
                                    control->fakegpu_count(FAKE_DRAINING) == 0))
        (void)sched_yield();
}

static void waiter_end(void)
{
    gpu_fixture_pass(&s, 0);
    ck_assert_int_eq(pthread_join(waiter, NULL), 0);
}

/* ---- arrays and streams -------------------------------------------------- */

static void array_record(int k)
{
    struct uva_error error;

    gpu_fixture_array(&s, k, &s.arrays[k]);
    ck_assert_int_eq(
        uva_array_record(s.loop.runtime, &s.arrays[k], s.idle, &error), 0);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    ck_assert_str_eq(outcome->error.message, "");
    ends++;
}

/* Starts a stream of array k, which is ready, or copied. */
static struct uva_stream *stream_start(int k, bool copies)
{
    const struct uva_consumer consumer = {.on_batch = on_batch,
                                          .on_done = on_done};
    struct ArrowSchema schema;
    struct uva_stream *stream;

    fake_source_schema(&s.fake, &schema);
    stream = uva_stream_from_arrays(s.loop.runtime, &schema, &s.arrays[k], 1);
    if (copies)
        ck_assert_int_eq(
            uva_stream_transfer(
                stream,
                &(struct uva_transfer){.device_type = gpu->device_type}),
            0);
    ck_assert_int_eq(uva_stream_ready(stream, NULL), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    return stream;
}

static bool is_over(void *ctx)
{
    (void)ctx;
    return ends == 2 && s.answers == 1;
}

/* ---- cases -------------------------------------------------------------- */

/* A driver that holds one lock for all its calls lets this never end. */
START_TEST(a_call_that_waits_holds_up_no_other_thread)
{
    gpu_fixture_open(&s, gpu, control, 1);
    waiter_begin();
    array_record(0);
    gpu_fixture_ask(&s, 0, UVA_FOREVER);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, 0);
    uva_array_release(&s.arrays[0]);
    waiter_end();
}
END_TEST

/* These calls do not enter the driver on the loop's thread, and the turns of
 * the loop do not, so that they return even if a driver is locked. */
START_TEST(the_loop_goes_on_while_the_driver_is_locked)
{
    struct uva_stream *ready, *copied;

    gpu_fixture_open(&s, gpu, control, BATCHES);
    ends = 0;
    for (int k = 0; k < 3; k++)
        array_record(k);
    gpu_fixture_array(&s, 3, &s.arrays[3]);
    fake_source_batch(&s.fake, 4, &s.arrays[4]); /* of the host */
    waiter_begin();
    gpu_fixture_ask(&s, 0, UVA_FOREVER);
    uva_array_release(&s.arrays[1]);
    uva_array_release_after(s.loop.runtime, &s.arrays[3], s.idle);
    ready = stream_start(2, false);
    copied = stream_start(4, true);
    for (int i = 0; i < TURNS; i++) {
        (void)uv_run(&s.loop.uv, UV_RUN_NOWAIT);
        (void)sched_yield();
    }
    waiter_end();
    loop_until(&s.loop, is_over, NULL);
    ck_assert_int_eq(s.answer.code, 0);
    uva_array_release(&s.arrays[0]);
    uva_stream_release(ready);
    uva_stream_release(copied);
}
END_TEST

void gpu_beside_add(Suite *suite, const struct vendor_driver *driver,
                    const struct fake_control *fake)
{
    TCase *tc = suite_case(suite, "beside", NULL, tear_down);

    gpu = driver;
    control = fake;
    if (!vendor_driver_is("locks"))
        suite_add(tc, a_call_that_waits_holds_up_no_other_thread, NULL);
    suite_add(tc, the_loop_goes_on_while_the_driver_is_locked, NULL);
}
