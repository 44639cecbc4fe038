/* SPDX-License-Identifier: Apache-2.0 */
/* Connects streams in the two public ways: as a blocking stream, or by driving
 * the handler of a stream that treats the one above as a foreign producer. If
 * the next stream is never started, its free_ctx releases the stream above. */
#include "sim/chain.h"

#include <errno.h>
#include <stdint.h>

#include "sim/adbc_peer.h"
#include "sim/arena.h"
#include "sim/async_stage.h"
#include "sim/batches.h"
#include "sim/cast_stage.h"
#include "sim/device_stages.h"
#include "sim/engine.h"
#include "sim/hostile.h"
#include "sim/hosts.h"
#include "sim/limited_peer.h"
#include "sim/monitor.h"
#include "sim/parts_stage.h"
#include "sim/peers.h"
#include "stage/limit.h"
#include "uvarrow/arrow.h"
#include "uvarrow/uvarrow.h"

/* ---- stages ------------------------------------------------------------- */

struct mapper {
    struct expectation *expectation;
    int64_t bad; /* the batch it fails at; or -1 */
    bool in_place;
    bool on_device; /* places its new batches on the device */
    int inside;
};

static int map_batch(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct mapper *mapper = ctx;
    const int64_t ordinal = batches_ordinal(&in->data.array);

    mapper->inside++;
    peers_dawdle();
    mapper->inside--;
    if (ordinal == mapper->bad)
        return uva_error_set(error, EDOM, "a bad batch");
    if (mapper->in_place) {
        batches_add_hop(&in->data.array);
        uva_array_move(&in->data, out);
    } else {
        device_batch(mapper->expectation, mapper->on_device, ordinal,
                     batches_hops(&in->data.array) + 1, out);
    }
    return 0;
}

static void map_free(void *ctx)
{
    const struct mapper *mapper = ctx;

    if (mapper->inside != 0)
        sim_fail("a map is freed while it runs");
    arena_free(ctx);
}

static void add_map(struct uva_stream *stream, struct expectation *expectation)
{
    struct mapper *mapper = arena_new(sizeof(*mapper), "a map");
    const struct uva_map options = {.batch = map_batch,
                                    .free_ctx = map_free,
                                    .ctx = mapper,
                                    .on_loop = peers_chance(1, 2)};

    mapper->expectation = expectation;
    mapper->bad = -1;
    mapper->in_place = peers_chance(1, 2);
    mapper->on_device = expectation->on_device;
    if (!mapper->in_place)
        device_add_fresh(expectation);
    if (expectation->total > 0 && peers_chance(1, 10)) {
        mapper->bad = (int64_t)sim_choose((uint64_t)expectation->total);
        expectation->excuses |= EXCUSE_MAP;
    }
    expectation->hops++;
    expectation_note("chain %d: a map%s, bad at %lld", expectation->number,
                     options.on_loop ? ", on the loop" : "",
                     (long long)mapper->bad);
    (void)uva_stream_map(stream, &options);
}

/* ---- a transform that sometimes keeps a batch for the next call ---------- */

struct keeper {
    struct ArrowDeviceArray kept; /* owns: an earlier batch; or released */
    int64_t bad;                  /* the batch it fails at; or -1 */
    int inside;
};

/* Emits the batch that is kept, if there is one. */
static int keeper_emit(struct keeper *keeper, uva_emit_fn *emit, void *emitter)
{
    struct uva_batch out = {.ordinal = 0};

    if (!uva_array_is_live(&keeper->kept))
        return 0;
    uva_array_move(&keeper->kept, &out.data);
    return emit(emitter, &out);
}

static int keeper_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                        void *emitter, struct uva_error *error)
{
    struct keeper *keeper = ctx;
    int code;

    if (keeper->inside++ != 0)
        sim_fail("a transform runs twice at once");
    peers_dawdle();
    keeper->inside--;
    if (batches_ordinal(&in->data.array) == keeper->bad)
        return uva_error_set(error, EDOM, "a bad batch");
    code = keeper_emit(keeper, emit, emitter);
    if (code == EAGAIN && peers_chance(1, 2))
        return EINPROGRESS; /* called again with this batch */
    if (code != 0 && code != EAGAIN)
        return code;
    batches_add_hop(&in->data.array);
    if (peers_chance(1, 3)) {
        uva_array_move(&in->data, &keeper->kept);
        return 0;
    }
    code = emit(emitter, in);
    return code == EAGAIN ? 0 : code;
}

