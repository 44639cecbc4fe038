/* SPDX-License-Identifier: Apache-2.0 */
/* A stream is a source; or a concat, a merge of one at a time, or a retry, of
 * two such streams. */
#include "sim/limited_peer.h"

#include <errno.h>
#include <stdint.h>

#include "sim/adbc_peer.h"
#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/engine.h"
#include "sim/hosts.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"

enum { DEPTH = 2 };

/* ---- sources ------------------------------------------------------------ */

struct empty {
    bool fails; /* instead of the end */
};

static int empty_schema(struct ArrowArrayStream *stream,
                        struct ArrowSchema *out)
{
    (void)stream;
    peers_dawdle();
    batches_schema(out);
    return 0;
}

static int empty_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    const struct empty *empty = stream->private_data;

    sim_point();
    if (empty->fails)
        return EIO;
    out->release = NULL;
    return 0;
}

static const char *empty_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void empty_release(struct ArrowArrayStream *stream)
{
    expectation_note("an empty source is released");
    arena_free(stream->private_data);
    stream->release = NULL;
}

static struct uva_stream *blocking_stream(struct uva_runtime *runtime,
                                          bool fails)
{
    struct empty *empty = arena_new(sizeof(*empty), "an empty source");
    struct ArrowArrayStream source = {empty_schema, empty_next, empty_error,
                                      empty_release, empty};

    struct uva_arrow_source options = {0};
    const bool inside = hosts_enter(runtime);
    struct uva_stream *stream;

    empty->fails = fails;
    if (inside)
        options.permits = hosts_permits(runtime);
    stream = uva_stream_from_arrow_stream(runtime, &source, &options);
    if (inside)
        hosts_leave(runtime);
    return stream;
}

/* A query does not fail: its pool may do so. */
static struct uva_stream *source_stream(struct uva_runtime *runtime,
                                        struct expectation *expectation)
{
    struct uva_stream *stream =
        peers_chance(2, 3) ? adbc_peer_nothing(runtime, expectation) : NULL;

    return stream != NULL ? stream : blocking_stream(runtime, false);
}

/* ---- streams of two ------------------------------------------------------ */

struct second {
    struct uva_stream *stream; /* a reference, until it is given */
};

static struct uva_stream *second_again(void *ctx,
                                       const struct uva_outcome *failed,
                                       int32_t attempt, int64_t passed,
                                       int64_t rows)
{
    struct second *second = ctx;
    struct uva_stream *stream = second->stream;

    (void)failed;
    (void)attempt;
    (void)passed;
    (void)rows;
    second->stream = NULL;
    return stream;
}

static void second_free(void *ctx)
{
    const struct second *second = ctx;

    uva_stream_release(second->stream);
    arena_free(ctx);
}

/* Makes a stream that fails, and goes on as `stream`, which it takes. */
static struct uva_stream *retried(struct uva_runtime *runtime,
                                  struct uva_stream *stream)
{
    struct uva_stream *first = blocking_stream(runtime, true);
    struct second *second = arena_new(sizeof(*second), "a second attempt");
    const struct uva_retry options = {.again = second_again,
                                      .free_ctx = second_free,
                                      .ctx = second,
                                      .delay_ms = 1};

    second->stream = stream;
    (void)uva_stream_retry(first, &options);
    return first;
}

static struct uva_stream *stream_of(struct uva_runtime *runtime,
                                    struct expectation *expectation, int depth)
{
    const uint64_t kind = depth > 0 ? sim_choose(4) : 0;
    const struct uva_merge one = {.open_at_once = 1};
    struct uva_stream *stream, *other;

    if (kind == 0)
        return source_stream(runtime, expectation);
    other = stream_of(runtime, expectation, depth - 1);
    if (kind == 1) {
        expectation->delays = true;
        return retried(runtime, other);
    }
    stream = stream_of(runtime, expectation, depth - 1);
    if (kind == 2)
        (void)uva_stream_merge(stream, &other, 1, &one);
    else
        (void)uva_stream_concat(
            stream, &other, 1,
            &(struct uva_merge){.open_at_once = (int32_t)sim_choose(3) + 1});
    return stream;
}

struct uva_stream *limited_stream(struct uva_runtime *runtime,
                                  struct expectation *expectation)
{
    return stream_of(runtime, expectation, DEPTH);
}
