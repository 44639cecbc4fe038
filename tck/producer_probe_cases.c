/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the role producer about requests and cancels that an ordinary run
 * does not make: too few, too many, too late, by many threads, while a callback
 * blocks. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tck/cases.h"
#include "tck/producer_session.h"
#include "tck/thread_barrier.h"

enum {
    LOOKS_MAX = 40,
    LOOKS_SAME = 8 /* looks in a row: a busy machine may delay a thread */
};

/* ---- demand ------------------------------------------------------------- */

static void requests_add_up(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {0};
    struct uva__producer_session session;

    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_WHOLE, 100, 0,
                                    &manner))
        return;
    uva__producer_session_await_schema(&session);
    uva__recording_consumer_request(session.consumer, 2);
    uva__recording_consumer_request(session.consumer, 3);
    uva__producer_session_await_tasks(&session, 5);
    if (!uva__producer_session_stays_idle(&session))
        uva__case_run_fail(run, "%s: a task beyond 2 and 3 requested",
                           run->clause);
    uva__producer_session_stop(&session);
}

static void silence_without_demand(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {0};
    struct uva__producer_session session;

    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_WHOLE, 10, 0,
                                    &manner))
        return;
    uva__producer_session_await_schema(&session);
    if (!uva__producer_session_stays_idle(&session))
        uva__case_run_fail(run, "AH-10: a callback without a request");
    uva__producer_session_stop(&session);
}

static void progress_with_demand(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {0};
    struct uva__producer_session session;

    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_WHOLE, 20, 0,
                                    &manner))
        return;
    uva__producer_session_await_schema(&session);
    for (int64_t n = 1; n <= 20; n++) {
        uva__recording_consumer_request(session.consumer, 1);
        uva__producer_session_await_tasks(&session, n);
    }
    /* Some producers notice the end only then. Clauses:  Q-16. */
    uva__recording_consumer_request(session.consumer, 1);
    uva__producer_session_await_release(&session);
    uva__producer_session_settle(&session);
}

/* Each request meets an idle producer, so a callback on this stack can only
 * come from the request itself. */
static void requests_to_an_idle_one(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {0};
    struct uva__producer_session session;

    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_WHOLE, 3, 0,
                                    &manner))
        return;
    uva__producer_session_await_schema(&session);
    for (int64_t n = 0; n <= 3; n++) {
        uva__producer_session_await_tasks(&session, n);
        uva__producer_session_await_idle(&session);
        uva__recording_consumer_request(session.consumer, 1);
    }
    uva__producer_session_await_release(&session);
    uva__producer_session_settle(&session);
}

static void requests_saturate(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {
        .first = UVA__RECORDING_CONSUMER_ALL,
        .each = UVA__RECORDING_CONSUMER_ALL};
    struct uva__producer_session session;

    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_WHOLE, 10, 0,
                                    &manner))
        return;
    uva__producer_session_await_release(&session);
    uva__producer_session_settle(&session);
    if (session.consumer->now.ends != 1 || session.consumer->now.tasks != 10)
        uva__case_run_fail(run,
                           "AP-02: two requests of INT64_MAX: %" PRId64
                           " of 10 batches came",
                           session.consumer->now.tasks);
}

static void request_to_the_brim(struct uva__recording_consumer *consumer)
{
    uva__recording_consumer_request(consumer, INT64_MAX);
    uva__recording_consumer_request(consumer, 2);
}

/* Requests 2^64 batches in on_schema, so before any of them can come. */
static void requests_do_not_wrap(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {
        .first = INT64_MAX, .on_schema = request_to_the_brim};
    struct uva__producer_session session;

    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_WHOLE, 10, 0,
                                    &manner))
        return;
    if (!uva__case_run_soon(run, uva__recording_consumer_is_released,
                            session.consumer))
        uva__case_run_fail(run,
                           "AP-02: with 2^64 requested, %" PRId64
                           " of 10 batches came, and no end",
                           uva__recording_consumer_tasks(session.consumer));
    uva__producer_session_settle(&session);
    if (session.consumer->now.ends != 1 || session.consumer->now.tasks != 10)
        uva__case_run_fail(
            run, "AP-02: with 2^64 requested, %" PRId64 " of 10 batches came",
            session.consumer->now.tasks);
}

