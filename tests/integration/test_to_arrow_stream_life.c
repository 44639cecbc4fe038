/* SPDX-License-Identifier: Apache-2.0 */
/* How reading through uva_stream_to_device_stream() is stopped, where it is
 * refused, and that everything is released, whichever side releases first.
 * test_to_arrow_stream.c tests the reading. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "support/blocking_fixture.h"
#include "support/check_suite.h"
#include "support/forked_child.h"
#include "support/loop_fixture.h"
#include "uvarrow/arrow.h"

static struct blocking_fixture b;

static void tear_down(void)
{
    blocking_close(&b);
}

/* Reads one batch, and checks the code and the text of the failure. */
static void expect_text(struct ArrowArrayStream *stream, int code,
                        const char *text)
{
    int got;

    ck_assert_int_eq(blocking_read(stream, 0, 1, &got), 0);
    ck_assert_int_eq(got, code);
    ck_assert_str_eq(stream->get_last_error(stream), text);
}

/* Exports the source as a blocking stream (0) or as tasks (1). */
static void start_either(int kind, int32_t window)
{
    if (kind == 0)
        blocking_start_plain(&b, window);
    else
        blocking_start_tasks(&b, window);
}

/* ---- cancel ------------------------------------------------------------- */

START_TEST(a_cancel_reaches_a_reader_that_waits)
{
    struct blocking_reader reader;

    blocking_open(&b, NULL, 9);
    b.fake.gate_at = 3;
    blocking_start_plain(&b, 4);
    blocking_reader_start(&reader, &b.out);
    fake_source_await(&b.fake);
    blocking_await_sleeper(&b.out);
    uva_stream_cancel(b.stream, EDQUOT, "that was enough");
    blocking_reader_join(&reader);
    ck_assert_int_le(reader.batches, 3);
    ck_assert_int_eq(reader.code, EDQUOT);
    ck_assert_str_eq(reader.text, "that was enough");
    expect_text(&b.out, EDQUOT, "that was enough");
}
END_TEST

/* The live objects include the schema, which the stream keeps. */
START_TEST(a_cancel_discards_the_batches_that_wait)
{
    blocking_open(&b, NULL, 99);
    start_either(_i, 4);
    blocking_await(&b.fake.given, 4);
    uva_stream_cancel(b.stream, 0, NULL);
    blocking_await(&b.fake.live, 1);
    expect_text(&b.out, ECANCELED, "cancelled");
}
END_TEST

/* Everything has arrived in the task ring, but the reader has not read it. */
START_TEST(a_cancel_counts_until_the_reader_knows_the_end)
{
    blocking_open(&b, NULL, 2);
    start_either(_i, 64);
    blocking_await_event(&b.out, UVA__TASK_RING_END);
    uva_stream_cancel(b.stream, 0, "not any more");
    blocking_await(&b.fake.live, 1);
    expect_text(&b.out, ECANCELED, "not any more");
}
END_TEST

static void hold_loop(void *ctx)
{
    while (sem_wait(ctx) != 0)
        ;
}

/* The reader knows the end before the loop thread has seen that. */
START_TEST(a_cancel_does_not_count_once_the_reader_knows_the_end)
{
    sem_t go_on;

    (void)sem_init(&go_on, 0, 0);
    blocking_run(&b, 2, 64);
    blocking_await_event(&b.out, UVA__TASK_RING_RELEASED);
    ck_assert_int_eq(uva_runtime_post(b.runtime, hold_loop, &go_on), 0);
    ck_assert_int_eq(blocking_read(&b.out, 0, 99, NULL), 2);
    uva_stream_cancel(b.stream, EIO, "too late");
    (void)sem_post(&go_on);
    blocking_end_runtime(&b);
    ck_assert_int_eq(uva_stream_status(b.stream, NULL), 0);
    blocking_close(&b);
}
END_TEST

struct late {
    sem_t open;
    struct blocking_fixture *fixture; /* borrows */
};

static int late_open(void *ctx, struct ArrowArrayStream *out,
                     struct uva_error *error)
{
    struct late *late = ctx;

    (void)error;
    while (sem_wait(&late->open) != 0)
        ;
    fake_source_plain(&late->fixture->fake, out);
    late->fixture->sources++; /* unless the cancel came before this call */
    return 0;
}

static void late_interrupt(void *ctx)
{
    (void)sem_post(&((struct late *)ctx)->open);
}

static void late_free(void *ctx)
{
    atomic_fetch_add(&((struct late *)ctx)->fixture->fake.freed, 1);
}

