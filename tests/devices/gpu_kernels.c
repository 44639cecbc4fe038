/* SPDX-License-Identifier: Apache-2.0 */
/* The work is a gate on the stream of the map, after the gates of the batches'
 * own events. */
#include "devices/gpu_kernels.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "devices/gpu_fixture.h"
#include "support/check_suite.h"
#include "support/loop_fixture.h"

/* WORK: the stream of the map. EVENT: the event that the function records. */
enum { BATCHES = 12, WORK = GPU_STREAMS - 1, EVENT = BATCHES };

static const struct vendor_driver *gpu;
static const struct fake_control *control;
static struct gpu_fixture s;

/* ---- the function ------------------------------------------------------- */

static struct {
    bool moves;     /* the result takes the input over */
    bool allocates; /* the function allocates memory of the device */
    bool may_fail;  /* it records an event instead of a gate */
    atomic_long calls, wrong, freed;
} work;

/* The calls fail unless a context is current on this thread. */
static int work_begin(void *device_stream, struct uva_error *error)
{
    int code = 0;

    if (work.allocates) /* may be held */
        gpu->device_free(gpu->device_alloc(8));
    if (work.may_fail)
        code = vendor_calls.event_record(s.events[EVENT], device_stream);
    else
        gpu->stream_gate(device_stream, &s.words[WORK], 1);
    if (code == 0)
        return 0;
    (void)uva_error_set(error, EIO, "the kernel could not be launched");
    error->vendor_code = code;
    return EIO;
}

static int work_make(struct uva_batch *in, struct ArrowDeviceArray *out,
                     void *device_stream, struct uva_error *error)
{
    const int code = work_begin(device_stream, error);

    if (code != 0)
        return code;
    if (work.moves) {
        uva_array_move(&in->data, out);
        return 0;
    }
    fake_source_batch(&s.fake, in->ordinal, out);
    out->device_type = 0;
    return 0;
}

/* Counts the call when its arrays are there. */
static int queue_gate(void *ctx, struct uva_batch *in,
                      struct ArrowDeviceArray *out,
                      const struct uva_device_queue *queue,
                      struct uva_error *error)
{
    const int code = work_make(in, out, queue->device_stream, error);

    (void)ctx;
    if (queue->device_type != gpu->device_type || queue->device_id != 0)
        atomic_fetch_add(&work.wrong, 1);
    atomic_fetch_add(&work.calls, 1);
    return code;
}

static void work_free(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&work.freed, 1);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct gpu_fixture *fixture = ctx;

    if (batch->data.device_type != gpu->device_type)
        atomic_fetch_add(&work.wrong, 1);
    fixture->batches++;
    return 0;
}

/* Starts a stream of the first `count` arrays, with the function after it. */
static struct uva_stream *work_start(int count, void *device_stream,
                                     enum uva_wait wait)
{
    const struct uva_device_map options = {.batch = queue_gate,
                                           .free_ctx = work_free,
                                           .device_stream = device_stream};
    const struct uva_ready ready = {.wait = wait};
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = gpu_fixture_on_done, .ctx = &s};
    struct ArrowSchema schema;
    struct uva_stream *stream;

    fake_source_schema(&s.fake, &schema);
    stream = uva_stream_from_arrays(s.loop.runtime, &schema, s.arrays,
                                    (size_t)count);
    ck_assert_int_eq(uva_stream_map_device(stream, &options), 0);
    ck_assert_int_eq(uva_stream_ready(stream, &ready), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    return stream;
}

static void open_with(int64_t batches)
{
    memset(&work, 0, sizeof(work));
    gpu_fixture_open(&s, gpu, control, batches);
}

static void tear_down(void)
{
    gpu_fixture_close(&s);
    ck_assert_int_eq(work.wrong, 0);
}

/* Waits until as many arrays are left. */
static void await_live(long n)
{
    while (atomic_load(&s.fake.live) != n)
        (void)sched_yield();
}

static void commands_end(void)
{
    gpu_fixture_commands_end(&s, BATCHES);
}

/* Opens the gates of the batches, but not the gate of the work. The batches are
 * on the streams before the map's. */
static void inputs_pass(void)
{
    for (int i = 0; i < WORK; i++)
        atomic_store(&s.words[i], GPU_BATCHES);
}

/* Makes batches on the streams before the map's. */
static void inputs_make(int count)
{
    for (int k = 0; k < count; k++) {
        void *stream = s.streams[k % WORK];
        gpu->stream_gate(stream, &s.words[k % WORK], 1);
        s.events[k] = vendor_event_new();
        vendor_event_record(s.events[k], stream);
        gpu_fixture_array(&s, k, &s.arrays[k]);
        s.arrays[k].sync_event = &s.events[k];
    }
}