static void bad_request(struct uva__case_run *run, int64_t n)
{
    const struct uva__recording_consumer_manner manner = {.may_fail = true};
    struct uva__producer_session session;

    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_WHOLE, 10, 0,
                                    &manner))
        return;
    uva__producer_session_await_schema(&session);
    uva__recording_consumer_request(session.consumer, n);
    uva__case_run_await(
        run, uva__recording_consumer_is_released, session.consumer,
        "on_error and release, after a request for less than 1,");
    if (session.consumer->now.errors != 1 || session.consumer->now.tasks != 0)
        uva__case_run_fail(run,
                           "AP-09: request(%" PRId64 ") was not answered "
                           "by one on_error alone",
                           n);
    uva__producer_session_settle(&session);
}

static void bad_requests_are_errors(struct uva__case_run *run)
{
    bad_request(run, 0);
    bad_request(run, -1);
    bad_request(run, INT64_MIN);
}

/* Returns whether the source stops reading, which may take a while on a busy
 * machine. */
static bool source_comes_to_rest(struct uva__producer_session *session,
                                 const struct uva__case_run *run)
{
    int64_t made = -1;
    int same = 0;

    for (int i = 0; same < LOOKS_SAME && i < LOOKS_MAX; i++) {
        const int64_t before = made;

        (void)uva__producer_session_stays_idle(session);
        made = run->subject.count(UVA_SUBJECT_MADE);
        same = made == before ? same + 1 : 0;
    }
    return same == LOOKS_SAME;
}

static void reading_ahead_is_bounded(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {.first = 1};
    struct uva__producer_session session;

    if (run->subject.count == NULL ||
        run->subject.count(UVA_SUBJECT_MADE) == UVA_SUBJECT_CANNOT)
        uva__case_run_skip(run, "the subject does not count its objects");
    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_ENDLESS, 0, 0,
                                    &manner))
        return;
    uva__producer_session_await_tasks(&session, 1);
    if (!source_comes_to_rest(&session, run))
        uva__case_run_fail(run,
                           "AP-29: with one batch requested, batch %" PRId64
                           " is made, and more",
                           run->subject.count(UVA_SUBJECT_MADE));
    uva__producer_session_stop(&session);
}

/* ---- cancel ------------------------------------------------------------- */

/* The live batches and schemas that are expected in the end. */
struct queue {
    struct uva__case_run *run;
    int64_t live;
};

static bool queue_is_freed(void *ctx)
{
    const struct queue *queue = ctx;

    return queue->run->subject.count(UVA_SUBJECT_LIVE) <= queue->live;
}

/* Cancels while the source is inside a call that does not return, with batches
 * read ahead: they have to be freed before it returns, which may take hours. */
static void cancel_of_a_stuck(struct uva__case_run *run, int64_t batches)
{
    const struct uva__recording_consumer_manner manner = {.first = 1};
    const int64_t made = run->subject.count(UVA_SUBJECT_MADE);
    struct uva__producer_session *session =
        uva__case_run_alloc(run, sizeof(*session));
    struct queue queue = {.run = run};
    int64_t ahead;

    if (!uva__producer_session_open(session, run, UVA_SUBJECT_STUCK, batches, 0,
                                    &manner))
        return;
    uva__producer_session_await_tasks(session, 1);
    uva__producer_session_await_idle(session);
    if (!source_comes_to_rest(session, run))
        uva__case_run_fail(run, "a source that is stuck makes batches");
    ahead = run->subject.count(UVA_SUBJECT_MADE) - made - 1;
    queue.live = run->subject.count(UVA_SUBJECT_LIVE) - ahead; /* or less */
    uva__case_run_note(run, "   %" PRId64 " batches were read ahead", ahead);
    uva__recording_consumer_cancel(session->consumer);
    if (!uva__case_run_soon(run, queue_is_freed, &queue))
        uva__case_run_fail(
            run,
            "LC-22: %" PRId64 " batches or schemas are live "
            "after a cancel, with a source that is stuck; %" PRId64
            " without the batches read ahead",
            run->subject.count(UVA_SUBJECT_LIVE), queue.live);
}

