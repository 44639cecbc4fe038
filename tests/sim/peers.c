/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the peers. */
#include "sim/peers.h"

#include <errno.h>

#include "sim/adbc_peer.h"
#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/device_stages.h"
#include "sim/engine.h"
#include "sim/hostile.h"

static bool gate, is_slow, is_alone, may_be_late;
static int late; /* peers that will call late */

void peers_begin(bool slow, bool alone)
{
    gate = false;
    is_slow = slow;
    is_alone = alone;
    may_be_late = false;
    late = 0;
}

void peers_allow_late_calls(void)
{
    may_be_late = true;
}

bool peers_may_call_late(void)
{
    return may_be_late;
}

void peers_late_begin(void)
{
    late++;
}

void peers_late_end(void)
{
    late--;
}

bool peers_have_called_late(void *arg)
{
    (void)arg;
    return late == 0;
}

bool peers_are_slow(void)
{
    return is_slow;
}

bool peers_are_alone(void)
{
    return is_alone;
}

void peers_unblock(void)
{
    expectation_note("the peers are unblocked");
    gate = true;
}

bool peers_are_unblocked(void)
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
    if (peers_chance(1, 4))
        window.bytes = 1 + (int64_t)sim_choose(600);
    return window;
}

int64_t peers_limit(void)
{
    static const int64_t limits[] = {1, 10, 100, 1000};

    return peers_chance(2, 3) ? 0 : limits[sim_choose(4)];
}

/* ---- a source in memory ------------------------------------------------- */

static struct uva_stream *array_stream(struct uva_runtime *runtime,
                                       struct expectation *expectation)
{
    struct ArrowDeviceArray arrays[EXPECTATION_BATCHES];
    struct ArrowSchema schema;

    for (int64_t i = 0; i < expectation->total; i++)
        device_recorded_batch(runtime, expectation, i, &arrays[i]);
    batches_schema(&schema);
    expectation->fails_at = INT64_MAX;
    expectation->excuses &= ~(unsigned)EXCUSE_SOURCE;
    expectation_note("chain %d: %lld arrays", expectation->number,
                     (long long)expectation->total);
    return uva_stream_from_arrays(runtime, &schema, arrays,
                                  (size_t)expectation->total);
}

/* A query, on the host; or a blocking source. */
static struct uva_stream *query_source(struct uva_runtime *runtime,
                                       struct expectation *expectation)
{
    struct uva_stream *stream =
        expectation->device ? NULL : adbc_peer_stream(runtime, expectation);

    return stream != NULL ? stream : blocking_peer_stream(runtime, expectation);
}

struct uva_stream *peers_source(struct uva_runtime *runtime,
                                struct expectation *expectation)
{
    switch (sim_choose(10)) {
    case 0:
        return array_stream(runtime, expectation);
    case 1:
    case 2:
        return task_peer_stream(runtime, expectation);
    case 3:
        return pusher_peer_stream(runtime, expectation);
    case 4:
        return producer_peer_stream(runtime, expectation);
    case 5:
    case 6:
    case 7:
        return query_source(runtime, expectation);
    default:
        return blocking_peer_stream(runtime, expectation);
    }
}

/* ---- consuming ---------------------------------------------------------- */

static int consumer_start(struct uva_stream *stream,
                          struct expectation *expectation)
{
    if (expectation->hostile)
        return hostile_handler_start(stream, expectation);
    switch (sim_choose(5)) {
    case 0:
        return taking_peer_start(stream, expectation);
    case 1:
        return handler_peer_start(stream, expectation);
    case 2:
        return reader_peer_start(stream, expectation);
    default:
        return callback_peer_start(stream, expectation);
    }
}

void peers_consume(struct uva_stream *stream, struct expectation *expectation)
{
    int code = consumer_start(stream, expectation);

    if (code == 0)
        return;
    expectation_note("chain %d does not start: %s", expectation->number,
                     uva_error_name(code));
    uva_stream_release(stream);
    expectation_end_unstarted(expectation, code);
}
