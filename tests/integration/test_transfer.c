/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that are copied to a device and back: in order, several at once, with
 * failures at any step; and no memory is freed before a copy that uses it has
 * ended. */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/native.h"
#include "support/soft_copies.h"
#include "support/soft_memory.h"
#include "uvarrow/arrow.h"

static struct fixture f;

static void tear_down(void)
{
    fixture_close(&f);
}

static const struct uva_transfer there = {.device_type = ARROW_DEVICE_EXT_DEV};

static void chain(void)
{
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &there), 0);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
}

START_TEST(batches_go_to_a_device_and_come_back_in_order)
{
    fixture_open_device(&f, SOFT_COPIES, 40);
    f.fake.metadata = NATIVE_PAIR;
    chain();
    fixture_completes(&f, 40);
    ck_assert(f.got.in_order);
    ck_assert_int_eq(f.got.tagged, f.got.batches);
    ck_assert_int_eq(f.got.device_type, ARROW_DEVICE_CPU);
    ck_assert_int_eq(f.device.copies, 80);
    ck_assert_int_eq(f.fake.extracted_here, 0); /* extracted on workers */
}
END_TEST

START_TEST(batches_may_stay_on_the_device)
{
    fixture_open_device(&f, SOFT_COPIES, 5);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &there), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    fixture_completes(&f, 5);
    ck_assert(f.got.in_order);
    ck_assert_int_eq(f.got.device_type, ARROW_DEVICE_EXT_DEV);
    ck_assert_ptr_null(f.got.sync_event); /* EV-01 */
}
END_TEST

START_TEST(batches_that_are_there_pass_through)
{
    fixture_open_device(&f, SOFT_COPIES, 5);
    f.device.device_type = ARROW_DEVICE_CPU;
    f.stream = fixture_device_stream(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    fixture_completes(&f, 5);
    ck_assert_int_eq(f.device.copies, 0);
    ck_assert_ptr_null(f.got.sync_event); /* EV-04: it had no meaning */
}
END_TEST

START_TEST(memory_that_the_host_can_read_is_waited_for_and_not_copied)
{
    static const ArrowDeviceType types[] = {ARROW_DEVICE_EXT_DEV,
                                            ARROW_DEVICE_CUDA_HOST};
    struct uva_error error;

    fixture_open_device(&f, SOFT_CALLS, 3);
    f.device.device_type = types[_i / 2];
    if (_i / 2 == 1)
        ck_assert_int_eq(uva_device_register(f.loop.runtime, types[1],
                                             soft_device_ops(&f.device),
                                             &f.device, &error),
                         0);
    f.stream = fixture_device_stream(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    soft_event_end(&f.device, 0, 0);
    soft_event_end(&f.device, 1, 0);
    soft_event_end(&f.device, 2, _i % 2 == 0 ? 0 : EIO);
    ck_assert_int_eq(fixture_run(&f), _i % 2 == 0 ? 0 : EIO);
    ck_assert_int_eq(f.got.batches, _i % 2 == 0 ? 3 : 2);
    ck_assert_int_eq(f.got.device_type, ARROW_DEVICE_CPU);
    ck_assert_ptr_null(f.got.sync_event);
}
END_TEST

START_TEST(pinned_memory_without_an_event_is_the_hosts_at_once)
{
    struct ArrowDeviceArrayStream source;

    fixture_open_device(&f, SOFT_COPIES, 3);
    fake_source_device(&f.fake, ARROW_DEVICE_CUDA_HOST, &source);
    f.stream = uva_stream_from_device_stream(f.loop.runtime, &source, NULL);
    ck_assert_int_eq(
        uva_stream_transfer(
            f.stream, &(struct uva_transfer){.device_type = ARROW_DEVICE_CPU}),
        0);
    fixture_completes(&f, 3);
    ck_assert_int_eq(f.got.device_type, ARROW_DEVICE_CPU);
    ck_assert_int_eq(f.device.queries, 0);
}
END_TEST

START_TEST(a_batch_that_does_not_fit_its_schema_ends_the_stream)
{
    fixture_open_device(&f, SOFT_COPIES, 3);
    f.fake.wrong_shape = true;
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &there), 0);
    ck_assert_int_eq(fixture_run(&f), EINVAL);
    ck_assert_int_eq(f.got.batches, 0);
}
END_TEST