/* A producer that reads few batches ahead is not stuck behind many. */
static void cancel_of_a_stuck_source(struct uva__case_run *run)
{
    if (run->subject.count == NULL ||
        run->subject.count(UVA_SUBJECT_MADE) == UVA_SUBJECT_CANNOT)
        uva__case_run_skip(run, "the subject does not count its objects");
    cancel_of_a_stuck(run, 2);
    cancel_of_a_stuck(run, 4);
}

/* Returns how many errors a run reports that is cancelled as `manner` requires.
 * Whether a cancel may be reported as an error is another clause. Clauses:
 * AP-16. */
static int64_t
cancel_errors(struct uva__case_run *run,
              const struct uva__recording_consumer_manner *manner)
{
    struct uva__producer_session *session =
        uva__case_run_alloc(run, sizeof(*session));

    if (!uva__producer_session_open(session, run, UVA_SUBJECT_WHOLE, 50, 0,
                                    manner))
        return 0;
    uva__producer_session_await_release(session);
    (void)uva__producer_session_stays_idle(session);
    uva__producer_session_settle(session);
    return session->consumer->now.errors;
}

static void requests_after_cancel(struct uva__case_run *run)
{
    struct uva__recording_consumer_manner manner = {
        .cancel_at = UVA__RECORDING_CONSUMER_IN_SCHEMA};
    const int64_t errors = cancel_errors(run, &manner);
    struct uva__producer_session session;

    manner.first = 5; /* requested after the cancel */
    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_WHOLE, 50, 0,
                                    &manner))
        return;
    uva__producer_session_await_release(&session);
    if (session.consumer->now.tasks > 0 ||
        session.consumer->now.errors > errors)
        uva__case_run_fail(run,
                           "AP-07: a request after cancel brought %" PRId64
                           " tasks and %" PRId64 " errors",
                           session.consumer->now.tasks,
                           session.consumer->now.errors);
    uva__producer_session_settle(&session);
}

static void cancel_often(struct uva__recording_consumer *consumer,
                         int64_t ordinal)
{
    for (int i = 0; ordinal == 1 && i < 1000; i++)
        uva__recording_consumer_cancel(consumer);
}

static void cancels_are_idempotent(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner once = {
        .first = 2, .each = 1, .cancel_at = 1};
    const struct uva__recording_consumer_manner manner = {
        .first = 2, .each = 1, .on_task = cancel_often};
    const int64_t errors = cancel_errors(run, &once);
    struct uva__producer_session session;

    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_WHOLE, 50, 0,
                                    &manner))
        return;
    uva__producer_session_await_release(&session);
    (void)uva__producer_session_stays_idle(&session);
    uva__producer_session_settle(&session);
    if (session.consumer->now.releases != 1)
        uva__case_run_fail(run, "AP-11: release came %" PRId64 " times",
                           session.consumer->now.releases);
    if (session.consumer->now.errors > errors)
        uva__case_run_fail(run, "AP-11: cancelled often, it reported an error, "
                                "cancelled once it did not");
}

/* Cancels while the producer is idle, so outside of callbacks. */
static void cancel_without_demand(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {0};
    struct uva__producer_session session;

    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_WHOLE, 10, 0,
                                    &manner))
        return;
    uva__producer_session_await_schema(&session);
    uva__producer_session_await_idle(&session);
    uva__producer_session_stop(&session);
}

