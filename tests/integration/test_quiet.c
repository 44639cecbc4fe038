/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a runtime, which its users count, and the callback that comes
 * when no function of the host is called any more. Everything is tried with
 * each way of hosting. test_closing.c tests the close itself. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/fake_source.h"
#include "support/faulty_allocator.h"
#include "support/forked_child.h"
#include "support/recording_consumer.h"
#include "support/recording_handler.h"
#include "uvarrow/arrow.h"
#include "uvarrow/runtime.h"

enum way { EMBEDDED, THREAD, TURNED, POSTED, WAYS };
enum { BATCHES = 3, USERS = 4, ROUNDS = 30 };

static struct {
    enum way way;
    uv_loop_t loop;
    struct uva_runtime *rt;
    struct faulty_allocator memory;
    struct fake_source fake;
    struct recording_consumer consumer;
    atomic_int posted;       /* turns requested by the runtime */
    atomic_bool closed;      /* the callback of the close was called */
    atomic_long quiet;       /* calls of on_quiet() */
    atomic_bool early;       /* one came before the close or a free_ctx */
    atomic_long blocks;      /* blocks of the allocator, at the last of them */
    atomic_int traces_freed; /* calls of free_trace() */
    long made;               /* streams */
    atomic_long lines;       /* that were logged */
    atomic_long calls;       /* posted calls that were made */
} f;

/* ---- the runtime -------------------------------------------------------- */

static void host_post(void *ctx)
{
    (void)ctx;
    atomic_store(&f.posted, 1);
}

static void set_up(void)
{
    memset(&f, 0, sizeof(f));
    ck_assert_int_eq(uv_loop_init(&f.loop), 0);
    faulty_allocator_init(&f.memory, 0);
    fake_source_init(&f.fake, BATCHES);
    recording_init(&f.consumer);
}

static void tear_down(void)
{
    ck_assert_int_eq(uv_loop_close(&f.loop), 0);
    fake_source_fini(&f.fake);
}

static void count_line(void *ctx, const struct uva_log_record *record)
{
    (void)ctx;
    (void)record;
    atomic_fetch_add(&f.lines, 1);
}

static void on_quiet(void *ctx)
{
    ck_assert_ptr_eq(ctx, &f);
    if (!atomic_load(&f.closed) || atomic_load(&f.fake.freed) < f.made)
        atomic_store(&f.early, true);
    atomic_store(&f.blocks, faulty_allocator_live(&f.memory));
    atomic_fetch_add(&f.quiet, 1);
}

static void on_event(void *ctx, const struct uva_trace_event *event)
{
    (void)event;
    ck_assert_ptr_eq(ctx, &f);
    if (atomic_load(&f.traces_freed) != 0)
        atomic_store(&f.early, true);
}

static void free_trace(void *ctx)
{
    ck_assert_ptr_eq(ctx, &f);
    if (atomic_load(&f.quiet) != 0 || !atomic_load(&f.closed))
        atomic_store(&f.early, true);
    atomic_fetch_add(&f.traces_freed, 1);
}

static int open_try(int way, struct uva_workers *workers, bool check)
{
    struct uva_runtime_options options = {
        .workers = workers,
        .log = {.write = count_line, .level = UVA_LOG_WARN},
        .check = check,
        .allocator = faulty_allocator_table(&f.memory),
        .trace = {.event = on_event, .free_ctx = free_trace, .ctx = &f},
        .on_quiet = on_quiet,
        .quiet_ctx = &f};

    f.way = (enum way)way;
    if (way >= TURNED)
        return uva_runtime_open_turned(way == POSTED ? host_post : NULL, NULL,
                                       &options, &f.rt, NULL);
    return uva_runtime_open(way == EMBEDDED ? &f.loop : NULL, &options, &f.rt,
                            NULL);
}

static void open_with(int way, struct uva_workers *workers, bool check)
{
    ck_assert_int_eq(open_try(way, workers, check), 0);
}

static void run_a_turn(void)
{
    if (f.way == EMBEDDED)
        (void)uv_run(&f.loop, UV_RUN_NOWAIT);
    else if (f.way == THREAD)
        (void)sched_yield();
    else
        (void)uva_runtime_turn(f.rt);
}

static void on_closed(void *ctx)
{
    (void)ctx;
    atomic_store(&f.closed, true);
}

/* Closes the runtime, which is not used after that unless it is acquired. */
static void close_it(void)
{
    ck_assert_int_eq(uva_runtime_close(f.rt, 0, on_closed, NULL), 0);
    if (f.way == THREAD)
        ck_assert_int_eq(uva_runtime_join(f.rt, UVA_FOREVER), 0);
    else if (f.way == EMBEDDED)
        (void)uv_run(&f.loop, UV_RUN_DEFAULT);
    else
        while (uva_runtime_turn(f.rt))
            ;
    ck_assert(atomic_load(&f.closed));
}

/* ---- being quiet -------------------------------------------------------- */

/* Awaits the call; `blocks`: whether memory is still held then. A runtime with
 * its own thread is freed by the join, which may come later. */
