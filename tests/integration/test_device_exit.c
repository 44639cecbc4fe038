/* SPDX-License-Identifier: Apache-2.0 */
/* The fate of streams, arrays and waits of a device once the process exits:
 * each ends, and no function of the table is called. A program's exit handler
 * may still close its runtimes. Each case needs a separate process. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/driver_gate.h"
#include "support/array_fixture.h"
#include "support/check_suite.h"
#include "uvarrow/dlpack.h"
#include "uvarrow/uvarrow.h"

static struct array_fixture s;
static atomic_long waits; /* of a program's stream */

/* The calls of the table. */
static long calls(void)
{
    const struct soft_device *device = &s.f.device;

    return atomic_load(&device->loads) + atomic_load(&device->unloads) +
           atomic_load(&device->queries) + atomic_load(&device->arms) +
           atomic_load(&device->settles) + atomic_load(&device->copies) +
           atomic_load(&device->events_live) + atomic_load(&device->allocs) +
           atomic_load(&device->chained);
}

/* Closes the runtime, as a program's exit handler does, and checks that no
 * function was called after the gate had closed with `before` calls. */
static void close_late(long before)
{
    loop_close_runtime(&s.f.loop, 0);
    ck_assert_int_eq(calls(), before);
}

static long gate_close(void)
{
    uva__driver_gate_close();
    return calls();
}

/* The table is loaded, and no event is complete. */
static void open_loaded(enum soft_mode mode)
{
    struct uva_device_info info;

    array_open(&s, mode);
    ck_assert_int_eq(
        uva_device_get_info(s.f.loop.runtime, ARROW_DEVICE_EXT_DEV, &info), 0);
}

static void await_arms(void)
{
    while (atomic_load(&s.f.device.arms) == 0)
        (void)sched_yield();
}

static void await_queries(void)
{
    const long from = atomic_load(&s.f.device.queries);

    while (atomic_load(&s.f.device.queries) < from + 3)
        (void)sched_yield();
}

/* ---- arrays ---------------------------------------------------------------
 */

START_TEST(a_wait_ends)
{
    long before;

    open_loaded(_i == 0 ? SOFT_POLLS : SOFT_CALLS);
    ck_assert_int_eq(array_wait(&s, UVA_FOREVER), 0);
    if (_i == 0)
        await_queries();
    else
        await_arms();
    before = gate_close();
    soft_event_end(&s.f.device, 0, 0);
    ck_assert_int_eq(array_outcome(&s), ESHUTDOWN);
    close_late(before);
}
END_TEST

START_TEST(a_wait_that_begins_fails)
{
    long before;

    if (_i == 0)
        array_open(&s, SOFT_POLLS);
    else
        open_loaded(SOFT_POLLS_ON_LOOP);
    before = gate_close();
    ck_assert_int_eq(array_wait(&s, UVA_FOREVER), 0);
    ck_assert_int_eq(array_outcome(&s), ESHUTDOWN);
    close_late(before);
}
END_TEST

START_TEST(nothing_is_recorded)
{
    struct uva_error error;
    long before;

    open_loaded(SOFT_COPIES);
    s.array.sync_event = NULL;
    before = gate_close();
    ck_assert_int_eq(uva_array_record(s.f.loop.runtime, &s.array, NULL, &error),
                     ESHUTDOWN);
    ck_assert_ptr_nonnull(strstr(error.message, "the process exits"));
    ck_assert(s.array.sync_event == NULL);
    close_late(before);
}
END_TEST

/* Its event has been recorded; or the recorded event is not freed. */
START_TEST(an_array_of_ours_that_was_held_is_let_go)
{
    long before;

    open_loaded(SOFT_COPIES);
    s.array.sync_event = NULL;
    ck_assert_int_eq(uva_array_record(s.f.loop.runtime, &s.array, NULL, NULL),
                     0);
    before = gate_close();
    uva_array_release(&s.array);
    ck_assert_int_eq(atomic_load(&s.f.fake.live), 0);
    close_late(before);
}
END_TEST

/* In flight, not begun, or kept until the workers end. */
START_TEST(an_array_to_be_released_behind_work_is_not)
{
    long before;

    open_loaded(SOFT_COPIES);
    atomic_store(&s.f.device.held, true);
    s.f.device.record_code = _i == 2 ? EIO : 0;
    before = _i == 1 ? gate_close() : 0;
    uva_array_release_after(s.f.loop.runtime, &s.array, NULL);
    if (_i == 0)
        await_queries();
    while (_i == 2 && atomic_load(&s.warnings) == 0)
        (void)sched_yield();
    if (_i != 1)
        before = gate_close();
    close_late(before);
    ck_assert_int_ne(atomic_load(&s.f.fake.live), 0);
}
END_TEST

