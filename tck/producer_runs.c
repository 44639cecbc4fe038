/* SPDX-License-Identifier: Apache-2.0 */
/* The scenarios, and the checks of their plans that go beyond the rules checked
 * by the recording consumer. */
#include "tck/producer_runs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tck/checker.h"
#include "tck/expected_data.h"
#include "tck/producer_session.h"

/* A scenario. */
struct scenario {
    enum uva_subject_plan plan;
    int64_t batches;
    int64_t at;
    struct uva__recording_consumer_manner manner;
};

/* Checks a task of a TAGGED plan: its metadata holds its number. */
static void run_check_tag(struct uva__recording_consumer *consumer,
                          int64_t ordinal)
{
    char number[24];

    (void)snprintf(number, sizeof(number), "%" PRId64, ordinal);
    if (consumer->now.tag_size != (int64_t)strlen(number) ||
        memcmp(consumer->now.tag, number, strlen(number)) != 0)
        uva__case_run_breach(consumer->run, "MD-03",
                             "task %" PRId64 " came with other metadata",
                             ordinal);
}

static bool run_is_released(void *ctx)
{
    struct uva__recording_consumer *consumer = ctx;
    int64_t releases;

    uva__lock_take(&consumer->lock);
    releases = consumer->now.releases;
    uva__lock_drop(&consumer->lock);
    return releases > 0;
}

/* Gives a release that comes too early, on another thread, time to happen. */
static void run_stop_and_stay(struct uva__recording_consumer *consumer,
                              int64_t ordinal)
{
    if (ordinal != 1)
        return;
    uva__recording_consumer_cancel(consumer);
    (void)uva__case_run_quiet(consumer->run, run_is_released, consumer);
}

#define STREAM_OF(n) .plan = UVA_SUBJECT_WHOLE, .batches = (n)

