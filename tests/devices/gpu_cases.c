/* SPDX-License-Identifier: Apache-2.0 */
/* Events that are pending, complete, cancelled, or many; a close meanwhile;
 * work of the program's streams; copies. With a fake driver: failures of the
 * device and of each call. */
#include "devices/gpu_cases.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "device/gpu_streams.h"
#include "devices/gpu_fixture.h"
#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/faulty_libc.h"

static const struct vendor_driver *gpu;
static const struct fake_control *control;
static struct gpu_fixture s;

/* Opens the fixture with `batches` batches, of which `arrays` have events. */
static void open_with(int64_t batches, int arrays)
{
    gpu_fixture_open(&s, gpu, control, batches);
    gpu_fixture_arrays(&s, arrays);
}

static void tear_down(void)
{
    gpu_fixture_close(&s);
}

/* Waits for the result of a wait for array k, and releases the array. */
static void await_and_release(int k)
{
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, 0);
    uva_array_release(&s.arrays[k]);
}

/* ---- events ------------------------------------------------------------- */

START_TEST(batches_come_when_their_events_are_complete)
{
    struct uva_stream *stream;

    open_with(64, 64);
    stream = gpu_fixture_ready(&s, 64, NULL);
    loop_settle(&s.loop);
    ck_assert_int_eq(s.batches, 0);
    for (int k = 0; k < 64; k++)
        gpu_fixture_pass(&s, k);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, 64);
    uva_stream_release(stream);
}
END_TEST

/* By the documents of CUDA, and by newer documents of HIP. */
START_TEST(an_event_that_was_never_recorded_is_complete)
{
    const bool pending = vendor_driver_is("unrecorded");

    open_with(1, 0);
    s.events[0] = vendor_event_new();
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    s.arrays[0].sync_event = &s.events[0];
    gpu_fixture_ask(&s, 0, pending ? 30 : UVA_FOREVER);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, pending ? ETIMEDOUT : 0);
    uva_array_release(&s.arrays[0]);
}
END_TEST

/* Waits until the library waits for the event as for a long one. A real driver
 * does not report that, so the time limit of one array's wait measures the
 * time. */
static void event_lasts(int k)
{
    if (gpu->calls_back && control->fakegpu_count != NULL) {
        gpu_fixture_ask(&s, k, UVA_FOREVER);
        while (control->fakegpu_count(FAKE_ARMED) == 0)
            (void)sched_yield();
        return;
    }
    gpu_fixture_ask(&s, k, 30);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, ETIMEDOUT);
    gpu_fixture_ask(&s, k, UVA_FOREVER);
}

START_TEST(an_event_that_lasts_is_waited_for)
{
    long before = 0;

    open_with(1, 1);
    if (control->fakegpu_count != NULL)
        before = control->fakegpu_count(FAKE_CALLBACKS);
    event_lasts(0);
    gpu_fixture_pass(&s, 0);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, 0);
    ck_assert(gpu->event_is_over(s.events[0]));
    uva_array_release(&s.arrays[0]);
    gpu_fixture_close(&s);
    if (gpu->calls_back && control->fakegpu_count != NULL)
        while (control->fakegpu_count(FAKE_CALLBACKS) == before)
            (void)sched_yield();
}
END_TEST

START_TEST(patience_with_one_array_ends)
{

    open_with(1, 1);
    gpu_fixture_ask(&s, 0, 1);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, ETIMEDOUT);
    uva_array_release(&s.arrays[0]);
}
END_TEST

START_TEST(many_events_may_be_outstanding)
{
    struct uva_ready options = {.window.batches = GPU_BATCHES};
    struct uva_stream *stream;

    open_with(GPU_BATCHES, GPU_BATCHES);
    stream = gpu_fixture_ready(&s, GPU_BATCHES, &options);
    loop_settle(&s.loop);
    ck_assert_int_eq(s.batches, 0);
    gpu_fixture_pass_all(&s);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, GPU_BATCHES);
    uva_stream_release(stream);
}
END_TEST

/* The remaining events are polled. The second wait for the last event gives the
 * library time to try every event; the double counts calls that a driver would
 * not take. */
START_TEST(callbacks_are_as_few_as_drivers_take)
{
    enum { MANY = 3 * UVA__GPU_ARMED_MOST };

    if (!gpu->calls_back || control->fakegpu_count == NULL)
        return;
    open_with(MANY, MANY);
    for (int k = 0; k < MANY; k++) {
        s.arrays[k].device_type =
            k % 2 == 0 ? gpu->device_type : gpu->host_type;
        s.arrays[k].device_id = k % 4 == 3 ? -1 : 0;
        gpu_fixture_ask(&s, k, UVA_FOREVER);
    }
    while (control->fakegpu_count(FAKE_ARMED) < UVA__GPU_ARMED_MOST)
        (void)sched_yield();
    gpu_fixture_ask(&s, MANY - 1, 50);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, ETIMEDOUT);
    gpu_fixture_pass_all(&s);
    while (s.answers < MANY + 1)
        gpu_fixture_until_done(&s);
    ck_assert_int_eq(control->fakegpu_count(FAKE_BREACHES), 0);
    for (int k = 0; k < MANY; k++)
        uva_array_release(&s.arrays[k]);
}
END_TEST

/* A callback is queued for one event, so there is a stream for another one's.
 * The context is entered twice for it: to make a stream more, and to queue the
 * callback. */
START_TEST(an_event_whose_callback_cannot_be_queued_is_polled)
{
    const int calls = _i == 0 ? FAKE_REFUSE_ENTER : FAKE_REFUSE_WAIT;

    if (!gpu->calls_back || control->fakegpu_count == NULL)
        return;
    open_with(2, 2);
    event_lasts(0);
    control->fakegpu_refuse(calls);
    gpu_fixture_ask(&s, 1, UVA_FOREVER);
    while (control->fakegpu_count(FAKE_REFUSED) <
           (calls == FAKE_REFUSE_ENTER ? 2 : 1))
        (void)sched_yield();
    ck_assert_int_eq(control->fakegpu_count(FAKE_ARMED), 1);
    gpu_fixture_pass(&s, 1);
    await_and_release(1);
    ck_assert_int_eq(s.answers, 1);
    control->fakegpu_refuse(0);
    gpu_fixture_pass(&s, 0);
    await_and_release(0);
}
END_TEST

START_TEST(one_that_is_late_does_not_hold_up_the_others)
{

    open_with(4, 4);
    for (int k = 0; k < 4; k++)
        gpu_fixture_ask(&s, k, UVA_FOREVER);
    for (int k = 3; k > 0; k--) {
        gpu_fixture_pass(&s, k);
        gpu_fixture_until_done(&s);
        ck_assert_int_eq(s.answers, 4 - k);
    }
    gpu_fixture_pass(&s, 0);
    gpu_fixture_until_done(&s);
    for (int k = 0; k < 4; k++)
        uva_array_release(&s.arrays[k]);
}
END_TEST

