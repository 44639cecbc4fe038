/* SPDX-License-Identifier: Apache-2.0 */
/* The waits until the handlers of uva_stream_drive() have extracted the last of
 * their tasks, though the streams have ended: a close within its grace, a drain
 * within its deadline, a join, and on_extracted. Tasks that a close takes back
 * after that are reported. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/hosting_fixture.h"
#include "support/recording_handler.h"

enum { TASKS = 3 };

/* Bits of the loop index: how the tasks of a stream that has ended are held. */
enum { LAZY = 1, ON_WORKER = 2, FAILED = 4, RELEASED = 8, ENDS = 16 };

static struct fixture f;
static struct recording_handler handler;
static struct uva_drive options;

static struct {
    int closed, drained, extracted; /* calls of the callbacks */
    int done;                       /* calls of on_done before on_extracted */
    int64_t lost;                   /* as on_extracted gave it */
    int64_t revoked;                /* tasks_revoked in the closed callback */
    int traced;                     /* as on_extracted, in the trace */
    int64_t traced_lost;
    int warnings; /* in the log */
    char warning[256];
} seen;

static void on_log(void *ctx, const struct uva_log_record *record)
{
    (void)ctx;
    if (record->level != UVA_LOG_WARN)
        return;
    seen.warnings++;
    (void)snprintf(seen.warning, sizeof(seen.warning), "%s: %s", record->stream,
                   record->message);
}

static void on_trace(void *ctx, const struct uva_trace_event *event)
{
    (void)ctx;
    if (strcmp(event->name, "extracted") != 0)
        return;
    seen.traced++;
    seen.traced_lost = event->value;
}

static void on_extracted(void *ctx, int64_t revoked)
{
    ck_assert_ptr_eq(ctx, &f.got);
    ck_assert(uva_runtime_on_loop(f.loop.runtime));
    seen.extracted++;
    seen.done = f.got.done;
    seen.lost = revoked;
}

static struct uva_runtime_stats stats(void)
{
    struct uva_runtime_stats stats;

    uva_runtime_get_stats(f.loop.runtime, &stats);
    return stats;
}

static void set_up(void)
{
    const struct uva_runtime_options runtime = {
        .log = {.write = on_log, .level = UVA_LOG_WARN},
        .trace = {.event = on_trace}};

    memset(&seen, 0, sizeof(seen));
    fixture_open_with(&f, TASKS, &runtime);
    options = (struct uva_drive){.on_done = recording_on_done,
                                 .on_extracted = on_extracted,
                                 .ctx = &f.got};
    recording_handler_init(&handler, TASKS, 0);
    handler.hold = true;
}

static void tear_down(void)
{
    fixture_close(&f);
    ck_assert_int_eq(f.got.done, !f.got.silent);
    ck_assert_int_eq(seen.extracted, !f.got.silent);
    ck_assert_int_eq(seen.done, seen.extracted);
    recording_handler_fini(&handler);
}

/* Does not wait: the event may come from another thread. */
static void turn(void)
{
    (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    (void)sched_yield();
}

/* For a runtime that closes, to which no call can be posted. */
static void turns(void)
{
    for (int i = 0; i < 5; i++)
        turn();
}

static void drive(struct uva_stream *stream)
{
    struct uva_error error = {0};

    f.stream = stream;
    (void)uva_stream_set_name(stream, "birds");
    ck_assert_msg(
        uva_stream_drive(stream, &handler.handler, &options, &error) == 0, "%s",
        error.message);
}

/* Drives the handler until the stream has ended, and all its tasks are held.
 * Without a cancel, the release of a lazy source's handler would wait for the
 * extractions. */
static void drive_to_the_end(int how)
{
    options.on_worker = how & ON_WORKER;
    f.fake.fail_at = how & FAILED ? TASKS : f.fake.fail_at;
    drive(how & LAZY ? fixture_tasks(&f) : fixture_blocking(&f));
    while (!recording_handler_saw(&handler, how & FAILED ? "error" : "end"))
        turn();
    if (how & LAZY)
        uva_stream_cancel(f.stream, 0, "seen enough");
    fixture_await(&f);
    if (how & RELEASED)
        fixture_release(&f);
    loop_settle(&f.loop);
    ck_assert(handler.released);
    ck_assert_int_eq(handler.held_count, TASKS);
    ck_assert_int_eq(stats().streams_open, 0);
    ck_assert_int_eq(stats().tasks_held, TASKS);
}

static void extract(int64_t i)
{
    ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[i]), 0);
}