static int keeper_finish(void *ctx, uva_emit_fn *emit, void *emitter,
                         struct uva_error *error)
{
    const int code = keeper_emit(ctx, emit, emitter);

    (void)error;
    return code == EAGAIN ? 0 : code;
}

static void keeper_free(void *ctx)
{
    struct keeper *keeper = ctx;

    if (keeper->inside != 0)
        sim_fail("a transform is freed while it runs");
    if (uva_array_is_live(&keeper->kept))
        uva_array_release(&keeper->kept);
    arena_free(keeper);
}

static void add_transform(struct uva_stream *stream,
                          struct expectation *expectation)
{
    struct keeper *keeper = arena_new(sizeof(*keeper), "a transform");
    const struct uva_transform options = {.batch = keeper_batch,
                                          .finish = keeper_finish,
                                          .free_ctx = keeper_free,
                                          .ctx = keeper,
                                          .on_loop = peers_chance(1, 2),
                                          .window = peers_window()};

    keeper->bad = -1;
    if (expectation->total > 0 && peers_chance(1, 10)) {
        keeper->bad = (int64_t)sim_choose((uint64_t)expectation->total);
        expectation->excuses |= EXCUSE_MAP;
    }
    expectation->hops++;
    expectation->keepers++;
    expectation_note("chain %d: a transform%s, bad at %lld, window %d",
                     expectation->number,
                     options.on_loop ? ", on the loop" : "",
                     (long long)keeper->bad, options.window.batches);
    (void)uva_stream_transform(stream, &options);
}

/* ---- an inspector ------------------------------------------------------- */

struct witness {
    uint64_t id; /* of the stream, by the first event; 0: none came so far */
    int64_t requested, batches;
    bool schema, ended;
};

static void witness_event(void *ctx, const struct uva_trace_event *event)
{
    struct witness *witness = ctx;

    if (witness->ended)
        sim_fail("an inspector is called after the end");
    if (witness->id == 0)
        witness->id = event->stream_id;
    if (event->stream_id == 0 || event->stream_id != witness->id)
        sim_fail("an event with another stream");
    switch (event->kind) {
    case UVA_TRACE_SCHEMA:
        witness->schema = true;
        break;
    case UVA_TRACE_REQUEST:
        witness->requested = event->value > INT64_MAX - witness->requested
                                 ? INT64_MAX
                                 : witness->requested + event->value;
        break;
    case UVA_TRACE_BATCH:
        if (!witness->schema || ++witness->batches > witness->requested)
            sim_fail("a batch passes that was not requested");
        break;
    case UVA_TRACE_CANCEL:
        break;
    case UVA_TRACE_END:
        witness->ended = true;
        break;
    default:
        sim_fail("an event for a trace alone");
    }
}

static void add_inspector(struct uva_stream *stream,
                          struct expectation *expectation)
{
    struct witness *witness = arena_new(sizeof(*witness), "an inspector");

    expectation_note("chain %d: an inspector", expectation->number);
    (void)uva_stream_inspect(stream,
                             &(struct uva_trace){.event = witness_event,
                                                 .free_ctx = arena_free_ctx,
                                                 .ctx = witness});
}

/* ---- chains of stages --------------------------------------------------- */

static void add_limit(struct uva_stream *stream,
                      struct expectation *expectation)
{
    const int64_t limit = (int64_t)sim_choose((uint64_t)expectation->total + 2);

    if (limit < expectation->limit)
        expectation->limit = limit;
    expectation_note("chain %d: limit %lld", expectation->number,
                     (long long)limit);
    (void)uva__stream_limit(stream, limit);
}

static void add_parallel(struct uva_stream *stream,
                         struct expectation *expectation)
{
    const struct uva_parallel options = {.workers = 1 + (int32_t)sim_choose(3),
                                         .unordered = peers_chance(1, 3),
                                         .window = peers_window()};

