/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer knows batch k by its ordinal, and on the host by its rows. */
#include "support/device_scene.h"

#include <check.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "support/soft_memory.h"

static void scene_nudge(void *ctx)
{
    loop_rig_nudge(ctx);
}

void device_scene_open_on(struct device_scene *s, enum soft_mode mode,
                          int64_t batches, struct uva_workers *workers)
{
    const struct uva_runtime_options how = {.workers = workers};
    struct uva_error error;

    memset(s, 0, sizeof(*s));
    s->in_order = s->told = true;
    loop_rig_open_with(&s->rig, &how);
    fake_source_init(&s->fake, batches);
    soft_device_init(&s->device, mode);
    s->device.armed = scene_nudge;
    s->device.ctx = &s->rig;
    ck_assert_int_eq(uva_device_register(s->rig.runtime, ARROW_DEVICE_EXT_DEV,
                                         soft_device_ops(&s->device),
                                         &s->device, &error),
                     0);
}

void device_scene_open(struct device_scene *s, enum soft_mode mode,
                       int64_t batches)
{
    device_scene_open_on(s, mode, batches, NULL);
}

void device_scene_source(struct device_scene *s)
{
    struct ArrowDeviceArrayStream source;

    soft_device_stream(&s->device, &s->fake, &source);
    s->stream = uva_stream_from_blocking(s->rig.runtime, &source, NULL);
    ck_assert_ptr_nonnull(s->stream);
}

void device_scene_host_source(struct device_scene *s)
{
    struct uva_task_source tasks = fake_source_tasks(&s->fake);

    s->stream = uva_stream_from_tasks(s->rig.runtime, &tasks);
    ck_assert_ptr_nonnull(s->stream);
}

/* ---- the consumer ------------------------------------------------------- */

static int scene_on_batch(void *ctx, struct uva_batch *batch)
{
    struct device_scene *s = ctx;
    const struct ArrowArray *column = batch->data.array.children[0];
    const int64_t k = s->batches++;
    int64_t first;

    memcpy(&first, soft_memory_at(column->buffers[1], sizeof(first)),
           sizeof(first));
    s->in_order = s->in_order && batch->ordinal == k && first == k * 10;
    s->told = s->told && batch->metadata != NULL;
    s->device_type = batch->data.device_type;
    s->sync_event = batch->data.sync_event;
    return 0;
}

static void scene_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct device_scene *s = ctx;

    s->done = true;
    s->outcome = *outcome;
    (void)snprintf(s->text, sizeof(s->text), "%.199s", outcome->error.message);
}

int device_scene_start(struct device_scene *s, struct uva_error *error)
{
    const struct uva_consumer consumer = {
        .on_batch = scene_on_batch, .on_done = scene_on_done, .ctx = s};

    return uva_stream_for_each(s->stream, &consumer, error);
}

static bool scene_is_done(void *ctx)
{
    return ((struct device_scene *)ctx)->done;
}

int device_scene_await(struct device_scene *s)
{
    loop_rig_until(&s->rig, scene_is_done, s);
    return s->outcome.error.code;
}

int device_scene_run(struct device_scene *s)
{
    struct uva_error error;

    ck_assert_int_eq(device_scene_start(s, &error), 0);
    return device_scene_await(s);
}

void device_scene_close(struct device_scene *s)
{
    if (s->stream != NULL)
        uva_stream_release(s->stream);
    loop_rig_close(&s->rig);
    ck_assert(!atomic_load(&s->device.wrong_thread));
    while (atomic_load(&s->fake.live) != 0)
        sched_yield(); /* the service may be at a copy, or not yet at it */
    while (atomic_load(&s->device.loads) != atomic_load(&s->device.unloads))
        sched_yield(); /* a shared service may end later, or be at a copy */
    ck_assert_int_eq(atomic_load(&s->device.events_live), 0);
    ck_assert_int_eq(soft_memory_live(), 0);
    fake_source_fini(&s->fake);
    soft_device_fini(&s->device);
}