START_TEST(where_there_is_no_way_the_stream_ends)
{
    const struct uva_transfer nowhere = {.device_type = ARROW_DEVICE_WEBGPU};

    fixture_open_device(&f, SOFT_COPIES, 5);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &nowhere), 0);
    ck_assert_int_eq(fixture_run(&f), ENOTSUP);
    text_contains(f.got.outcome.error.message, "there is no way");
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    static const struct uva_transfer wrong[] = {
        {.device_type = -1},         {.device_type = 17},
        {.window = {.batches = -1}}, {.window = {.bytes = -1}},
        {.reserved = {NULL, &f}},
    };

    fixture_open_device(&f, SOFT_COPIES, 5);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &wrong[_i]), EINVAL);
}
END_TEST

START_TEST(a_call_that_fails_ends_the_stream_behind_what_was_before_it)
{
    fixture_open_device(&f, SOFT_COPIES, 9);
    if (_i % 2 == 0)
        f.device.copy_fails_at = _i + 1;
    else
        f.device.step_fails_at = _i + 1;
    chain();
    ck_assert_int_eq(fixture_run(&f), _i < 18 ? EIO : 0);
    ck_assert_int_le(f.got.batches, 9 - (_i < 18));
    ck_assert(f.got.in_order);
}
END_TEST

START_TEST(no_more_than_the_window_is_under_way)
{
    const struct uva_window windows[] = {{.batches = 3}, {.bytes = 1}};
    const struct uva_transfer options = {.device_type = ARROW_DEVICE_EXT_DEV,
                                         .window = windows[_i]};
    long most = 3;

    fixture_open_device(&f, SOFT_COPIES, 9);
    if (_i == 0) {
        f.stream = fixture_tasks(&f);
    } else { /* at least one is copied */
        f.device.device_type = ARROW_DEVICE_CPU;
        f.stream = fixture_device_stream(&f);
        most = 1;
    }
    atomic_store(&f.device.held, true);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &options), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    fixture_start(&f);
    while (atomic_load(&f.device.copies) < most)
        loop_settle(&f.loop);
    for (int i = 0; i < 20; i++) /* time for copies that could begin */
        loop_settle(&f.loop);
    if (_i == 0)
        ck_assert_int_eq(atomic_load(&f.device.copies), most);
    ck_assert_int_eq(f.got.batches, 0);
    atomic_store(&f.device.held, false);
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert_int_eq(f.got.batches, 9);
}
END_TEST

/* Copies of slices have the rows before these, too: windows count that, as each
 * copy has them. */
START_TEST(a_window_counts_what_copies_of_slices_take)
{
    const struct uva_transfer options = {.device_type = ARROW_DEVICE_EXT_DEV,
                                         .window.bytes = 10000};
    struct recording_consumer consumer;
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;
    struct uva_stream *stream;

    fixture_open_device(&f, SOFT_COPIES, 0);
    recording_init(&consumer);
    batch_schema(&schema);
    batch_make(&array, 100); /* of one byte each */
    array.array.offset = 1000;
    stream = uva_stream_from_arrays(f.loop.runtime, &schema, &array, 1);
    ck_assert_int_eq(
        uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = 1}), 0);
    ck_assert_int_eq(uva_stream_transfer(stream, &options), 0);
    ck_assert_int_eq(uva_stream_ready(stream, NULL), 0);
    atomic_store(&f.device.held, true);
    recording_consume(&consumer, stream);
    while (atomic_load(&f.device.copies) < 5)
        loop_settle(&f.loop);
    for (int i = 0; i < 20; i++) /* time for copies that could begin */
        loop_settle(&f.loop);
    ck_assert_int_le(atomic_load(&f.device.copies), 10);
    atomic_store(&f.device.held, false);
    recording_await_done(&consumer, &f.loop);
    ck_assert_int_eq(consumer.taken, 100);
}
END_TEST