    expectation->unordered = expectation->unordered || options.unordered;
    expectation_note("chain %d: parallel, %d workers%s, window %d",
                     expectation->number, options.workers,
                     options.unordered ? ", unordered" : "",
                     options.window.batches);
    (void)uva_stream_parallel(stream, &options);
}

static void draw_priority(struct uva_stream *stream,
                          const struct expectation *expectation)
{
    const int32_t priority = (int32_t)sim_choose(3) - 1;

    if (!peers_chance(1, 4))
        return;
    expectation_note("chain %d: priority %d", expectation->number, priority);
    (void)uva_stream_set_priority(stream, priority);
}

static struct uva_stream *other_stream(struct uva_runtime *runtime,
                                       struct expectation *expectation)
{
    struct ArrowSchema schema;

    if (hosts_limit_sources(runtime) || adbc_has_pool(runtime))
        return limited_stream(runtime, expectation);
    batches_schema(&schema);
    return uva_stream_from_arrays(runtime, &schema, NULL, 0);
}

/* Merges the stream with empty ones, or puts it before these. */
static void add_merge(struct uva_runtime *runtime, struct uva_stream *stream,
                      struct expectation *expectation)
{
    const struct uva_merge options = {.keep_going = peers_chance(1, 2),
                                      .open_at_once = (int32_t)sim_choose(3),
                                      .window = peers_window()};
    const size_t count = (size_t)sim_choose(3);
    const bool concat = peers_chance(1, 3);
    struct uva_stream *others[2];

    for (size_t i = 0; i < count; i++)
        others[i] = other_stream(runtime, expectation);
    expectation_note("chain %d: %s with %d empty streams, window %d",
                     expectation->number, concat ? "concat" : "merge",
                     (int)count, options.window.batches);
    if (concat)
        (void)uva_stream_concat(
            stream, others, count,
            &(struct uva_merge){.open_at_once = (int32_t)sim_choose(2) + 1});
    else
        (void)uva_stream_merge(stream, others, count, &options);
}

/* Beside a pool, goes on with two streams of which the second is opened ahead,
 * so that it meets the first one there. */
static void add_queries(struct uva_runtime *runtime, struct uva_stream *stream,
                        struct expectation *expectation)
{
    struct uva_stream *others[2];

    if (!adbc_has_pool(runtime) || expectation->foreign ||
        expectation->device || !peers_chance(1, 2))
        return;
    for (size_t i = 0; i < 2; i++)
        others[i] = limited_stream(runtime, expectation);
    expectation_note("chain %d: concat with queries", expectation->number);
    (void)uva_stream_concat(stream, others, 2,
                            &(struct uva_merge){.open_at_once = 2});
}

/* Splits each batch into rows, and joins these to batches again: rows are kept
 * for longer than any schedule takes, or for ever. */
static void add_split_and_join(struct uva_stream *stream,
                               struct expectation *expectation)
{
    const int64_t wait_ms = peers_chance(1, 2) ? INT64_C(1000000000) : 0;

    expectation_note("chain %d: split and joined, wait %lld",
                     expectation->number, (long long)wait_ms);
    expectation->joined = true;
    (void)uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = 1});
    (void)uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = BATCHES_ROWS,
                                                           .wait_ms = wait_ms});
}

static void add_throttle(struct uva_stream *stream,
                         struct expectation *expectation)
{
    static const int64_t rates[] = {20, 300, 1000000};
    const struct uva_throttle options = {
        .batches_per_s = peers_chance(1, 2) ? rates[sim_choose(3)] : 0,
        .bytes_per_s = rates[1 + sim_choose(2)]};

    expectation_note("chain %d: %lld batches and %lld bytes a second",
                     expectation->number, (long long)options.batches_per_s,
                     (long long)options.bytes_per_s);
    expectation->delays = true;
    if (options.batches_per_s > 0 &&
        (expectation->rate == 0 || options.batches_per_s < expectation->rate))
        expectation->rate = options.batches_per_s;
    (void)uva_stream_throttle(stream, &options);
}

