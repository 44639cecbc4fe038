/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of time: which one passes, the cause of the wait, which time does not
 * count, and that the source is interrupted. A limit that has to pass is of 1
 * ms, and the awaited event comes only after that; a limit that must not pass
 * is of an hour. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "support/asking.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/plain_tree.h"
#include "support/recording_handler.h"

static struct asking asking;

enum { AT_ONCE = 1, HOUR = 3600000 };

static struct fixture f, other; /* `other`: on the runtime of `f` */
static struct uva_pusher *pusher;
static atomic_bool passed; /* lets functions of stages go on */
static atomic_bool inside; /* a call is running */

/* ---- the fixture -------------------------------------------------------- */

static void set_up(void)
{
    atomic_store(&passed, false);
    atomic_store(&inside, false);
    pusher = NULL;
}

static void tear_down(void)
{
    if (pusher != NULL)
        uva_pusher_close(pusher, NULL, NULL);
    fixture_close(&other);
    fixture_close(&f);
    ck_assert_int_eq(plain_live(), 0);
}

static void set_schema(struct uva_pusher *to)
{
    struct ArrowSchema made;

    batch_schema(&made);
    ck_assert_int_eq(uva_pusher_set_schema(to, &made), 0);
}

/* Makes the stream of a pusher that has given its schema, and `batches`. */
static void open_pushed(bool schema, int batches)
{
    fixture_open(&f, 0);
    f.got.transcribes = true;
    f.stream = uva_stream_from_pusher(f.loop.runtime, NULL, &pusher);
    if (schema)
        set_schema(pusher);
    for (int i = 0; i < batches; i++) {
        struct ArrowDeviceArray array;

        batch_make(&array, i);
        ck_assert_int_eq(uva_pusher_push(pusher, &array, NULL, 0), 0);
    }
}

static void push(int64_t length)
{
    struct ArrowDeviceArray array;

    batch_make(&array, length);
    ck_assert_int_eq(uva_pusher_push(pusher, &array, NULL, 0), 0);
}

static void limit(const struct uva_timeout *options)
{
    ck_assert_int_eq(uva_stream_timeout(f.stream, options), 0);
}

static void fails_in_time(const char *what, const char *waits)
{
    ck_assert_int_eq(fixture_await(&f), ETIMEDOUT);
    recording_ended(&f.got, UVA_END_FAILED, ETIMEDOUT, what);
    text_contains(f.got.outcome.error.message, waits);
}

static void times_out(const char *what, const char *waits)
{
    fails_in_time(what, waits);
    ck_assert(!loop_has_timer(&f.loop));
}

/* A function of a stage that waits for the test. */
static int wait_here(void)
{
    atomic_store(&inside, true);
    while (!atomic_load(&passed))
        (void)sched_yield();
    return 0;
}

static int map_waits(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return wait_here();
}

static int transform_waits(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                           void *emitter, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    (void)wait_here();
    (void)emit(emitter, in);
    return 0;
}

/* ---- which limit passes ------------------------------------------------- */

static const struct {
    struct uva_timeout options;
    bool schema;
    int batches;
    const char *what, *transcript;
} LIMITS[] = {
    {{.open_ms = AT_ONCE},
     false,
     0,
     "no schema came within 1 ms (open_ms)",
     "failed"},
    {{.first_ms = AT_ONCE},
     true,
     0,
     "no first batch came within 1 ms",
     "schema failed"},
    {{.first_ms = AT_ONCE},
     false,
     0,
     "no first batch came within 1 ms (first_ms)",
     "failed"},
    {{.first_ms = AT_ONCE, .between_ms = HOUR, .total_ms = HOUR},
     false,
     0,
     "(first_ms)",
     "failed"},
    {{.between_ms = AT_ONCE}, false, 0, "(between_ms)", "failed"},
    {{.open_ms = AT_ONCE, .first_ms = AT_ONCE},
     false,
     0,
     "no schema came within 1 ms (open_ms)",
     "failed"},
    {{.first_ms = AT_ONCE, .between_ms = HOUR},
     true,
     0,
     "(first_ms)",
     "schema failed"},
    {{.between_ms = AT_ONCE}, true, 0, "(between_ms)", "schema failed"},
    {{.first_ms = HOUR, .between_ms = AT_ONCE},
     true,
     3,
     "no batch came within 1 ms (between_ms)",
     "schema 0 1 2 failed"},
    {{.open_ms = HOUR, .between_ms = HOUR, .total_ms = AT_ONCE},
     true,
     2,
     "the stream has not ended within 1 ms (total_ms)",
     "schema 0 1 failed"},
    {{.total_ms = AT_ONCE}, false, 0, "(total_ms)", "failed"},
    {{.between_ms = AT_ONCE, .total_ms = HOUR},
     true,
     1,
     "(between_ms)",
     "schema 0 failed"},
};

