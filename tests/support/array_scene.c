/* SPDX-License-Identifier: Apache-2.0 */
/* One device, one array, one answer. */
#include "support/array_scene.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static void log_write(void *ctx, const struct uva_log_record *record)
{
    struct array_scene *s = ctx;

    if (record->clause == NULL || strcmp(record->clause, "EV-17") != 0)
        return;
    (void)snprintf(s->warning, sizeof(s->warning), "%s", record->message);
    atomic_fetch_add(&s->warnings, 1);
}

static void nudge(void *ctx)
{
    loop_rig_nudge(ctx);
}

void array_scene_open(struct array_scene *s, enum soft_mode mode)
{
    const struct uva_runtime_options how = {
        .log = {.level = UVA_LOG_WARN, .write = log_write, .ctx = s}};
    struct uva_error error;

    memset(s, 0, sizeof(*s));
    s->wanted = 1;
    loop_rig_open_with(&s->rig, &how);
    fake_source_init(&s->fake, 8);
    soft_device_init(&s->device, mode);
    s->device.armed = nudge;
    s->device.ctx = &s->rig;
    ck_assert_int_eq(uva_device_register(s->rig.runtime, ARROW_DEVICE_EXT_DEV,
                                         soft_device_ops(&s->device),
                                         &s->device, &error),
                     0);
    soft_device_batch(&s->device, &s->fake, 0, &s->array);
}

void array_scene_close(struct array_scene *s)
{
    uva_array_release(&s->array);
    loop_rig_close(&s->rig);
    ck_assert(!atomic_load(&s->device.wrong_thread));
    ck_assert_int_eq(atomic_load(&s->fake.live), 0);
    ck_assert_int_eq(atomic_load(&s->device.events_live), 0);
    ck_assert_int_eq(atomic_load(&s->device.loads),
                     atomic_load(&s->device.unloads));
    fake_source_fini(&s->fake);
    soft_device_fini(&s->device);
}

/* ---- waiting ------------------------------------------------------------ */

void array_scene_on_answer(void *ctx, struct ArrowDeviceArray *array,
                           const struct uva_error *error)
{
    struct array_scene *s = ctx;

    ck_assert_ptr_eq(array, &s->array);
    s->error = *error;
    s->answers++;
    s->on_loop = uva_runtime_on_loop(s->rig.runtime);
}

int array_scene_wait(struct array_scene *s, int64_t timeout_ms)
{
    return uva_array_wait(s->rig.runtime, &s->array, timeout_ms,
                          array_scene_on_answer, s);
}

static bool is_answered(void *ctx)
{
    const struct array_scene *s = ctx;

    return s->answers >= s->wanted;
}

int array_scene_outcome(struct array_scene *s)
{
    loop_rig_until(&s->rig, is_answered, s);
    ck_assert_int_eq(s->answers, s->wanted);
    ck_assert(s->on_loop);
    return s->error.code;
}
