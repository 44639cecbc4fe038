/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the role producer about requests and cancels that an ordinary run
 * does not make: too few, too many, too late, by many threads, while a callback
 * blocks. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tck/cases.h"
#include "tck/thread_barrier.h"
#include "tck/session.h"

enum {
    LOOKS_MAX = 40,
    LOOKS_SAME = 5 /* looks in a row: a busy machine may delay a thread */
};

/* ---- demand ------------------------------------------------------------- */

static void requests_add_up(struct uva__trial *trial)
{
    const struct uva__probe_manner manner = {0};
    struct uva__scene scene;

    if (!uva__scene_open(&scene, trial, UVA_SUBJECT_WHOLE, 100, 0, &manner))
        return;
    uva__scene_await_schema(&scene);
    uva__probe_request(scene.probe, 2);
    uva__probe_request(scene.probe, 3);
    uva__scene_await_tasks(&scene, 5);
    if (!uva__scene_is_quiet(&scene))
        uva__trial_fail(trial, "%s: a task beyond 2 and 3 requested",
                        trial->clause);
    uva__scene_stop(&scene);
}

static void silence_without_demand(struct uva__trial *trial)
{
    const struct uva__probe_manner manner = {0};
    struct uva__scene scene;

    if (!uva__scene_open(&scene, trial, UVA_SUBJECT_WHOLE, 10, 0, &manner))
        return;
    uva__scene_await_schema(&scene);
    if (!uva__scene_is_quiet(&scene))
        uva__trial_fail(trial, "AH-10: a callback without a request");
    uva__scene_stop(&scene);
}

static void progress_with_demand(struct uva__trial *trial)
{
    const struct uva__probe_manner manner = {0};
    struct uva__scene scene;

    if (!uva__scene_open(&scene, trial, UVA_SUBJECT_WHOLE, 20, 0, &manner))
        return;
    uva__scene_await_schema(&scene);
    for (int64_t n = 1; n <= 20; n++) {
        uva__probe_request(scene.probe, 1);
        uva__scene_await_tasks(&scene, n);
    }
    /* Some producers notice the end only then. Clause: Q-16. */
    uva__probe_request(scene.probe, 1);
    uva__scene_await_release(&scene);
    uva__scene_settle(&scene);
}

/* Each request meets an idle producer, so a callback on this stack can only
 * come from the request itself. */
static void requests_to_an_idle_one(struct uva__trial *trial)
{
    const struct uva__probe_manner manner = {0};
    struct uva__scene scene;

    if (!uva__scene_open(&scene, trial, UVA_SUBJECT_WHOLE, 3, 0, &manner))
        return;
    uva__scene_await_schema(&scene);
    for (int64_t n = 0; n <= 3; n++) {
        uva__scene_await_tasks(&scene, n);
        uva__scene_await_rest(&scene);
        uva__probe_request(scene.probe, 1);
    }
    uva__scene_await_release(&scene);
    uva__scene_settle(&scene);
}

static void requests_saturate(struct uva__trial *trial)
{
    const struct uva__probe_manner manner = {.first = UVA__PROBE_ALL,
                                             .each = UVA__PROBE_ALL};
    struct uva__scene scene;

    if (!uva__scene_open(&scene, trial, UVA_SUBJECT_WHOLE, 10, 0, &manner))
        return;
    uva__scene_await_release(&scene);
    uva__scene_settle(&scene);
    if (scene.probe->now.ends != 1 || scene.probe->now.tasks != 10)
        uva__trial_fail(trial,
                        "AP-02: two requests of INT64_MAX: %" PRId64
                        " of 10 batches came",
                        scene.probe->now.tasks);
}

static void bad_request(struct uva__trial *trial, int64_t n)
{
    const struct uva__probe_manner manner = {.may_fail = true};
    struct uva__scene scene;

    if (!uva__scene_open(&scene, trial, UVA_SUBJECT_WHOLE, 10, 0, &manner))
        return;
    uva__scene_await_schema(&scene);
    uva__probe_request(scene.probe, n);
    uva__trial_await(trial, uva__probe_is_released, scene.probe,
                     "on_error and release, after a request for less than 1,");
    if (scene.probe->now.errors != 1 || scene.probe->now.tasks != 0)
        uva__trial_fail(trial,
                        "AP-09: request(%" PRId64 ") was not answered "
                        "by one on_error alone",
                        n);
    uva__scene_settle(&scene);
}

static void bad_requests_are_errors(struct uva__trial *trial)
{
    bad_request(trial, 0);
    bad_request(trial, -1);
    bad_request(trial, INT64_MIN);
}

/* Returns whether the source stops reading, which may take a while on a busy
 * machine. */
static bool source_comes_to_rest(struct uva__scene *scene,
                                 const struct uva__trial *trial)
{
    int64_t made = -1;
    int same = 0;

    for (int i = 0; same < LOOKS_SAME && i < LOOKS_MAX; i++) {
        const int64_t before = made;

        (void)uva__scene_is_quiet(scene);
        made = trial->subject.count(UVA_SUBJECT_MADE);
        same = made == before ? same + 1 : 0;
    }
    return same == LOOKS_SAME;
}

