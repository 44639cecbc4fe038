/* SPDX-License-Identifier: Apache-2.0 */
/* No callback may come inside a push, or after free_ctx. */
#include "support/push_scene.h"

#include <check.h>
#include <string.h>

#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static void scene_told(struct push_scene *scene, struct uva_pusher *pusher,
                       const char *word)
{
    ck_assert_ptr_nonnull(pusher);
    ck_assert(uva_runtime_on_loop(scene->rig.runtime));
    ck_assert(!scene->pushing);
    ck_assert_int_eq(scene->freed, 0);
    recording_tell(&scene->consumer, "%s", word);
    if (scene->on_told != NULL)
        scene->on_told(scene);
}

static void on_writable(void *ctx, struct uva_pusher *pusher)
{
    scene_told(ctx, pusher, "room");
}

static void on_closed(void *ctx, struct uva_pusher *pusher)
{
    scene_told(ctx, pusher, "gone");
}

static void free_ctx(void *ctx)
{
    ((struct push_scene *)ctx)->freed++;
}

struct uva_push_source push_scene_options(struct push_scene *scene)
{
    return (struct uva_push_source){.on_writable = on_writable,
                                    .on_closed = on_closed,
                                    .free_ctx = free_ctx,
                                    .ctx = scene};
}

void push_scene_open_bare(struct push_scene *scene, int32_t batches,
                          int64_t bytes)
{
    struct uva_push_source how = push_scene_options(scene);

    memset(scene, 0, sizeof(*scene));
    scene->consumer.appetite = -1;
    how.window.batches = batches;
    how.window.bytes = bytes;
    loop_rig_open(&scene->rig);
    scene->stream =
        uva_stream_from_pusher(scene->rig.runtime, &how, &scene->pusher);
    ck_assert_ptr_nonnull(scene->pusher);
    ck_assert_int_eq(uva_stream_status(scene->stream, NULL), 0);
}

void push_scene_open(struct push_scene *scene, int32_t batches, int64_t bytes)
{
    push_scene_open_bare(scene, batches, bytes);
    ck_assert_int_eq(push_scene_describe(scene), 0);
}

int push_scene_describe(struct push_scene *scene)
{
    struct ArrowSchema schema;
    int code;

    batch_schema(&schema);
    code = uva_pusher_set_schema(scene->pusher, &schema);
    ck_assert(uva_schema_is_live(&schema) == (code != 0));
    uva_schema_release(&schema);
    return code;
}

void push_scene_start(struct push_scene *scene)
{
    recording_start(&scene->consumer, scene->stream);
}

int push_scene_push_with(struct push_scene *scene, int64_t length,
                         const char *metadata, int64_t timeout_ms)
{
    struct ArrowDeviceArray array;
    int code;

    batch_make(&array, length);
    scene->pushing = true;
    code = uva_pusher_push(scene->pusher, &array, metadata, timeout_ms);
    scene->pushing = false;
    ck_assert(uva_array_is_live(&array) == (code != 0));
    uva_array_release(&array);
    return code;
}

int push_scene_push(struct push_scene *scene, int64_t length,
                    int64_t timeout_ms)
{
    return push_scene_push_with(scene, length, NULL, timeout_ms);
}

void push_scene_end(struct push_scene *scene)
{
    uva_pusher_close(scene->pusher, NULL, NULL);
    scene->pusher = NULL;
}

void push_scene_release(struct push_scene *scene)
{
    uva_stream_release(scene->stream);
    scene->stream = NULL;
}

void push_scene_close(struct push_scene *scene)
{
    push_scene_end(scene);
    push_scene_release(scene);
    loop_rig_close(&scene->rig);
    ck_assert_int_eq(scene->freed, 1);
    ck_assert_int_eq(plain_live(), 0);
}
