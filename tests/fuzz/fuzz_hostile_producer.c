/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile producer at uva_stream_from_async(), with an owner that cancels,
 * drops, closes and runs out of memory as the bytes decide. */
#include <errno.h>
#include <string.h>

#include "fuzz/fixture.h"
#include "fuzz/script.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

struct scenario {
    struct fixture fixture;
    struct script_producer peer;
    struct uva_stream *stream; /* NULL once released or dropped */
    int verdict;               /* return value of the next on_batch */
    bool moves;                /* the next on_batch moves its batch out */
    int64_t batches;           /* batches accepted */
    int64_t last;              /* first value of the last batch */
    int schemas;               /* calls of on_schema */
    int dones;                 /* calls of on_done */
    bool waits;                /* the last on_batch returned EAGAIN */
    bool paused;               /* the owner has paused the stream */
    bool started;              /* on_done was promised ... */
    bool dropped;              /* ... and is no longer due */
    bool stopped;              /* the owner has cancelled, dropped or closed */
    bool refused;              /* a return code ended the stream */
    struct uva_outcome outcome;
};

/* ---- the consumer ------------------------------------------------------- */

static int scenario_on_schema(void *ctx, const struct uva_stream_info *info)
{
    struct scenario *s = ctx;

    fixture_see();
    FUZZ_RULE(++s->schemas == 1 && s->dones == 0 && !s->dropped);
    FUZZ_RULE(info->schema->release != NULL && info->schema->n_children == 1);
    return 0;
}

static int scenario_on_batch(void *ctx, struct uva_batch *batch)
{
    struct scenario *s = ctx;
    const struct ArrowArray *array = &batch->data.array;
    const int verdict = s->verdict;
    int64_t first;

    fixture_see();
    FUZZ_RULE(s->schemas == 1 && s->dones == 0 && !s->dropped && !s->refused);
    FUZZ_RULE(array->release != NULL && array->length == 2);
    FUZZ_RULE(batch->ordinal == s->batches);
    first = ((const int64_t *)array->children[0]->buffers[1])[0];
    FUZZ_RULE(first > s->last); /* in order, not twice */
    if (s->moves)
        uva_array_release(&batch->data);
    s->verdict = 0;
    s->waits = verdict == EAGAIN;
    s->refused = verdict != 0 && verdict != EAGAIN;
    if (verdict == EDOM)
        return verdict;
    s->moves = false;
    s->last = first;
    s->batches++;
    return verdict;
}

static void scenario_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct scenario *s = ctx;

    fixture_see();
    FUZZ_RULE(++s->dones == 1 && s->started && !s->dropped);
    FUZZ_RULE((outcome->error.code == 0) == (outcome->end == UVA_END_COMPLETE));
    s->outcome = *outcome;
    fuzz_trace("owner", outcome->error.message, (int)outcome->end);
}

/* ---- the owner ---------------------------------------------------------- */

static void owner_drop(void *ctx)
{
    struct scenario *s = ctx;

    if (s->stream == NULL)
        return;
    s->stopped = true;
    s->dropped = s->dones == 0;
    uva_stream_drop(s->stream);
    s->stream = NULL;
}

static void scenario_meddle(void *ctx, int way)
{
    static const int verdicts[] = {0, EAGAIN, ECANCELED, EDOM};
    struct scenario *s = ctx;

    fuzz_trace("owner", "does", way);
    if (s->fixture.runtime == NULL)
        return;
    if (way < 64) {
        s->verdict = verdicts[way % 4];
        s->moves = way >= 32;
    } else if (way < 128) {
        s->paused = way >= 112;
        if (s->paused)
            uva_stream_pause(s->stream);
        else
            uva_stream_resume(s->stream);
    } else if (way < 192) {
        fixture_fail(&s->fixture, way % 16);
    } else if (way < 224 && s->stream != NULL) {
        s->stopped = true;
        uva_stream_cancel(s->stream, way % 3, NULL);
    } else if (way < 236) {
        uva_stream_release(s->stream);
        s->stream = NULL;
    } else if (way < 246 && s->stream != NULL) {
        fixture_post(&s->fixture, owner_drop, s);
    } else {
        s->stopped = true;
        fixture_close(&s->fixture);
    }
}

/* ---- one input ---------------------------------------------------------- */

/* Adds stages as the bytes decide; if one fails, the start reports it. */
static void scenario_build(struct scenario *s, struct fuzz_input *in)
{
    const struct uva_parallel parallel = {.workers = 1 + fuzz_below(in, 2)};
    struct uva_async_source source;
    const int way = fuzz_byte(in);

    s->peer.steps_in_start = way % 4 == 3 ? fuzz_below(in, 8) : 0;
    s->peer.start_code = way % 16 == 15 ? EACCES : 0;
    source = script_producer_source(&s->peer);
    source.window.batches = s->peer.window = 1 + fuzz_below(in, 4);
    source.on_loop = way & 16;
    s->peer.tasks_outlive = !source.on_loop;
    fixture_fail(&s->fixture, way >= 224 ? fuzz_byte(in) : 0);
    s->stream = uva_stream_from_async(s->fixture.runtime, &source);
    if (way & 32)
        (void)uva_stream_parallel(s->stream, &parallel);
}

static void scenario_start(struct scenario *s)
{
    const struct uva_consumer consumer = {.on_schema = scenario_on_schema,
                                          .on_batch = scenario_on_batch,
                                          .on_done = scenario_on_done,
                                          .ctx = s};

    s->last = -1;
    s->started = true; /* on_done may be called before this returns */
    s->started = uva_stream_for_each(s->stream, &consumer, NULL) == 0;
    fixture_settle(&s->fixture);
}

/* Checks that the outcome fits the calls. */
static void check_outcome(const struct scenario *s)
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
static bool scenario_is_open(const struct scenario *s)
{
    return s->started && s->dones == 0 && !s->dropped &&
           s->fixture.runtime != NULL;
}

/* A stream that is still open must be waiting for the consumer: resumes it. */
static void scenario_resume(struct scenario *s)
{
    FUZZ_RULE(s->waits || s->paused);
    s->verdict = 0;
    uva_stream_resume(s->stream);
    fixture_settle(&s->fixture);
    FUZZ_RULE(!scenario_is_open(s) || s->stream == NULL);
}

static void scenario_play(struct fuzz_input in)
{
    static struct scenario scenario;
    const struct script_host host = {fixture_pause, scenario_meddle,
                                     fixture_enter, fixture_leave,
                                     fixture_wait,  &scenario};

    memset(&scenario, 0, sizeof(scenario));
    fixture_open(&scenario.fixture);
    script_producer_init(&scenario.peer, in, &host);
    scenario_build(&scenario, &scenario.peer.in);
    scenario_start(&scenario);
    while (script_producer_step(&scenario.peer))
        ;
    fixture_settle(&scenario.fixture);
    script_producer_finish(&scenario.peer);
    fixture_settle(&scenario.fixture);
    if (scenario_is_open(&scenario))
        scenario_resume(&scenario);
    scenario.stopped = scenario.stopped || scenario_is_open(&scenario);
    uva_stream_release(scenario.stream);
    fixture_finish(&scenario.fixture);
    check_outcome(&scenario);
    script_producer_fini(&scenario.peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fixture_play(scenario_play, (struct fuzz_input){data, size});
    return 0;
}