/* Time passes as the schedule wants, so any limit may pass. */
static void add_timeout(struct uva_stream *stream,
                        struct expectation *expectation)
{
    const struct uva_timeout options = {.open_ms = peers_limit(),
                                        .first_ms = peers_limit(),
                                        .between_ms = peers_limit(),
                                        .total_ms = peers_limit()};

    if (options.open_ms + options.first_ms + options.between_ms +
            options.total_ms >
        0)
        expectation->excuses |= EXCUSE_TIMEOUT;
    expectation_note("chain %d: limits of %lld, %lld, %lld and %lld ms",
                     expectation->number, (long long)options.open_ms,
                     (long long)options.first_ms, (long long)options.between_ms,
                     (long long)options.total_ms);
    (void)uva_stream_timeout(stream, &options);
}

/* ---- a second branch ---------------------------------------------------- */

struct branch {
    struct uva_stream *stream; /* holds a reference, until it is released */
    int64_t stop_at;           /* the call of on_batch that wants no more */
    int64_t batches;           /* calls of on_batch */
    bool takes_parts;          /* its batches carry parts */
};

static int branch_on_batch(void *ctx, struct uva_batch *batch)
{
    struct branch *branch = ctx;

    peers_dawdle();
    if (branch->takes_parts)
        parts_take(&batch->data);
    else
        (void)batches_ordinal(&batch->data.array);
    return branch->batches++ == branch->stop_at ? ECANCELED : 0;
}

static void branch_on_done(void *ctx, const struct uva_outcome *outcome)
{
    expectation_note("a branch is done: %d", (int)outcome->end);
    arena_free(ctx);
}

/* Runs on its own fiber. */
static void branch_leave(void *ctx)
{
    struct branch *branch = ctx;

    peers_dawdle();
    expectation_note("a branch leaves");
    uva_stream_release(branch->stream);
    arena_free(branch);
}

/* Has another consumer read the branch, now or after a while, or releases it
 * without a start. */
static void branch_consume(void *ctx)
{
    struct branch *branch = ctx;
    struct uva_stream *stream = branch->stream;
    const struct uva_consumer consumer = {
        .on_batch = branch_on_batch, .on_done = branch_on_done, .ctx = branch};

    peers_dawdle();
    if (uva_stream_for_each(stream, &consumer, NULL) != 0)
        arena_free(branch);
    uva_stream_release(stream);
}

/* A loop that its runtime has to itself ends when it has no work left, and the
 * start of a stream by another thread does not prevent that. So there a branch
 * starts while the chain is built. */
static void branch_consume_soon(struct branch *branch)
{
    if (peers_are_alone())
        branch_consume(branch);
    else
        peers_spawn("branch", branch_consume, branch);
}

/* The stream goes on as the first branch. */
static void add_tee(struct uva_stream *stream, struct expectation *expectation)
{
    const struct uva_tee options = {.slow = (enum uva_slow)sim_choose(4),
                                    .window = peers_window(),
                                    .first = peers_window()};
    struct branch *branch = arena_new(sizeof(*branch), "a branch");

    expectation->teed = true;
    branch->takes_parts = expectation->encoded;
    branch->stop_at = (int64_t)sim_choose((uint64_t)expectation->total + 2);
    branch->stream = uva_stream_tee(stream, &options);
    expectation_note("chain %d: a tee, slow %d, window %d, stops at %lld",
                     expectation->number, (int)options.slow,
                     options.window.batches, (long long)branch->stop_at);
    switch (sim_choose(3)) {
    case 0:
        branch_consume(branch);
        break;
    case 1:
        branch_consume_soon(branch);
        break;
    default:
        peers_spawn("leaver", branch_leave, branch);
    }
}

