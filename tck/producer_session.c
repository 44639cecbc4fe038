/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a producer and waits for it. Another thread starts it, because the
 * call may return only when the stream is over. */
#include "tck/producer_session.h"

#include <inttypes.h>
#include <string.h>

#include "tck/checker.h"

static bool session_is_answered(void *ctx)
{
    struct uva__producer_session *session = ctx;

    return uva__atomic64_load(&session->answered) != 0 ||
           uva__recording_consumer_has_ended(session->consumer) ||
           uva__recording_consumer_has_schema(session->consumer);
}

static void *session_start(void *ctx)
{
    struct uva__producer_session *session = ctx;

    session->code = uva__subject_produce(
        &session->run->subject, session->plan, session->batches, session->at,
        uva__checker_front(session->run, UVA_PARTY_PRODUCER,
                           session->consumer->handler));
    uva__atomic64_store(&session->answered, 1);
    uva__case_run_changed(session->run);
    return NULL;
}

bool uva__producer_session_open(
    struct uva__producer_session *session, struct uva__case_run *run,
    enum uva_subject_plan plan, int64_t batches, int64_t at,
    const struct uva__recording_consumer_manner *manner)
{
    *session = (struct uva__producer_session){
        .run = run,
        .consumer = uva__recording_consumer_new(run, manner),
        .plan = plan,
        .batches = batches,
        .at = at};
    uva__case_run_note(run, "-- produce(plan %d, %" PRId64 ", %" PRId64 ")%s",
                       (int)plan, batches, at, run->checked ? ", checked" : "");
    uva__case_run_thread(run, session_start, session);
    uva__case_run_await(run, session_is_answered, session,
                        "an answer of uva_subject_produce(), or a callback,");
    return uva__case_run_can(
        run, uva__atomic64_load(&session->answered) != 0 ? session->code : 0,
        plan == UVA_SUBJECT_WHOLE, "uva_subject_produce()");
}

void uva__producer_session_await_schema(struct uva__producer_session *session)
{
    uva__case_run_await(session->run, uva__recording_consumer_has_schema,
                        session->consumer, "on_schema");
}

/* Argument of a wait. */
struct goal {
    struct uva__recording_consumer *consumer;
    int64_t tasks;
};

static bool goal_is_met(void *ctx)
{
    struct goal *goal = ctx;

    return uva__recording_consumer_tasks(goal->consumer) >= goal->tasks;
}

void uva__producer_session_await_tasks(struct uva__producer_session *session,
                                       int64_t n)
{
    struct goal goal = {session->consumer, n};

    uva__case_run_await(session->run, goal_is_met, &goal, "a task");
}

/* Extracts the tasks not taken so far, if their callback has returned. */
static void session_extract(struct uva__producer_session *session)
{
    struct uva__recording_consumer *consumer = session->consumer;
    const int64_t tasks = uva__recording_consumer_tasks(consumer);

    for (int64_t i = 0; i < tasks; i++)
        if (!consumer->tasks[i].taken && consumer->tasks[i].copy.extract_data)
            (void)uva__recording_consumer_extract(consumer, i, true);
}

/* If tasks may fail, a producer releases the handler only after they are
 * extracted, so that it can still report a failure. Clauses:  G-17. */
static void session_unlock(struct uva__producer_session *session)
{
    uva__case_run_await(session->run, uva__recording_consumer_has_ended,
                        session->consumer, "the end, an error or release");
    if (!uva__case_run_quiet(session->run, uva__recording_consumer_is_released,
                             session->consumer))
        return;
    uva__case_run_note(session->run,
                       "   release waits for the tasks, it seems");
    session_extract(session);
}

void uva__producer_session_await_release(struct uva__producer_session *session)
{
    if (session->consumer->manner.take == UVA__TAKE_LATER)
        session_unlock(session);
    uva__case_run_await(session->run, uva__recording_consumer_is_released,
                        session->consumer, "release");
    uva__case_run_await(session->run, uva__recording_consumer_is_settled,
                        session->consumer,
                        "the return of a call into the producer");
}

void uva__producer_session_settle(struct uva__producer_session *session)
{
    struct uva__recording_consumer *consumer = session->consumer;
    const int64_t tasks = uva__recording_consumer_tasks(consumer);

    session_extract(session);
    for (int64_t i = 0; i < tasks; i++)
        uva__recording_consumer_release_array(consumer, i);
    if (consumer->schema.release != NULL)
        consumer->schema.release(&consumer->schema);
}

void uva__producer_session_stop(struct uva__producer_session *session)
{
    if (!uva__recording_consumer_has_ended(session->consumer))
        uva__recording_consumer_cancel(session->consumer);
    uva__producer_session_await_release(session);
    uva__producer_session_settle(session);
}

/* Argument of a wait. */
struct silence {
    struct uva__recording_consumer *consumer;
    size_t letters;
};

static bool silence_is_over(void *ctx)
{
    struct silence *silence = ctx;
    char trace[UVA__RECORDING_CONSUMER_TRACE + 1];

    uva__recording_consumer_trace(silence->consumer, trace);
    return strlen(trace) != silence->letters;
}

bool uva__producer_session_stays_idle(struct uva__producer_session *session)
{
    char trace[UVA__RECORDING_CONSUMER_TRACE + 1];
    struct silence silence = {.consumer = session->consumer};

    uva__recording_consumer_trace(session->consumer, trace);
    silence.letters = strlen(trace);
    return uva__case_run_quiet(session->run, silence_is_over, &silence);
}

void uva__producer_session_await_idle(struct uva__producer_session *session)
{
    uva__case_run_await(session->run, uva__recording_consumer_is_idle,
                        session->consumer, "the return of a callback");
    (void)uva__producer_session_stays_idle(session);
}

/* ---- objects that remain ------------------------------------------------ */

static bool nothing_is_live(void *ctx)
{
    const struct uva__case_run *run = ctx;

    return run->subject.count((int32_t)UVA_SUBJECT_LIVE) == 0;
}

void uva__producer_session_check_live(struct uva__case_run *run)
{
    if (run->subject.count == NULL ||
        run->subject.count((int32_t)UVA_SUBJECT_LIVE) == UVA_SUBJECT_CANNOT)
        uva__case_run_skip(
            run, "the subject does not count its objects: uva_subject_count()");
    if (!uva__case_run_soon(run, nothing_is_live, run))
        uva__case_run_fail(run,
                           "%" PRId64 " batches or schemas of the subject were "
                           "never freed",
                           run->subject.count((int32_t)UVA_SUBJECT_LIVE));
}