/* ---- how streams end ---------------------------------------------------- */

START_TEST(a_cancelled_stream_lets_go_of_what_it_waits_for)
{
    struct uva_stream *stream;

    open_with(64, 64);
    stream = gpu_fixture_ready(&s, 64, NULL);
    gpu_fixture_pass(&s, 0);
    loop_settle(&s.loop);
    uva_stream_cancel(stream, ECANCELED, "enough");
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_CANCELLED);
    uva_stream_release(stream);
}
END_TEST

/* The loop index is the number of loop turns before the close. */
START_TEST(a_close_comes_while_events_are_armed)
{
    struct uva_stream *stream;

    open_with(64, 64);
    stream = gpu_fixture_ready(&s, 64, NULL);
    for (int i = 0; i < _i; i++)
        loop_settle(&s.loop);
    uva_stream_release(stream);
    loop_close_runtime(&s.loop, 0);
}
END_TEST

START_TEST(a_close_comes_while_a_callback_is_armed)
{

    open_with(1, 1);
    event_lasts(0);
    loop_close_runtime(&s.loop, 0);
    ck_assert_int_ne(s.answer.code, 0);
    uva_array_release(&s.arrays[0]);
}
END_TEST

START_TEST(two_runtimes_wait_for_the_same_event)
{
    struct loop_fixture other;
    struct uva_runtime *first;

    open_with(1, 1);
    loop_open(&other);
    gpu_fixture_ask(&s, 0, UVA_FOREVER);
    first = s.loop.runtime;
    s.loop.runtime = other.runtime;
    gpu_fixture_ask(&s, 0, UVA_FOREVER);
    s.loop.runtime = first;
    gpu_fixture_pass(&s, 0);
    gpu_fixture_until_done(&s);
    while (s.answers < 2)
        loop_turn(&other);
    ck_assert_int_eq(s.answer.code, 0);
    uva_array_release(&s.arrays[0]);
    loop_close(&other);
}
END_TEST

/* The legacy default stream, by its two handles, and the thread's. */
static void *const default_streams[] = {NULL, (void *)1, (void *)2};

/* ---- the program's streams ---------------------------------------------- */

START_TEST(a_stream_of_the_device_waits_instead_of_the_host)
{
    struct uva_ready options = {.wait = UVA_WAIT_STREAM};
    struct uva_stream *stream;
    void *mine, *event;

    open_with(4, 1);
    mine = _i == 0 ? vendor_stream_new() : default_streams[_i - 1];
    event = vendor_event_new();
    options.device_stream = mine;
    s.unwatched = true;
    stream = gpu_fixture_ready(&s, 1, &options);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, 1);
    vendor_event_record(event, mine);
    ck_assert(!gpu->event_is_over(event));
    gpu_fixture_pass(&s, 0);
    vendor_stream_drain(mine);
    ck_assert(gpu->event_is_over(event));
    uva_stream_release(stream);
    vendor_event_free(event);
    gpu_fixture_pass_all(&s); /* the end of a stream may wait for all */
    if (_i == 0)
        vendor_stream_free(mine);
}
END_TEST

START_TEST(a_default_stream_of_this_thread_cannot_be_made_to_wait)
{
    const struct uva_ready options = {.wait = UVA_WAIT_STREAM,
                                      .device_stream = default_streams[2]};
    struct uva_stream *stream;

    open_with(1, 1);
    stream = gpu_fixture_ready(&s, 1, &options);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.error.code, ENOTSUP);
    ck_assert_ptr_nonnull(
        strstr(s.outcome.error.message, "pass a stream that was created"));
    ck_assert_int_eq(s.batches, 0);
    uva_stream_release(stream);
}
END_TEST

START_TEST(a_producer_records_an_event_behind_its_work)
{
    struct uva_error error;

    open_with(1, 0);
    gpu->stream_gate(s.streams[0], &s.words[0], 1);
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    ck_assert_int_eq(
        uva_array_record(s.loop.runtime, &s.arrays[0], s.streams[0], &error),
        0);
    ck_assert_ptr_nonnull(s.arrays[0].sync_event);
    gpu_fixture_ask(&s, 0, UVA_FOREVER);
    loop_settle(&s.loop);
    ck_assert_int_eq(s.answers, 0);
    gpu_fixture_pass(&s, 0);
    await_and_release(0);
}
END_TEST

START_TEST(memory_of_the_host_may_say_no_device)
{
    struct uva_error error;

    open_with(1, 0);
    for (int i = 0; i < 2; i++) { /* the stream names the device, or not */
        gpu_fixture_array(&s, 0, &s.arrays[0]);
        s.arrays[0].device_type = gpu->host_type;
        s.arrays[0].device_id = -1;
        ck_assert_int_eq(uva_array_record(s.loop.runtime, &s.arrays[0],
                                          i == 0 ? s.streams[0] : NULL, &error),
                         0);
        gpu_fixture_ask(&s, 0, UVA_FOREVER);
        gpu_fixture_until_done(&s);
        ck_assert_int_eq(s.answer.code, 0);
        uva_array_release(&s.arrays[0]);
    }
}
END_TEST

START_TEST(an_array_is_released_behind_the_work_that_reads_it)
{

    open_with(1, 0);
    gpu->stream_gate(s.streams[0], &s.words[0], 1);
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    uva_array_release_after(s.loop.runtime, &s.arrays[0], s.streams[0]);
    loop_settle(&s.loop);
    ck_assert_int_eq(atomic_load(&s.fake.live), 1);
    gpu_fixture_pass(&s, 0);
    while (atomic_load(&s.fake.live) != 0)
        (void)sched_yield();
}
END_TEST

static void commands_end(void)
{
    gpu_fixture_commands_end(&s, 5);
}

/* The device thread has its own default streams. */
START_TEST(an_array_is_released_behind_the_work_of_a_default_stream)
{
    void *const mine = default_streams[_i];

    open_with(2, 0);
    gpu->stream_gate(mine, &s.words[0], 1);
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    uva_array_release_after(s.loop.runtime, &s.arrays[0], mine);
    commands_end();
    ck_assert_int_eq(atomic_load(&s.fake.live), 1);
    gpu_fixture_pass(&s, 0);
    while (atomic_load(&s.fake.live) != 0)
        (void)sched_yield();
}
END_TEST

/* The library's calls must not invalidate the capture. */
START_TEST(another_thread_may_capture_meanwhile)
{

    if (!gpu->spares_captures)
        return;
    open_with(1, 1);
    gpu->capture_begin(s.streams[1]);
    event_lasts(0);
    gpu_fixture_pass(&s, 0);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, 0);
    ck_assert_int_eq(gpu->capture_end(s.streams[1]), 0);
    uva_array_release(&s.arrays[0]);
}
END_TEST

