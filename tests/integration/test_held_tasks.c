/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that a driven handler holds for long: they keep the loop alive while
 * the stream is open, and a close takes them back before it frees the ctx of
 * their source and maps. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "stream/task.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/recording_handler.h"

enum { TASKS = 3, ROUNDS = 100 };

static struct fixture f;
static struct recording_handler handler;
static struct uva_drive options;

/* Drives a handler that requests all batches, and keeps their tasks. */
static void drive(struct uva_stream *stream)
{
    struct uva_error error = {0};

    recording_handler_init(&handler, TASKS, 0);
    handler.hold = true;
    f.stream = stream;
    ck_assert_msg(
        uva_stream_drive(stream, &handler.handler, &options, &error) == 0, "%s",
        error.message);
}

static void set_up(void)
{
    fixture_open(&f, TASKS);
    options = (struct uva_drive){.on_done = recording_on_done, .ctx = &f.got};
}

static void tear_down(void)
{
    fixture_close(&f);
    ck_assert_int_eq(f.got.done, !f.got.silent);
    ck_assert(handler.released);
    recording_handler_fini(&handler);
}

static void turn(void)
{
    (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    (void)sched_yield();
}

static void turn_until_seen(const char *word)
{
    while (!recording_handler_saw(&handler, word))
        turn();
}

/* Runs the loop as a program does that waits for its streams. */
static void run_until_nothing_is_left(void)
{
    uv_unref((uv_handle_t *)&f.loop.keep);
    (void)uv_run(&f.loop.uv, UV_RUN_DEFAULT);
    uv_ref((uv_handle_t *)&f.loop.keep);
}

/* ---- the loop stays alive ----------------------------------------------- */

/* Runs in every round of the loop, and does not keep the loop alive. */
struct rounds {
    uv_idle_t idle;
    int left; /* rounds until the tasks are extracted */
};

static void extract_held(void)
{
    for (int64_t i = 0; i < handler.held_count; i++)
        ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[i]),
                         0);
}

static void round_end(uv_idle_t *idle)
{
    struct rounds *rounds = idle->data;

    if (recording_handler_saw(&handler, "end") && --rounds->left == 0)
        extract_held();
}

START_TEST(the_loop_runs_until_the_handler_is_released)
{
    struct rounds rounds = {.left = ROUNDS};

    drive(fixture_tasks(&f));
    ck_assert_int_eq(uv_idle_init(&f.loop.uv, &rounds.idle), 0);
    rounds.idle.data = &rounds;
    ck_assert_int_eq(uv_idle_start(&rounds.idle, round_end), 0);
    uv_unref((uv_handle_t *)&rounds.idle);
    run_until_nothing_is_left();
    uv_close((uv_handle_t *)&rounds.idle, NULL);
    turn();
    ck_assert_str_eq(handler.transcript, "schema task task task end release");
    ck_assert_int_eq(f.got.done, 1);
    ck_assert_int_eq(handler.rows, 9);
}
END_TEST

/* A handler that was released may hold tasks that cannot fail: no stream is
 * open any more. */
START_TEST(tasks_of_an_ended_stream_do_not_keep_the_loop_alive)
{
    drive(fixture_blocking(&f));
    run_until_nothing_is_left();
    ck_assert_str_eq(handler.transcript, "schema task task task end release");
    ck_assert_int_eq(f.got.done, 1);
    extract_held();
}
END_TEST

/* ---- the close ---------------------------------------------------------- */

/* Bits of the loop index. */
enum { MAPPED = 1, RELEASED = 2, DROPPED = 4, ON_WORKER = 8, WAYS = 16 };

static struct {
    atomic_long freed;   /* calls of the map's free_ctx */
    atomic_long batches; /* calls of the map */
    long freed_at_close; /* of the map's and the source's free_ctx, when the
                            closed callback came */
    bool closed;         /* that callback has come */
    bool waits;          /* the map waits for `leave` */
    sem_t entered, leave;
} seen;

static void map_free(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&seen.freed, 1);
}

static int map_batch(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    atomic_fetch_add(&seen.batches, 1);
    if (seen.waits) {
        ck_assert_int_eq(sem_post(&seen.entered), 0);
        while (sem_wait(&seen.leave) != 0)
            ;
    }
    uva_array_move(&in->data, out);
    return 0;
}

static struct uva_stream *mapped(struct uva_stream *stream)
{
    const struct uva_map map = {.batch = map_batch, .free_ctx = map_free};