START_TEST(what_a_copy_uses_stays_until_it_has_ended_whoever_has_gone)
{
    long live;

    fixture_open_device(&f, SOFT_COPIES, 9);
    atomic_store(&f.device.held, true);
    chain();
    fixture_start(&f);
    while (_i < 2 && atomic_load(&f.device.copies) == 0)
        loop_settle(&f.loop);
    if (_i == 0)
        uva_stream_cancel(f.stream, ECANCELED, "enough");
    fixture_release(&f);
    loop_close_runtime(&f.loop, 0);
    ck_assert(f.got.done);
    ck_assert_int_eq(f.got.batches, 0);
    live = atomic_load(&f.fake.live);
    ck_assert(_i == 2 || live > 0);
    ck_assert(_i == 2 || soft_memory_live() > 0);
    atomic_store(&f.device.held, false);
    while (atomic_load(&f.fake.live) > 0 || soft_memory_live() > 0)
        sched_yield();
}
END_TEST

/* ---- memory of the caller ------------------------------------------------ */

/* An allocator over the memory of the soft device. */
static struct own {
    atomic_int given, taken, freed; /* calls: alloc, free, free_ctx */
    int fails_at;                   /* this alloc gives no memory; 0: no
                                       failure */
    atomic_bool wrong;              /* an argument was wrong */
    size_t sizes[64];               /* of each alloc */
    void *memory[64];
    pthread_t thread; /* of the last call */
} own;

static void *own_alloc(void *ctx, ArrowDeviceType device_type,
                       int64_t device_id, size_t size_bytes,
                       void *device_stream)
{
    const int n = atomic_fetch_add(&own.given, 1);

    if (ctx != &own || device_type != ARROW_DEVICE_EXT_DEV || device_id != 7 ||
        size_bytes == 0 || device_stream != NULL || n >= 64)
        atomic_store(&own.wrong, true);
    own.thread = pthread_self();
    if (n + 1 == own.fails_at)
        return NULL;
    own.sizes[n % 64] = size_bytes;
    return own.memory[n % 64] = soft_memory_new(size_bytes);
}

static void own_free(void *ctx, ArrowDeviceType device_type, int64_t device_id,
                     void *memory, size_t size_bytes, void *device_stream)
{
    int n = 0;

    while (n < 64 && own.memory[n] != memory)
        n++;
    if (ctx != &own || device_type != ARROW_DEVICE_EXT_DEV || device_id != 7 ||
        device_stream != NULL || n == 64 || own.sizes[n] != size_bytes ||
        !pthread_equal(own.thread, pthread_self()))
        atomic_store(&own.wrong, true);
    soft_memory_free(memory);
    atomic_fetch_add(&own.taken, 1);
}

static void own_free_ctx(void *ctx)
{
    atomic_fetch_add(&((struct own *)ctx)->freed, 1);
}

static const struct uva_device_allocator own_allocator = {.alloc = own_alloc,
                                                          .free = own_free,
                                                          .free_ctx =
                                                              own_free_ctx,
                                                          .ctx = &own};

static const struct uva_transfer into_own = {.device_type =
                                                 ARROW_DEVICE_EXT_DEV,
                                             .device_id = 7,
                                             .allocator = &own_allocator};

static void own_open(int fails_at)
{
    memset(&own, 0, sizeof(own));
    own.fails_at = fails_at;
    fixture_open_device(&f, SOFT_COPIES, 3);
}

/* The device thread calls free_ctx after all else. */
static void own_ends(int given)
{
    while (atomic_load(&own.freed) == 0)
        (void)sched_yield();
    ck_assert_int_eq(own.freed, 1);
    ck_assert_int_eq(own.given, given);
    ck_assert_int_eq(own.taken, given - (own.fails_at != 0));
    ck_assert(!own.wrong);
}

START_TEST(memory_on_the_device_is_the_callers_and_is_given_back)
{
    own_open(0);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &into_own), 0);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    fixture_completes(&f, 3);
    ck_assert_int_eq(f.device.allocs, 0);
    fixture_close(&f);
    own_ends(3);
}
END_TEST

