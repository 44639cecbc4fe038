/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that queue work on a device: their results come at once, with an
 * event, and the memory of the work is kept until that is complete. The work of
 * the soft device runs when the test no longer holds it. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "support/soft_copies.h"

enum { BATCHES = 12 };

static struct fixture f;

/* The function's plan and record. */
static struct {
    bool moves;           /* the result takes the input over */
    long fails_at;        /* this call fails, from 1; 0: no failure */
    bool gives_nothing;   /* it succeeds without a result */
    bool held;            /* it waits for `open` */
    atomic_bool open;     /* the gate */
    atomic_bool waiting;  /* at the gate */
    atomic_long returned; /* calls, with their arrays */
    atomic_long calls, wrong, freed, schemas;
    atomic_long waits; /* of the device's stream, for events */
} map;

static int queue_work(void *ctx, struct uva_batch *in,
                      struct ArrowDeviceArray *out,
                      const struct uva_device_queue *queue,
                      struct uva_error *error)
{
    const long n = atomic_fetch_add(&map.calls, 1) + 1;

    if (ctx != &map || in->ordinal != n - 1 || in->schema == NULL ||
        (queue == NULL) != (in->data.device_type == ARROW_DEVICE_CPU))
        atomic_fetch_add(&map.wrong, 1);
    if (queue != NULL && (queue->device_stream != &map.waits ||
                          queue->device_type != ARROW_DEVICE_EXT_DEV ||
                          queue->device_id != in->data.device_id))
        atomic_fetch_add(&map.wrong, 1);
    atomic_store(&map.waiting, true);
    while (map.held && !atomic_load(&map.open))
        (void)sched_yield();
    if (n == map.fails_at)
        return uva_error_set(error, EDOM, "the kernel is not to be had");
    if (map.moves) {
        uva_array_move(&in->data, out);
    } else if (!map.gives_nothing) {
        fake_source_batch(&f.fake, in->ordinal, out);
        out->device_type = 0;
        out->device_id = 7;
    }
    atomic_fetch_add(&map.returned, 1);
    return 0;
}

static int make_schema(void *ctx, const struct ArrowSchema *in,
                       struct ArrowSchema *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    atomic_fetch_add(&map.schemas, 1);
    return uva_schema_copy(in, out);
}

static void map_free(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&map.freed, 1);
}

static struct uva_device_map map_options(void)
{
    return (struct uva_device_map){.batch = queue_work,
                                   .free_ctx = map_free,
                                   .ctx = &map,
                                   .device_stream = &map.waits};
}

static void set_up(void)
{
    memset(&map, 0, sizeof(map));
}

static void tear_down(void)
{
    atomic_store(&map.open, true);
    atomic_store(&f.device.held, false);
    fixture_close(&f);
    ck_assert_int_eq(map.wrong, 0);
}

/* Opens a stream of `batches` batches of a device, with the function after it.
 * Their events are complete, and the work is held. */
static void open_with(int batches, const struct uva_device_map *options)
{
    fixture_open_device(&f, SOFT_COPIES, batches);
    atomic_store(&f.device.held, true);
    for (int k = 0; k < batches; k++)
        soft_event_end(&f.device, k, 0);
    f.stream = fixture_device_stream(&f);
    ck_assert_int_eq(uva_stream_map_device(f.stream, options), 0);
}

static void open_passing(int batches)
{
    const struct uva_device_map options = map_options();
    const struct uva_ready none = {.wait = UVA_WAIT_NONE};

    open_with(batches, &options);
    ck_assert_int_eq(uva_stream_ready(f.stream, &none), 0);
}

/* Waits until as many arrays are left. */
static void await_live(long n)
{
    while (atomic_load(&f.fake.live) != n)
        (void)sched_yield();
}

/* Waits until the wait for each event has found it pending. */
static void await_queries(long more)
{
    const long from = atomic_load(&f.device.queries);

    while (atomic_load(&f.device.queries) < from + more)
        (void)sched_yield();
}

/* ---- results ------------------------------------------------------------ */