START_TEST(the_text_names_the_limit)
{
    open_pushed(LIMITS[_i].schema, LIMITS[_i].batches);
    limit(&LIMITS[_i].options);
    fixture_start(&f);
    times_out(LIMITS[_i].what, "pusher waits for its source");
    ck_assert_str_eq(f.got.transcript, LIMITS[_i].transcript);
}
END_TEST

START_TEST(a_second_call_shortens_limits_only)
{
    open_pushed(true, 0);
    limit(&(struct uva_timeout){.first_ms = HOUR, .between_ms = AT_ONCE});
    limit(&(struct uva_timeout){.first_ms = AT_ONCE, .between_ms = HOUR});
    limit(&(struct uva_timeout){.first_ms = HOUR});
    fixture_start(&f);
    times_out("(first_ms)", "pusher");
}
END_TEST

static void completes(const char *transcript)
{
    uva_pusher_close(pusher, NULL, NULL);
    pusher = NULL;
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert_str_eq(f.got.transcript, transcript);
    ck_assert(!loop_has_timer(&f.loop));
}

START_TEST(limits_that_do_not_pass_change_nothing)
{
    static const struct uva_timeout options[] = {{.open_ms = HOUR,
                                                  .first_ms = HOUR,
                                                  .between_ms = HOUR,
                                                  .total_ms = HOUR},
                                                 {.open_ms = INT64_MAX,
                                                  .first_ms = INT64_MAX,
                                                  .between_ms = INT64_MAX,
                                                  .total_ms = INT64_MAX},
                                                 {0}};

    open_pushed(true, 2);
    limit(&options[_i]);
    fixture_start(&f);
    loop_settle(&f.loop);
    push(7);
    completes("schema 0 1 7 complete");
}
END_TEST

/* ---- where the time of the first batch begins --------------------------- */

/* Also if the schema has a limit of its own. */
START_TEST(a_late_schema_counts_beside_open_ms)
{
    open_pushed(false, 0);
    limit(&(struct uva_timeout){
        .open_ms = HOUR, .first_ms = 10, .between_ms = HOUR});
    fixture_start(&f);
    times_out("no first batch came within 10 ms (first_ms)",
              "pusher waits for its source");
    ck_assert_str_eq(f.got.transcript, "failed");
}
END_TEST

START_TEST(the_limit_that_is_shorter_passes_first)
{
    static const char *const names[] = {"(open_ms)", "(first_ms)"};

    open_pushed(false, 0);
    limit(&(struct uva_timeout){.open_ms = _i == 0 ? 5 : 10,
                                .first_ms = _i == 0 ? 10 : 5});
    fixture_start(&f);
    times_out(names[_i], "pusher waits for its source");
}
END_TEST

/* The schema comes in time, and the time for it is over then. */
START_TEST(a_schema_in_time_ends_the_wait_for_it)
{
    open_pushed(false, 0);
    limit(&(struct uva_timeout){.open_ms = 500, .first_ms = HOUR});
    fixture_start(&f);
    loop_settle(&f.loop);
    ck_assert(loop_has_timer(&f.loop));
    set_schema(pusher);
    loop_settle(&f.loop);
    loop_pass(&f.loop, 501);
    loop_settle(&f.loop);
    push(7);
    completes("schema 7 complete");
}
END_TEST