/* The table has no functions for memory. */
START_TEST(an_allocator_replaces_that_of_the_table)
{
    struct uva_device_ops ops;
    struct uva_error error;

    own_open(0);
    ops = *soft_device_ops(&f.device);
    ops.alloc = NULL;
    ops.dealloc = NULL;
    ck_assert_int_eq(uva_device_register(f.loop.runtime, ARROW_DEVICE_EXT_DEV,
                                         &ops, &f.device, &error),
                     0);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(
        uva_stream_transfer(f.stream, _i == 0 ? &into_own : &there), 0);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    ck_assert_int_eq(fixture_run(&f), _i == 0 ? 0 : ENOTSUP);
    fixture_close(&f);
    if (_i == 0)
        own_ends(3);
}
END_TEST

START_TEST(an_allocator_without_memory_ends_the_stream)
{
    own_open(_i + 1);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &into_own), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    ck_assert_int_eq(fixture_run(&f), ENOMEM);
    ck_assert_int_le(f.got.batches, _i);
    text_contains(f.got.outcome.error.message, "allocator");
    fixture_close(&f);
    own_ends(own.given);
}
END_TEST

static struct ArrowDeviceArray kept;

static void keep_first(struct recording_consumer *c, struct uva_batch *batch)
{
    (void)c;
    if (kept.array.release == NULL)
        uva_array_move(&batch->data, &kept);
}

/* The batch outlives its stream and runtime. */
START_TEST(an_array_keeps_the_allocator_of_its_memory)
{
    own_open(0);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &into_own), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    f.got.on_batch = keep_first;
    fixture_completes(&f, 3);
    loop_close_runtime(&f.loop, 0);
    while (atomic_load(&own.taken) < 2)
        (void)sched_yield();
    ck_assert_int_eq(own.freed, 0);
    uva_array_release(&kept);
    fixture_close(&f);
    own_ends(3);
}
END_TEST

START_TEST(an_allocator_that_makes_no_sense_is_refused_and_freed)
{
    struct uva_device_allocator allocator = own_allocator;
    struct uva_transfer options = into_own;

    own_open(0);
    options.allocator = &allocator;
    if (_i == 0)
        allocator.alloc = NULL;
    else if (_i == 1)
        allocator.free = NULL;
    else
        options.device_type =
            _i == 2 ? ARROW_DEVICE_CPU : ARROW_DEVICE_CUDA_HOST;
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &options), EINVAL);
    ck_assert_int_eq(own.freed, 1);
    ck_assert_int_eq(own.given, 0);
}
END_TEST

/* ---- on the caller's stream ---------------------------------------------- */

static struct {
    atomic_long used; /* the stream: counts its uses */
    atomic_bool held; /* the driver stays inside its call */
    atomic_bool inside;
    atomic_long entered; /* calls of the driver */
    atomic_long allowed; /* of these, may go on */
} queue;

static void queue_hold(void *ctx)
{
    (void)ctx;
    if (!atomic_load(&queue.held))
        return;
    atomic_store(&queue.inside, true);
    while (atomic_load(&queue.held))
        (void)sched_yield();
    atomic_store(&queue.inside, false);
}

static const struct uva_transfer on_queue = {
    .device_type = ARROW_DEVICE_EXT_DEV, .device_stream = &queue.used};

static void queue_open(int64_t batches)
{
    memset(&queue, 0, sizeof(queue));
    fixture_open_device(&f, SOFT_COPIES, batches);
    f.device.chaining = queue_hold;
}

START_TEST(copies_are_queued_on_the_callers_stream)
{
    const struct uva_transfer back = {.device_stream = &queue.used};

    queue_open(5);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &on_queue), 0);
    ck_assert_int_eq(uva_stream_transfer(f.stream, _i == 0 ? NULL : &back), 0);
    fixture_completes(&f, 5);
    ck_assert(f.got.in_order);
    ck_assert_int_eq(f.device.copies, 10);
    ck_assert_int_eq(queue.used, _i == 0 ? 5 : 10);
}
END_TEST

START_TEST(a_table_without_streams_is_told_so)
{
    struct uva_device_ops ops;
    struct uva_error error;

    queue_open(2);
    ops = *soft_device_ops(&f.device);
    ops.copy_on = NULL;
    ck_assert_int_eq(uva_device_register(f.loop.runtime, ARROW_DEVICE_EXT_DEV,
                                         &ops, &f.device, &error),
                     0);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &on_queue), 0);
    ck_assert_int_eq(fixture_run(&f), ENOTSUP);
    text_contains(f.got.outcome.error.message, "the caller's stream");
    ck_assert_int_eq(f.device.copies, 0);
    fixture_close(&f);
}
END_TEST