static void reading_ahead_is_bounded(struct uva__trial *trial)
{
    const struct uva__probe_manner manner = {.first = 1};
    struct uva__scene scene;

    if (trial->subject.count == NULL ||
        trial->subject.count(UVA_SUBJECT_MADE) == UVA_SUBJECT_CANNOT)
        uva__trial_skip(trial, "the subject does not count what it makes");
    if (!uva__scene_open(&scene, trial, UVA_SUBJECT_ENDLESS, 0, 0, &manner))
        return;
    uva__scene_await_tasks(&scene, 1);
    if (!source_comes_to_rest(&scene, trial))
        uva__trial_fail(trial,
                        "AP-29: with one batch requested, batch %" PRId64
                        " is made, and more",
                        trial->subject.count(UVA_SUBJECT_MADE));
    uva__scene_stop(&scene);
}

/* ---- cancel ------------------------------------------------------------- */

/* Returns how many errors a run reports that is cancelled as `manner` requires.
 * Whether a cancel may be reported as an error is another clause, AP-16. */
static int64_t cancel_errors(struct uva__trial *trial,
                             const struct uva__probe_manner *manner)
{
    struct uva__scene *scene = uva__trial_alloc(trial, sizeof(*scene));

    if (!uva__scene_open(scene, trial, UVA_SUBJECT_WHOLE, 50, 0, manner))
        return 0;
    uva__scene_await_release(scene);
    (void)uva__scene_is_quiet(scene);
    uva__scene_settle(scene);
    return scene->probe->now.errors;
}

static void requests_after_cancel(struct uva__trial *trial)
{
    struct uva__probe_manner manner = {.cancel_at = UVA__PROBE_IN_SCHEMA};
    const int64_t errors = cancel_errors(trial, &manner);
    struct uva__scene scene;

    manner.first = 5; /* requested after the cancel */
    if (!uva__scene_open(&scene, trial, UVA_SUBJECT_WHOLE, 50, 0, &manner))
        return;
    uva__scene_await_release(&scene);
    if (scene.probe->now.tasks > 0 || scene.probe->now.errors > errors)
        uva__trial_fail(trial,
                        "AP-07: a request behind cancel brought %" PRId64
                        " tasks and %" PRId64 " errors",
                        scene.probe->now.tasks, scene.probe->now.errors);
    uva__scene_settle(&scene);
}

static void cancel_often(struct uva__probe *probe, int64_t ordinal)
{
    for (int i = 0; ordinal == 1 && i < 1000; i++)
        uva__probe_cancel(probe);
}

static void cancels_are_idempotent(struct uva__trial *trial)
{
    const struct uva__probe_manner once = {
        .first = 2, .each = 1, .cancel_at = 1};
    const struct uva__probe_manner manner = {
        .first = 2, .each = 1, .on_task = cancel_often};
    const int64_t errors = cancel_errors(trial, &once);
    struct uva__scene scene;

    if (!uva__scene_open(&scene, trial, UVA_SUBJECT_WHOLE, 50, 0, &manner))
        return;
    uva__scene_await_release(&scene);
    (void)uva__scene_is_quiet(&scene);
    uva__scene_settle(&scene);
    if (scene.probe->now.releases != 1)
        uva__trial_fail(trial, "AP-11: release came %" PRId64 " times",
                        scene.probe->now.releases);
    if (scene.probe->now.errors > errors)
        uva__trial_fail(trial, "AP-11: cancelled often, it said an error, "
                               "cancelled once it did not");
}

/* Cancels while the producer is idle, so outside of callbacks. */
static void cancel_without_demand(struct uva__trial *trial)
{
    const struct uva__probe_manner manner = {0};
    struct uva__scene scene;

    if (!uva__scene_open(&scene, trial, UVA_SUBJECT_WHOLE, 10, 0, &manner))
        return;
    uva__scene_await_schema(&scene);
    uva__scene_await_rest(&scene);
    uva__scene_stop(&scene);
}

static void crowd_cancels(void *ctx)
{
    uva__probe_cancel(ctx);
}

static void cancel_by_a_crowd(struct uva__trial *trial)
{
    const struct uva__probe_manner manner = {.first = 2, .each = 1};

    for (int round = 0; round < 10; round++) {
        struct uva__scene *scene = uva__trial_alloc(trial, sizeof(*scene));

        if (!uva__scene_open(scene, trial, UVA_SUBJECT_ENDLESS, 0, 0, &manner))
            return;
        uva__scene_await_tasks(scene, 3);
        uva__crowd_run(trial, 16, crowd_cancels, scene->probe);
        uva__scene_await_release(scene);
        uva__scene_settle(scene);
        if (scene->probe->now.releases != 1)
            uva__trial_fail(trial, "AP-12: release came %" PRId64 " times",
                            scene->probe->now.releases);
    }
}