/* ---- copies ------------------------------------------------------------- */

static int on_copied(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *column = batch->data.array.children[0];
    const int64_t *values = column->buffers[1];

    (void)ctx;
    ck_assert(batch->data.device_type == ARROW_DEVICE_CPU ||
              batch->data.device_type == gpu->host_type);
    ck_assert_ptr_null(batch->data.sync_event);
    for (int64_t i = 0; i < column->length; i++)
        ck_assert_int_eq(values[i], s.batches * 10 + i);
    s.batches++;
    return 0;
}

/* Makes a stream of copies from the host to a device, with options, and back.
 */
static struct uva_stream *copies_begin_as(const struct uva_transfer *there,
                                          const struct uva_transfer *back)
{
    const struct uva_consumer consumer = {
        .on_batch = on_copied, .on_done = gpu_fixture_on_done, .ctx = &s};
    struct ArrowDeviceArrayStream source;
    struct uva_stream *stream;

    while (!fake_source_again(&s.fake))
        (void)uv_run(&s.loop.uv, UV_RUN_NOWAIT);
    s.batches = 0;
    fake_source_device(&s.fake, ARROW_DEVICE_CPU, &source);
    stream = uva_stream_from_device_stream(s.loop.runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_transfer(stream, there), 0);
    ck_assert_int_eq(uva_stream_transfer(stream, back), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    return stream;
}

static struct uva_stream *copies_begin_with(const struct uva_transfer *there,
                                            ArrowDeviceType host_type)
{
    return copies_begin_as(there,
                           &(struct uva_transfer){.device_type = host_type});
}

static struct uva_stream *copies_begin(ArrowDeviceType device_type,
                                       int64_t device_id,
                                       ArrowDeviceType host_type)
{
    return copies_begin_with(&(struct uva_transfer){.device_type = device_type,
                                                    .device_id = device_id},
                             host_type);
}

START_TEST(batches_go_to_the_device_and_come_back)
{
    const ArrowDeviceType types[] = {gpu->device_type, gpu->managed_type};
    struct uva_stream *stream;

    if (types[_i] == 0)
        return;
    open_with(40, 0);
    stream = copies_begin(types[_i], 0, ARROW_DEVICE_CPU);
    gpu_fixture_until_done(&s);
    ck_assert_str_eq(s.outcome.error.message, "");
    ck_assert_int_eq(s.batches, 40);
    uva_stream_release(stream);
}
END_TEST

/* A program's allocator: it needs its device to be current. */
static struct {
    atomic_int given, taken, freed;
    atomic_bool wrong;
    void *stream; /* of the first call */
    int64_t device_id;
    bool plain; /* the memory is the host's: no driver call */
} own;

static void *own_alloc(void *ctx, ArrowDeviceType device_type,
                       int64_t device_id, size_t size_bytes,
                       void *device_stream)
{
    (void)ctx;
    if (atomic_fetch_add(&own.given, 1) == 0)
        own.stream = device_stream;
    if (device_type != gpu->device_type || device_id != own.device_id ||
        device_stream != own.stream || device_stream == NULL)
        atomic_store(&own.wrong, true);
    return own.plain ? malloc(size_bytes) : gpu->device_alloc(size_bytes);
}

static void own_free(void *ctx, ArrowDeviceType device_type, int64_t device_id,
                     void *memory, size_t size_bytes, void *device_stream)
{
    (void)ctx;
    (void)size_bytes;
    if (device_type != gpu->device_type || device_id != own.device_id ||
        device_stream != own.stream)
        atomic_store(&own.wrong, true);
    if (own.plain)
        free(memory);
    else
        gpu->device_free(memory);
    atomic_fetch_add(&own.taken, 1);
}

static void own_free_ctx(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&own.freed, 1);
}

static const struct uva_device_allocator own_allocator = {
    .alloc = own_alloc, .free = own_free, .free_ctx = own_free_ctx};

START_TEST(memory_may_be_that_of_the_programs_own_allocator)
{
    struct uva_stream *stream;

    memset(&own, 0, sizeof(own));
    open_with(10, 0);
    stream = copies_begin_with(
        &(struct uva_transfer){.device_type = gpu->device_type,
                               .allocator = &own_allocator},
        ARROW_DEVICE_CPU);
    gpu_fixture_until_done(&s);
    ck_assert_str_eq(s.outcome.error.message, "");
    ck_assert_int_eq(s.batches, 10);
    uva_stream_release(stream);
    loop_close_runtime(&s.loop, 0);
    while (atomic_load(&own.freed) == 0)
        (void)sched_yield();
    ck_assert_int_eq(own.given, 10);
    ck_assert_int_eq(own.taken, 10);
    ck_assert(!own.wrong);
}
END_TEST

/* Both copies follow the work that the program has queued on its stream. The
 * legacy default stream has its own handle, as NULL means no stream. */
START_TEST(copies_may_be_queued_on_a_stream_of_the_programs)
{
    void *streams[2];
    struct uva_transfer there = {.device_type = gpu->device_type};
    struct uva_transfer back = {.device_type = ARROW_DEVICE_CPU};
    struct uva_stream *stream;

    open_with(10, 0);
    streams[0] = s.streams[0];
    streams[1] = (void *)1;
    there.device_stream = back.device_stream = streams[_i];
    gpu->stream_gate(streams[_i], &s.words[0], 1);
    stream = copies_begin_as(&there, &back);
    while (control->fakegpu_count != NULL && /* otherwise this never ends */
           control->fakegpu_count(FAKE_QUEUED) < 1 + 2 * 10)
        loop_settle(&s.loop);
    ck_assert_int_eq(s.batches, 0);
    gpu_fixture_pass(&s, 0);
    gpu_fixture_until_done(&s);
    ck_assert_str_eq(s.outcome.error.message, "");
    ck_assert_int_eq(s.batches, 10);
    uva_stream_release(stream);
    vendor_stream_drain(streams[_i]);
}
END_TEST

START_TEST(copies_on_the_default_stream_of_a_thread_are_refused)
{
    const struct uva_transfer there = {.device_type = gpu->device_type,
                                       .device_stream = (void *)2};
    struct uva_stream *stream;

    open_with(2, 0);
    stream = copies_begin_with(&there, ARROW_DEVICE_CPU);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.error.code, ENOTSUP);
    ck_assert_ptr_nonnull(strstr(s.outcome.error.message, "handle 2"));
    uva_stream_release(stream);
}
END_TEST

/* Counts the library's own streams, which only a fake driver can do. */
static long own_streams(void)
{
    if (control->fakegpu_count == NULL)
        return 0;
    return control->fakegpu_count(FAKE_STREAMS) - GPU_STREAMS - 1;
}