static void *schema_run(void *ctx)
{
    struct ArrowArrayStream *stream = ctx;
    struct ArrowSchema schema;

    ck_assert_int_eq(stream->get_schema(stream, &schema), EXDEV);
    ck_assert(schema.release == NULL);
    return NULL;
}

START_TEST(a_cancel_reaches_a_reader_that_waits_for_the_schema)
{
    struct late late = {.fixture = &b};
    const struct uva_arrow_source options = {.open = late_open,
                                             .interrupt = late_interrupt,
                                             .free_ctx = late_free,
                                             .ctx = &late};
    pthread_t thread;

    (void)sem_init(&late.open, 0, 0);
    blocking_open(&b, NULL, 9);
    b.stream = uva_stream_from_arrow_stream(b.runtime, NULL, &options);
    blocking_start(&b, 4);
    (void)pthread_create(&thread, NULL, schema_run, &b.out);
    blocking_await_sleeper(&b.out);
    uva_stream_cancel(b.stream, EXDEV, "no");
    (void)pthread_join(thread, NULL);
    expect_text(&b.out, EXDEV, "no");
    blocking_close(&b);
}
END_TEST

START_TEST(a_stream_that_was_dropped_gives_nothing_more)
{
    int code;

    blocking_run(&b, 99, 4);
    uva_stream_drop(uva_stream_acquire(b.stream));
    ck_assert_int_le(blocking_read(&b.out, 0, 99, &code), 4);
    ck_assert_int_eq(code, ECANCELED);
}
END_TEST

/* ---- releasing ---------------------------------------------------------- */

START_TEST(letting_go_unread_discards_and_stops_the_source)
{
    blocking_open(&b, NULL, 99);
    start_either(_i, 4);
    blocking_await(&b.fake.given, 4);
    b.out.release(&b.out);
    blocking_await(&b.fake.freed, 1);
    ck_assert_int_eq(atomic_load(&b.fake.given), 4);
}
END_TEST

START_TEST(letting_go_at_once_is_fine)
{
    blocking_run(&b, 99, 4);
    b.out.release(&b.out);
}
END_TEST

START_TEST(letting_go_does_not_wait_for_the_source)
{
    blocking_open(&b, NULL, 99);
    b.fake.gate_at = 2;
    blocking_start_plain(&b, 4);
    fake_source_await(&b.fake);
    b.out.release(&b.out); /* this interrupts the source */
    blocking_await(&b.fake.freed, 1);
    ck_assert_int_eq(atomic_load(&b.fake.interrupts), 1);
}
END_TEST

static void let_go(void *ctx)
{
    struct ArrowArrayStream *stream = ctx;

    stream->release(stream);
    ck_assert(stream->release == NULL);
}

START_TEST(letting_go_on_the_loop_thread_is_fine)
{
    blocking_run(&b, 99, 4);
    ck_assert_int_eq(blocking_read(&b.out, 0, 1, NULL), 1);
    ck_assert_int_eq(uva_runtime_post(b.runtime, let_go, &b.out), 0);
    blocking_await(&b.fake.freed, 1);
    b.out.release = NULL; /* released through the source's release */
}
END_TEST

START_TEST(the_reader_outlives_the_holder_of_the_stream)
{
    blocking_run(&b, 9, 4);
    uva_stream_release(b.stream);
    ck_assert_int_eq(blocking_read(&b.out, 0, 99, NULL), 9);
    b.out.release(&b.out);
    b.stream = uva_stream_from_arrays(NULL, NULL, NULL, 0); /* any stream */
}
END_TEST

/* ---- close -------------------------------------------------------------- */

START_TEST(a_close_reaches_a_reader_that_waits)
{
    struct blocking_reader reader;

    blocking_open(&b, NULL, 9);
    b.fake.gate_at = 0;
    blocking_start_plain(&b, 4);
    blocking_reader_start(&reader, &b.out);
    blocking_await_sleeper(&b.out);
    blocking_end_runtime(&b);
    blocking_reader_join(&reader);
    ck_assert_int_eq(reader.code, ECANCELED);
    ck_assert_str_eq(reader.text, "the runtime was closed");
}
END_TEST

/* The first stream's reader is the second stream's worker, which delays no
 * close. */