/* No turn of the loop comes meanwhile. */
static void extract_elsewhere(int64_t i)
{
    ck_assert_int_eq(
        recording_handler_extract_elsewhere(&handler, &handler.held[i]), 0);
}

static void extract_too_late(int64_t i)
{
    struct ArrowDeviceArray out;

    ck_assert_int_eq(handler.held[i].extract_data(&handler.held[i], &out),
                     ECANCELED);
    ck_assert(out.array.release == NULL);
}

static void ck_held(int64_t held, int extracted)
{
    ck_assert_int_eq(stats().tasks_held, held);
    ck_assert_int_eq(seen.extracted, extracted);
}

/* ---- the close ---------------------------------------------------------- */

static void on_closed(void *ctx)
{
    (void)ctx;
    seen.revoked = stats().tasks_revoked;
    ck_assert_int_eq(stats().tasks_held, 0);
    seen.closed++;
    f.loop.runtime = NULL;
}

static bool is_closed(void *ctx)
{
    (void)ctx;
    return seen.closed > 0;
}

static void close_begin(int64_t grace_ms)
{
    ck_assert_int_eq(
        uva_runtime_close(f.loop.runtime, grace_ms, on_closed, NULL), 0);
    turns();
}

static void ck_closed(int64_t revoked)
{
    loop_until(&f.loop, is_closed, NULL);
    ck_assert_int_eq(seen.extracted, 1);
    ck_assert_int_eq(seen.lost, revoked);
    ck_assert_int_eq(seen.traced, 1);
    ck_assert_int_eq(seen.traced_lost, revoked);
    ck_assert_int_eq(seen.revoked, revoked);
    ck_assert_int_eq(seen.warnings, revoked > 0);
}

START_TEST(a_close_waits_for_the_last_extraction)
{
    drive_to_the_end(_i);
    close_begin(UVA_FOREVER);
    for (int64_t i = 0; i < TASKS; i++) {
        ck_held(TASKS - i, 0);
        ck_assert_int_eq(seen.closed, 0);
        extract_elsewhere(i);
        ck_held(TASKS - i - 1, 0);
        turns();
    }
    ck_closed(0);
    ck_assert_int_eq(handler.rows, TASKS * f.fake.rows);
}
END_TEST

/* The second close makes the grace shorter, as its timer would. */
START_TEST(a_close_revokes_after_its_grace_and_reports_that)
{
    drive_to_the_end(_i);
    close_begin(UVA_FOREVER);
    extract(1);
    turns();
    ck_assert_int_eq(seen.closed, 0);
    ck_assert_int_eq(uva_runtime_close(f.loop.runtime, 0, NULL, NULL),
                     EALREADY);
    ck_closed(TASKS - 1);
    ck_assert_str_eq(seen.warning,
                     "birds: 2 batches are lost: the runtime has closed before "
                     "the handler extracted them");
    extract_too_late(0);
    extract_too_late(2);
}
END_TEST

START_TEST(a_close_without_grace_revokes_at_once)
{
    drive_to_the_end(_i);
    close_begin(0);
    ck_closed(TASKS);
    for (int64_t i = 0; i < TASKS; i++)
        extract_too_late(i);
}
END_TEST

START_TEST(the_grace_ends_by_itself)
{
    drive_to_the_end(0);
    close_begin(1);
    ck_closed(TASKS);
    for (int64_t i = 0; i < TASKS; i++)
        extract_too_late(i);
}
END_TEST

START_TEST(a_discard_ends_the_wait)
{
    drive_to_the_end(_i);
    close_begin(UVA_FOREVER);
    for (int64_t i = 0; i < TASKS; i++) {
        ck_assert_int_eq(handler.held[i].extract_data(&handler.held[i], NULL),
                         0);
        turns();
    }
    ck_closed(0);
}
END_TEST

