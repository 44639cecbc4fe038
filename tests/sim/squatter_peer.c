/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking sources that fill the blocking lane: each gets stuck in its first
 * call, is cancelled, and does not return until the peers are unblocked. The
 * threads that are in them must be written off, so that chains go on. */
#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/engine.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"

struct squatter {
    struct uva_stream *stream; /* counts, until it is cancelled */
    int uses; /* the source and the canceller: the last one frees it */
};

static void squatter_leave(struct squatter *squatter)
{
    if (--squatter->uses == 0)
        arena_free(squatter);
}

/* ---- its source --------------------------------------------------------- */

static bool is_unblocked(void *arg)
{
    (void)arg;
    return peers_are_unblocked();
}

static int squatter_schema(struct ArrowArrayStream *stream,
                           struct ArrowSchema *out)
{
    (void)stream;
    expectation_note("squatter: get_schema");
    sim_wait(is_unblocked, NULL);
    batches_schema(out);
    return 0;
}

static int squatter_next(struct ArrowArrayStream *stream,
                         struct ArrowArray *out)
{
    (void)stream;
    out->release = NULL;
    return 0;
}

static const char *squatter_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void squatter_release(struct ArrowArrayStream *stream)
{
    expectation_note("squatter: release");
    squatter_leave(stream->private_data);
    stream->release = NULL;
}

/* ---- its stream --------------------------------------------------------- */

static int squatter_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    return 0;
}

static void squatter_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    (void)outcome;
    expectation_note("squatter: on_done");
}

static void squatter_cancel(void *arg)
{
    struct squatter *squatter = arg;

    for (uint64_t steps = sim_choose(300); steps > 0; steps--)
        sim_point();
    expectation_note("squatter: cancel");
    uva_stream_cancel(squatter->stream, 0, NULL);
    uva_stream_release(squatter->stream);
    squatter_leave(squatter);
}

void squatters_start(struct uva_runtime *runtime, int n)
{
    const struct uva_consumer consumer = {.on_batch = squatter_batch,
                                          .on_done = squatter_done};
    struct ArrowArrayStream source;
    struct squatter *squatter;

    for (; n > 0; n--) {
        squatter = arena_new(sizeof(*squatter), "a squatter");
        squatter->uses = 2;
        source = (struct ArrowArrayStream){squatter_schema, squatter_next,
                                           squatter_error, squatter_release,
                                           squatter};
        squatter->stream = uva_stream_from_arrow_stream(runtime, &source, NULL);
        if (uva_stream_for_each(squatter->stream, &consumer, NULL) != 0)
            expectation_note("squatter: not started");
        peers_spawn("canceller of a squatter", squatter_cancel, squatter);
    }
}
