/* SPDX-License-Identifier: Apache-2.0 */
/* A fiber that reads a stream as a blocking one: sometimes the schema, all
 * batches or some, the end once more, and then releases it. */
#include <errno.h>
#include <stdint.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/engine.h"
#include "sim/monitor.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"

struct reader_peer {
    struct ArrowDeviceArrayStream source;
    struct expectation *expectation;
    int64_t leaves_at; /* releases it after so many batches */
};

static void peer_see_schema(struct reader_peer *peer)
{
    struct ArrowSchema schema = {0};

    if (peer->source.get_schema(&peer->source, &schema) != 0)
        return;
    expectation_see_schema(peer->expectation, &schema);
    schema.release(&schema);
}

/* Returns 0 with a batch, which is released at the end; or a code. */
static int peer_read(struct reader_peer *peer, struct ArrowDeviceArray *batch)
{
    int code = peer->source.get_next(&peer->source, batch);

    if (code != 0 && peers_chance(1, 2))
        (void)peer->source.get_last_error(&peer->source);
    return code;
}

/* Returns the code that ended it; 0 also if it stopped early. */
static int peer_read_all(struct reader_peer *peer, bool *left)
{
    struct ArrowDeviceArray batch;
    int64_t n;
    int code;

    for (n = 0; n < peer->leaves_at; n++) {
        if (peers_chance(1, 6))
            peer_see_schema(peer);
        code = peer_read(peer, &batch);
        if (code != 0 || batch.array.release == NULL)
            return code;
        expectation_take(peer->expectation, &batch);
        peers_dawdle();
        uva_array_release(&batch);
    }
    *left = true;
    return 0;
}

/* The end and an error must be returned again (G-66). */
static void peer_read_again(struct reader_peer *peer, int code)
{
    struct ArrowDeviceArray batch;
    const int again = peer_read(peer, &batch);

    if (again != code)
        sim_fail("the end was %s, and then %s", uva_error_name(code),
                 uva_error_name(again));
    if (again == 0 && batch.array.release != NULL)
        sim_fail("a batch after the end");
}

static void reader(void *arg)
{
    struct reader_peer *peer = arg;
    bool left = false;
    int code;

    if (peers_chance(1, 2))
        peer_see_schema(peer);
    code = peer_read_all(peer, &left);
    if (!left) {
        expectation_end_read(peer->expectation, code);
        if (peers_chance(1, 3))
            peer_read_again(peer, code);
    }
    peer->expectation->over = true;
    peers_dawdle();
    peer->source.release(&peer->source);
    arena_free(peer);
}

int reader_peer_start(struct uva_stream *stream,
                      struct expectation *expectation)
{
    struct reader_peer *peer = arena_new(sizeof(*peer), "a reader");
    const struct uva_window window = peers_window();
    int code;

    peer->expectation = expectation;
    peer->leaves_at = INT64_MAX;
    if (peers_chance(1, 6))
        peer->leaves_at = (int64_t)sim_choose((uint64_t)expectation->total + 1);
    expectation_note("chain %d: a reader, window %d", expectation->number,
                     window.batches);
    code = uva_stream_to_device_stream(
        stream, peers_chance(1, 4) ? NULL : &window, &peer->source, NULL);
    if (code != 0) {
        if (peer->source.release != NULL)
            sim_fail("to_arrow_stream failed and gave a stream");
        arena_free(peer);
        return code;
    }
    uva_stream_release(stream);
    monitor_blocking(&peer->source);
    peers_spawn("reader", reader, peer);
    return 0;
}