/* Cancels at a moment that differs from round to round. */
static void cancel_anywhere(struct uva__trial *trial)
{
    const struct uva__probe_manner manner = {.first = 2, .each = 1};

    for (int round = 0; round < 200; round++) {
        struct uva__scene *scene = uva__trial_alloc(trial, sizeof(*scene));

        if (!uva__scene_open(scene, trial, UVA_SUBJECT_WHOLE, 20, 0, &manner))
            return;
        uva__scene_await_schema(scene);
        for (volatile int spin = 0; spin < round * 200; spin++)
            ;
        uva__probe_cancel(scene->probe);
        uva__scene_await_release(scene);
        uva__scene_settle(scene);
    }
}

/* ---- many threads ------------------------------------------------------- */

static void crowd_requests(void *ctx)
{
    for (int i = 0; i < 50; i++)
        uva__probe_request(ctx, 1);
}

static void request_by_a_crowd(struct uva__trial *trial)
{
    const struct uva__probe_manner manner = {0};
    struct uva__scene scene;

    if (!uva__scene_open(&scene, trial, UVA_SUBJECT_WHOLE, 1000, 0, &manner))
        return;
    uva__scene_await_schema(&scene);
    uva__crowd_run(trial, 8, crowd_requests, scene.probe);
    uva__scene_await_tasks(&scene, 400);
    if (!uva__scene_is_quiet(&scene))
        uva__trial_fail(trial, "AP-27: a task beyond 8 times 50 requested");
    uva__scene_stop(&scene);
}

static void crowd_meddles(void *ctx)
{
    struct uva__probe *probe = ctx;

    for (int i = 0; i < 100; i++)
        uva__probe_request(probe, 1);
    uva__probe_cancel(probe);
}

static void all_at_once(struct uva__trial *trial)
{
    const struct uva__probe_manner manner = {.first = 2,
                                             .take = UVA__TAKE_ELSEWHERE};

    for (int round = 0; round < 5; round++) {
        struct uva__scene *scene = uva__trial_alloc(trial, sizeof(*scene));

        if (!uva__scene_open(scene, trial, UVA_SUBJECT_ENDLESS, 0, 0, &manner))
            return;
        uva__scene_await_schema(scene);
        uva__crowd_run(trial, 4, crowd_meddles, scene->probe);
        uva__scene_await_release(scene);
        uva__scene_settle(scene);
    }
}

/* ---- while a callback blocks -------------------------------------------- */

/* In the second task: waits for the other thread's call. */
static void block_for(struct uva__probe *probe, int64_t ordinal)
{
    if (ordinal != 1)
        return;
    uva__crowd_run(probe->trial, 1,
                   (void (*)(void *))(uintptr_t)probe->manner.ctx, probe);
}

/* Plays a stream and blocks in its second callback until `deed` is done. */
static void blocked_scene(struct uva__trial *trial, void (*deed)(void *ctx))
{
    const struct uva__probe_manner manner = {.first = 4,
                                             .each = 1,
                                             .take = UVA__TAKE_LATER,
                                             .on_task = block_for,
                                             .ctx = (void *)(uintptr_t)deed};
    struct uva__scene scene;

    if (!uva__scene_open(&scene, trial, UVA_SUBJECT_WHOLE, 8, 0, &manner))
        return;
    uva__scene_await_tasks(&scene, 2);
    uva__scene_await_release(&scene);
    uva__scene_settle(&scene);
}

static void deed_extract(void *ctx)
{
    (void)uva__probe_extract(ctx, 0, true);
}

static void deed_call(void *ctx)
{
    for (int i = 0; i < 20; i++) /* more than a small queue holds: Q-15 */
        uva__probe_request(ctx, 1);
    uva__probe_cancel(ctx);
}

static void deed_all(void *ctx)
{
    uva__probe_request(ctx, 1);
    (void)uva__probe_extract(ctx, 0, true);
    uva__probe_cancel(ctx);
}

static void extraction_takes_no_lock(struct uva__trial *trial)
{
    blocked_scene(trial, deed_extract);
}

static void calls_return_promptly(struct uva__trial *trial)
{
    blocked_scene(trial, deed_call);
}

static void no_lock_over_callbacks(struct uva__trial *trial)
{
    blocked_scene(trial, deed_all);
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
    {"required_AP14_release_follows_a_cancel_without_demand",
     cancel_without_demand, 0, NULL},
    {"required_AP13_cancel_outside_of_callbacks_calls_none",
     cancel_without_demand, 0, NULL},
    {"required_AP12_cancel_works_on_any_thread", cancel_by_a_crowd, 0, NULL},
    {"optional_TH04_cancel_may_come_at_any_time", cancel_anywhere, 0, NULL},
    {"required_AP27_request_works_on_any_thread", request_by_a_crowd, 0, NULL},
    {"required_TH05_everything_may_happen_at_once", all_at_once, 0, NULL},
    {"required_AT24_extraction_waits_for_no_callback", extraction_takes_no_lock,
     0, NULL},
    {"required_AP28_request_and_cancel_wait_for_no_callback",
     calls_return_promptly, 0, NULL},
    {"required_TH06_no_lock_is_held_over_a_callback", no_lock_over_callbacks, 0,
     NULL},
};

const struct uva__tck_table uva__producer_probes = {CASES, sizeof(CASES) /
                                                               sizeof(*CASES)};