/* ---- with any driver ---------------------------------------------------- */

/* The consumer has released its batches when the stream has ended. */
START_TEST(a_kernel_keeps_what_it_uses_while_it_runs)
{
    const long arrays = _i == 0 ? 2 * BATCHES : BATCHES;
    struct uva_stream *stream;

    open_with(BATCHES);
    work.moves = _i == 1;
    inputs_make(BATCHES);
    stream = work_start(BATCHES, s.streams[WORK], UVA_WAIT_NONE);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, BATCHES);
    ck_assert_int_eq(work.calls, BATCHES);
    uva_stream_release(stream);
    for (int i = 0; i < 10; i++)
        commands_end();
    ck_assert_int_eq(atomic_load(&s.fake.live), arrays);
    inputs_pass();
    for (int i = 0; i < WORK; i++)
        vendor_stream_drain(s.streams[i]);
    for (int i = 0; i < 10; i++)
        commands_end();
    ck_assert_int_eq(atomic_load(&s.fake.live), arrays);
    gpu_fixture_pass_all(&s);
    await_live(0);
}
END_TEST

/* The gates of the inputs open first, or the gate of the work. */
START_TEST(a_result_is_complete_behind_its_input_and_its_kernel)
{
    struct uva_stream *stream;

    open_with(BATCHES);
    inputs_make(BATCHES);
    stream = work_start(BATCHES, s.streams[WORK], UVA_WAIT_HOST);
    if (_i == 0)
        inputs_pass();
    else
        atomic_store(&s.words[WORK], 1);
    while (atomic_load(&work.calls) < BATCHES)
        loop_settle(&s.loop);
    for (int i = 0; i < 10; i++)
        commands_end();
    loop_settle(&s.loop);
    ck_assert_int_eq(s.batches, 0);
    gpu_fixture_pass_all(&s);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, BATCHES);
    uva_stream_release(stream);
    await_live(0);
}
END_TEST

START_TEST(a_cancel_leaves_kernels_what_they_use)
{
    struct uva_stream *stream;

    open_with(BATCHES);
    inputs_make(BATCHES);
    stream = work_start(BATCHES, s.streams[WORK], UVA_WAIT_HOST);
    while (atomic_load(&work.calls) < BATCHES)
        loop_settle(&s.loop);
    uva_stream_cancel(stream, ECANCELED, "enough");
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_CANCELLED);
    uva_stream_release(stream);
    if (_i == 1)
        loop_close_runtime(&s.loop, 0);
    else
        commands_end();
    ck_assert_int_eq(atomic_load(&s.fake.live), 2 * BATCHES);
    gpu_fixture_pass_all(&s);
    await_live(0);
}
END_TEST

/* The legacy default stream, by its two handles, and the thread's. */
START_TEST(a_kernel_runs_on_a_default_stream)
{
    void *const handle = (void *)(uintptr_t)_i;
    struct uva_stream *stream;

    open_with(1);
    inputs_make(1);
    stream = work_start(1, handle, UVA_WAIT_NONE);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.error.code, _i < 2 ? 0 : ENOTSUP);
    ck_assert_int_eq(s.batches, _i < 2);
    ck_assert_int_eq(work.calls, _i < 2);
    if (_i == 2)
        ck_assert_ptr_nonnull(
            strstr(s.outcome.error.message, "pass a stream that was created"));
    uva_stream_release(stream);
    commands_end();
    ck_assert_int_eq(atomic_load(&s.fake.live), _i < 2 ? 2 : 0);
    gpu_fixture_pass_all(&s);
    await_live(0);
}
END_TEST

/* ---- with a fake driver ------------------------------------------------- */

/* The call is held: the loop goes on, and events are answered. */
START_TEST(a_function_that_blocks_holds_up_no_event)
{
    struct uva_stream *stream;

    open_with(3);
    inputs_make(1);
    s.events[1] = vendor_event_new();
    vendor_event_record(s.events[1], s.idle);
    gpu_fixture_array(&s, 1, &s.arrays[1]);
    s.arrays[1].sync_event = &s.events[1];
    work.allocates = true;
    control->fakegpu_hold(FAKE_HOLD_ALLOC);
    stream = work_start(1, s.streams[WORK], UVA_WAIT_NONE);
    while (control->fakegpu_count(FAKE_HELD) == 0)
        loop_settle(&s.loop);
    gpu_fixture_ask(&s, 1, UVA_FOREVER);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answers, 1);
    ck_assert_int_eq(s.answer.code, 0);
    ck_assert_int_ne(control->fakegpu_count(FAKE_HELD), 0);
    commands_end();
    control->fakegpu_hold(0);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.batches, 1);
    uva_stream_release(stream);
    uva_array_release(&s.arrays[1]);
}
END_TEST