START_TEST(each_device_has_memory_and_streams_of_its_own)
{
    long of_one = 0;
    struct uva_stream *stream;

    if (!gpu->second(true))
        return;
    open_with(10, 0);
    for (int i = 0; i < 4; i++) {
        stream = copies_begin(gpu->device_type, i % 2, ARROW_DEVICE_CPU);
        gpu_fixture_until_done(&s);
        ck_assert_int_eq(s.outcome.error.code, 0);
        ck_assert_int_eq(s.batches, 10);
        uva_stream_release(stream);
        of_one = i == 0 ? own_streams() : of_one;
    }
    ck_assert_int_eq(own_streams(), 2 * of_one);
    loop_close_runtime(&s.loop, 0);
    (void)gpu->second(false);
}
END_TEST

/* Batches of any type, given as a stream of their own. */
static struct {
    struct ArrowArray *expected;
    int wrong;
} passed;

static int on_passed(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    passed.wrong +=
        !every_type_equal(batch->schema, passed.expected, &batch->data.array);
    s.batches++;
    return 0;
}

/* How batches go to the second device. */
static struct uva_transfer pass_on;

/* Copies a batch of type `type` to the first device, to the second one, and to
 * the host; the k-th call fails. Returns the calls, if they can be counted. */
static long pass_between(int type, long k)
{
    static const struct every_variant variant = {5, 1, true};
    const struct uva_consumer consumer = {
        .on_batch = on_passed, .on_done = gpu_fixture_on_done, .ctx = &s};
    const bool fake = control->fakegpu_count != NULL;
    struct ArrowDeviceArray array, expected;
    struct ArrowSchema schema, second;
    struct uva_stream *stream;
    long calls = 0;

    every_type(type, &variant, &schema, &array);
    every_type(type, &variant, &second, &expected);
    passed.expected = &expected.array;
    passed.wrong = 0;
    s.batches = 0;
    if (fake) {
        calls = control->fakegpu_count(FAKE_CALLS);
        control->fakegpu_fail(k, 999);
    }
    stream = uva_stream_from_arrays(s.loop.runtime, &schema, &array, 1);
    for (int i = 0; i < 2; i++) {
        struct uva_transfer there = {0};

        if (i == 1)
            there = pass_on;
        there.device_type = gpu->device_type;
        there.device_id = i;
        ck_assert_int_eq(uva_stream_transfer(stream, &there), 0);
    }
    ck_assert_int_eq(uva_stream_transfer(stream, NULL), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.batches, s.outcome.end == UVA_END_COMPLETE);
    ck_assert_int_eq(s.outcome.error.vendor_code,
                     s.batches == 1 || s.outcome.error.code == ENOTSUP ? 0
                                                                       : 999);
    ck_assert_int_eq(passed.wrong, 0);
    uva_stream_release(stream);
    uva_array_release(&expected);
    second.release(&second);
    loop_settle(&s.loop);
    return fake ? control->fakegpu_count(FAKE_CALLS) - calls : 0;
}

/* The second time, the devices cannot read each other's memory. */
START_TEST(every_type_goes_from_device_to_device)
{
    const bool fake = control->fakegpu_count != NULL;
    long before = fake ? control->fakegpu_count(FAKE_PEER_COPIES) : 0;

    if (!gpu->second(true))
        return;
    if (_i == 1)
        (void)setenv("UVA_FAKE_APART", "1", 1);
    open_with(1, 0);
    for (int type = 0; type < EVERY_TYPES; type++) {
        (void)pass_between(type, 0);
        ck_assert_str_eq(s.outcome.error.message, "");
    }
    if (fake)
        ck_assert_int_eq(control->fakegpu_count(FAKE_PEER_COPIES) > before,
                         _i == 0 && gpu->peers);
    loop_close_runtime(&s.loop, 0);
    (void)unsetenv("UVA_FAKE_APART");
    (void)gpu->second(false);
}
END_TEST

/* The legacy default stream exists on each device. */
START_TEST(options_of_a_copy_between_devices_are_the_targets)
{
    if (control->fakegpu_count == NULL || !gpu->second(true))
        return;
    memset(&own, 0, sizeof(own));
    own.device_id = 1;
    own.plain = true;
    pass_on = (struct uva_transfer){.allocator = &own_allocator,
                                    .device_stream = (void *)1};
    open_with(1, 0);
    (void)pass_between(15, 0);
    ck_assert_str_eq(s.outcome.error.message, "");
    ck_assert_ptr_eq(own.stream, (void *)1);
    pass_on = (struct uva_transfer){.device_stream = (void *)2};
    (void)pass_between(15, 0);
    ck_assert_int_eq(s.outcome.error.code, ENOTSUP);
    loop_close_runtime(&s.loop, 0);
    while (atomic_load(&own.freed) == 0)
        (void)sched_yield();
    ck_assert_int_gt(own.given, 0);
    ck_assert_int_eq(own.given, own.taken);
    ck_assert(!own.wrong);
    pass_on = (struct uva_transfer){0};
    (void)gpu->second(false);
}
END_TEST

START_TEST(pinned_memory_is_used_again)
{
    struct uva_stream *stream;
    long blocks[2], live;

    open_with(40, 1);
    gpu_fixture_pass_all(&s);
    live = atomic_load(&s.fake.live);
    for (int i = 0; i < 2; i++) {
        stream = copies_begin(gpu->device_type, 0, gpu->host_type);
        gpu_fixture_until_done(&s);
        ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
        ck_assert_int_eq(s.batches, 40);
        uva_stream_release(stream);
        while (atomic_load(&s.fake.live) > live) /* a thread frees it */
            (void)sched_yield();
        commands_end();
        while (control->fakegpu_count(FAKE_QUEUED) > 0) /* some may free */
            (void)sched_yield();
        blocks[i] = control->fakegpu_count(FAKE_BLOCKS);
    }
    ck_assert_int_gt(blocks[0], 1);
    ck_assert_int_ge(blocks[1], blocks[0]);
    ck_assert_int_le(blocks[1], 1 + 2 * 40); /* both ways; not 160 */
    uva_array_release(&s.arrays[0]);
}
END_TEST

/* The original values of a batch, while it is alive. */
static struct {
    const void *values;
    void (*release)(struct ArrowArray *array);
} swapped;

static void swapped_release(struct ArrowArray *array)
{
    array->children[0]->buffers[1] = swapped.values;
    swapped.release(array);
}

static void values_swap(struct ArrowArray *array, void *memory)
{
    swapped.values = array->children[0]->buffers[1];
    swapped.release = array->release;
    array->children[0]->buffers[1] = memory;
    array->release = swapped_release;
}