    memset(&seen, 0, sizeof(seen));
    ck_assert_int_eq(sem_init(&seen.entered, 0, 0), 0);
    ck_assert_int_eq(sem_init(&seen.leave, 0, 0), 0);
    ck_assert_int_eq(uva_stream_map(stream, &map), 0);
    return stream;
}

static void on_closed(void *ctx)
{
    (void)ctx;
    seen.freed_at_close = atomic_load(&seen.freed) + atomic_load(&f.fake.freed);
    seen.closed = true;
    f.loop.runtime = NULL;
}

static bool is_closed(void *ctx)
{
    (void)ctx;
    return seen.closed;
}

static void close_begin(void)
{
    ck_assert_int_eq(uva_runtime_close(f.loop.runtime, 0, on_closed, NULL), 0);
}

static void close_runtime(void)
{
    close_begin();
    loop_until(&f.loop, is_closed, NULL);
}

/* A late extraction fails, and a late discard does not. The last one frees the
 * memory of all tasks. */
static void extract_too_late(int64_t i)
{
    struct ArrowDeviceArray out;

    memset(&out, 0xA5, sizeof(out));
    if (i == 1) {
        ck_assert_int_eq(handler.held[i].extract_data(&handler.held[i], NULL),
                         0);
        return;
    }
    ck_assert_int_eq(handler.held[i].extract_data(&handler.held[i], &out),
                     ECANCELED);
    ck_assert(out.array.release == NULL);
}

START_TEST(a_cancel_between_two_runs_of_the_loop_ends_the_stream)
{
    drive(fixture_tasks(&f));
    turn_until_seen("end");
    ck_assert(!handler.released);
    uva_stream_cancel(f.stream, 0, "seen enough");
    run_until_nothing_is_left();
    ck_assert_int_eq(f.got.done, 1);
    ck_assert(handler.released);
    close_runtime();
    for (int64_t i = 0; i < TASKS; i++)
        extract_too_late(i);
}
END_TEST

START_TEST(every_free_ctx_comes_before_the_closed_callback)
{
    struct uva_stream *stream =
        mapped(_i & MAPPED ? fixture_blocking(&f) : fixture_tasks(&f));

    options.on_worker = _i & ON_WORKER;
    drive(stream);
    while (recording_handler_tasks(&handler) < TASKS)
        turn();
    loop_settle(&f.loop);
    if (_i & DROPPED)
        fixture_drop(&f);
    else if (_i & RELEASED)
        fixture_release(&f);
    close_runtime();
    ck_assert_int_eq(seen.freed_at_close, 2);
    ck_assert_int_eq(atomic_load(&f.fake.live), 0);
    for (int64_t i = 0; i < TASKS && !(_i & DROPPED); i++)
        extract_too_late(i);
    ck_assert_int_eq(atomic_load(&seen.batches), 0);
}
END_TEST

/* The handler was released long ago, and the tasks are held still. */
START_TEST(tasks_held_past_the_end_lose_their_map_at_the_close)
{
    drive(mapped(fixture_blocking(&f)));
    turn_until_seen("end");
    uva_stream_cancel(f.stream, 0, "seen enough");
    fixture_await(&f);
    loop_settle(&f.loop);
    ck_assert(handler.released);
    ck_assert_int_eq(atomic_load(&seen.freed), 0);
    close_runtime();
    ck_assert_int_eq(seen.freed_at_close, 2);
    for (int64_t i = 0; i < TASKS; i++)
        extract_too_late(i);
}
END_TEST

static void *extract_one(void *ctx)
{
    ck_assert_int_eq(recording_handler_extract(&handler, ctx), 0);
    return NULL;
}

static pthread_t extract_and_wait(void)
{
    pthread_t other;

    drive(mapped(fixture_tasks(&f)));
    seen.waits = true;
    turn_until_seen("end");
    ck_assert_int_eq(
        pthread_create(&other, NULL, extract_one, &handler.held[0]), 0);
    while (sem_wait(&seen.entered) != 0)
        ;
    close_begin();
    fixture_await(&f);
    return other;
}

START_TEST(the_close_waits_for_an_extraction_of_the_handler)
{
    pthread_t other = extract_and_wait();

    for (int i = 0; i < 3; i++) /* well within the time limit of a close */
        turn();
    ck_assert(!seen.closed);
    ck_assert_int_eq(atomic_load(&seen.freed), 0);
    ck_assert_int_eq(sem_post(&seen.leave), 0);
    loop_until(&f.loop, is_closed, NULL);
    ck_assert_int_eq(seen.freed_at_close, 2);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
    extract_too_late(1);
    extract_too_late(2);
}
END_TEST