/* Those for streams of our own alone, and as often a map. */
static void add_own_stage(struct uva_runtime *runtime,
                          struct uva_stream *stream,
                          struct expectation *expectation)
{
    switch (sim_choose(12)) {
    case 0:
        add_transform(stream, expectation);
        break;
    case 1:
        /* empty streams are of the CPU */
        if (!expectation->device && !expectation->on_device)
            add_merge(runtime, stream, expectation);
        break;
    case 2:
        async_add_stage(stream, expectation);
        break;
    case 3:
        add_timeout(stream, expectation);
        break;
    case 4:
        add_throttle(stream, expectation);
        break;
    case 5:
        add_tee(stream, expectation);
        break;
    case 6:
        add_inspector(stream, expectation);
        break;
    case 7:
        /* only data of the CPU is joined; each row is a separate task */
        if (!expectation->on_device &&
            expectation->total + expectation->added <= 8)
            add_split_and_join(stream, expectation);
        break;
    case 8:
        cast_add_stage(stream, expectation);
        break;
    case 9:
        cast_add_others(runtime, stream, expectation);
        break;
    default:
        add_map(stream, expectation);
    }
}

static void add_stages(struct uva_runtime *runtime, struct uva_stream *stream,
                       struct expectation *expectation, bool devices)
{
    for (uint64_t n = sim_choose(3); n > 0; n--) {
        if (devices && !expectation->foreign && peers_chance(1, 3)) {
            device_add_stage(stream, expectation);
            continue;
        }
        switch (sim_choose(expectation->foreign ? 2 : 11)) {
        case 0:
            add_limit(stream, expectation);
            break;
        case 1:
            add_parallel(stream, expectation);
            break;
        default:
            add_own_stage(runtime, stream, expectation);
        }
    }
}

/* ---- a source that is reached by retries --------------------------------- */

enum { REFUSAL = ENETDOWN }; /* the code of attempts in vain */

struct caller {
    struct uva_runtime *runtime; /* borrows */
    struct uva_stream *source;   /* a reference, until it is given */
    uint64_t vain;               /* attempts that fail before that */
};

/* Makes a stream that fails before its first batch. */
static struct uva_stream *refused_stream(struct uva_runtime *runtime)
{
    struct uva_stream *stream;
    struct uva_pusher *pusher;
    struct ArrowSchema schema;
    struct uva_error error;

    stream = uva_stream_from_pusher(runtime, NULL, &pusher);
    if (pusher == NULL)
        return stream;
    if (peers_chance(1, 2)) {
        batches_schema(&schema);
        if (uva_pusher_set_schema(pusher, &schema) != 0)
            expectation_note("a schema was refused");
    }
    (void)uva_error_set(&error, REFUSAL, "in vain");
    uva_pusher_close(pusher, &error, NULL);
    return stream;
}

static struct uva_stream *call_again(void *ctx,
                                     const struct uva_outcome *failed,
                                     int32_t attempt, int64_t passed,
                                     int64_t rows)
{
    struct caller *caller = ctx;
    struct uva_stream *source = caller->source;

    (void)attempt;
    expectation_note("another attempt");
    if (failed->end != UVA_END_FAILED || failed->error.code == 0)
        sim_fail("another attempt without a failure");
    if (source == NULL)
        return NULL;
    if (passed != 0 || rows != 0)
        sim_fail("passed on before there was anything");
    if (caller->vain-- > 0)
        return refused_stream(caller->runtime);
    caller->source = NULL;
    return source;
}

static void caller_free(void *ctx)
{
    const struct caller *caller = ctx;

    uva_stream_release(caller->source);
    arena_free(ctx);
}

/* Makes a stream that fails, and after retries is `source`. */
static struct uva_stream *retried_stream(struct uva_runtime *runtime,
                                         struct uva_stream *source,
                                         struct expectation *expectation)
{
    struct caller *caller = arena_new(sizeof(*caller), "a caller");
    struct uva_stream *stream = refused_stream(runtime);
    const struct uva_retry options = {.again = call_again,
                                      .free_ctx = caller_free,
                                      .ctx = caller,
                                      .times = -1,
                                      .delay_ms = 1 + (int64_t)sim_choose(4),
                                      .delay_max_ms =
                                          4 + (int64_t)sim_choose(100),
                                      .resume = peers_chance(1, 2)};

    expectation->delays = true;
    *caller = (struct caller){runtime, source, sim_choose(3)};
    expectation_note("chain %d: %llu attempts in vain", expectation->number,
                     (unsigned long long)caller->vain + 1);
    (void)uva_stream_retry(stream, &options);
    return stream;
}