START_TEST(a_close_ends_streams_that_are_chained)
{
    struct blocking_reader reader;
    struct ArrowArrayStream out;

    blocking_open(&b, NULL, 9);
    b.fake.gate_at = 3;
    blocking_start_plain(&b, 4);
    struct uva_stream *second =
        uva_stream_from_arrow_stream(b.runtime, &b.out, NULL);
    ck_assert_int_eq(uva_stream_to_arrow_stream(second, NULL, &out, NULL), 0);
    blocking_reader_start(&reader, &out);
    fake_source_await(&b.fake);
    blocking_await_sleeper(&out);
    blocking_end_runtime(&b);
    blocking_reader_join(&reader);
    ck_assert_int_eq(reader.code, ECANCELED);
    out.release(&out);
    uva_stream_release(second);
}
END_TEST

/* A new thread may get the id that the loop thread had. */
START_TEST(a_runtime_that_has_gone_is_told_by_every_call)
{
    struct blocking_reader reader;
    struct ArrowSchema schema;

    blocking_run(&b, 99, 4);
    ck_assert_int_eq(blocking_read(&b.out, 0, 1, NULL), 1);
    blocking_end_runtime(&b);
    for (int i = 0; i < 4; i++) {
        blocking_reader_start(&reader, &b.out);
        blocking_reader_join(&reader);
        ck_assert_int_eq(reader.batches, 0);
        ck_assert_int_eq(reader.code, ECANCELED);
        ck_assert_str_eq(reader.text, "the runtime was closed");
    }
    ck_assert_int_eq(b.out.get_schema(&b.out, &schema), 0);
    uva_schema_release(&schema);
}
END_TEST

static void *join_run(void *ctx)
{
    ck_assert_int_eq(uva_runtime_join(ctx, UVA_FOREVER), 0);
    return NULL;
}

START_TEST(a_join_lets_the_reader_finish)
{
    pthread_t thread;

    blocking_run(&b, 5, 64);
    (void)pthread_create(&thread, NULL, join_run, b.runtime);
    while (!uva__rt_is_closing(b.stream->rt))
        (void)sched_yield();
    blocking_await(&b.fake.given, 5);
    ck_assert_int_eq(blocking_read(&b.out, 0, 99, NULL), 5);
    (void)pthread_join(thread, NULL);
    b.runtime = NULL;
    ck_assert_int_eq(uva_stream_status(b.stream, NULL), 0);
}
END_TEST

/* ---- where waiting is refused ------------------------------------------- */

struct visit {
    struct ArrowArrayStream *stream; /* borrows */
    int next;                        /* return code of get_next */
    int schema;                      /* return code of get_schema */
    bool explained;                  /* get_last_error returned a text */
    sem_t over;
};

static void visit_run(void *ctx)
{
    struct visit *visit = ctx;
    struct ArrowSchema schema;
    struct ArrowArray array;

    memset(&array, 0xA5, sizeof(array));
    visit->schema = visit->stream->get_schema(visit->stream, &schema);
    uva_schema_release(&schema);
    visit->next = visit->stream->get_next(visit->stream, &array);
    ck_assert(array.release == NULL);
    visit->explained = visit->stream->get_last_error(visit->stream) != NULL;
    (void)sem_post(&visit->over);
}

static struct visit visit_of(struct ArrowArrayStream *stream)
{
    struct visit visit = {.stream = stream, .next = -1, .schema = -1};

    (void)sem_init(&visit.over, 0, 0);
    return visit;
}

static void visit_await(struct visit *visit)
{
    while (sem_wait(&visit->over) != 0)
        ;
}

static bool knows_schema(void *ctx)
{
    return uva_stream_get_info(ctx) != NULL;
}

START_TEST(the_loop_thread_may_not_wait)
{
    struct fake_source fake;
    struct loop_fixture loop;
    struct ArrowArrayStream source, out;

    loop_open(&loop);
    fake_source_init(&fake, 3);
    fake_source_plain(&fake, &source);
    struct uva_stream *stream =
        uva_stream_from_arrow_stream(loop.runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_to_arrow_stream(stream, NULL, &out, NULL), 0);
    struct visit visit = visit_of(&out);
    visit_run(&visit); /* the loop thread, in a turn or outside one */
    ck_assert_int_eq(visit.schema, EDEADLK);
    ck_assert_int_eq(visit.next, EDEADLK);
    ck_assert(visit.explained);
    loop_until(&loop, knows_schema, stream);
    visit_run(&visit);
    ck_assert_int_eq(visit.schema, 0);
    ck_assert_int_eq(visit.next, EDEADLK);
    loop_call(&loop, visit_run, &visit);
    ck_assert_int_eq(visit.next, EDEADLK);
    visit.next = 0;
    ck_assert_int_eq(uva_runtime_post(loop.runtime, visit_run, &visit), 0);
    loop_settle(&loop);
    ck_assert_int_eq(visit.next, EDEADLK);
    out.release(&out);
    uva_stream_release(stream);
    loop_close_runtime(&loop, 0);
    while (faulty_allocator_live(&loop.memory) != 0)
        (void)sched_yield();
    loop_close(&loop);
    fake_source_fini(&fake);
}
END_TEST