/* The buffer of batch 0 is filled after the gate, and before its event. */
START_TEST(a_copy_is_behind_the_event)
{
    struct uva_consumer mine = {.on_batch = on_copied,
                                .on_done = gpu_fixture_on_done};
    struct ArrowSchema schema;
    struct uva_stream *stream;
    void *memory, *pinned;

    open_with(2, 0);
    mine.ctx = &s;
    gpu_fixture_arrays(&s, 2);
    gpu_fixture_pass(&s, 1);
    uva_array_release(&s.arrays[1]);
    memory = gpu->device_alloc(3 * sizeof(int64_t));
    values_swap(&s.arrays[0].array, memory);
    pinned = vendor_host_alloc(3 * sizeof(int64_t)); /* or the call may wait */
    memcpy(pinned, swapped.values, 3 * sizeof(int64_t));
    gpu->stream_upload(s.streams[0], memory, pinned, 3 * sizeof(int64_t));
    vendor_event_record(s.events[0], s.streams[0]);
    fake_source_schema(&s.fake, &schema);
    stream = uva_stream_from_arrays(s.loop.runtime, &schema, s.arrays, 1);
    ck_assert_int_eq(uva_stream_transfer(stream, NULL), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &mine, NULL), 0);
    loop_settle(&s.loop);
    for (int i = 0; i < 20; i++)
        commands_end();
    ck_assert_int_eq(s.batches, 0);
    gpu_fixture_pass(&s, 0);
    gpu_fixture_until_done(&s);
    ck_assert_str_eq(s.outcome.error.message, "");
    ck_assert_int_eq(s.batches, 1);
    uva_stream_release(stream);
    vendor_host_free(pinned);
    gpu->device_free(memory);
}
END_TEST

/* More than is staged at once, and no whole number of pieces. */
enum { LARGE = 700001 };

static int on_large(void *ctx, struct uva_batch *batch)
{
    const int64_t *values = batch->data.array.children[0]->buffers[1];

    (void)ctx;
    for (int64_t i = 0; i < LARGE; i++)
        if (values[i] != 7 * i)
            return EILSEQ;
    s.batches++;
    return 0;
}

static void large_open(int64_t *values)
{
    open_with(1, 0);
    fake_source_batch(&s.fake, 0, &s.arrays[0]);
    values_swap(&s.arrays[0].array, values);
    s.arrays[0].array.length = LARGE;
    s.arrays[0].array.children[0]->length = LARGE;
}

static struct uva_stream *large_start(const struct uva_transfer *there)
{
    const struct uva_consumer consumer = {
        .on_batch = on_large, .on_done = gpu_fixture_on_done, .ctx = &s};
    struct ArrowSchema schema;
    struct uva_stream *stream;

    fake_source_schema(&s.fake, &schema);
    stream = uva_stream_from_arrays(s.loop.runtime, &schema, s.arrays, 1);
    ck_assert_int_eq(uva_stream_transfer(stream, there), 0);
    ck_assert_int_eq(uva_stream_transfer(stream, NULL), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    return stream;
}

/* Copies a large batch to the device and back, where the k-th call fails.
 * Returns how many there were, if that can be counted. */
static long large_copies(int64_t *values, long k)
{
    const struct uva_transfer there = {.device_type = gpu->device_type};
    const bool fake = control->fakegpu_count != NULL;
    struct uva_stream *stream;
    long calls = 0;

    large_open(values);
    if (fake) {
        calls = control->fakegpu_count(FAKE_CALLS);
        control->fakegpu_fail(k, 999);
    }
    stream = large_start(&there);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.batches, s.outcome.end == UVA_END_COMPLETE);
    ck_assert_int_eq(s.outcome.error.vendor_code, s.batches == 1 ? 0 : 999);
    uva_stream_release(stream);
    loop_close_runtime(&s.loop, 0);
    while (atomic_load(&s.fake.live) != 0)
        (void)sched_yield();
    return fake ? control->fakegpu_count(FAKE_CALLS) - calls : 0;
}

static int64_t *large_values(void)
{
    int64_t *values = malloc(LARGE * sizeof(*values));

    ck_assert_ptr_nonnull(values);
    for (int64_t i = 0; i < LARGE; i++)
        values[i] = 7 * i;
    return values;
}

START_TEST(a_large_buffer_goes_in_pieces)
{
    int64_t *values = large_values();

    if (control->fakegpu_count != NULL) /* no event is made: this would not
                                           end */
        control->fakegpu_hold(FAKE_HOLD_UPLOAD);
    (void)large_copies(values, 0);
    ck_assert_int_eq(s.batches, 1);
    if (control->fakegpu_count != NULL)
        control->fakegpu_hold(0);
    free(values);
}
END_TEST

static int on_any(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    s.batches++;
    return 0;
}

/* The copy to the host waits for a closed gate. A driver may wait for a whole
 * stream before it copies from memory that is not pinned. */
START_TEST(copies_to_the_device_are_not_behind_those_from_it)
{
    const struct uva_transfer there = {.device_type = gpu->device_type};
    struct uva_consumer any = {.on_batch = on_any,
                               .on_done = gpu_fixture_on_done};
    struct ArrowDeviceArrayStream source;
    struct uva_stream *from, *to;
    struct ArrowSchema schema;
    void *memory;

    open_with(2, 0);
    any.ctx = &s;
    gpu_fixture_arrays(&s, 2);
    gpu_fixture_pass(&s, 1);
    uva_array_release(&s.arrays[1]);
    memory = gpu->device_alloc(3 * sizeof(int64_t));
    values_swap(&s.arrays[0].array, memory);
    fake_source_schema(&s.fake, &schema);
    from = uva_stream_from_arrays(s.loop.runtime, &schema, s.arrays, 1);
    ck_assert_int_eq(uva_stream_transfer(from, NULL), 0);
    ck_assert_int_eq(uva_stream_for_each(from, &any, NULL), 0);
    loop_settle(&s.loop);
    commands_end(); /* the copy has begun */
    fake_source_device(&s.fake, ARROW_DEVICE_CPU, &source);
    to = uva_stream_from_device_stream(s.loop.runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_transfer(to, &there), 0);
    ck_assert_int_eq(uva_stream_ready(to, NULL), 0);
    ck_assert_int_eq(uva_stream_for_each(to, &any, NULL), 0);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, 2);
    gpu_fixture_pass(&s, 0);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.batches, 3);
    uva_stream_release(to);
    uva_stream_release(from);
    gpu->device_free(memory);
}
END_TEST

/* A driver that truncates the number would use the first device. */
START_TEST(a_device_that_cannot_be_is_not_there)
{
    struct uva_error error;

    open_with(1, 0);
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    s.arrays[0].device_id = (int64_t)1 << 32;
    ck_assert_int_eq(
        uva_array_record(s.loop.runtime, &s.arrays[0], NULL, &error), ENODEV);
    uva_array_release(&s.arrays[0]);
}
END_TEST