/* The consumer has released every batch when the stream has ended. */
START_TEST(results_come_at_once_and_what_the_work_uses_is_kept)
{
    open_passing(BATCHES);
    fixture_completes(&f, BATCHES);
    ck_assert(f.got.in_order);
    ck_assert_ptr_nonnull(f.got.sync_event);
    ck_assert_int_eq(f.got.device_type, ARROW_DEVICE_EXT_DEV);
    ck_assert_int_eq(map.calls, BATCHES);
    ck_assert_int_eq(map.waits, BATCHES);
    fixture_release(&f);
    await_queries(3 * BATCHES);
    ck_assert_int_eq(atomic_load(&f.fake.live), 2 * BATCHES);
    ck_assert_int_eq(f.device.events_live, BATCHES);
    if (_i == 1) {
        loop_close_runtime(&f.loop, 0);
        ck_assert_int_eq(atomic_load(&f.fake.live), 2 * BATCHES);
    }
    f.device.recorded_code = _i == 2 ? EIO : 0; /* has no effect any more */
    atomic_store(&f.device.held, false);
    await_live(0);
    while (f.device.events_live != 0)
        (void)sched_yield();
}
END_TEST

static void keep_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    uva_array_move(&batch->data, c->ctx);
}

START_TEST(a_result_lasts_as_long_as_its_consumer_wants)
{
    struct ArrowDeviceArray kept, moved;

    f.device.recorded_code = 0;
    open_passing(1);
    f.device.recorded_code = _i == 0 ? 0 : EIO; /* the work fails */
    f.got.on_batch = keep_batch;
    f.got.ctx = &kept;
    fixture_completes(&f, 1);
    fixture_release(&f);
    ck_assert_int_eq(kept.device_type, ARROW_DEVICE_EXT_DEV);
    ck_assert_int_eq(kept.device_id, -1); /* as in the input */
    atomic_store(&f.device.held, false);
    await_live(1); /* the input is released */
    fixture_wait(&f, &kept, UVA_FOREVER);
    ck_assert_int_eq(fixture_await_answers(&f, 1), _i == 0 ? 0 : EIO);
    uva_array_move(&kept, &moved);
    uva_array_release(&moved);
    await_live(0);
}
END_TEST

START_TEST(a_ready_stage_waits_for_the_work)
{
    const struct uva_device_map options = map_options();

    open_with(BATCHES, &options);
    ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    fixture_start(&f);
    while (atomic_load(&map.returned) < BATCHES)
        loop_settle(&f.loop);
    loop_settle(&f.loop);
    ck_assert_int_eq(f.got.batches, 0);
    atomic_store(&f.device.held, false);
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert_int_eq(f.got.batches, BATCHES);
    ck_assert(f.got.in_order);
    ck_assert_ptr_null(f.got.sync_event);
}
END_TEST

START_TEST(a_result_may_take_the_input_over)
{
    map.moves = true;
    open_passing(BATCHES);
    fixture_completes(&f, BATCHES);
    fixture_release(&f);
    await_queries(3 * BATCHES);
    ck_assert_int_eq(atomic_load(&f.fake.live), BATCHES);
    atomic_store(&f.device.held, false);
    await_live(0);
}
END_TEST

static int queue_more(void *ctx, struct uva_batch *in,
                      struct ArrowDeviceArray *out,
                      const struct uva_device_queue *queue,
                      struct uva_error *error)
{
    (void)ctx;
    (void)queue;
    (void)error;
    if (in->data.sync_event == NULL)
        atomic_fetch_add(&map.wrong, 1);
    fake_source_batch(&f.fake, in->ordinal, out);
    out->device_type = 0;
    return 0;
}

/* The result of the first one is the input of the second one. */
START_TEST(kernels_follow_each_other)
{
    const struct uva_device_map first = map_options();
    const struct uva_device_map second = {.batch = queue_more,
                                          .device_stream = &map.waits};
    const struct uva_ready none = {.wait = UVA_WAIT_NONE};

    open_with(BATCHES, &first);
    ck_assert_int_eq(uva_stream_map_device(f.stream, &second), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, &none), 0);
    fixture_completes(&f, BATCHES);
    ck_assert(f.got.in_order);
    ck_assert_int_eq(map.waits, 2 * BATCHES);
    fixture_release(&f);
    await_queries(6 * BATCHES);
    ck_assert_int_eq(atomic_load(&f.fake.live), 3 * BATCHES);
    atomic_store(&f.device.held, false);
    await_live(0);
}
END_TEST