static const struct recording_consumer *ended_first;

static void note_end(struct recording_consumer *c,
                     const struct uva_outcome *outcome)
{
    (void)outcome;
    if (ended_first == NULL)
        ended_first = c;
}

/* The schema of the first stream comes when most of its time is over. The
 * second one has begun just before, with as much time: it ends later. */
START_TEST(the_wait_for_the_schema_counts_for_the_first_batch)
{
    const struct uva_timeout options = {.open_ms = _i == 2 ? HOUR : 0,
                                        .first_ms = _i == 1 ? 0 : 400,
                                        .between_ms = _i == 1 ? 400 : HOUR};
    struct uva_pusher *later;

    ended_first = NULL;
    open_pushed(false, 0);
    f.got.on_done = note_end;
    limit(&options);
    fixture_start(&f);
    loop_settle(&f.loop);
    loop_pass(&f.loop, 150);
    fixture_open_beside(&other, 0, &f);
    other.got.on_done = note_end;
    other.stream = uva_stream_from_pusher(f.loop.runtime, NULL, &later);
    set_schema(later);
    ck_assert_int_eq(uva_stream_timeout(other.stream, &options), 0);
    recording_start(&other.got, other.stream);
    loop_settle(&f.loop);
    loop_pass(&f.loop, 50);
    set_schema(pusher);
    recording_await_done(&other.got, &f.loop);
    recording_ended(&other.got, UVA_END_FAILED, ETIMEDOUT, "timeout");
    times_out(_i == 1 ? "(between_ms)" : "(first_ms)", "pusher");
    ck_assert_ptr_eq(ended_first, &f.got);
    uva_pusher_close(later, NULL, NULL);
}
END_TEST

/* There is no request after the schema for longer than the limit. */
START_TEST(time_before_the_first_request_does_not_count)
{
    struct recording_handler handler;

    open_pushed(true, 0);
    limit(&(struct uva_timeout){.first_ms = 10});
    recording_handler_init(&handler, 0, 0);
    ck_assert_int_eq(uva_stream_drive(f.stream, &handler.handler, NULL, NULL),
                     0);
    loop_settle(&f.loop);
    ck_assert(!loop_has_timer(&f.loop));
    loop_pass(&f.loop, 20);
    loop_settle(&f.loop);
    ck_assert_str_eq(handler.transcript, "schema");
    recording_handler_request(&handler, 1);
    while (!recording_handler_is_released(&handler))
        loop_turn(&f.loop);
    ck_assert_int_eq(handler.error_code, ETIMEDOUT);
    uva_stream_release(f.stream);
    f.stream = NULL;
    recording_handler_fini(&handler);
}
END_TEST

/* ---- the cause of the wait ---------------------------------------------- */

/* The consumer takes no batch, so that it is the slow one. */
START_TEST(a_consumer_that_is_slow_is_named)
{
    open_pushed(true, 2);
    f.got.appetite = 1;
    limit(&(struct uva_timeout){.between_ms = AT_ONCE, .total_ms = 2});
    fixture_start(&f);
    times_out("(total_ms)", "pusher waits for its consumer");
}
END_TEST

START_TEST(a_worker_that_extracts_is_named)
{
    open_pushed(true, 3);
    (void)uva_stream_map(f.stream, &(struct uva_map){.batch = map_waits});
    (void)uva_stream_parallel(f.stream, NULL);
    limit(&(struct uva_timeout){.first_ms = AT_ONCE});
    fixture_start(&f);
    times_out("(first_ms)", "parallel waits for a worker thread");
    atomic_store(&passed, true);
}
END_TEST