/* ---- calls that block ---------------------------------------------------- */

/* A release that waits for the test. */
static struct {
    void (*release)(struct ArrowArray *array);
    atomic_bool entered, open;
} slow;

static void slow_release(struct ArrowArray *array)
{
    atomic_store(&slow.entered, true);
    while (!atomic_load(&slow.open))
        (void)sched_yield();
    slow.release(array);
}

static void turn(void)
{
    (void)uv_run(&s.loop.uv, UV_RUN_NOWAIT);
    (void)sched_yield();
}

/* Has the device thread make a call of the kind `held`, or the release, and
 * waits until that has begun. Returns a stream, or NULL. */
static struct uva_stream *block_begin(int held)
{
    struct uva_stream *stream = NULL;

    if (held != 0) {
        control->fakegpu_hold(held);
        stream = copies_begin(gpu->device_type, 0, ARROW_DEVICE_CPU);
        while (control->fakegpu_count(FAKE_HELD) == 0 && !s.done)
            turn();
        return stream;
    }
    atomic_store(&slow.entered, false);
    atomic_store(&slow.open, false);
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    slow.release = s.arrays[0].array.release;
    s.arrays[0].array.release = slow_release;
    uva_array_release_after(s.loop.runtime, &s.arrays[0], s.streams[2]);
    while (!atomic_load(&slow.entered))
        (void)sched_yield();
    return NULL;
}

/* The answer comes while the call is held: otherwise this never ends. */
START_TEST(what_may_block_holds_up_no_event)
{
    static const int kinds[] = {FAKE_HOLD_FREE, FAKE_HOLD_ALLOC,
                                FAKE_HOLD_UPLOAD, FAKE_HOLD_CREATE, 0};
    struct uva_stream *stream;

    open_with(3, 0);
    s.events[1] = vendor_event_new();
    vendor_event_record(s.events[1], s.idle);
    gpu_fixture_array(&s, 1, &s.arrays[1]);
    s.arrays[1].sync_event = &s.events[1];
    stream = block_begin(kinds[_i]);
    s.done = false;
    gpu_fixture_ask(&s, 1, UVA_FOREVER);
    while (s.answers == 0)
        turn();
    ck_assert_int_eq(s.answer.code, 0);
    if (kinds[_i] == FAKE_HOLD_UPLOAD || /* is not called at all */
        (kinds[_i] == FAKE_HOLD_FREE && gpu->pools))
        ck_assert_int_eq(control->fakegpu_count(FAKE_HELD), 0);
    else
        ck_assert(kinds[_i] == 0 || control->fakegpu_count(FAKE_HELD) != 0);
    control->fakegpu_hold(0);
    atomic_store(&slow.open, true);
    if (stream != NULL)
        uva_stream_release(stream);
    uva_array_release(&s.arrays[1]);
}
END_TEST

/* The driver is inside the first of two steps. The copy that it has begun goes
 * on without the stream. */
START_TEST(a_stream_is_cancelled_while_a_step_of_its_copy_begins)
{
    struct uva_transfer there = {.device_type = gpu->device_type};
    int64_t *values = large_values();
    struct uva_stream *stream;

    large_open(values);
    there.device_stream = s.streams[0];
    gpu->stream_gate(s.streams[0], &s.words[0], 1);
    control->fakegpu_hold(FAKE_HOLD_ALLOC);
    stream = large_start(&there);
    while (control->fakegpu_count(FAKE_HELD) == 0)
        turn();
    uva_stream_cancel(stream, 0, NULL);
    control->fakegpu_hold(0);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_CANCELLED);
    gpu_fixture_pass(&s, 0);
    uva_stream_release(stream);
    loop_close_runtime(&s.loop, 0);
    while (atomic_load(&s.fake.live) != 0)
        (void)sched_yield();
    vendor_stream_drain(s.streams[0]);
    free(values);
}
END_TEST

/* The ctx of an allocator is taken in any case. */
START_TEST(an_allocator_may_lack_memory)
{
    const struct uva_transfer there = {.device_type = gpu->device_type,
                                       .allocator = &own_allocator};
    const struct every_variant variant = {5, 1, true};
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;
    struct uva_stream *stream;
    bool again = true;
    int code, k;

    memset(&own, 0, sizeof(own));
    open_with(1, 0);
    for (k = 1; again; k++) {
        every_type(15, &variant, &schema, &array);
        stream = uva_stream_from_arrays(s.loop.runtime, &schema, &array, 1);
        faulty_libc_fail(k);
        code = uva_stream_transfer(stream, &there);
        again = faulty_libc_stop();
        ck_assert_int_eq(code, again ? ENOMEM : 0);
        uva_stream_release(stream);
        loop_settle(&s.loop);
    }
    loop_close_runtime(&s.loop, 0);
    while (atomic_load(&own.freed) < k - 1)
        (void)sched_yield();
    ck_assert_int_eq(own.freed, k - 1);
    ck_assert_int_gt(k, 2);
}
END_TEST

/* ---- failures of a fake driver ------------------------------------------ */

START_TEST(a_failure_of_the_device_is_told_with_its_code)
{

    open_with(2, 2);
    if (_i == 1)
        event_lasts(0);
    else
        gpu_fixture_ask(&s, 0, UVA_FOREVER);
    control->fakegpu_poison(719);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, EIO);
    ck_assert_str_eq(s.answer.vendor, gpu->vendor);
    ck_assert_int_eq(s.answer.vendor_code, 719);
    gpu_fixture_ask(&s, 1, UVA_FOREVER);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.vendor_code, 719);
    ck_assert_ptr_nonnull(strstr(s.answer.message, gpu->query));
    for (int k = 0; k < 2; k++)
        uva_array_release(&s.arrays[k]);
    loop_close_runtime(&s.loop, 0);
    control->fakegpu_poison(0);
}
END_TEST

/* Work that began while every call failed never ends once the device works
 * again. The fixture has an event and the memory of its gates. */
static void nothing_is_under_way(void)
{
    while (atomic_load(&s.fake.live) != 0 ||
           control->fakegpu_count(FAKE_EVENTS) > 1 ||
           control->fakegpu_count(FAKE_BLOCKS) > 1)
        (void)sched_yield();
}

/* Waits for an event, copies, and records events: each succeeds, or fails with
 * `code`. */