/* There is no event of the input. */
START_TEST(a_batch_that_is_complete_is_not_waited_for)
{
    const struct uva_device_map options = map_options();
    const struct uva_ready none = {.wait = UVA_WAIT_NONE};
    struct ArrowDeviceArray array;

    fixture_open_device(&f, SOFT_COPIES, 1);
    soft_device_batch(&f.device, &f.fake, 0, &array);
    array.sync_event = NULL;
    f.stream = fixture_arrays(&f, &array, 1);
    ck_assert_int_eq(uva_stream_map_device(f.stream, &options), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, &none), 0);
    fixture_completes(&f, 1);
    ck_assert_int_eq(map.waits, 0);
    ck_assert_int_eq(map.calls, 1);
}
END_TEST

START_TEST(a_batch_of_the_host_has_no_queue)
{
    struct uva_device_map options = map_options();

    map.moves = true;
    options.schema = make_schema;
    fixture_open(&f, BATCHES);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_map_device(f.stream, &options), 0);
    fixture_completes(&f, BATCHES);
    ck_assert(f.got.in_order);
    ck_assert_int_eq(map.calls, BATCHES);
    ck_assert_int_eq(map.schemas, 1);
    ck_assert_int_eq(f.fake.extracted_here, 0);
    fixture_release(&f);
    fixture_close(&f);
    ck_assert_int_eq(map.freed, 1);
}
END_TEST

/* ---- cancel and close --------------------------------------------------- */

static void await_call(void)
{
    while (!atomic_load(&map.waiting))
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
}

/* The loop goes on while the function is held: otherwise this never ends. */
START_TEST(a_function_that_takes_its_time_holds_up_no_loop)
{
    map.held = true;
    open_passing(BATCHES);
    fixture_start(&f);
    await_call();
    loop_settle(&f.loop);
    uva_stream_cancel(f.stream, ECANCELED, "enough");
    (void)fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(f.got.batches, 0);
    fixture_release(&f);
    atomic_store(&map.open, true);
    await_live(2); /* the batches of the call */
    await_queries(3);
    ck_assert_int_eq(atomic_load(&f.fake.live), 2);
    atomic_store(&f.device.held, false);
    await_live(0);
}
END_TEST

/* The close leaves the call to itself. Its event is recorded, or cannot be. */
START_TEST(a_function_may_return_when_its_runtime_has_closed)
{
    map.held = true;
    open_passing(1);
    fixture_start(&f);
    await_call();
    fixture_release(&f);
    loop_close_runtime(&f.loop, 0);
    f.device.record_code = _i == 0 ? 0 : EIO;
    atomic_store(&map.open, true);
    if (_i == 0) {
        await_queries(3);
        ck_assert_int_eq(atomic_load(&f.fake.live), 2);
        atomic_store(&f.device.held, false);
    }
    await_live(0);
}
END_TEST

START_TEST(a_cancel_finds_results_that_were_not_taken)
{
    open_passing(BATCHES);
    f.got.appetite = 2;
    fixture_start(&f);
    recording_await(&f.got, &f.loop, 2);
    while (atomic_load(&map.returned) < BATCHES)
        loop_settle(&f.loop);
    uva_stream_cancel(f.stream, ECANCELED, "enough");
    (void)fixture_await(&f);
    fixture_release(&f);
    await_queries(3 * BATCHES);
    ck_assert_int_eq(atomic_load(&f.fake.live), 2 * BATCHES);
    atomic_store(&f.device.held, false);
    await_live(0);
}
END_TEST

/* ---- failures ----------------------------------------------------------- */

static void expect_failure(int code, const char *text, int64_t batches)
{
    ck_assert_int_eq(fixture_run(&f), code);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    text_contains(f.got.outcome.error.message, text);
    ck_assert_int_eq(f.got.batches, batches);
    fixture_release(&f);
}

/* It may have queued something. */
START_TEST(what_a_function_that_fails_has_queued_is_waited_for)
{
    map.fails_at = 3;
    open_passing(3);
    expect_failure(EDOM, "not to be had", 2);
    await_queries(9);
    ck_assert_int_eq(atomic_load(&f.fake.live), 5);
    atomic_store(&f.device.held, false);
    await_live(0);
}
END_TEST

START_TEST(a_function_without_a_result_fails)
{
    map.gives_nothing = true;
    open_passing(1);
    expect_failure(EPROTO, "gave no array", 0);
    await_queries(3);
    ck_assert_int_eq(atomic_load(&f.fake.live), 1);
    atomic_store(&f.device.held, false);
    await_live(0);
}
END_TEST

/* The loop index: the result is new; takes the input over; or is missing, as
 * the function has failed, too. */
