/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the role producer with a failure at an unusual moment: an extraction
 * on another thread, after the end, or while the producer waits for a request;
 * a cancel, while the source is busy or tasks are held. */
#include "tck/cases.h"
#include "tck/producer_session.h"
#include "tck/thread_barrier.h"

enum { BATCHES = 6, FAILING = 2 };

/* Plays a stream in which the extraction of task FAILING fails. */
static bool failing_open(struct uva__producer_session *session,
                         struct uva__case_run *run,
                         const struct uva__recording_consumer_manner *manner)
{
    return uva__producer_session_open(session, run, UVA_SUBJECT_TASK_FAILS,
                                      BATCHES, FAILING, manner);
}

/* Extracts the failing task, and checks that it does fail. */
static void failing_extract(struct uva__producer_session *session)
{
    if (uva__recording_consumer_tasks(session->consumer) <= FAILING)
        uva__case_run_fail(session->run, "the task that fails did not come");
    if (uva__recording_consumer_extract(session->consumer, FAILING, true) == 0)
        uva__case_run_breach(session->run, "AT-07",
                             "the failing extraction returned 0");
}

/* ---- on another thread -------------------------------------------------- */

static void action_extract(void *ctx)
{
    (void)uva__recording_consumer_extract(ctx, FAILING, true);
}

/* In the task after the failing one: has another thread extract that. */
static void extract_elsewhere(struct uva__recording_consumer *consumer,
                              int64_t ordinal)
{
    if (ordinal == FAILING + 1)
        uva__thread_barrier_run(consumer->run, 1, action_extract, consumer);
}

static void failure_beside_a_callback(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {
        .first = UVA__RECORDING_CONSUMER_ALL,
        .take = UVA__TAKE_LATER,
        .may_fail = true,
        .on_task = extract_elsewhere};
    struct uva__producer_session session;

    if (!failing_open(&session, run, &manner))
        return;
    uva__producer_session_await_release(&session);
    uva__producer_session_settle(&session);
}

/* ---- after the end ------------------------------------------------------ */

/* Extracts the failing task after NULL: before release, if that waits for the
 * tasks, and otherwise after it, when nobody can report the failure any more: a
 * producer with tasks that may fail has to wait. Clauses: G-17. */
static void failure_behind_the_end(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {
        .first = UVA__RECORDING_CONSUMER_ALL,
        .take = UVA__TAKE_LATER,
        .may_fail = true};
    struct uva__producer_session session;

    if (!failing_open(&session, run, &manner))
        return;
    uva__case_run_await(run, uva__recording_consumer_has_ended,
                        session.consumer, "the end");
    (void)uva__case_run_quiet(run, uva__recording_consumer_is_released,
                              session.consumer);
    failing_extract(&session);
    uva__producer_session_await_release(&session);
    uva__producer_session_settle(&session);
    (void)uva__producer_session_stays_idle(&session);
    if (session.consumer->now.errors == 0)
        uva__case_run_breach(run, "ER-05",
                             "no on_error reported the extraction");
}

/* ---- while the producer waits ------------------------------------------- */

static void failure_without_demand(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {
        .first = FAILING + 1, .take = UVA__TAKE_LATER, .may_fail = true};
    struct uva__producer_session session;

    if (!failing_open(&session, run, &manner))
        return;
    uva__producer_session_await_tasks(&session, FAILING + 1);
    uva__producer_session_await_idle(&session);
    failing_extract(&session);
    (void)uva__case_run_quiet(run, uva__recording_consumer_has_ended,
                              session.consumer);
    uva__producer_session_stop(&session);
}

/* ---- cancels ------------------------------------------------------------ */

static void action_extract_first(void *ctx)
{
    (void)uva__recording_consumer_extract(ctx, 0, true);
}

/* Waits in on_error until another thread has extracted a task that is held,
 * which needs a lock of the producer. */
static void extract_in_error(struct uva__recording_consumer *consumer)
{
    uva__thread_barrier_run(consumer->run, 1, action_extract_first, consumer);
}

static void no_lock_over_the_error_of_a_cancel(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {
        .first = 2,
        .take = UVA__TAKE_LATER,
        .may_fail = true,
        .on_error = extract_in_error};
    struct uva__producer_session session;

    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_CANCEL_FAILS, 0,
                                    0, &manner))
        return;
    uva__producer_session_await_tasks(&session, 2);
    uva__producer_session_await_idle(&session);
    if (!uva__recording_consumer_has_ended(session.consumer))
        uva__recording_consumer_cancel(session.consumer);
    uva__case_run_await(run, uva__recording_consumer_has_ended,
                        session.consumer, "on_error or release");
    uva__producer_session_await_idle(&session); /* on_error extracts */
    uva__producer_session_stop(&session);
}

/* Cancels while the source is making the next batch, outside of callbacks. That
 * batch then arrives too late. */
static void cancel_of_a_busy_source(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {
        .first = UVA__RECORDING_CONSUMER_ALL};

    for (int64_t tasks = 0; tasks < 4; tasks++) {
        struct uva__producer_session *session =
            uva__case_run_alloc(run, sizeof(*session));

        if (!uva__producer_session_open(session, run, UVA_SUBJECT_SLOW, 20, 0,
                                        &manner))
            return;
        uva__producer_session_await_schema(session);
        uva__producer_session_await_tasks(session, tasks);
        uva__case_run_await(run, uva__recording_consumer_is_idle,
                            session->consumer, "the return of a callback");
        uva__producer_session_stop(session);
        (void)uva__producer_session_stays_idle(session);
    }
    uva__producer_session_check_live(run);
}

/* ---- the table ---------------------------------------------------------- */

static const struct uva__tck_case CASES[] = {
    {"required_AT23_no_callback_inside_an_extraction_by_another_thread",
     failure_beside_a_callback, 0, NULL},
    {"required_AH22_nothing_follows_release_if_an_extraction_fails_late",
     failure_behind_the_end, 0, NULL},
    {"recommended_ER05_a_failed_extraction_behind_the_end_is_reported_twice",
     failure_behind_the_end, 0, NULL},
    {"required_AP14_release_follows_a_cancel_behind_a_failed_extraction",
     failure_without_demand, 0, NULL},
    {"required_TH06_no_lock_is_held_over_the_error_of_a_cancel",
     no_lock_over_the_error_of_a_cancel, 0, NULL},
    {"required_LC22_nothing_is_left_after_a_cancel_of_a_busy_source",
     cancel_of_a_busy_source, 0, NULL},
};

const struct uva__tck_table uva__producer_failure_cases = {
    CASES, sizeof(CASES) / sizeof(*CASES)};