START_TEST(a_thread_inside_another_runtimes_turn_may_not_wait)
{
    struct uva_runtime *other;

    blocking_run(&b, 9, 4);
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &other, NULL), 0);
    struct visit visit = visit_of(&b.out);
    ck_assert_int_eq(uva_runtime_post(other, visit_run, &visit), 0);
    visit_await(&visit);
    ck_assert_int_eq(visit.next, EDEADLK);
    ck_assert_int_eq(uva_runtime_join(other, UVA_FOREVER), 0);
    ck_assert_int_eq(blocking_read(&b.out, 0, 99, NULL), 9);
    blocking_close(&b);
}
END_TEST

static int map_on_wakeup(void *ctx, struct uva_batch *in,
                         struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)error;
    visit_run(ctx);
    uva_array_move(&in->data, out);
    return 0;
}

START_TEST(a_compute_worker_may_not_wait)
{
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;
    struct ArrowArrayStream out;

    blocking_run(&b, 9, 4);
    struct visit visit = visit_of(&b.out);
    const struct uva_map map = {.batch = map_on_wakeup, .ctx = &visit};
    fake_source_schema(&b.fake, &schema);
    fake_source_batch(&b.fake, 0, &array);
    struct uva_stream *second =
        uva_stream_from_arrays(b.runtime, &schema, &array, 1);
    (void)uva_stream_map(second, &map);
    (void)uva_stream_parallel(second, &(struct uva_parallel){.workers = 1});
    ck_assert_int_eq(uva_stream_to_arrow_stream(second, NULL, &out, NULL), 0);
    ck_assert_int_eq(blocking_read(&out, 0, 99, NULL), 1);
    ck_assert_int_eq(visit.next, EDEADLK);
    ck_assert_int_eq(blocking_read(&b.out, 0, 99, NULL), 9);
    out.release(&out);
    uva_stream_release(second);
    blocking_close(&b);
}
END_TEST

/* Returns the child's findings, as bits of its exit status. */
static int child_run(void *ctx)
{
    struct ArrowArrayStream *stream = ctx;
    struct ArrowSchema schema;
    struct ArrowArray array;
    int wrong = 0;

    if (stream->get_next(stream, &array) != EPERM || array.release != NULL)
        wrong |= 1;
    if (stream->get_last_error(stream) == NULL)
        wrong |= 2;
    if (stream->get_schema(stream, &schema) != EPERM)
        wrong |= 4;
    stream->release(stream);
    return stream->release == NULL ? wrong : wrong | 8;
}