START_TEST(arrays_of_work_without_an_event_are_kept_until_the_workers_end)
{
    map.moves = _i == 1;
    map.fails_at = _i == 2;
    open_passing(1);
    f.device.record_code = EIO;
    expect_failure(_i == 2 ? EDOM : EIO,
                   _i == 2 ? "not to be had" : "cannot record", 0);
    loop_settle(&f.loop);
    ck_assert_int_eq(atomic_load(&f.fake.live), _i == 0 ? 2 : 1);
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(atomic_load(&f.fake.live), 0);
}
END_TEST

/* ---- tables of other kinds ----------------------------------------------- */

/* Opens a stream of `batches` batches of a device with this table. */
static void open_table(const struct uva_device_ops *ops, int batches)
{
    const struct uva_device_map options = map_options();
    const struct uva_ready none = {.wait = UVA_WAIT_NONE};

    fixture_open_device(&f, SOFT_COPIES, batches);
    ck_assert_int_eq(uva_device_register(f.loop.runtime, ARROW_DEVICE_EXT_DEV,
                                         ops, &f.device, NULL),
                     0);
    f.stream = fixture_device_stream(&f);
    ck_assert_int_eq(uva_stream_map_device(f.stream, &options), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, &none), 0);
}

static int cannot_wait(void *state, const struct uva_device_event *event,
                       void *device_stream, struct uva_error *error)
{
    (void)state, (void)event, (void)device_stream;
    return uva_error_set(error, EIO, "cannot wait");
}

static int cannot_record(void *state, const struct uva_device_event *event,
                         void *device_stream, void **event_out,
                         struct uva_error *error)
{
    (void)state, (void)event, (void)device_stream, (void)event_out;
    return uva_error_set(error, EIO, "cannot record");
}

/* A table that lacks a function, or fails; the function is not called. */
START_TEST(what_the_device_cannot_do_ends_the_stream)
{
    static struct uva_device_ops ops;

    ops = *soft_device_ops(&(struct soft_device){.mode = SOFT_COPIES});
    ops.record = _i == 0 ? NULL : cannot_record;
    ops.stream_wait = _i == 1 ? NULL : cannot_wait;
    open_table(&ops, 1);
    expect_failure(_i < 2 ? ENOTSUP : EIO, _i < 2 ? "events" : "cannot wait",
                   0);
    ck_assert_int_eq(map.calls, 0);
}
END_TEST

/* Any thread may call it. */
static int any_query(void *state, const struct uva_device_event *event,
                     struct uva_error *error)
{
    const struct soft_event *soft = event->sync_event;
    int code;

    soft_copies_advance(state);
    code = atomic_load(&soft->state);
    if (code < 0)
        error->vendor_code = 600;
    return code <= 0 ? -code * EAGAIN
                     : uva_error_set(error, code, "the event has failed");
}

static const struct uva_device_ops *any_ops(void)
{
    static struct uva_device_ops ops;

    ops = *soft_device_ops(&(struct soft_device){.mode = SOFT_COPIES});
    ops.query = any_query;
    ops.query_on_loop = true;
    return &ops;
}

/* The event of another batch is pending, the event of a third one complete. */
START_TEST(a_batch_with_a_failed_event_is_not_worked_on)
{
    open_table(any_ops(), 3);
    soft_event_end(&f.device, 1, 0);
    soft_event_end(&f.device, 2, EIO);
    expect_failure(EIO, "the event has failed", 2);
    ck_assert_int_eq(map.calls, 2);
    ck_assert_int_eq(f.got.outcome.error.vendor_code, 0);
}
END_TEST

START_TEST(a_device_that_is_not_known_ends_the_stream)
{
    const struct uva_device_map options = map_options();
    const struct uva_ready none = {.wait = UVA_WAIT_NONE};
    struct ArrowDeviceArray array;

    fixture_open(&f, 1);
    fake_source_batch(&f.fake, 0, &array);
    array.device_type = ARROW_DEVICE_HEXAGON;
    f.stream = fixture_arrays(&f, &array, 1);
    ck_assert_int_eq(uva_stream_map_device(f.stream, &options), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, &none), 0);
    expect_failure(ENOTSUP, "device type", 0);
    ck_assert_int_eq(map.calls, 0);
}
END_TEST