static void play(int code)
{
    struct uva_stream *stream;
    struct uva_error error;

    gpu_fixture_ask(&s, 0, 10);
    gpu_fixture_until_done(&s);
    gpu_fixture_ask(&s, 0, UVA_FOREVER);
    gpu_fixture_pass_all(&s);
    gpu_fixture_until_done(&s);
    ck_assert(s.answer.code == 0 || s.answer.code == code);
    if (s.answer.code == EIO)
        ck_assert_int_eq(s.answer.vendor_code, 999);
    stream = copies_begin(gpu->device_type, 0, ARROW_DEVICE_CPU);
    gpu_fixture_until_done(&s);
    ck_assert(s.outcome.end == UVA_END_COMPLETE ||
              s.outcome.end == UVA_END_FAILED);
    ck_assert((s.outcome.end == UVA_END_COMPLETE) == (s.batches == 3));
    uva_stream_release(stream);
    uva_array_release(&s.arrays[0]);
    control->fakegpu_excuse(0);
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    if (uva_array_record(s.loop.runtime, &s.arrays[0], s.streams[0], &error) !=
        0)
        ck_assert_ptr_null(s.arrays[0].sync_event);
    control->fakegpu_excuse(1);
    uva_array_release(&s.arrays[0]);
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    uva_array_release_after(s.loop.runtime, &s.arrays[0], s.streams[0]);
    gpu_fixture_array(&s, 5, &s.arrays[5]);
    s.arrays[5].sync_event = &s.events[0];
    gpu_fixture_ask(&s, 5, UVA_FOREVER);
    gpu_fixture_until_done(&s);
    uva_array_release(&s.arrays[5]);
    loop_close_runtime(&s.loop, 0);
}

START_TEST(any_call_may_fail)
{
    long calls, k = 0;

    do {
        open_with(3, 1);
        calls = control->fakegpu_count(FAKE_CALLS);
        control->fakegpu_fail(++k, 999);
        play(EIO);
        calls = control->fakegpu_count(FAKE_CALLS) - calls;
        control->fakegpu_fail(0, 0);
        nothing_is_under_way();
        control->fakegpu_poison(0);
        gpu_fixture_close(&s);
    } while (calls >= k);
    ck_assert_int_gt(k, 20);
}
END_TEST

/* Copies with options of `variant`, where the k-th call fails. Returns whether
 * there were so many. */
static bool copies_with_fault(int variant, long k)
{
    struct uva_transfer there = {.device_type = gpu->device_type};
    struct uva_stream *stream;
    long calls;

    memset(&own, 0, sizeof(own));
    own.plain = true;
    open_with(3, 0);
    if (variant == 0)
        there.allocator = &own_allocator;
    if (variant == 1)
        there.device_stream = s.streams[0];
    calls = control->fakegpu_count(FAKE_CALLS);
    control->fakegpu_fail(k, 999);
    stream = copies_begin_with(&there, ARROW_DEVICE_CPU);
    gpu_fixture_until_done(&s);
    calls = control->fakegpu_count(FAKE_CALLS) - calls;
    ck_assert((s.outcome.end == UVA_END_COMPLETE) == (s.batches == 3));
    ck_assert_int_eq(s.outcome.error.vendor_code,
                     s.outcome.end == UVA_END_COMPLETE ? 0 : 999);
    uva_stream_release(stream);
    loop_close_runtime(&s.loop, 0);
    control->fakegpu_fail(0, 0);
    nothing_is_under_way();
    control->fakegpu_poison(0);
    gpu_fixture_close(&s);
    while (variant == 0 && atomic_load(&own.freed) == 0)
        (void)sched_yield();
    ck_assert_int_eq(own.taken, own.given);
    return calls >= k;
}

START_TEST(any_call_of_a_copy_with_options_may_fail)
{
    long k = 1;

    while (copies_with_fault(_i, k))
        k++;
    ck_assert_int_gt(k, 20);
}
END_TEST

START_TEST(any_call_of_a_copy_in_pieces_may_fail)
{
    int64_t *values = large_values();
    long calls, k = 0;

    do {
        calls = large_copies(values, ++k);
        control->fakegpu_fail(0, 0);
        nothing_is_under_way();
        control->fakegpu_poison(0);
        gpu_fixture_close(&s);
    } while (calls >= k);
    ck_assert_int_gt(k, 30);
    free(values);
}
END_TEST

/* A type with buffers of known and of unknown sizes. */
START_TEST(any_call_of_a_copy_between_devices_may_fail)
{
    long calls, k = 0;

    if (_i == 1)
        (void)setenv("UVA_FAKE_APART", "1", 1);
    do {
        ck_assert(gpu->second(true));
        open_with(1, 0);
        calls = pass_between(15, ++k);
        loop_close_runtime(&s.loop, 0);
        control->fakegpu_fail(0, 0);
        nothing_is_under_way();
        control->fakegpu_poison(0);
        (void)gpu->second(false);
        gpu_fixture_close(&s);
    } while (calls >= k);
    (void)unsetenv("UVA_FAKE_APART");
    ck_assert_int_gt(k, 40);
}
END_TEST

static const char service[] = "uva-devices";
START_TEST(there_may_be_no_memory)
{
    bool again = true;
    long k;

    faulty_libc_only_thread(service);
    for (k = 1; again; k++) {
        open_with(3, 1);
        faulty_libc_fail(k);
        play(ENOMEM);
        again = faulty_libc_stop();
        gpu_fixture_close(&s);
    }
    faulty_libc_only_thread(NULL);
    ck_assert_int_gt(k, 5);
}
END_TEST

/* The event is polled instead. */
START_TEST(a_callback_without_memory_is_done_without)
{
    long before;

    if (!gpu->calls_back)
        return;
    open_with(1, 1);
    before = control->fakegpu_count(FAKE_CALLBACKS);
    faulty_libc_only_thread(service);
    faulty_libc_only(sizeof(struct uva__gpu_callback_stream));
    faulty_libc_fail(1);
    gpu_fixture_ask(&s, 0, UVA_FOREVER);
    while (!faulty_libc_has_failed())
        (void)sched_yield();
    (void)faulty_libc_stop();
    faulty_libc_only(0);
    faulty_libc_only_thread(NULL);
    gpu_fixture_pass(&s, 0);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, 0);
    ck_assert_int_eq(control->fakegpu_count(FAKE_CALLBACKS), before);
    uva_array_release(&s.arrays[0]);
}
END_TEST

/* There is one event more than there are streams. */
START_TEST(callbacks_share_streams_where_there_are_many)
{
    const int last = UVA__GPU_CALLBACK_STREAMS;

    if (!gpu->calls_back)
        return;
    open_with(last + 1, last + 1);
    for (int k = 0; k < last; k++)
        gpu_fixture_ask(&s, k, UVA_FOREVER);
    while (own_streams() < last)
        (void)sched_yield();
    gpu_fixture_ask(&s, last, 30);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, ETIMEDOUT);
    ck_assert_int_eq(own_streams(), last);
    gpu_fixture_pass_all(&s);
    while (s.answers < last + 1)
        gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, 0);
    for (int k = 0; k <= last; k++)
        uva_array_release(&s.arrays[k]);
}
END_TEST