START_TEST(a_forked_child_may_only_let_go)
{
    blocking_run(&b, 9, 4);
    ck_assert_int_eq(blocking_read(&b.out, 0, 1, NULL), 1);
    forked_child_run(child_run, &b.out);
    ck_assert_int_eq(blocking_read(&b.out, 1, 99, NULL), 8);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

enum { SWEPT_BATCHES = 70 };

/* Runs a stream from its opening to its end while one allocation fails. Returns
 * whether that allocation was reached. */
static bool sweep_step(long n, bool of_tasks)
{
    const struct uva_window window = {.batches = 4};
    struct blocking_fixture fixture;
    struct uva_error error = {0};
    int64_t batches = 0;
    int code;

    blocking_open(&fixture, NULL, SWEPT_BATCHES);
    atomic_store(&fixture.memory.fail_at,
                 faulty_allocator_asked(&fixture.memory) + n);
    if (of_tasks)
        blocking_tasks(&fixture);
    else
        blocking_plain(&fixture);
    code = uva_stream_to_arrow_stream(fixture.stream, &window, &fixture.out,
                                      &error);
    if (code == 0)
        batches = blocking_read(&fixture.out, 0, 99, &code);
    else
        ck_assert_str_ne(error.message, "");
    const bool failed = faulty_allocator_has_failed(&fixture.memory);
    if (code == 0)
        ck_assert_int_eq(batches, SWEPT_BATCHES);
    else
        ck_assert(failed && code == ENOMEM);
    blocking_close(&fixture);
    return failed;
}

START_TEST(every_allocation_may_fail)
{
    long n = 1;

    while (sweep_step(n, _i == 1))
        n++;
    ck_assert_int_gt(n, 5);
}
END_TEST

/* ---- races -------------------------------------------------------------- */

enum { RACES = 300 };

struct racer {
    struct blocking_fixture *fixture; /* borrows */
    sem_t begin;
    pthread_t thread;
};

static void *racer_cancel(void *ctx)
{
    struct racer *racer = ctx;

    while (sem_wait(&racer->begin) != 0)
        ;
    uva_stream_cancel(racer->fixture->stream, EXDEV, "raced");
    return NULL;
}

static void *racer_close(void *ctx)
{
    struct racer *racer = ctx;

    while (sem_wait(&racer->begin) != 0)
        ;
    (void)uva_runtime_close(racer->fixture->runtime, 0, NULL, NULL);
    return NULL;
}

/* The reader releases the stream after `n` batches, unless it is stopped
 * earlier. */
static void race(int n, void *(*run)(void *ctx))
{
    struct blocking_fixture fixture;
    struct racer racer = {.fixture = &fixture};
    int code;

    (void)sem_init(&racer.begin, 0, 0);
    blocking_open(&fixture, NULL, 40);
    if (n % 2 == 0)
        blocking_plain(&fixture);
    else
        blocking_tasks(&fixture);
    (void)pthread_create(&racer.thread, NULL, run, &racer);
    blocking_start(&fixture, 1 + n % 7);
    (void)sem_post(&racer.begin);
    (void)blocking_read(&fixture.out, 0, n % 45, &code);
    ck_assert(code == 0 || code == EXDEV || code == ECANCELED);
    if (n % 3 != 0)
        fixture.out.release(&fixture.out);
    (void)pthread_join(racer.thread, NULL);
    blocking_close(&fixture);
}

START_TEST(reading_letting_go_and_cancelling_may_race)
{
    for (int i = 0; i < RACES; i++)
        race(i, racer_cancel);
}
END_TEST

START_TEST(reading_letting_go_and_closing_may_race)
{
    for (int i = 0; i < RACES; i++)
        race(i, racer_close);
}
END_TEST

static void add_stops(Suite *suite)
{
    TCase *cancel = suite_case(suite, "cancel", NULL, tear_down);

    suite_add(cancel, a_cancel_reaches_a_reader_that_waits,
              a_cancel_does_not_count_once_the_reader_knows_the_end,
              a_cancel_reaches_a_reader_that_waits_for_the_schema,
              a_stream_that_was_dropped_gives_nothing_more, NULL);
    suite_add_loops(cancel, 0, 2, a_cancel_discards_the_batches_that_wait,
                    a_cancel_counts_until_the_reader_knows_the_end, NULL);

    TCase *releasing = suite_case(suite, "letting go", NULL, tear_down);
    suite_add(releasing, letting_go_at_once_is_fine,
              letting_go_does_not_wait_for_the_source,
              letting_go_on_the_loop_thread_is_fine,
              the_reader_outlives_the_holder_of_the_stream, NULL);
    tcase_add_loop_test(releasing,
                        letting_go_unread_discards_and_stops_the_source, 0, 2);

    suite_add(suite_case(suite, "close", NULL, tear_down),
              a_close_reaches_a_reader_that_waits,
              a_close_ends_streams_that_are_chained,
              a_runtime_that_has_gone_is_told_by_every_call,
              a_join_lets_the_reader_finish, NULL);
}

static void add_others(Suite *suite)
{
    suite_add(suite_case(suite, "threads", NULL, tear_down),
              the_loop_thread_may_not_wait,
              a_thread_inside_another_runtimes_turn_may_not_wait,
              a_compute_worker_may_not_wait, a_forked_child_may_only_let_go,
              NULL);

    TCase *memory = suite_case(suite, "memory", NULL, tear_down);
    tcase_add_loop_test(memory, every_allocation_may_fail, 0, 2);

    suite_add(suite_case(suite, "races", NULL, tear_down),
              reading_letting_go_and_cancelling_may_race,
              reading_letting_go_and_closing_may_race, NULL);
}

int main(void)
{
    Suite *suite = suite_create("to_arrow_stream_life");

    add_stops(suite);
    add_others(suite);

    return suite_run(suite);
}