START_TEST(a_transform_that_runs_is_named)
{
    open_pushed(true, 3);
    (void)uva_stream_transform(
        f.stream, &(struct uva_transform){.batch = transform_waits});
    limit(&(struct uva_timeout){.first_ms = AT_ONCE});
    fixture_start(&f);
    times_out("(first_ms)", "transform waits for a worker thread");
    atomic_store(&passed, true);
}
END_TEST

/* Stages that hold no batch point to the source above them. */
static void add_transform(struct uva_stream *stream)
{
    (void)uva_stream_transform(
        stream, &(struct uva_transform){.batch = transform_waits});
}

static void add_parallel(struct uva_stream *stream)
{
    (void)uva_stream_parallel(stream, NULL);
}

static void add_ready(struct uva_stream *stream)
{
    (void)uva_stream_ready(stream, NULL);
}

static void add_merge(struct uva_stream *stream)
{
    struct uva_pusher *ended;
    struct uva_stream *empty =
        uva_stream_from_pusher(f.loop.runtime, NULL, &ended);
    struct ArrowSchema schema;

    batch_schema(&schema);
    ck_assert_int_eq(uva_pusher_set_schema(ended, &schema), 0);
    uva_pusher_close(ended, NULL, NULL);
    ck_assert_int_eq(uva_stream_merge(empty, &stream, 1, NULL), 0);
    f.stream = empty;
}

static void (*const STAGES[])(struct uva_stream *) = {
    add_transform, add_parallel, add_ready, add_merge};

START_TEST(a_source_above_stages_is_named)
{
    open_pushed(true, 0);
    STAGES[_i](f.stream);
    limit(&(struct uva_timeout){.first_ms = AT_ONCE});
    fixture_start(&f);
    times_out("(first_ms)", "pusher waits for its source");
}
END_TEST

START_TEST(a_device_is_named)
{
    struct ArrowDeviceArray array;

    fixture_open_device(&f, SOFT_CALLS, 0);
    soft_device_batch(&f.device, &f.fake, 0, &array);
    fixture_ready(&f, fixture_arrays(&f, &array, 1), NULL);
    limit(&(struct uva_timeout){.between_ms = AT_ONCE});
    fixture_start(&f);
    times_out("(between_ms)", "ready waits for a device");
    soft_event_end(&f.device, 0, 0);
}
END_TEST

/* The first stream holds the only thread, or the only place. */
static void begin_behind(void)
{
    other.fake.gate_at = 0;
    other.stream = fixture_blocking(&other);
    recording_start(&other.got, other.stream);
    while (!fake_source_is_waiting(&other.fake))
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    f.stream = fixture_blocking(&f);
}

static void open_behind(const struct uva_runtime_options *options)
{
    fixture_open_with(&f, 2, options);
    fixture_open_beside(&other, 2, &f);
    begin_behind();
}

/* The same, behind one that has the only permit. */
static void open_behind_permit(void)
{
    struct uva_permits *permits;

    fixture_open(&f, 2);
    ck_assert_int_eq(uva_permits_new(f.loop.runtime, 1, 0, &permits, NULL), 0);
    fixture_open_beside(&other, 2, &f);
    f.options.permits = other.options.permits = permits;
    begin_behind();
    uva_permits_release(permits);
}

static void end_the_first(void)
{
    fake_source_open_gate(&other.fake);
    recording_await_done(&other.got, &f.loop);
    recording_ended(&other.got, UVA_END_COMPLETE, 0, NULL);
}

START_TEST(a_thread_that_others_have_is_named)
{
    const struct uva_workers_options one = {.blocking_threads = 1};
    struct uva_runtime_options options = {0};

    ck_assert_int_eq(uva_workers_new(&one, &options.workers, NULL), 0);
    open_behind(&options);
    uva_workers_release(options.workers);
    limit(&(struct uva_timeout){.open_ms = AT_ONCE});
    fixture_start(&f);
    /* a timer that looks at the full lane may run */
    fails_in_time("(open_ms)", "arrow_stream waits for a worker thread");
    end_the_first();
}
END_TEST