static void column_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

START_TEST(no_stream_waits_for_a_tensor)
{
    static int64_t value;
    static const void *buffers[] = {NULL, &value};
    const struct ArrowSchema schema = {.format = "l",
                                       .release = schema_release};
    struct ArrowDeviceArray column = {.array = {.length = 1,
                                                .n_buffers = 2,
                                                .buffers = buffers,
                                                .release = column_release},
                                      .device_type = ARROW_DEVICE_EXT_DEV};
    DLManagedTensorVersioned *tensor;
    struct uva_error error;
    long before;

    open_loaded(SOFT_COPIES);
    column.sync_event = &s.f.device.events[0];
    before = gate_close();
    ck_assert_int_eq(uva_array_to_dlpack(s.f.loop.runtime, &schema, &column,
                                         (int64_t)(intptr_t)&waits, &tensor,
                                         &error),
                     ESHUTDOWN);
    close_late(before);
}
END_TEST

/* ---- streams --------------------------------------------------------------
 */

static int queue_nothing(void *ctx, struct uva_batch *in,
                         struct ArrowDeviceArray *out,
                         const struct uva_device_queue *queue,
                         struct uva_error *error)
{
    (void)ctx;
    (void)queue;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static void stream_open(bool maps)
{
    s.f.stream = fixture_device_stream(&s.f);
    if (maps)
        ck_assert_int_eq(
            uva_stream_map_device(
                s.f.stream, &(struct uva_device_map){.batch = queue_nothing,
                                                     .device_stream = &waits}),
            0);
    else
        ck_assert_int_eq(uva_stream_transfer(s.f.stream, NULL), 0);
}

START_TEST(a_stream_fails)
{
    long before;

    open_loaded(SOFT_COPIES);
    for (int k = 0; k < 8; k++)
        soft_event_end(&s.f.device, k, 0);
    stream_open(_i == 0);
    if (_i == 0)
        ck_assert_int_eq(
            uva_stream_ready(s.f.stream,
                             &(struct uva_ready){.wait = UVA_WAIT_NONE}),
            0);
    before = gate_close();
    fixture_start(&s.f);
    ck_assert_int_eq(fixture_await(&s.f), ESHUTDOWN);
    fixture_release(&s.f);
    close_late(before);
}
END_TEST

START_TEST(a_copy_in_flight_fails)
{
    long before;

    open_loaded(SOFT_COPIES);
    for (int k = 0; k < 8; k++)
        soft_event_end(&s.f.device, k, 0);
    atomic_store(&s.f.device.held, true);
    stream_open(false);
    fixture_start(&s.f);
    while (atomic_load(&s.f.device.copies) == 0)
        loop_settle(&s.f.loop);
    before = gate_close();
    ck_assert_int_eq(fixture_await(&s.f), ESHUTDOWN);
    fixture_release(&s.f);
    close_late(before);
}
END_TEST

static int keep_queued(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out,
                       const struct uva_device_queue *queue,
                       struct uva_error *error)
{
    (void)ctx;
    (void)queue;
    (void)error;
    (void)in;
    fake_source_batch(&s.f.fake, in->ordinal, out);
    return 0;
}

/* The work is in flight, and its memory is not released. */
START_TEST(queued_work_is_left_to_itself)
{
    long live, before;

    open_loaded(SOFT_COPIES);
    for (int k = 0; k < 8; k++)
        soft_event_end(&s.f.device, k, 0);
    atomic_store(&s.f.device.held, true);
    s.f.stream = fixture_device_stream(&s.f);
    ck_assert_int_eq(
        uva_stream_map_device(
            s.f.stream, &(struct uva_device_map){.batch = keep_queued,
                                                 .device_stream = &waits}),
        0);
    ck_assert_int_eq(
        uva_stream_ready(s.f.stream,
                         &(struct uva_ready){.wait = UVA_WAIT_NONE}),
        0);
    fixture_start(&s.f);
    ck_assert_int_eq(fixture_await(&s.f), 0);
    fixture_release(&s.f);
    before = gate_close();
    live = atomic_load(&s.f.fake.live);
    close_late(before);
    ck_assert_int_eq(atomic_load(&s.f.fake.live), live);
}
END_TEST

/* ---- memory of the program ------------------------------------------------
 */

static struct {
    atomic_int taken, freed; /* calls: free, free_ctx */
    struct ArrowDeviceArray kept;
} own;

static void *own_alloc(void *ctx, ArrowDeviceType device_type,
                       int64_t device_id, size_t size_bytes,
                       void *device_stream)
{
    (void)ctx;
    (void)device_stream;
    return soft_alloc(&s.f.device, device_type, device_id, size_bytes);
}

static void own_free(void *ctx, ArrowDeviceType device_type, int64_t device_id,
                     void *memory, size_t size_bytes, void *device_stream)
{
    (void)ctx;
    (void)size_bytes;
    (void)device_stream;
    soft_dealloc(&s.f.device, device_type, device_id, memory);
    atomic_fetch_add(&own.taken, 1);
}

static void own_free_ctx(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&own.freed, 1);
}

