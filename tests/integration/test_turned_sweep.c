/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation fails in turn while a turned runtime is opened, runs a
 * stream of tasks with permits, a name, an expectation and two branches of
 * which one pauses, and is joined. Each failure is ENOMEM, and nothing is left.
 */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fake_source.h"
#include "support/faulty_allocator.h"
#include "uvarrow/uvarrow.h"

enum { BATCHES = 3, BRANCHES = 2, FAILURES_MAX = 400 };

static struct fake_source fake;
static struct faulty_allocator memory;
static struct uva_runtime *runtime;

static struct branch {
    struct uva_stream *stream; /* counts; NULL: it was not started */
    int64_t taken;
    bool done;
    struct uva_outcome outcome;
} branches[BRANCHES];

/* ---- the stream --------------------------------------------------------- */

static void expect(void *ctx, int64_t *rows, int64_t *bytes)
{
    (void)ctx;
    *rows = BATCHES;
    *bytes = INT64_C(8) * BATCHES;
}

static struct uva_stream *stream_new(struct uva_permits *permits)
{
    struct uva_task_source source = fake_source_tasks(&fake);

    source.permits = permits;
    source.name = "swept";
    source.expect = expect;
    return uva_stream_from_tasks(runtime, &source);
}

/* The first batch pauses the stream, until the loop has nothing more to do. */
static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct branch *branch = ctx;

    (void)batch;
    return branch->taken++ == 0 ? EAGAIN : 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct branch *branch = ctx;

    branch->done = true;
    branch->outcome = *outcome;
}

static void branch_start(struct branch *branch, struct uva_stream *stream)
{
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = branch};
    struct uva_error error = {0};
    const int code = uva_stream_for_each(stream, &consumer, &error);

    if (code == 0) {
        branch->stream = stream;
        return;
    }
    ck_assert_int_eq(code, ENOMEM);
    ck_assert_int_ne(error.message[0], '\0');
    uva_stream_release(stream);
}

static bool branch_is_over(const struct branch *branch)
{
    return branch->stream == NULL || branch->done;
}

static void turn_until_over(void)
{
    struct pollfd fd = {.fd = uva_runtime_fd(runtime), .events = POLLIN};

    while (!branch_is_over(&branches[0]) || !branch_is_over(&branches[1])) {
        if (poll(&fd, 1, 10) == 0)
            for (int i = 0; i < BRANCHES; i++)
                uva_stream_resume(branches[i].stream);
        ck_assert_int_ne(uva_runtime_turn(runtime), UVA_TURN_CLOSED);
    }
}

static void branch_check(struct branch *branch, bool whole)
{
    if (branch->stream == NULL)
        return;
    if (branch->outcome.end == UVA_END_COMPLETE) {
        ck_assert_int_eq(branch->taken, BATCHES);
        ck_assert_int_eq(branch->outcome.rows, BATCHES * fake.rows);
    } else {
        ck_assert(!whole);
        ck_assert_int_eq(branch->outcome.error.code, ENOMEM);
    }
    uva_stream_release(branch->stream);
}

/* ---- the sweep ---------------------------------------------------------- */

static void run(void)
{
    struct uva_permits *permits = NULL;
    struct uva_stream *streams[BRANCHES];
    struct uva_error error = {0};
    const int code = uva_permits_new(runtime, 1, 1000, &permits, &error);

    ck_assert(code == 0 || code == ENOMEM);
    ck_assert_int_eq(permits != NULL, code == 0);
    streams[0] = stream_new(permits);
    streams[1] =
        uva_stream_tee(streams[0], &(struct uva_tee){.slow = UVA_SLOW_WAIT,
                                                     .window.batches = 1,
                                                     .first.batches = 2});
    uva_stream_pause(streams[0]);
    for (int i = 0; i < BRANCHES; i++)
        branch_start(&branches[i], streams[i]);
    turn_until_over();
    uva_permits_release(permits);
}

/* Returns whether no allocation failed. */
static bool play(long fail_at)
{
    struct uva_runtime_options options = {0};
    struct uva_error error = {0};
    bool whole;
    int code;

    memset(branches, 0, sizeof(branches));
    fake_source_init(&fake, BATCHES);
    faulty_allocator_init(&memory, fail_at);
    options.allocator = faulty_allocator_table(&memory);
    options.close_limit_ms = 5000;
    code = uva_runtime_open_turned(NULL, NULL, &options, &runtime, &error);
    if (code == 0)
        run();
    whole = !faulty_allocator_has_failed(&memory);
    if (code == 0) {
        ck_assert_int_eq(uva_runtime_join(runtime, 0), 0);
        for (int i = 0; i < BRANCHES; i++)
            branch_check(&branches[i], whole);
        ck_assert_int_eq(atomic_load(&fake.freed), 1);
    } else {
        ck_assert_int_eq(code, ENOMEM);
        ck_assert_int_ne(error.message[0], '\0');
    }
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
    ck_assert_int_eq(atomic_load(&fake.live), 0);
    fake_source_fini(&fake);
    return whole;
}

START_TEST(every_allocation_may_fail)
{
    long i = 1;

    while (!play(i))
        ck_assert_int_lt(i++, FAILURES_MAX);
    ck_assert_int_gt(i, 15);
}
END_TEST

int main(void)
{
    return suite_main(
        "turned_sweep", NULL, NULL,
        suite_tests("turned_sweep", every_allocation_may_fail, NULL), NULL);
}