/* Returns whether the stream failed. The event that keeps an array may be known
 * to have failed, or not at all: then the workers' end releases it. */
static bool play(void)
{
    struct uva_stream *stream;
    bool failed;

    work.may_fail = true;
    s.events[EVENT] = vendor_event_new();
    inputs_make(2);
    stream = work_start(2, s.streams[WORK], UVA_WAIT_HOST);
    gpu_fixture_pass_all(&s);
    gpu_fixture_until_done(&s);
    failed = s.outcome.end == UVA_END_FAILED;
    ck_assert(failed || s.outcome.end == UVA_END_COMPLETE);
    ck_assert_int_eq(s.outcome.error.code, failed ? EIO : 0);
    ck_assert_int_eq(s.outcome.error.vendor_code, failed ? 999 : 0);
    ck_assert(failed || s.batches == 2);
    uva_stream_release(stream);
    loop_close_runtime(&s.loop, 0);
    return failed;
}

START_TEST(any_call_for_a_kernel_may_fail)
{
    long calls, k = 0, failed = 0;

    do {
        open_with(2);
        calls = control->fakegpu_count(FAKE_CALLS);
        control->fakegpu_fail(++k, 999);
        failed += play();
        calls = control->fakegpu_count(FAKE_CALLS) - calls;
        control->fakegpu_fail(0, 0);
        await_live(0);
        control->fakegpu_poison(0);
        gpu_fixture_close(&s);
        ck_assert_int_eq(work.freed, 1);
    } while (calls >= k);
    ck_assert_int_gt(k, 10);
    ck_assert_int_gt(failed, 10);
}
END_TEST

START_TEST(a_device_that_has_failed_runs_no_kernel)
{
    struct uva_stream *stream;

    open_with(1);
    inputs_make(1);
    control->fakegpu_poison(719);
    stream = work_start(1, s.streams[WORK], UVA_WAIT_NONE);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.error.code, EIO);
    ck_assert_int_eq(s.outcome.error.vendor_code, 719);
    ck_assert_int_eq(work.calls, 0);
    uva_stream_release(stream);
    gpu_fixture_pass_all(&s);
    loop_close_runtime(&s.loop, 0);
    control->fakegpu_poison(0);
}
END_TEST

/* The kernel fails the device: the wait after it ends, and so does the wait for
 * its memory. */
START_TEST(a_kernel_that_fails_lets_go_of_what_it_used)
{
    struct uva_stream *stream;

    open_with(1);
    inputs_make(1);
    stream = work_start(1, s.streams[WORK], UVA_WAIT_HOST);
    while (atomic_load(&work.calls) < 1)
        loop_settle(&s.loop);
    while (control->fakegpu_count(FAKE_EVENTS) < 2) /* recorded by then */
        loop_settle(&s.loop);
    loop_settle(&s.loop);
    control->fakegpu_poison(719);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.error.code, EIO);
    ck_assert_int_eq(s.outcome.error.vendor_code, 719);
    uva_stream_release(stream);
    gpu_fixture_pass_all(&s);
    loop_close_runtime(&s.loop, 0);
    await_live(0);
    control->fakegpu_poison(0);
}
END_TEST

/* ---- the suite ---------------------------------------------------------- */

void gpu_kernels_add(Suite *suite, const struct vendor_driver *driver,
                     const struct fake_control *fake)
{
    TCase *tc = suite_case(suite, "kernels", NULL, tear_down);

    gpu = driver;
    control = fake;
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_kernel_keeps_what_it_uses_while_it_runs, 0, 2);
    tcase_add_loop_test(
        tc, a_result_is_complete_behind_its_input_and_its_kernel, 0, 2);
    tcase_add_loop_test(tc, a_cancel_leaves_kernels_what_they_use, 0, 2);
    tcase_add_loop_test(tc, a_kernel_runs_on_a_default_stream, 0, 3);
    if (fake->fakegpu_count == NULL)
        return;
    if (!vendor_driver_is("locks")) /* which holds up all calls */
        suite_add(tc, a_function_that_blocks_holds_up_no_event, NULL);
    suite_add(tc, any_call_for_a_kernel_may_fail,
              a_device_that_has_failed_runs_no_kernel,
              a_kernel_that_fails_lets_go_of_what_it_used, NULL);
}