static void ck_quiet(bool blocks)
{
    await_count(&f.quiet, 1);
    ck_assert(!atomic_load(&f.early));
    ck_assert_int_eq(atomic_load(&f.traces_freed), 1);
    if (!blocks && f.way != THREAD)
        ck_assert_int_eq(atomic_load(&f.blocks), 0);
    ck_assert_int_eq(faulty_allocator_live(&f.memory) != 0, blocks);
}

static struct uva_stream *make_stream(void)
{
    struct uva_arrow_source options = fake_source_options(&f.fake);
    struct ArrowArrayStream source;

    f.made++;
    if (f.fake.gate_at >= 0)
        options.interrupt = NULL;
    fake_source_plain(&f.fake, &source);
    return uva_stream_from_arrow_stream(f.rt, &source, &options);
}

START_TEST(a_runtime_that_did_nothing_is_quiet_after_its_close)
{
    open_with(_i, NULL, false);
    close_it();
    ck_quiet(false);
}
END_TEST

START_TEST(a_runtime_is_quiet_when_its_streams_are_gone)
{
    open_with(_i, NULL, false);
    recording_consume(&f.consumer, make_stream());
    while (atomic_load(&f.consumer.done) == 0)
        run_a_turn();
    close_it();
    ck_quiet(false);
    ck_assert_int_eq(atomic_load(&f.fake.freed), 1);
}
END_TEST

START_TEST(a_stream_that_is_held_is_waited_for)
{
    struct uva_stream *stream;

    open_with(_i, NULL, false);
    stream = make_stream();
    close_it();
    ck_assert_int_eq(atomic_load(&f.quiet), 0);
    ck_assert_int_eq(atomic_load(&f.fake.freed), 0);
    uva_stream_release(stream);
    ck_quiet(false);
    ck_assert_int_eq(atomic_load(&f.fake.freed), 1);
}
END_TEST

/* The close waits for the call for a second, and then leaves it. */
START_TEST(a_call_that_is_stuck_is_waited_for)
{
    f.fake.gate_at = 1;
    open_with(_i, NULL, false);
    recording_consume(&f.consumer, make_stream());
    while (!fake_source_is_waiting(&f.fake))
        run_a_turn();
    close_it();
    ck_assert_int_eq(atomic_load(&f.quiet), 0);
    fake_source_open_gate(&f.fake);
    ck_quiet(false);
    ck_assert_int_eq(atomic_load(&f.fake.freed), 1);
}
END_TEST

START_TEST(shared_workers_are_not_waited_for)
{
    struct uva_workers *workers;

    ck_assert_int_eq(uva_workers_new(NULL, &workers, NULL), 0);
    open_with(_i, workers, false);
    recording_consume(&f.consumer, make_stream());
    while (atomic_load(&f.consumer.done) == 0)
        run_a_turn();
    close_it();
    ck_quiet(false);
    uva_workers_release(workers);
}
END_TEST

static void keep_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    struct ArrowDeviceArray *kept = c->ctx;

    if (kept->array.release == NULL)
        uva_array_move(&batch->data, kept);
}

/* With a checker, its memory lasts as long as the array. It finds that the
 * array was altered, but the log must not be called any more. */
START_TEST(an_array_that_is_held_is_not_waited_for)
{
    const bool checked = _i >= WAYS;
    struct ArrowDeviceArray kept = {0};

    open_with(_i % WAYS, NULL, checked);
    f.consumer.on_batch = keep_batch;
    f.consumer.ctx = &kept;
    recording_consume(&f.consumer, make_stream());
    while (atomic_load(&f.consumer.done) == 0)
        run_a_turn();
    ck_assert(kept.array.release != NULL);
    close_it();
    ck_quiet(checked);
    kept.array.n_buffers = 0;
    uva_array_release(&kept);
    ck_assert_int_eq(faulty_allocator_live(&f.memory), 0);
    ck_assert_int_eq(atomic_load(&f.lines), 0);
}
END_TEST

/* A handler may keep tasks for ever. Their slots last as long as they do, but
 * extracting them calls no function of the host any more. */
START_TEST(tasks_that_are_held_are_not_waited_for)
{
    struct uva_task_source source = fake_source_tasks(&f.fake);
    struct recording_handler handler;
    struct uva_stream *stream;

    recording_handler_init(&handler, BATCHES, 0);
    handler.hold = true;
    open_with(_i, NULL, false);
    f.made++;
    stream = uva_stream_from_tasks(f.rt, &source);
    ck_assert_int_eq(uva_stream_drive(stream, &handler.handler, NULL, NULL), 0);
    uva_stream_release(stream);
    while (recording_handler_tasks(&handler) < BATCHES)
        run_a_turn();
    close_it();
    ck_quiet(true);
    for (int64_t i = 0; i < handler.held_count; i++)
        ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[i]),
                         ECANCELED);
    ck_assert_int_eq(faulty_allocator_live(&f.memory), 0);
    recording_handler_fini(&handler);
}
END_TEST

