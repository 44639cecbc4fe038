/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile handler at uva_stream_drive(), with an owner that cancels, drops,
 * closes and runs out of memory as the bytes decide. */
#include <errno.h>
#include <string.h>

#include "fuzz/fixture.h"
#include "fuzz/script.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

struct scene {
    struct ground ground;
    struct script_handler peer;
    struct fake_source source;
    struct uva_stream *stream; /* NULL once released or dropped */
    int dones;                 /* calls of on_done */
    bool started;              /* on_done was promised ... */
    bool dropped;              /* ... and is no longer due */
    bool stopped;              /* the owner has cancelled, dropped or closed */
    bool reclaimed; /* the tasks that the handler holds were revoked */
    struct uva_outcome outcome;
};

static void scene_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct scene *s = ctx;

    ground_see();
    FUZZ_RULE(++s->dones == 1 && s->started && !s->dropped);
    FUZZ_RULE(s->peer.releases == 1);
    FUZZ_RULE((outcome->error.code == 0) == (outcome->end == UVA_END_COMPLETE));
    s->outcome = *outcome;
    fuzz_trace("owner", outcome->error.message, (int)outcome->end);
}

/* ---- the owner ---------------------------------------------------------- */

static void owner_drop(void *ctx)
{
    struct scene *s = ctx;

    if (s->stream == NULL)
        return;
    s->stopped = s->reclaimed = true;
    s->dropped = s->dones == 0;
    uva_stream_drop(s->stream);
    s->stream = NULL;
}

static void scene_meddle(void *ctx, int way)
{
    struct scene *s = ctx;

    fuzz_trace("owner", "does", way);
    if (s->ground.runtime == NULL)
        return;
    if (way < 96) {
        ground_fail(&s->ground, way % 16);
    } else if (way < 160 && s->stream != NULL) {
        s->stopped = true;
        uva_stream_cancel(s->stream, way % 3, "the owner says so");
    } else if (way < 192) {
        uva_stream_release(s->stream);
        s->stream = NULL;
    } else if (way < 224 && s->stream != NULL) {
        ground_post(&s->ground, owner_drop, s);
    } else {
        s->stopped = true;
        ground_close(&s->ground);
    }
}

/* Once the runtime is gone, only tasks that the handler holds may be left,
 * unless they were revoked. */
static void scene_look(struct scene *s)
{
    s->peer.deaf = s->ground.runtime == NULL;
    if (s->peer.deaf && s->reclaimed)
        script_handler_forget(&s->peer);
}

static void scene_settle(struct scene *s)
{
    ground_settle(&s->ground);
    scene_look(s);
}

static void scene_pause(void *ctx)
{
    struct scene *s = ctx;

    ground_pause(&s->ground);
    scene_look(s);
}

/* ---- one input ---------------------------------------------------------- */

static int scene_map(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct scene *s = ctx;

    ground_see();
    if (in->ordinal == 3)
        return uva_error_set(error, EDOM, "no more than three");
    fake_source_batch(&s->source, in->ordinal, out);
    return 0;
}

static int scene_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                         struct uva_error *error)
{
    ground_see();
    return fake_source_tasks(ctx).extract(ctx, item, out, error);
}

static struct uva_stream *scene_source(struct scene *s, struct fuzz_input *in)
{
    static const char tag[] = "\1\0\0\0\3\0\0\0key\5\0\0\0value";
    struct uva_task_source tasks = fake_source_tasks(&s->source);
    const struct uva_blocking_source options = fake_source_options(&s->source);
    const int way = fuzz_byte(in);
    struct ArrowArrayStream plain;

    fake_source_init(&s->source, fuzz_below(in, 7));
    s->source.rows = 1;
    s->source.fail_code = EIO;
    s->source.fail_text = "the source says no";
    s->source.fail_at = way % 16 == 15 ? fuzz_below(in, 7) : -1;
    s->source.extract_at = way % 16 == 14 ? fuzz_below(in, 7) : -1;
    s->source.schema_code = way % 16 == 13 ? ENODEV : 0;
    s->source.metadata = way % 8 == 4 ? tag : NULL;
    ground_fail(&s->ground, way >= 224 ? fuzz_byte(in) : 0);
    tasks.extract = scene_extract;
    if (way & 64)
        return uva_stream_from_tasks(s->ground.runtime, &tasks);
    fake_source_plain(&s->source, &plain);
    return uva_stream_from_blocking_cpu(s->ground.runtime, &plain, &options);
}

/* Adds stages as the bytes decide; if one fails, the start reports it. */
static void scene_build(struct scene *s, struct fuzz_input *in)
{
    const struct uva_parallel parallel = {.workers = 1 + fuzz_below(in, 2)};
    const struct uva_map map = {.batch = scene_map, .ctx = s};
    const int way = fuzz_byte(in);

    s->stream = scene_source(s, in);
    if (way & 1)
        (void)uva_stream_map(s->stream, &map);
    if (way & 2)
        (void)uva_stream_parallel(s->stream, &parallel);
    if (way & 4)
        (void)uva_stream_limit(s->stream, way / 64);
}

static void scene_start(struct scene *s, struct fuzz_input *in)
{
    const bool on_worker = fuzz_byte(in) >= 192;
    const struct uva_drive drive = {
        .on_done = scene_on_done, .ctx = s, .on_worker = on_worker};

    s->peer.pulls_inline = s->ground.pulls_inline && !on_worker;
    s->started = true; /* on_done may be called before this returns */
    s->started =
        uva_stream_drive(s->stream, &s->peer.handler, &drive, NULL) == 0;
    scene_settle(s);
}

/* Checks that the outcome fits what was done. */
static void check_outcome(const struct scene *s)
{
    const struct script_handler *peer = &s->peer;

    FUZZ_RULE(s->dones == (s->started && !s->dropped));
    if (s->dones == 0)
        return;
    if (s->outcome.end == UVA_END_COMPLETE)
        FUZZ_RULE(peer->ends == 1 && peer->errors == 0);
    if (s->outcome.end == UVA_END_REJECTED)
        FUZZ_RULE(peer->refused);
    if (s->outcome.end == UVA_END_CANCELLED)
        FUZZ_RULE(peer->cancelled || s->stopped);
}

/* Extracts what the handler holds, now or once the runtime is gone. */
static void scene_finish(struct scene *s, bool late)
{
    if (!late)
        script_handler_go_home(&s->peer);
    scene_settle(s);
    s->stopped = s->stopped || s->dones == 0;
    uva_stream_release(s->stream);
    ground_close(&s->ground);
    while (s->ground.runtime != NULL)
        scene_settle(s);
    script_handler_go_home(&s->peer);
    ground_finish(&s->ground);
}

static void scene_play(struct fuzz_input in)
{
    static struct scene scene;
    const struct script_host host = {scene_pause,  scene_meddle, ground_enter,
                                     ground_leave, ground_wait,  &scene};
    bool late;

    memset(&scene, 0, sizeof(scene));
    ground_open(&scene.ground);
    script_handler_init(&scene.peer, in, &host);
    scene_build(&scene, &scene.peer.in);
    late = fuzz_byte(&scene.peer.in) & 1;
    scene_start(&scene, &scene.peer.in);
    while (script_handler_step(&scene.peer))
        ;
    scene_finish(&scene, late);
    check_outcome(&scene);
    script_handler_fini(&scene.peer, scene.started);
    FUZZ_RULE(atomic_load(&scene.source.live) == 0);
    FUZZ_RULE(atomic_load(&scene.source.freed) == 1);
    fake_source_fini(&scene.source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ground_play(scene_play, (struct fuzz_input){data, size});
    return 0;
}