static const struct scenario SCENARIOS[SCENARIO_COUNT] = {
    [EACH] = {STREAM_OF(10), .manner = {.first = 1, .each = 1}},
    [ALL] = {STREAM_OF(10), .manner = {.first = UVA__RECORDING_CONSUMER_ALL}},
    [SOME] = {STREAM_OF(20),
              .manner = {.first = 3, .each = 1, .take = UVA__TAKE_ELSEWHERE}},
    [AROUND] = {STREAM_OF(10), .manner = {.first = 1,
                                          .each = 1,
                                          .request_by_thread = true,
                                          .take = UVA__TAKE_ELSEWHERE}},
    [NOTHING] = {STREAM_OF(10),
                 .manner = {.first = 2, .each = 1, .take = UVA__TAKE_NOTHING}},
    [LATER] = {STREAM_OF(10), .manner = {.first = UVA__RECORDING_CONSUMER_ALL,
                                         .take = UVA__TAKE_LATER,
                                         .keep_arrays = true}},
    [KEPT] = {STREAM_OF(10),
              .manner = {.first = 2, .each = 1, .keep_arrays = true}},
    [EMPTY] = {STREAM_OF(0), .manner = {.first = 1}},
    [LINGERS] = {STREAM_OF(6), .manner = {.first = 4,
                                          .each = 1,
                                          .linger_ms = 2,
                                          .take = UVA__TAKE_ELSEWHERE}},
    [SLOW] = {UVA_SUBJECT_SLOW, 4, 0, .manner = {.first = 1, .each = 1}},
    [SCRIBBLES] = {STREAM_OF(6), .manner = {.first = 2,
                                            .each = 1,
                                            .take = UVA__TAKE_LATER,
                                            .scribble = true}},
    [VANISHES] = {STREAM_OF(3), .manner = {.first = UVA__RECORDING_CONSUMER_ALL,
                                           .vanish = true}},
    [LEAVES] = {STREAM_OF(2),
                .manner = {.first = 1, .each = 1, .schema = UVA__SCHEMA_LEAVE}},
    [LEAVES_REFUSING] = {STREAM_OF(2),
                         .manner = {.schema = UVA__SCHEMA_LEAVE,
                                    .refuse_at =
                                        UVA__RECORDING_CONSUMER_IN_SCHEMA}},
    [TAGGED] = {UVA_SUBJECT_TAGGED, 5, 0,
                .manner = {.first = 2, .each = 1, .on_task = run_check_tag}},
    [TAGGED_FAILS] = {UVA_SUBJECT_TAGGED_FAILS, 2, 0,
                      .manner = {.first = 3, .each = 1, .may_fail = true}},
    [STOP_SCHEMA] = {STREAM_OF(10),
                     .manner = {.first = 1,
                                .each = 1,
                                .cancel_at =
                                    UVA__RECORDING_CONSUMER_IN_SCHEMA}},
    [STOP_FIRST] = {STREAM_OF(10),
                    .manner = {.first = 1, .each = 1, .cancel_at = 1}},
    [STOP_THIRD] = {STREAM_OF(10),
                    .manner = {.first = UVA__RECORDING_CONSUMER_ALL,
                               .cancel_at = 3}},
    [STOP_LAST] = {STREAM_OF(5),
                   .manner = {.first = 2, .each = 1, .cancel_at = 5}},
    [STOP_ENDLESS] = {UVA_SUBJECT_ENDLESS, 0, 0,
                      .manner = {.first = 4,
                                 .each = 1,
                                 .cancel_at = 4,
                                 .request_by_thread = true,
                                 .take = UVA__TAKE_ELSEWHERE}},
    [STOP_LATER] = {STREAM_OF(10), .manner = {.first = 5,
                                              .cancel_at = 3,
                                              .take = UVA__TAKE_LATER,
                                              .keep_arrays = true}},
    [STOP_FAILS] =
        {UVA_SUBJECT_CANCEL_FAILS, 0, 0,
         .manner = {.first = 2, .each = 1, .cancel_at = 2, .may_fail = true}},
    [STOP_STAYS] = {STREAM_OF(10), .manner = {.first = 2,
                                              .each = 1,
                                              .on_task = run_stop_and_stay}},
    [NO_SCHEMA] = {STREAM_OF(10),
                   .manner = {.refuse_at = UVA__RECORDING_CONSUMER_IN_SCHEMA}},
    [NO_FIRST] = {STREAM_OF(10),
                  .manner = {.first = 1, .each = 1, .refuse_at = 1}},
    [NO_THIRD] = {STREAM_OF(10),
                  .manner = {.first = UVA__RECORDING_CONSUMER_ALL,
                             .refuse_at = 3}},
    [NO_LATER] = {STREAM_OF(10),
                  .manner = {.first = UVA__RECORDING_CONSUMER_ALL,
                             .refuse_at = 3,
                             .take = UVA__TAKE_LATER,
                             .keep_arrays = true}},
    [NO_TAKEN] = {STREAM_OF(10), .manner = {.first = 3,
                                            .each = 1,
                                            .refuse_at = 2,
                                            .refuse_taken = true}},
    [FAILS] = {UVA_SUBJECT_FAILS, 3, 0,
               .manner = {.first = 1, .each = 1, .may_fail = true}},
    [FAILS_AT_ONCE] = {UVA_SUBJECT_FAILS, 0, 0,
                       .manner = {.first = 2, .may_fail = true}},
    [FAILS_FIRST] = {UVA_SUBJECT_FAILS_FIRST, 0, 0,
                     .manner = {.may_fail = true}},
    [FAILS_LATER] = {UVA_SUBJECT_FAILS, 3, 0,
                     .manner = {.first = UVA__RECORDING_CONSUMER_ALL,
                                .take = UVA__TAKE_LATER,
                                .may_fail = true}},
    [FAILS_ASKED] = {UVA_SUBJECT_FAILS, 3, 0,
                     .manner = {.first = UVA__RECORDING_CONSUMER_ALL,
                                .may_fail = true}},
    [TASK_FAILS] = {UVA_SUBJECT_TASK_FAILS, 6, 2,
                    .manner = {.first = 2, .each = 1, .may_fail = true}},
    [TASK_FAILS_LAST] = {UVA_SUBJECT_TASK_FAILS, 4, 3,
                         .manner = {.first = 2, .each = 1, .may_fail = true}},
};

/* ---- one scenario ------------------------------------------------------- */

static void run_check_whole(struct uva__producer_session *session)
{
    struct uva__case_run *run = session->run;
    const struct uva__recording_consumer *consumer = session->consumer;

    if (consumer->now.failed > 0)
        uva__case_run_fail(run, "%s: an extraction failed", run->clause);
    if (consumer->now.errors > 0)
        uva__case_run_fail(run, "the stream failed: %s", consumer->now.message);
    if (consumer->now.tasks < session->batches)
        uva__case_run_breach(run, "ER-09",
                             "the end after %" PRId64 " of %" PRId64 " batches",
                             consumer->now.tasks, session->batches);
    if (consumer->now.tasks > session->batches)
        uva__case_run_breach(run, "AT-15", "more batches than there are");
}

/* Checks that the batches before a failure came, if all were requested: an
 * error may overtake batches without a request. */
static void run_check_before_failure(struct uva__producer_session *session)
{
    const struct uva__recording_consumer *consumer = session->consumer;

    if ((session->plan == UVA_SUBJECT_FAILS ||
         session->plan == UVA_SUBJECT_TAGGED_FAILS) &&
        consumer->manner.first >= session->batches &&
        consumer->now.tasks < session->batches)
        uva__case_run_breach(session->run, "AP-26",
                             "the failure after %" PRId64 " of %" PRId64
                             " batches",
                             consumer->now.tasks, session->batches);
}