START_TEST(a_permit_to_be_opened_is_named)
{
    open_behind_permit();
    limit(&(struct uva_timeout){.open_ms = AT_ONCE});
    fixture_start(&f);
    times_out("(open_ms)", "arrow_stream waits for a permit");
    end_the_first();
}
END_TEST

static bool limit_has_passed(void *ctx)
{
    (void)ctx;
    return atomic_load(&f.got.done) > 0 ||
           (atomic_load(&inside) && !loop_has_timer(&f.loop));
}

/* The transform holds a batch, and the budget has room for no other. Returns
 * whether the limit passed only then. */
static bool fails_for_memory(int64_t limit_ms)
{
    set_up();
    fixture_open_with(&f, 9, &(struct uva_runtime_options){.memory_bytes = 1});
    f.options.window.batches = 1;
    f.stream = fixture_blocking(&f);
    limit(&(struct uva_timeout){.between_ms = limit_ms});
    (void)uva_stream_transform(f.stream,
                               &(struct uva_transform){.batch = transform_waits,
                                                       .window.batches = 64});
    fixture_start(&f);
    loop_until(&f.loop, limit_has_passed, NULL);
    atomic_store(&passed, true);
    times_out("(between_ms)", "arrow_stream waits for ");
    return strstr(f.got.outcome.error.message, "waits for memory") != NULL;
}

/* A short limit may pass before the batch comes. */
START_TEST(memory_is_named)
{
    int64_t limit_ms = AT_ONCE;

    while (!fails_for_memory(limit_ms)) {
        ck_assert_int_lt(limit_ms, 10000);
        limit_ms *= 4;
        fixture_close(&f);
    }
}
END_TEST

/* ---- the source --------------------------------------------------------- */

/* Takes the first batch of a source that waits at its gate before the second
 * one, and requests that. */
static void on_next(void *ctx, struct uva_batch *batch,
                    const struct uva_outcome *outcome)
{
    if (batch == NULL)
        recording_on_done(&f.got, outcome);
    else
        *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

static void take_until_gate(void)
{
    bool taken = false;

    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &taken), 0);
    loop_until(&f.loop, is_set, &taken);
    fixture_await_gate(&f);
    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &taken), 0);
}

static void open_gated(void)
{
    fixture_open(&f, 5);
    f.fake.gate_at = 1;
    f.options.busy_ms = HOUR; /* never passes first */
    f.stream = fixture_blocking(&f);
}

START_TEST(the_source_is_interrupted)
{
    open_gated();
    limit(&(struct uva_timeout){.first_ms = HOUR, .between_ms = AT_ONCE});
    take_until_gate();
    times_out("(between_ms)", "arrow_stream waits for its source");
    await_count(&f.fake.interrupts, 1);
    await_count(&f.fake.released, 1);
}
END_TEST

START_TEST(each_of_several_limits_counts_at_its_place)
{
    open_gated();
    limit(&(struct uva_timeout){.first_ms = HOUR, .between_ms = HOUR});
    (void)uva_stream_parallel(f.stream, NULL);
    limit(&(struct uva_timeout){.first_ms = HOUR, .between_ms = AT_ONCE});
    take_until_gate();
    /* The worker that has given the first batch may not be done. */
    times_out("(between_ms)", " waits for ");
}
END_TEST

START_TEST(a_cancel_ends_the_wait)
{
    open_pushed(true, 0);
    limit(&(struct uva_timeout){.first_ms = HOUR, .total_ms = HOUR});
    fixture_start(&f);
    loop_settle(&f.loop);
    ck_assert(loop_has_timer(&f.loop));
    uva_stream_cancel(f.stream, 0, "no more");
    ck_assert_int_eq(fixture_await(&f), ECANCELED);
    ck_assert(!loop_has_timer(&f.loop));
}
END_TEST

/* ---- the time of a source ----------------------------------------------- */

