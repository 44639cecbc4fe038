/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile producer at uva_stream_from_async(), with an owner that cancels,
 * drops, closes and runs out of memory as the bytes decide. */
#include <errno.h>
#include <string.h>

#include "fuzz/fixture.h"
#include "fuzz/script.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

struct scene {
    struct ground ground;
    struct script_producer peer;
    struct uva_stream *stream; /* NULL once released or dropped */
    int verdict;               /* return value of the next on_batch */
    bool moves;                /* the next on_batch moves its batch out */
    int64_t batches;           /* batches accepted */
    int64_t last;              /* first value of the last batch */
    int schemas;               /* calls of on_schema */
    int dones;                 /* calls of on_done */
    bool waits;                /* the last on_batch returned EAGAIN */
    bool started;              /* on_done was promised ... */
    bool dropped;              /* ... and is no longer due */
    bool stopped;              /* the owner has cancelled, dropped or closed */
    bool refused;              /* a return code ended the stream */
    struct uva_outcome outcome;
};

/* ---- the consumer ------------------------------------------------------- */

static int scene_on_schema(void *ctx, const struct uva_stream_info *info)
{
    struct scene *s = ctx;

    ground_see();
    FUZZ_RULE(++s->schemas == 1 && s->dones == 0 && !s->dropped);
    FUZZ_RULE(info->schema->release != NULL && info->schema->n_children == 1);
    return 0;
}

static int scene_on_batch(void *ctx, struct uva_batch *batch)
{
    struct scene *s = ctx;
    const struct ArrowArray *array = &batch->data.array;
    const int verdict = s->verdict;
    int64_t first;

    ground_see();
    FUZZ_RULE(s->schemas == 1 && s->dones == 0 && !s->dropped && !s->refused);
    FUZZ_RULE(array->release != NULL && array->length == 2);
    FUZZ_RULE(batch->ordinal == s->batches);
    first = ((const int64_t *)array->children[0]->buffers[1])[0];
    FUZZ_RULE(first > s->last); /* in order, none twice */
    if (s->moves)
        uva_array_release(&batch->data);
    s->verdict = 0;
    s->waits = verdict == EAGAIN;
    s->refused = verdict != 0 && verdict != EAGAIN;
    if (verdict == EDOM || (verdict == EAGAIN && !s->moves))
        return verdict;
    s->moves = false;
    s->last = first;
    s->batches++;
    return verdict;
}

static void scene_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct scene *s = ctx;

    ground_see();
    FUZZ_RULE(++s->dones == 1 && s->started && !s->dropped);
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
    s->stopped = true;
    s->dropped = s->dones == 0;
    uva_stream_drop(s->stream);
    s->stream = NULL;
}

static void scene_meddle(void *ctx, int way)
{
    static const int verdicts[] = {0, EAGAIN, ECANCELED, EDOM};
    struct scene *s = ctx;

    fuzz_trace("owner", "does", way);
    if (s->ground.runtime == NULL)
        return;
    if (way < 64) {
        s->verdict = verdicts[way % 4];
        s->moves = way >= 32;
    } else if (way < 128) {
        uva_stream_resume(s->stream);
    } else if (way < 192) {
        ground_fail(&s->ground, way % 16);
    } else if (way < 224 && s->stream != NULL) {
        s->stopped = true;
        uva_stream_cancel(s->stream, way % 3, NULL);
    } else if (way < 236) {
        uva_stream_release(s->stream);
        s->stream = NULL;
    } else if (way < 246 && s->stream != NULL) {
        ground_post(&s->ground, owner_drop, s);
    } else {
        s->stopped = true;
        ground_close(&s->ground);
    }
}

/* ---- one input ---------------------------------------------------------- */

/* Adds stages as the bytes decide; if one fails, the start reports it. */
static void scene_build(struct scene *s, struct fuzz_input *in)
{
    const struct uva_parallel parallel = {.workers = 1 + fuzz_below(in, 2)};
    struct uva_async_source source;
    const int way = fuzz_byte(in);

    s->peer.pulls_inline = s->ground.pulls_inline;
    s->peer.steps_in_start = way % 4 == 3 ? fuzz_below(in, 8) : 0;
    s->peer.start_code = way % 16 == 15 ? EACCES : 0;
    source = script_producer_source(&s->peer);
    source.window.batches = s->peer.window = 1 + fuzz_below(in, 4);
    source.window.refill = fuzz_below(in, 3);
    source.on_loop = way & 16;
    if (source.window.refill >= source.window.batches)
        source.window.refill = 0;
    ground_fail(&s->ground, way >= 224 ? fuzz_byte(in) : 0);
    s->stream = uva_stream_from_async(s->ground.runtime, &source);
    if (way & 32)
        (void)uva_stream_parallel(s->stream, &parallel);
}

static void scene_start(struct scene *s)
{
    const struct uva_consumer consumer = {.on_schema = scene_on_schema,
                                          .on_batch = scene_on_batch,
                                          .on_done = scene_on_done,
                                          .ctx = s};

    s->last = -1;
    s->started = true; /* on_done may be called before this returns */
    s->started = uva_stream_for_each(s->stream, &consumer, NULL) == 0;
    ground_settle(&s->ground);
}

/* Checks that the outcome fits what was done. */
static void check_outcome(const struct scene *s)
{
    const struct script_producer *peer = &s->peer;

    FUZZ_RULE(s->dones == (s->started && !s->dropped));
    if (s->dones == 0)
        return;
    FUZZ_RULE(s->outcome.batches == s->batches);
    if (s->outcome.end == UVA_END_COMPLETE)
        FUZZ_RULE(peer->complete && s->batches == peer->offered);
    if (s->outcome.end == UVA_END_CANCELLED)
        FUZZ_RULE(s->stopped || s->refused);
    if (s->outcome.end == UVA_END_REJECTED)
        FUZZ_RULE(s->refused && s->outcome.error.code == EDOM);
}

/* Returns whether an outcome is still due. */
static bool scene_is_open(const struct scene *s)
{
    return s->started && s->dones == 0 && !s->dropped &&
           s->ground.runtime != NULL;
}

/* A stream that is still open must be waiting for the consumer: resumes it. */
static void scene_resume(struct scene *s)
{
    FUZZ_RULE(s->waits);
    s->verdict = 0;
    uva_stream_resume(s->stream);
    ground_settle(&s->ground);
    FUZZ_RULE(!scene_is_open(s) || s->stream == NULL);
}

static void scene_play(struct fuzz_input in)
{
    static struct scene scene;
    const struct script_host host = {ground_pause, scene_meddle, ground_enter,
                                     ground_leave, ground_wait,  &scene};

    memset(&scene, 0, sizeof(scene));
    ground_open(&scene.ground);
    script_producer_init(&scene.peer, in, &host);
    scene_build(&scene, &scene.peer.in);
    scene_start(&scene);
    while (script_producer_step(&scene.peer))
        ;
    ground_settle(&scene.ground);
    script_producer_go_home(&scene.peer);
    ground_settle(&scene.ground);
    if (scene_is_open(&scene))
        scene_resume(&scene);
    scene.stopped = scene.stopped || scene_is_open(&scene);
    uva_stream_release(scene.stream);
    ground_finish(&scene.ground);
    check_outcome(&scene);
    script_producer_fini(&scene.peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ground_play(scene_play, (struct fuzz_input){data, size});
    return 0;
}