START_TEST(options_that_make_no_sense_are_refused)
{
    struct uva_device_map options = map_options();

    fixture_open(&f, 1);
    f.stream = fixture_tasks(&f);
    if (_i == 0)
        options.batch = NULL;
    if (_i == 1)
        options.window.batches = -1;
    if (_i == 2)
        options.reserved[3] = &f;
    ck_assert_int_eq(uva_stream_map_device(f.stream, _i == 3 ? NULL : &options),
                     EINVAL);
    ck_assert_int_eq(map.freed, _i < 2); /* or it cannot be trusted at all */
    ck_assert_int_eq(uva_stream_map_device(f.stream, NULL), EINVAL);
    ck_assert_int_eq(map.freed, _i < 2);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

/* Memory that outlives runtimes, of each batch: for the work, for the wait, and
 * the device's own. */
static const char worker[] = "uva-c0";

START_TEST(a_batch_without_memory_ends_the_stream)
{
    bool again = true;
    int code;
    long n;

    for (n = 1; again; n++) {
        set_up();
        map.moves = true;
        open_passing(3);
        atomic_store(&f.device.held, false);
        faulty_libc_only_thread(worker);
        faulty_libc_fail(n);
        code = fixture_run(&f);
        again = faulty_libc_stop();
        faulty_libc_only_thread(NULL);
        ck_assert(code == 0 || (again && code == ENOMEM));
        ck_assert_int_eq(f.got.batches == 3, code == 0);
        fixture_close(&f);
        ck_assert_int_eq(map.freed, 1);
    }
    ck_assert_int_gt(n, 3 * 3);
}
END_TEST

/* Memory of the runtime, for the stage. */
START_TEST(a_stage_without_memory_fails_the_start)
{
    const struct uva_device_map options = map_options();
    int code = ENOMEM;
    long n;

    for (n = 1; code != 0; n++) {
        set_up();
        fixture_open(&f, 1);
        f.stream = fixture_tasks(&f);
        loop_fail(&f.loop, n);
        code = uva_stream_map_device(f.stream, &options);
        loop_fail(&f.loop, 0);
        ck_assert(code == 0 || code == ENOMEM);
        ck_assert_int_eq(uva_stream_status(f.stream, NULL), code);
        fixture_release(&f);
        fixture_close(&f);
        ck_assert_int_eq(map.freed, 1);
    }
    ck_assert_int_gt(n, 4);
}
END_TEST

/* The devices of the workers, and their thread. */
START_TEST(a_stage_without_devices_fails_the_start)
{
    const struct uva_device_map options = map_options();

    fixture_open(&f, 1);
    f.stream = fixture_tasks(&f);
    faulty_libc_fail(_i == 0);
    faulty_libc_threads(_i == 0);
    ck_assert_int_eq(uva_stream_map_device(f.stream, &options), ENOMEM);
    (void)faulty_libc_stop();
    faulty_libc_threads(true);
    ck_assert_int_eq(map.freed, 1);
}
END_TEST

static void add_cases(TCase *tc)
{
    tcase_add_loop_test(tc, results_come_at_once_and_what_the_work_uses_is_kept,
                        0, 3);
    tcase_add_loop_test(tc, a_result_lasts_as_long_as_its_consumer_wants, 0, 2);
    suite_add(tc, a_ready_stage_waits_for_the_work,
              a_result_may_take_the_input_over, kernels_follow_each_other,
              a_batch_that_is_complete_is_not_waited_for,
              a_batch_of_the_host_has_no_queue,
              a_function_that_takes_its_time_holds_up_no_loop,
              a_cancel_finds_results_that_were_not_taken,
              what_a_function_that_fails_has_queued_is_waited_for,
              a_function_without_a_result_fails,
              a_batch_with_a_failed_event_is_not_worked_on,
              a_device_that_is_not_known_ends_the_stream,
              a_batch_without_memory_ends_the_stream,
              a_stage_without_memory_fails_the_start, NULL);
    tcase_add_loop_test(
        tc, arrays_of_work_without_an_event_are_kept_until_the_workers_end, 0,
        3);
    tcase_add_loop_test(tc, a_function_may_return_when_its_runtime_has_closed,
                        0, 2);
    tcase_add_loop_test(tc, what_the_device_cannot_do_ends_the_stream, 0, 3);
    tcase_add_loop_test(tc, options_that_make_no_sense_are_refused, 0, 4);
    tcase_add_loop_test(tc, a_stage_without_devices_fails_the_start, 0, 2);
}

int main(void)
{
    Suite *suite = suite_create("map_device");
    TCase *tc = suite_case(suite, "map_device", set_up, tear_down);

    tcase_set_timeout(tc, 60);
    add_cases(tc);
    return suite_run(suite);
}