static void keep_first(struct recording_consumer *consumer,
                       struct uva_batch *batch)
{
    (void)consumer;
    if (own.kept.array.release == NULL)
        uva_array_move(&batch->data, &own.kept);
}

/* Its free_ctx comes after the last free, and some memory is not freed. */
START_TEST(an_allocator_of_memory_that_is_held_is_left_to_itself)
{
    const struct uva_device_allocator allocator = {
        .alloc = own_alloc, .free = own_free, .free_ctx = own_free_ctx};

    open_loaded(SOFT_COPIES);
    s.f.stream = fixture_tasks(&s.f);
    ck_assert_int_eq(
        uva_stream_transfer(
            s.f.stream,
            &(struct uva_transfer){.device_type = ARROW_DEVICE_EXT_DEV,
                                   .allocator = &allocator}),
        0);
    ck_assert_int_eq(uva_stream_ready(s.f.stream, NULL), 0);
    s.f.got.on_batch = keep_first;
    fixture_start(&s.f);
    ck_assert_int_eq(fixture_await(&s.f), 0);
    fixture_release(&s.f);
    uva__driver_gate_close();
    uva_array_release(&own.kept);
    loop_close_runtime(&s.f.loop, 0);
    ck_assert_int_eq(atomic_load(&own.freed), 0);
    ck_assert(own.kept.array.release == NULL);
}
END_TEST

/* ---- the exit itself ------------------------------------------------------
 */

static void driver_exit(void)
{
    _exit(uva__driver_gate_enter() ? 4 : 5);
}

static void record_event(void)
{
    s.array.sync_event = NULL;
    ck_assert_int_eq(uva_array_record(s.f.loop.runtime, &s.array, NULL, NULL),
                     0);
}

/* Copies a stream to the device, into memory of its driver's. */
static void copy_stream(void)
{
    s.f.stream = fixture_tasks(&s.f);
    ck_assert_int_eq(
        uva_stream_transfer(
            s.f.stream,
            &(struct uva_transfer){.device_type = ARROW_DEVICE_EXT_DEV}),
        0);
    ck_assert_int_eq(uva_stream_ready(s.f.stream, NULL), 0);
    fixture_start(&s.f);
    ck_assert_int_eq(fixture_await(&s.f), 0);
}

/* A driver registers its handler when the program makes a context, after the
 * library has opened it, or when it gives the first memory, after the first
 * event: no call may come after that handler. */
START_TEST(a_driver_that_is_set_up_after_its_load_is_left_before_it_exits)
{
    open_loaded(SOFT_COPIES);
    if (_i == 2)
        record_event();
    (void)atexit(driver_exit);
    if (_i == 0) {
        ck_assert_int_eq(array_wait(&s, UVA_FOREVER), 0);
        await_queries();
    } else if (_i == 1) {
        record_event();
    } else {
        copy_stream();
    }
    exit(1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("exit");

    suite_add_loops(tc, 0, 2, a_wait_ends, a_wait_that_begins_fails,
                    a_stream_fails, NULL);
    suite_add_loops(tc, 0, 3, an_array_to_be_released_behind_work_is_not, NULL);
    suite_add(tc, nothing_is_recorded, an_array_of_ours_that_was_held_is_let_go,
              no_stream_waits_for_a_tensor, a_copy_in_flight_fails,
              queued_work_is_left_to_itself,
              an_allocator_of_memory_that_is_held_is_left_to_itself, NULL);
    tcase_add_loop_exit_test(
        tc, a_driver_that_is_set_up_after_its_load_is_left_before_it_exits, 5,
        0, 3);
    return suite_main("device exit", NULL, NULL, tc, NULL);
}