/* It reads ahead, so no second request is needed. */
START_TEST(a_source_that_takes_long_is_interrupted)
{
    fixture_open(&f, 5);
    f.fake.gate_at = 1;
    f.options.busy_ms = AT_ONCE;
    f.got.appetite = 1;
    f.stream = _i == 0 ? fixture_blocking(&f) : fixture_hook(&f);
    fixture_start(&f);
    times_out("the calls of its source were not done within 1 ms (busy_ms)",
              "arrow_stream waits for its source");
    await_count(&f.fake.released, 1);
}
END_TEST

/* It reads no further while the consumer takes no batch. */
START_TEST(the_time_of_a_consumer_is_none_of_its_source)
{
    fixture_open(&f, 5);
    f.options.busy_ms = 200;
    f.options.window.batches = 1;
    f.got.appetite = 1;
    f.stream = fixture_blocking(&f);
    fixture_start(&f);
    loop_settle(&f.loop);
    loop_pass(&f.loop, 250);
    loop_turn(&f.loop);
    ck_assert_int_eq(f.got.done, 0);
    recording_feed(&f.got, 5);
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert(!loop_has_timer(&f.loop));
}
END_TEST

START_TEST(a_source_has_no_negative_limit)
{
    fixture_open(&f, 5);
    f.options.busy_ms = -1;
    fixture_refused(&f, fixture_blocking(&f), EINVAL,
                    "uva_arrow_source: busy_ms must not be negative");
}
END_TEST

/* ---- time that does not count ------------------------------------------- */

/* The timer runs only while a wait can last too long. */
START_TEST(time_without_a_request_does_not_count)
{
    bool taken = false;

    open_pushed(true, 1);
    limit(&(struct uva_timeout){.first_ms = HOUR, .between_ms = HOUR});
    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &taken), 0);
    loop_until(&f.loop, is_set, &taken);
    loop_settle(&f.loop);
    ck_assert(!loop_has_timer(&f.loop));
    taken = false;
    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &taken), 0);
    loop_settle(&f.loop);
    ck_assert(loop_has_timer(&f.loop));
    push(1);
    loop_until(&f.loop, is_set, &taken);
}
END_TEST

/* The reader of the stream takes no batch, so its window is full of bytes; that
 * it requested more does not count. */
START_TEST(time_in_which_a_reader_has_no_room_does_not_count)
{
    const struct uva_window window = {.bytes = 1};
    struct ArrowDeviceArrayStream out;

    open_pushed(true, 0);
    push(5);
    limit(&(struct uva_timeout){.between_ms = HOUR});
    ck_assert_int_eq(uva_stream_to_device_stream(f.stream, &window, &out, NULL),
                     0);
    loop_settle(&f.loop);
    ck_assert(!loop_has_timer(&f.loop));
    out.release(&out);
}
END_TEST

/* The timer of the first wait is due when the second one has just begun. */
START_TEST(a_wait_that_is_over_does_not_count)
{
    open_pushed(true, 0);
    limit(&(struct uva_timeout){.first_ms = 10, .between_ms = HOUR});
    fixture_start(&f);
    loop_until_timer(&f.loop);
    push(1);
    loop_settle(&f.loop);
    loop_pass(&f.loop, 20);
    loop_settle(&f.loop);
    ck_assert_int_eq(f.got.done, 0);
    push(2);
    completes("schema 1 2 complete");
}
END_TEST

/* The timer fires while there is no wait. */
START_TEST(a_timer_that_fires_without_a_wait_is_not_started_again)
{
    bool taken = false;

    open_pushed(true, 0);
    limit(&(struct uva_timeout){.first_ms = 20});
    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &taken), 0);
    loop_until_timer(&f.loop);
    push(1);
    loop_until(&f.loop, is_set, &taken);
    while (loop_has_timer(&f.loop))
        loop_turn(&f.loop);
    loop_settle(&f.loop);
    ck_assert(!loop_has_timer(&f.loop));
    ck_assert_int_eq(uva_stream_status(f.stream, NULL), 0);
}
END_TEST

static int transform_passes(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                            void *emitter, struct uva_error *error)
{
    int code;

    (void)ctx;
    (void)error;
    code = emit(emitter, in);
    return code == EAGAIN ? 0 : code;
}