/* ---- from stream to stream ---------------------------------------------- */

/* A link from one stream to the next. */
struct link {
    struct uva_stream *above; /* holds a reference */
    struct uva_window window;
    struct expectation *expectation;
    bool on_worker;
    int done; /* how often on_done was called */
};

static struct link *link_new(struct uva_stream *above,
                             struct expectation *expectation)
{
    struct link *link = arena_new(sizeof(*link), "a link");

    link->above = uva_stream_acquire(above);
    link->window = peers_window();
    link->expectation = expectation;
    link->on_worker = peers_chance(1, 3);
    return link;
}

static void link_free(void *ctx)
{
    struct link *link = ctx;

    uva_stream_release(link->above);
    arena_free(link);
}

static int link_open(void *ctx, struct ArrowDeviceArrayStream *out,
                     struct uva_error *error)
{
    struct link *link = ctx;
    int code;

    expectation_note("chain %d: the way on is opened",
                     link->expectation->number);
    code = uva_stream_to_device_stream(link->above, &link->window, out, error);
    if (code == 0)
        monitor_blocking(out);
    return code;
}

static void link_interrupt(void *ctx)
{
    const struct link *link = ctx;

    uva_stream_cancel(link->above, 0, "interrupted");
}

/* Gives a permit for one source where the runtime limits its own: a source that
 * reads from another stream must not wait for it. */
static struct uva_permits *link_permits(struct uva_runtime *runtime)
{
    struct uva_permits *permits = NULL;

    if (hosts_limit_sources(runtime) &&
        uva_permits_new(runtime, 1, 0, &permits, NULL) != 0)
        expectation_note("no permits for a link");
    return permits;
}

static struct uva_stream *link_blocking(struct uva_runtime *runtime,
                                        struct link *link)
{
    struct uva_permits *permits = link_permits(runtime);
    const struct uva_arrow_source options = {
        .open_device = link_open,
        .interrupt = peers_chance(1, 2) ? link_interrupt : NULL,
        .free_ctx = link_free,
        .ctx = link,
        .device_type = device_type(link->expectation),
        .window = peers_window(),
        .permits = permits};
    struct uva_stream *stream;

    expectation_note("chain %d: a blocking stream on into another",
                     link->expectation->number);
    stream = uva_stream_from_device_stream(runtime, NULL, &options);
    uva_permits_release(permits);
    return stream;
}

/* The link may be freed by now; the ctx of a start lives as long as its
 * stream. */
static void link_done(void *ctx, const struct uva_outcome *outcome)
{
    int *done = ctx;

    expectation_note("a driven stream is done: %d", (int)outcome->end);
    if (*done != 0)
        sim_fail("on_done twice");
    *done = 1;
    arena_free(done);
}

static int link_start(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                      struct uva_error *error)
{
    struct ArrowAsyncDeviceStreamHandler *checked;
    struct link *link = ctx;
    int *done = arena_new(sizeof(*done), "an on_done");
    const struct uva_drive options = {
        .on_done = link_done, .ctx = done, .on_worker = link->on_worker};
    int code;

    expectation_note("chain %d: the way on is driven",
                     link->expectation->number);
    checked = monitor_handler(handler, 0);
    code = uva_stream_drive(link->above, checked, &options, error);
    if (code == 0)
        return 0;
    arena_free(done);
    if (checked != handler)
        checked->release(checked);
    return code;
}

static struct uva_stream *link_async(struct uva_runtime *runtime,
                                     struct link *link)
{
    const struct uva_async_source source = {.start = link_start,
                                            .free_ctx = link_free,
                                            .ctx = link,
                                            .device_type =
                                                device_type(link->expectation),
                                            .window = peers_window(),
                                            .on_loop = peers_chance(1, 3)};

    expectation_note("chain %d: driven into another%s",
                     link->expectation->number,
                     link->on_worker ? ", on a worker" : "");
    return uva_stream_from_async(runtime, &source);
}

/* Makes the next stream from the output of `above`. */
static struct uva_stream *link_make(struct uva_runtime *runtime,
                                    struct uva_stream *above,
                                    struct expectation *expectation)
{
    struct link *link = link_new(above, expectation);