/* A runtime that failed to open has taken no argument. */
START_TEST(a_runtime_that_failed_to_open_is_never_quiet)
{
    for (long n = 1; atomic_load(&f.quiet) == 0; n++) {
        faulty_allocator_init(&f.memory, n);
        if (open_try(_i, NULL, false) == 0)
            close_it();
        else
            ck_assert_int_eq(atomic_load(&f.traces_freed), 0);
    }
    ck_quiet(false);
}
END_TEST

/* ---- after the close ---------------------------------------------------- */

static void not_called(void *ctx)
{
    (void)ctx;
    ck_abort_msg("nothing is called any more");
}

START_TEST(a_runtime_that_is_acquired_may_be_used_after_its_close)
{
    struct uva_runtime_stats stats;

    open_with(_i, NULL, false);
    ck_assert_ptr_eq(uva_runtime_acquire(f.rt), f.rt);
    close_it();
    ck_quiet(true);
    ck_assert_int_eq(uva_runtime_post(f.rt, not_called, NULL), ESHUTDOWN);
    (void)uva_runtime_on_loop(f.rt);
    uva_runtime_get_stats(f.rt, &stats);
    ck_assert_int_eq(stats.streams_open, 0);
    ck_assert_int_eq(stats.threads_blocking, 0);
    ck_assert_int_gt(stats.turns, 0);
    ck_assert_ptr_eq(uva_runtime_acquire(f.rt), f.rt);
    uva_runtime_release(f.rt);
    uva_runtime_release(f.rt);
    ck_assert_int_eq(faulty_allocator_live(&f.memory), 0);
    ck_assert_int_eq(atomic_load(&f.quiet), 1);
}
END_TEST

static void count_post(void *ctx)
{
    atomic_fetch_add((atomic_long *)ctx, 1);
}

/* A thread of a binding posts until that fails, as the runtime has closed. */
static void *post_until_closed(void *ctx)
{
    struct uva_runtime_stats stats;

    while (uva_runtime_post(f.rt, count_post, &f.calls) == 0) {
        atomic_fetch_add((atomic_long *)ctx, 1);
        (void)sched_yield();
    }
    uva_runtime_get_stats(f.rt, &stats);
    uva_runtime_release(f.rt);
    return NULL;
}

START_TEST(users_on_other_threads_may_be_late)
{
    pthread_t threads[USERS];
    atomic_long posts = 0;

    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&f.closed, false);
        atomic_store(&f.quiet, 0);
        atomic_store(&f.traces_freed, 0);
        open_with(_i, NULL, false);
        for (int i = 0; i < USERS; i++) {
            (void)uva_runtime_acquire(f.rt);
            ck_assert_int_eq(
                pthread_create(&threads[i], NULL, post_until_closed, &posts),
                0);
        }
        for (long seen = atomic_load(&posts); atomic_load(&posts) == seen;)
            (void)sched_yield();
        close_it();
        for (int i = 0; i < USERS; i++)
            ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        await_count(&f.quiet, 1);
        ck_assert(!atomic_load(&f.early));
        ck_assert_int_eq(atomic_load(&f.calls), atomic_load(&posts));
        ck_assert_int_eq(faulty_allocator_live(&f.memory), 0);
    }
}
END_TEST

/* ---- bad calls ---------------------------------------------------------- */

static int child_main(void *ctx)
{
    (void)ctx;
    if (uva_runtime_acquire(f.rt) != f.rt)
        return 1;
    uva_runtime_release(f.rt);
    uva_runtime_release(f.rt); /* frees no object that the parent uses */
    return uva_runtime_post(f.rt, not_called, NULL) != EPERM;
}

START_TEST(a_forked_child_frees_no_object_of_the_parent)
{
    open_with(_i, NULL, false);
    ck_assert_ptr_null(uva_runtime_acquire(NULL));
    uva_runtime_release(NULL);
    forked_child_run(child_main, NULL);
    close_it();
    ck_quiet(false);
}
END_TEST

int main(void)
{
    TCase *quiet = tcase_create("quiet"), *after = tcase_create("after");

    tcase_set_timeout(quiet, 60);
    tcase_set_timeout(after, 60);
    suite_add_loops(
        quiet, 0, WAYS, a_runtime_that_did_nothing_is_quiet_after_its_close,
        a_runtime_is_quiet_when_its_streams_are_gone,
        a_stream_that_is_held_is_waited_for, a_call_that_is_stuck_is_waited_for,
        shared_workers_are_not_waited_for,
        tasks_that_are_held_are_not_waited_for,
        a_runtime_that_failed_to_open_is_never_quiet, NULL);
    suite_add_loops(quiet, 0, 2 * WAYS, an_array_that_is_held_is_not_waited_for,
                    NULL);
    suite_add_loops(after, 0, WAYS,
                    a_runtime_that_is_acquired_may_be_used_after_its_close,
                    users_on_other_threads_may_be_late,
                    a_forked_child_frees_no_object_of_the_parent, NULL);
    if (setenv("UVA_CHECK", "0", 1) != 0) /* the options decide */
        return 1;
    return suite_main("quiet", set_up, tear_down, quiet, after, NULL);
}