/* The call that fails runs on the program's own thread. */
START_TEST(a_recording_leaves_the_array_as_it_was_if_a_call_fails)
{
    struct uva_device_info info;
    struct uva_error error;
    int code = ENOMEM;
    void *stream;
    long k = 0;

    open_with(1, 0);
    stream = _i == 0 ? s.streams[0] : NULL;
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    ck_assert_int_eq(
        uva_device_get_info(s.loop.runtime, gpu->device_type, &info), 0);
    for (; code != 0; k++) {
        ck_assert_ptr_null(s.arrays[0].sync_event);
        control->fakegpu_fail(k, UVA__GPU_OUT_OF_MEMORY);
        control->fakegpu_excuse(0);
        faulty_libc_only(sizeof(uva__gpu_event));
        faulty_libc_fail(k == 0);
        code = uva_array_record(s.loop.runtime, &s.arrays[0], stream, &error);
        (void)faulty_libc_stop();
        faulty_libc_only(0);
        control->fakegpu_excuse(1);
        control->fakegpu_fail(0, 0);
        ck_assert(code == 0 || code == ENOMEM);
        if (code != 0)
            ck_assert_int_eq(error.vendor_code,
                             k > 0 ? UVA__GPU_OUT_OF_MEMORY : 0);
    }
    ck_assert_int_gt(k, 3);
    uva_array_release(&s.arrays[0]);
}
END_TEST

START_TEST(any_call_that_makes_a_stream_wait_may_fail)
{
    struct uva_ready options = {.wait = UVA_WAIT_STREAM};
    struct uva_device_info info;
    struct uva_stream *stream;
    int code = EIO;
    long k = 0;

    while (code != 0) {
        open_with(1, 1);
        ck_assert_int_eq(
            uva_device_get_info(s.loop.runtime, gpu->device_type, &info), 0);
        options.device_stream = s.streams[1];
        s.unwatched = true;
        control->fakegpu_fail(++k, 999);
        stream = gpu_fixture_ready(&s, 1, &options);
        gpu_fixture_until_done(&s);
        control->fakegpu_fail(0, 0);
        code = s.outcome.error.code;
        ck_assert_int_eq(s.outcome.error.vendor_code, code == 0 ? 0 : 999);
        ck_assert_int_eq(s.batches, code == 0);
        uva_stream_release(stream);
        gpu_fixture_close(&s);
    }
    ck_assert_int_gt(k, 2);
}
END_TEST

/* ---- the suite ---------------------------------------------------------- */

static void add_faults(Suite *suite)
{
    TCase *tc = suite_case(suite, "faults", NULL, tear_down);

    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, a_failure_of_the_device_is_told_with_its_code, 0,
                        2);
    if (!vendor_driver_is("locks")) /* which holds up all calls */
        tcase_add_loop_test(tc, what_may_block_holds_up_no_event, 0, 5);
    tcase_add_loop_test(
        tc, a_recording_leaves_the_array_as_it_was_if_a_call_fails, 0, 2);
    tcase_add_loop_test(tc, any_call_of_a_copy_between_devices_may_fail, 0, 2);
    tcase_add_loop_test(tc, any_call_of_a_copy_with_options_may_fail, 0, 2);
    suite_add(tc, any_call_may_fail, any_call_of_a_copy_in_pieces_may_fail,
              options_of_a_copy_between_devices_are_the_targets,
              a_stream_is_cancelled_while_a_step_of_its_copy_begins,
              an_allocator_may_lack_memory, there_may_be_no_memory,
              a_callback_without_memory_is_done_without,
              callbacks_share_streams_where_there_are_many,
              any_call_that_makes_a_stream_wait_may_fail,
              pinned_memory_is_used_again, NULL);
}

/* Cases that may get stuck on a driver which behaves unlike its documents. Each
 * is a separate test there, with a time limit: see CMakeLists.txt. */
static void add_risky(Suite *suite)
{
    TCase *many = suite_case(suite, "many", NULL, tear_down);
    TCase *callbacks = suite_case(suite, "callbacks", NULL, tear_down);
    TCase *streams = suite_case(suite, "default streams", NULL, tear_down);
    TCase *captures = suite_case(suite, "captures", NULL, tear_down);
    TCase *copies = suite_case(suite, "copies", NULL, tear_down);

    suite_add(many, many_events_may_be_outstanding, NULL);
    suite_add(callbacks, an_event_that_lasts_is_waited_for,
              a_close_comes_while_a_callback_is_armed,
              callbacks_are_as_few_as_drivers_take, NULL);
    tcase_add_loop_test(
        callbacks, an_event_whose_callback_cannot_be_queued_is_polled, 0, 2);
    suite_add_loops(
        streams, 0, 3, a_stream_of_the_device_waits_instead_of_the_host,
        an_array_is_released_behind_the_work_of_a_default_stream, NULL);
    suite_add(captures, another_thread_may_capture_meanwhile, NULL);
    tcase_add_loop_test(copies,
                        copies_may_be_queued_on_a_stream_of_the_programs, 0, 2);
    suite_add(copies, copies_on_the_default_stream_of_a_thread_are_refused,
              a_copy_is_behind_the_event,
              copies_to_the_device_are_not_behind_those_from_it,
              a_large_buffer_goes_in_pieces, NULL);
}

void gpu_cases_add(Suite *suite, const struct vendor_driver *driver,
                   const struct fake_control *fake)
{
    TCase *tc = suite_case(suite, "device", NULL, tear_down);

    gpu = driver;
    control = fake;
    tcase_set_timeout(tc, 120);
    suite_add(tc, batches_come_when_their_events_are_complete,
              an_event_that_was_never_recorded_is_complete,
              patience_with_one_array_ends,
              one_that_is_late_does_not_hold_up_the_others,
              a_cancelled_stream_lets_go_of_what_it_waits_for, NULL);
    tcase_add_loop_test(tc, a_close_comes_while_events_are_armed, 0, 4);
    suite_add(tc, two_runtimes_wait_for_the_same_event,
              a_default_stream_of_this_thread_cannot_be_made_to_wait,
              a_producer_records_an_event_behind_its_work,
              memory_of_the_host_may_say_no_device,
              an_array_is_released_behind_the_work_that_reads_it, NULL);
    tcase_add_loop_test(tc, batches_go_to_the_device_and_come_back, 0, 2);
    tcase_add_loop_test(tc, every_type_goes_from_device_to_device, 0, 2);
    suite_add(tc, each_device_has_memory_and_streams_of_its_own,
              memory_may_be_that_of_the_programs_own_allocator,
              a_device_that_cannot_be_is_not_there, NULL);
    add_risky(suite);
    /* the limit of a close would pass a hundred times */
    if (fake->fakegpu_count != NULL && !vendor_driver_is("destroys"))
        add_faults(suite);
}

int gpu_cases_run(Suite *suite)
{
    return suite_run(suite);
}