START_TEST(a_drop_ends_the_wait)
{
    drive_to_the_end(_i);
    close_begin(UVA_FOREVER);
    ck_assert_int_eq(seen.closed, 0);
    fixture_drop(&f);
    loop_until(&f.loop, is_closed, NULL);
    ck_assert_int_eq(seen.revoked, TASKS);
    ck_assert_int_eq(seen.extracted, 0);
    ck_assert_int_eq(seen.warnings, 0);
    ck_assert_int_eq(f.got.done, 1);
    f.got.done = 0; /* before the drop */
}
END_TEST

START_TEST(what_was_extracted_at_once_is_not_waited_for)
{
    handler.hold = false;
    drive(fixture_tasks(&f));
    close_begin(UVA_FOREVER);
    ck_closed(0);
    ck_assert_int_eq(handler.tasks, TASKS);
}
END_TEST

/* ---- after stages ------------------------------------------------------- */

static int map_through(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static void add_map(struct uva_stream *stream)
{
    (void)uva_stream_map(stream, &(struct uva_map){.batch = map_through});
}

static void add_parallel(struct uva_stream *stream)
{
    add_map(stream);
    (void)uva_stream_parallel(stream, NULL);
}

static int pass(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                void *emitter, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    (void)emit(emitter, in);
    return 0;
}

static void add_transform(struct uva_stream *stream)
{
    (void)uva_stream_transform(stream, &(struct uva_transform){.batch = pass});
}

static void add_merge(struct uva_stream *stream)
{
    struct uva_stream *none = fixture_arrays(&f, NULL, 0);

    (void)uva_stream_merge(stream, &none, 1, NULL);
}

static void add_concat(struct uva_stream *stream)
{
    struct uva_stream *none = fixture_arrays(&f, NULL, 0);

    (void)uva_stream_concat(stream, &none, 1, NULL);
}

static void add_tee(struct uva_stream *stream)
{
    uva_stream_release(uva_stream_tee(stream, NULL));
}

static struct uva_stream *no_other(void *ctx, const struct uva_outcome *failed,
                                   int32_t attempt, int64_t passed,
                                   int64_t rows)
{
    (void)ctx;
    (void)failed;
    (void)attempt;
    (void)passed;
    (void)rows;
    return NULL;
}

static void add_retry(struct uva_stream *stream)
{
    (void)uva_stream_retry(stream, &(struct uva_retry){.again = no_other});
}

static void add_limit(struct uva_stream *stream)
{
    (void)uva__stream_limit(stream, TASKS);
}

static void add_ready(struct uva_stream *stream)
{
    (void)uva_stream_ready(stream, NULL);
}

static void add_throttle(struct uva_stream *stream)
{
    (void)uva_stream_throttle(stream,
                              &(struct uva_throttle){.batches_per_s = 1000000});
}

static void (*const stages[])(struct uva_stream *stream) = {
    add_map, add_parallel, add_transform, add_merge, add_concat,
    add_tee, add_retry,    add_limit,     add_ready, add_throttle,
};

enum { STAGES = sizeof(stages) / sizeof(stages[0]) };

/* Drives the handler through a stage until the stream has ended. */
static void drive_through(int stage, bool lazy)
{
    struct uva_stream *stream = lazy ? fixture_tasks(&f) : fixture_blocking(&f);

    stages[stage](stream);
    drive(stream);
    while (!recording_handler_saw(&handler, "end"))
        turn();
    uva_stream_cancel(f.stream, 0, "seen enough");
    fixture_await(&f);
    loop_settle(&f.loop);
    ck_held(TASKS, 0);
}

START_TEST(a_close_waits_for_tasks_that_stages_have_passed_on)
{
    drive_through(_i / 2, _i & 1);
    close_begin(UVA_FOREVER);
    for (int64_t i = 0; i < TASKS; i++) {
        ck_assert_int_eq(seen.closed, 0);
        extract_elsewhere(i);
        turns();
    }
    ck_closed(0);
    ck_assert_int_eq(handler.rows, TASKS * f.fake.rows);
}
END_TEST

START_TEST(a_task_that_stages_have_passed_on_is_lost_once)
{
    drive_through(_i / 2, _i & 1);
    extract(1);
    close_begin(0);
    ck_closed(TASKS - 1);
    extract_too_late(0);
    extract_too_late(2);
}
END_TEST

/* ---- the drain ---------------------------------------------------------- */

static void on_drained(void *ctx)
{
    (void)ctx;
    ck_assert_int_eq(seen.closed, 0);
    ck_assert_int_eq(stats().streams_open, 0);
    seen.drained++;
}

static void drain(int64_t deadline_ms)
{
    ck_assert_int_eq(
        uva_runtime_drain(f.loop.runtime, deadline_ms, on_drained, NULL), 0);
    turns();
}

static void extract_all(void)
{
    for (int64_t i = 0; i < TASKS; i++)
        extract_elsewhere(i);
    turns();
}

START_TEST(a_drain_waits_for_the_last_extraction)
{
    drive_to_the_end(_i);
    drain(UVA_FOREVER);
    ck_assert_int_eq(seen.drained, 0);
    extract_all();
    ck_assert_int_eq(seen.drained, 1);
    ck_assert_int_eq(seen.extracted, 1);
    ck_assert_int_eq(seen.lost, 0);
}
END_TEST

/* A second drain makes the deadline shorter, as its timer would. */
START_TEST(after_its_deadline_a_drain_leaves_tasks_as_they_are)
{
    drive_to_the_end(_i);
    drain(UVA_FOREVER);
    ck_assert_int_eq(seen.drained, 0);
    ck_assert_int_eq(uva_runtime_drain(f.loop.runtime, 0, NULL, NULL),
                     EALREADY);
    turns();
    ck_assert_int_eq(seen.drained, 1);
    ck_held(TASKS, 0);
    extract_all();
    ck_assert_int_eq(stats().tasks_revoked, 0);
    ck_assert_int_eq(seen.extracted, 1);
    ck_assert_int_eq(seen.drained, 1);
}
END_TEST

static bool is_drained(void *ctx)
{
    (void)ctx;
    return seen.drained > 0;
}

START_TEST(the_deadline_of_a_drain_passes_by_itself)
{
    drive_to_the_end(0);
    drain(_i);
    loop_until(&f.loop, is_drained, NULL);
    ck_held(TASKS, 0);
    extract_all();
}
END_TEST

START_TEST(a_close_without_grace_ends_a_drain_that_waits)
{
    drive_to_the_end(_i);
    drain(UVA_FOREVER);
    close_begin(0);
    ck_closed(TASKS);
    ck_assert_int_eq(seen.drained, 1);
    for (int64_t i = 0; i < TASKS; i++)
        extract_too_late(i);
}
END_TEST

START_TEST(a_close_with_grace_leaves_a_drain_its_time)
{
    drive_to_the_end(_i);
    drain(UVA_FOREVER);
    close_begin(UVA_FOREVER);
    ck_assert_int_eq(seen.drained, 0);
    extract_all();
    ck_closed(0);
    ck_assert_int_eq(seen.drained, 1);
}
END_TEST

/* ---- on_extracted ------------------------------------------------------- */

START_TEST(the_last_extraction_is_reported_once)
{
    drive_to_the_end(_i);
    extract_elsewhere(2);
    extract(0);
    turns();
    ck_held(1, 0);
    extract_elsewhere(1);
    ck_held(0, 0);
    turns();
    ck_held(0, 1);
    ck_assert_int_eq(seen.lost, 0);
}
END_TEST

START_TEST(it_follows_on_done_if_nothing_is_held)
{
    options.on_worker = _i & ON_WORKER;
    handler.hold = false;
    drive(_i & LAZY ? fixture_tasks(&f) : fixture_blocking(&f));
    ck_assert_int_eq(fixture_await(&f), 0);
    turns();
    ck_held(0, 1);
    ck_assert_int_eq(seen.lost, 0);
}
END_TEST

/* The handler is still in its first task when all tasks are extracted and the
 * producer has released it, as far as the loop knows. */
static sem_t entered, leave;

static void block(struct recording_handler *h)
{
    (void)h;
    if (sem_post(&entered) != 0)
        return;
    while (sem_wait(&leave) != 0)
        ;
}

START_TEST(it_waits_for_the_on_done_of_a_slow_handler)
{
    ck_assert_int_eq(sem_init(&entered, 0, 0), 0);
    ck_assert_int_eq(sem_init(&leave, 0, 0), 0);
    handler.hold = false;
    handler.on_task = block;
    options.on_worker = true;
    drive(fixture_blocking(&f));
    while (sem_trywait(&entered) != 0)
        turn();
    turns();
    ck_assert_int_eq(seen.extracted, 0);
    for (int i = 0; i < TASKS; i++)
        ck_assert_int_eq(sem_post(&leave), 0);
    ck_assert_int_eq(fixture_await(&f), 0);
    turns();
    ck_assert_int_eq(seen.extracted, 1);
}
END_TEST

/* ---- the join ----------------------------------------------------------- */

static int64_t turns_of(const struct uva_runtime *runtime)
{
    struct uva_runtime_stats stats;

    uva_runtime_get_stats(runtime, &stats);
    return stats.turns;
}

START_TEST(a_join_waits_for_the_last_extraction)
{
    struct hosting_fixture h;
    struct uva_stream *stream;
    int64_t before;

    f.got.silent = true; /* the stream is another one's */
    hosting_init(&h);
    handler.request_first = HOSTING_BATCHES;
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &h.rt, NULL), 0);
    stream = hosting_stream(&h, false);
    ck_assert_int_eq(uva_stream_drive(stream, &handler.handler, NULL, NULL), 0);
    uva_stream_release(stream);
    while (!recording_handler_is_released(&handler))
        (void)sched_yield();
    before = turns_of(h.rt);
    ck_assert_int_eq(uva_runtime_close(h.rt, UVA_FOREVER, NULL, NULL), 0);
    while (turns_of(h.rt) == before)
        (void)sched_yield();
    for (int64_t i = 0; i < HOSTING_BATCHES; i++)
        extract(i);
    ck_assert_int_eq(uva_runtime_join(h.rt, UVA_FOREVER), 0);
    hosting_fini(&h);
}
END_TEST