static void thread_barrier_cancels(void *ctx)
{
    uva__recording_consumer_cancel(ctx);
}

static void cancel_by_a_threads(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {.first = 2,
                                                          .each = 1};

    for (int round = 0; round < 10; round++) {
        struct uva__producer_session *session =
            uva__case_run_alloc(run, sizeof(*session));

        if (!uva__producer_session_open(session, run, UVA_SUBJECT_ENDLESS, 0, 0,
                                        &manner))
            return;
        uva__producer_session_await_tasks(session, 3);
        uva__thread_barrier_run(run, 16, thread_barrier_cancels,
                                session->consumer);
        uva__producer_session_await_release(session);
        uva__producer_session_settle(session);
        if (session->consumer->now.releases != 1)
            uva__case_run_fail(run, "AP-12: release came %" PRId64 " times",
                               session->consumer->now.releases);
    }
}

/* Cancels at a moment that differs from round to round. */
static void cancel_anywhere(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {.first = 2,
                                                          .each = 1};

    for (int round = 0; round < 200; round++) {
        struct uva__producer_session *session =
            uva__case_run_alloc(run, sizeof(*session));

        if (!uva__producer_session_open(session, run, UVA_SUBJECT_WHOLE, 20, 0,
                                        &manner))
            return;
        uva__producer_session_await_schema(session);
        for (volatile int spin = 0; spin < round * 200; spin++)
            ;
        uva__recording_consumer_cancel(session->consumer);
        uva__producer_session_await_release(session);
        uva__producer_session_settle(session);
    }
}

/* ---- many threads ------------------------------------------------------- */

static void thread_barrier_requests(void *ctx)
{
    for (int i = 0; i < 50; i++)
        uva__recording_consumer_request(ctx, 1);
}

static void request_by_a_threads(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {0};
    struct uva__producer_session session;

    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_WHOLE, 1000, 0,
                                    &manner))
        return;
    uva__producer_session_await_schema(&session);
    uva__thread_barrier_run(run, 8, thread_barrier_requests, session.consumer);
    uva__producer_session_await_tasks(&session, 400);
    if (!uva__producer_session_stays_idle(&session))
        uva__case_run_fail(run, "AP-27: a task beyond 8 times 50 requested");
    uva__producer_session_stop(&session);
}

static void thread_barrier_meddles(void *ctx)
{
    struct uva__recording_consumer *consumer = ctx;

    for (int i = 0; i < 100; i++)
        uva__recording_consumer_request(consumer, 1);
    uva__recording_consumer_cancel(consumer);
}

static void all_at_once(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {
        .first = 2, .take = UVA__TAKE_ELSEWHERE};

    for (int round = 0; round < 5; round++) {
        struct uva__producer_session *session =
            uva__case_run_alloc(run, sizeof(*session));

        if (!uva__producer_session_open(session, run, UVA_SUBJECT_ENDLESS, 0, 0,
                                        &manner))
            return;
        uva__producer_session_await_schema(session);
        uva__thread_barrier_run(run, 4, thread_barrier_meddles,
                                session->consumer);
        uva__producer_session_await_release(session);
        uva__producer_session_settle(session);
    }
}

/* ---- while a callback blocks -------------------------------------------- */

/* In the second task: waits for the other thread's call. */
static void block_for(struct uva__recording_consumer *consumer, int64_t ordinal)
{
    if (ordinal != 1)
        return;
    uva__thread_barrier_run(consumer->run, 1,
                            (void (*)(void *))(uintptr_t)consumer->manner.ctx,
                            consumer);
}