/* The end comes when the driver has returned, though the copy that it has begun
 * goes on; and the stream is left alone from then on. */
START_TEST(a_stream_ends_when_the_driver_leaves_the_callers_stream)
{
    long used;

    queue_open(9);
    atomic_store(&f.device.held, true);
    atomic_store(&queue.held, true);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &on_queue), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    fixture_start(&f);
    while (!atomic_load(&queue.inside))
        loop_settle(&f.loop);
    uva_stream_cancel(f.stream, ECANCELED, "enough");
    for (int i = 0; i < 20; i++) /* it hangs if the loop waits */
        loop_settle(&f.loop);
    ck_assert_int_eq(atomic_load(&f.got.done), 0);
    atomic_store(&queue.held, false);
    ck_assert_int_eq(fixture_await(&f), ECANCELED);
    used = atomic_load(&queue.used);
    ck_assert_int_eq(f.got.batches, 0);
    ck_assert(soft_memory_live() > 0);
    atomic_store(&f.device.held, false);
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&queue.used), used);
}
END_TEST

/* No step that was begun runs any more. */
static void device_hold(void *ctx)
{
    (void)ctx;
    atomic_store(&f.device.held, true);
}

/* Copies to the host, of which the first is in flight. */
START_TEST(a_stream_ends_while_its_copies_go_on)
{
    const struct uva_transfer back = {.device_stream = &queue.used};
    long used;

    queue_open(3);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &there), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &back), 0);
    f.device.chaining = device_hold;
    fixture_start(&f);
    while (atomic_load(&queue.used) == 0)
        loop_settle(&f.loop);
    uva_stream_cancel(f.stream, ECANCELED, "enough");
    ck_assert_int_eq(fixture_await(&f), ECANCELED);
    used = atomic_load(&queue.used);
    atomic_store(&f.device.held, false);
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&queue.used), used);
}
END_TEST

/* Each call of the driver goes on once it is allowed, in order. */
static void queue_step(void *ctx)
{
    const long call = atomic_fetch_add(&queue.entered, 1) + 1;

    (void)ctx;
    while (atomic_load(&queue.allowed) < call)
        (void)sched_yield();
}

static struct uva_stream *again(void *ctx, const struct uva_outcome *failed,
                                int32_t attempt, int64_t passed, int64_t rows)
{
    struct uva_stream *made = fixture_arrays(&f, NULL, 0);

    (void)passed;
    (void)rows;
    ck_assert_int_eq(failed->error.code, EIO);
    ck_assert_int_eq(attempt, 1);
    ck_assert_int_eq(atomic_load(&queue.allowed), LONG_MAX);
    ++*(int *)ctx;
    ck_assert_int_eq(uva_stream_transfer(made, &there), 0);
    return made;
}

static enum uva_waiting waiting_of(const char *name)
{
    struct uva_stage_stats stages[16];
    size_t count = 16;

    ck_assert_int_eq(uva_stream_get_stats(f.stream, stages, &count), 0);
    for (size_t i = 0; i < count; i++)
        if (strcmp(stages[i].name, name) == 0)
            return stages[i].waiting;
    ck_abort_msg("no stage %s", name);
}

/* The first copy fails while the driver is inside the second one, so that the
 * failure comes to the retry before the release of its handler. */