    return peers_chance(1, 2) ? link_blocking(runtime, link)
                              : link_async(runtime, link);
}

/* ---- whole chains ------------------------------------------------------- */

/* Takes the stream, and keeps a reference to it. */
static void chain_add(struct chain *chain, struct uva_stream *stream)
{
    chain->streams[chain->used++] = uva_stream_acquire(stream);
}

static void group_done(void *ctx)
{
    struct chain *chain = ctx;

    expectation_note("the group of chain %d is done",
                     chain->expectation.number);
    chain->reported++;
}

/* Makes a group of the streams that are of the last one's runtime. */
static void chain_group(struct chain *chain)
{
    if (uva_group_new(chain->last, false, &chain->group, NULL) != 0) {
        chain->group = NULL;
        return;
    }
    if (peers_chance(1, 2))
        chain->asked += uva_group_on_done(chain->group, group_done, chain) == 0;
    for (int i = 0; i < chain->used; i++)
        (void)uva_group_add(chain->group, chain->streams[i]);
    if (chain->asked == 0)
        chain->asked += uva_group_on_done(chain->group, group_done, chain) == 0;
}

bool chain_cancel_group(struct chain *chain, int code, const char *reason)
{
    uva_group_cancel(chain->group, code, reason);
    return chain->group != NULL;
}

static int chain_length(void)
{
    return peers_chance(1, 2) ? 1 : 1 + (int)sim_choose(CHAIN_STREAMS);
}

/* The parts of an output, sometimes for two consumers. */
static void chain_encode(struct uva_stream *stream,
                         struct expectation *expectation)
{
    if (expectation->hostile || !peers_chance(1, 8))
        return;
    parts_add_stage(stream, expectation);
    if (expectation->encoded && peers_chance(1, 3))
        add_tee(stream, expectation);
}

/* A link that is cancelled may never start its stream, and the streams before
 * that one; a chain may be left unstarted, too. A branch of a tee in it would
 * then hold up the other one, and a place of its runtime's, until the last
 * reference to it is released. */
static void chain_forget_last(struct chain *chain)
{
    uva_stream_release(chain->streams[--chain->used]);
}

void chain_build(struct chain *chain, struct uva_runtime *const *runtimes,
                 int runtimes_used, bool devices)
{
    const uint64_t n = (uint64_t)runtimes_used;
    struct uva_runtime *at = runtimes[sim_choose(n)];
    struct expectation *expectation = &chain->expectation;
    struct uva_stream *stream, *next;
    const bool bare = expectation->device && peers_chance(1, 3);

    expectation->made_ns = sim_now_ns();
    stream = expectation->foreign ? hostile_producer_stream(at, expectation)
                                  : peers_source(at, expectation);
    if (!expectation->foreign && !expectation->device && peers_chance(1, 6))
        stream = retried_stream(at, stream, expectation);
    chain_add(chain, stream);
    draw_priority(stream, expectation);
    add_queries(at, stream, expectation);
    if (!bare)
        add_stages(at, stream, expectation, devices);
    for (int more = bare ? 0 : chain_length() - 1; more > 0; more--) {
        at = runtimes[sim_choose(n)];
        next = link_make(at, stream, expectation);
        uva_stream_release(stream);
        if (expectation->teed)
            chain_forget_last(chain);
        stream = next;
        chain_add(chain, stream);
        draw_priority(stream, expectation);
        add_stages(at, stream, expectation, devices);
    }
    chain->last = expectation->runtime = at;
    if (peers_chance(1, 3))
        chain_group(chain);
    if (expectation->on_device)
        device_add_ready(stream, expectation);
    chain_encode(stream, expectation);
    if (peers_chance(1, 30)) {
        expectation_note("chain %d is never started", expectation->number);
        expectation->over = true;
        uva_stream_release(stream);
        if (expectation->teed)
            chain_forget_last(chain);
        return;
    }
    peers_consume(stream, expectation);
}

void chain_release(struct chain *chain)
{
    while (chain->used > 0)
        uva_stream_release(chain->streams[--chain->used]);
    uva_group_release(chain->group);
    chain->group = NULL;
}