/* Plays a stream and blocks in its second callback until `action` is done. */
static void blocked_run(struct uva__case_run *run, void (*action)(void *ctx))
{
    const struct uva__recording_consumer_manner manner = {
        .first = 4,
        .each = 1,
        .take = UVA__TAKE_LATER,
        .on_task = block_for,
        .ctx = (void *)(uintptr_t)action};
    struct uva__producer_session session;

    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_WHOLE, 8, 0,
                                    &manner))
        return;
    uva__producer_session_await_tasks(&session, 2);
    uva__producer_session_await_release(&session);
    uva__producer_session_settle(&session);
}

static void action_extract(void *ctx)
{
    (void)uva__recording_consumer_extract(ctx, 0, true);
}

static void action_call(void *ctx)
{
    for (int i = 0; i < 20;
         i++) /* more than a small queue holds. Clauses: Q-15. */
        uva__recording_consumer_request(ctx, 1);
    uva__recording_consumer_cancel(ctx);
}

static void action_request_all(void *ctx)
{
    uva__recording_consumer_request(ctx, 1);
    (void)uva__recording_consumer_extract(ctx, 0, true);
    uva__recording_consumer_cancel(ctx);
}

static void extraction_takes_no_lock(struct uva__case_run *run)
{
    blocked_run(run, action_extract);
}

static void calls_return_promptly(struct uva__case_run *run)
{
    blocked_run(run, action_call);
}

static void no_lock_over_callbacks(struct uva__case_run *run)
{
    blocked_run(run, action_request_all);
}

/* ---- the table ---------------------------------------------------------- */

static const struct uva__tck_case CASES[] = {
    {"required_AP04_request_outside_of_callbacks_calls_none",
     requests_to_an_idle_one, 0, NULL},
    {"recommended_AP05_request_calls_no_release", requests_to_an_idle_one, 0,
     NULL},
    {"required_AP06_no_more_tasks_when_all_requests_are_met", requests_add_up,
     0, NULL},
    {"required_AP02_requests_add_up", requests_add_up, 0, NULL},
    {"required_AP02_requests_beyond_int64_saturate", requests_saturate, 0,
     NULL},
    {"required_AP02_requests_for_two_to_the_64_do_not_wrap",
     requests_do_not_wrap, 0, NULL},
    {"required_AH10_silence_without_a_request", silence_without_demand, 0,
     NULL},
    {"required_AP26_each_request_brings_a_batch", progress_with_demand, 0,
     NULL},
    {"recommended_AP09_a_request_below_one_is_an_error",
     bad_requests_are_errors, 0, NULL},
    {"required_AP29_reading_ahead_is_bounded", reading_ahead_is_bounded, 0,
     NULL},
    {"required_AP07_a_request_after_cancel_does_nothing", requests_after_cancel,
     0, NULL},
    {"required_AP11_cancel_is_idempotent", cancels_are_idempotent, 0, NULL},
    {"recommended_LC22_a_cancel_frees_what_was_read_of_a_stuck_source",
     cancel_of_a_stuck_source, 0, NULL},
    {"required_AP14_release_follows_a_cancel_without_demand",
     cancel_without_demand, 0, NULL},
    {"required_AP13_cancel_outside_of_callbacks_calls_none",
     cancel_without_demand, 0, NULL},
    {"required_AP12_cancel_works_on_any_thread", cancel_by_a_threads, 0, NULL},
    {"optional_TH04_cancel_may_come_at_any_time", cancel_anywhere, 0, NULL},
    {"required_AP27_request_works_on_any_thread", request_by_a_threads, 0,
     NULL},
    {"required_TH05_everything_may_happen_at_once", all_at_once, 0, NULL},
    {"required_AT24_extraction_waits_for_no_callback", extraction_takes_no_lock,
     0, NULL},
    {"required_AP28_request_and_cancel_wait_for_no_callback",
     calls_return_promptly, 0, NULL},
    {"required_TH06_no_lock_is_held_over_a_callback", no_lock_over_callbacks, 0,
     NULL},
};

const struct uva__tck_table uva__producer_probe_cases = {
    CASES, sizeof(CASES) / sizeof(*CASES)};