int main(void)
{
    TCase *any = tcase_create("any end"), *one = tcase_create("one"),
          *stage = tcase_create("stage"), *joined = tcase_create("join");

    suite_add_loops(any, 0, ENDS, a_close_waits_for_the_last_extraction,
                    a_close_revokes_after_its_grace_and_reports_that,
                    a_close_without_grace_revokes_at_once,
                    a_discard_ends_the_wait,
                    a_drain_waits_for_the_last_extraction,
                    after_its_deadline_a_drain_leaves_tasks_as_they_are,
                    a_close_without_grace_ends_a_drain_that_waits,
                    a_close_with_grace_leaves_a_drain_its_time,
                    the_last_extraction_is_reported_once, NULL);
    suite_add_loops(any, 0, RELEASED, a_drop_ends_the_wait, NULL);
    suite_add_loops(stage, 0, 2 * STAGES,
                    a_close_waits_for_tasks_that_stages_have_passed_on,
                    a_task_that_stages_have_passed_on_is_lost_once, NULL);
    suite_add_loops(one, 0, 2, the_deadline_of_a_drain_passes_by_itself, NULL);
    suite_add_loops(one, 0, FAILED, it_follows_on_done_if_nothing_is_held,
                    NULL);
    suite_add(one, the_grace_ends_by_itself,
              what_was_extracted_at_once_is_not_waited_for,
              it_waits_for_the_on_done_of_a_slow_handler, NULL);
    suite_add(joined, a_join_waits_for_the_last_extraction, NULL);
    return suite_main("last_extraction", set_up, tear_down, any, stage, one,
                      joined, NULL);
}
