/* SPDX-License-Identifier: Apache-2.0 */
/* Workers may go home a moment after the runtime has closed: their blocks are
 * awaited, so that what is never given back is a test that never ends. */
#include "support/source_scene.h"

#include <check.h>
#include <sched.h>
#include <string.h>

void source_scene_open(struct source_scene *scene, int64_t batches)
{
    memset(&scene->outcome, 0, sizeof(scene->outcome));
    loop_rig_open(&scene->rig);
    fake_source_init(&scene->fake, batches);
}

struct uva_stream *source_scene_stream(struct source_scene *scene)
{
    const struct uva_blocking_source how = fake_source_how(&scene->fake);
    struct ArrowArrayStream source;
    struct uva_stream *stream;

    fake_source_plain(&scene->fake, &source);
    stream = uva_stream_from_blocking_cpu(scene->rig.runtime, &source, &how);
    ck_assert(source.release == NULL);
    return stream;
}

struct uva_stream *source_scene_tasks(struct source_scene *scene)
{
    const struct uva_task_source source = fake_source_tasks(&scene->fake);

    return uva_stream_from_tasks(scene->rig.runtime, &source);
}

static bool is_done(void *ctx)
{
    return atomic_load(&((struct recording_outcome *)ctx)->done) != 0;
}

void source_scene_finish(struct source_scene *scene)
{
    loop_rig_until(&scene->rig, is_done, &scene->outcome);
}

void source_scene_run(struct source_scene *scene, struct uva_stream *stream)
{
    recording_outcome_start(&scene->outcome, stream);
    source_scene_finish(scene);
}

static void says(const char *message, const char *text)
{
    ck_assert_msg(message[0] != '\0' && strstr(message, text) != NULL,
                  "\"%s\" does not say \"%s\"", message, text);
}

void source_scene_ended(const struct source_scene *scene, enum uva_end end,
                        int code, const char *text)
{
    const struct recording_outcome *outcome = &scene->outcome;

    ck_assert_int_eq(outcome->done, 1);
    ck_assert_int_eq(outcome->end, end);
    ck_assert_int_eq(outcome->code, code);
    if (code != 0)
        says(outcome->message, text);
}

void source_scene_refused(struct source_scene *scene, struct uva_stream *stream,
                          int code, const char *text)
{
    const struct uva_consumer table = recording_outcome_table(&scene->outcome);
    struct uva_error first = {0}, second = {0};

    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(uva_stream_status(stream, &first), code);
    says(first.message, text);
    ck_assert_int_eq(uva_stream_for_each(stream, &table, &second), code);
    ck_assert_int_eq(second.code, code);
    ck_assert_str_eq(first.message, second.message);
    uva_stream_release(stream);
    ck_assert_int_eq(scene->outcome.done, 0);
}

void source_scene_close(struct source_scene *scene, long released, long freed)
{
    loop_rig_close_runtime(&scene->rig, 0);
    while (faulty_allocator_live(&scene->rig.memory) != 0)
        (void)sched_yield();
    loop_rig_close(&scene->rig);
    ck_assert_int_eq(atomic_load(&scene->fake.released), released);
    ck_assert_int_eq(atomic_load(&scene->fake.freed), freed);
    fake_source_fini(&scene->fake);
}