/* Until a time limit: then the extraction keeps the ctx that it uses. */
START_TEST(an_extraction_that_is_stuck_does_not_hold_up_the_close)
{
    pthread_t other = extract_and_wait();

    loop_until(&f.loop, is_closed, NULL);
    ck_assert_int_eq(seen.freed_at_close, 0);
    fixture_release(&f);
    extract_too_late(1);
    extract_too_late(2);
    ck_assert_int_eq(sem_post(&seen.leave), 0);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
    ck_assert_int_eq(atomic_load(&seen.freed), 1);
    ck_assert_int_eq(atomic_load(&f.fake.freed), 1);
}
END_TEST

/* ---- against a thread that extracts ------------------------------------- */

static void *extract_all(void *ctx)
{
    struct ArrowDeviceArray out;
    int code;

    (void)ctx;
    for (int64_t i = 0; i < TASKS; i++) {
        code = handler.held[i].extract_data(&handler.held[i], &out);
        ck_assert(code == 0 || code == ECANCELED);
        if (code == 0)
            uva_array_release(&out);
    }
    return NULL;
}

START_TEST(each_task_is_either_extracted_or_revoked)
{
    pthread_t other;

    drive(mapped(_i & 1 ? fixture_blocking(&f) : fixture_tasks(&f)));
    turn_until_seen("end");
    ck_assert_int_eq(pthread_create(&other, NULL, extract_all, NULL), 0);
    for (int i = 0; i < _i / 2; i++)
        (void)sched_yield();
    close_runtime();
    ck_assert_int_eq(seen.freed_at_close, 2);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
}
END_TEST

/* ---- a discard that takes its time --------------------------------------- */

static struct {
    int left; /* items that next gives */
    sem_t entered, leave;
} slow;

static int slow_next(void *ctx, void **item, const char **metadata,
                     struct uva_error *error)
{
    (void)ctx;
    (void)metadata;
    (void)error;
    *item = slow.left-- > 0 ? &slow : NULL;
    return 0;
}

static int slow_schema(void *ctx, struct ArrowSchema *out,
                       struct uva_error *error)
{
    (void)error;
    fake_source_schema(ctx, out);
    return 0;
}

static int slow_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                        struct uva_error *error)
{
    (void)ctx;
    (void)item;
    (void)error;
    ck_assert_ptr_null(out);
    ck_assert_int_eq(sem_post(&slow.entered), 0);
    while (sem_wait(&slow.leave) != 0)
        ;
    return 0;
}

static void slow_free(void *ctx)
{
    atomic_fetch_add(&((struct fake_source *)ctx)->freed, 1);
}

START_TEST(a_task_may_be_extracted_while_the_close_discards_it)
{
    const struct uva_task_source source = {.schema = slow_schema,
                                           .next = slow_next,
                                           .extract = slow_extract,
                                           .free_ctx = slow_free,
                                           .ctx = &f.fake};

    memset(&seen, 0, sizeof(seen));
    slow.left = 1;
    ck_assert_int_eq(sem_init(&slow.entered, 0, 0), 0);
    ck_assert_int_eq(sem_init(&slow.leave, 0, 0), 0);
    f.contexts = 1;
    drive(uva_stream_from_tasks(f.loop.runtime, &source));
    turn_until_seen("end");
    close_begin();
    while (sem_trywait(&slow.entered) != 0)
        turn();
    extract_too_late(0);
    ck_assert(!seen.closed);
    ck_assert_int_eq(sem_post(&slow.leave), 0);
    loop_until(&f.loop, is_closed, NULL);
    ck_assert_int_eq(seen.freed_at_close, 1);
}
END_TEST

int main(void)
{
    TCase *alive = suite_tests(
              "alive", the_loop_runs_until_the_handler_is_released,
              a_cancel_between_two_runs_of_the_loop_ends_the_stream,
              tasks_of_an_ended_stream_do_not_keep_the_loop_alive, NULL),
          *closed = suite_tests(
              "closed", tasks_held_past_the_end_lose_their_map_at_the_close,
              the_close_waits_for_an_extraction_of_the_handler,
              an_extraction_that_is_stuck_does_not_hold_up_the_close,
              a_task_may_be_extracted_while_the_close_discards_it, NULL);

    suite_add_loops(closed, 0, WAYS,
                    every_free_ctx_comes_before_the_closed_callback, NULL);
    suite_add_loops(closed, 0, 20, each_task_is_either_extracted_or_revoked,
                    NULL);
    return suite_main("held_tasks", set_up, tear_down, alive, closed, NULL);
}
