/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a producer and waits for it. Another thread starts it, because the
 * call may return only when the stream is over. */
#include "tck/session.h"

#include <inttypes.h>
#include <string.h>

#include "tck/checker.h"

static bool scene_is_answered(void *ctx)
{
    struct uva__scene *scene = ctx;

    return uva__word_load(&scene->answered) != 0 ||
           uva__probe_is_told(scene->probe) ||
           uva__probe_has_schema(scene->probe);
}

static void *scene_start(void *ctx)
{
    struct uva__scene *scene = ctx;

    scene->code = scene->trial->subject.produce(
        (int32_t)scene->plan, scene->batches, scene->at,
        uva__checker_front(scene->trial, UVA_PARTY_PRODUCER,
                           scene->probe->handler));
    uva__word_store(&scene->answered, 1);
    uva__trial_changed(scene->trial);
    return NULL;
}

bool uva__scene_open(struct uva__scene *scene, struct uva__trial *trial,
                     enum uva_subject_plan plan, int64_t batches, int64_t at,
                     const struct uva__probe_manner *manner)
{
    *scene = (struct uva__scene){.trial = trial,
                                 .probe = uva__probe_new(trial, manner),
                                 .plan = plan,
                                 .batches = batches,
                                 .at = at};
    uva__trial_note(trial, "-- produce(plan %d, %" PRId64 ", %" PRId64 ")%s",
                    (int)plan, batches, at, trial->checked ? ", checked" : "");
    uva__trial_thread(trial, scene_start, scene);
    uva__trial_await(trial, scene_is_answered, scene,
                     "an answer of uva_subject_produce(), or a callback,");
    return uva__trial_can(
        trial, uva__word_load(&scene->answered) != 0 ? scene->code : 0,
        plan == UVA_SUBJECT_WHOLE, "uva_subject_produce()");
}

void uva__scene_await_schema(struct uva__scene *scene)
{
    uva__trial_await(scene->trial, uva__probe_has_schema, scene->probe,
                     "on_schema");
}

/* Argument of a wait. */
struct goal {
    struct uva__probe *probe;
    int64_t tasks;
};

static bool goal_is_met(void *ctx)
{
    struct goal *goal = ctx;

    return uva__probe_tasks(goal->probe) >= goal->tasks;
}

void uva__scene_await_tasks(struct uva__scene *scene, int64_t n)
{
    struct goal goal = {scene->probe, n};

    uva__trial_await(scene->trial, goal_is_met, &goal, "a task");
}

/* Extracts the tasks not taken so far, if their callback has returned. */
static void scene_extract(struct uva__scene *scene)
{
    struct uva__probe *probe = scene->probe;
    const int64_t tasks = uva__probe_tasks(probe);

    for (int64_t i = 0; i < tasks; i++)
        if (!probe->tasks[i].taken && probe->tasks[i].copy.extract_data)
            (void)uva__probe_extract(probe, i, true);
}

/* If tasks may fail, a producer releases the handler only after they are
 * extracted, so that it can still report a failure. Clause: G-17. */
static void scene_unlock(struct uva__scene *scene)
{
    uva__trial_await(scene->trial, uva__probe_is_told, scene->probe,
                     "the end, an error or release");
    if (!uva__trial_quiet(scene->trial, uva__probe_is_released, scene->probe))
        return;
    uva__trial_note(scene->trial, "   release waits for the tasks, it seems");
    scene_extract(scene);
}

void uva__scene_await_release(struct uva__scene *scene)
{
    if (scene->probe->manner.take == UVA__TAKE_LATER)
        scene_unlock(scene);
    uva__trial_await(scene->trial, uva__probe_is_released, scene->probe,
                     "release");
    uva__trial_await(scene->trial, uva__probe_is_settled, scene->probe,
                     "the return of a call into the producer");
}

void uva__scene_settle(struct uva__scene *scene)
{
    struct uva__probe *probe = scene->probe;
    const int64_t tasks = uva__probe_tasks(probe);

    scene_extract(scene);
    for (int64_t i = 0; i < tasks; i++)
        uva__probe_let_go(probe, i);
    if (probe->schema.release != NULL)
        probe->schema.release(&probe->schema);
}

void uva__scene_stop(struct uva__scene *scene)
{
    if (!uva__probe_is_told(scene->probe))
        uva__probe_cancel(scene->probe);
    uva__scene_await_release(scene);
    uva__scene_settle(scene);
}

/* Argument of a wait. */
struct silence {
    struct uva__probe *probe;
    size_t letters;
};

static bool silence_is_over(void *ctx)
{
    struct silence *silence = ctx;
    char trace[UVA__PROBE_TRACE + 1];

    uva__probe_trace(silence->probe, trace);
    return strlen(trace) != silence->letters;
}

bool uva__scene_is_quiet(struct uva__scene *scene)
{
    char trace[UVA__PROBE_TRACE + 1];
    struct silence silence = {.probe = scene->probe};

    uva__probe_trace(scene->probe, trace);
    silence.letters = strlen(trace);
    return uva__trial_quiet(scene->trial, silence_is_over, &silence);
}

void uva__scene_await_rest(struct uva__scene *scene)
{
    uva__trial_await(scene->trial, uva__probe_is_back, scene->probe,
                     "the return of a callback");
    (void)uva__scene_is_quiet(scene);
}

/* ---- what is left ------------------------------------------------------- */

static bool nothing_is_live(void *ctx)
{
    const struct uva__trial *trial = ctx;

    return trial->subject.count((int32_t)UVA_SUBJECT_LIVE) == 0;
}

void uva__scene_check_live(struct uva__trial *trial)
{
    if (trial->subject.count == NULL ||
        trial->subject.count((int32_t)UVA_SUBJECT_LIVE) == UVA_SUBJECT_CANNOT)
        uva__trial_skip(trial, "the subject does not count what it has made: "
                               "uva_subject_count()");
    if (!uva__trial_soon(trial, nothing_is_live, trial))
        uva__trial_fail(trial,
                        "%" PRId64 " batches or schemas of the subject were "
                        "never freed",
                        trial->subject.count((int32_t)UVA_SUBJECT_LIVE));
}