/* While the loop thread is busy, the limit passes, and the batch comes. It is
 * six stages away when the timer fires. */
START_TEST(a_batch_that_has_come_goes_before_a_limit_that_has_passed)
{
    open_pushed(true, 0);
    for (int i = 0; i < 6; i++)
        (void)uva_stream_transform(
            f.stream, &(struct uva_transform){.batch = transform_passes,
                                              .on_loop = true});
    limit(&(struct uva_timeout){.first_ms = 100, .between_ms = HOUR});
    fixture_start(&f);
    loop_until_timer(&f.loop);
    push(1);
    loop_pass(&f.loop, 200);
    loop_settle(&f.loop);
    ck_assert_int_eq(f.got.taken, 1);
    completes("schema 1 complete");
}
END_TEST

/* ---- bad options -------------------------------------------------------- */

START_TEST(options_are_checked)
{
    static const struct uva_timeout bad[] = {{.open_ms = -1},
                                             {.first_ms = -1},
                                             {.between_ms = -1},
                                             {.total_ms = INT64_MIN},
                                             {.reserved = {&f}}};
    static const char *const texts[] = {
        "must not be negative", "must not be negative", "must not be negative",
        "must not be negative", "reserved"};

    fixture_open(&f, 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        f.stream = fixture_arrays(&f, NULL, 0);
        ck_assert_int_eq(uva_stream_timeout(f.stream, &bad[i]), EINVAL);
        ck_assert_int_eq(uva_stream_timeout(f.stream, NULL), EINVAL);
        fixture_refused(&f, f.stream, EINVAL, texts[i]);
    }
    f.stream = fixture_arrays(&f, NULL, 0);
    ck_assert_int_eq(uva_stream_timeout(f.stream, NULL), EINVAL);
    fixture_refused(&f, f.stream, EINVAL, "options are mandatory");
    ck_assert_int_eq(uva_stream_timeout(NULL, &bad[0]), EINVAL);
    f.stream = fixture_arrays(&f, NULL, 0);
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(uva_stream_timeout(f.stream, &bad[0]), EBUSY);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("timeouts");

    suite_add_loops(tests, 0, sizeof(LIMITS) / sizeof(LIMITS[0]),
                    the_text_names_the_limit, NULL);
    suite_add_loops(tests, 0, 3, limits_that_do_not_pass_change_nothing, NULL);
    suite_add_loops(tests, 0, sizeof(STAGES) / sizeof(STAGES[0]),
                    a_source_above_stages_is_named, NULL);
    suite_add_loops(tests, 0, 3,
                    the_wait_for_the_schema_counts_for_the_first_batch, NULL);
    suite_add_loops(tests, 0, 2, the_limit_that_is_shorter_passes_first, NULL);
    suite_add_loops(tests, 0, 2, a_source_that_takes_long_is_interrupted, NULL);
    suite_add(
        tests, the_time_of_a_consumer_is_none_of_its_source,
        a_source_has_no_negative_limit, a_late_schema_counts_beside_open_ms,
        a_schema_in_time_ends_the_wait_for_it,
        time_before_the_first_request_does_not_count,
        a_second_call_shortens_limits_only, a_consumer_that_is_slow_is_named,
        a_worker_that_extracts_is_named, a_transform_that_runs_is_named,
        a_device_is_named, a_thread_that_others_have_is_named,
        a_permit_to_be_opened_is_named, memory_is_named,
        the_source_is_interrupted, each_of_several_limits_counts_at_its_place,
        a_cancel_ends_the_wait, time_without_a_request_does_not_count,
        time_in_which_a_reader_has_no_room_does_not_count,
        a_wait_that_is_over_does_not_count,
        a_timer_that_fires_without_a_wait_is_not_started_again,
        a_batch_that_has_come_goes_before_a_limit_that_has_passed,
        options_are_checked, NULL);
    return suite_main("timeout", set_up, tear_down, tests, NULL);
}
