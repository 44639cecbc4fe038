/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile handler at uva_stream_drive(), with an owner that cancels, drops,
 * closes and runs out of memory as the bytes decide. */
#include <errno.h>
#include <string.h>

#include "fuzz/fixture.h"
#include "fuzz/script.h"
#include "stage/limit.h"
#include "support/native.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

struct scenario {
    struct fixture fixture;
    struct script_handler peer;
    struct fake_source source;
    struct uva_stream *stream; /* NULL once released or dropped */
    int dones;                 /* calls of on_done */
    bool started;              /* on_done was promised ... */
    bool dropped;              /* ... and is no longer due */
    bool stopped;              /* the owner has cancelled, dropped or closed */
    bool revoked; /* the tasks that the handler holds were revoked */
    struct uva_outcome outcome;
};

static void scenario_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct scenario *s = ctx;

    fixture_see();
    FUZZ_RULE(++s->dones == 1 && s->started && !s->dropped);
    FUZZ_RULE(s->peer.releases == 1);
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
    s->stopped = s->revoked = true;
    s->dropped = s->dones == 0;
    uva_stream_drop(s->stream);
    s->stream = NULL;
}

static void scenario_meddle(void *ctx, int way)
{
    struct scenario *s = ctx;

    fuzz_trace("owner", "does", way);
    if (s->fixture.runtime == NULL)
        return;
    if (way < 96) {
        fixture_fail(&s->fixture, way % 16);
    } else if (way < 160 && s->stream != NULL) {
        s->stopped = true;
        uva_stream_cancel(s->stream, way % 3, "the owner says so");
    } else if (way < 192) {
        uva_stream_release(s->stream);
        s->stream = NULL;
    } else if (way < 224 && s->stream != NULL) {
        fixture_post(&s->fixture, owner_drop, s);
    } else {
        s->stopped = true;
        fixture_close(&s->fixture);
    }
}

/* Once the runtime is gone, only tasks that the handler holds may be left,
 * unless they were revoked. */
static void scenario_check(struct scenario *s)
{
    s->peer.deaf = s->fixture.runtime == NULL;
    if (s->peer.deaf && s->revoked)
        script_handler_forget(&s->peer);
}

static void scenario_settle(struct scenario *s)
{
    fixture_settle(&s->fixture);
    scenario_check(s);
}

static void scenario_pause(void *ctx)
{
    struct scenario *s = ctx;

    fixture_pause(&s->fixture);
    scenario_check(s);
}

/* ---- one input ---------------------------------------------------------- */

static int scenario_map(void *ctx, struct uva_batch *in,
                        struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct scenario *s = ctx;

    fixture_see();
    if (in->ordinal == 3)
        return uva_error_set(error, EDOM, "no more than three");
    fake_source_batch(&s->source, in->ordinal, out);
    return 0;
}

static int scenario_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                            struct uva_error *error)
{
    fixture_see();
    return fake_source_tasks(ctx).extract(ctx, item, out, error);
}

static struct uva_stream *scenario_source(struct scenario *s,
                                          struct fuzz_input *in)
{
    static const char tag[] =
        NATIVE("\1") NATIVE("\3") "key" NATIVE("\5") "value";
    struct uva_task_source tasks = fake_source_tasks(&s->source);
    const struct uva_arrow_source options = fake_source_options(&s->source);
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
    fixture_fail(&s->fixture, way >= 224 ? fuzz_byte(in) : 0);
    tasks.extract = scenario_extract;
    if (way & 64)
        return uva_stream_from_tasks(s->fixture.runtime, &tasks);
    fake_source_plain(&s->source, &plain);
    return uva_stream_from_arrow_stream(s->fixture.runtime, &plain, &options);
}

/* Adds stages as the bytes decide; if one fails, the start reports it. */
static void scenario_build(struct scenario *s, struct fuzz_input *in)
{
    const struct uva_parallel parallel = {.workers = 1 + fuzz_below(in, 2)};
    const struct uva_map map = {.batch = scenario_map, .ctx = s};
    const int way = fuzz_byte(in);

    s->stream = scenario_source(s, in);
    if (way & 1)
        (void)uva_stream_map(s->stream, &map);
    if (way & 2)
        (void)uva_stream_parallel(s->stream, &parallel);
    if (way & 4)
        (void)uva__stream_limit(s->stream, way / 64);
}

static void scenario_start(struct scenario *s, struct fuzz_input *in)
{
    const bool on_worker = fuzz_byte(in) >= 192;
    const struct uva_drive drive = {
        .on_done = scenario_on_done, .ctx = s, .on_worker = on_worker};

    s->started = true; /* on_done may be called before this returns */
    s->started =
        uva_stream_drive(s->stream, &s->peer.handler, &drive, NULL) == 0;
    scenario_settle(s);
}

/* Checks that the outcome fits the calls. */
static void check_outcome(const struct scenario *s)
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

/* Extracts the handler's tasks, now or once the runtime is gone. */
static void scenario_finish(struct scenario *s, bool late)
{
    if (!late)
        script_handler_finish(&s->peer);
    scenario_settle(s);
    s->stopped = s->stopped || s->dones == 0;
    uva_stream_release(s->stream);
    fixture_close(&s->fixture);
    while (s->fixture.runtime != NULL)
        scenario_settle(s);
    script_handler_finish(&s->peer);
    fixture_finish(&s->fixture);
}

static void scenario_play(struct fuzz_input in)
{
    static struct scenario scenario;
    const struct script_host host = {scenario_pause, scenario_meddle,
                                     fixture_enter,  fixture_leave,
                                     fixture_wait,   &scenario};
    bool late;

    memset(&scenario, 0, sizeof(scenario));
    fixture_open(&scenario.fixture);
    script_handler_init(&scenario.peer, in, &host);
    scenario_build(&scenario, &scenario.peer.in);
    late = fuzz_byte(&scenario.peer.in) & 1;
    scenario_start(&scenario, &scenario.peer.in);
    while (script_handler_step(&scenario.peer))
        ;
    scenario_finish(&scenario, late);
    check_outcome(&scenario);
    script_handler_fini(&scenario.peer, scenario.started);
    FUZZ_RULE(atomic_load(&scenario.source.live) == 0);
    FUZZ_RULE(atomic_load(&scenario.source.freed) == 1);
    fake_source_fini(&scenario.source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fixture_play(scenario_play, (struct fuzz_input){data, size});
    return 0;
}
