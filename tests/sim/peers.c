/* SPDX-License-Identifier: Apache-2.0 */
/* What peers have in common. */
#include "sim/peers.h"

#include <errno.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/device_stages.h"
#include "sim/engine.h"
#include "sim/hostile.h"

static bool gate, is_slow, is_alone;

void peers_begin(bool slow, bool alone)
{
    gate = false;
    is_slow = slow;
    is_alone = alone;
}

bool peers_are_slow(void)
{
    return is_slow;
}

bool peers_are_alone(void)
{
    return is_alone;
}

void peers_open_gate(void)
{
    expectation_note("the gate is opened");
    gate = true;
}

bool peers_gate_is_open(void)
{
    return gate;
}

bool peers_chance(uint64_t a, uint64_t b)
{
    return sim_choose(b) < a;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void peers_dawdle(void)
{
    uint64_t steps = sim_choose(4);

    for (; steps > 0; steps--)
        sim_point();
    if (is_slow && peers_chance(1, 50))
        (void)sim_wait_until(never, NULL,
                             sim_now_ns() + 1000000 * (1 + sim_choose(300)));
}

void peers_spawn(const char *name, void (*body)(void *arg), void *arg)
{
    const int fiber = sim_spawn(name, body, arg);

    expectation_note("fiber %d is a %s", fiber, name);
}

struct uva_window peers_window(void)
{
    struct uva_window window = {0};

    if (peers_chance(1, 5))
        return window;
    window.batches = 1 + (int32_t)sim_choose(4);
    if (peers_chance(1, 3))
        window.refill = (int32_t)sim_choose((uint64_t)window.batches);
    if (peers_chance(1, 4))
        window.bytes = 1 + (int64_t)sim_choose(100);
    return window;
}

/* ---- a source in memory ------------------------------------------------- */

static struct uva_stream *array_stream(struct uva_runtime *runtime,
                                       struct story *story)
{
    struct ArrowDeviceArray arrays[STORY_BATCHES];
    struct ArrowSchema schema;

    for (int64_t i = 0; i < story->total; i++)
        device_recorded_batch(runtime, story, i, &arrays[i]);
    batches_schema(&schema);
    story->fails_at = INT64_MAX;
    story->excuses &= ~(unsigned)EXCUSE_SOURCE;
    expectation_note("chain %d: %lld arrays", story->number,
                     (long long)story->total);
    return uva_stream_from_arrays(runtime, &schema, arrays,
                                  (size_t)story->total);
}

struct uva_stream *peers_source(struct uva_runtime *runtime,
                                struct story *story)
{
    switch (sim_choose(8)) {
    case 0:
        return array_stream(runtime, story);
    case 1:
    case 2:
        return task_peer_stream(runtime, story);
    case 3:
        return pusher_peer_stream(runtime, story);
    case 4:
        return producer_peer_stream(runtime, story);
    default:
        return blocking_peer_stream(runtime, story);
    }
}

/* ---- consuming ---------------------------------------------------------- */

static int consumer_start(struct uva_stream *stream, struct story *story)
{
    if (story->hostile)
        return hostile_handler_start(stream, story);
    switch (sim_choose(5)) {
    case 0:
        return awaiting_peer_start(stream, story);
    case 1:
        return handler_peer_start(stream, story);
    case 2:
        return reader_peer_start(stream, story);
    default:
        return callback_peer_start(stream, story);
    }
}

void peers_consume(struct uva_stream *stream, struct story *story)
{
    int code = consumer_start(stream, story);

    if (code == 0)
        return;
    expectation_note("chain %d does not start: %s", story->number,
                     uva_error_name(code));
    uva_stream_release(stream);
    expectation_end_unstarted(story, code);
}