START_TEST(a_retry_waits_for_the_driver_to_leave_the_callers_stream)
{
    const struct uva_throttle often = {.batches_per_s = 1000000000};
    int asked = 0;
    const struct uva_retry retry = {
        .again = again, .ctx = &asked, .delay_ms = 1, .delay_max_ms = 1};

    queue_open(9);
    f.device.chaining = queue_step;
    f.device.copy_fails_at = 1;
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &on_queue), 0);
    ck_assert_int_eq(uva_stream_throttle(f.stream, &often), 0);
    ck_assert_int_eq(uva_stream_retry(f.stream, &retry), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    fixture_start(&f);
    while (atomic_load(&queue.entered) == 0)
        loop_settle(&f.loop);
    for (int i = 0; i < 20; i++) /* time for the other copies to be begun */
        loop_settle(&f.loop);
    atomic_store(&queue.allowed, 1);
    while (atomic_load(&queue.entered) == 1)
        (void)sched_yield();
    for (int i = 0; i < 20; i++)
        loop_settle(&f.loop);
    ck_assert_int_ne(waiting_of("retry"), UVA_WAITING_TIME);
    ck_assert_int_eq(asked, 0);
    atomic_store(&queue.allowed, LONG_MAX);
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert_int_eq(asked, 1);
    ck_assert_int_eq(f.got.batches, 0);
    fixture_close(&f);
}
END_TEST

/* Returns metadata too long to be stored beside a task. */
static const char *long_metadata(void)
{
    static char block[13 + 2000] = NATIVE("\1") NATIVE("\1") "k";
    const int32_t size = 2000;

    memcpy(block + 9, &size, sizeof(size));
    memset(block + 13, 'v', 2000);
    return block;
}

START_TEST(a_stage_takes_its_memory_from_the_runtime)
{
    struct uva_error error;
    bool failed = true, has_stream;
    int code;

    for (long n = 1; failed; n++) {
        own_open(0);
        f.fake.metadata = long_metadata();
        loop_fail(&f.loop, n);
        f.stream = fixture_tasks(&f);
        has_stream = f.stream != NULL;
        if (has_stream) {
            (void)uva_stream_transfer(f.stream, &into_own);
            (void)uva_stream_transfer(f.stream, NULL);
            code = fixture_try(&f, &error);
            ck_assert(code == 0 || code == ENOMEM);
            if (code == 0)
                code = fixture_await(&f);
            ck_assert(code == 0 || code == ENOMEM);
        }
        failed = faulty_allocator_has_failed(&f.loop.memory);
        loop_fail(&f.loop, 0);
        fixture_close(&f);
        if (has_stream)
            own_ends(own.given);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    suite_add(tc, batches_go_to_a_device_and_come_back_in_order,
              batches_may_stay_on_the_device,
              batches_that_are_there_pass_through,
              pinned_memory_without_an_event_is_the_hosts_at_once,
              a_batch_that_does_not_fit_its_schema_ends_the_stream,
              where_there_is_no_way_the_stream_ends,
              a_window_counts_what_copies_of_slices_take,
              a_stage_takes_its_memory_from_the_runtime,
              memory_on_the_device_is_the_callers_and_is_given_back,
              an_array_keeps_the_allocator_of_its_memory, NULL);
    suite_add(tc, a_table_without_streams_is_told_so,
              a_stream_ends_when_the_driver_leaves_the_callers_stream,
              a_stream_ends_while_its_copies_go_on,
              a_retry_waits_for_the_driver_to_leave_the_callers_stream, NULL);
    tcase_add_loop_test(tc, copies_are_queued_on_the_callers_stream, 0, 2);
    tcase_add_loop_test(tc, an_allocator_replaces_that_of_the_table, 0, 2);
    tcase_add_loop_test(tc, an_allocator_without_memory_ends_the_stream, 0, 3);
    tcase_add_loop_test(
        tc, an_allocator_that_makes_no_sense_is_refused_and_freed, 0, 4);
    tcase_add_loop_test(
        tc, memory_that_the_host_can_read_is_waited_for_and_not_copied, 0, 4);
    tcase_add_loop_test(tc, what_makes_no_sense_is_refused, 0, 5);
    tcase_add_loop_test(
        tc, a_call_that_fails_ends_the_stream_behind_what_was_before_it, 0, 20);
    tcase_add_loop_test(tc, no_more_than_the_window_is_under_way, 0, 2);
    tcase_add_loop_test(
        tc, what_a_copy_uses_stays_until_it_has_ended_whoever_has_gone, 0, 3);
}

int main(void)
{
    TCase *tc = tcase_create("copies");

    tcase_set_timeout(tc, 60);
    add_tests(tc);
    return suite_main("transfer", NULL, tear_down, tc, NULL);
}