static void run_check_failure(struct uva__producer_session *session)
{
    struct uva__case_run *run = session->run;
    const struct uva__recording_consumer *consumer = session->consumer;

    if (consumer->now.ends > 0 &&
        (session->plan != UVA_SUBJECT_TASK_FAILS || consumer->now.errors == 0))
        uva__case_run_breach(run, "ER-09", "a failure was reported as an end");
    if (consumer->now.errors > 0 && consumer->now.error_code == 0)
        uva__case_run_breach(run, "ER-01", "a failure with code 0");
    if (consumer->now.errors > 0 && consumer->now.error_code != EIO)
        uva__case_run_breach(run, "ER-02", "EIO arrived as %d",
                             consumer->now.error_code);
    run_check_before_failure(session);
    if (consumer->now.errors > 0)
        return;
    if (session->plan == UVA_SUBJECT_TASK_FAILS) {
        uva__case_run_breach(run, "AT-08",
                             "no on_error reported the extraction");
        uva__case_run_breach(run, "ER-05",
                             "no on_error reported the extraction");
    } else {
        uva__case_run_breach(run, "ER-03", "no on_error reported the failure");
        uva__case_run_breach(run, "AH-18", "no on_error reported the failure");
    }
}

static void run_check_tags(struct uva__producer_session *session)
{
    struct uva__case_run *run = session->run;
    const struct uva__recording_consumer *consumer = session->consumer;

    if (session->plan == UVA_SUBJECT_TAGGED && consumer->about == NULL)
        uva__case_run_breach(run, "AP-19", "no additional_metadata");
    if (session->plan == UVA_SUBJECT_TAGGED_FAILS &&
        (consumer->now.tag_size != 5 ||
         memcmp(consumer->now.tag, "a\0b\0c", 5) != 0))
        uva__case_run_breach(run, "MD-06", "the error's metadata is wrong");
}

/* Checks tasks that were extracted after the end, whatever that was: tasks of
 * the plan do not fail by themselves. */
static void run_check_later(struct uva__producer_session *session)
{
    const struct uva__recording_consumer *consumer = session->consumer;

    if (consumer->manner.take != UVA__TAKE_LATER || consumer->now.failed == 0 ||
        session->plan == UVA_SUBJECT_TASK_FAILS)
        return;
    uva__case_run_breach(session->run, "AH-34",
                         "%" PRId64 " tasks failed that were held at the end",
                         consumer->now.failed);
    uva__case_run_breach(session->run, "LC-16",
                         "%" PRId64 " tasks failed that were held at the end",
                         consumer->now.failed);
}

/* Checks the promises of the plan, apart from the rules. */
static void run_check_plan(struct uva__producer_session *session)
{
    struct uva__case_run *run = session->run;
    const struct uva__recording_consumer *consumer = session->consumer;

    if (consumer->now.ends > 0 && consumer->now.errors > 0 &&
        consumer->now.failed == 0)
        uva__case_run_breach(run, "ER-10", "an end and an error");
    if (session->plan == UVA_SUBJECT_TASK_FAILS && consumer->now.failed == 0)
        uva__case_run_breach(run, "AT-07", "the failing extraction returned 0");
    if (session->plan == UVA_SUBJECT_CANCEL_FAILS) {
        if (consumer->now.errors == 0)
            uva__case_run_breach(run, "AP-17", "no on_error reported it");
    } else if (session->consumer->manner.may_fail) {
        run_check_failure(session);
    } else if (!consumer->now.cancelled && !consumer->now.refused) {
        run_check_whole(session);
    }
    run_check_tags(session);
    run_check_later(session);
}

static void run_play(struct uva__case_run *run, const struct scenario *scenario)
{
    struct uva__producer_session *session =
        uva__case_run_alloc(run, sizeof(*session));
    struct uva__recording_consumer_manner manner = scenario->manner;

    if (!uva__producer_session_open(session, run, scenario->plan,
                                    scenario->batches, scenario->at, &manner))
        return;
    uva__producer_session_await_release(session);
    if ((run->what->arg & QUIET) != 0)
        (void)uva__producer_session_stays_idle(session);
    uva__producer_session_settle(session);
    run_check_plan(session);
}

void uva__producer_runs_play(struct uva__case_run *run)
{
    for (int scenario = 0; scenario < SCENARIO_COUNT * 2; scenario++) {
        run->checked = scenario >= SCENARIO_COUNT;
        if ((run->what->arg & BIT(scenario % SCENARIO_COUNT)) != 0)
            run_play(run, &SCENARIOS[scenario % SCENARIO_COUNT]);
    }
    if (uva__atomic64_load(&run->played) > 0 &&
        (run->what->arg & ALL_FREED) != 0)
        uva__producer_session_check_live(run);
}
